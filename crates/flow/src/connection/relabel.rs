//! Wireshark's labels, corrected by what the scoreboard knows; see [`Difference`].

use super::labels::{Difference, Label, LabelSet};
use super::scoreboard::{Origin, Scoreboard};
use crate::segment::{Segment, SequenceNumber};
use fullpipe_model::units::{Duration, Instant};

/// What the other direction told of this one's data.
#[derive(Debug, Clone, Copy)]
pub(super) struct Told {
    /// Acknowledged before this segment.
    pub una: SequenceNumber,
    /// Duplicate ACKs in a row, and when the last ACK came.
    pub duplicates: (u32, Instant),
    /// For how long this end had sent no data.
    pub silent: Duration,
    /// The path's round trip.
    pub rtt: Option<Duration>,
}

/// Of all kinds of segments that do not advance, the one that the evidence says.
const KINDS: [Label; 5] = [
    Label::Retransmission,
    Label::FastRetransmission,
    Label::SpuriousRetransmission,
    Label::Rto,
    Label::OutOfOrder,
];
/// The least retransmission timeout of Linux; whatever is sent again within it after an ACK was
/// prompted by that ACK.
const RTO_LEAST: Duration = Duration::from_millis(200);

/// The labels of a packet that is the one just before again.
pub(super) fn duplicate(wireshark: LabelSet) -> (LabelSet, Option<Difference>) {
    let mut labels = wireshark;
    KINDS
        .into_iter()
        .chain([Label::DuplicateAck, Label::WindowUpdate])
        .for_each(|kind| labels.remove(kind));
    labels.add(Label::DuplicatePacket);
    (labels, Some(Difference::SamePacket))
}

/// The labels of data that does not advance, of which `new` bytes were not captured before.
pub(super) fn repeated(
    board: &mut Scoreboard,
    (at, segment, new): (Instant, &Segment, u64),
    told: Told,
    wireshark: LabelSet,
) -> (LabelSet, Option<Difference>) {
    let mut labels = wireshark;
    KINDS.into_iter().for_each(|kind| labels.remove(kind));
    let origin = board.judge(at, segment, new, told.rtt);
    if origin == Origin::Overtaken {
        labels.add(Label::OutOfOrder);
        return (labels, (labels != wireshark).then_some(Difference::SentBefore));
    }
    labels.add(Label::Retransmission);
    let acked = !told.una.is_before(segment.end());
    let spurious = board.count_repeated(at, segment, acked);
    let prompted = board.has_above(segment.end()) || told.duplicates.0 >= 2;
    if spurious {
        labels.add(Label::SpuriousRetransmission);
    } else if prompted && at.since(told.duplicates.1) < RTO_LEAST {
        labels.add(Label::FastRetransmission);
    } else if at.since(told.duplicates.1).min(told.silent) >= RTO_LEAST {
        // Only the first: what follows is clocked by acknowledgements again.
        labels.add(Label::Rto);
    }
    let difference = if wireshark.contains(Label::Retransmission) {
        if spurious { Difference::SackedBefore } else { Difference::Cause }
    } else if origin == Origin::SentAgain {
        Difference::SeenBefore
    } else {
        Difference::SentAfter
    };
    (labels, (labels != wireshark).then_some(difference))
}

/// The labels of an ACK without data whose SACK blocks say something new.
pub(super) fn sack(wireshark: LabelSet) -> (LabelSet, Option<Difference>) {
    let mut labels = wireshark;
    labels.remove(Label::WindowUpdate);
    labels.add(Label::DuplicateAck);
    (labels, (labels != wireshark).then_some(Difference::NewSack))
}
