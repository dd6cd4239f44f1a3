//! The capture at a host's edge: what left it and what reached it, in order of time.
//!
//! Our link writes each direction's two points as a stream of its own (`fullpipe_link`); a host's
//! edge is the ingress of the direction that leaves it and the egress of the one that comes to it.
//! `fullpipe-analyze` merges them. netem's edges are one stream each
//! ([`fullpipe_link::NetemLink`]).

use fullpipe_analyze::Capture;
use fullpipe_flow::capture::Packet;
use fullpipe_flow::capture::write::{file_header, record_header};
use fullpipe_flow::{Analysis, Analyzer};
use fullpipe_kernel::file::folder::{Pending, readable};
use fullpipe_model::units::Bytes;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Why a capture could not be read back or written.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// A file.
    #[error("{operation} capture {path}: {cause}; free some space, or choose another place with --output", path = path.display())]
    File {
        /// What was tried.
        operation: &'static str,
        /// Which file.
        path: PathBuf,
        /// The kernel's answer.
        cause: std::io::Error,
    },
    /// What is in it.
    #[error(transparent)]
    Content(#[from] fullpipe_analyze::Error),
}

/// Merges the streams of an edge, gives every packet to `analyzer`, shows it to `observer`, and
/// writes it to `keep` if named. Returns the analysis. Of packets of the same time that of the
/// stream named first comes first.
///
/// # Errors
/// A stream that cannot be read, a capture that cannot be written.
pub(crate) fn analyse(
    streams: &[PathBuf],
    keep: Option<(&Path, Bytes)>,
    mut analyzer: Analyzer,
    observer: &mut dyn FnMut(&Packet<'_>),
) -> Result<Analysis, MergeError> {
    let mut out = keep.map(|(path, snaplen)| PcapFile::create(path, snaplen)).transpose()?;
    Capture::merged(streams.iter().cloned()).for_each_packet(|packet| {
        analyzer.push_packet(packet);
        observer(packet);
        out.as_mut().map_or(Ok(()), |out| out.write(packet))
    })?;
    if let Some(out) = out {
        out.finish()?;
    }
    Ok(analyzer.finish())
}

/// A capture under a temporary name until it is complete.
struct PcapFile {
    path: PathBuf,
    file: BufWriter<Pending>,
}

impl PcapFile {
    fn create(path: &Path, snaplen: Bytes) -> Result<PcapFile, MergeError> {
        let made = Pending::at(path).and_then(|pending| {
            let mut file = BufWriter::with_capacity(1 << 18, pending);
            file.write_all(&file_header(snaplen.get() as u32))?;
            Ok(PcapFile { path: path.into(), file })
        });
        made.map_err(|cause| MergeError::File { operation: "create", path: readable(path), cause })
    }

    fn write(&mut self, packet: &Packet<'_>) -> Result<(), MergeError> {
        let header =
            record_header(packet.at, packet.data.len() as u32, packet.original_length as u32);
        let written = self.file.write_all(&header).and_then(|()| self.file.write_all(packet.data));
        written.map_err(|cause| MergeError::File {
            operation: "write",
            path: readable(&self.path),
            cause,
        })
    }

    fn finish(self) -> Result<(), MergeError> {
        let written = self.file.into_inner().map_err(|error| error.into_error());
        let done = written.and_then(Pending::commit);
        done.map_err(|cause| MergeError::File {
            operation: "write",
            path: readable(&self.path),
            cause,
        })
    }
}
