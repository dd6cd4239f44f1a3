//! The capture at a host's edge: what left it and what reached it, in order of time.
//!
//! Our link writes each direction's two points as a stream of its own ([`crate::link::tap`]); a host's edge is the
//! ingress of the direction that leaves it and the egress of the one that comes to it. Both are in order, so merging
//! them needs one packet of each in memory. netem's edges are one stream each ([`crate::link::netem`]).

use fullpipe_flow::capture::write::{file_header, record_header};
use fullpipe_flow::capture::{Packet, ReadError, Reader};
use fullpipe_flow::{Analysis, Analyzer};
use fullpipe_kernel::folder::{Pending, readable};
use fullpipe_model::units::{Bytes, Instant};
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// Why a capture could not be read back or written.
#[derive(Debug, thiserror::Error)]
pub enum EdgeError {
    /// A file.
    #[error("{operation} capture {path}: {cause}; free some space, or choose another place with --out", path = path.display())]
    File {
        /// What was tried.
        operation: &'static str,
        /// Which file.
        path: PathBuf,
        /// The kernel's answer.
        cause: std::io::Error,
    },
    /// What is in it.
    #[error("read capture {path}: {cause}", path = path.display())]
    Content {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        cause: ReadError,
    },
}

/// One stream, a packet ahead.
struct Stream {
    path: PathBuf,
    file: File,
    reader: Reader,
    chunk: Vec<u8>,
    next: Option<Held>,
}

/// A packet that waits for its turn.
struct Held {
    at: Instant,
    link_type: fullpipe_flow::capture::LinkType,
    data: Vec<u8>,
    original_length: usize,
}

impl Stream {
    fn open(path: &Path) -> Result<Stream, EdgeError> {
        let file = File::open(path).map_err(|cause| EdgeError::File { operation: "open", path: path.into(), cause })?;
        let mut stream =
            Stream { path: path.into(), file, reader: Reader::new(), chunk: vec![0; 256 * 1024], next: None };
        stream.advance()?;
        Ok(stream)
    }

    /// Reads on to the next packet.
    fn advance(&mut self) -> Result<(), EdgeError> {
        // The buffer of the packet before is used again.
        let mut data = self.next.take().map(|held| held.data).unwrap_or_default();
        loop {
            let wrong = |cause| EdgeError::Content { path: self.path.clone(), cause };
            if let Some(packet) = self.reader.next_packet().map_err(wrong)? {
                data.clear();
                data.extend_from_slice(packet.data);
                let Packet { at, link_type, original_length, .. } = packet;
                self.next = Some(Held { at, link_type, data, original_length });
                return Ok(());
            }
            let wrong = |cause| EdgeError::File { operation: "read", path: self.path.clone(), cause };
            match self.file.read(&mut self.chunk).map_err(wrong)? {
                0 => return Ok(()),
                len => self.reader.feed(&self.chunk[..len]),
            }
        }
    }
}

/// Merges the streams of an edge, gives every packet to `analyzer`, and writes them to `keep` if named. Returns the
/// analysis. Of packets of the same time that of the stream named first comes first.
pub fn analyse(
    streams: &[PathBuf],
    keep: Option<(&Path, Bytes)>,
    mut analyzer: Analyzer,
) -> Result<Analysis, EdgeError> {
    let mut streams = streams.iter().map(|path| Stream::open(path)).collect::<Result<Vec<_>, _>>()?;
    let mut out = keep.map(|(path, snaplen)| PcapFile::create(path, snaplen)).transpose()?;
    // min_by_key gives the first of equals.
    while let Some(stream) = streams
        .iter_mut()
        .filter(|stream| stream.next.is_some())
        .min_by_key(|stream| stream.next.as_ref().map(|held| held.at))
    {
        if let Some(held) = &stream.next {
            analyzer.push(held.at, held.link_type, &held.data, held.original_length);
            if let Some(out) = &mut out {
                out.write(held)?;
            }
        }
        stream.advance()?;
    }
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
    fn create(path: &Path, snaplen: Bytes) -> Result<PcapFile, EdgeError> {
        let wrong = |cause| EdgeError::File { operation: "create", path: readable(path), cause };
        let mut file = BufWriter::with_capacity(1 << 18, Pending::at(path).map_err(wrong)?);
        file.write_all(&file_header(snaplen.get() as u32)).map_err(wrong)?;
        Ok(PcapFile { path: path.into(), file })
    }

    fn write(&mut self, held: &Held) -> Result<(), EdgeError> {
        let header = record_header(held.at, held.data.len() as u32, held.original_length as u32);
        let written = self.file.write_all(&header).and_then(|()| self.file.write_all(&held.data));
        written.map_err(|cause| EdgeError::File { operation: "write", path: readable(&self.path), cause })
    }

    fn finish(self) -> Result<(), EdgeError> {
        let written = self.file.into_inner().map_err(|error| error.into_error());
        let done = written.and_then(Pending::commit);
        done.map_err(|cause| EdgeError::File { operation: "write", path: readable(&self.path), cause })
    }
}
