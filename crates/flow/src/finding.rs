//! Findings: what a verdict means, with numbers, most important first.
//!
//! A [`Finding`] claims one thing: what held the transfer, for which share of its time. It has the
//! numbers of the claim by name, and the remedy. [`crate::finding::words`] makes sentences of them.

mod headline;
pub mod path_test;
pub mod proof;
mod remedy;
pub mod words;

pub use headline::{ADVISE_FROM, Doubt, Headline};
pub use remedy::{MachineRemedy, OnLoss, PacketRemedy, Remedy, SocketRemedy};

use crate::limit::{Candidate, Interval, Limit, Pace, Reason, Source, Verdict, queue_least};
use fullpipe_model::change::Change;
use fullpipe_model::units::{Bytes, Duration, Rate, Window, column};

/// A claim, the numbers behind it, and what would change the limit.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// What held the transfer.
    pub limit: Limit,
    /// The fraction of its time, 0 to 1.
    pub share: f64,
    /// The answer, and how sure it is. Only the limit that is named first has it.
    pub headline: Option<Headline>,
    /// The two limits of a headline that is a guess, the likelier first, each with how likely the
    /// trained judge finds it, or 0 where it has no opinion.
    pub either: Vec<Candidate>,
    /// How often verdicts like this one are right, 0 to 1. Only the limit that is named first has
    /// it.
    pub confidence: Option<f64>,
    /// Present where the first limit is no more than a guess: how often such a guess is right, what
    /// else it may be, and what would help.
    pub doubt: Option<Doubt>,
    /// The few numbers of the whole transfer that led the trained judge to the limit, most
    /// important first. Only the limit that is named first has them, and none where the rules
    /// decided alone.
    pub reasons: Vec<Reason>,
    /// The numbers of the claim.
    pub evidence: FindingEvidence,
    /// Other limits that would have explained a good part of that share, each with its fraction of
    /// the share, largest first.
    pub rivals: Vec<Candidate>,
    /// What would change the limit.
    pub remedy: Remedy,
    /// The remedy as sysctls to set: the entries of a tuning plan for the path as it was seen. It
    /// is empty where sysctls are not the remedy or the numbers are not known. A capture does not
    /// show settings, so [`Change::from`] is what they seem to be.
    pub changes: Vec<Change>,
}

impl FindingEvidence {
    /// How long data waited before the link; `None` where that is too short to be told from chance.
    pub fn queue(&self) -> Option<Duration> {
        let path = self.rtt_path?;
        Some(self.rtt?.saturating_sub(path)).filter(|queue| *queue >= queue_least(path))
    }
}

/// The numbers of a finding, taken from the intervals that its limit held. When serialised, the
/// unit is in the name, and unknown numbers are left out.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize)]
pub struct FindingEvidence {
    /// The rate that the receive window or the congestion window allows at that round trip.
    #[serde(
        rename = "allowed_bps",
        with = "column::rate_optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub allowed: Option<Rate>,
    /// What other connections of the same two hosts carried beside it, where that was more than a
    /// twentieth of its own.
    #[serde(
        rename = "beside_bps",
        with = "column::rate_optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub beside: Option<Rate>,
    /// The rate at which bursts passed, where the path dropped from them although no queue stood
    /// before it: what is sent evenly may pass faster than this mean.
    #[serde(
        rename = "burst_bps",
        with = "column::rate_optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub burst: Option<Rate>,
    /// The highest rate in other intervals, if it is at least a fifth higher.
    #[serde(
        rename = "elsewhere_bps",
        with = "column::rate_optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub elsewhere: Option<Rate>,
    /// How many flights a short transfer took that nothing held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flights: Option<u32>,
    /// The fraction of the time, 0 to 1, in which TCP had nothing to send, where that proves that
    /// the sending application sets the pace; of the receiving one, in which ACKs were kept back as
    /// it did not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<f64>,
    /// How often that application writes, if a clock says when.
    #[serde(
        rename = "period_us",
        with = "column::micros_optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub period: Option<Duration>,
    /// The rate at which the sender lets data go, evenly, where nothing on the path spaces it.
    #[serde(
        rename = "paced_bps",
        with = "column::rate_optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub paced: Option<Rate>,
    /// Mean goodput.
    #[serde(rename = "goodput_bps", with = "column::rate")]
    pub goodput: Rate,
    /// Median payload in flight.
    #[serde(rename = "in_flight_bytes", with = "column::bytes")]
    pub in_flight: Bytes,
    /// Segments retransmitted.
    pub retransmissions: u64,
    /// The path's round trip: from the handshake, or the minimum that was seen.
    #[serde(
        rename = "rtt_path_us",
        with = "column::micros_optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub rtt_path: Option<Duration>,
    /// Round trip: the median of the intervals' minimums.
    #[serde(
        rename = "rtt_us",
        with = "column::micros_optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub rtt: Option<Duration>,
    /// What the link carries when it is full, where its own drops made the congestion window
    /// smaller.
    #[serde(
        rename = "carries_bps",
        with = "column::rate_optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub carries: Option<Rate>,
    /// After how much data the path drops again and again, where that is too regular for chance.
    #[serde(
        rename = "drops_after_bytes",
        with = "column::bytes_optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub drops_after: Option<Bytes>,
    /// The time that the limit held.
    #[serde(rename = "time_us", with = "column::micros")]
    pub time: Duration,
    /// Median receive window.
    #[serde(
        rename = "window_bytes",
        with = "column::window_optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub window: Option<Window>,
}

/// A candidate after the first is a rival only if it fits for at least this fraction of the limit's
/// time.
const LEAST_RIVAL: f64 = 0.25;
/// A limit that holds less than this fraction of the time is not worth a sentence.
const LEAST_SHARE: f64 = 0.01;

/// What is known of the path from sources other than the verdict's intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KnownPath {
    /// Its round trip, from the handshake. Without it, the minimum that the intervals saw is used.
    pub rtt: Option<Duration>,
    /// The highest payload rate that its link carries. No finding claims more: acknowledgements
    /// that waited and came together make an interval look faster than any link.
    pub goodput_max: Option<Rate>,
}

/// The findings of a verdict, largest share first. They advise something only where the verdict is
/// sure enough: [`Headline::advises`].
pub fn findings(verdict: &Verdict, known: KnownPath) -> Vec<Finding> {
    let least = verdict.intervals.iter().filter_map(|interval| interval.evidence.rtt).min();
    let known = KnownPath { rtt: known.rtt.or(least), ..known };
    let shares = verdict.shares.iter().filter(|candidate| candidate.share >= LEAST_SHARE);
    let mut findings: Vec<Finding> =
        shares.map(|candidate| finding(verdict, *candidate, known)).collect();
    if let Some(first) = findings.first_mut() {
        first.confidence = Some(verdict.confidence);
        let headline = Headline::of(verdict);
        first.headline = Some(headline);
        first.either = headline.either(verdict);
        first.doubt = Doubt::of(verdict);
        first.reasons = verdict.reasons();
    }
    findings
}

/// The typical numbers of the intervals that a limit held.
struct Typical {
    goodput: Rate,
    in_flight: Bytes,
    window: Option<Window>,
    rtt: Option<Duration>,
    retransmissions: u64,
    /// The highest rate in other intervals.
    elsewhere: Option<Rate>,
}

impl Typical {
    fn of(verdict: &Verdict, limit: Limit, goodput_max: Option<Rate>) -> Self {
        let held: Vec<&Interval> =
            verdict.intervals.iter().filter(|interval| interval.limit() == limit).collect();
        let elsewhere = verdict.peak_where(|interval| interval.limit() != limit);
        Typical {
            goodput: at_most(goodput(verdict, limit), goodput_max),
            in_flight: median(held.iter().map(|i| i.evidence.in_flight)).unwrap_or(Bytes::ZERO),
            window: median(held.iter().filter_map(|i| i.evidence.window)),
            rtt: median(held.iter().filter_map(|i| i.evidence.rtt)),
            retransmissions: held.iter().map(|i| i.evidence.retransmissions).sum(),
            elsewhere: elsewhere.map(|rate| at_most(rate, goodput_max)),
        }
    }
}

/// The rate, or `most` where that is known and less.
fn at_most(rate: Rate, most: Option<Rate>) -> Rate {
    most.map_or(rate, |most| rate.min(most))
}

/// The mean goodput of the intervals that `limit` held. For a full link it is the rate that the
/// link carried: see [`Verdict::rate_at`].
fn goodput(verdict: &Verdict, limit: Limit) -> Rate {
    let (mut bytes, mut time) = (Bytes::ZERO, Duration::ZERO);
    for (at, interval) in verdict.intervals.iter().enumerate() {
        if interval.limit() == limit {
            let rate =
                if limit == Limit::Link { verdict.rate_at(at) } else { interval.evidence.goodput };
            bytes = bytes.saturating_add(rate.over(interval.length));
            time = time.saturating_add(interval.length);
        }
    }
    bytes.per(time).unwrap_or(Rate::ZERO)
}

/// What passed beside it in the intervals that `limit` held.
fn beside(verdict: &Verdict, limit: Limit) -> Option<Rate> {
    let held = verdict.intervals.iter().filter(|interval| interval.limit() == limit);
    let (mut bytes, mut time) = (Bytes::ZERO, Duration::ZERO);
    for Interval { length, evidence, .. } in held {
        bytes = bytes.saturating_add(evidence.beside.unwrap_or(Rate::ZERO).over(*length));
        time = time.saturating_add(*length);
    }
    bytes.per(time)
}

fn median<T: Ord + Copy>(values: impl Iterator<Item = T>) -> Option<T> {
    let mut values: Vec<T> = values.collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

fn finding(verdict: &Verdict, held: Candidate, known: KnownPath) -> Finding {
    let (Candidate { limit, share }, rtt) = (held, known.rtt);
    let typical = Typical::of(verdict, limit, known.goodput_max);
    let now = typical.rtt.or(rtt);
    let is_link = limit == Limit::Link && !matches!(verdict.pace, Some(Pace::AfterDrops(_)));
    let bursts = is_link.then(|| DroppedBursts::of(verdict, known)).flatten();
    let flights = verdict.flights.filter(|_| limit == Limit::Unknown);
    let (idle, period, paced) = match (limit, verdict.pace) {
        (Limit::SenderApplication, Some(Pace::Pauses { idle, period })) => {
            (Some(idle), period, None)
        }
        (Limit::SenderApplication, Some(Pace::Even(rate))) => (None, None, Some(rate)),
        (Limit::ReceiverApplication, Some(Pace::LateAcks { time })) => (Some(time), None, None),
        _ => (None, None, None),
    };
    let (carries, drops_after) = match (limit, verdict.pace) {
        (Limit::Link, Some(Pace::AfterDrops(rate))) => (Some(rate), None),
        (Limit::Link, Some(Pace::DropsAfter(bytes))) => (None, Some(bytes)),
        _ => (None, None),
    };
    let goodput = typical.goodput.as_f64();
    let beside = beside(verdict, limit).filter(|rate| rate.as_f64() > goodput / 20.0);
    // A link carried what passed beside this connection, too.
    let shared = beside.filter(|_| limit == Limit::Link).map_or(0.0, Rate::as_f64);
    let elsewhere = typical.elsewhere.filter(|rate| rate.as_f64() > 1.2 * (goodput + shared));
    let mut evidence = FindingEvidence {
        allowed: None,
        beside,
        burst: bursts.map(|bursts| bursts.burst),
        elsewhere,
        flights,
        idle,
        period,
        paced,
        carries,
        drops_after,
        goodput: typical.goodput,
        in_flight: typical.in_flight,
        retransmissions: typical.retransmissions,
        rtt_path: rtt,
        rtt: now,
        time: Duration::from_micros((verdict.time.as_micros() as f64 * share) as u64),
        window: typical.window,
    };
    evidence.allowed = evidence.allowed(limit);
    let changes = remedy::changes(limit, &typical, now);
    let mut rivals = verdict.rivals(limit);
    rivals.retain(|rival| verdict.source == Source::Capture && rival.share >= LEAST_RIVAL);
    let remedy = match (bursts, flights) {
        (Some(_), _) => Remedy::SendEvenly,
        (None, Some(_)) => Remedy::FewerRoundTrips,
        (None, None) if paced.is_some() => Remedy::RaisePacing,
        (None, None) if carries.is_some() || drops_after.is_some() => Remedy::GrowBackSooner,
        (None, None) => Remedy::of(limit, typical.window),
    };
    Finding {
        limit,
        share,
        headline: None,
        either: Vec::new(),
        confidence: None,
        doubt: None,
        reasons: Vec::new(),
        evidence,
        rivals,
        remedy,
        changes,
    }
}

/// Bursts that pass this much faster than the mean leave pauses in which the path carries nothing.
const FASTER_IN_BURSTS: f64 = 1.5;
/// A round trip that is longer by no more than this fraction of the path's had no queue.
const NO_QUEUE: f64 = 0.02;

/// What a link carried that dropped from bursts and had no queue. Such a path is a policer, or has
/// a queue that holds less than a burst, and the mean says little of what it would carry of data
/// that is sent evenly.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DroppedBursts {
    /// The rate at which bursts passed.
    pub burst: Rate,
    /// The mean rate.
    pub carried: Rate,
}

impl DroppedBursts {
    /// Those of a verdict that names the link for a part of the time.
    pub fn of(verdict: &Verdict, known: KnownPath) -> Option<Self> {
        let typical = Typical::of(verdict, Limit::Link, known.goodput_max);
        let (now, path) = (typical.rtt?, known.rtt?);
        let has_queue = now.saturating_sub(path).as_secs_f64() > NO_QUEUE * path.as_secs_f64();
        let (burst, carried) = (verdict.bursts?, typical.goodput);
        let is_faster = burst.as_f64() >= FASTER_IN_BURSTS * carried.as_f64();
        (typical.retransmissions > 0 && !has_queue && is_faster)
            .then_some(DroppedBursts { burst, carried })
    }
}

impl FindingEvidence {
    /// The bound of the bytes in flight, under a limit that is a window.
    pub(crate) fn bound(&self, limit: Limit) -> Option<Window> {
        match limit {
            // Where ACKs are late, the window has room.
            Limit::ReceiverApplication if self.idle.is_some() => None,
            Limit::ReceiveWindow | Limit::ReceiverApplication => self.window,
            Limit::CongestionWindow(_) | Limit::ApplicationWindow => {
                Some(Window::new(self.in_flight))
            }
            // A send buffer keeps between two thirds of its size and all of it in flight, so no
            // single number bounds the rate.
            Limit::SendBuffer | Limit::SenderApplication | Limit::Link | Limit::Unknown => None,
        }
        .filter(|window| *window > Window::ZERO)
    }

    /// The rate that the bound allows. Where nothing arrives, none allows any.
    fn allowed(&self, limit: Limit) -> Option<Rate> {
        let bound = self.bound(limit).filter(|_| self.goodput > Rate::ZERO)?;
        bound.per_rtt(self.rtt?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::words;
    use crate::limit::{Cause, Evidence};
    use fullpipe_model::law::KernelVersion;
    use fullpipe_model::limit::End;
    use fullpipe_model::tune::HostSettings;
    use fullpipe_model::units::Instant;

    #[test]
    fn a_queue_is_told_where_it_is_more_than_chance() {
        let queue = |path_us: u64, now_us: u64| {
            let [rtt_path, rtt] = [path_us, now_us].map(|us| Some(Duration::from_micros(us)));
            FindingEvidence { rtt_path, rtt, ..FindingEvidence::default() }.queue()
        };
        assert_eq!(queue(40_000, 45_000), Some(Duration::from_millis(5)));
        assert_eq!(queue(1_000, 1_300), Some(Duration::from_micros(300)));
        for (path, now) in [(40_000, 40_000), (40_000, 41_000), (200, 450), (40_000, 39_000)] {
            assert_eq!(queue(path, now), None, "{path} {now}");
        }
    }

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
    fn where_nothing_arrives_no_window_allows_a_rate() {
        let waiting = Evidence {
            in_flight: Bytes::new(62_260),
            rtt: Some(Duration::from_millis(20)),
            retransmissions: 3,
            ..Evidence::default()
        };
        let slowed = Evidence { goodput: "20mbit".parse().unwrap(), ..waiting };
        let loss = Limit::CongestionWindow(Cause::Loss);
        let claim = |evidence| {
            words::claim(&findings(&verdict(&[(loss, 100, evidence)]), KnownPath::default())[0])
        };
        assert_eq!(
            claim(waiting),
            "congestion window (loss): 100 % of the time nothing that was sent arrived, and the sender waited to send it \
             again (3 segments were)"
        );
        assert!(
            claim(slowed).ends_with("(62.26 kB at 20 ms allows 24.9 Mbit/s)"),
            "{}",
            claim(slowed)
        );
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
        let found = findings(
            &verdict(&[(Limit::ReceiveWindow, 730, full), (Limit::Link, 270, fast)]),
            KnownPath::default(),
        );
        assert_eq!(
            words::claim(&found[0]),
            "receive window: 73 % of the time the sender had the receive window full (2.9 MB at 146 ms allows 158.9 \
             Mbit/s); the path carried up to 896 Mbit/s in other intervals"
        );
        // Window divided by round trip: 2.9 MB * 8 / 0.146 s.
        assert!(found[0].evidence.allowed.unwrap().bits_per_sec().abs_diff(158_904_109) <= 1);
        assert!(words::remedy(found[0].remedy).contains("tcp_rmem"));
        // 896 Mbit/s at 146 ms hold 16.4 MB: the plan's buffer must be able to advertise that.
        let [change] = &found[0].changes[..] else { panic!("{:?}", found[0].changes) };
        assert_eq!(change.end, Some(End::Receiver));
        assert_eq!(change.knob.to_string(), "net.ipv4.tcp_rmem");
        let mut receiver = HostSettings::defaults(KernelVersion::new(6, 18));
        receiver.make(&change.knob, &change.to);
        assert!(receiver.receive_window().bytes() >= Bytes::new(16_350_000), "{change:?}");
        assert_eq!(found[1].changes, [], "nothing at the hosts changes the link");
        assert_eq!(
            found.iter().map(|f| f.limit).collect::<Vec<_>>(),
            [Limit::ReceiveWindow, Limit::Link]
        );
    }

    #[test]
    fn a_window_that_16_bits_can_just_say_is_told_of_its_scale() {
        let remedy = |window| {
            let window = Some(Window::new(Bytes::new(window)));
            let evidence = Evidence { window, ..Evidence::default() };
            let verdict = verdict(&[(Limit::ReceiveWindow, 1000, evidence)]);
            findings(&verdict, KnownPath::default())[0].remedy
        };
        for (window, is_scale) in [(65_535, true), (65_160, true), (65_536, false), (60_000, false)]
        {
            let expected =
                if is_scale { Remedy::ScaleOrGrowReceiveBuffer } else { Remedy::GrowReceiveBuffer };
            assert_eq!(remedy(window), expected, "{window}");
        }
    }

    #[test]
    fn every_limit_has_a_sentence_and_trifles_have_none() {
        for limit in Limit::ALL {
            let found = findings(
                &verdict(&[
                    (limit, 995, Evidence::default()),
                    (Limit::Unknown, 5, Evidence::default()),
                ]),
                KnownPath::default(),
            );
            assert_eq!(found.len(), 1, "{limit}");
            assert!(words::claim(&found[0]).starts_with(limit.words()));
        }
        assert!(findings(&verdict(&[]), KnownPath::default()).is_empty());
    }

    #[test]
    fn what_comes_close_is_told_with_its_part_of_the_time() {
        let mut all = verdict(&[
            (Limit::Link, 60, Evidence::default()),
            (Limit::Link, 40, Evidence::default()),
        ]);
        all.intervals[0].candidates.push(Candidate { limit: Limit::SendBuffer, share: 0.0 });
        let found = findings(&all, KnownPath::default());
        assert_eq!(found[0].rivals, [Candidate { limit: Limit::SendBuffer, share: 0.6 }]);
        assert_eq!(
            (found.len(), found[0].share),
            (1, 1.0),
            "a rival takes nothing from what was decided"
        );
        all.intervals[0].candidates.truncate(1);
        all.intervals[1].candidates.push(Candidate { limit: Limit::ReceiveWindow, share: 0.0 });
        all.intervals[1].length = Duration::from_millis(10);
        assert_eq!(
            findings(&all, KnownPath::default())[0].rivals,
            [],
            "for a seventh of the time only"
        );
    }

    #[test]
    fn no_finding_claims_more_than_the_link_carries() {
        let at = |mbit: u64, retransmissions| Evidence {
            goodput: Rate::from_bits_per_sec(mbit * 1_000_000),
            retransmissions,
            ..Evidence::default()
        };
        // The link carries 100 Mbit/s all of the time. There is one hole: nothing is acknowledged
        // while it is open, then everything at once.
        let hole = (Limit::CongestionWindow(Cause::Loss), 10, at(0, 1));
        let steady = (Limit::Link, 10, at(100, 0));
        let mut parts = vec![steady; 10];
        parts.extend([hole, (Limit::Link, 10, at(200, 0))]);
        parts.extend(vec![steady; 10]);
        let found = findings(&verdict(&parts), KnownPath::default());
        assert!(
            found[0].evidence.goodput.bits_per_sec() <= 100_000_000,
            "{}",
            words::claim(&found[0])
        );

        // Acknowledgements waited and came together, without any hole. Next to the second limit,
        // the other intervals look fast.
        let parts = [(Limit::Link, 60, at(108, 0)), (Limit::SenderApplication, 40, at(1, 0))];
        let most: Rate = "96.5mbit".parse().unwrap();
        let found = findings(&verdict(&parts), KnownPath { rtt: None, goodput_max: Some(most) });
        assert_eq!(
            words::claim(&found[0]),
            "link: 60 % of the time the link was full: it carried 96.5 Mbit/s"
        );
        assert_eq!(found[0].evidence.goodput.bits_per_sec(), 96_500_000);
        assert!(
            words::claim(&found[1]).ends_with("up to 96.5 Mbit/s in other intervals"),
            "{}",
            words::claim(&found[1])
        );
        assert_eq!(found[1].evidence.elsewhere.map(Rate::bits_per_sec), Some(96_500_000));
    }

    #[test]
    fn the_first_finding_says_how_sure_it_is_and_a_guess_says_so() {
        let sure = findings(
            &verdict(&[(Limit::ReceiveWindow, 10, Evidence::default())]),
            KnownPath::default(),
        );
        assert!(
            sure[0].confidence.is_some_and(|part| part > 0.9) && sure[0].doubt.is_none(),
            "{sure:?}"
        );
        let parts = [
            (Limit::SenderApplication, 60, Evidence::default()),
            (Limit::Link, 40, Evidence::default()),
        ];
        let cut = verdict(&parts).with_coverage(crate::limit::Coverage::MiddleElsewhere);
        let guess = findings(&cut, KnownPath::default());
        let doubt = words::doubt(&guess[0].doubt.unwrap());
        assert!(doubt.contains("may be the link") && doubt.contains("at the sender"), "{doubt}");
        assert_eq!((guess[1].confidence, guess[1].doubt), (None, None));
    }

    #[test]
    fn a_finding_is_a_row() {
        let json = serde_json::to_value(
            &findings(&verdict(&[(Limit::Link, 10, Evidence::default())]), KnownPath::default())[0],
        )
        .unwrap();
        assert_eq!((json["limit"].as_str(), json["share"].as_f64()), (Some("link"), Some(1.0)));
        assert!(json["evidence"]["goodput_bps"].is_u64());
    }
}
