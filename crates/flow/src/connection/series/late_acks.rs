//! ACKs that a receiver keeps back because its application does not read.
//!
//! A receiver acknowledges every second segment at once (RFC 9293 section 3.8.6.3). Linux does so
//! only where that opens the window (`__tcp_ack_snd_check`). While data waits to be read, an ACK
//! would not, and is sent 40 ms later. A sender whose flights are smaller than the window waits for
//! it each time, although the window never closes.

use super::{AckWindow, HeldAck, Series};
use fullpipe_model::units::{Duration, Instant};

/// An ACK that is late by less may have waited for a slow link, or for others that it was sent
/// with.
const LATE_LEAST: Duration = Duration::from_millis(20);

/// What tells whether an ACK is late.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::connection) struct LateAcks {
    /// When the latest ACK of new data passed, and how much it left to acknowledge.
    heard_at: Instant,
    left: u64,
    /// When new data passed for the first time since.
    sent_at: Option<Instant>,
}

impl LateAcks {
    /// Notes new data.
    pub fn sent(&mut self, at: Instant) {
        self.sent_at.get_or_insert(at);
    }

    /// Notes an ACK of new data that leaves so many bytes to acknowledge. Returns since when the
    /// receiver could have sent it: since the ACK before, if `two` segments were on their way then,
    /// otherwise since it got data, which was acknowledged here `beyond` after that data passed at
    /// the earliest.
    fn heard(&mut self, at: Instant, left: u64, two: u64, beyond: Duration) -> Option<Instant> {
        let before = std::mem::replace(self, LateAcks { heard_at: at, left, sent_at: None });
        if before.left >= two {
            return Some(before.heard_at);
        }
        before.sent_at.map(|sent_at| before.heard_at.max(sent_at + beyond))
    }
}

impl Series {
    /// Notes for how long a receiver kept an ACK back that opens its window by at most half of what
    /// it acknowledges. If it acknowledges a part of what had passed, that part of the time counts.
    pub(super) fn note_late(&mut self, at: Instant, late: &HeldAck) {
        let (Some(least), Some(trains)) = (self.least.get(), &mut self.trains) else { return };
        let AckWindow::Bytes(window) = late.window else { return };
        let (before, edge) = match (self.held.back().map(|held| (held.ack, held.window)), self.edge)
        {
            (Some((ack, AckWindow::Bytes(window))), _) => (ack, ack + window),
            (None, Some(edge)) => (self.una, edge.now),
            _ => return,
        };
        let acknowledged = u64::from(late.ack.distance(before));
        if acknowledged == 0 {
            return;
        }
        let (two, left) = (2 * u64::from(self.segment), u64::from(self.next.distance(late.ack)));
        let beyond = least.saturating_sub(self.lag_least);
        let since = trains.late_acks.heard(at, left, two, beyond);
        let opened = u64::from((late.ack + window).distance(edge));
        let waits_for_reader = acknowledged >= two && 2 * opened <= acknowledged;
        let time = since.map_or(Duration::ZERO, |since| at.since(since));
        if waits_for_reader && time >= LATE_LEAST {
            let part = acknowledged as f64 / (acknowledged + left) as f64;
            let time = Duration::from_secs_f64(time.as_secs_f64() * part);
            self.advance(at);
            let since = Instant::from_nanos(at.as_nanos().saturating_sub(time.as_nanos()));
            for (one, time) in self.intervals_since(since, at) {
                let late = one.late_acks.saturating_add(time.as_millis_f64().round() as u16);
                one.late_acks = late;
            }
        }
    }
}
