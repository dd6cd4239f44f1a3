//! Findings: what a verdict means, in sentences with numbers, most important first.
//!
//! A [`Finding`] is one claim (what held the transfer, for which share of its time, and the arithmetic behind it), the
//! numbers of the claim by name, and what would change it.

mod remedy;

use crate::limit::{Candidate, CongestionCause, Interval, Limit, Source, Verdict};
use fullpipe_model::tune::Change;
use fullpipe_model::units::{Bytes, Duration, Rate, Window};
use std::collections::BTreeMap;

/// A claim, the numbers behind it, and what would change it.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Finding {
    /// What held the transfer.
    #[serde(flatten)]
    pub limit: Limit,
    /// For what part of its time, 0 to 1.
    pub share: f64,
    /// One sentence for people.
    pub claim: String,
    /// Its numbers; units are in the names (`.._bytes`, `.._us`, `.._bps`).
    pub evidence: BTreeMap<&'static str, u64>,
    /// What else would have explained it, and for what part of that share: largest first, and only where that is not little.
    pub rivals: Vec<Candidate>,
    /// What would change it.
    pub remedy: &'static str,
    /// The same as sysctls to set, where that is what would change it and the numbers are known: the entries of a tuning
    /// plan for the path as it was seen. A capture does not show settings; [`Change::from`] is what they seem to be.
    pub changes: Vec<Change>,
}

/// A candidate behind the first that fits for a smaller part of its time is not close.
const LEAST_RIVAL: f64 = 0.25;
/// A limit that holds a smaller part of the time is not worth a sentence.
const LEAST_SHARE: f64 = 0.01;

/// The findings of a verdict, largest share first. `rtt` is the path's round trip where it is known from elsewhere (the
/// handshake); by default the least that the intervals saw.
pub fn findings(verdict: &Verdict, rtt: Option<Duration>) -> Vec<Finding> {
    let least = verdict.intervals.iter().filter_map(|interval| interval.evidence.rtt).min();
    let rtt = rtt.or(least);
    let shares = verdict.shares.iter().filter(|candidate| candidate.share >= LEAST_SHARE);
    shares.map(|candidate| finding(verdict, candidate.limit, candidate.share, rtt)).collect()
}

/// The typical numbers of the intervals that a limit held.
struct Typical {
    goodput: Rate,
    in_flight: Bytes,
    window: Option<Window>,
    rtt: Option<Duration>,
    retransmissions: u64,
    /// The most that other intervals carried.
    elsewhere: Option<Rate>,
}

impl Typical {
    fn of(verdict: &Verdict, limit: Limit) -> Self {
        let held: Vec<&Interval> = verdict.intervals.iter().filter(|interval| interval.limit() == limit).collect();
        let sum = |intervals: &[&Interval]| {
            let bytes: Bytes = intervals.iter().map(|i| i.evidence.goodput.over(i.length)).sum();
            let time = intervals.iter().map(|i| i.length).sum::<Duration>();
            bytes.per(time)
        };
        Typical {
            goodput: sum(&held).unwrap_or(Rate::ZERO),
            in_flight: median(held.iter().map(|i| i.evidence.in_flight)).unwrap_or(Bytes::ZERO),
            window: median(held.iter().filter_map(|i| i.evidence.window)),
            rtt: median(held.iter().filter_map(|i| i.evidence.rtt)),
            retransmissions: held.iter().map(|i| i.evidence.retransmissions).sum(),
            elsewhere: verdict.peak_where(|interval| interval.limit() != limit),
        }
    }
}

fn median<T: Ord + Copy>(values: impl Iterator<Item = T>) -> Option<T> {
    let mut values: Vec<T> = values.collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

fn finding(verdict: &Verdict, limit: Limit, share: f64, rtt: Option<Duration>) -> Finding {
    let typical = Typical::of(verdict, limit);
    let mut evidence = BTreeMap::from([
        ("goodput_bps", typical.goodput.bits_per_sec()),
        ("in_flight_bytes", typical.in_flight.get()),
        ("retransmissions", typical.retransmissions),
        ("time_us", (verdict.time.as_micros() as f64 * share) as u64),
    ]);
    let now = typical.rtt.or(rtt);
    evidence.extend(now.map(|rtt| ("rtt_us", rtt.as_micros())));
    evidence.extend(rtt.map(|rtt| ("rtt_path_us", rtt.as_micros())));
    evidence.extend(typical.window.map(|window| ("window_bytes", window.bytes().get())));
    let bound = bound_of(limit, &typical).zip(now);
    let allowed = bound.and_then(|(bound, rtt)| bound.per_rtt(rtt).map(|rate| (bound, rtt, rate)));
    evidence.extend(allowed.map(|(_, _, rate)| ("allowed_bps", rate.bits_per_sec())));

    let mut claim = format!("{limit}: {:.0} % of the time {}", share * 100.0, what_happened(limit, &typical, rtt));
    if let Some((bound, rtt, rate)) = allowed {
        claim += &format!(" ({bound} at {rtt} allows {rate})");
    }
    if let Some(elsewhere) = typical.elsewhere.filter(|rate| rate.as_f64() > 1.2 * typical.goodput.as_f64()) {
        claim += &format!("; the path carried up to {elsewhere} in other intervals");
        evidence.insert("elsewhere_bps", elsewhere.bits_per_sec());
    }
    let changes = remedy::changes(limit, &typical, now);
    let mut rivals = verdict.rivals(limit);
    rivals.retain(|rival| verdict.source == Source::Capture && rival.share >= LEAST_RIVAL);
    Finding { limit, share, claim, evidence, rivals, remedy: remedy::words(limit), changes }
}

/// What bounds the bytes in flight under a limit that is a window or a buffer.
fn bound_of(limit: Limit, typical: &Typical) -> Option<Window> {
    match limit {
        Limit::ReceiveWindow | Limit::ReceiverApplication => typical.window,
        Limit::CongestionWindow(_) => Some(Window::new(typical.in_flight)),
        // What a send buffer keeps in flight swings between two thirds of it and all: no one number bounds the rate.
        Limit::SendBuffer | Limit::SenderApplication | Limit::Link | Limit::Unknown => None,
    }
    .filter(|window| *window > Window::ZERO)
}

fn what_happened(limit: Limit, typical: &Typical, base: Option<Duration>) -> String {
    let goodput = typical.goodput;
    match limit {
        Limit::ReceiveWindow => "the sender had the receive window full".into(),
        Limit::ReceiverApplication => {
            format!("the receive window was closed because the application read only {goodput}")
        }
        Limit::SendBuffer => format!(
            "the sender's buffer was full of data that waited for its acknowledgement (at most {} in flight, {goodput})",
            typical.in_flight
        ),
        Limit::SenderApplication => "the sending application had nothing to send".into(),
        Limit::CongestionWindow(CongestionCause::SlowStart) => "the congestion window was still growing".into(),
        Limit::CongestionWindow(CongestionCause::Loss) => {
            format!("the congestion window was small after loss ({} segments sent again)", typical.retransmissions)
        }
        Limit::Link => {
            let queue = typical.rtt.zip(base).map(|(now, base)| now.saturating_sub(base));
            match queue.filter(|queue| *queue > Duration::ZERO) {
                Some(queue) => format!("the link was full: it carried {goodput}, with {queue} of queue before it"),
                None => format!("the link was full: it carried {goodput}"),
            }
        }
        Limit::Unknown => "the evidence does not say what held the sender".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::Evidence;
    use fullpipe_model::law::KernelVersion;
    use fullpipe_model::tune::{Host, HostSettings, Setting};
    use fullpipe_model::units::Instant;

    fn verdict(parts: &[(Limit, u64, Evidence)]) -> Verdict {
        let mut start = Instant::ZERO;
        let interval = |(limit, count, evidence): &(Limit, u64, Evidence)| {
            let length = Duration::from_millis(*count);
            let interval = Interval {
                start,
                length,
                candidates: vec![Candidate { limit: *limit, share: 1.0 }],
                evidence: *evidence,
            };
            start = start + length;
            interval
        };
        Verdict::new(Source::Capture, parts.iter().map(interval).collect())
    }

    #[test]
    fn a_claim_has_the_law_in_it() {
        let full = Evidence {
            goodput: "155mbit".parse().unwrap(),
            window: Some(Window::new(Bytes::new(2_900_000))),
            rtt: Some(Duration::from_millis(146)),
            ..Evidence::default()
        };
        let fast = Evidence { goodput: "896mbit".parse().unwrap(), ..Evidence::default() };
        let found = findings(&verdict(&[(Limit::ReceiveWindow, 730, full), (Limit::Link, 270, fast)]), None);
        assert_eq!(
            found[0].claim,
            "receive window: 73 % of the time the sender had the receive window full (2.9 MB at 146 ms allows 158.9 \
             Mbit/s); the path carried up to 896 Mbit/s in other intervals"
        );
        // Window by round trip: 2.9 MB * 8 / 0.146 s.
        assert!(found[0].evidence["allowed_bps"].abs_diff(158_904_109) <= 1);
        assert!(found[0].remedy.contains("tcp_rmem"));
        // 896 Mbit/s at 146 ms hold 16.4 MB: the plan's buffer must be able to advertise that.
        let [change] = &found[0].changes[..] else { panic!("{:?}", found[0].changes) };
        assert_eq!((change.host, change.setting), (Host::Receiver, Setting::TcpRmem));
        let mut receiver = HostSettings::defaults(KernelVersion::new(6, 18));
        receiver.set(change.setting, &change.to).unwrap();
        assert!(receiver.receive_window().bytes() >= Bytes::new(16_350_000), "{change:?}");
        assert_eq!(found[1].changes, [], "nothing at the hosts changes the link");
        assert_eq!(found.iter().map(|f| f.limit).collect::<Vec<_>>(), [Limit::ReceiveWindow, Limit::Link]);
    }

    #[test]
    fn every_limit_has_a_sentence_and_trifles_have_none() {
        for limit in Limit::ALL {
            let found = findings(
                &verdict(&[(limit, 995, Evidence::default()), (Limit::Unknown, 5, Evidence::default())]),
                None,
            );
            assert_eq!(found.len(), 1, "{limit}");
            assert!(found[0].claim.starts_with(limit.words()) && !found[0].remedy.is_empty());
        }
        assert!(findings(&verdict(&[]), None).is_empty());
    }

    #[test]
    fn what_comes_close_is_told_with_its_part_of_the_time() {
        let mut all = verdict(&[(Limit::Link, 60, Evidence::default()), (Limit::Link, 40, Evidence::default())]);
        all.intervals[0].candidates.push(Candidate { limit: Limit::SendBuffer, share: 0.0 });
        let found = findings(&all, None);
        assert_eq!(found[0].rivals, [Candidate { limit: Limit::SendBuffer, share: 0.6 }]);
        assert_eq!((found.len(), found[0].share), (1, 1.0), "a rival takes nothing from what was decided");
        all.intervals[0].candidates.truncate(1);
        all.intervals[1].candidates.push(Candidate { limit: Limit::ReceiveWindow, share: 0.0 });
        all.intervals[1].length = Duration::from_millis(10);
        assert_eq!(findings(&all, None)[0].rivals, [], "for a seventh of the time only");
    }

    #[test]
    fn a_finding_is_a_row() {
        let json =
            serde_json::to_value(&findings(&verdict(&[(Limit::Link, 10, Evidence::default())]), None)[0]).unwrap();
        assert_eq!((json["limit"].as_str(), json["share"].as_f64()), (Some("link"), Some(1.0)));
        assert!(json["evidence"]["goodput_bps"].is_u64());
    }
}
