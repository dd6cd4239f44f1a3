//! What else an interval could have been: the evidence that a limit needs to be named after the one
//! that was decided.

use super::super::thresholds::{BOUND_SEEN, MOST, PAUSED, PIECES, PLATEAU};
use super::{CongestionCause, CongestionPhase, Limit, Signs, Transfer};

impl Transfer<'_> {
    /// Which other limits would explain the interval, in the order of the rules. A rival needs
    /// evidence for it, and none against it. No window, buffer or path holds a sender that has
    /// nothing in flight. Where the receive window left no room, limits inside the sender are ruled
    /// out, except a repair that was waited for. For the others, growth and a fixed bound are
    /// evidence only where data left as ACKs made room for it.
    pub(super) fn rivals(
        &self,
        at: usize,
        signs: &Signs,
        phase: CongestionPhase,
    ) -> impl Iterator<Item = Limit> + use<> {
        const LOSS: Limit = Limit::CongestionWindow(CongestionCause::Loss);
        let f = &self.features[at];
        let is_idle = f.part(f.idle) > MOST;
        let is_shut = f.part(f.full) > MOST;
        let Signs { lost, is_at_capacity, is_on_plateau, receiver } = *signs;
        let is_reduced = phase == CongestionPhase::AfterLoss && !is_shut && self.is_reduced(at);
        let is_own_pace = if lost { f.part(f.idle) > PAUSED } else { self.is_own_pace(at) };
        let is_clocked = !is_shut && !lost && self.is_clocked(at);
        let rules = [
            (is_at_capacity || is_on_plateau).then_some(Limit::Link),
            receiver,
            (lost || is_reduced).then_some(LOSS),
            (is_own_pace && !is_shut).then_some(Limit::SenderApplication),
            (is_clocked && phase == CongestionPhase::Start && self.grows(at))
                .then_some(Limit::CongestionWindow(CongestionCause::SlowStart)),
            // If the bound is the window's, it says nothing about the buffer.
            (is_clocked && receiver.is_none() && self.is_at_bound(at)).then_some(Limit::SendBuffer),
        ];
        rules.into_iter().flatten().filter(move |_| !is_idle)
    }

    /// Whether data left as ACKs made room for it, in full segments: the sender had more, and
    /// something held it.
    fn is_clocked(&self, at: usize) -> bool {
        let f = &self.features[at];
        let is_full = f64::from(f.short) < PIECES * f64::from(f.segments);
        is_full && f.unprompted as f64 <= MOST * f.sent as f64 && f.part(f.idle) <= PAUSED
    }

    /// Whether the amount in flight stands at a bound to which it returned round trip after round
    /// trip. Congestion control that still grows passes a bound, and the two can be told apart only
    /// after a few round trips.
    fn is_at_bound(&self, at: usize) -> bool {
        let now = self.features[at].in_flight_max.as_f64();
        let is_there = now >= PLATEAU * self.plateau && self.is_steady(at) && !self.grows(at);
        is_there && self.is_bounded && self.at_plateau >= BOUND_SEEN
    }
}
