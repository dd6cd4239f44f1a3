//! Data that waits for an answer of the peer's application, although the peer's kernel has
//! acknowledged the data before it and the window is open. A protocol with a window of its own
//! (SSH, HTTP/2, SMB) sends like that, and so does one that serves one request after another.
//!
//! Captured at the sender, an ACK that lets congestion control or the send buffer go on is followed
//! by data at once. Here, ACKs without data are followed by nothing, and a segment with data is.
//! Whether the answer released the data shows in one of two ways: much left before anything else
//! came back, or the data before the pause ended with a segment that is not full, as it does when
//! the application had no more. The second also shows when data is paced.

use fullpipe_model::units::{Duration, Instant};

/// Data that waited for an answer leaves this soon after it, or within this fraction of a round
/// trip: the application has to be woken, on a machine that does other work too.
pub(super) const AT_ONCE: Duration = Duration::from_millis(2);
pub(super) const AT_ONCE_PART: u64 = 16;
/// A shorter silence is no pause.
const PAUSE_LEAST: Duration = Duration::from_millis(2);
/// An answer releases at least this many segments. An ACK that congestion control waits for
/// releases one or two.
const RELEASED_LEAST: u64 = 4;

/// The pauses of one direction's data.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Answers {
    facts: AnswerFacts,
    /// When the peer last sent data.
    answered_at: Instant,
    /// When data was last sent.
    sent_at: Option<Instant>,
    /// Whether that data ended with a segment that is not full.
    is_cut: bool,
    /// The last pause, if an answer ended it; and what was sent after it.
    last: Option<Pause>,
    released: u64,
}

/// New data of one packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct NewData {
    pub bytes: u64,
    /// The largest segment so far.
    pub segment: u32,
    /// The packet ends with a segment that is not full.
    pub is_cut: bool,
}

#[derive(Debug, Clone, Copy)]
struct Pause {
    silence: Duration,
    /// The data before it ended with a segment that is not full.
    follows_cut: bool,
}

/// Pauses in sending, and those that ended with an answer of the peer's application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AnswerFacts {
    /// How many pauses there were: silences of half a round trip or more.
    pub pauses: u32,
    /// Pauses of about a round trip that ended at once after data from the other end, with four
    /// segments or more: before anything else came from there, or after data that ended with a
    /// segment that is not full.
    pub awaited: u32,
    /// Their total length.
    pub wait: Duration,
}

impl Answers {
    /// Notes that the other end sent data.
    pub fn answered(&mut self, at: Instant) {
        self.answered_at = at;
    }

    /// Notes new data. `rtt` is the least round trip so far.
    pub fn sent(&mut self, at: Instant, data: NewData, rtt: Duration) {
        let silence = self.sent_at.map_or(Duration::ZERO, |before| at.since(before));
        self.sent_at = Some(self.sent_at.map_or(at, |before| before.max(at)));
        if silence >= PAUSE_LEAST && silence.saturating_mul(2) >= rtt {
            self.facts.pauses = self.facts.pauses.saturating_add(1);
            // An application that thinks before it answers takes longer.
            let longest = rtt.saturating_mul(3).saturating_add(PAUSE_LEAST);
            let soon = AT_ONCE.max(Duration::from_nanos(rtt.as_nanos() / AT_ONCE_PART));
            let is_awaited =
                at.since(self.answered_at) <= soon && silence.saturating_mul(2) <= longest;
            let pause = Pause { silence, follows_cut: self.is_cut };
            (self.last, self.released) = (is_awaited.then_some(pause), 0);
        }
        self.is_cut = data.is_cut;
        self.released = self.released.saturating_add(data.bytes);
        let is_enough = self.released >= RELEASED_LEAST * u64::from(data.segment);
        if let Some(Pause { silence, .. }) = self.last.filter(|_| is_enough) {
            self.last = None;
            self.facts.awaited = self.facts.awaited.saturating_add(1);
            self.facts.wait = self.facts.wait.saturating_add(silence);
        }
    }

    /// Notes that something came from the other end: what is sent from now on may be due to that.
    pub fn heard(&mut self) {
        self.last = self.last.filter(|pause| pause.follows_cut);
    }

    /// The facts so far.
    pub fn facts(&self) -> AnswerFacts {
        self.facts
    }
}
