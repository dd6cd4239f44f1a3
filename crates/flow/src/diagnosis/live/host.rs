//! What lies behind a live connection's limit on its own host: the queueing disciplines of its
//! device, the bound that a cloud sets.
//!
//! A shaper (tbf, htb, hfsc, cake, netem with a rate) lets the rest wait: the connection then looks
//! like one on a slow link, but the link is a line of this host's own configuration. A queue that
//! drops looks like loss on the path. Both are told by the discipline's own counters, read before
//! and after the connection is followed.
//!
//! No discipline is blamed for being there: `pfifo_fast` or `noqueue` under BBR are fine, because
//! sockets pace by themselves since Linux 4.13 (net/ipv4/tcp_output.c, `tcp_pacing_check`).

use crate::diagnosis::{FlowCapRule, MachineCause};
use crate::limit::{Cause, Limit};
use fullpipe_model::observe::{Class, Egress, Qdisc};
use fullpipe_model::units::{Bytes, Rate};

/// Disciplines that let packets wait on purpose.
const SHAPERS: [&str; 5] = ["tbf", "htb", "hfsc", "cake", "netem"];
/// A connection that carries this fraction of a shaper's rate is held by it: the rate counts
/// headers, and others may share it.
const OF_RATE: f64 = 0.7;
/// A cap counts the bits of the wire; payload is up to a tenth below it.
const OF_CAP: std::ops::RangeInclusive<f64> = 0.88..=1.0;

/// What a host knows of its connection beside the socket.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostFacts<'a> {
    /// What its packets pass on their way out, before and after the samples.
    pub egress: Option<[&'a Egress; 2]>,
    /// What its control group does to it.
    pub group: Option<&'a MachineCause>,
    /// Whose machine it is, by its firmware.
    pub vendor: &'a str,
    /// The name of the process that has the socket open; empty where it is not known.
    pub program: &'a str,
}

/// What the connection does, for the rules of this host.
#[derive(Debug, Clone, Copy)]
pub(super) struct Carried {
    pub limit: Limit,
    pub goodput: Rate,
}

impl HostFacts<'_> {
    /// What the device did to a connection that this host sends on.
    pub(super) fn device(&self, carried: Carried) -> Option<MachineCause> {
        let [before, after] = self.egress?;
        if before.device != after.device {
            return None;
        }
        after.qdiscs.iter().find_map(|now| {
            let mut before = before.qdiscs.iter();
            let then = before.find(|then| then.kind == now.kind && then.handle == now.handle)?;
            shaped(carried, &after.device, then, now)
                .or_else(|| dropped(carried.limit, &after.device, then, now))
        })
    }

    /// The cap that a connection runs into, on a machine of a cloud that publishes one.
    pub(super) fn flow_cap(&self, carried: Carried) -> Option<MachineCause> {
        let Carried { limit, goodput } = carried;
        if !self.vendor.starts_with("Amazon") || limit != Limit::Link {
            return None;
        }
        let rule = FlowCapRule::ALL
            .into_iter()
            .find(|rule| OF_CAP.contains(&goodput.fraction_of(rule.rate())))?;
        Some(MachineCause::FlowCap { rule, goodput })
    }
}

/// The class that sent most meanwhile: that of the connection, as far as the counters tell.
fn busiest<'a>(then: &Qdisc, now: &'a Qdisc) -> Option<&'a Class> {
    let sent = now.classes.iter().map(|class| (class, sent_since(then, class)));
    let busy = sent.filter(|(_, sent)| *sent > Bytes::ZERO);
    busy.max_by_key(|(_, sent)| *sent).map(|(class, _)| class)
}

/// What a class sent since its discipline was in the state `then`.
fn sent_since(then: &Qdisc, class: &Class) -> Bytes {
    let before = then.classes.iter().find(|one| one.handle == class.handle);
    class.sent.saturating_sub(before.map_or(Bytes::ZERO, |one| one.sent))
}

fn shaped(carried: Carried, device: &str, then: &Qdisc, now: &Qdisc) -> Option<MachineCause> {
    if !SHAPERS.contains(&now.kind.as_str()) {
        return None;
    }
    let waited = now.overlimits.saturating_sub(then.overlimits);
    let class = busiest(then, now);
    let rate = now.rate.or_else(|| class.and_then(|class| class.most));
    let holds = match rate {
        Some(rate) => carried.goodput.as_f64() >= OF_RATE * rate.as_f64(),
        // Without a rate, only a link is what a shaper looks like.
        None => waited > 0 && carried.limit == Limit::Link,
    };
    holds.then(|| MachineCause::ShapedHere {
        kind: now.kind.clone(),
        class: class.map(|class| class.handle.clone()),
        device: device.into(),
        rate,
        waited,
        drops: now.drops.saturating_sub(then.drops),
    })
}

fn dropped(limit: Limit, device: &str, then: &Qdisc, now: &Qdisc) -> Option<MachineCause> {
    let drops = now.drops.saturating_sub(then.drops);
    let is_loss = limit == Limit::CongestionWindow(Cause::Loss);
    (is_loss && drops > 0).then(|| MachineCause::DroppedBeforeSending {
        kind: now.kind.clone(),
        device: device.into(),
        drops,
        on_purpose: now.loses,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEND_BUFFER: Limit = Limit::SendBuffer;

    fn egress(kind: &str, rate: Option<&str>, drops: u64, overlimits: u64) -> Egress {
        let rate = rate.map(|rate| rate.parse().unwrap());
        let qdisc = Qdisc {
            kind: kind.into(),
            handle: "1:".into(),
            rate,
            loses: false,
            drops,
            overlimits,
            classes: Vec::new(),
        };
        Egress { device: "eth0".into(), qdiscs: vec![qdisc] }
    }

    /// What the device did to a connection that carries 19 Mbit/s and was held by `limit`.
    fn cause(limit: Limit, before: &Egress, after: &Egress) -> Option<MachineCause> {
        let goodput = "19mbit".parse().unwrap();
        let facts = HostFacts { egress: Some([before, after]), ..HostFacts::default() };
        facts.device(Carried { limit, goodput })
    }

    fn name(limit: Limit, before: &Egress, after: &Egress) -> Option<&'static str> {
        cause(limit, before, after).map(|cause| cause.name())
    }

    #[test]
    fn a_shaper_is_named_where_the_connection_carries_its_rate() {
        let tbf = |rate, waited| egress("tbf", Some(rate), 0, waited);
        let named = |rate| name(Limit::Link, &tbf(rate, 5), &tbf(rate, 905));
        assert_eq!(named("20mbit"), Some("shaped_here"));
        assert_eq!(named("1gbit"), None, "it carries far less");
        let htb = |waited| egress("htb", None, 0, waited);
        assert_eq!(name(Limit::Link, &htb(5), &htb(6)), Some("shaped_here"));
        assert_eq!(name(Limit::Link, &htb(5), &htb(5)), None, "nothing waited");
        assert_eq!(name(SEND_BUFFER, &htb(5), &htb(6)), None);
    }

    #[test]
    fn the_class_that_carries_the_connection_bounds_it() {
        let class = |handle: &str, most: &str, sent: u64| Class {
            handle: handle.into(),
            most: Some(most.parse().unwrap()),
            sent: Bytes::new(sent),
        };
        let htb = |waited, slow, fast| {
            let mut egress = egress("htb", None, 0, waited);
            egress.qdiscs[0].classes =
                vec![class("1:10", "20mbit", slow), class("1:20", "500mbit", fast)];
            egress
        };
        let held = cause(Limit::Link, &htb(5, 1000, 90_000_000), &htb(600, 2_400_000, 90_000_500));
        let expected = MachineCause::ShapedHere {
            kind: "htb".into(),
            class: Some("1:10".into()),
            device: "eth0".into(),
            rate: Some("20mbit".parse().unwrap()),
            waited: 595,
            drops: 0,
        };
        assert_eq!(held, Some(expected));
        let free = cause(Limit::Link, &htb(5, 1000, 1000), &htb(600, 2000, 2_400_000));
        assert_eq!(free, None, "19 Mbit/s in a class of 500");
    }

    #[test]
    fn drops_are_named_where_loss_is_the_limit_and_they_grew() {
        let loss = Limit::CongestionWindow(Cause::Loss);
        let fifo = |drops| egress("pfifo_fast", None, drops, 0);
        assert_eq!(name(loss, &fifo(3), &fifo(9)), Some("dropped_before_sending"));
        assert_eq!(name(loss, &fifo(9), &fifo(9)), None);
        assert_eq!(name(Limit::Link, &fifo(3), &fifo(9)), None);
        let other = Egress { device: "eth1".into(), ..fifo(9) };
        assert_eq!(name(loss, &fifo(3), &other), None, "the route changed meanwhile");
    }

    #[test]
    fn a_cap_is_named_only_where_it_applies() {
        let of = |vendor, limit, mbit: u64| {
            let goodput = Rate::from_bits_per_sec(mbit * 1_000_000);
            HostFacts { vendor, ..HostFacts::default() }.flow_cap(Carried { limit, goodput })
        };
        let found = of("Amazon EC2\n", Limit::Link, 4_700);
        let Some(MachineCause::FlowCap { rule, .. }) = found else { panic!("{found:?}") };
        assert_eq!(rule, FlowCapRule::AmazonOutsideGroup);
        for (vendor, limit, mbit) in [
            ("Amazon EC2\n", Limit::Link, 3_000),
            ("Amazon EC2\n", SEND_BUFFER, 4_700),
            ("QEMU\n", Limit::Link, 4_700),
        ] {
            assert_eq!(of(vendor, limit, mbit), None, "{vendor} {limit} {mbit}");
        }
    }
}
