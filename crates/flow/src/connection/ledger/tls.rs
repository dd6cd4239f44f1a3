//! The handshake of TLS, by how the data of an end begins.

use super::{Ledger, LedgerEvent, Spent, UNSURE};
use crate::capture::segment::PayloadStart;

/// What the client sent last belongs to the handshake of TLS.
const IN_TLS: u8 = 4;
/// The client has asked for the first time since the handshake of TLS.
const AFTER_TLS: u8 = 8;
/// One round trip of TLS; as many as [`TLS_TURNS`] has room for are counted.
const ONE_TLS_TURN: u8 = 16;
const TLS_TURNS: u8 = 7 * ONE_TLS_TURN;
/// A server's first words after the handshake, its session tickets, are so many segments at most.
const MAX_TICKETS: u8 = 2;
/// What an HTTP/2 client says without a question takes no more: settings, pings and windows, which
/// are encrypted.
pub(super) const MAX_SMALL_TALK: u32 = 64;
/// The end of a client's handshake by TLS 1.3, a change of cipher and a Finished, takes no more.
const MAX_FINISHED: u32 = 80;

impl Ledger {
    /// Whether what the client begins to send may ask for nothing: a few encrypted bytes.
    pub(super) fn may_be_small_talk(&self, event: &LedgerEvent) -> bool {
        let is_first = self.flags & AFTER_TLS != 0;
        let longest = if is_first { MAX_FINISHED } else { MAX_SMALL_TALK };
        event.length <= longest && self.tls_turns() > 0
    }

    /// Whether the client, after whom the server speaks, has only ended the handshake: the server
    /// sends session tickets then.
    pub(super) fn has_only_finished(&self) -> bool {
        // With TLS 1.2 it took a round trip more, and the first bytes after it are a question.
        self.flags & AFTER_TLS != 0 && self.flags & UNSURE != 0 && self.tls_turns() == 1
    }

    /// What was not sure asked for something.
    pub(super) fn did_ask(&mut self) {
        self.requests = self.requests.saturating_add((self.flags & UNSURE != 0).into());
        self.flags &= !UNSURE;
    }

    /// Notes whether what the client begins to send belongs to a handshake of TLS: its ClientHello,
    /// again where the server asks for another, and what TLS 1.2 sends in clear text after the
    /// server's certificate. What TLS 1.3 sends there needs no answer, and the request follows it.
    pub(super) fn shakes_hands(&mut self, start: PayloadStart) -> bool {
        let was_in_tls = self.is_in_tls();
        let is_in_tls = match start {
            PayloadStart::ClientHello => true,
            PayloadStart::Handshake => was_in_tls,
            _ => false,
        };
        self.flags &= !(IN_TLS | AFTER_TLS);
        self.flags |= match (is_in_tls, was_in_tls) {
            (true, _) => IN_TLS,
            (false, true) => AFTER_TLS,
            (false, false) => 0,
        };
        is_in_tls
    }

    /// How many round trips the handshake of TLS took.
    pub(super) fn tls_turns(&self) -> u8 {
        (self.flags & TLS_TURNS) / ONE_TLS_TURN
    }

    /// What the way of a message to this end, and of the first byte of its answer, belongs to.
    pub(super) fn way_to(&self, end: u8) -> Spent {
        if self.is_in_tls() || self.has_only_finished() { Spent::Tls } else { Spent::Turn(end) }
    }

    /// Whether what the client sent last belongs to the handshake.
    pub(super) fn is_in_tls(&self) -> bool {
        self.flags & IN_TLS != 0
    }

    /// Notes a round trip of the handshake.
    pub(super) fn pays_tls_turn(&mut self) {
        if self.flags & TLS_TURNS != TLS_TURNS {
            self.flags += ONE_TLS_TURN;
        }
    }

    /// Whether the server, which speaks, has sent no more since the handshake than its session
    /// tickets take: what follows begins its answer.
    pub(super) fn has_sent_tickets_only(&self) -> bool {
        self.flags & AFTER_TLS != 0 && self.run <= MAX_TICKETS
    }
}
