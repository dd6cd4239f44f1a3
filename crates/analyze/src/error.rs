//! Why a capture was not read to its end.

use fullpipe_flow::Counts;
use fullpipe_flow::capture::ReadError;
use fullpipe_model::observe::tool_result::ParseResultError;
use std::path::PathBuf;

/// Why a capture was not read to its end. Everything before that was analysed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be opened.
    #[error("open {path}: {cause}; captures are files that tcpdump -w or dumpcap made", path = path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        cause: std::io::Error,
    },
    /// The contents cannot be read, or not any further.
    #[error("{name}: {cause}")]
    Read {
        /// The file or other source.
        name: String,
        /// The problem.
        cause: ReadError,
    },
    /// It is empty.
    #[error(
        "{name}: reading a capture: there is nothing in it; a capture has at least a file header"
    )]
    Empty {
        /// The file or other source.
        name: String,
    },
    /// It ends in the middle of a packet: it is still being written, or the disk was full.
    #[error(
        "{name}: reading a capture: it ends in the middle of a packet, {behind} after the last whole one; \
         {before}",
        behind = counted(*bytes),
        before = analysed(*packets, "packet")
    )]
    Cut {
        /// The file or other source.
        name: String,
        /// Bytes after the last complete packet.
        bytes: usize,
        /// Packets before it.
        packets: u64,
    },
    /// A line of a recording is not a sample.
    #[error(
        "{name}: reading samples: line {line}: {cause}; {before}",
        before = analysed(*samples, "sample")
    )]
    Sample {
        /// The file or other source.
        name: String,
        /// The number of the line, from 1.
        line: u64,
        /// What is wrong with it.
        cause: String,
        /// Samples before it.
        samples: u64,
    },
    /// A result of another program's test cannot be read, or says nothing of a TCP socket.
    #[error("{name}: reading a result: {cause}")]
    Result {
        /// The file or other source.
        name: String,
        /// What is wrong with it.
        cause: ParseResultError,
    },
    /// A reading thread failed; its panic was printed.
    #[error("reading a capture: a thread failed")]
    Thread,
}

/// Why not everything of the capture `name` is in its rows, in words; `None` where everything is.
/// `counts` and `errors` are what [`Connections::finish`](crate::Connections::finish) returns.
pub fn what_is_missing(name: &str, counts: &Counts, errors: &[Error]) -> Option<String> {
    let mut problems: Vec<_> = errors.iter().map(Error::to_string).collect();
    if counts.untracked > 0 {
        let packets = counts.untracked;
        problems.push(format!("{name}: {packets} packets of connections beyond the limit"));
    }
    if counts.forced_out > 0 {
        let connections = counts.forced_out;
        problems.push(format!(
            "{name}: {connections} connections were ended early, as too many were open at a time"
        ));
    }
    Some(problems.join("; ")).filter(|text| !text.is_empty())
}

/// What is analysed of a file that has no more than this before what cannot be read.
fn analysed(count: u64, what: &str) -> String {
    match count {
        0 => format!("there is no {what} before it"),
        1 => format!("the {what} before it is analysed"),
        _ => format!("the {count} {what}s before it are analysed"),
    }
}

fn counted(bytes: usize) -> String {
    if bytes == 1 { "one byte".into() } else { format!("{bytes} bytes") }
}
