//! Which of one direction's data the path let pass: by the size of a segment, and by where it ended
//! beside the number that the window field carries.
//!
//! Two devices lose data by its shape. A tunnel whose MTU is smaller than the ends believe, and
//! whose ICMP messages do not arrive, loses every segment above a size (RFC 2923, section 2.1). A
//! firewall that does not know the window scale loses all that lies beyond the unscaled window, and
//! one that rewrites the option makes the sender stop there.

use crate::capture::segment::SequenceNumber;
use fullpipe_model::units::Bytes;

/// What passed so far. It is kept small, since each open connection has two.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Passage {
    /// The largest size in which data was sent last and then acknowledged.
    passed: u16,
    /// How often new data ended exactly at the number in the window field, and beyond it.
    at_field: u8,
    beyond_field: u8,
    /// Data was acknowledged after it had been sent again in smaller segments.
    was_split: bool,
    /// Data beyond the number in the window field was acknowledged.
    passed_field: bool,
}

/// What passed the path and what did not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PassageFacts {
    /// The largest segment that was sent, and how often one of that size was; up to 255 are
    /// counted.
    pub largest: Bytes,
    /// See [`PassageFacts::largest`].
    pub largest_sent: u32,
    /// The largest segment that arrived, as ACK and SACK show.
    pub passed: Bytes,
    /// Whether data arrived only after it had been sent again in smaller segments.
    pub was_split: bool,
    /// Whether the receiver waits for data although it has some that was sent after it.
    pub is_overtaken: bool,
    /// What is missing at the end before data that passed the capture point.
    pub hole: Bytes,
    /// How often new data ended exactly at the unscaled number in the window field, where a scale
    /// was agreed; up to 255 are counted.
    pub at_field: u32,
    /// How often it ended beyond that number; up to 255 are counted.
    pub beyond_field: u32,
    /// Whether any of that was acknowledged without being sent again.
    pub passed_field: bool,
}

impl Passage {
    /// Notes new data up to `end`. `edge` is the highest number that the unscaled window field
    /// allows, where that is not what it means. Returns whether the data is beyond it.
    pub fn sent(&mut self, end: SequenceNumber, edge: Option<SequenceNumber>) -> bool {
        let Some(edge) = edge else { return false };
        let beyond = end.after(edge);
        self.at_field = self.at_field.saturating_add(u8::from(beyond == 0));
        self.beyond_field = self.beyond_field.saturating_add(u8::from(beyond > 0));
        beyond > 0
    }

    /// Notes that data was acknowledged that was sent last in segments of up to `size` bytes.
    pub fn acknowledged(&mut self, size: u16, was_split: bool, is_beyond: bool) {
        self.passed = self.passed.max(size);
        self.was_split |= was_split;
        self.passed_field |= is_beyond;
    }

    /// The facts at the end, but for what only the scoreboard knows.
    pub fn facts(self, largest: u32, largest_sent: u32) -> PassageFacts {
        PassageFacts {
            largest: Bytes::new(largest.into()),
            largest_sent,
            passed: Bytes::new(u64::from(self.passed).min(largest.into())),
            was_split: self.was_split,
            at_field: self.at_field.into(),
            beyond_field: self.beyond_field.into(),
            passed_field: self.passed_field,
            ..PassageFacts::default()
        }
    }
}
