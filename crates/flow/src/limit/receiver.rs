//! Decides what held the sender of data from samples of the socket that receives it.
//!
//! The kernel keeps no chronographs for a receiver. What it does know decides most cases:
//!
//! * data that its application has not read (`Recv-Q`, socket memory): the receiving application;
//! * bytes per round trip that come near the advertised window (`tcpi_rcv_wnd`): the receive
//!   window. An autotuned window that does not hold the sender is about twice what arrives in a
//!   round trip (`tcp_rcv_space_adjust`), so the two are far apart;
//! * data out of order (`tcpi_rcv_ooopack`): loss;
//! * silence, and segments that are not full: the sending application;
//! * a round trip (`tcpi_rcv_rtt`) above the path's at full delivery: a queue, and so the link;
//! * arrivals in bursts with silence between them: one burst each round trip is a fixed amount in
//!   flight, and the send buffer is the usual one; bursts at other times are an application's.
//!
//! The rest is steady delivery without a queue, loss or a full window. For these rules the sender's
//! buffer, its pacing, its application and a flat cap of the path look the same. The trained judge
//! tells them apart better, and says how sure it is.
//!
//! The thresholds were fixed on the fourteen planted causes of `crates/cli/tests/e2e/why.rs`.

mod traits;

use super::judge::{Case, LinkEvidence, Possible, SEGMENTS_LEAST};
use super::samples::{active, is_fine, ranked, top_rate};
use super::thresholds::{AT_CAPACITY_SAMPLED, GROWTH, QUEUE_LEAST_SAMPLED, QUEUE_PART, UNREAD};
use super::{Cause, Evidence, Interval, Limit, PathHint, Source, Verdict};
use fullpipe_model::law::window_scale::MAX_UNSCALED;
use fullpipe_model::observe::{Sample, TcpInfo};
use fullpipe_model::units::{Bytes, Duration, Rate, Window};

/// The shortest interval of a long transfer: a few samples, and a few round trips of most paths.
const MIN_INTERVAL: Duration = Duration::from_millis(100);
/// The shortest interval of all: two samples of `fullpipe why`.
const MIN_INTERVAL_SHORT: Duration = Duration::from_millis(20);
/// An interval has so many round trips, and this few in a transfer that is over soon.
const ROUND_TRIPS: u64 = 3;
const ROUND_TRIPS_SHORT: u64 = 1;
/// A transfer with fewer intervals is short.
const SHORT: u64 = 24;
/// The window holds the sender where a round trip carries this fraction of it.
const OF_WINDOW: f64 = 0.75;
/// Segments are pieces of an application's writes where their mean size is below this fraction of
/// a full segment.
const PIECES_OF_SEGMENT: f64 = 0.9;
/// Silence that is longer than this many round trips is a pause of the sender.
const PAUSE_RTTS: f64 = 1.5;
/// A sender that holds a fixed amount in flight sends it at once and then waits. Where this
/// fraction of the time between samples saw no data, it does.
const SILENT: f64 = 0.35;
/// An application that keeps up leaves next to nothing in its socket. One that leaves this fraction
/// of the advertised window there most of the time does not.
const UNREAD_OF_WINDOW: f64 = 0.25;
/// The bursts of a fixed amount in flight follow each other at the path's round trip, within this
/// fraction of it.
const AT_RTT: f64 = 0.25;
/// A link that is full is never silent for longer than between two samples.
const SILENT_LINK: f64 = 0.15;
/// No queue stood where nine of ten round trips are no longer than the path's by more than this.
const UNQUEUED: f64 = 1.02;
/// The round trip from which on samples of every 10 ms show bursts.
const BURSTS_FROM: Duration = Duration::from_millis(30);

/// Decides what held the sender from samples of the receiver's socket, in order of time.
/// `interval` is the minimum length of an interval.
pub fn from_receiver(samples: &[Sample], interval: Duration, hint: PathHint) -> Verdict {
    let base = hint.rtt.or_else(|| base_rtt(samples));
    let (spans, intervals) = by_rules(samples, interval, base, hint);
    let segments = spans.iter().filter_map(ReceiverSpan::segments).fold(0, u64::saturating_add);
    if segments < SEGMENTS_LEAST || !is_fine(samples) {
        return Verdict::new(Source::ReceiverSamples, intervals);
    }
    Verdict::new(Source::ReceiverSamples, intervals)
        .weighed(|part, intervals| case(&spans[part], intervals, base, hint))
}

/// What the rules decide alone, without the trained judge: the spans in which something happened,
/// and an interval for each. `base` is the path's round trip.
fn by_rules(
    samples: &[Sample],
    interval: Duration,
    base: Option<Duration>,
    hint: PathHint,
) -> (Vec<ReceiverSpan<'_>>, Vec<Interval>) {
    let mut spans = spans(samples, interval_length(samples, interval, base));
    let rates: Vec<Rate> = spans.iter().map(ReceiverSpan::goodput).collect();
    let top = top_rate(rates.iter().map(|rate| rate.as_f64()).collect());
    let mut best: f64 = 0.0;
    let mut grown = false;
    let mut intervals = Vec::with_capacity(spans.len());
    for (at, span) in spans.iter().enumerate() {
        let rate = rates[at].as_f64();
        let next = rates.get(at + 1).map_or(0.0, |next| next.as_f64());
        grown |= best > 0.0 && rate < GROWTH * best && next < GROWTH * best.max(rate);
        best = best.max(rate);
        let repairs = spans[at.saturating_sub(2)..(at + 2).min(spans.len())]
            .iter()
            .any(|near| near.out_of_order() > 0);
        let context = Context { base, top, growing: !grown && best > 0.0, repairs, hint };
        intervals.push(span.interval(&context));
    }
    let active = active(&intervals);
    intervals.truncate(active.end);
    intervals.drain(..active.start);
    spans.truncate(active.end);
    spans.drain(..active.start);
    (spans, intervals)
}

/// How long intervals are at least: a few round trips, in which most limits show their shape, but
/// fewer where there would be few intervals.
fn interval_length(samples: &[Sample], asked: Duration, base: Option<Duration>) -> Duration {
    let first = samples.first().map_or(Bytes::ZERO, received_by);
    let last = samples.last().map_or(Bytes::ZERO, received_by);
    let begins = samples.iter().find(|one| received_by(one) > first);
    let ends = samples.iter().find(|one| received_by(one) == last);
    let lasts = begins.zip(ends).map_or(Duration::ZERO, |(begins, ends)| ends.at.since(begins.at));
    let base = base.unwrap_or(Duration::ZERO);
    let longest = asked.max(MIN_INTERVAL).max(base.saturating_mul(ROUND_TRIPS));
    let shortest = MIN_INTERVAL_SHORT.max(base.saturating_mul(ROUND_TRIPS_SHORT));
    Duration::from_nanos(lasts.as_nanos() / SHORT).clamp(shortest.min(longest), longest)
}

/// The question for the judge about these spans. `intervals` are what the rules decided for them,
/// and `base` is the path's round trip.
fn case(
    spans: &[ReceiverSpan<'_>],
    intervals: &[Interval],
    base: Option<Duration>,
    hint: PathHint,
) -> Case {
    let loss = spans.iter().any(|span| span.out_of_order() > 0);
    let possible = Possible { loss, ..Possible::ALL };
    let inflation = traits::inflation(spans, base);
    let link = match LinkEvidence::new(hint.rate.is_some(), inflation.percentile(50)) {
        // Without a measured round trip, nobody knows what waited.
        LinkEvidence::None if !loss && (0.0..=UNQUEUED).contains(&inflation.percentile(90)) => {
            LinkEvidence::Against
        }
        link => link,
    };
    Case { traits: traits::traits(spans, intervals, base), possible, link, judges_parts: true }
}

/// The path's round trip: the least of what the socket measured with data of its own, and of what
/// it measured as a receiver.
fn base_rtt(samples: &[Sample]) -> Option<Duration> {
    let infos = samples.iter().filter_map(|sample| sample.info.as_ref());
    let seen = infos.flat_map(|info| [info.min_rtt, Some(info.rcv_rtt)]).flatten();
    seen.filter(|rtt| *rtt > Duration::ZERO).min()
}

/// What the whole transfer shows.
struct Context {
    base: Option<Duration>,
    /// The highest delivery rate of an interval, in bits a second.
    top: f64,
    growing: bool,
    /// Whether data came out of order in this interval or near it.
    repairs: bool,
    hint: PathHint,
}

/// Two samples and those between them.
struct ReceiverSpan<'a> {
    samples: &'a [Sample],
    first: &'a TcpInfo,
    last: &'a TcpInfo,
}

/// Consecutive samples with TCP_INFO, at least `interval` apart.
fn spans(samples: &[Sample], interval: Duration) -> Vec<ReceiverSpan<'_>> {
    let mut spans = Vec::new();
    let mut start = 0;
    for end in 1..samples.len() {
        let (Some(first), Some(last)) = (&samples[start].info, &samples[end].info) else {
            start = if samples[start].info.is_none() { end } else { start };
            continue;
        };
        if samples[end].at.since(samples[start].at) >= interval {
            spans.push(ReceiverSpan { samples: &samples[start..=end], first, last });
            start = end;
        }
    }
    spans
}

fn received(info: &TcpInfo) -> Bytes {
    info.bytes_received.unwrap_or(Bytes::ZERO)
}

/// What had been received when the sample was taken.
fn received_by(sample: &Sample) -> Bytes {
    sample.info.as_ref().map_or(Bytes::ZERO, received)
}

impl ReceiverSpan<'_> {
    fn length(&self) -> Duration {
        self.samples[self.samples.len() - 1].at.since(self.samples[0].at)
    }

    fn infos(&self) -> impl Iterator<Item = (&Sample, &TcpInfo)> {
        self.samples[1..].iter().filter_map(|sample| Some((sample, sample.info.as_ref()?)))
    }

    fn bytes(&self) -> Bytes {
        received(self.last).saturating_sub(received(self.first))
    }

    fn goodput(&self) -> Rate {
        self.bytes().per(self.length()).unwrap_or(Rate::ZERO)
    }

    fn out_of_order(&self) -> u64 {
        let [first, last] =
            [self.first, self.last].map(|info| u64::from(info.rcv_ooopack.unwrap_or(0)));
        last.saturating_sub(first)
    }

    /// The largest window that was advertised. Before Linux 6.2 only its bound is known. The kernel
    /// counts more than 16 bits and the scale can say.
    fn window(&self) -> Option<Window> {
        let windows = self.infos().map(|(_, info)| {
            let sayable = MAX_UNSCALED.bytes().get() << info.rcv_wscale.min(14);
            info.rcv_wnd.unwrap_or(info.rcv_ssthresh).min(Window::new(Bytes::new(sayable)))
        });
        windows.max().filter(|window| *window > Window::ZERO)
    }

    /// Whether `is` holds for more than half of the samples.
    fn mostly(&self, is: impl Fn(&Sample, &TcpInfo) -> bool) -> bool {
        let (yes, all) = self
            .infos()
            .fold((0, 0), |(yes, all), (s, info)| (yes + usize::from(is(s, info)), all + 1));
        2 * yes > all
    }

    /// Whether its application leaves most of the buffer unread.
    fn is_unread(&self) -> bool {
        self.mostly(|sample, info| {
            let memory = sample.memory.filter(|memory| memory.rcvbuf > Bytes::ZERO);
            let by_memory =
                memory.is_some_and(|m| m.rmem_alloc.as_f64() > UNREAD * m.rcvbuf.as_f64());
            let window = info.rcv_wnd.unwrap_or(info.rcv_ssthresh).bytes();
            let by_window = sample.rqueue.as_f64() >= UNREAD_OF_WINDOW * window.as_f64();
            sample.rqueue > Bytes::ZERO && (by_memory || by_window)
        })
    }

    /// The fraction of the time in pauses of more than [`PAUSE_RTTS`] round trips, and in silence
    /// of any length.
    fn silence(&self, base: Duration) -> (f64, f64) {
        let longest = base.as_secs_f64() * PAUSE_RTTS;
        let (mut pauses, mut silent, mut run) = (0.0, 0.0, 0.0);
        for pair in self.samples.windows(2) {
            let [before, after] = pair else { continue };
            let (Some(first), Some(last)) = (&before.info, &after.info) else { continue };
            let length = after.at.since(before.at).as_secs_f64();
            if received(last) > received(first) {
                pauses += if run > longest { run } else { 0.0 };
                run = 0.0;
            } else {
                run += length;
                silent += length;
            }
        }
        pauses += if run > longest { run } else { 0.0 };
        let length = self.length().as_secs_f64();
        if length > 0.0 { (pauses / length, silent / length) } else { (0.0, 0.0) }
    }

    /// The mean time from one burst to the next; `None` with fewer than two.
    fn burst_period(&self) -> Option<Duration> {
        let moved: Vec<bool> = self
            .samples
            .windows(2)
            .map(|pair| received_by(&pair[1]) > received_by(&pair[0]))
            .collect();
        let starts: Vec<usize> =
            (1..moved.len()).filter(|at| !moved[at - 1] && moved[*at]).collect();
        let (first, last) = (*starts.first()?, *starts.last()?);
        let time = self.samples[last].at.since(self.samples[first].at);
        (last > first).then(|| Duration::from_nanos(time.as_nanos() / (starts.len() as u64 - 1)))
    }

    /// Segments with data that arrived.
    fn segments(&self) -> Option<u64> {
        Some(self.last.data_segs_in?.wrapping_sub(self.first.data_segs_in?).into())
    }

    /// Whether the sender's segments are not full, so that its application writes in pieces.
    fn is_in_pieces(&self) -> bool {
        let Some(segments) = self.segments() else { return false };
        let full = self.last.rcv_mss.as_f64();
        segments > 4 && self.bytes().as_f64() < PIECES_OF_SEGMENT * full * segments as f64
    }

    fn interval(&self, context: &Context) -> Interval {
        let base = context.base.unwrap_or(Duration::ZERO);
        let rtt = self.infos().map(|(_, info)| info.rcv_rtt).filter(|rtt| *rtt > Duration::ZERO);
        let rtt = rtt.min().or(context.base);
        let window = self.window();
        let (pauses, silent) = self.silence(base.max(Duration::from_millis(10)));
        let goodput = self.goodput();
        let evidence = Evidence {
            goodput,
            in_flight: rtt.map_or(Bytes::ZERO, |rtt| goodput.over(rtt)),
            in_flight_mean: None,
            window,
            rtt,
            window_full: 0.0,
            idle: pauses,
            retransmissions: self.out_of_order(),
            sndbuf_limited: None,
            unread: self.infos().map(|(sample, _)| sample.rqueue).max(),
            beside: None,
        };
        let candidates = if self.is_unread() {
            vec![(Limit::ReceiverApplication, 1.0)]
        } else if context.repairs && pauses > 0.0 {
            vec![(self.sending(context, rtt, silent), 1.0)]
        } else {
            vec![
                (self.sending(context, rtt, silent), 1.0 - pauses),
                (Limit::SenderApplication, pauses),
            ]
        };
        Interval {
            start: self.samples[0].at,
            length: self.length(),
            candidates: ranked(candidates),
            evidence,
        }
    }

    /// What held the sender while it sent and the application read.
    fn sending(&self, context: &Context, rtt: Option<Duration>, silent: f64) -> Limit {
        let rate = self.goodput();
        let base = context.base.unwrap_or(Duration::ZERO);
        let is_full = rate.as_f64() >= AT_CAPACITY_SAMPLED * context.top;
        if context
            .hint
            .rate
            .is_some_and(|hint| rate.as_f64() >= super::thresholds::OF_HINT * hint.as_f64())
        {
            return Limit::Link;
        }
        let carries = rate.over(base).as_f64();
        if self.window().is_some_and(|window| carries >= OF_WINDOW * window.bytes().as_f64()) {
            return Limit::ReceiveWindow;
        }
        let queue =
            QUEUE_LEAST_SAMPLED.max(Duration::from_secs_f64(base.as_secs_f64() * QUEUE_PART));
        let has_queue = rtt.is_some_and(|rtt| rtt.saturating_sub(base) >= queue);
        if context.repairs {
            return if is_full && has_queue {
                Limit::Link
            } else {
                Limit::CongestionWindow(Cause::Loss)
            };
        }
        if self.is_in_pieces() {
            return Limit::SenderApplication;
        }
        if context.growing {
            return Limit::CongestionWindow(Cause::SlowStart);
        }
        if silent >= SILENT && base >= BURSTS_FROM {
            let period = self.burst_period().map_or(0.0, Duration::as_secs_f64);
            let is_at_rtt = (period - base.as_secs_f64()).abs() <= AT_RTT * base.as_secs_f64();
            return if is_at_rtt { Limit::SendBuffer } else { Limit::SenderApplication };
        }
        // A round trip that grows while the sender pauses is the time until it sends again.
        let is_busy = silent < SILENT_LINK;
        if has_queue && is_full && is_busy { Limit::Link } else { Limit::Unknown }
    }
}

#[cfg(test)]
mod tests;
