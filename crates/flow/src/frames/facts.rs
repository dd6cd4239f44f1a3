//! What HTTP/2's frames show of its windows.

use super::lines::GrantedLines;
use fullpipe_model::units::{Bytes, Duration, Instant, column};

/// The flow control of one direction's data.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct FlowControl {
    /// Whether its frames were read to the connection's end.
    pub is_whole: bool,
    /// Data in frames, with their padding: all that counts against a window.
    #[serde(rename = "data_bytes", with = "column::bytes")]
    pub data: Bytes,
    /// How many streams had some.
    pub streams: u64,
    /// From the first of it to the last.
    #[serde(rename = "time_us", with = "column::micros")]
    pub time: Duration,
    /// How long none of it was sent, until a window that was used up was opened again.
    #[serde(rename = "held_us", with = "column::micros")]
    pub held: Duration,
    /// How often data followed soon after a window was used up, for whatever it had waited.
    #[serde(skip)]
    pub used_up: u64,
    /// The window of all streams together.
    pub connection: FlowWindow,
    /// Those of single streams: the streams that waited longest for their own, the longest wait
    /// first.
    pub worst: Vec<FlowWindow>,
    /// When it was held, in the order of time.
    #[serde(skip)]
    pub spans: Vec<HeldSpan>,
    /// The windows over time, where graphs are drawn.
    #[serde(skip)]
    pub lines: Option<Box<GrantedLines>>,
}

/// A window, and how long its data waited for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct FlowWindow {
    /// The stream; 0 is the connection.
    pub stream: u32,
    /// What could be sent at most beyond what was granted for data that had arrived; when the
    /// longest wait for it began, if there was one.
    #[serde(rename = "window_bytes", with = "column::bytes")]
    pub window: Bytes,
    /// Its data.
    #[serde(rename = "data_bytes", with = "column::bytes")]
    pub data: Bytes,
    /// From its first data to its last.
    #[serde(rename = "time_us", with = "column::micros")]
    pub time: Duration,
    /// How often it was used up, and its sender went on as soon as more was granted.
    pub waits: u64,
    /// For how long, in total.
    #[serde(rename = "waited_us", with = "column::micros")]
    pub waited: Duration,
}

impl FlowWindow {
    /// The fraction of its time in which its data waited for it.
    pub fn part(&self) -> f64 {
        let whole = self.time.as_secs_f64();
        if whole > 0.0 { (self.waited.as_secs_f64() / whole).min(1.0) } else { 0.0 }
    }
}

/// A window that is used up no more often than this held nothing.
const USED_UP_MOST: u64 = 2;

impl FlowControl {
    /// The window that was waited for longest, of a stream or of the connection; `None` where none
    /// ever was. Of equals it is the stream's.
    pub fn most_waited(&self) -> Option<&FlowWindow> {
        let all = self.worst.first().into_iter().chain([&self.connection]);
        all.filter(|one| one.waits > 0).reduce(
            |one, other| {
                if other.waited > one.waited { other } else { one }
            },
        )
    }

    /// Whether no window ever held any of its data. One that is used up again and again may have,
    /// although what is seen of it is no wait: TCP keeps back the end of a frame (Nagle's
    /// algorithm) for as long as the grant takes.
    pub fn never_bound(&self) -> bool {
        self.is_whole && self.most_waited().is_none() && self.used_up <= USED_UP_MOST
    }

    /// Whether it leaves no room for evidence of another kind.
    pub fn is_the_answer(&self) -> bool {
        self.is_whole && (self.most_waited().is_some() || self.never_bound())
    }

    /// For how much of this time it was held.
    pub fn held_in(&self, start: Instant, length: Duration) -> Duration {
        let end = start + length;
        let first = self.spans.partition_point(|span| span.end <= start);
        let within = self.spans[first..].iter().take_while(|span| span.start < end);
        within.fold(Duration::ZERO, |sum, span| sum.saturating_add(span.within(start, end)))
    }
}

/// A span of time in which data was held. Where there are many, neighbours are one, which is held
/// for a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldSpan {
    /// When it begins.
    pub start: Instant,
    /// When it ends.
    pub end: Instant,
    /// How much of it.
    pub held: Duration,
}

impl HeldSpan {
    /// How much of what lies between these two times.
    fn within(&self, start: Instant, end: Instant) -> Duration {
        let whole = u128::from(self.end.since(self.start).as_nanos());
        let common = self.end.min(end).since(self.start.max(start)).as_nanos();
        let held = u128::from(self.held.as_nanos()) * u128::from(common);
        Duration::from_nanos(held.checked_div(whole).unwrap_or(0) as u64)
    }
}

/// The most spans that are kept of a direction.
const SPANS_MOST: usize = 1 << 12;

/// Spans in the order of time, in bounded memory.
#[derive(Debug, Default)]
pub(super) struct HeldSpans(Vec<HeldSpan>);

impl HeldSpans {
    /// Adds one that begins no earlier than the last ends.
    pub fn add(&mut self, start: Instant, end: Instant) {
        let start = self.0.last().map_or(start, |last| start.max(last.end));
        if start >= end {
            return;
        }
        if self.0.len() >= SPANS_MOST {
            let pairs = self.0.chunks(2).map(|pair| match *pair {
                [one, other] => HeldSpan {
                    start: one.start,
                    end: other.end,
                    held: one.held.saturating_add(other.held),
                },
                _ => pair[0],
            });
            self.0 = pairs.collect();
        }
        self.0.push(HeldSpan { start, end, held: end.since(start) });
    }

    /// All of them.
    pub fn finish(self) -> Vec<HeldSpan> {
        self.0
    }
}

/// Why the frames of a connection were not read, or not to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum FrameStop {
    /// It is another protocol, which is no fault.
    NotHttp2,
    /// The capture misses some of its data.
    Gap,
    /// The capture has only the beginning of its packets.
    Cut,
    /// So many connections are read at a time already.
    TooMany,
    /// A suite of TLS that is not read.
    Cipher,
    /// A record does not open under the keys.
    Undecrypted,
    /// Frames that contradict the protocol.
    Malformed,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// However many there are: as much is held in all, and none of it where there was none.
        #[test]
        fn spans_keep_their_sum_in_bounded_memory(
            gaps in proptest::collection::vec((0_u64..9, 1_u64..9), 1..20_000),
        ) {
            let mut spans = HeldSpans::default();
            let mut at = Instant::from_nanos(1);
            let mut sum = Duration::ZERO;
            for (before, held) in gaps {
                let start = at + Duration::from_millis(before);
                at = start + Duration::from_millis(held);
                spans.add(start, at);
                sum = sum.saturating_add(Duration::from_millis(held));
            }
            let spans = spans.finish();
            prop_assert!(spans.len() <= SPANS_MOST);
            let held = spans.iter().fold(Duration::ZERO, |sum, one| sum.saturating_add(one.held));
            prop_assert_eq!(held, sum);
            prop_assert!(spans.windows(2).all(|pair| pair[0].end <= pair[1].start));
        }
    }
}
