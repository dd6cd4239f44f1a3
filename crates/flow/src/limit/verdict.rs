//! The verdict: intervals, and their sum over the connection.

mod left_over;

use super::confidence::{self, Coverage, PROVEN, Source};
use super::judge::{
    Case, Judged, LIMITS, LinkEvidence, OVERRULED, Opinion, Part, Possible, Reason, SURE,
    SURE_OF_WHOLE, Stretch, Traits, UNLIKELY, agreed, course, intervals_least, overrules, parts,
    reasons,
};
use super::pace::{Pace, confidence_of_pace, even_pace};
use super::{Limit, Policed};
use fullpipe_model::limit::Cause;
use fullpipe_model::units::{Bytes, Duration, Instant, Rate, Window, column};
use std::collections::BTreeMap;
use std::ops::Range;

/// A limit and its share of the time.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Candidate {
    /// What held the sender.
    #[serde(flatten)]
    pub limit: Limit,
    /// The fraction of the time, 0 to 1.
    pub share: f64,
}

/// The numbers behind one interval's decision. Numbers that the source does not have are absent.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize, serde::Deserialize)]
pub struct Evidence {
    /// Payload newly acknowledged, divided by time.
    #[serde(rename = "goodput_bps", with = "column::rate")]
    pub goodput: Rate,
    /// Most payload in flight.
    #[serde(rename = "in_flight_bytes", with = "column::bytes")]
    pub in_flight: Bytes,
    /// Mean payload in flight over the interval's time (captures only).
    #[serde(default, rename = "in_flight_mean_bytes", with = "column::bytes_optional")]
    pub in_flight_mean: Option<Bytes>,
    /// The receive window that bounded it.
    #[serde(default, rename = "window_bytes", with = "column::window_optional")]
    pub window: Option<Window>,
    /// The least round-trip time seen in the interval.
    #[serde(default, rename = "rtt_us", with = "column::micros_optional")]
    pub rtt: Option<Duration>,
    /// Fraction of the time in which the next segment did not fit into the receive window.
    pub window_full: f64,
    /// Fraction of the time in which nothing was in flight.
    pub idle: f64,
    /// Segments retransmitted.
    pub retransmissions: u64,
    /// Fraction of the time in which the kernel counted the send buffer as the limit (samples
    /// only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sndbuf_limited: Option<f64>,
    /// Received but not yet read by the peer's application (samples of the receiver only).
    #[serde(default, rename = "unread_bytes", with = "column::bytes_optional")]
    pub unread: Option<Bytes>,
    /// What other connections of the same two hosts carried the same way, where there were any
    /// (captures only).
    #[serde(default, rename = "beside_bps", with = "column::rate_optional")]
    pub beside: Option<Rate>,
}

/// A span of time, with what held the sender in it and the evidence for that.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Interval {
    /// When it starts, on the evidence's clock.
    #[serde(rename = "start_ns", with = "column::instant")]
    pub start: Instant,
    /// How long it is.
    #[serde(rename = "length_us", with = "column::micros")]
    pub length: Duration,
    /// The candidates, most likely first. Their shares sum to 1, and the list is never empty. From
    /// a capture, the first candidate has the whole interval and the others have nothing: each of
    /// these is what the evidence would point to if the ones before it were absent. An interval of
    /// a length that was asked for has the shares of all intervals that it overlaps.
    pub candidates: Vec<Candidate>,
    /// The numbers.
    #[serde(flatten)]
    pub evidence: Evidence,
}

impl Interval {
    /// The most likely limit.
    pub fn limit(&self) -> Limit {
        self.candidates.first().map_or(Limit::Unknown, |candidate| candidate.limit)
    }

    /// What was carried in it.
    pub(crate) fn carried(&self) -> Bytes {
        self.evidence.goodput.over(self.length)
    }

    /// Whether something was sent again.
    pub(crate) fn is_lossy(&self) -> bool {
        self.evidence.retransmissions > 0
    }

    /// Moves the share of one limit to another. The limit that lost it stays in the list as an
    /// alternative.
    pub(super) fn turn(&mut self, from: Limit, to: Limit) {
        if from == to {
            return;
        }
        let mut candidates = self.candidates.iter_mut();
        let Some(lost) = candidates.find(|one| one.limit == from) else { return };
        let share = std::mem::take(&mut lost.share);
        if share == 0.0 {
            return;
        }
        match self.candidates.iter_mut().find(|one| one.limit == to) {
            Some(won) => won.share += share,
            None => self.candidates.push(Candidate { limit: to, share }),
        }
        self.candidates.sort_by(|a, b| b.share.total_cmp(&a.share));
    }
}

/// What held the sender over a connection's life, from its first data to the last data's
/// acknowledgement.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Verdict {
    /// What kind of evidence the verdict rests on.
    pub source: Source,
    /// Which part of the transfer was seen.
    pub coverage: Coverage,
    /// How often verdicts like this one are right about the limit that they name first, 0 to 1.
    pub confidence: f64,
    /// Time covered.
    #[serde(rename = "time_us", with = "column::micros")]
    pub time: Duration,
    /// Limits by their share of that time, largest first; shares sum to 1. Empty where no data was
    /// sent.
    pub shares: Vec<Candidate>,
    /// The same over the second half of the bytes. This leaves out the start-up, which dominates
    /// short transfers.
    pub steady: Vec<Candidate>,
    /// The intervals on which the verdict rests, in order of time.
    pub intervals: Vec<Interval>,
    /// The rate at which payload passed without a pause: of the narrowest link, or of whatever
    /// paces the sender ([`crate::connection`]'s trains). `None` where too few segments followed
    /// each other, or where the source does not have it.
    #[serde(skip)]
    pub trains: Option<Rate>,
    /// The rate of bursts, where much payload passed in bursts with pauses between them.
    #[serde(skip)]
    pub bursts: Option<Rate>,
    /// How many flights a short transfer took that nothing held: lifting any limit would save less
    /// than a tenth of its time.
    #[serde(skip)]
    pub flights: Option<u32>,
    /// How the sender sets the pace, where that is seen.
    #[serde(skip)]
    pub pace: Option<Pace>,
    /// The policer that what was lost proves, where nothing delayed it.
    #[serde(skip)]
    pub policed: Option<Policed>,
    /// The same time in intervals of the length that was asked for.
    #[serde(skip)]
    shown: Option<Vec<Interval>>,
    /// The traits that the trained judge weighed.
    #[serde(skip)]
    pub traits: Traits,
    /// The judge's opinion; `None` where it has none.
    #[serde(skip)]
    pub(crate) judged: Option<Judged>,
    /// The traits of each part of a long transfer, with the intervals of the part.
    #[serde(skip)]
    pub part_traits: Vec<(Range<usize>, Traits)>,
}

/// The confidence in a link that carries the rate that it was given: by the law, as no set of
/// scenarios was scored with given rates.
const AT_GIVEN_RATE: f64 = 0.95;
/// Where the judge finds what the rules name less likely than this, its own opinion is named. It
/// was chosen on seeds 5 and 12, worlds of seed 31 and `tests/limits`: of the 21 answers that it
/// turns there (captures and sockets, whole and poor) 19 are right, and 1 was before.
const HARDLY: f64 = 0.15;

impl Verdict {
    /// Makes a verdict from intervals.
    pub fn new(source: Source, intervals: Vec<Interval>) -> Self {
        let time = intervals.iter().fold(Duration::ZERO, |sum, one| sum.saturating_add(one.length));
        let steady = shares_of(second_half(&intervals));
        let shares = shares_of(&intervals);
        let verdict = Verdict {
            source,
            coverage: Coverage::FromStart,
            confidence: 0.0,
            time,
            shares,
            steady,
            intervals,
            trains: None,
            bursts: None,
            flights: None,
            pace: None,
            policed: None,
            shown: None,
            traits: Traits::default(),
            judged: None,
            part_traits: Vec::new(),
        };
        verdict.with_coverage(Coverage::FromStart)
    }

    /// The same verdict for a transfer of which `coverage` was seen.
    pub(crate) fn with_coverage(self, coverage: Coverage) -> Self {
        let Candidate { limit, share } = self.limited_by();
        let confidence = confidence::of(self.source, coverage, limit, share);
        Verdict { coverage, confidence, ..self }
    }

    /// The same verdict about a short transfer, which no statistics of others describe.
    pub(super) fn of_brief(self) -> Self {
        let confidence = confidence::of_brief(self.source, self.limited_by().limit);
        if self.coverage == Coverage::FromStart { Verdict { confidence, ..self } } else { self }
    }

    /// The same verdict, with no more confidence than this.
    pub(super) fn no_surer_than(self, most: f64) -> Self {
        Verdict { confidence: self.confidence.min(most), ..self }
    }

    /// The same verdict, whose first limit the packets prove.
    pub(crate) fn with_proof(self) -> Self {
        Verdict { confidence: self.confidence.max(PROVEN), ..self }
    }

    /// The same transfer, of which what was measured proves that `limit` held it, whatever the
    /// statistics find likely.
    pub(super) fn proven_to_be(mut self, limit: Limit) -> Self {
        self.turn_to(limit, 0..self.intervals.len(), |_| true);
        self.judged = None;
        self.with_proof()
    }

    /// The same verdict, shown in other intervals of the same time.
    pub(crate) fn shown_as(self, intervals: Vec<Interval>) -> Self {
        Verdict { shown: Some(intervals), ..self }
    }

    /// The intervals to show: those of the length that was asked for
    /// ([`crate::Config::interval`]), otherwise those on which the verdict rests.
    pub fn shown(&self) -> &[Interval] {
        self.shown.as_deref().unwrap_or(&self.intervals)
    }

    /// Adds the trained judge's opinions of the whole transfer and of its parts. A transfer that is
    /// too short to have a shape stays as it is. `case` makes the case of a range of the
    /// intervals, which it is given, too.
    pub(super) fn weighed(self, case: impl Fn(Range<usize>, &[Interval]) -> Case) -> Self {
        let count = self.intervals.len();
        if count < intervals_least(self.source) {
            return self;
        }
        let whole = case(0..count, &self.intervals);
        let parts = parts(count).into_iter().map(|part| {
            let case = case(part.clone(), &self.intervals[part.clone()]);
            (part, case)
        });
        let parts: Vec<_> = parts.collect();
        let found: Vec<_> = parts
            .iter()
            .map(|(part, case)| {
                // If only other parts show the window, its limits cannot be ruled out for this one.
                let is_complete = case.possible.is_window_known == whole.possible.is_window_known;
                let can_judge = is_complete && whole.judges_parts;
                // What drops and queues did shows for longer than a part.
                let Possible { loss, send_buffer, link, queue, .. } = whole.possible;
                let send_buffer = send_buffer && case.possible.send_buffer;
                let possible = Possible { loss, send_buffer, link, queue, ..case.possible };
                let opinion =
                    can_judge.then(|| Opinion::of(self.source, &case.traits, possible)).flatten();
                let rules = first_of(&shares_of(&self.intervals[part.clone()])).limit;
                let found = match case.link {
                    LinkEvidence::Full if can_judge => Some((Limit::Link, PROVEN)),
                    link => opinion.map(|opinion| opinion.beside(self.source, rules, link)),
                };
                Part { intervals: part.clone(), found }
            })
            .collect();
        let link = whole.link;
        // The rules take data that comes evenly for a link's; nothing else says so.
        let is_unspaced = !whole.possible.link && self.limited_by().limit == Limit::Link;
        let paced = self.even_pace().filter(|_| is_unspaced);
        let is_proven = link == LinkEvidence::Full;
        let judged = Judged::of(self.source, &whole).filter(|_| !is_proven);
        let part_traits = parts.into_iter().map(|(part, case)| (part, case.traits)).collect();
        let mut verdict = Verdict { traits: whole.traits, judged, part_traits, ..self };
        if is_proven {
            verdict.turn_to(Limit::Link, 0..verdict.intervals.len(), |_| true);
            return verdict.with_proof();
        }
        let Some(Judged { opinion, .. }) = judged else { return verdict };
        // What holds each part holds the whole, which is only one more view of the same.
        let agreed = agreed(&found).map(|one| {
            let likely = (one.likely + opinion.likely(one.limit)) / 2.0;
            vec![Stretch { likely, ..one }]
        });
        let stretches = course(&found).or(agreed);
        match stretches.filter(|stretches| !overrules(opinion.first(), stretches)) {
            Some(stretches) => verdict.follow(&stretches, link),
            None => verdict.adopt(&opinion, link),
        }
        if is_unspaced && verdict.limited_by().limit != Limit::Link {
            verdict.doubt_all(&opinion, paced);
        }
        verdict
    }

    /// Applies the judge's opinion that one limit held the whole transfer.
    fn adopt(&mut self, opinion: &Opinion, link: LinkEvidence) {
        let Candidate { limit: by_rules, .. } = self.limited_by();
        let (mut limit, mut likely) = opinion.beside(self.source, by_rules, link);
        if self.is_left_over(opinion, limit) {
            return self.keep_the_link();
        }
        // What is wrong six times of seven is no answer to begin with, whatever rule it rests on.
        let (first, most) = opinion.first();
        let is_claimed = limit == by_rules && by_rules != Limit::Unknown;
        let can_turn = is_claimed && most >= SURE && link != LinkEvidence::GivenRate;
        if can_turn && likely.max(self.proven(link)) < HARDLY {
            (limit, likely) = (first, opinion.confidence(first));
        }
        // What it is this sure of holds the whole, and nothing else is named first beside it.
        let kept = if likely >= SURE_OF_WHOLE { likely } else { UNLIKELY };
        self.turn_to(limit, 0..self.intervals.len(), |other| {
            other == by_rules || likely >= SURE && opinion.likely(other) < kept
        });
        self.confidence = opinion.confidence(self.limited_by().limit).max(self.proven(link));
        // The judge was trained without given rates. A transfer that runs at the rate that its link
        // was given is held by it, whatever else the transfer looks like.
        if (by_rules, limit, link) == (Limit::Link, Limit::Link, LinkEvidence::GivenRate) {
            self.confidence = self.confidence.max(AT_GIVEN_RATE);
        }
    }

    /// Names no limit where the statistics found one that cannot be and the rules did, too: what is
    /// left has no evidence of its own. Where data passes as evenly as before a link, and no link
    /// spaced it, its sender did.
    fn doubt_all(&mut self, opinion: &Opinion, paced: Option<Rate>) {
        if opinion.ruled_out <= SURE {
            return;
        }
        let (limit, confidence) = match paced {
            Some(rate) => (Limit::SenderApplication, confidence_of_pace(rate, self.bursts)),
            None => (Limit::Unknown, 0.0),
        };
        self.turn_to(limit, 0..self.intervals.len(), |_| true);
        (self.confidence, self.judged, self.pace) = (confidence, None, paced.map(Pace::Even));
    }

    /// The rate at which data passes evenly, where the rules take a link for its reason.
    fn even_pace(&self) -> Option<Rate> {
        let (mut bytes, mut time) = (Bytes::ZERO, Duration::ZERO);
        for interval in self.intervals.iter().filter(|one| one.limit() == Limit::Link) {
            bytes = bytes.saturating_add(interval.carried());
            time = time.saturating_add(interval.length);
        }
        even_pace(bytes, time, self.time, self.trains)
    }

    /// Names loss where nothing is named and the sender took for loss what was only overtaken: that
    /// alone makes its congestion window small, again and again.
    pub(super) fn or_taken_for_loss(mut self) -> Self {
        if self.limited_by().limit == Limit::Unknown {
            let loss = Limit::CongestionWindow(Cause::Loss);
            self.turn_to(loss, 0..self.intervals.len(), |_| true);
            self.confidence = OVERRULED;
        }
        self
    }

    /// Applies the opinion that several limits held the transfer, one after another.
    fn follow(&mut self, stretches: &[Stretch], link: LinkEvidence) {
        for stretch in stretches {
            self.turn_to(stretch.limit, stretch.intervals.clone(), |_| true);
        }
        let Candidate { limit: first, .. } = self.limited_by();
        let of_first = stretches.iter().filter(|stretch| stretch.limit == first);
        self.confidence = of_first.map(|stretch| stretch.likely).fold(self.proven(link), f64::max);
    }

    /// The fraction of the time for which the limit named first is no matter of opinion: the window
    /// was shut, or had no room for a segment while no queue stood.
    fn proven(&self, link: LinkEvidence) -> f64 {
        let is_alone = link == LinkEvidence::None && self.source == Source::Capture;
        let proven = self.intervals.iter().map(|one| {
            let part = match self.limited_by().limit {
                Limit::ReceiverApplication => f64::from(u8::from(is_shut(one))),
                Limit::ReceiveWindow if is_alone => PROVEN * one.evidence.window_full,
                _ => 0.0,
            };
            part * one.length.as_secs_f64()
        });
        proven.sum::<f64>() / self.time.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// In a range of intervals, moves to `limit` the time of every limit that `is_turned` selects.
    /// A transfer still starts with slow start, whatever holds it later.
    fn turn_to(&mut self, limit: Limit, range: Range<usize>, is_turned: impl Fn(Limit) -> bool) {
        const START: Limit = Limit::CongestionWindow(Cause::SlowStart);
        let start =
            self.intervals.iter().position(|interval| interval.limit() != START).unwrap_or(0);
        let by_rules = self.limited_by().limit;
        for at in range {
            let interval = &mut self.intervals[at];
            // While nothing is in flight, only the application can hold the sender.
            let is_pause = interval.evidence.idle > MOSTLY_IDLE
                && interval.limit() == Limit::SenderApplication;
            if is_pause && by_rules != Limit::SenderApplication || is_shut(interval) {
                continue;
            }
            let others: Vec<Limit> = interval.candidates.iter().map(|one| one.limit).collect();
            let turned = others.into_iter().filter(|other| *other != limit && is_turned(*other));
            for other in turned.filter(|other| at >= start || *other != START) {
                interval.turn(other, limit);
            }
        }
        self.shares = shares_of(&self.intervals);
        self.steady = shares_of(second_half(&self.intervals));
    }

    /// The numbers that led the trained judge to the limit named first, most important first. There
    /// are none where the rules decided alone or against the judge.
    pub fn reasons(&self) -> Vec<Reason> {
        let named = self.limited_by().limit;
        let judged = self.judged.as_ref().filter(|judged| judged.opinion.first().0 == named);
        let rtt = self.intervals.iter().filter_map(|interval| interval.evidence.rtt).min();
        judged.map(|judged| reasons(self.source, judged, &self.traits, rtt)).unwrap_or_default()
    }

    /// The probability that a policer held the data, for a verdict that names the link. It is 0
    /// where the trained judge has no opinion.
    pub(crate) fn policer(&self) -> f64 {
        let judged = self.judged.as_ref().filter(|_| self.limited_by().limit == Limit::Link);
        judged.map_or(0.0, |judged| judged.opinion.policer)
    }

    /// The limit that the trained judge finds likeliest apart from the one named first, with its
    /// probability; `None` where the judge has no opinion.
    pub(crate) fn runner_up(&self) -> Option<Candidate> {
        let named = self.limited_by().limit;
        let opinion = self.judged.as_ref()?.opinion;
        let others = LIMITS.into_iter().filter(|limit| *limit != named);
        let likely = others.map(|limit| Candidate { limit, share: opinion.likely(limit) });
        likely.max_by(|a, b| a.share.total_cmp(&b.share))
    }

    /// Goodput over the second half of the bytes. This is the rate of a transfer after its
    /// start-up, and nearly the mean rate of a long one. `None` where no data was acknowledged.
    pub fn steady_goodput(&self) -> Option<Rate> {
        let steady = second_half(&self.intervals);
        let time: f64 = steady.iter().map(|interval| interval.length.as_secs_f64()).sum();
        let bytes: f64 = steady.iter().map(|one| one.carried().as_f64()).sum();
        (bytes > 0.0 && time > 0.0).then(|| Rate::from_bits_per_sec((bytes * 8.0 / time) as u64))
    }

    /// The highest rate of an interval that is not cut short. Where something was repaired, the
    /// intervals around are averaged. `None` where no data was acknowledged.
    pub fn peak_goodput(&self) -> Option<Rate> {
        self.peak_where(|_| true).filter(|rate| *rate > Rate::ZERO)
    }

    /// The highest rate of the intervals that `is_meant` selects, without those that are cut short
    /// (as the last one is). One ACK of a filled hole acknowledges what several intervals carried.
    /// Where something was repaired, an interval is therefore averaged with those around it.
    pub(crate) fn peak_where(&self, is_meant: impl Fn(&Interval) -> bool) -> Option<Rate> {
        let mut lengths: Vec<Duration> =
            self.intervals.iter().map(|interval| interval.length).collect();
        lengths.sort_unstable();
        let least =
            Duration::from_nanos(lengths.get(lengths.len().saturating_sub(1) / 2)?.as_nanos() / 2);
        let whole = (0..self.intervals.len()).filter(|at| self.intervals[*at].length >= least);
        whole.filter(|at| is_meant(&self.intervals[*at])).map(|at| self.rate_at(at)).max()
    }

    /// The rate that the path carried in interval `at`. One ACK of a filled hole acknowledges what
    /// several intervals carried. Where something was repaired, the rate is therefore the mean over
    /// the intervals around.
    pub(crate) fn rate_at(&self, at: usize) -> Rate {
        const BEFORE: usize = 2;
        const AROUND: usize = 4;
        let near = &self.intervals[at.saturating_sub(BEFORE)..=at];
        if near.iter().all(|interval| interval.evidence.retransmissions == 0) {
            return self.intervals[at].evidence.goodput;
        }
        let last = (at + AROUND + 1).min(self.intervals.len());
        let taken = &self.intervals[at.saturating_sub(AROUND)..last];
        let time = taken.iter().map(|interval| interval.length).sum::<Duration>();
        taken.iter().map(Interval::carried).sum::<Bytes>().per(time).unwrap_or(Rate::ZERO)
    }

    /// The limit that held the sender for the largest share of the time, with that share; `Unknown`
    /// where no data was sent.
    pub fn limited_by(&self) -> Candidate {
        first_of(&self.shares)
    }

    /// The same over the second half of the bytes.
    pub fn steadily_limited_by(&self) -> Candidate {
        first_of(&self.steady)
    }

    /// Which other candidates would also have explained the time that `limit` held, each with its
    /// fraction of that time, largest first.
    pub fn rivals(&self, limit: Limit) -> Vec<Candidate> {
        let mut seconds = BTreeMap::<Limit, f64>::new();
        let mut all = 0.0;
        for interval in self.intervals.iter().filter(|interval| interval.limit() == limit) {
            all += interval.length.as_secs_f64();
            for rival in interval.candidates.iter().skip(1) {
                *seconds.entry(rival.limit).or_default() += interval.length.as_secs_f64();
            }
        }
        as_shares(seconds, all)
    }

    /// Mean payload in flight over the whole time; `None` where the source does not have it.
    pub fn in_flight_mean(&self) -> Option<Bytes> {
        let mut weighted = 0.0;
        for interval in &self.intervals {
            weighted += interval.evidence.in_flight_mean?.as_f64() * interval.length.as_secs_f64();
        }
        (self.time > Duration::ZERO).then(|| Bytes::from_f64(weighted / self.time.as_secs_f64()))
    }

    /// The share of the time that a limit has.
    pub fn share(&self, limit: Limit) -> f64 {
        self.shares
            .iter()
            .find(|candidate| candidate.limit == limit)
            .map_or(0.0, |candidate| candidate.share)
    }
}

/// Whether nothing was in flight because the window had no room: only the receiving application can
/// let the sender go on. A capture's rules decide so; sockets have no such evidence.
fn is_shut(interval: &Interval) -> bool {
    interval.limit() == Limit::ReceiverApplication
        && interval.evidence.in_flight == Bytes::ZERO
        && interval.evidence.window_full > MOSTLY_SHUT
}

/// An interval is shut if the window had no room for more than this fraction of it.
const MOSTLY_SHUT: f64 = 0.5;

/// An interval is a pause if nothing was in flight for more than this fraction of it.
const MOSTLY_IDLE: f64 = 0.5;

/// The first, and so largest, of some shares.
fn first_of(shares: &[Candidate]) -> Candidate {
    shares.first().copied().unwrap_or(Candidate { limit: Limit::Unknown, share: 0.0 })
}

/// The limits of `intervals`, each with how many seconds it held.
pub(super) fn limits_with_time(intervals: &[Interval]) -> impl Iterator<Item = (Limit, f64)> {
    intervals.iter().flat_map(|interval| {
        let length = interval.length.as_secs_f64();
        interval.candidates.iter().map(move |one| (one.limit, one.share * length))
    })
}

/// The intervals that carried the second half of the bytes, including the one in which it begins.
fn second_half(intervals: &[Interval]) -> &[Interval] {
    let half = intervals.iter().map(|one| one.carried().as_f64()).sum::<f64>() / 2.0;
    let mut before = 0.0;
    let from = intervals.iter().position(|interval| {
        before += interval.carried().as_f64();
        before > half
    });
    &intervals[from.unwrap_or(0)..]
}

fn shares_of(intervals: &[Interval]) -> Vec<Candidate> {
    let mut seconds = BTreeMap::<Limit, f64>::new();
    for interval in intervals {
        for candidate in &interval.candidates {
            *seconds.entry(candidate.limit).or_default() +=
                candidate.share * interval.length.as_secs_f64();
        }
    }
    let all = seconds.values().sum();
    as_shares(seconds, all)
}

/// Limits with the seconds that each held, as shares of `all` of them, largest first.
fn as_shares(seconds: BTreeMap<Limit, f64>, all: f64) -> Vec<Candidate> {
    let mut shares: Vec<Candidate> = seconds
        .into_iter()
        .filter(|(_, time)| *time > 0.0)
        .map(|(limit, time)| Candidate { limit, share: time / all })
        .collect();
    shares.sort_by(|a, b| b.share.total_cmp(&a.share));
    shares
}

#[cfg(test)]
mod tests;
