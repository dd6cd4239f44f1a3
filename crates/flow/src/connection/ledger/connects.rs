//! The time until a connection is open, or refused.

use super::super::handshake::SYN_AGAIN_FROM;
use super::{Closes, Lags, Ledger, LedgerEvent, LedgerPhase, Spent, What};

impl Ledger {
    pub(super) fn connects(&mut self, event: &LedgerEvent, lags: Lags) {
        let LedgerEvent { at, what, closes, .. } = *event;
        let is_new = self.phase == LedgerPhase::New;
        if is_new {
            // A packet that could not be read may have been before.
            self.spend_all(Spent::NotCaptured, at);
        }
        match (what, closes) {
            // The capture has it twice.
            (What::Syn | What::SynAck, _)
                if (self.phase == LedgerPhase::SynAnswered
                    || self.phase == LedgerPhase::SynSent && what == What::Syn)
                    && at.since(self.at) < SYN_AGAIN_FROM => {}
            (What::Syn, _) => {
                if !is_new {
                    self.syn_again();
                    let met_old = std::mem::take(&mut self.rare().met_old);
                    let spent =
                        if met_old { Spent::SynMetOldConnection } else { Spent::SynRepeated };
                    self.spend_all(spent, at);
                }
                self.phase = LedgerPhase::SynSent;
            }
            (What::SynAck, _) => {
                if self.phase == LedgerPhase::SynAnswered {
                    self.syn_again();
                    self.spend_all(Spent::SynRepeated, at);
                } else {
                    self.spend_all(Spent::Connect, at);
                }
                self.phase = LedgerPhase::SynAnswered;
            }
            (_, Some(Closes::Reset)) if self.phase == LedgerPhase::SynSent => {
                // The client itself resets what it finds in its way, and tries again.
                if event.from == lags.client {
                    self.spend_all(Spent::SynMetOldConnection, at);
                    self.rare().met_old = true;
                } else {
                    self.spend_all(Spent::Refused, at);
                    self.phase = LedgerPhase::Closed;
                }
            }
            // An ACK in place of a SYN-ACK (RFC 9293 section 3.10.7.4).
            (What::Ack, None)
                if self.phase == LedgerPhase::SynSent && event.from != lags.client =>
            {
                self.rare().met_old = true;
            }
            _ => {
                self.spend_all(Spent::Connect, at);
                self.phase = LedgerPhase::Open;
                if what != What::Ack || closes.is_some() {
                    self.talks(event, lags);
                }
            }
        }
    }

    fn syn_again(&mut self) {
        let rare = self.rare();
        rare.syn_retransmissions = rare.syn_retransmissions.saturating_add(1);
    }
}
