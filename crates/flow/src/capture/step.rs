//! What each format makes of a record, so that the reader need not know the format.

use super::LinkType;

/// What a format makes of the bytes at the start of a record.
pub(super) enum Step {
    /// A packet: `data` is its part of a record of `record` bytes.
    Packet {
        record: usize,
        data: std::ops::Range<usize>,
        at: u64,
        link_type: LinkType,
        original: usize,
    },
    /// A key log of TLS: `data` is its part of a record of `record` bytes.
    Secrets { record: usize, data: std::ops::Range<usize> },
    /// `record` bytes without a packet.
    Other { record: usize },
    /// At least this many bytes are needed, counted from the record's start.
    Need(usize),
    /// The file cannot be read further.
    Bad(&'static str),
}
