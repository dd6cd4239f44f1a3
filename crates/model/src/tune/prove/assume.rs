//! The path between the ends: what was measured of it, and what is assumed where it was not.

use super::Assumption;
use crate::law::{Framing, GrantedWindow, IpVersion, bdp, cubic};
use crate::limit::{Cause, Limit};
use crate::tune::{MeasuredPath, Path};
use crate::units::{Bytes, Duration, Probability, Rate};
use toml::{Table, Value};

/// The rate of the lab's link where nothing shows what the path carries, as a multiple of what it
/// did carry: as in the plans of `analyze`.
const BEYOND: f64 = 2.0;
/// The least queue that a path is given which nobody saw full, in packets.
const QUEUE_PACKETS_LEAST: u64 = 64;
/// A short transfer may see fewer losses than their mean, and carry this much more than the law.
const BEYOND_LAW: f64 = 2.0;
/// The congestion control of most hosts.
const USUAL_CONTROL: &str = "cubic";

/// The path as the lab has it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Assumed {
    /// Of IP packets, in the lab's framing.
    pub rate: Rate,
    pub rtt: Duration,
    pub queue: Bytes,
    pub loss: Probability,
    /// How many segments are lost together.
    loss_run: f64,
    /// The bucket of a policer in place of the queue.
    policer: Option<Bytes>,
    /// The queue's discipline, if it is not a plain one.
    discipline: Option<String>,
    pub congestion_control: String,
    /// The window above TCP's.
    pub granted: Option<GrantedWindow>,
    /// The lab's own: IPv4, a link that counts IP packets.
    pub framing: Framing,
}

impl Assumed {
    pub fn of(measured: &MeasuredPath, assumptions: &mut Vec<Assumption>) -> Assumed {
        let framing = framing(measured, assumptions);
        let rate = rate(measured, framing, assumptions);
        Assumed {
            rate,
            rtt: measured.rtt,
            queue: queue(measured, rate, assumptions),
            loss: loss(measured, assumptions),
            loss_run: measured.loss_run.unwrap_or(1.0),
            policer: measured.policer.map(|bucket| on_wire(bucket, framing)),
            discipline: measured.discipline.clone(),
            congestion_control: congestion_control(measured, assumptions),
            granted: granted(measured, assumptions),
            framing,
        }
    }

    /// The path that a plan is for.
    pub fn path(&self, _: &MeasuredPath) -> Path {
        Path { rate: self.rate, rtt: self.rtt, queue: self.queue, framing: self.framing }
    }

    /// A buffer that fills path and queue, with room for what arrives while a loss is repaired, so
    /// that it cannot be the limit.
    pub fn room(&self) -> Bytes {
        const LEAST: Bytes = Bytes::new(6 << 20);
        const MOST: Bytes = Bytes::new(i32::MAX as u64);
        let held = bdp::bdp(self.rate, self.rtt).saturating_add(self.queue);
        Bytes::new(held.get().saturating_mul(6)).clamp(LEAST, MOST)
    }

    /// Loss as a scenario writes it. Runs of lost segments are Gilbert's model (E. N. Gilbert, Bell
    /// System Technical Journal 39, 1960): a bad state that loses everything, left after each
    /// segment with probability 1 / run, and entered as often as the share of loss needs.
    fn loss_words(&self) -> String {
        let (share, leaves) = (self.loss.get(), 1.0 / self.loss_run.max(1.0));
        let enters = leaves * share / (1.0 - share).max(f64::MIN_POSITIVE);
        if self.loss_run < RUN_LEAST || enters > 1.0 {
            return self.loss.to_exact();
        }
        format!("gemodel {:.7}% {:.4}%", enters * 100.0, leaves * 100.0)
    }

    /// The scenario's file, without its hosts' buffers.
    pub fn toml(&self, measured: &MeasuredPath, size: Option<Bytes>, duration: Duration) -> String {
        let mut link = table([
            ("rate", self.rate.to_exact()),
            // A scenario's halves of it are whole nanoseconds.
            ("rtt", Duration::from_nanos(self.rtt.as_nanos() & !1).to_exact()),
            ("queue", self.queue.get().to_string()),
            ("mtu", self.framing.mtu.get().to_string()),
        ]);
        let mut to_client = Table::new();
        if self.loss > Probability::ZERO {
            to_client.insert("loss".into(), self.loss_words().into());
        }
        if let Some(bucket) = self.policer {
            to_client.insert("discipline".into(), "police".into());
            to_client.insert("queue".into(), bucket.get().to_string().into());
        } else if let Some(discipline) = &self.discipline {
            to_client.insert("discipline".into(), discipline.clone().into());
        }
        link.insert("to_client".into(), to_client.into());
        let mut transfer = table([("duration", duration.max(SHORTEST).to_exact())]);
        if let Some(size) = size {
            transfer.insert("size".into(), size.get().to_string().into());
        }
        let rates = [
            (Limit::SenderApplication, "write_rate", measured.sender.application_rate),
            (Limit::ReceiverApplication, "read_rate", measured.receiver.application_rate),
        ];
        for (limit, key, rate) in rates {
            if measured.limited_by == limit {
                let rate = rate.unwrap_or(measured.goodput);
                transfer.insert(key.into(), rate.to_exact().into());
            }
        }
        if let Some(granted) = self.granted {
            transfer.insert("upload".into(), true.into());
            for (key, size) in
                [("application_window", granted.window), ("application_window_step", granted.step)]
            {
                transfer.insert(key.into(), size.get().to_string().into());
            }
        }
        let server = table([("congestion_control", self.congestion_control.clone())]);
        let hosts = Table::from_iter([("server".to_string(), Value::Table(server))]);
        let mut file = table([("name", "prove".to_string())]);
        for (name, part) in [("hosts", hosts), ("link", link), ("transfer", transfer)] {
            file.insert(name.into(), part.into());
        }
        // A table of texts is always valid TOML.
        toml::to_string(&file).unwrap_or_default()
    }
}

/// Losses in shorter runs than this are taken for independent ones.
const RUN_LEAST: f64 = 1.2;
/// The shortest transfer of a scenario.
const SHORTEST: Duration = Duration::from_millis(100);

fn table<const N: usize>(entries: [(&str, String); N]) -> Table {
    entries.into_iter().map(|(key, value)| (key.to_string(), Value::String(value))).collect()
}

/// The bytes of packets that carry `payload`.
fn on_wire(payload: Bytes, framing: Framing) -> Bytes {
    let mss = framing.mss().as_f64();
    let bytes = payload.as_f64() * framing.mtu.as_f64().max(mss) / mss;
    Bytes::from_f64(bytes).max(Bytes::new(framing.mtu.get().saturating_mul(2)))
}

/// The lab's framing with the same payload in a segment: its link is IPv4.
fn framing(measured: &MeasuredPath, assumptions: &mut Vec<Assumption>) -> Framing {
    let lab = Framing { ip: IpVersion::Ipv4, link_overhead: Bytes::ZERO, ..measured.framing };
    if measured.framing.ip == IpVersion::Ipv4 {
        return lab;
    }
    assumptions.push(Assumption::Ipv4);
    Framing { mtu: lab.mtu.saturating_sub(Bytes::new(20)), ..lab }
}

/// The rate of the link in the lab's framing.
fn rate(measured: &MeasuredPath, lab: Framing, assumptions: &mut Vec<Assumption>) -> Rate {
    if let Some(rate) = measured.rate {
        // The same payload passes, whatever the real link adds to a packet.
        return with_headers(lab, measured.framing.goodput(rate).as_f64());
    }
    if measured.limited_by == Limit::Link {
        return with_headers(lab, measured.goodput.as_f64());
    }
    // In slow start all of a transfer may be sent within one round trip.
    let burst = match (measured.limited_by, measured.payload) {
        (Limit::CongestionWindow(Cause::SlowStart), Some(payload)) => payload.per(measured.rtt),
        _ => None,
    };
    let seen = measured.peak.unwrap_or(measured.goodput).max(measured.goodput);
    let shown = [burst, Some(seen)].into_iter().flatten().map(Rate::as_f64);
    let rate = with_headers(lab, shown.fold(BEYOND * measured.goodput.as_f64(), f64::max));
    assumptions.push(Assumption::Rate { seen, lab: rate });
    rate
}

/// The rate of a link that carries `goodput`, in bits per second.
fn with_headers(framing: Framing, goodput: f64) -> Rate {
    let share = framing.mss().as_f64() / framing.mtu.max(framing.mss()).as_f64();
    Rate::from_bits_per_sec_f64(goodput / share).max(Rate::from_bits_per_sec(1))
}

fn queue(measured: &MeasuredPath, rate: Rate, assumptions: &mut Vec<Assumption>) -> Bytes {
    let packet = measured.framing.mtu.max(Bytes::new(1500));
    let least = Bytes::new(packet.get().saturating_mul(QUEUE_PACKETS_LEAST));
    let usual = bdp::bdp(rate, measured.rtt).max(least);
    if measured.policer.is_some() {
        // Its bucket takes the place of the queue.
        return usual;
    }
    let overflowed = measured.overflow.is_some_and(|share| share > Probability::ZERO);
    match measured.queue {
        // It drops before it is full, so that its capacity does not show.
        Some(stood) if measured.discipline.is_some() => stood.saturating_add(stood).max(usual),
        // It was full: that is its capacity.
        Some(stood) if overflowed => stood.max(Bytes::new(packet.get().saturating_mul(2))),
        Some(stood) => {
            if stood < usual {
                assumptions.push(Assumption::LongerQueue { stood, lab: usual });
            }
            stood.max(usual)
        }
        None => {
            assumptions.push(Assumption::Queue(usual));
            usual
        }
    }
}

/// Loss that is imposed on the path. What a full queue drops comes by itself.
fn loss(measured: &MeasuredPath, assumptions: &mut Vec<Assumption>) -> Probability {
    let seen = measured.loss.unwrap_or(Probability::ZERO);
    match measured.limited_by {
        Limit::Link
        | Limit::Unknown
        | Limit::SenderApplication
        | Limit::ReceiverApplication
        | Limit::ApplicationWindow
        | Limit::CongestionWindow(Cause::SlowStart) => {
            if seen > Probability::ZERO {
                assumptions.push(Assumption::HarmlessLoss(seen));
            }
            Probability::ZERO
        }
        Limit::SendBuffer | Limit::ReceiveWindow if !allows(measured, seen) => {
            assumptions.push(Assumption::LossWithinRate(seen));
            Probability::ZERO
        }
        _ => {
            if seen > Probability::ZERO {
                let run = measured.loss_run.unwrap_or(1.0);
                assumptions.push(if run < RUN_LEAST {
                    Assumption::Loss(seen)
                } else {
                    Assumption::LossInRuns(seen, run)
                });
            }
            seen
        }
    }
}

/// Whether a transfer could carry what it did under loss at random, by the law of CUBIC with the
/// runs of lost segments as one event each.
fn allows(measured: &MeasuredPath, loss: Probability) -> bool {
    let events = Probability::new(loss.get() / measured.loss_run.unwrap_or(1.0).max(1.0));
    let Some(events) = events.filter(|events| *events > Probability::ZERO) else { return true };
    let mss = measured.framing.mss();
    let bound = cubic::rate(mss, measured.rtt, events, Rate::from_bits_per_sec(u64::MAX));
    measured.goodput.as_f64() <= BEYOND_LAW * bound.as_f64()
}

/// Where nobody saw what the receiving program grants at a time, a window has so many steps.
const STEPS: u64 = 16;

/// The window above TCP's, which is there where it was the limit.
fn granted(measured: &MeasuredPath, assumptions: &mut Vec<Assumption>) -> Option<GrantedWindow> {
    let seen = measured.application_window?;
    if measured.limited_by != Limit::ApplicationWindow {
        return None;
    }
    let step = seen.step.unwrap_or_else(|| {
        let step = Bytes::new(seen.window.get().div_ceil(STEPS));
        assumptions.push(Assumption::Grants(step));
        step
    });
    Some(GrantedWindow { window: seen.window, step: step.clamp(Bytes::new(1), seen.window) })
}

fn congestion_control(measured: &MeasuredPath, assumptions: &mut Vec<Assumption>) -> String {
    match &measured.sender.congestion_control {
        Some(name) => name.clone(),
        None => {
            assumptions.push(Assumption::CongestionControl(USUAL_CONTROL.into()));
            USUAL_CONTROL.into()
        }
    }
}
