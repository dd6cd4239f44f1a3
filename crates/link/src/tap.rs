//! Captures taken inside the link: every MTU segment as the wire would carry it, on its way in and
//! on its way out.
//!
//! Only the link sees the segments one by one, with the exact time of each and with the checksums
//! that a NIC would have filled in; a sniffer on the host's device sees super-packets without
//! either. There are two points in each direction: *ingress* is the wire at the sending host,
//! *egress* the wire at the receiving host. So a capture at a host's edge is the ingress of the
//! direction that leaves it merged with the egress of the other (the lab and `fullpipe link` do
//! that).
//!
//! The link's thread never waits for a disk: it fills chunks that a writer thread takes and
//! returns. If all chunks are in use ([`Spares`]), records are dropped and counted.

use super::outgoing::Parts;
use super::spares::Spares;
use super::super_packet::HEADER_MAX;
use fullpipe_flow::capture::write::{file_header, record_header};
use fullpipe_kernel::file::folder::readable;
use fullpipe_model::units::{Bytes, Duration, Instant};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};

const CHUNK: usize = 256 * 1024;
const CHUNKS_PER_STREAM: usize = 32;
/// 64 MiB: at 85,000 packets a second, of which the headers are kept, a disk may stand still for
/// five seconds.
const CHUNKS_PER_STREAM_MAX: usize = 256;

/// The two capture points of a direction; none by default.
#[derive(Debug, Default)]
pub struct Tap {
    /// Segments as they enter the link.
    pub ingress: Option<Stream>,
    /// Segments as they leave it.
    pub egress: Option<Stream>,
}

impl Tap {
    /// Passes on what is still buffered.
    pub fn finish(self) {
        for stream in [self.ingress, self.egress].into_iter().flatten() {
            stream.finish();
        }
    }
}

/// The output of one capture point.
#[derive(Debug)]
pub struct Stream {
    number: usize,
    snaplen: usize,
    /// Offset from the clock of the run to 1970.
    epoch: Duration,
    chunk: Vec<u8>,
    full: Sender<Message>,
    empty: Spares<u8>,
    dropped: u64,
}

#[derive(Debug)]
enum Message {
    Chunk(usize, Vec<u8>),
    Dropped(u64),
}

impl Stream {
    /// Writes segment `index` of `parts`, seen at `at`.
    pub fn segment(&mut self, parts: &Parts<'_>, index: u16, at: Instant) {
        let mut head = [0u8; HEADER_MAX];
        let wire = parts.on_wire(index, &mut head);
        let captured = wire.len().min(self.snaplen);
        if self.begin(captured, wire.len(), at) {
            wire.append_to(&mut self.chunk, captured);
        }
    }

    /// Writes a packet of `original` bytes, seen at `at`, of which only `start` is available.
    pub fn start_of(&mut self, start: &[u8], original: usize, at: Instant) {
        let captured = start.len().min(self.snaplen).min(original);
        if self.begin(captured, original, at) {
            self.chunk.extend_from_slice(&start[..captured]);
        }
    }

    /// Writes a record's header; false if there is no room for the record.
    fn begin(&mut self, captured: usize, original: usize, at: Instant) -> bool {
        if self.chunk.len() + 16 + captured > CHUNK && !self.next_chunk() {
            self.dropped += 1;
            return false;
        }
        self.chunk.extend_from_slice(&record_header(
            at + self.epoch,
            captured as u32,
            original as u32,
        ));
        true
    }

    /// Passes the chunk to the writer and takes an empty one; false if there is none.
    fn next_chunk(&mut self) -> bool {
        let Some(empty) = self.empty.take() else {
            return false;
        };
        let full = std::mem::replace(&mut self.chunk, empty);
        self.full.send(Message::Chunk(self.number, full)).is_ok()
    }

    /// Passes on what is still buffered.
    pub fn finish(self) {
        // If the writer is gone, `Writer::finish` reports its error.
        let _ = self.full.send(Message::Chunk(self.number, self.chunk));
        let _ = self.full.send(Message::Dropped(self.dropped));
    }
}

/// Why a capture or a log could not be written.
#[derive(Debug, thiserror::Error)]
#[error("write {what} {path}: {cause}; free some space, or choose another place for it", path = path.display())]
pub struct CaptureError {
    what: &'static str,
    path: PathBuf,
    cause: std::io::Error,
}

impl CaptureError {
    pub(super) fn new(what: &'static str, path: &Path, cause: std::io::Error) -> Self {
        CaptureError { what, path: readable(path), cause }
    }
}

/// The thread that writes the streams' chunks to their files.
#[derive(Debug)]
pub struct Writer {
    thread: std::thread::JoinHandle<Result<u64, CaptureError>>,
}

impl Writer {
    /// Creates a pcap file with nanoseconds for each of `paths`, and the stream that feeds it.
    ///
    /// # Errors
    /// A file cannot be created.
    pub fn start(
        paths: &[&Path],
        snaplen: Bytes,
        epoch: Duration,
    ) -> Result<(Writer, Vec<Stream>), CaptureError> {
        let (full, chunks) = channel();
        let mut files = Vec::new();
        let mut streams = Vec::new();
        let mut returns = Vec::new();
        for (number, path) in paths.iter().enumerate() {
            let file = create(path, &file_header(snaplen.get() as u32))
                .map_err(|cause| CaptureError::new("capture", path, cause))?;
            files.push((file, path.to_path_buf()));
            let (empty, give_back) = Spares::new(CHUNK, CHUNKS_PER_STREAM, CHUNKS_PER_STREAM_MAX);
            returns.push(give_back);
            streams.push(Stream {
                number,
                snaplen: snaplen.get() as usize,
                epoch,
                chunk: Vec::with_capacity(CHUNK),
                full: full.clone(),
                empty,
                dropped: 0,
            });
        }
        let thread = std::thread::Builder::new()
            .name("capture".into())
            .spawn(move || write(&chunks, &mut files, &returns))
            .map_err(|cause| {
                CaptureError::new("capture", paths.first().copied().unwrap_or(Path::new("")), cause)
            })?;
        Ok((Writer { thread }, streams))
    }

    /// Waits until every stream is finished and written; returns how many packets could not be
    /// recorded.
    ///
    /// # Errors
    /// The first write that failed.
    pub fn finish(self) -> Result<u64, CaptureError> {
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// A new file that begins with `header`.
fn create(path: &Path, header: &[u8]) -> std::io::Result<File> {
    let mut file = File::create(path)?;
    file.write_all(header)?;
    Ok(file)
}

fn write(
    chunks: &Receiver<Message>,
    files: &mut [(File, PathBuf)],
    returns: &[Sender<Vec<u8>>],
) -> Result<u64, CaptureError> {
    let (mut dropped, mut failure) = (0, None);
    for message in chunks {
        match message {
            Message::Dropped(count) => dropped += count,
            Message::Chunk(number, mut chunk) => {
                let (file, path) = &mut files[number];
                // After a failure chunks are still accepted, so that the link goes on; the run
                // fails anyway.
                if failure.is_none() {
                    failure = file
                        .write_all(&chunk)
                        .err()
                        .map(|cause| CaptureError::new("capture", path, cause));
                }
                chunk.clear();
                let _ = returns[number].send(chunk);
            }
        }
    }
    failure.map_or(Ok(dropped), Err)
}
