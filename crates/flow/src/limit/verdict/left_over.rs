//! What is left of the judge's opinion once what it finds likeliest cannot be.

use super::Verdict;
use crate::limit::Limit;
use crate::limit::judge::{OVERRULED, Opinion, SURE};

/// A writer that pauses for less of the time gives little by writing sooner.
const PAUSES_LEAST: f64 = 0.15;

impl Verdict {
    /// Whether the opinion names a writer who hardly pauses, where the rules name a link, something
    /// was dropped, and only the judge's likeliest was ruled out: blocks that a policer cuts look
    /// like a link with a queue, and drops without one deny the queue.
    pub(super) fn is_left_over(&self, opinion: &Opinion, limit: Limit) -> bool {
        limit == Limit::SenderApplication
            && opinion.ruled_out > SURE
            && self.limited_by().limit == Limit::Link
            && self.judged.is_none_or(|judged| judged.allows_link())
            && self.intervals.iter().any(|one| one.evidence.retransmissions > 0)
            && self.idle() < PAUSES_LEAST
    }

    /// Something dropped, and the rules' word stands.
    pub(super) fn keep_the_link(&mut self) {
        self.turn_to(Limit::Link, 0..self.intervals.len(), |_| true);
        self.confidence = OVERRULED;
    }

    /// The part of the time in which nothing was in flight although the window had room.
    fn idle(&self) -> f64 {
        let idle = self.intervals.iter().map(|one| one.evidence.idle * one.length.as_secs_f64());
        idle.sum::<f64>() / self.time.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}
