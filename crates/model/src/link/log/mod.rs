//! The truth log: for each packet when it came, what became of it, how long it waited and when it
//! left.
//!
//! It is the ground truth that an analysis of captures can be scored against. A record holds what a
//! reader needs to find the packet in a capture without having it: its flow, and of a TCP segment
//! sequence and acknowledgement number.
//!
//! # Coding
//!
//! A header of 16 bytes (magic, version, the epoch), then records. Each is its length as a varint
//! and its body; a reader can skip a body that it does not understand. Numbers are LEB128 varints,
//! differences zigzag-coded: of number and arrival to the record before in the same direction. A
//! flow is written out once and then named by its index. A record of a TCP segment takes some 30
//! bytes.
//!
//! ```text
//! header   "FPLINK" 00 version | epoch: nanoseconds from the log's clock to 1970, u64 little endian
//! record   length | flags | number | arrival | size | backlog | queued | left - arrival | [cause] [bit] [flow] [tcp]
//! flags    1 to server, 2 copy, 4 dropped, 8 marked, 16 corrupted, 32 flow, 64 tcp, 128 flow written out
//! ```
//!
//! [`Encoder::encode`] is called once a packet, in any order of fates. A [`Decoder`] is given bytes
//! by [`Decoder::push`] as they come, asked by [`Decoder::poll`] until `None`, and at the end told
//! to [`Decoder::finish`].

mod coding;
mod decode;
mod encode;

pub use decode::Decoder;
pub use encode::Encoder;

use super::rule::PacketKey;
use super::{Bit, DropCause};
use crate::units::{Bytes, Duration, Instant};

/// The coding that is written, and the newest that is read.
pub const VERSION: u8 = 1;
const MAGIC: [u8; 7] = *b"FPLINK\0";
/// Flows that are given an index; those after are written out each time.
const FLOWS_MAX: usize = 1 << 16;
/// No record is longer.
const RECORD_MAX: usize = 256;

const TO_SERVER: u8 = 1;
const COPY: u8 = 2;
const DROPPED: u8 = 4;
const MARKED: u8 = 8;
const CORRUPTED: u8 = 16;
const FLOW: u8 = 32;
const TCP: u8 = 64;
const FLOW_WRITTEN: u8 = 128;

/// Which way a packet goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From server to client: the way of the data.
    ToClient,
    /// From client to server.
    ToServer,
}

/// A packet and its fate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// In the order of arrival, from 0 in each direction. A duplicate has its original's.
    pub number: u64,
    /// Which way.
    pub direction: Direction,
    /// Whether this is the duplicate.
    pub copy: bool,
    /// When it came to the link.
    pub arrival: Instant,
    /// Of the IP packet.
    pub size: Bytes,
    /// Bytes that waited when it came.
    pub backlog: Bytes,
    /// How long it waited for the transmitter.
    pub queued: Duration,
    /// What became of it.
    pub fate: Fate,
    /// Addresses, ports and protocol, where it could be read.
    pub flow: Option<PacketKey>,
    /// Of a TCP segment.
    pub tcp: Option<Tcp>,
}

/// What became of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It left.
    Departed {
        /// When, by the model: a capture at the far edge has this time and the driver's lateness.
        at: Instant,
        /// With a congestion mark.
        mark: bool,
        /// With a bit flipped.
        corrupt: Option<Bit>,
    },
    /// It did not.
    Dropped {
        /// When.
        at: Instant,
        /// Why.
        cause: DropCause,
    },
}

/// What tells a TCP segment from the others of its flow.
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

/// Why bytes are no truth log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// Another file.
    #[error(
        "read link log: it does not begin as one; is it a file that `fullpipe` wrote with --log?"
    )]
    Magic,
    /// A newer program wrote it.
    #[error(
        "read link log: its version is {0}, this program reads up to {VERSION}; use the program that wrote it"
    )]
    Version(u8),
    /// A record that cannot be.
    #[error(
        "read link log: record {record}: {problem}; the file is damaged there, the records before it are whole"
    )]
    Record {
        /// Which, from 1.
        record: u64,
        /// What is wrong.
        problem: &'static str,
    },
    /// It ends within a record.
    #[error("read link log: it ends within record {record}; the records before it are whole")]
    Truncated {
        /// Which, from 1; 0: within the header.
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
