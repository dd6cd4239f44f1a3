//! Everything that `fullpipe calc` answers, as data.
//!
//! A [`Question`] is a path and optionally a buffer and a kernel; [`sheet`] answers with a
//! [`Sheet`]. Without a kernel it answers for both generations of the receive-buffer law side by
//! side ([`KernelSheet`]): Linux 6.1 stands for those before 6.6, and 6.18 for those since. When
//! serialised, every field's name has its unit.

use super::{HostSettings, LossSheet, Path, Plan, plan};
use crate::law::{KernelVersion, WindowLaw, bdp, send_buffer, slow_start, transfer_time};
use crate::limit::{self, Limit};
use crate::units::{Bytes, Duration, Probability, Rate, Window, column};

/// The input of a calculation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Question {
    /// The path to fill.
    pub path: Path,
    /// A buffer to judge.
    pub buffer: Option<Bytes>,
    /// The kernel of both hosts; `None`: both generations.
    pub kernel: Option<KernelVersion>,
    /// Random loss on the path.
    pub loss: Option<Probability>,
}

/// What the laws give for a path.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Sheet {
    /// The path.
    pub path: Path,
    /// Bytes in flight on the full path.
    #[serde(rename = "bdp_bytes", with = "column::bytes")]
    pub bdp: Bytes,
    /// The BDP and an eighth of the queue: the target for buffers.
    #[serde(rename = "in_flight_target_bytes")]
    pub in_flight_target: Window,
    /// Payload of a full segment.
    #[serde(rename = "mss_bytes", with = "column::bytes")]
    pub mss: Bytes,
    /// The largest goodput after framing.
    #[serde(rename = "goodput_bps", with = "column::rate")]
    pub goodput: Rate,
    /// `sk_sndbuf` that keeps one BDP in flight.
    #[serde(rename = "sndbuf_for_bdp_bytes", with = "column::bytes")]
    pub sndbuf_for_bdp: Bytes,
    /// Round trips of slow start until the path is full.
    pub slow_start_round_trips: u32,
    /// Their duration.
    #[serde(rename = "slow_start_us", with = "column::micros")]
    pub slow_start: Duration,
    /// A transfer of 1 GB over the full path; absent at rate zero.
    pub gigabyte: Option<TransferSheet>,
    /// What depends on the kernel, one entry for each generation.
    pub kernels: Vec<KernelSheet>,
    /// What the given loss leaves, if one was given.
    pub loss: Option<LossSheet>,
}

/// The least time of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct TransferSheet {
    /// The amount.
    #[serde(rename = "amount_bytes", with = "column::bytes")]
    pub amount: Bytes,
    /// From SYN to last byte.
    #[serde(rename = "total_us", with = "column::micros")]
    pub total: Duration,
    /// The share of the total that connecting and slow start cost.
    pub share_lost: f64,
}

/// What depends on the kernel.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct KernelSheet {
    /// The kernel.
    pub kernel: KernelVersion,
    /// The law that turns its receive buffers into windows, as text.
    pub window_law: String,
    /// `sk_rcvbuf` whose window is one BDP, by the cautious form of the law.
    #[serde(rename = "rcvbuf_for_bdp_bytes", with = "column::bytes")]
    pub rcvbuf_for_bdp: Bytes,
    /// Its `tcp_rmem[2]`: the default, or what a host was given.
    #[serde(rename = "default_rcvbuf_bytes", with = "column::bytes")]
    pub default_rcvbuf: Bytes,
    /// The window scale that its default settings offer.
    pub window_scale: u8,
    /// What the given buffer allows, if one was given.
    pub buffer: Option<BufferSheet>,
    /// From this kernel's default settings to those that fill the path.
    pub plan: Plan,
}

/// What a buffer allows, at either end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct BufferSheet {
    /// Its size: `sk_rcvbuf` or `sk_sndbuf`, which `tcp_rmem` and `tcp_wmem` bound (SO_RCVBUF
    /// doubles its request).
    #[serde(rename = "buffer_bytes", with = "column::bytes")]
    pub buffer: Bytes,
    /// As a receive buffer.
    pub receive: EndSheet,
    /// As a send buffer.
    pub send: EndSheet,
}

/// What a buffer allows at one end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct EndSheet {
    /// Bytes that may be in flight.
    #[serde(rename = "window_bytes")]
    pub window: Window,
    /// Goodput on the path.
    #[serde(rename = "goodput_bps", with = "column::rate")]
    pub goodput: Rate,
    /// The limit.
    #[serde(with = "limit::term")]
    pub limited_by: Limit,
    /// The largest RTT at which it fills the path's rate.
    #[serde(rename = "largest_rtt_us", with = "column::micros")]
    pub largest_rtt: Duration,
}

impl Question {
    /// The kernel of the question, or one of each generation.
    pub fn kernels(&self) -> Vec<KernelVersion> {
        match self.kernel {
            Some(kernel) => vec![kernel],
            None => vec![KernelVersion::new(6, 1), KernelVersion::new(6, 18)],
        }
    }
}

/// Answers `question` for hosts with their kernel's default settings.
pub fn sheet(question: &Question) -> Sheet {
    let hosts: Vec<HostSettings> =
        question.kernels().into_iter().map(HostSettings::defaults).collect();
    sheet_for(question, &hosts)
}

/// Answers `question` for hosts with these settings, one entry for each; a path has the same
/// settings at both ends. The question's kernel is not used.
pub fn sheet_for(question: &Question, hosts: &[HostSettings]) -> Sheet {
    let path = question.path;
    let (bdp, mss) = (path.bdp(), path.framing.mss());
    let full = Window::new(bdp);
    Sheet {
        path,
        bdp,
        in_flight_target: path.in_flight_target(),
        mss,
        goodput: path.goodput(),
        sndbuf_for_bdp: send_buffer::sndbuf_for(full),
        slow_start_round_trips: slow_start::round_trips(mss, full),
        slow_start: slow_start::time_to(mss, full, path.rtt),
        gigabyte: gigabyte(path),
        kernels: hosts.iter().map(|host| kernel_sheet(host, path, question.buffer)).collect(),
        loss: question.loss.map(|loss| LossSheet::new(path, loss)),
    }
}

fn gigabyte(path: Path) -> Option<TransferSheet> {
    TransferSheet::new(path, Bytes::new(1_000_000_000), path.goodput())
}

impl TransferSheet {
    /// The least time of `amount` at `steady` in the end; `None` at rate zero.
    pub(super) fn new(path: Path, amount: Bytes, steady: Rate) -> Option<Self> {
        let time = transfer_time::transfer_time(amount, path.framing.mss(), path.rtt, steady)?;
        let share_lost = time.share_lost(amount, steady);
        Some(TransferSheet { amount, total: time.total(), share_lost })
    }
}

fn kernel_sheet(host: &HostSettings, path: Path, buffer: Option<Bytes>) -> KernelSheet {
    let law = host.window_law();
    KernelSheet {
        kernel: host.kernel,
        window_law: law_in_words(law),
        rcvbuf_for_bdp: law.cautious().rcvbuf_for(Window::new(path.bdp())),
        default_rcvbuf: host.tcp_rmem.max,
        window_scale: host.window_scale().get(),
        buffer: buffer.map(|buffer| BufferSheet {
            buffer,
            receive: receive_end(path, law.window(buffer)),
            send: send_end(path, buffer, host.write),
        }),
        plan: plan(path, host, host),
    }
}

/// The law as text, and the ratio for which buffers are sized if that is another.
fn law_in_words(law: WindowLaw) -> String {
    match law.cautious() {
        WindowLaw::ScalingRatio(ratio) if law != law.cautious() => {
            format!("{law}, sized for {}/256", ratio.get())
        }
        _ => law.to_string(),
    }
}

pub(super) fn receive_end(path: Path, window: Window) -> EndSheet {
    end(path, window, path.steady().rate_of_window(window), Limit::ReceiveWindow)
}

pub(super) fn send_end(path: Path, sndbuf: Bytes, write: Bytes) -> EndSheet {
    let goodput = path.steady().rate_of_send_buffer(sndbuf, write);
    end(path, send_buffer::window(sndbuf), goodput, Limit::SendBuffer)
}

fn end(path: Path, window: Window, goodput: Rate, limit: Limit) -> EndSheet {
    let limited_by = if goodput < path.goodput() { limit } else { Limit::Link };
    let largest_rtt = bdp::largest_rtt(window.bytes(), path.rate).unwrap_or(Duration::MAX);
    EndSheet { window, goodput, limited_by, largest_rtt }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn asked(rate: &str, rtt: &str, buffer: Option<&str>, kernel: Option<&str>) -> Sheet {
        sheet(&Question {
            path: Path::new(rate.parse().unwrap(), rtt.parse().unwrap()),
            buffer: buffer.map(|text| text.parse().unwrap()),
            kernel: kernel.map(|text| text.parse().unwrap()),
            loss: None,
        })
    }

    #[test]
    fn the_article_asked_of_the_sheet() {
        let sheet = asked("1gbit", "50ms", Some("4MiB"), None);
        assert_eq!(sheet.bdp, "6.25MB".parse().unwrap());
        assert_eq!(sheet.slow_start, "450ms".parse().unwrap());
        let [old, new] = &sheet.kernels[..] else { panic!("two generations: {:?}", sheet.kernels) };
        assert_eq!((old.rcvbuf_for_bdp.get(), new.rcvbuf_for_bdp.get()), (12_499_999, 12_500_000));
        assert_eq!((old.window_scale, new.window_scale), (7, 10));
        let buffer = old.buffer.unwrap();
        assert_eq!(
            (buffer.send.limited_by, buffer.send.largest_rtt.as_micros()),
            (Limit::SendBuffer, 22_145)
        );
        assert_eq!(
            (buffer.receive.limited_by, buffer.receive.window.bytes().get()),
            (Limit::ReceiveWindow, 2_097_152)
        );
    }

    #[test]
    fn one_kernel_asked_is_one_answered() {
        assert_eq!(asked("10gbit", "3ms", None, Some("5.14.0-427.el9")).kernels.len(), 1);
    }

    #[test]
    fn fields_say_their_unit() {
        let value =
            toml::Value::try_from(asked("1gbit", "50ms", Some("4MiB"), Some("6.18"))).unwrap();
        let number = |path: &[&str]| {
            let found = path.iter().try_fold(&value, |value, key| match key.parse::<usize>() {
                Ok(index) => value.get(index),
                Err(_) => value.get(*key),
            });
            found.and_then(toml::Value::as_integer)
        };
        assert_eq!(number(&["bdp_bytes"]), Some(6_250_000));
        assert_eq!(number(&["path", "rtt_us"]), Some(50_000));
        assert_eq!(number(&["path", "rate_bps"]), Some(1_000_000_000));
        assert_eq!(number(&["kernels", "0", "buffer", "send", "window_bytes"]), Some(2_768_240));
        assert_eq!(number(&["kernels", "0", "plan", "after", "goodput_bps"]), Some(965_333_333));
    }

    proptest! {
        #[test]
        fn any_question_is_answered(bits: u64, nanos: u64, buffer: Option<u64>) {
            let path = Path::new(Rate::from_bits_per_sec(bits), Duration::from_nanos(nanos));
            let sheet = sheet(&Question { path, buffer: buffer.map(Bytes::new), kernel: None, loss: None });
            for kernel in &sheet.kernels {
                let below = |end: EndSheet| end.goodput <= path.rate;
                prop_assert!(kernel.buffer.is_none_or(|buffer| below(buffer.send) && below(buffer.receive)));
            }
        }
    }
}
