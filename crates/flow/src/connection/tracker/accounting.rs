//! What a segment shows of where the time went, for the ledger.

use super::super::ledger::{Closes, Lags, LedgerEvent, What};
use super::super::relabel::Relabelled;
use super::super::{Label, LabelSet};
use super::Tracker;
use crate::capture::segment::{Flags, Segment};
use fullpipe_model::units::{Duration, Instant};

/// No path takes longer: two satellites in turn are 1.2 s.
const LONGEST_WAY: Duration = Duration::from_millis(1500);

impl Tracker {
    /// Notes in the ledger what the segment shows of where the time went. Where its frames say that
    /// it `asks_nothing`, it takes nobody's turn: a window update is what a wait ended with.
    pub(super) fn account(
        &mut self,
        at: Instant,
        segment: &Segment,
        from: usize,
        (wireshark, corrected): (LabelSet, Relabelled),
        asks_nothing: bool,
    ) {
        let flags = segment.flags;
        let (sender, receiver) = (&self.halves[from], &self.halves[1 - from]);
        let length = segment.payload_len();
        let is_probe =
            wireshark.contains(Label::KeepAlive) || wireshark.contains(Label::ZeroWindowProbe);
        let what = match (flags.any(Flags::SYN), flags.any(Flags::ACK)) {
            (true, false) => What::Syn,
            (true, true) => What::SynAck,
            _ if is_probe => {
                // Where too little may be sent, it asks for more.
                let is_held_back = receiver.holds_back(sender.segment_size().get());
                if is_held_back { What::Ack } else { What::KeepAlive }
            }
            _ if length == 0 => What::Ack,
            _ if corrected.labels.contains(Label::Retransmission) => {
                What::Again { by_timer: corrected.labels.contains(Label::Rto) }
            }
            _ if asks_nothing => What::Ack,
            _ => What::Data,
        };
        let closes = if flags.any(Flags::RST) {
            Some(Closes::Reset)
        } else {
            flags.any(Flags::FIN).then_some(Closes::Fin)
        };
        let advertises = flags.any(Flags::ACK) && !flags.any(Flags::SYN | Flags::RST);
        let has_all = flags.any(Flags::ACK) && receiver.is_all_acknowledged_by(segment.ack);
        let holds_back = has_all && sender.holds_back(receiver.segment_size().get());
        let mut event = LedgerEvent {
            at,
            from: from as u8,
            what,
            has_all,
            has_unseen: wireshark.contains(Label::AckLostSegment),
            is_shut: advertises.then_some(segment.window == 0 || holds_back),
            closes,
            start: segment.payload_start,
            is_pushed: flags.any(Flags::PSH),
            is_short: false,
            length,
        };
        if !self.ledger.goes_on(&event) {
            let mss = sender.manner.mss().into_iter().chain(receiver.manner.mss()).min();
            let full = mss.map_or(sender.segment_size().get(), u64::from);
            event.is_short = u64::from(length) < full * 3 / 4;
            let lags = self.lags();
            self.ledger.see(&event, lags);
        }
    }

    /// The round trips between the capture point and the ends, for the ledger.
    pub(super) fn lags(&self) -> Lags {
        let client = self.client();
        let by_handshake = match client {
            0 => [self.handshake.client_side(), self.handshake.server_side()],
            _ => [self.handshake.server_side(), self.handshake.client_side()],
        };
        let to = [0, 1].map(|end| {
            // The first answer of an application may be all that acknowledges data: a time that no
            // path takes tells nothing.
            let by_data = self.halves[1 - end].least_rtt().filter(|rtt| *rtt <= LONGEST_WAY);
            by_handshake[end].into_iter().chain(by_data).min().unwrap_or(Duration::ZERO)
        });
        let whole = self.handshake.clean_rtt();
        let from_handshake = self.handshake.is_seen();
        Lags { to, whole, client: client as u8, from_handshake }
    }
}
