//! What the queueing disciplines of this host's own devices do to a connection that it sends on.
//!
//! A shaper (tbf, htb, hfsc, cake, netem with a rate) lets the rest wait: the connection then looks
//! like one on a slow link, but the link is a line of this host's own configuration. A queue that
//! drops looks like loss on the path. Both are told by the discipline's own counters, read before
//! and after the connection is followed.
//!
//! No discipline is blamed for being there: `pfifo_fast` or `noqueue` under BBR are fine, because
//! sockets pace by themselves since Linux 4.13 (net/ipv4/tcp_output.c, `tcp_pacing_check`).

use fullpipe_flow::diagnosis::Explanation;
use fullpipe_flow::limit::{Cause, Limit};
use fullpipe_flow::live::{Acts, Answer};
use fullpipe_kernel::netlink::{Class, Egress, Qdisc};
use fullpipe_model::limit::End;
use fullpipe_model::units::Bytes;

/// Disciplines that let packets wait on purpose.
const SHAPERS: [&str; 5] = ["tbf", "htb", "hfsc", "cake", "netem"];
/// A connection that carries this fraction of a shaper's rate is held by it: the rate counts
/// headers, and others may share it.
const OF_RATE: f64 = 0.7;

/// Adds to `answer` what the device did between two readings of its counters.
pub(crate) fn add_egress(answer: &mut Answer, before: &Egress, after: &Egress) {
    if answer.role != End::Sender || before.device != after.device {
        return;
    }
    for now in &after.qdiscs {
        let same = |then: &&Qdisc| then.kind == now.kind && then.handle == now.handle;
        let Some(then) = before.qdiscs.iter().find(same) else { continue };
        let drops = now.drops.saturating_sub(then.drops);
        let waited = now.overlimits.saturating_sub(then.overlimits);
        let class = busiest(then, now);
        let found = shaped(answer, &after.device, (now, class), waited, drops)
            .or_else(|| dropped(answer.limit, &after.device, now, drops));
        if let Some(found) = found {
            answer.causes.insert(0, found);
            answer.acts = Acts::Here;
            return;
        }
    }
}

/// The class that sent most meanwhile: that of the connection, as far as the counters tell.
fn busiest<'a>(then: &Qdisc, now: &'a Qdisc) -> Option<&'a Class> {
    let sent = |class: &&Class| {
        let before = then.classes.iter().find(|one| one.handle == class.handle);
        class.sent.saturating_sub(before.map_or(Bytes::ZERO, |one| one.sent))
    };
    now.classes.iter().filter(|class| sent(class) > Bytes::ZERO).max_by_key(sent)
}

fn shaped(
    answer: &Answer,
    device: &str,
    (now, class): (&Qdisc, Option<&Class>),
    waited: u64,
    drops: u64,
) -> Option<Explanation> {
    if !SHAPERS.contains(&now.kind.as_str()) {
        return None;
    }
    let rate = now.rate.or_else(|| class.and_then(|class| class.most));
    let holds = match rate {
        Some(rate) => answer.goodput.as_f64() >= OF_RATE * rate.as_f64(),
        // Without a rate, only a link is what a shaper looks like.
        None => waited > 0 && answer.limit == Limit::Link,
    };
    let to = rate.map_or(String::new(), |rate| format!(" to {rate}"));
    let of = class.map_or(String::new(), |class| format!(" (class {})", class.handle));
    let dropped = if drops > 0 { format!(", and drops {drops} packets") } else { String::new() };
    holds.then(|| Explanation {
        name: "shaped_here",
        claim: format!(
            "{}{of} on {device} shapes what this host sends{to}: {waited} times packets had to wait{dropped} meanwhile",
            now.kind
        ),
        remedy: "change or remove that queueing discipline (`tc -s qdisc show`, `tc qdisc del dev DEVICE root`), if \
                 nobody wants the shaping",
        count: Some(waited),
        time: None,
        rate,
        amount: None,
    })
}

fn dropped(limit: Limit, device: &str, now: &Qdisc, drops: u64) -> Option<Explanation> {
    let is_loss = limit == Limit::CongestionWindow(Cause::Loss);
    let how = if now.loses { "on purpose (it is set to lose packets)" } else { "as it was full" };
    (is_loss && drops > 0).then(|| Explanation {
        name: "dropped_before_sending",
        claim: format!("{} on {device} dropped {drops} packets of this host meanwhile, {how}", now.kind),
        remedy: "give the queue more room (`tc qdisc change .. limit N`, `ip link set DEVICE txqueuelen N`) or use fq, \
                 which lets one connection fill no more than its part; take an emulated loss away",
        count: Some(drops),
        time: None,
        rate: None,
        amount: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_flow::live::Observed;
    use fullpipe_model::observe::{Sample, TcpInfo, TcpState};
    use fullpipe_model::units::{Duration, Instant};

    /// The answer of a sender that carries 19 Mbit/s and was held by `limit`.
    fn answer(limit: Limit) -> Answer {
        let sample = |n: u64| Sample {
            at: Instant::ZERO + Duration::from_millis(n * 10),
            local: ([192, 0, 2, 1], 80).into(),
            remote: ([192, 0, 2, 2], 4000).into(),
            state: TcpState::Established,
            rqueue: Bytes::ZERO,
            wqueue: Bytes::new(100_000),
            congestion_control: None,
            info: Some(TcpInfo {
                bytes_acked: Some(Bytes::new(n * 23_750)),
                rtt: Duration::from_millis(20),
                snd_mss: Bytes::new(1448),
                unacked: 40,
                ..TcpInfo::default()
            }),
            memory: None,
            reasons: None,
        };
        let samples: Vec<Sample> = (0..100).map(sample).collect();
        let seen = Observed {
            role: End::Sender,
            samples: &samples,
            other: &[],
            asked: None,
            settings: None,
        };
        Answer { limit, causes: Vec::new(), acts: Acts::Nobody, ..seen.answer().unwrap() }
    }

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

    fn cause(limit: Limit, before: &Egress, after: &Egress) -> Option<&'static str> {
        let mut answer = answer(limit);
        add_egress(&mut answer, before, after);
        assert_eq!(answer.acts == Acts::Here, !answer.causes.is_empty());
        answer.causes.first().map(|cause| cause.name)
    }

    #[test]
    fn a_shaper_is_named_where_the_connection_carries_its_rate() {
        let tbf = |rate, waited| egress("tbf", Some(rate), 0, waited);
        let named = |rate| cause(Limit::Link, &tbf(rate, 5), &tbf(rate, 905));
        assert_eq!(named("20mbit"), Some("shaped_here"));
        assert_eq!(named("1gbit"), None, "it carries far less");
        let htb = |waited| egress("htb", None, 0, waited);
        assert_eq!(cause(Limit::Link, &htb(5), &htb(6)), Some("shaped_here"));
        assert_eq!(cause(Limit::Link, &htb(5), &htb(5)), None, "nothing waited");
        assert_eq!(cause(Limit::SendBuffer, &htb(5), &htb(6)), None);
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
        let mut held = answer(Limit::Link);
        add_egress(&mut held, &htb(5, 1000, 90_000_000), &htb(600, 2_400_000, 90_000_500));
        let cause = &held.causes[0];
        assert_eq!((cause.name, cause.rate), ("shaped_here", Some("20mbit".parse().unwrap())));
        assert!(cause.claim.starts_with("htb (class 1:10) on eth0 shapes"), "{}", cause.claim);
        let mut free = answer(Limit::Link);
        add_egress(&mut free, &htb(5, 1000, 1000), &htb(600, 2000, 2_400_000));
        assert!(free.causes.is_empty(), "19 Mbit/s in a class of 500");
    }

    #[test]
    fn drops_are_named_where_loss_is_the_limit_and_they_grew() {
        let loss = Limit::CongestionWindow(Cause::Loss);
        let fifo = |drops| egress("pfifo_fast", None, drops, 0);
        assert_eq!(cause(loss, &fifo(3), &fifo(9)), Some("dropped_before_sending"));
        assert_eq!(cause(loss, &fifo(9), &fifo(9)), None);
        assert_eq!(cause(Limit::Link, &fifo(3), &fifo(9)), None);
        let other = Egress { device: "eth1".into(), ..fifo(9) };
        assert_eq!(cause(loss, &fifo(3), &other), None, "the route changed meanwhile");
    }
}
