//! The time after the last data: until an end closed, or the capture ended.

use super::{AT_ONCE, Counted, Lags, Ledger, LedgerPhase, PUSHED, Spent, UNSURE, index};
use fullpipe_model::units::{Duration, Instant};

/// Tries without an answer after which an end is gone.
const GONE_AFTER: u8 = 2;
/// The longest time between two tries (`TCP_RTO_MAX`): who does not try again gave up.
const GIVES_UP_AFTER: Duration = Duration::from_secs(120);
/// What a handshake may take longer than data.
const LATE: Duration = Duration::from_millis(50);
/// The time until the second SYN (RFC 6298 section 2.1).
const SYN_TIMER: Duration = Duration::from_secs(1);

/// How far a capture saw a connection.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct CapturedSpan {
    /// When its last packet was captured.
    pub last: Instant,
    /// How far the capture went.
    pub until: Instant,
    /// Whether both ends were captured.
    pub both_ends: bool,
}

impl Ledger {
    /// Whether the client asked, and was not answered. One that goes on without being answered does
    /// not wait for answers.
    fn is_asked(&self, lags: Lags) -> bool {
        let takes_turns = self.turns > 0 || self.requests <= 1;
        let pauses = self.rare.as_ref().map_or(0, |rare| rare.pauses);
        self.speaker == lags.client && pauses == 0 && takes_turns && self.flags & UNSURE == 0
    }

    /// Whether what the server sent last does not end a write: there was to be more.
    fn is_broken_off(&self, lags: Lags) -> bool {
        self.speaker == 1 - lags.client && self.flags & PUSHED == 0
    }

    /// The end that does not answer any more however often it is tried, and the time counted as
    /// timeouts since it did.
    fn gone(&self) -> Option<(u8, Duration)> {
        let rare = self.rare.as_ref().filter(|rare| rare.tries >= GONE_AFTER)?;
        Some((1 - rare.tries_by, rare.unheard))
    }

    /// Counts the time for which an end has been tried as that of an end that is gone.
    fn is_gone(&mut self, at: Instant) {
        let Some((gone, unheard)) = self.gone() else { return };
        self.shift(Spent::Timeout, Spent::Gone(gone), unheard);
        self.rare().unheard = Duration::ZERO;
        self.spend_all(Spent::Gone(gone), at);
    }

    /// The end whose window is shut, and since when.
    fn shut_now(&self) -> Option<(Instant, u8)> {
        self.rare.as_ref().and_then(|rare| rare.shut)
    }

    /// Divides the time from the last data to `at`, when an end closed or the capture ended.
    pub(super) fn ended(&mut self, at: Instant, closed_by: Option<u8>, lags: Lags) {
        let silence = at.since(self.at);
        if let Some((_, reader)) = self.shut_now() {
            let shut = self.shut_until(at, lags);
            if shut > Duration::ZERO {
                self.spend(Spent::Transfer(1 - reader), silence.saturating_sub(shut));
                return self.spend_all(Spent::WindowShut(reader), at);
            }
        }
        if self.gone().is_some_and(|(gone, _)| closed_by != Some(gone)) {
            return self.is_gone(at);
        }
        let Some(speaker) = self.speaker() else { return self.spend_all(Spent::Idle, at) };
        // What a client sends as it closes is a goodbye (TLS's close_notify), if nobody answers it.
        let says_goodbye = closed_by == Some(lags.client) && speaker == lags.client;
        let counted = u32::from(self.flags & UNSURE == 0);
        if says_goodbye && self.requests > counted && silence <= AT_ONCE {
            self.requests -= counted;
            let way = lags.to[index(speaker)];
            self.shift(Spent::Turn(speaker), Spent::Closing, way);
            self.flags |= UNSURE;
        }
        let way = lags.to[index(1 - speaker)];
        if self.is_asked(lags) && (closed_by.is_some() || silence > lags.silence()) {
            self.spend(self.way_to(1 - speaker), silence.min(way));
            return self.spend_all(Spent::Thinks(1 - speaker), at);
        }
        let acknowledged = self.until_acked().unwrap_or(way);
        self.spend(Spent::Closing, silence.min(acknowledged));
        let is_long = at.since(self.at) > lags.silence();
        let breaks_off = self.is_broken_off(lags) && closed_by.is_none() && is_long;
        self.spend_all(if breaks_off { Spent::Paused(speaker) } else { Spent::Idle }, at);
    }

    /// What was counted, the client as end 0.
    pub fn finish(mut self, span: CapturedSpan, lags: Lags) -> Counted {
        let CapturedSpan { last, until, both_ends } = span;
        let until = until.max(last);
        let mut waiting = None;
        match self.phase {
            LedgerPhase::New => self.spend_all(Spent::NotCaptured, last),
            LedgerPhase::SynSent => {
                // The next SYN would come after twice the time of the one before.
                let gap = self.sums.of(Spent::SynRepeated).saturating_add(SYN_TIMER);
                let waits = until.since(self.at) <= gap.saturating_mul(2);
                self.shift(Spent::SynRepeated, Spent::SynUnanswered, Duration::MAX);
                self.spend_all(Spent::SynUnanswered, if waits { until } else { last });
                waiting = Some(self.sums.total()).filter(|time| *time > Duration::ZERO);
            }
            LedgerPhase::SynAnswered => self.spend_all(Spent::Connect, last),
            // An end that has closed tries on.
            LedgerPhase::Closed if self.gone().is_some_and(|(_, tried)| tried > Duration::ZERO) => {
                self.is_gone(last);
            }
            LedgerPhase::Closed => self.spend_all(Spent::Closing, last),
            LedgerPhase::Open => {
                // Of an end that was not captured nothing is known but that it was tried.
                let may_wait = both_ends || self.gone().is_some();
                let waits = may_wait && self.waits_at_end(until, lags);
                let end = if waits { until } else { last };
                let tried = self.gone().map_or(Duration::ZERO, |(_, unheard)| unheard);
                waiting = waits.then(|| end.since(self.at).saturating_add(tried));
                self.ended(end, None, lags);
            }
        }
        self.late_handshake(lags);
        self.first_paces(lags);
        if !both_ends && self.phase != LedgerPhase::SynSent {
            // One direction only: nothing says who waited for whom.
            let all = self.sums.iter().map(|(what, _)| what);
            let other = all.filter(|what| !matches!(what, Spent::Gone(_) | Spent::NotCaptured));
            for what in other.collect::<Vec<_>>() {
                self.shift(what, Spent::NotCaptured, Duration::MAX);
            }
        }
        if lags.client == 1 {
            self.sums.swap_ends();
            if let Some(course) = self.course() {
                course.swap_ends();
            }
        }
        let tls_turns = self.tls_turns();
        let rare = self.rare.map(|rare| *rare).unwrap_or_default();
        Counted {
            sums: self.sums,
            requests: self.requests,
            turns: self.turns,
            tls_turns,
            syn_retransmissions: rare.syn_retransmissions,
            waiting,
            from_handshake: lags.from_handshake,
            course: rare.course.map(Box::new),
        }
    }

    /// Counts how long the first segments of answers took on their way, where that was known later.
    fn first_paces(&mut self, lags: Lags) {
        let server = 1 - lags.client;
        let took = self.pace[index(server)].time_before();
        self.shift(Spent::Thinks(server), Spent::Turn(server), took);
    }

    /// Counts what the handshake took beyond the path's round trip, where a part of it was sent
    /// again: the answer to the last one was late or lost as well.
    fn late_handshake(&mut self, lags: Lags) {
        let was_repeated = self.rare.as_ref().is_some_and(|rare| rare.syn_retransmissions > 0);
        let rtt = lags.rtt();
        let late = self.sums.of(Spent::Connect).saturating_sub(rtt);
        if was_repeated && rtt > Duration::ZERO && late > rtt.max(LATE) {
            self.shift(Spent::Connect, Spent::SynRepeated, late);
        }
    }

    /// Whether somebody still waits when the capture ends.
    fn waits_at_end(&self, until: Instant, lags: Lags) -> bool {
        let silence = until.since(self.at);
        if self.shut_now().is_some() && self.shut_until(until, lags) > Duration::ZERO {
            return true;
        }
        if self.gone().is_some() {
            return silence <= GIVES_UP_AFTER;
        }
        silence > lags.silence() && (self.is_asked(lags) || self.is_broken_off(lags))
    }
}
