//! Why a capture was not read to its end.

use fullpipe_flow::capture::ReadError;
use std::path::PathBuf;

/// Why a capture was not read to its end. What was read before it is analysed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file that cannot be opened.
    #[error("open {path}: {cause}; captures are files that tcpdump -w or dumpcap made", path = path.display())]
    Open {
        /// Which file.
        path: PathBuf,
        /// The system's answer.
        cause: std::io::Error,
    },
    /// What is in it cannot be read, or not further.
    #[error("{name}: {cause}")]
    Read {
        /// Which file or other source.
        name: String,
        /// What is wrong.
        cause: ReadError,
    },
    /// It is empty.
    #[error(
        "{name}: reading a capture: there is nothing in it; a capture has at least a file header"
    )]
    Empty {
        /// Which file or other source.
        name: String,
    },
    /// It ends in the middle of a packet, as captures do that are still written or whose disk was
    /// full.
    #[error(
        "{name}: reading a capture: it ends in the middle of a packet, {behind} after the last whole one; \
         the {packets} packets before it are analysed",
        behind = counted(*bytes)
    )]
    Cut {
        /// Which file or other source.
        name: String,
        /// Bytes behind the last whole packet.
        bytes: usize,
        /// Packets before it.
        packets: u64,
    },
    /// A thread that read for all failed; its panic was printed.
    #[error("reading a capture: a thread failed")]
    Thread,
}

fn counted(bytes: usize) -> String {
    if bytes == 1 { "one byte".into() } else { format!("{bytes} bytes") }
}
