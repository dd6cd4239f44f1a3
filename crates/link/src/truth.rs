//! Writes the truth log: `link.log`, in the coding of [`fullpipe_model::link::log`].
//!
//! The threads that move packets fill batches of plain records. A separate thread encodes and
//! writes them, because the encoder's state is shared by both directions. Nobody waits for a disk:
//! if all batches are in use ([`Spares`]), records are dropped and counted. A record is made when a
//! packet's fate is known, so the file is in the order of fates.

use super::headers::Headers;
use super::ring::Origin;
use super::spares::Spares;
use super::super_packet::Layout;
use super::tap::CaptureError;
use fullpipe_model::link::log::{Direction, Encoder, Fate, Record, Tcp};
use fullpipe_model::link::rule::{PacketKey, Protocol};
use fullpipe_model::units::{Bytes, Duration};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

const BATCH: usize = 2048;
const BATCHES: usize = 16;
/// Half a million records: at 85,000 packets a second a disk may stand still for six seconds.
const BATCHES_MAX: usize = 256;

/// One direction's end of the log.
#[derive(Debug)]
pub struct Log {
    /// The direction of its packets.
    pub direction: Direction,
    batch: Vec<Record>,
    full: Sender<Message>,
    empty: Spares<Record>,
    dropped: u64,
}

#[derive(Debug)]
enum Message {
    Batch(Direction, Vec<Record>),
    Dropped(u64),
}

impl Log {
    /// Accepts a record, or counts it if there is no room.
    fn push(&mut self, record: Record) {
        if self.batch.len() == BATCH && !self.next_batch() {
            self.dropped += 1;
            return;
        }
        self.batch.push(record);
    }

    fn next_batch(&mut self) -> bool {
        let Some(empty) = self.empty.take() else { return false };
        let full = std::mem::replace(&mut self.batch, empty);
        self.full.send(Message::Batch(self.direction, full)).is_ok()
    }

    /// Passes on what is left.
    pub fn finish(self) {
        // If the writer is gone, `LogWriter::finish` reports its error.
        let _ = self.full.send(Message::Batch(self.direction, self.batch));
        let _ = self.full.send(Message::Dropped(self.dropped));
    }
}

/// What the records of a frame's segments have in common, so that a reader can find them in a
/// capture.
#[derive(Debug, Clone, Copy, Default)]
pub struct Identity {
    flow: Option<PacketKey>,
    /// The frame's, as if it were one segment; and the offset of the end of its headers in the IP
    /// packet.
    tcp: Option<(Tcp, usize)>,
}

impl Identity {
    /// The identity of `frame`.
    pub fn of(frame: &[u8], layout: &Layout) -> Identity {
        let ip = &frame[layout.ip_start()..];
        let Some(headers) = Headers::read(ip) else { return Identity::default() };
        let transport = headers.transport.filter(|_| headers.key.protocol == Protocol::TCP);
        Identity { flow: Some(headers.key), tcp: transport.and_then(|at| tcp(ip.get(at..)?, at)) }
    }

    /// The identity of segment `index`.
    fn segment(&self, layout: &Layout, index: u16) -> (Option<PacketKey>, Option<Tcp>) {
        let tcp = self.tcp.map(|(tcp, headers)| Tcp {
            seq: tcp.seq.wrapping_add(layout.payload_offset(index) as u32),
            payload: Bytes::new(layout.ip_len(index).saturating_sub(headers) as u64),
            flags: layout.flags(tcp.flags, index),
            ..tcp
        });
        (self.flow, tcp)
    }
}

fn tcp(header: &[u8], at: usize) -> Option<(Tcp, usize)> {
    let header: &[u8; 20] = header.first_chunk()?;
    let seq = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
    let ack = u32::from_be_bytes([header[8], header[9], header[10], header[11]]);
    let tcp = Tcp { seq, ack, payload: Bytes::ZERO, flags: header[13] };
    Some((tcp, at + usize::from(header[12] >> 4) * 4))
}

/// A segment and its fate.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Its frame's arrival and the number of the frame's first segment.
    pub origin: Origin,
    /// Index of the segment in the frame.
    pub index: u16,
    /// Whether this is the duplicate.
    pub copy: bool,
    /// Bytes that were waiting when it arrived.
    pub backlog: Bytes,
    /// How long it waited for the transmitter.
    pub queued: Duration,
    /// What happened to it.
    pub fate: Fate,
}

impl Log {
    /// Records what happened to a segment.
    pub fn record(&mut self, entry: &Entry, identity: &Identity, layout: &Layout) {
        let Entry { origin, index, copy, backlog, queued, fate } = *entry;
        let (flow, tcp) = identity.segment(layout, index);
        self.push(Record {
            number: origin.number + u64::from(index),
            direction: self.direction,
            copy,
            arrival: origin.arrival,
            size: Bytes::new(layout.ip_len(index) as u64),
            backlog,
            queued,
            fate,
            flow,
            tcp,
        });
    }
}

/// The thread that encodes and writes.
#[derive(Debug)]
pub struct LogWriter {
    thread: JoinHandle<Result<u64, CaptureError>>,
}

impl LogWriter {
    /// Creates the file `path` and both directions' ends, to the client and to the server. `epoch`
    /// is the offset from the run's clock to 1970.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn start(path: &Path, epoch: Duration) -> Result<(LogWriter, [Log; 2]), CaptureError> {
        let wrong = |cause| CaptureError::new("link log", path, cause);
        let mut file = BufWriter::with_capacity(1 << 18, File::create(path).map_err(wrong)?);
        let (encoder, header) = Encoder::new(epoch);
        file.write_all(&header).map_err(wrong)?;
        let (full, batches) = channel();
        let mut returns = Vec::new();
        let logs = [Direction::ToClient, Direction::ToServer].map(|direction| {
            let (empty, give_back) = Spares::new(BATCH, BATCHES, BATCHES_MAX);
            returns.push(give_back);
            Log {
                direction,
                batch: Vec::with_capacity(BATCH),
                full: full.clone(),
                empty,
                dropped: 0,
            }
        });
        let path_of_thread = PathBuf::from(path);
        let thread = std::thread::Builder::new()
            .name("link-log".into())
            .spawn(move || {
                write(&batches, encoder, file, &returns)
                    .map_err(|cause| CaptureError::new("link log", &path_of_thread, cause))
            })
            .map_err(wrong)?;
        Ok((LogWriter { thread }, logs))
    }

    /// Waits until both ends have finished and everything is written; returns how many records were
    /// dropped.
    ///
    /// # Errors
    /// The first write that failed.
    pub fn finish(self) -> Result<u64, CaptureError> {
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

fn write(
    batches: &Receiver<Message>,
    mut encoder: Encoder,
    mut file: BufWriter<File>,
    returns: &[Sender<Vec<Record>>],
) -> std::io::Result<u64> {
    let (mut dropped, mut failure, mut bytes) = (0, None, Vec::new());
    for message in batches {
        match message {
            Message::Dropped(count) => dropped += count,
            Message::Batch(direction, mut batch) => {
                bytes.clear();
                for record in batch.drain(..) {
                    encoder.encode(&record, &mut bytes);
                }
                // After a failure batches are still accepted, so that the link goes on; the log is
                // lost anyway.
                if failure.is_none() {
                    failure = file.write_all(&bytes).err();
                }
                let _ = returns[usize::from(direction == Direction::ToServer)].send(batch);
            }
        }
    }
    failure.map_or(Ok(()), Err)?;
    file.flush()?;
    Ok(dropped)
}

#[cfg(test)]
mod tests {
    use super::super::super_packet::tests::super_packet;
    use super::*;
    use fullpipe_model::link::log::Decoder;
    use fullpipe_model::units::Instant;

    #[test]
    fn what_is_pushed_is_in_the_file_both_ways() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("link.log");
        let (writer, [mut to_client, mut to_server]) =
            LogWriter::start(&path, Duration::from_secs(1)).unwrap();
        let frame = super_packet(false, 0, &[7; 3000], 1448, true);
        let layout = Layout::parse(&frame, 0).unwrap();
        let identity = Identity::of(&frame, &layout);
        let entry = |number: u64| {
            let arrival = Instant::from_nanos(number * 1000);
            let fate = Fate::Departed { at: arrival, mark: false, corrupt: None };
            let origin = Origin { arrival, number: number - number % 3 };
            let (backlog, queued) = (Bytes::ZERO, Duration::ZERO);
            Entry { origin, index: (number % 3) as u16, copy: false, backlog, queued, fate }
        };
        for number in 0..5000 {
            to_client.record(&entry(number), &identity, &layout);
            to_server.record(&entry(number), &identity, &layout);
        }
        to_client.finish();
        to_server.finish();
        let dropped = writer.finish().unwrap();
        let mut decoder = Decoder::new();
        decoder.push(&std::fs::read(&path).unwrap());
        let mut read = Vec::new();
        while let Some(record) = decoder.poll().unwrap() {
            read.push(record);
        }
        decoder.finish().unwrap();
        assert_eq!(read.len() as u64 + dropped, 10_000);
        for found in &read {
            assert_eq!(found.arrival.as_nanos(), found.number * 1000);
        }
        let first: Vec<_> =
            read.iter().filter(|r| r.direction == Direction::ToClient).take(3).collect();
        let tcp: Vec<_> = first.iter().map(|record| record.tcp.unwrap()).collect();
        assert_eq!(tcp.iter().map(|tcp| tcp.payload.get()).collect::<Vec<_>>(), [1448, 1448, 104]);
        assert_eq!(tcp[1].seq.wrapping_sub(tcp[0].seq), 1448);
        // FIN and PSH on the last only, CWR on the first only.
        assert_eq!(tcp.iter().map(|tcp| tcp.flags & 0x89).collect::<Vec<_>>(), [0x80, 0, 0x09]);
    }
}
