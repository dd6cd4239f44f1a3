//! The plan: what to change, on which host, and why.
//!
//! A buffer is changed if it cannot keep one BDP in flight. Its new size keeps the BDP and a little
//! of the queue in flight ([`Path::in_flight_target`]), rounded up to an eighth of a power of two.
//! Receive buffers are sized by the cautious form of the window law, because a scaling ratio
//! depends on the driver. Nothing is lowered; a plan for a host that a plan has tuned is empty.

use super::note::{self, Note};
use super::{HostSettings, Path, Prediction, predict};
use crate::change::{Change, ChangeReason, Knob, MemTriple, ShortBuffer, Sysctl, Value};
use crate::law::send_buffer;
use crate::law::window_scale::MAX_WINDOW;
use crate::limit::End;
use crate::units::{Bytes, Window, column};

/// The settings that fill a path, each with its reason.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Plan {
    /// The path that the plan is for.
    pub path: Path,
    /// Bytes in flight on the full path.
    #[serde(rename = "bdp_bytes", with = "column::bytes")]
    pub bdp: Bytes,
    /// What the settings allow before.
    pub before: Prediction,
    /// What the settings allow with the changes.
    pub after: Prediction,
    /// The changes, sender first. Empty if the hosts can already fill the path.
    pub changes: Vec<Change>,
    /// What else to know.
    pub notes: Vec<Note>,
}

/// The largest value of a sysctl of C's type int.
const SYSCTL_MAX: Bytes = Bytes::new(i32::MAX as u64);

/// The settings that let `sender` fill `path` towards `receiver`.
///
/// ```
/// use fullpipe_model::law::KernelVersion;
/// use fullpipe_model::tune::{HostSettings, Path, plan};
/// let path = Path::new("1gbit".parse().unwrap(), "50ms".parse().unwrap());
/// let host = HostSettings::defaults(KernelVersion::new(6, 18));
/// let plan = plan(path, &host, &host);
/// assert_eq!(plan.changes.len(), 1);
/// assert_eq!(plan.changes[0].knob.to_string(), "net.ipv4.tcp_wmem");
/// assert_eq!(plan.changes[0].words(), "net.ipv4.tcp_wmem at least 4096 16384 11534336");
/// ```
pub fn plan(path: Path, sender: &HostSettings, receiver: &HostSettings) -> Plan {
    let mut tuned =
        Tuned { path, sender: sender.clone(), receiver: receiver.clone(), changes: Vec::new() };
    tuned.send_buffer();
    tuned.receive_buffer();
    tuned.window_scaling();
    Plan {
        path,
        bdp: path.bdp(),
        before: predict(path, sender, receiver),
        after: predict(path, &tuned.sender, &tuned.receiver),
        notes: note::notes(path, &tuned.sender, &tuned.receiver, receiver.window_scale()),
        changes: tuned.changes,
    }
}

/// The hosts while the plan is made.
struct Tuned {
    path: Path,
    sender: HostSettings,
    receiver: HostSettings,
    changes: Vec<Change>,
}

impl Tuned {
    fn change(&mut self, end: End, sysctl: Sysctl, to: Value, reason: ChangeReason) {
        let settings = match end {
            End::Sender => &mut self.sender,
            End::Receiver => &mut self.receiver,
        };
        let (knob, from) = (Knob::Sysctl(sysctl), settings.get(sysctl));
        settings.make(&knob, &to);
        self.changes.push(Change { end: Some(end), knob, from, to, reason });
    }

    /// A buffer of which this share is a window that does not fill the path.
    fn short(&self, buffer: Bytes, window: Window, share: f64, is_asked: bool) -> ShortBuffer {
        ShortBuffer {
            buffer,
            window,
            percent: (share * 100.0).round() as u32,
            carries: window.per_rtt(self.path.rtt),
            rtt: self.path.rtt,
            bdp: self.path.bdp(),
            queue: self.path.queue,
            is_of_application: is_asked,
        }
    }

    /// What one connection must keep in flight to fill the path, as far as TCP can express it.
    fn needed(&self) -> Window {
        self.path.needed().min(MAX_WINDOW)
    }

    fn target(&self) -> Window {
        self.path.in_flight_target().max(self.path.needed()).min(MAX_WINDOW)
    }

    fn send_buffer(&mut self) {
        let window = self.sender.send_window();
        if window >= self.needed() {
            return;
        }
        let now = self.sender.sndbuf();
        let sndbuf = round_up(send_buffer::sndbuf_for(self.target()));
        let is_asked = self.sender.so_sndbuf.is_some();
        let share = send_buffer::IN_FLIGHT_SHARE;
        let reason = ChangeReason::SendBuffer(self.short(now, window, share, is_asked));
        if is_asked {
            // The kernel doubles the request, so half of the buffer must be allowed.
            let request = Bytes::new(sndbuf.get().div_ceil(2));
            if self.sender.wmem_max < request {
                self.change(End::Sender, Sysctl::WmemMax, request.into(), reason);
            }
        } else if self.sender.tcp_wmem.max < sndbuf {
            let triple = MemTriple { max: sndbuf, ..self.sender.tcp_wmem };
            self.change(End::Sender, Sysctl::TcpWmem, triple.into(), reason);
        }
    }

    fn receive_buffer(&mut self) {
        let law = self.receiver.window_law().cautious();
        if !self.receiver.tcp_moderate_rcvbuf && self.receiver.so_rcvbuf.is_none() {
            let initial = self.receiver.tcp_rmem.default;
            if law.window(initial) < self.needed() {
                let reason = ChangeReason::NoAutotuning { initial };
                self.change(End::Receiver, Sysctl::TcpModerateRcvbuf, Value::flag(true), reason);
            }
        }
        let now = self.receiver.rcvbuf();
        let window = law.window(now);
        if window >= self.needed() {
            return;
        }
        let rcvbuf = round_up(law.rcvbuf_for(self.target()));
        let is_asked = self.receiver.so_rcvbuf.is_some();
        let short = self.short(now, window, law.share(), is_asked);
        let reason = ChangeReason::ReceiveBuffer(short, law);
        if is_asked {
            let request = Bytes::new(rcvbuf.get().div_ceil(2));
            if self.receiver.rmem_max < request {
                self.change(End::Receiver, Sysctl::RmemMax, request.into(), reason);
            }
        } else if self.receiver.tcp_rmem.max < rcvbuf {
            let triple = MemTriple { max: rcvbuf, ..self.receiver.tcp_rmem };
            self.change(End::Receiver, Sysctl::TcpRmem, triple.into(), reason);
        }
    }

    fn window_scaling(&mut self) {
        if self.needed() <= crate::law::window_scale::MAX_UNSCALED {
            return;
        }
        for (end, on) in [
            (End::Sender, self.sender.tcp_window_scaling),
            (End::Receiver, self.receiver.tcp_window_scaling),
        ] {
            if !on {
                let reason = ChangeReason::NoWindowScaling { bdp: self.path.bdp() };
                self.change(end, Sysctl::TcpWindowScaling, Value::flag(true), reason);
            }
        }
    }
}

/// Rounds up to the next eighth of a power of two (at most 12.5 % more), to whole pages, and at
/// most to what a sysctl can hold.
fn round_up(bytes: Bytes) -> Bytes {
    const PAGE: u64 = 4096;
    let bytes = bytes.min(SYSCTL_MAX).get().max(1);
    let step = (1u64 << bytes.ilog2().saturating_sub(3)).max(PAGE);
    Bytes::new(bytes.next_multiple_of(step)).min(SYSCTL_MAX)
}

#[cfg(test)]
mod tests;
