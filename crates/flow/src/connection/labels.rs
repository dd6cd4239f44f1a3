//! Labels by Wireshark's definitions: TShark 4.0 with default preferences (User's Guide, chapter
//! "TCP Analysis").
//!
//! These labels are hints from sequence numbers and times alone, without SACK. Their names are the
//! ones in common use. For a segment that does not advance, the order of precedence is: keep-alive,
//! spurious, fast retransmission, out of order, retransmission. Fast and spurious retransmissions
//! also count as retransmissions.

use crate::capture::segment::{Flags, Segment, SequenceNumber};
use fullpipe_model::units::{Duration, Instant};

/// One label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Label {
    /// Data (or SYN, FIN) that was sent before.
    Retransmission,
    /// A retransmission after at least two duplicate ACKs and within 20 ms of the last.
    FastRetransmission,
    /// A retransmission of data that was acknowledged already.
    SpuriousRetransmission,
    /// A retransmission that is neither fast nor spurious: sent when the retransmission timer
    /// expired, as far as sequence numbers and times show.
    Rto,
    /// A segment out of order that comes too soon after the highest segment to be a retransmission.
    OutOfOrder,
    /// An ACK without data that repeats the one before, window included.
    DuplicateAck,
    /// Window 0.
    ZeroWindow,
    /// One byte sent into a window of 0.
    ZeroWindowProbe,
    /// The answer to a zero-window probe.
    ZeroWindowProbeAck,
    /// The segment ends at or beyond the peer's window.
    WindowFull,
    /// An ACK without data that changes only the window.
    WindowUpdate,
    /// 0 or 1 byte just before the next number.
    KeepAlive,
    /// The answer to a keep-alive.
    KeepAliveAck,
    /// A segment before this one was not captured.
    LostSegment,
    /// An acknowledgement of data that was not captured.
    AckLostSegment,
    /// A SYN with a new sequence number on the addresses and ports of a connection seen before.
    ReusedPorts,
    /// A SYN with data and a Fast Open cookie (RFC 7413).
    TfoSyn,
    /// A SYN-ACK that acknowledges the data of a Fast Open SYN.
    TfoAck,
    /// A SYN-ACK that acknowledges the SYN of a Fast Open attempt, but not its data.
    TfoIgnored,
    /// A copy of an IP packet that passed just before, made by the network or the capture. Only
    /// with [`Labels::Sack`].
    DuplicatePacket,
}

/// Whose definitions the labels follow.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Labels {
    /// Wireshark's, corrected where SACK, timestamps or IP identifications show more.
    /// [`Difference`] gives the reason for each correction.
    #[default]
    Sack,
    /// Wireshark's (TShark 4.0, default preferences).
    Wireshark,
}

/// Why a packet's labels differ from Wireshark's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Difference {
    /// The same IP packet passed just before: this one is a duplicate, not a retransmission.
    SamePacket,
    /// Its bytes passed before: it was sent again, however soon.
    SeenBefore,
    /// It fills a gap and was sent after the segment above the gap: a retransmission, however soon.
    SentAfter,
    /// It fills a gap and was sent before the segment above the gap: reordered, however late.
    SentBefore,
    /// SACK had reported the data: the retransmission was spurious.
    SackedBefore,
    /// SACK had reported data above it, so the retransmission was fast. Or SACK had not, and a
    /// timer sent it.
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
            Difference::Cause => {
                "SACK blocks, or their absence, say what made the sender repeat it"
            }
            Difference::NewSack => "it has new SACK blocks: a duplicate ACK whatever its window",
        }
    }
}

impl Label {
    /// Every label, in the order of the type.
    pub const ALL: [Label; 20] = [
        Label::Retransmission,
        Label::FastRetransmission,
        Label::SpuriousRetransmission,
        Label::Rto,
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
        Label::TfoSyn,
        Label::TfoAck,
        Label::TfoIgnored,
        Label::DuplicatePacket,
    ];

    /// The name in results: that of Wireshark's field after `tcp.analysis.`, where it has one.
    pub const fn name(self) -> &'static str {
        match self {
            Label::Retransmission => "retransmission",
            Label::FastRetransmission => "fast_retransmission",
            Label::SpuriousRetransmission => "spurious_retransmission",
            Label::Rto => "rto",
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
            Label::TfoSyn => "tfo_syn",
            Label::TfoAck => "tfo_ack",
            Label::TfoIgnored => "tfo_ignored",
            Label::DuplicatePacket => "duplicate_packet",
        }
    }
}

/// The labels of one packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct LabelSet(u32);

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

    /// Counts with one label alone.
    pub(crate) fn only(label: Label, count: u32) -> Self {
        let mut counts = LabelCounts::default();
        counts.0[label as usize] = count;
        counts
    }

    pub(crate) fn add(&mut self, labels: LabelSet) {
        labels
            .iter()
            .for_each(|label| self.0[label as usize] = self.0[label as usize].saturating_add(1));
    }
}

/// Serialises as an object with one number for each label.
impl serde::Serialize for LabelCounts {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_map(Label::ALL.into_iter().map(|label| (label.name(), self.of(label))))
    }
}

/// The window scale of a direction, from its SYN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Scale {
    /// The SYN was not seen.
    #[default]
    Unknown,
    /// One end did not offer the option, so neither uses it (RFC 7323 section 2.2).
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

    /// The shift that both ends use, where the SYNs show it.
    pub fn agreed(self) -> Option<u8> {
        match self {
            Scale::Unknown => None,
            Scale::Unused => Some(0),
            Scale::Shift(shift) => Some(shift.min(14)),
        }
    }
}

/// The state of one direction's segments. As in Wireshark, the number zero means unknown, so the
/// sequence number zero itself is never stored.
#[derive(Debug, Clone, Default)]
pub(super) struct Memory {
    /// The number after the highest seen, and the time at which it was reached.
    next: SequenceNumber,
    next_at: Instant,
    /// Everything up to this number was seen. An acknowledgement beyond it covers data that was not
    /// seen.
    contiguous: SequenceNumber,
    ack: SequenceNumber,
    ack_at: Instant,
    window: Option<u16>,
    /// Whether the window is that of a SYN, which is never scaled.
    window_is_of_syn: bool,
    duplicates: Duplicates,
    last: LabelSet,
    pub scale: Scale,
}

/// Duplicate ACKs in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Duplicates {
    Count(u32),
    /// The other end acknowledged data that was not captured. This is not labelled again until this
    /// end acknowledges something new.
    Muted,
}

impl Default for Duplicates {
    fn default() -> Self {
        Duplicates::Count(0)
    }
}

impl Duplicates {
    fn count(self) -> u32 {
        match self {
            Duplicates::Count(count) => count,
            Duplicates::Muted => 0,
        }
    }

    /// Wireshark's counter is unsigned and is muted by setting it to -1, which is more than two.
    fn allow_fast_retransmission(self) -> bool {
        self == Duplicates::Muted || self.count() >= 2
    }
}

/// The duplicate ACKs of one end.
#[derive(Debug, Clone, Copy)]
pub(super) struct DuplicateAcks {
    /// How many there were in a row.
    pub count: u32,
    /// When the last ACK came.
    pub last_ack: Instant,
}

/// What a label depends on besides the two directions' memories.
#[derive(Debug, Clone, Copy)]
pub(super) struct LabelContext {
    /// The handshake's round trip.
    pub rtt: Option<Duration>,
    /// When the oldest unacknowledged segment was sent.
    pub oldest: Option<Instant>,
}

const UNKNOWN: SequenceNumber = SequenceNumber(0);
/// Time limits by which a segment is taken for out of order, or for a fast retransmission.
const OUT_OF_ORDER_WITHOUT_RTT: Duration = Duration::from_millis(3);
const FAST_RETRANSMISSION: Duration = Duration::from_millis(20);

/// Labels `segment`, which `from` sent; `to` is the other direction.
pub(super) fn label(
    from: &mut Memory,
    to: &mut Memory,
    at: Instant,
    segment: &Segment,
    context: LabelContext,
) -> LabelSet {
    let mut labels = LabelSet::default();
    let length = segment.payload_len();
    let probe = length == 1 && from.next == segment.seq && to.window == Some(0);
    if probe {
        labels.add(Label::ZeroWindowProbe);
    } else {
        label_window(&mut labels, from, to, segment);
        label_ack(&mut labels, from, to, segment);
    }
    if segment.ack != from.ack {
        from.duplicates = Duplicates::Count(0);
    }
    if segment.flags.any(Flags::ACK)
        && to.contiguous != UNKNOWN
        && to.contiguous.is_before(segment.ack)
    {
        to.was_acked_unseen(&mut labels);
    }
    if (length > 0 || segment.flags.any(Flags::SYN | Flags::FIN))
        && !labels.contains(Label::KeepAlive)
    {
        label_repeated(&mut labels, from, to, at, segment, context);
    }
    from.remember(at, segment, labels);
    labels
}

/// Adds the labels that depend on the window, or on a sequence number that is not the next.
fn label_window(labels: &mut LabelSet, from: &Memory, to: &Memory, segment: &Segment) {
    let control = segment.flags.any(Flags::SYN | Flags::FIN | Flags::RST);
    let length = segment.payload_len();
    if segment.window == 0 && !control {
        labels.add(Label::ZeroWindow);
    }
    if from.next != UNKNOWN && from.next.is_before(segment.seq) && !segment.flags.any(Flags::RST) {
        labels.add(Label::LostSegment);
    }
    if length <= 1 && !control && from.next == segment.seq + 1 {
        labels.add(Label::KeepAlive);
    }
    if length > 0 && !control && to.scale != Scale::Unknown {
        let scale = if to.window_is_of_syn { Scale::Unused } else { to.scale };
        if to.ack + scale.apply(to.window.unwrap_or(0)) == segment.seq + length {
            labels.add(Label::WindowFull);
        }
    }
}

/// Labels an ACK without data that repeats the acknowledgement number before it.
fn label_ack(labels: &mut LabelSet, from: &mut Memory, to: &Memory, segment: &Segment) {
    let control = segment.flags.any(Flags::SYN | Flags::FIN | Flags::RST);
    let repeats = segment.payload_len() == 0
        && from.next == segment.seq
        && segment.ack == from.ack
        && !control;
    if !repeats {
        return;
    }
    match (Some(segment.window) == from.window, segment.window) {
        (false, 0) => {}
        (false, _) => labels.add(Label::WindowUpdate),
        (true, 0) if to.last.contains(Label::ZeroWindowProbe) => {
            labels.add(Label::ZeroWindowProbeAck)
        }
        (true, 0) => {}
        (true, _) if to.last.contains(Label::KeepAlive) => labels.add(Label::KeepAliveAck),
        (true, _) => {
            from.duplicates = Duplicates::Count(from.duplicates.count().saturating_add(1));
            labels.add(Label::DuplicateAck);
        }
    }
}

/// Decides between the kinds of segments that do not advance the sequence.
fn label_repeated(
    labels: &mut LabelSet,
    from: &Memory,
    to: &Memory,
    at: Instant,
    segment: &Segment,
    context: LabelContext,
) {
    let length = segment.payload_len();
    let end = segment.seq + length;
    // More than one byte, starting one byte before the next number: new data after a window probe.
    let after_probe = length > 1 && from.next == segment.seq + 1;
    let behind = from.next != UNKNOWN && segment.seq.is_before(from.next) && !after_probe;
    if length > 0 && to.ack != UNKNOWN && !to.ack.is_before(end) {
        labels.add(Label::SpuriousRetransmission);
        labels.add(Label::Retransmission);
        return;
    }
    if !behind {
        return;
    }
    if to.duplicates.allow_fast_retransmission()
        && to.ack == segment.seq
        && at.since(to.ack_at) < FAST_RETRANSMISSION
    {
        labels.add(Label::FastRetransmission);
        labels.add(Label::Retransmission);
        return;
    }
    let soon = at.since(from.next_at) < context.rtt.unwrap_or(OUT_OF_ORDER_WITHOUT_RTT);
    if soon && from.next != segment.end() {
        labels.add(Label::OutOfOrder);
        return;
    }
    labels.add(Label::Retransmission);
    // Wireshark shows no time since the original if none has passed.
    if context.oldest.unwrap_or(from.next_at) != at {
        labels.add(Label::Rto);
    }
}

impl Memory {
    fn remember(&mut self, at: Instant, segment: &Segment, labels: LabelSet) {
        let end = segment.end();
        let probe = labels.contains(Label::ZeroWindowProbe);
        // The number of a reset may be anything (RFC 9293, 3.5.2), as it is copied from an
        // acknowledgement.
        let is_reset = segment.flags.any(Flags::RST) && end == segment.seq;
        if !probe && !is_reset && (self.next == UNKNOWN || self.next.is_before(end)) {
            self.next = end;
            self.next_at = at;
        }
        if !probe && (self.contiguous == UNKNOWN || self.contiguous == segment.seq) {
            self.contiguous = self.next;
        }
        self.window = Some(segment.window);
        self.window_is_of_syn = segment.flags.any(Flags::SYN);
        self.ack = segment.ack;
        self.ack_at = at;
        self.last = labels;
    }

    /// Notes an acknowledgement of data in this direction that was not captured. After a gap it is
    /// labelled once. Otherwise it is labelled once for each number that this end acknowledges;
    /// without this rule, an end that only sends ACKs would cause a label on every packet.
    fn was_acked_unseen(&mut self, labels: &mut LabelSet) {
        if self.contiguous.is_before(self.next) {
            self.contiguous = self.next;
            labels.add(Label::AckLostSegment);
            return;
        }
        if self.duplicates == Duplicates::Count(0) {
            labels.add(Label::AckLostSegment);
        }
        self.duplicates = Duplicates::Muted;
    }

    /// The duplicate ACKs that this end sent.
    pub fn duplicate_acks(&self) -> DuplicateAcks {
        DuplicateAcks { count: self.duplicates.count(), last_ack: self.ack_at }
    }
}
