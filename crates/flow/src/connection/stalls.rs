//! Times in which a sender waited although it had data to send: for its retransmission timer, or
//! for a delayed ACK without which Nagle's algorithm (RFC 9293 section 3.7.4) holds a small segment
//! back.
//!
//! Most connections have no such waits, so the record is created at the first one.

use fullpipe_model::units::{Duration, Instant, column};

/// The least retransmission timeout of Linux (`TCP_RTO_MIN`), to which the round trip is added.
pub(super) const TIMER_LEAST: Duration = Duration::from_millis(200);
/// An ACK that comes this much later than the quickest was delayed (RFC 9293 section 3.8.6.3).
/// Linux delays by at least 40 ms (`TCP_DELACK_MIN`), other systems by up to 200 ms.
const DELAYED: Duration = Duration::from_millis(30);
/// Data that was held back leaves this soon after the ACK for which it waited.
const AT_ONCE: Duration = Duration::from_millis(2);

/// The waits of one direction's data.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Stalls {
    facts: StallFacts,
    /// The last ACK, if it was delayed and left nothing in flight: its time and its delay.
    last: Option<(Instant, Duration)>,
}

/// What a sender waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct StallFacts {
    /// Retransmission timeouts: segments with label `rto` after a silence at least 200 ms longer
    /// than the round trip of the handshake.
    pub timeouts: u32,
    /// Total length of the silences before them.
    #[serde(rename = "timeout_wait_us", serialize_with = "column::micros::serialize")]
    pub timeout_wait: Duration,
    /// ACKs that carried no data, left nothing in flight, covered at most two segments and came 30
    /// ms or more later than the quickest.
    pub late_acks: u32,
    /// Late ACKs that were followed at once by a segment that is not full: it had waited for the
    /// ACK.
    pub awaited_acks: u32,
    /// How much later than the quickest those awaited ACKs came, in total.
    #[serde(rename = "awaited_ack_wait_us", serialize_with = "column::micros::serialize")]
    pub awaited_ack_wait: Duration,
}

impl Stalls {
    /// Whether an ACK that came `late` after the quickest counts as delayed.
    pub fn is_delayed(late: Duration) -> bool {
        late >= DELAYED
    }

    /// Notes that a timer expired after `silence`.
    pub fn timed_out(&mut self, silence: Duration) {
        self.facts.timeouts = self.facts.timeouts.saturating_add(1);
        self.facts.timeout_wait = self.facts.timeout_wait.saturating_add(silence);
    }

    /// Notes a delayed ACK that left nothing in flight.
    pub fn acknowledged_late(&mut self, at: Instant, late: Duration) {
        self.facts.late_acks = self.facts.late_acks.saturating_add(1);
        self.last = Some((at, late));
    }

    /// Notes data. `lag` is the round trip between the capture point and the sender.
    pub fn sent(&mut self, at: Instant, lag: Duration, is_short: bool) {
        let Some((acked, late)) = self.last.take() else { return };
        let gap = at.since(acked);
        if is_short && gap <= lag.saturating_add(AT_ONCE) {
            self.facts.awaited_acks = self.facts.awaited_acks.saturating_add(1);
            self.facts.awaited_ack_wait = self.facts.awaited_ack_wait.saturating_add(late);
        }
    }

    /// The facts so far.
    pub fn facts(&self) -> StallFacts {
        self.facts
    }
}
