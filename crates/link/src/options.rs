//! How to run a link: its captures, its log, its memory.

use fullpipe_model::units::{Bytes, Duration};
use std::path::Path;

/// How to run a link.
#[derive(Debug, Clone, Default)]
pub struct LinkOptions<'a> {
    /// Where to capture, and how much of each packet; `None`: no captures.
    pub capture: Option<CaptureOptions<'a>>,
    /// Where to write the truth log; `None`: no log.
    pub log: Option<LogOptions<'a>>,
    /// Segments due within this time are written together; `None`: the rate decides.
    pub coalesce: Option<Duration>,
    /// The most memory for packets in both directions together; `None`: half of what is available.
    pub memory_max: Option<Bytes>,
    /// Time passes only while everything waits: see the module `virtual_time`.
    pub virtual_time: bool,
}

/// Captures of a link.
#[derive(Debug, Clone, Copy)]
pub struct CaptureOptions<'a> {
    /// Folder for the captures: of our own link four streams, see [`EDGE_STREAMS`].
    pub directory: &'a Path,
    /// Bytes captured of each packet.
    pub snaplen: Bytes,
    /// Offset from the run's clock to 1970.
    pub epoch: Duration,
}

/// The truth log of a link: each packet and its fate, see [`fullpipe_model::link::log`].
#[derive(Debug, Clone, Copy)]
pub struct LogOptions<'a> {
    /// The file.
    pub path: &'a Path,
    /// Offset from the run's clock to 1970.
    pub epoch: Duration,
}

/// File names of the streams of the server's edge and of the client's. Arriving packets come before
/// departing ones, because an answer may have the same time as the packet that it answers.
pub const EDGE_STREAMS: [[&str; 2]; 2] = [[STREAMS[3], STREAMS[0]], [STREAMS[1], STREAMS[2]]];

/// File names of the four capture points: the direction of the data in and out, the direction of
/// the acknowledgements in and out.
pub(crate) const STREAMS: [&str; 4] = [
    "to-client.ingress.pcap",
    "to-client.egress.pcap",
    "to-server.ingress.pcap",
    "to-server.egress.pcap",
];
