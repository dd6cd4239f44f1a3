//! The truth log: for each packet when it arrived, what happened to it, how long it waited and when
//! it left.
//!
//! It is the ground truth against which an analysis of captures can be scored. A record has what a
//! reader needs to find the packet in a capture: its flow, and for a TCP segment its sequence and
//! acknowledgement number.
//!
//! # Coding
//!
//! A header of 16 bytes (magic, version, the epoch), then records. Each record is its length as a
//! varint, followed by its body, so a reader can skip a body that it does not understand. Numbers
//! are LEB128 varints; the packet number and arrival are zigzag-coded differences from the previous
//! record in the same direction. A flow is written in full once and then referred to by its index.
//! A record of a TCP segment takes some 30 bytes.
//!
//! ```text
//! header   "FPLINK" 00 version | epoch: nanoseconds from the log's clock to 1970, u64 little endian
//! record   length | flags | number | arrival | size | backlog | queued | left - arrival | [cause] [bit] [flow] [tcp]
//! flags    1 to server, 2 copy, 4 dropped, 8 marked, 16 corrupted, 32 flow, 64 tcp, 128 flow written out
//! ```
//!
//! Call [`Encoder::encode`] once for each packet, in any order of fates. Pass bytes to a
//! [`Decoder`] by [`Decoder::push`] as they arrive, call [`Decoder::poll`] until `None`, and
//! [`Decoder::finish`] at the end.

mod coding;
mod decode;
mod encode;

pub use decode::Decoder;
pub use encode::Encoder;

use super::rule::PacketKey;
use super::{Bit, DropCause};
use crate::units::{Bytes, Duration, Instant};

/// The version that is written, and the newest that can be read.
pub const VERSION: u8 = 1;
const MAGIC: [u8; 7] = *b"FPLINK\0";
/// Flows that get an index; further ones are written in full each time.
const FLOWS_MAX: usize = 1 << 16;
/// The longest possible record.
const RECORD_MAX: usize = 256;

const TO_SERVER: u8 = 1;
const COPY: u8 = 2;
const DROPPED: u8 = 4;
const MARKED: u8 = 8;
const CORRUPTED: u8 = 16;
const FLOW: u8 = 32;
const TCP: u8 = 64;
const FLOW_WRITTEN: u8 = 128;

/// The direction of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From server to client: the direction of the data.
    ToClient,
    /// From client to server.
    ToServer,
}

/// A packet and its fate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Position in the order of arrival, from 0 in each direction. A duplicate has its original's
    /// number.
    pub number: u64,
    /// Its direction.
    pub direction: Direction,
    /// Whether this is the duplicate.
    pub copy: bool,
    /// When it arrived at the link.
    pub arrival: Instant,
    /// Size of the IP packet.
    pub size: Bytes,
    /// Bytes that were waiting when it arrived.
    pub backlog: Bytes,
    /// How long it waited for the transmitter.
    pub queued: Duration,
    /// What happened to it.
    pub fate: Fate,
    /// Addresses, ports and protocol, if they could be read.
    pub flow: Option<PacketKey>,
    /// For a TCP segment.
    pub tcp: Option<Tcp>,
}

/// What happened to a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It left.
    Departed {
        /// Departure time by the model. A capture at the far edge shows this time plus the driver's
        /// lateness.
        at: Instant,
        /// With a congestion mark.
        mark: bool,
        /// With a bit flipped.
        corrupt: Option<Bit>,
    },
    /// It was dropped.
    Dropped {
        /// When.
        at: Instant,
        /// Why.
        cause: DropCause,
    },
}

/// Identifies a TCP segment within its flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tcp {
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Payload.
    pub payload: Bytes,
    /// FIN to CWR, as in the header's byte 13.
    pub flags: u8,
}

/// Why bytes are not a truth log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// The file is something else.
    #[error("read link log: it is not a link log; is it a file that `fullpipe` wrote with --log?")]
    Magic,
    /// A newer program wrote it.
    #[error(
        "read link log: its version is {0}, this program reads up to {VERSION}; use the program that wrote it"
    )]
    Version(u8),
    /// An impossible record.
    #[error(
        "read link log: record {record}: {problem}; the file is damaged there, the records before it are whole"
    )]
    Record {
        /// Its number, from 1.
        record: u64,
        /// What is wrong.
        problem: &'static str,
    },
    /// It ends within a record.
    #[error("read link log: it ends within record {record}; the records before it are whole")]
    Truncated {
        /// Its number, from 1; 0 means within the header.
        record: u64,
    },
}

/// Number and arrival of the last record of a direction.
#[derive(Debug, Clone, Copy, Default)]
struct Last {
    number: u64,
    arrival: u64,
}

#[cfg(test)]
mod tests;
