//! Decides what held the sender from samples of its socket, and of the receiver's where there are
//! any.
//!
//! For every sender Linux counts the time that it was busy. Of that time it counts how long the
//! receive window and the send buffer held it (`tcpi_busy_time`, `tcpi_rwnd_limited`,
//! `tcpi_sndbuf_limited`). Time that is not busy is the application's. The rest of the busy time is
//! divided by the socket's state. Nothing unsent and a full write queue mean a send buffer that the
//! counter missed (it runs only while the writer sleeps). A round trip above the minimum at full
//! delivery, or a paced sender whose delivery no longer grows, means the link. Otherwise it is the
//! congestion window.
//!
//! The counters run in jiffies (1 to 10 ms), so intervals are several samples long.

mod brief;
mod looks;
mod overflows;
mod overtaken;
mod traits;
mod unread;
mod waited;

use super::judge::{Case, LinkEvidence, Possible, SEGMENTS_LEAST};
use super::proof::{Moment, is_full_link};
use super::thresholds::{
    AT_CAPACITY_SAMPLED, CLOSED_TO, COLLAPSED, FULL_BUFFER, GROWTH, NEARLY_BDP, NOISE, OF_HINT,
    OF_LINK, QUEUE_LEAST_SAMPLED, QUEUE_PART, QUEUE_PART_SAMPLED, REACHED_PART,
    REPAIR_WITHIN_SAMPLED, UNREAD, UNREPAIRED,
};
use super::{Candidate, Cause, Evidence, Interval, Limit, PathHint, Source, Verdict};
use fullpipe_model::observe::{Sample, TcpInfo};
use fullpipe_model::units::{Bytes, Duration, Instant, Rate, Window};
pub(crate) use overtaken::is_overtaken;
use std::ops::Range;
use waited::waited;

pub use looks::{from_looks, from_means, from_receiver_looks};

/// The shortest interval. A shorter one would be a few jiffies.
const MIN_INTERVAL: Duration = Duration::from_millis(40);
/// The shortest interval of a transfer that is over after few of those.
const MIN_INTERVAL_SHORT: Duration = Duration::from_millis(20);
/// A transfer with fewer intervals is short.
const SHORT: usize = 3;

/// Decides what held the sender, from the kernel's counters in its socket (`sender`) and, where
/// there are samples of it, in the receiver's (`receiver`). Both are in order of time and on one
/// clock. `interval` is the minimum length of an interval.
pub fn from_samples(
    sender: &[Sample],
    receiver: &[Sample],
    interval: Duration,
    hint: PathHint,
) -> Verdict {
    let is_overtaken = is_overtaken(sender);
    let in_order = is_overtaken.then(|| overtaken::in_order(sender));
    let sender = in_order.as_deref().unwrap_or(sender);
    if let Some(interval) = brief::interval(sender, receiver, hint) {
        return Verdict::new(Source::Samples, vec![interval]).of_brief();
    }
    let (spans, intervals) = by_rules(sender, receiver, interval, hint);
    let segments = spans.iter().map(SampleSpan::segments).fold(0, u64::saturating_add);
    let mut verdict = Verdict::new(Source::Samples, intervals);
    if segments >= SEGMENTS_LEAST && is_fine(sender) {
        verdict = verdict.weighed(|part, intervals| {
            let case = case(&spans[part], intervals, receiver, hint);
            if is_overtaken { overtaken::needs_queue(case, intervals) } else { case }
        });
    }
    if is_overtaken {
        verdict = verdict.or_taken_for_loss();
    } else {
        verdict = overflows::overrule(verdict, &spans, hint);
    }
    let verdict = unread::overrule(verdict, receiver);
    match waited(sender) {
        Some(waited) => waited.overrule(verdict, Limit::SenderApplication),
        None => verdict,
    }
}

/// What the rules decide alone, without the trained judge: the spans in which something happened,
/// and an interval for each.
fn by_rules<'a>(
    sender: &'a [Sample],
    receiver: &[Sample],
    interval: Duration,
    hint: PathHint,
) -> (Vec<SampleSpan<'a>>, Vec<Interval>) {
    let mut spans = spans_of(sender, interval.max(MIN_INTERVAL));
    if spans.len() < SHORT {
        spans = spans_of(sender, MIN_INTERVAL_SHORT);
    }
    let end = TransferEnd::of(&spans);
    let top = top_rate(spans.iter().map(|span| span.goodput().as_f64()).collect());
    let mut grown = false;
    let mut best: f64 = 0.0;
    let mut lost = false;
    let mut intervals = Vec::with_capacity(spans.len());
    for (at, span) in spans.iter().enumerate() {
        let rate = span.goodput().as_f64();
        let next = spans.get(at + 1).map_or(0.0, |next| next.goodput().as_f64());
        grown |= best > 0.0 && rate < GROWTH * best && next < GROWTH * best.max(rate);
        best = best.max(rate);
        lost |= span.retransmissions() > 0;
        let around = &spans[at.saturating_sub(1)..(at + 2).min(spans.len())];
        let standing = around.iter().all(|near| near.has_queue(around, hint));
        // If the next data sent is a repair, the sender waited for the timer until then.
        let next_event = spans[at + 1..]
            .iter()
            .take(REPAIR_WITHIN_SAMPLED)
            .find(|s| s.retransmissions() > 0 || s.goodput() > Rate::ZERO);
        let awaits_repair = next_event.is_some_and(|next| next.retransmissions() > 0);
        let before = intervals.last().map(Interval::limit);
        let context = Context {
            top,
            growing: !grown,
            lost,
            awaits_repair,
            standing,
            hint,
            is_last_flight: at >= end.written,
            drains: before.filter(|_| at >= end.sent),
        };
        intervals.push(span.interval(receiver_at(receiver, span), &context, &spans));
    }
    let active = active(&intervals);
    intervals.truncate(active.end);
    intervals.drain(..active.start);
    spans.truncate(active.end);
    spans.drain(..active.start);
    (spans, intervals)
}

/// The question for the judge about these spans. `intervals` are what the rules decided for them.
fn case(
    spans: &[SampleSpan<'_>],
    intervals: &[Interval],
    receiver: &[Sample],
    hint: PathHint,
) -> Case {
    let has_pauses = intervals.iter().any(|interval| interval.evidence.idle > NOISE)
        || spans.iter().any(|span| span.mostly(|_, info| nothing_to_send(info)));
    let possible = Possible {
        loss: spans.iter().any(|span| span.retransmissions() > 0),
        sender_application: has_pauses,
        reader: is_ever_unread(receiver),
        ..Possible::ALL
    };
    let link = if is_full(spans, intervals, hint) {
        LinkEvidence::Full
    } else {
        LinkEvidence::new(hint.rate.is_some(), traits::inflation_median(spans))
    };
    let traits = traits::traits(spans, intervals, receiver);
    Case { traits, possible, link, judges_parts: true }
}

/// Whether the receiver's application may have kept somebody waiting: it had data that it had not
/// read for more than a moment now and then. Without samples of its socket nobody knows.
fn is_ever_unread(receiver: &[Sample]) -> bool {
    let unread = receiver.iter().filter(|sample| {
        sample.rqueue > sample.info.as_ref().map_or(Bytes::ZERO, |info| info.rcv_mss)
    });
    let unread = unread.count();
    receiver.is_empty() || unread as f64 >= REACHED_PART * receiver.len() as f64
}

/// Whether a queue that stood proves that the link was full: what was in flight never fell to what
/// the path itself holds, and round trips were longer than the path's own by more than a reader's
/// blocks explain.
fn is_full(spans: &[SampleSpan<'_>], intervals: &[Interval], hint: PathHint) -> bool {
    let infos = spans.iter().flat_map(SampleSpan::infos);
    let Some(base) = hint.rtt.or(infos.filter_map(|(_, info)| info.min_rtt).min()) else {
        return false;
    };
    let long = Duration::from_secs_f64(base.as_secs_f64() * (1.0 + QUEUE_PART_SAMPLED));
    let segment = spans.iter().map(|span| span.last.snd_mss).max().unwrap_or(Bytes::ZERO);
    let mut widest = 0.0_f64;
    let moments: Vec<Moment> = spans
        .iter()
        .enumerate()
        .map(|(at, span)| {
            let interval = &intervals[at];
            let Evidence { rtt, window_full, window, unread, .. } = interval.evidence;
            let least = span.infos().map(|(_, info)| info.in_flight()).min().unwrap_or(Bytes::ZERO);
            let holds = NEARLY_BDP * span.goodput().over(base).as_f64();
            let is_queued = rtt.is_some_and(|rtt| rtt >= long) && least.as_f64() >= holds;
            let windows = span.infos().filter_map(|(_, info)| info.snd_wnd);
            let windows: Vec<f64> = windows.map(|window| window.bytes().as_f64()).collect();
            widest = windows.iter().copied().fold(widest, f64::max);
            let closes = windows.iter().any(|window| *window < CLOSED_TO * widest);
            let left = unread.zip(window).is_some_and(|(unread, window)| {
                unread.as_f64() >= UNREAD * window.bytes().as_f64()
            });
            let is_reader = left || interval.limit() == Limit::ReceiverApplication;
            Moment {
                length: interval.length.as_secs_f64(),
                rate: span.goodput().as_f64(),
                rtt: if is_queued { rtt } else { Some(base) },
                is_held: pauses(intervals, at) || (window_full > NOISE && closes) || is_reader,
            }
        })
        .collect();
    let most = moments.iter().map(|moment| moment.rate).fold(0.0, f64::max);
    // Where the rate is known, a queue at a much lower rate is not the link's.
    let is_plausible = hint.rate.is_none_or(|hint| most >= OF_LINK * hint.as_f64());
    is_plausible && is_full_link(&moments, base, segment.as_f64())
}

/// Whether the sender had nothing to send around an interval, for longer than the kernel's clock
/// may be wrong by: it counts what is busy in jiffies.
fn pauses(intervals: &[Interval], at: usize) -> bool {
    let around = &intervals[at.saturating_sub(2)..(at + 3).min(intervals.len())];
    let idle = around.iter().map(|one| one.evidence.idle * one.length.as_secs_f64());
    intervals[at].evidence.idle > NOISE && idle.sum::<f64>() > JIFFY_MOST.as_secs_f64()
}

/// A jiffy where a kernel has the fewest (`CONFIG_HZ_100`).
const JIFFY_MOST: Duration = Duration::from_millis(10);

/// The longest mean time between samples whose shapes the judge knows: it learnt from samples of
/// every 10 ms.
const FINE: Duration = Duration::from_millis(50);

pub(super) fn is_fine(samples: &[Sample]) -> bool {
    let [first, .., last] = samples else { return false };
    let steps = samples.len() as u64 - 1;
    last.at.since(first.at) <= FINE.saturating_mul(steps)
}

/// What the intervals before and after show.
struct Context {
    /// The highest delivery rate of an interval, in bits a second.
    top: f64,
    growing: bool,
    lost: bool,
    awaits_repair: bool,
    /// Whether a queue stands in this interval and its neighbours.
    standing: bool,
    hint: PathHint,
    /// Whether the application has written the last data.
    is_last_flight: bool,
    /// What held the sender before, if all data was in flight when this interval began. The last
    /// data drains; whatever held the sender went on until there was nothing left to send.
    drains: Option<Limit>,
}

/// Where a transfer ends.
struct TransferEnd {
    /// From this span on no data waits to be sent at a span's end.
    written: usize,
    /// From this span on all data is in flight or acknowledged.
    sent: usize,
}

impl TransferEnd {
    fn of(spans: &[SampleSpan<'_>]) -> TransferEnd {
        let all = spans.last().map_or(Bytes::ZERO, |span| acked(span.last));
        let flies =
            |span: &SampleSpan<'_>| acked(span.first).saturating_add(span.first.in_flight());
        TransferEnd {
            written: spans
                .iter()
                .rposition(|span| !nothing_to_send(span.last))
                .map_or(0, |at| at + 1),
            sent: spans.iter().position(|span| flies(span) >= all).unwrap_or(spans.len()),
        }
    }
}

/// What the counters of time say of a span, as fractions of it.
struct HeldShares {
    busy: f64,
    rwnd: f64,
    sndbuf: f64,
}

/// Two samples and those between them.
struct SampleSpan<'a> {
    samples: &'a [Sample],
    first: &'a TcpInfo,
    last: &'a TcpInfo,
}

/// Consecutive samples with TCP_INFO, at least `interval` or a round trip apart.
fn spans_of(sender: &[Sample], interval: Duration) -> Vec<SampleSpan<'_>> {
    let mut spans = Vec::new();
    let mut start = 0;
    for end in 1..sender.len() {
        let (Some(first), Some(last)) = (&sender[start].info, &sender[end].info) else {
            start = if sender[start].info.is_none() { end } else { start };
            continue;
        };
        let least = interval.max(last.min_rtt.unwrap_or(Duration::ZERO));
        if sender[end].at.since(sender[start].at) >= least {
            spans.push(SampleSpan { samples: &sender[start..=end], first, last });
            start = end;
        }
    }
    spans
}

/// The third highest delivery rate, so that one exceptional interval does not count.
pub(super) fn top_rate(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(|a, b| b.total_cmp(a));
    rates.get(2.min(rates.len().saturating_sub(1))).copied().unwrap_or(0.0)
}

/// The intervals from the first data to the last.
pub(super) fn active(intervals: &[Interval]) -> Range<usize> {
    let first = intervals.iter().position(is_active).unwrap_or(intervals.len());
    let last = intervals.iter().rposition(is_active).map_or(first, |last| last + 1);
    first..last
}

fn is_active(interval: &Interval) -> bool {
    interval.evidence.goodput > Rate::ZERO || interval.evidence.idle < 1.0
}

/// The receiver's samples within the span, or else the last one before its end.
fn receiver_at<'a>(receiver: &'a [Sample], span: &SampleSpan<'_>) -> &'a [Sample] {
    let from = receiver.partition_point(|sample| sample.at < span.start());
    let to = receiver.partition_point(|sample| sample.at <= span.end());
    &receiver[from.min(to.saturating_sub(1)).min(receiver.len())..to]
}

impl SampleSpan<'_> {
    fn start(&self) -> Instant {
        self.samples[0].at
    }

    fn end(&self) -> Instant {
        self.samples[self.samples.len() - 1].at
    }

    fn length(&self) -> Duration {
        self.end().since(self.start())
    }

    /// The fraction of the span during which a counter of time ran.
    fn part(&self, counter: fn(&TcpInfo) -> Option<Duration>) -> f64 {
        let (Some(first), Some(last)) = (counter(self.first), counter(self.last)) else {
            return 0.0;
        };
        let length = self.length().as_secs_f64();
        if length > 0.0 {
            (last.saturating_sub(first).as_secs_f64() / length).min(1.0)
        } else {
            0.0
        }
    }

    fn goodput(&self) -> Rate {
        acked(self.last).saturating_sub(acked(self.first)).per(self.length()).unwrap_or(Rate::ZERO)
    }

    /// What was acknowledged, in full segments.
    fn segments(&self) -> u64 {
        self.goodput().over(self.length()).get() / self.last.snd_mss.get().max(1)
    }

    fn retransmissions(&self) -> u64 {
        u64::from(self.last.total_retrans.wrapping_sub(self.first.total_retrans))
    }

    fn infos(&self) -> impl Iterator<Item = (&Sample, &TcpInfo)> {
        self.samples[1..].iter().filter_map(|sample| Some((sample, sample.info.as_ref()?)))
    }

    /// Whether `is` holds for more than half of the samples.
    fn mostly(&self, is: impl Fn(&Sample, &TcpInfo) -> bool) -> bool {
        let (yes, all) = self
            .infos()
            .fold((0, 0), |(yes, all), (s, info)| (yes + usize::from(is(s, info)), all + 1));
        2 * yes > all
    }

    /// The fractions of the span in which the sender was busy, and of these in which the receive
    /// window and the send buffer held it.
    fn held(&self) -> HeldShares {
        let busy = match (self.first.busy_time, self.last.busy_time) {
            (Some(_), Some(_)) => self.part(|info| info.busy_time),
            // Before Linux 4.10 there are no counters; data in flight counts as busy.
            _ => f64::from(u8::from(self.mostly(|_, info| info.unacked > 0))),
        };
        let rwnd = self.part(|info| info.rwnd_limited).min(busy);
        let sndbuf = self.part(|info| info.sndbuf_limited).min(busy - rwnd);
        HeldShares { busy, rwnd, sndbuf }
    }

    fn evidence(&self, receiver: &[Sample]) -> Evidence {
        let HeldShares { busy, rwnd, sndbuf } = self.held();
        Evidence {
            goodput: self.goodput(),
            in_flight: self.infos().map(|(_, info)| info.in_flight()).max().unwrap_or(Bytes::ZERO),
            in_flight_mean: None,
            window: self.infos().filter_map(|(_, info)| info.snd_wnd).max(),
            rtt: self.infos().map(|(_, info)| info.rtt).filter(|rtt| *rtt > Duration::ZERO).min(),
            window_full: rwnd,
            idle: 1.0 - busy,
            retransmissions: self.retransmissions(),
            sndbuf_limited: Some(sndbuf),
            unread: receiver.iter().map(|sample| sample.rqueue).max(),
            beside: None,
        }
    }

    fn interval(&self, receiver: &[Sample], context: &Context, all: &[SampleSpan<'_>]) -> Interval {
        let HeldShares { busy, rwnd, sndbuf } = self.held();
        let evidence = self.evidence(receiver);
        let candidates = if self.is_at_capacity(context) {
            vec![(Limit::Link, busy), (Limit::SenderApplication, 1.0 - busy)]
        } else {
            let repairs = self.repairs() || context.awaits_repair;
            let closed = self.closed(receiver, all, repairs);
            vec![
                (closed, rwnd),
                (Limit::SendBuffer, sndbuf),
                (self.rest(context), busy - rwnd - sndbuf),
                (Limit::SenderApplication, 1.0 - busy),
            ]
        };
        Interval {
            start: self.start(),
            length: self.length(),
            candidates: ranked(candidates),
            evidence,
        }
    }

    /// Whose limit a window is that held the sender.
    fn closed(&self, receiver: &[Sample], all: &[SampleSpan<'_>], repairs: bool) -> Limit {
        let window = self.infos().filter_map(|(_, info)| info.snd_wnd).max();
        match (self.receiver_is_slow(receiver, all), repairs && self.carries_less_than(window)) {
            (true, _) => Limit::ReceiverApplication,
            (false, true) => Limit::CongestionWindow(Cause::Loss),
            (false, false) => Limit::ReceiveWindow,
        }
    }

    /// Whether the path is used fully: full delivery with a queue before the link, or the rate that
    /// is known. More in flight would not help, whatever else the counters say.
    fn is_at_capacity(&self, context: &Context) -> bool {
        let rate = self.goodput().as_f64();
        let of_hint = context.hint.rate.map(|hint| rate / hint.as_f64());
        // Where the rate is known, a queue at a much lower rate is not the link's.
        let plausible = of_hint.is_none_or(|part| part >= OF_LINK);
        let full = rate >= AT_CAPACITY_SAMPLED * context.top && context.standing;
        of_hint.is_some_and(|part| part >= OF_HINT) || (plausible && full)
    }

    /// Whether the smoothed round trip exceeds the minimum in most samples, and what is in flight
    /// never falls to what the path itself holds. A blocked writer refills its buffer in bursts,
    /// which queue only for a moment.
    fn has_queue(&self, around: &[SampleSpan<'_>], hint: PathHint) -> bool {
        let goodput = self.goodput();
        let flights = around.iter().flat_map(SampleSpan::infos).map(|(_, info)| info.in_flight());
        let least = flights.min().unwrap_or(Bytes::ZERO);
        self.mostly(|_, info| {
            let Some(base) = hint.rtt.or(info.min_rtt) else { return false };
            if least < goodput.over(base) {
                return false;
            }
            let least =
                QUEUE_LEAST_SAMPLED.max(Duration::from_secs_f64(base.as_secs_f64() * QUEUE_PART));
            let few = info.unacked <= 4;
            !few && info.rtt.saturating_sub(base) >= least
        })
    }

    /// Whether the window closed because the receiver's application does not read.
    fn receiver_is_slow(&self, receiver: &[Sample], all: &[SampleSpan<'_>]) -> bool {
        if !receiver.is_empty() {
            return 2 * receiver.iter().filter(|sample| is_unread(sample)).count() > receiver.len();
        }
        // Without samples of the receiver, a slow application shows in a window that never opens to
        // half of what it was.
        let widest =
            |span: &SampleSpan<'_>| span.infos().filter_map(|(_, info)| info.snd_wnd).max();
        // A window that takes no segment at all for this long is one that nobody reads.
        if widest(self).is_some_and(|window| window.bytes() < self.last.snd_mss) {
            return true;
        }
        let before =
            all.iter().take_while(|span| span.start() <= self.start()).filter_map(widest).max();
        match (widest(self), before) {
            (Some(now), Some(before)) => now.bytes().as_f64() < COLLAPSED * before.bytes().as_f64(),
            _ => false,
        }
    }

    fn repairs(&self) -> bool {
        self.retransmissions() > 0 || self.mostly(|_, info| info.ca_state.repairs_loss())
    }

    /// Whether clearly less than a window is carried each round trip.
    fn carries_less_than(&self, window: Option<Window>) -> bool {
        let rtt = self.last.min_rtt.unwrap_or(self.last.rtt);
        let allowed = window.and_then(|window| window.per_rtt(rtt));
        allowed.is_some_and(|allowed| self.goodput().as_f64() < UNREPAIRED * allowed.as_f64())
    }

    /// What held the sender while the kernel counted neither window nor buffer.
    fn rest(&self, context: &Context) -> Limit {
        if self.repairs() {
            return Limit::CongestionWindow(Cause::Loss);
        }
        if let Some(before) = context.drains {
            return before;
        }
        // What was left filled the congestion window when the interval began.
        let is_held = context.is_last_flight && !nothing_to_send(self.first) && fills(self.first);
        if !is_held && self.mostly(|_, info| nothing_to_send(info)) {
            let is_full = self.mostly(|sample, _| {
                sample
                    .memory
                    .is_some_and(|m| m.wmem_queued.as_f64() >= FULL_BUFFER * m.sndbuf.as_f64())
            });
            return if is_full { Limit::SendBuffer } else { Limit::SenderApplication };
        }
        if self.mostly(|_, info| {
            info.snd_wnd.is_some_and(|window| info.in_flight() + info.snd_mss > window.bytes())
        }) {
            return Limit::ReceiveWindow;
        }
        if context.growing {
            return Limit::CongestionWindow(Cause::SlowStart);
        }
        if context.standing {
            return Limit::Link;
        }
        match (self.mostly(|_, info| fills(info)), context.lost) {
            (true, true) => Limit::CongestionWindow(Cause::Loss),
            (true, false) => Limit::CongestionWindow(Cause::SlowStart),
            // There is data to send and room in both windows. Pacing holds it, at the rate that
            // congestion control measured.
            (false, _) if self.goodput().as_f64() >= AT_CAPACITY_SAMPLED * context.top => {
                Limit::Link
            }
            (false, true) => Limit::CongestionWindow(Cause::Loss),
            (false, false) => Limit::Unknown,
        }
    }
}

/// Whether a receiver's application leaves most of the buffer unread, or more than the window
/// takes.
fn is_unread(sample: &Sample) -> bool {
    let memory = sample.memory.filter(|memory| memory.rcvbuf > Bytes::ZERO);
    let by_memory = memory.is_some_and(|m| m.rmem_alloc.as_f64() > UNREAD * m.rcvbuf.as_f64());
    let window = sample.info.as_ref().and_then(|info| info.rcv_wnd);
    let by_window =
        window.is_some_and(|free| sample.rqueue > free.bytes() && sample.rqueue > Bytes::ZERO);
    by_memory || by_window
}

fn acked(info: &TcpInfo) -> Bytes {
    info.bytes_acked.unwrap_or(Bytes::ZERO)
}

/// Whether as much is in flight as the congestion window allows.
fn fills(info: &TcpInfo) -> bool {
    info.unacked.saturating_add(2) >= info.snd_cwnd
}

/// Whether less than a segment waits to be sent: the application has written no more.
fn nothing_to_send(info: &TcpInfo) -> bool {
    info.notsent_bytes.is_some_and(|bytes| bytes < info.snd_mss)
}

/// One candidate for each limit, largest share first. The shares sum to 1.
pub(super) fn ranked(parts: Vec<(Limit, f64)>) -> Vec<Candidate> {
    let mut candidates: Vec<Candidate> = Vec::new();
    for (limit, share) in parts.into_iter().filter(|(_, share)| *share > NOISE) {
        match candidates.iter_mut().find(|candidate| candidate.limit == limit) {
            Some(candidate) => candidate.share += share,
            None => candidates.push(Candidate { limit, share }),
        }
    }
    let sum: f64 = candidates.iter().map(|candidate| candidate.share).sum();
    candidates.iter_mut().for_each(|candidate| candidate.share /= sum);
    candidates.sort_by(|a, b| b.share.total_cmp(&a.share));
    candidates
}

#[cfg(test)]
mod tests;
