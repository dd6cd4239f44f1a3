//! Wireshark's labels, corrected by the evidence of the scoreboard; see [`Difference`].

use super::labels::{Difference, DuplicateAcks, Label, LabelSet};
use super::scoreboard::{Origin, Scoreboard};
use crate::capture::segment::{Segment, SequenceNumber};
use fullpipe_model::units::{Duration, Instant};

/// Data that does not advance, with the state of the connection when it was sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Repetition<'a> {
    /// When it was captured.
    pub at: Instant,
    pub segment: &'a Segment,
    /// How many of its bytes were not captured before.
    pub new_bytes: u64,
    /// The highest number acknowledged before this segment.
    pub una: SequenceNumber,
    /// The duplicate ACKs of the other end.
    pub duplicate_acks: DuplicateAcks,
    /// How long this end had sent no data.
    pub silent: Duration,
    /// The path's round trip.
    pub rtt: Option<Duration>,
}

/// A packet's labels, and why they differ from Wireshark's, where they do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Relabelled {
    pub labels: LabelSet,
    pub difference: Option<Difference>,
}

impl Relabelled {
    /// Wireshark's labels as they are.
    pub fn unchanged(labels: LabelSet) -> Self {
        Relabelled { labels, difference: None }
    }

    /// These labels, with `difference` where they are not Wireshark's.
    fn compared(labels: LabelSet, wireshark: LabelSet, difference: Difference) -> Self {
        Relabelled { labels, difference: (labels != wireshark).then_some(difference) }
    }
}

/// The labels of segments that do not advance. The evidence decides which of them apply.
const KINDS: [Label; 5] = [
    Label::Retransmission,
    Label::FastRetransmission,
    Label::SpuriousRetransmission,
    Label::Rto,
    Label::OutOfOrder,
];
/// The least retransmission timeout of Linux (TCP_RTO_MIN, include/net/tcp.h). A segment that is
/// sent again within this time after an ACK was prompted by that ACK.
pub(super) const RTO_LEAST: Duration = Duration::from_millis(200);

/// The labels of a packet that repeats one just before it.
pub(super) fn duplicate(wireshark: LabelSet) -> Relabelled {
    let mut labels = wireshark;
    KINDS
        .into_iter()
        .chain([Label::DuplicateAck, Label::WindowUpdate])
        .for_each(|kind| labels.remove(kind));
    labels.add(Label::DuplicatePacket);
    Relabelled { labels, difference: Some(Difference::SamePacket) }
}

/// The labels of data that does not advance.
pub(super) fn repeated(
    board: &mut Scoreboard,
    repetition: &Repetition<'_>,
    wireshark: LabelSet,
) -> Relabelled {
    let Repetition { at, segment, duplicate_acks, .. } = *repetition;
    let mut labels = wireshark;
    KINDS.into_iter().for_each(|kind| labels.remove(kind));
    let origin = board.judge(at, segment, repetition.new_bytes, repetition.rtt);
    if origin == Origin::Overtaken {
        labels.add(Label::OutOfOrder);
        return Relabelled::compared(labels, wireshark, Difference::SentBefore);
    }
    labels.add(Label::Retransmission);
    let acked = !repetition.una.is_before(segment.end());
    let spurious = board.count_repeated(at, segment, acked);
    let prompted = board.has_above(segment.end()) || duplicate_acks.count >= 2;
    let since_ack = at.since(duplicate_acks.last_ack);
    if spurious {
        labels.add(Label::SpuriousRetransmission);
    } else if prompted && since_ack < RTO_LEAST {
        labels.add(Label::FastRetransmission);
    } else if since_ack.min(repetition.silent) >= RTO_LEAST {
        // Only the first repair after a timeout: acknowledgements prompt the later ones.
        labels.add(Label::Rto);
    }
    let difference = if wireshark.contains(Label::Retransmission) {
        if spurious { Difference::SackedBefore } else { Difference::Cause }
    } else if origin == Origin::SentAgain {
        Difference::SeenBefore
    } else {
        Difference::SentAfter
    };
    Relabelled::compared(labels, wireshark, difference)
}

/// The labels of an ACK without data whose SACK blocks report something new.
pub(super) fn sack(wireshark: LabelSet) -> Relabelled {
    let mut labels = wireshark;
    labels.remove(Label::WindowUpdate);
    labels.add(Label::DuplicateAck);
    Relabelled::compared(labels, wireshark, Difference::NewSack)
}
