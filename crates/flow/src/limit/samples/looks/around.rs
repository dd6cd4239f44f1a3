//! What several looks at a socket tell together.
//!
//! One look is a moment. Ten of them show how often the congestion window was full, how often data
//! waited, how often the window was smaller than before. What was acknowledged between the first
//! and the last shows the mean amount in flight, because that is the rate times the round trip
//! (Little's law), and how many segments were lost. Of loss the laws of Reno and CUBIC say how much
//! it leaves in flight: where much more is in flight, the losses came many at a time, as a full
//! queue or a policer drops.

use crate::limit::samples::{SampleSpan, acked, fills, nothing_to_send};
use crate::limit::thresholds::{CLOSED_TO, QUEUE_LEAST_SAMPLED};
use fullpipe_model::law::{cubic, mathis};
use fullpipe_model::limit::{Cause, Limit};
use fullpipe_model::observe::{Sample, TcpInfo};
use fullpipe_model::units::{Bytes, Duration, Probability, Rate, Window};

/// So many spans, and so much time, have one answer to what no counter shows.
const SPANS: usize = 8;
const TIME: Duration = Duration::from_secs(4);

// The thresholds were fixed on looks every 0.25 s and every second at the senders of `fullpipe lab
// generate` with the seeds 71 to 74; docs/src/ss.md has the figures of a seed that was not used.

/// What is so at this part of the looks is so all the time.
const MOSTLY: f64 = 0.6;
/// A writer that waits for its send buffer is woken when a third of it is free
/// (`sk_stream_is_writeable`), so the queue has at least this part of it.
const BLOCKED: f64 = 0.64;
/// A reader closes its window: at this part of the looks it is below [`CLOSED_TO`] of what it is at
/// its widest. That is the widest fifth of the looks: a window that only began wider is none.
const SHRINKS: f64 = 0.3;
const WIDEST: f64 = 0.8;
/// A window that holds the sender has at least this part of it in flight on average. One that the
/// receiver's kernel tunes by what is read has twice as much as is in flight.
const OF_WINDOW: f64 = 0.75;
/// A queue stands where the median round trip exceeds the least by this factor.
const QUEUED: f64 = 1.25;
const QUEUED_LITTLE: f64 = 1.1;
/// Random losses leave in flight no more than this multiple of what the laws say.
const BY_LAW: f64 = 5.0;
/// Losses come in bursts where the numbers of them in equal spans differ by this much more than
/// those of independent ones (their variance is then their mean), and a full queue or a policer
/// drops in bursts. So do some radio links, but with those the rate differs, too, by more than
/// [`STEADY`] of its mean.
const IN_BURSTS: f64 = 4.0;
const STEADY: f64 = 0.45;
/// A rate that hardly differs at all is a link's, with fewer bursts.
const NEARLY_ONE: f64 = 0.1;
const SOME_BURSTS: f64 = 2.0;
/// A congestion window is used where this part of it is in flight on average, and used up where
/// [`ALL_OF_CWND`] is.
const OF_CWND: f64 = 0.7;
const ALL_OF_CWND: f64 = 0.8;
/// An application that writes in blocks carries rates that differ by this much of their mean.
const IN_BLOCKS: f64 = 0.5;
/// What grew by this factor grows.
const GROWN: f64 = 1.5;
/// A sender that is busy for less of the time has an application that pauses.
const NEVER_IDLE: f64 = 0.9;
/// A counter that ran for a smaller part of the time did not run.
const COUNTED: f64 = 0.02;

/// Consecutive spans of time with the looks in them.
pub(super) struct Around<'a> {
    looks: Vec<(&'a Sample, &'a TcpInfo)>,
    spans: &'a [SampleSpan<'a>],
    first: &'a TcpInfo,
    last: &'a TcpInfo,
    /// The peer's windows, in order of their sizes.
    windows: Vec<Bytes>,
}

/// The numbers at which groups of spans end that have one answer each.
pub(super) fn group_ends(spans: &[SampleSpan<'_>]) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut from = 0;
    for (at, span) in spans.iter().enumerate() {
        if at + 1 - from >= SPANS && span.end().since(spans[from].start()) >= TIME {
            ends.push(at + 1);
            from = at + 1;
        }
    }
    // What is left over after the last whole group belongs to it.
    ends.pop();
    ends.push(spans.len());
    ends
}

impl<'a> Around<'a> {
    /// Of these spans; `None` of none.
    pub(super) fn new(spans: &'a [SampleSpan<'a>]) -> Option<Self> {
        let (first, last) = (spans.first()?.first, spans.last()?.last);
        let looks: Vec<_> = spans.iter().flat_map(SampleSpan::infos).collect();
        let windows = looks.iter().filter_map(|(_, info)| info.snd_wnd).map(Window::bytes);
        let mut windows: Vec<Bytes> = windows.collect();
        windows.sort_unstable();
        Some(Around { looks, spans, first, last, windows })
    }

    /// Whether a window that held the sender is one that its peer's application closes.
    pub(super) fn is_closed_by_reader(&self) -> bool {
        let count = self.windows.len();
        let wide = ((count as f64 * WIDEST) as usize).min(count.saturating_sub(1));
        let Some(widest) = self.windows.get(wide) else { return false };
        let closed = self.windows.partition_point(|one| one.as_f64() < CLOSED_TO * widest.as_f64());
        closed as f64 >= SHRINKS * count as f64
    }

    /// Whether there was nothing to send at most of the looks.
    pub(super) fn is_empty(&self) -> bool {
        self.part(|(_, info)| nothing_to_send(info)) >= MOSTLY
    }

    /// What keeps the sender from having data to send: its buffer, or its application.
    pub(super) fn unsent(&self) -> Limit {
        if self.counted(|info| info.sndbuf_limited) >= COUNTED {
            return Limit::SendBuffer;
        }
        let empty = self.looks.iter().filter(|(_, info)| nothing_to_send(info));
        let (mut all, mut blocked) = (0, 0);
        for memory in empty.filter_map(|(sample, _)| sample.memory) {
            all += 1;
            let most = BLOCKED * memory.sndbuf.as_f64();
            blocked += usize::from(memory.wmem_queued.as_f64() >= most);
        }
        // One that pauses writes more than the buffer takes at once, and finds it full then.
        let has_pauses =
            self.first.busy_time.is_none() || self.counted(|info| info.busy_time) < NEVER_IDLE;
        // Without its memory nobody knows: one that is never idle writes at one rate, or waits.
        let is_full = match all {
            0 => self.spread() < IN_BLOCKS,
            _ => blocked as f64 >= MOSTLY * f64::from(all),
        };
        if is_full && !has_pauses { Limit::SendBuffer } else { Limit::SenderApplication }
    }

    /// Whether a link is full, whatever else is: a queue stands, and the congestion window is used
    /// up.
    pub(super) fn is_full_link(&self) -> bool {
        self.is_queued() && self.of_cwnd() >= ALL_OF_CWND
    }

    /// Whether a link is full by its one rate, while round trips differ.
    pub(super) fn is_steady_and_queued(&self) -> bool {
        let base = self.last.min_rtt.unwrap_or(Duration::MAX).as_secs_f64();
        self.spread() < NEARLY_ONE && self.median_rtt().as_secs_f64() >= QUEUED_LITTLE * base
    }

    /// Whether more than the window allows would only stand in a queue.
    pub(super) fn is_queued_at_window(&self) -> bool {
        let median = self.median_window().unwrap_or(Bytes::ZERO);
        self.is_queued() && self.in_flight() <= median
    }

    /// What holds data that waits, where no counter runs.
    pub(super) fn waiting(&self) -> Limit {
        match () {
            () if self.is_window_full() && self.is_closed_by_reader() => Limit::ReceiverApplication,
            () if self.is_queued() => Limit::Link,
            () if self.is_window_full() => Limit::ReceiveWindow,
            () if self.lost() > 0 => self.by_loss(),
            () if self.is_starting() => Limit::CongestionWindow(Cause::SlowStart),
            () if self.is_cwnd_used() => {
                let was_lost = self.last.total_retrans > 0;
                let cause = if was_lost { Cause::Loss } else { Cause::SlowStart };
                Limit::CongestionWindow(cause)
            }
            // There is room in both windows, so pacing holds it: at the rate that congestion
            // control measured.
            () if self.is_paced() && self.part(|(_, info)| !nothing_to_send(info)) >= MOSTLY => {
                Limit::Link
            }
            () => Limit::Unknown,
        }
    }

    /// What losses mean: that random ones keep the congestion window small, or that a link drops
    /// what it cannot carry.
    fn by_loss(&self) -> Limit {
        let sent: f64 = self.spans.iter().map(sent).sum();
        let p = Probability::new(f64::from(self.lost()) / sent.max(1.0));
        let Some(p) = p.filter(|_| !self.is_paced()) else { return Limit::Link };
        let (bursts, spread) = (self.bursts(), self.spread());
        let is_dropped = bursts >= IN_BURSTS && spread < STEADY;
        if is_dropped || (bursts >= SOME_BURSTS && spread < NEARLY_ONE) {
            return Limit::Link;
        }
        let (mss, rtt) = (self.last.snd_mss, self.rtt());
        let window = match self.congestion_control() {
            Some("reno") => mathis::congestion_window(mss, p),
            _ => cubic::congestion_window(mss, rtt, p),
        };
        let is_lawful = self.in_flight().as_f64() <= BY_LAW * window.bytes().as_f64();
        if is_lawful || spread >= STEADY {
            Limit::CongestionWindow(Cause::Loss)
        } else {
            Limit::Link
        }
    }

    /// By how much the numbers of losses in the spans differ: the mean square of what is more or
    /// less than expected, as a multiple of what is expected. It is one of independent losses.
    fn bursts(&self) -> f64 {
        let parts = self.spans.iter().map(|span| (span.retransmissions() as f64, sent(span)));
        let (again, all) =
            parts.clone().fold((0.0, 0.0), |sums, (again, sent)| (sums.0 + again, sums.1 + sent));
        if again == 0.0 || all == 0.0 {
            return 0.0;
        }
        parts.map(|(here, sent)| (here - again / all * sent).powi(2)).sum::<f64>() / again
    }

    /// Whether congestion control sends at a rate that it measured, whatever is lost.
    fn is_paced(&self) -> bool {
        self.congestion_control().is_some_and(|name| name.starts_with("bbr"))
    }

    fn congestion_control(&self) -> Option<&str> {
        self.looks.last().and_then(|(sample, _)| sample.congestion_control.as_deref())
    }

    fn is_window_full(&self) -> bool {
        let Some(median) = self.median_window() else { return false };
        // Where the kernel counts the window's time and found none, this is not it.
        let may_be =
            self.last.busy_time.is_none() || self.counted(|info| info.rwnd_limited) >= COUNTED;
        may_be && self.in_flight().as_f64() >= OF_WINDOW * median.as_f64()
    }

    fn median_window(&self) -> Option<Bytes> {
        self.windows.get(self.windows.len() / 2).copied()
    }

    fn is_cwnd_used(&self) -> bool {
        self.of_cwnd() >= OF_CWND || self.part(|(_, info)| fills(info)) >= MOSTLY
    }

    /// The part of the congestion window that is in flight on average.
    fn of_cwnd(&self) -> f64 {
        let segments: f64 = self.looks.iter().map(|(_, info)| f64::from(info.snd_cwnd)).sum();
        let mean = segments / self.looks.len().max(1) as f64 * self.last.snd_mss.as_f64();
        if mean > 0.0 { self.in_flight().as_f64() / mean } else { 0.0 }
    }

    /// By how much the rates of the spans differ: their deviation, as a part of their mean.
    fn spread(&self) -> f64 {
        let rates = self.spans.iter().map(|span| span.goodput().as_f64());
        let (count, sum, squares) = rates.fold((0.0, 0.0, 0.0), |(count, sum, squares), rate| {
            (count + 1.0, sum + rate, squares + rate * rate)
        });
        let mean = sum / f64::max(count, 1.0);
        let variance = squares / f64::max(count, 1.0) - mean * mean;
        if mean > 0.0 { variance.max(0.0).sqrt() / mean } else { 0.0 }
    }

    fn is_queued(&self) -> bool {
        let Some(base) = self.last.min_rtt else { return false };
        let holds = self.goodput().over(base);
        let long = Duration::from_secs_f64(base.as_secs_f64() * QUEUED);
        let least = long.max(base.saturating_add(QUEUE_LEAST_SAMPLED));
        self.median_rtt() >= least && self.part(|(_, info)| info.in_flight() >= holds) >= MOSTLY
    }

    /// Whether a slow start goes on: below its threshold, and growing.
    fn is_starting(&self) -> bool {
        let windows = [self.first.snd_cwnd, self.last.snd_cwnd].map(f64::from);
        let rates = [self.spans.first(), self.spans.last()]
            .map(|span| span.map_or(0.0, |span| span.goodput().as_f64()));
        let grows = windows[1] >= GROWN * windows[0] || rates[1] >= GROWN * rates[0];
        self.part(|(_, info)| is_below_threshold(info)) >= MOSTLY && grows
    }

    /// Segments that were lost: those that arrived twice were sent again in vain.
    fn lost(&self) -> u32 {
        let again = self.last.total_retrans.saturating_sub(self.first.total_retrans);
        again.saturating_sub(rise(self.first.dsack_dups, self.last.dsack_dups))
    }

    fn length(&self) -> Duration {
        self.spans.iter().map(SampleSpan::length).sum()
    }

    fn moved(&self) -> Bytes {
        acked(self.last).saturating_sub(acked(self.first))
    }

    fn goodput(&self) -> Rate {
        self.moved().per(self.length()).unwrap_or(Rate::ZERO)
    }

    /// The mean amount in flight, by Little's law.
    pub(super) fn in_flight(&self) -> Bytes {
        self.goodput().over(self.rtt())
    }

    /// The mean round trip.
    fn rtt(&self) -> Duration {
        let sum: f64 = self.looks.iter().map(|(_, info)| info.rtt.as_secs_f64()).sum();
        Duration::from_secs_f64(sum / self.looks.len().max(1) as f64)
    }

    fn median_rtt(&self) -> Duration {
        let mut rtts: Vec<Duration> = self.looks.iter().map(|(_, info)| info.rtt).collect();
        rtts.sort_unstable();
        rtts.get(rtts.len() / 2).copied().unwrap_or(Duration::ZERO)
    }

    /// The part of the looks at which something is so.
    fn part(&self, is: impl Fn(&(&Sample, &TcpInfo)) -> bool) -> f64 {
        let so = self.looks.iter().filter(|look| is(look)).count();
        so as f64 / self.looks.len().max(1) as f64
    }

    /// The part of the time for which a counter ran.
    fn counted(&self, counter: fn(&TcpInfo) -> Option<Duration>) -> f64 {
        let (Some(first), Some(last)) = (counter(self.first), counter(self.last)) else {
            return 0.0;
        };
        let length = self.length().as_secs_f64();
        let ran = last.saturating_sub(first).as_secs_f64();
        if length > 0.0 { ran / length } else { 0.0 }
    }
}

/// Whether a slow start may go on. ss prints no threshold while there is none.
pub(super) fn is_below_threshold(info: &TcpInfo) -> bool {
    info.snd_ssthresh == 0 || info.snd_cwnd < info.snd_ssthresh
}

/// Segments that were sent in a span, again or not.
fn sent(span: &SampleSpan<'_>) -> f64 {
    let counted = rise(span.first.data_segs_out, span.last.data_segs_out);
    let acked = acked(span.last).saturating_sub(acked(span.first));
    f64::from(counted).max(acked.as_f64() / span.last.snd_mss.as_f64().max(1.0))
}

fn rise(first: Option<u32>, last: Option<u32>) -> u32 {
    last.unwrap_or(0).saturating_sub(first.unwrap_or(0))
}
