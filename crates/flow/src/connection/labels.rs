//! Labels by Wireshark's definitions: TShark 4.0 with default preferences (User's Guide, chapter "TCP Analysis").
//!
//! They are hints from sequence numbers and time alone, without SACK; the names are the field's common language. Order of
//! precedence for a segment that does not advance: keep-alive, spurious, fast retransmission, out of order,
//! retransmission. Fast and spurious retransmissions are counted as retransmissions too.

use crate::segment::{Flags, Segment, SequenceNumber};
use fullpipe_model::units::{Duration, Instant};

/// One label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Label {
    /// Data (or SYN, FIN) that was sent before.
    Retransmission,
    /// Of them, after at least two duplicate ACKs and within 20 ms of the last.
    FastRetransmission,
    /// Of them, of data that was acknowledged already.
    SpuriousRetransmission,
    /// Not in order, and too soon after the highest segment to be a retransmission.
    OutOfOrder,
    /// An ACK without data that repeats the one before, window included.
    DuplicateAck,
    /// Window 0.
    ZeroWindow,
    /// One byte into a window of 0.
    ZeroWindowProbe,
    /// The answer to that.
    ZeroWindowProbeAck,
    /// The segment ends at or beyond the peer's window.
    WindowFull,
    /// An ACK without data that changes only the window.
    WindowUpdate,
    /// 0 or 1 byte just before the next number.
    KeepAlive,
    /// The answer to that.
    KeepAliveAck,
    /// A segment before this one was not captured.
    LostSegment,
    /// Data that was not captured is acknowledged.
    AckLostSegment,
    /// A SYN with a new sequence number on the addresses and ports of a connection seen before.
    ReusedPorts,
    /// The same IP packet as one just before: the network or the capture repeated it. Only with [`Labels::Sack`].
    DuplicatePacket,
}

/// Whose definitions the labels follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Labels {
    /// Wireshark's, corrected where SACK, timestamps or IP identifications tell more; [`Difference`] says where and why.
    #[default]
    Sack,
    /// Wireshark's (TShark 4.0, default preferences).
    Wireshark,
}

/// Why a packet's labels differ from Wireshark's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Difference {
    /// The same IP packet passed just before: it is a duplicate, not a retransmission.
    SamePacket,
    /// Its bytes passed before: it was sent again, however soon.
    SeenBefore,
    /// It fills a gap and was sent after what is above: a retransmission, however soon.
    SentAfter,
    /// It fills a gap and was sent before what is above: reordered, however late.
    SentBefore,
    /// SACK said that the receiver had it: the retransmission was spurious.
    SackedBefore,
    /// The receiver had reported data above by SACK: the retransmission was fast. Or it had not, and a timer sent it.
    Cause,
    /// It has new SACK blocks: a duplicate ACK, although the window changed (RFC 6675 section 2).
    NewSack,
}

impl Difference {
    /// The reason, in words.
    pub const fn words(self) -> &'static str {
        match self {
            Difference::SamePacket => "the same IP packet passed just before: a duplicate",
            Difference::SeenBefore => "its bytes passed before: sent again",
            Difference::SentAfter => "it fills a gap and was sent after what is above: sent again",
            Difference::SentBefore => "it fills a gap and was sent before what is above: reordered",
            Difference::SackedBefore => "SACK had reported it: sent again needlessly",
            Difference::Cause => "SACK blocks, or their absence, say what made the sender repeat it",
            Difference::NewSack => "it has new SACK blocks: a duplicate ACK whatever its window",
        }
    }
}

impl Label {
    /// Every label, in the order of the type.
    pub const ALL: [Label; 16] = [
        Label::Retransmission,
        Label::FastRetransmission,
        Label::SpuriousRetransmission,
        Label::OutOfOrder,
        Label::DuplicateAck,
        Label::ZeroWindow,
        Label::ZeroWindowProbe,
        Label::ZeroWindowProbeAck,
        Label::WindowFull,
        Label::WindowUpdate,
        Label::KeepAlive,
        Label::KeepAliveAck,
        Label::LostSegment,
        Label::AckLostSegment,
        Label::ReusedPorts,
        Label::DuplicatePacket,
    ];

    /// The name in results: that of Wireshark's field after `tcp.analysis.`, where it has one.
    pub const fn name(self) -> &'static str {
        match self {
            Label::Retransmission => "retransmission",
            Label::FastRetransmission => "fast_retransmission",
            Label::SpuriousRetransmission => "spurious_retransmission",
            Label::OutOfOrder => "out_of_order",
            Label::DuplicateAck => "duplicate_ack",
            Label::ZeroWindow => "zero_window",
            Label::ZeroWindowProbe => "zero_window_probe",
            Label::ZeroWindowProbeAck => "zero_window_probe_ack",
            Label::WindowFull => "window_full",
            Label::WindowUpdate => "window_update",
            Label::KeepAlive => "keep_alive",
            Label::KeepAliveAck => "keep_alive_ack",
            Label::LostSegment => "lost_segment",
            Label::AckLostSegment => "ack_lost_segment",
            Label::ReusedPorts => "reused_ports",
            Label::DuplicatePacket => "duplicate_packet",
        }
    }
}

/// The labels of one packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct LabelSet(u16);

impl LabelSet {
    /// Whether `label` is among them.
    pub const fn contains(self, label: Label) -> bool {
        self.0 & 1 << label as u8 != 0
    }

    /// The labels, in the order of the type.
    pub fn iter(self) -> impl Iterator<Item = Label> {
        Label::ALL.into_iter().filter(move |label| self.contains(*label))
    }

    pub(crate) fn add(&mut self, label: Label) {
        self.0 |= 1 << label as u8;
    }

    pub(crate) fn remove(&mut self, label: Label) {
        self.0 &= !(1 << label as u8);
    }
}

/// How many packets carry each label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LabelCounts([u32; Label::ALL.len()]);

impl LabelCounts {
    /// How many packets carry `label`.
    pub const fn of(&self, label: Label) -> u64 {
        self.0[label as usize] as u64
    }

    pub(crate) fn add(&mut self, labels: LabelSet) {
        if labels != LabelSet::default() {
            labels.iter().for_each(|label| self.0[label as usize] = self.0[label as usize].saturating_add(1));
        }
    }
}

/// As an object with one number a label.
impl serde::Serialize for LabelCounts {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_map(Label::ALL.into_iter().map(|label| (label.name(), self.of(label))))
    }
}

/// What the window scale option of a direction's SYN said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Scale {
    /// The SYN was not seen.
    #[default]
    Unknown,
    /// One end did not offer it, so that neither uses it (RFC 7323 section 2.2).
    Unused,
    /// The shift count.
    Shift(u8),
}

impl Scale {
    pub fn apply(self, window: u16) -> u32 {
        match self {
            Scale::Shift(shift) => u32::from(window) << shift.min(14),
            Scale::Unknown | Scale::Unused => window.into(),
        }
    }
}

/// What is remembered of one direction's segments.
#[derive(Debug, Clone, Default)]
pub(super) struct Memory {
    /// The number after the highest seen, and when it was reached.
    next: Option<SequenceNumber>,
    next_at: Instant,
    /// The highest number up to which everything was seen.
    contiguous: Option<SequenceNumber>,
    /// A gap in this direction was acknowledged, and no other was seen since.
    gap_was_acked: bool,
    ack: SequenceNumber,
    ack_at: Instant,
    window: u32,
    duplicates: u32,
    last: LabelSet,
    pub scale: Scale,
}

/// Marks within which a segment is out of order rather than sent again.
const OUT_OF_ORDER_WITHOUT_RTT: Duration = Duration::from_millis(3);
const FAST_RETRANSMISSION: Duration = Duration::from_millis(20);

/// Labels `segment`, which `from` sent; `to` is the other direction. `rtt` is
/// the handshake's.
pub(super) fn label(from: &mut Memory, to: &Memory, at: Instant, segment: &Segment, rtt: Option<Duration>) -> LabelSet {
    let mut labels = LabelSet::default();
    let control = segment.flags.any(Flags::SYN | Flags::FIN | Flags::RST);
    let length = segment.payload_len();
    let expected = from.next == Some(segment.seq);
    // Before the first segment nothing is expected and everything is zero, as in Wireshark.
    let repeats_ack = segment.ack == from.ack;
    let window = u32::from(segment.window);
    let answers = length == 0 && expected && repeats_ack && !control;

    let probe = length == 1 && expected && to.window == 0 && to.next.is_some();
    if probe {
        labels.add(Label::ZeroWindowProbe);
    } else {
        if window == 0 && !control {
            labels.add(Label::ZeroWindow);
        }
        if from.next.is_some_and(|next| next.is_before(segment.seq)) && !segment.flags.any(Flags::RST) {
            labels.add(Label::LostSegment);
        }
        if length <= 1 && !control && from.next == Some(segment.seq + 1) {
            labels.add(Label::KeepAlive);
        }
        if answers && window != 0 && window != from.window {
            labels.add(Label::WindowUpdate);
        }
        if length > 0 && !control && to.scale != Scale::Unknown {
            let edge = to.ack + to.scale.apply(to.window as u16);
            if edge == segment.seq + length {
                labels.add(Label::WindowFull);
            }
        }
        if answers && window != 0 && window == from.window && to.last.contains(Label::KeepAlive) {
            labels.add(Label::KeepAliveAck);
        } else if answers && window == 0 && from.window == 0 && to.last.contains(Label::ZeroWindowProbe) {
            labels.add(Label::ZeroWindowProbeAck);
        } else if answers && window != 0 && window == from.window {
            from.duplicates += 1;
            labels.add(Label::DuplicateAck);
        }
    }
    if !repeats_ack {
        from.duplicates = 0;
    }
    let acks = segment.flags.any(Flags::ACK) && !to.gap_was_acked;
    if acks && to.contiguous.is_some_and(|highest| highest.is_before(segment.ack)) {
        labels.add(Label::AckLostSegment);
    }
    if !probe && (length > 0 || segment.flags.any(Flags::SYN | Flags::FIN)) && !labels.contains(Label::KeepAlive) {
        label_repeated(&mut labels, from, to, at, segment, rtt);
    }
    from.remember(at, segment, labels);
    labels
}

/// Decides between the kinds of segments that do not advance the sequence.
fn label_repeated(
    labels: &mut LabelSet,
    from: &Memory,
    to: &Memory,
    at: Instant,
    segment: &Segment,
    rtt: Option<Duration>,
) {
    let length = segment.payload_len();
    let end = segment.seq + length;
    // More than a byte, from one before the next: new data after a window probe.
    let after_probe = length > 1 && from.next == Some(segment.seq + 1);
    let behind = from.next.is_some_and(|next| segment.seq.is_before(next)) && !after_probe;
    if length > 0 && to.next.is_some() && to.ack != SequenceNumber::default() && !to.ack.is_before(end) {
        labels.add(Label::SpuriousRetransmission);
        labels.add(Label::Retransmission);
        return;
    }
    if !behind {
        return;
    }
    if to.duplicates >= 2 && to.ack == segment.seq && at.since(to.ack_at) < FAST_RETRANSMISSION {
        labels.add(Label::FastRetransmission);
        labels.add(Label::Retransmission);
        return;
    }
    let soon = at.since(from.next_at) < rtt.unwrap_or(OUT_OF_ORDER_WITHOUT_RTT);
    if soon && from.next != Some(segment.end()) {
        labels.add(Label::OutOfOrder);
    } else {
        labels.add(Label::Retransmission);
    }
}

impl Memory {
    fn remember(&mut self, at: Instant, segment: &Segment, labels: LabelSet) {
        let end = segment.end();
        let probe = labels.contains(Label::ZeroWindowProbe);
        self.gap_was_acked &= !labels.contains(Label::LostSegment);
        if !probe && self.next.is_none_or(|next| next.is_before(end)) {
            self.next = Some(end);
            self.next_at = at;
        }
        if !probe && self.contiguous.is_none_or(|highest| highest == segment.seq) {
            self.contiguous = self.next;
        }
        self.window = segment.window.into();
        self.ack = segment.ack;
        self.ack_at = at;
        self.last = labels;
    }

    /// How many duplicate ACKs there were in a row, and when the last ACK was.
    pub fn duplicate_acks(&self) -> (u32, Instant) {
        (self.duplicates, self.ack_at)
    }

    /// After an ACK of data that was not captured. `matches` says whether a segment that was captured ends at the ACK; if
    /// not, nothing is labelled until another gap is seen. (Found by experiment: it is how TShark 4.0 behaves.)
    pub fn ack_of_lost_was_seen(&mut self, matches: bool) {
        self.contiguous = self.next;
        self.gap_was_acked = !matches;
    }
}
