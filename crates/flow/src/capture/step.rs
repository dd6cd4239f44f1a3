//! What every format makes of a record, so that the reader need not know which format it reads.

use super::LinkType;

/// What a format makes of the bytes at the start of a record.
pub(super) enum Step {
    /// A packet: `data` of `record` bytes in all.
    Packet {
        record: usize,
        data: std::ops::Range<usize>,
        at: u64,
        link_type: LinkType,
        original: usize,
    },
    /// `record` bytes without a packet.
    Other { record: usize },
    /// At least so many bytes are needed from the record's start.
    Need(usize),
    /// Cannot go on.
    Bad(&'static str),
}
