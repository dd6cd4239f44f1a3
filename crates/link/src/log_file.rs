//! Reads a truth log: as records, as counts of fates, as pcapng with a comment on each packet, as
//! JSON.
//!
//! The log has no packets, but enough to reconstruct their headers. The pcapng has these headers,
//! with the times and in the order in which the packets arrived at the link, and each packet's fate
//! as its comment. So it opens in Wireshark beside a capture.

use fullpipe_flow::capture::write_ng;
use fullpipe_model::link::DropCause;
use fullpipe_model::link::log::{Decoder, Direction, Fate, LogError, Record, Tcp};
use fullpipe_model::link::rule::{PacketKey, Protocol};
use fullpipe_model::units::{Bytes, Duration};
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// Why a log could not be read or converted.
#[derive(Debug, thiserror::Error)]
pub enum LogFileError {
    /// A file operation failed.
    #[error("{operation} {path}: {cause}", path = path.display())]
    File {
        /// The operation.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// The kernel's answer.
        cause: std::io::Error,
    },
    /// The contents are invalid.
    #[error("{path}: {cause}", path = path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The problem.
        cause: LogError,
    },
}

/// A log in memory: its records in the order of arrival.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogFile {
    /// Offset from the records' clock to 1970.
    pub epoch: Duration,
    /// One for each packet and each duplicate.
    pub records: Vec<Record>,
}

impl LogFile {
    /// Reads the log at `path`.
    ///
    /// # Errors
    /// The file cannot be read, or is not a log.
    pub fn read(path: &Path) -> Result<LogFile, LogFileError> {
        let wrong =
            |cause| LogFileError::File { operation: "read link log", path: path.into(), cause };
        let content = |cause| LogFileError::Content { path: path.into(), cause };
        let mut file = File::open(path).map_err(wrong)?;
        let (mut decoder, mut records, mut chunk) = (Decoder::new(), Vec::new(), vec![0; 1 << 18]);
        loop {
            let count = file.read(&mut chunk).map_err(wrong)?;
            if count == 0 {
                break;
            }
            decoder.push(&chunk[..count]);
            while let Some(record) = decoder.poll().map_err(content)? {
                records.push(record);
            }
        }
        let epoch = decoder.epoch().unwrap_or_default();
        decoder.finish().map_err(content)?;
        records.sort_by_key(|record| {
            (record.arrival, record.direction == Direction::ToServer, record.number)
        });
        Ok(LogFile { epoch, records })
    }

    /// Counts the fates of packets in one direction.
    pub fn count(&self, direction: Direction) -> Fates {
        let mut fates = Fates::default();
        for record in self.records.iter().filter(|record| record.direction == direction) {
            fates.add(record);
        }
        fates
    }

    /// Writes it as pcapng.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_pcapng(&self, path: &Path) -> Result<(), LogFileError> {
        self.try_write_pcapng(path).map_err(|cause| LogFileError::File {
            operation: "write",
            path: path.into(),
            cause,
        })
    }

    fn try_write_pcapng(&self, path: &Path) -> std::io::Result<()> {
        let mut file = BufWriter::with_capacity(1 << 18, File::create(path)?);
        let mut bytes = Vec::new();
        write_ng::file_header(&["to-client", "to-server"], &mut bytes);
        for record in &self.records {
            let interface = u32::from(record.direction == Direction::ToServer);
            let size = record.size.get().min(u32::MAX.into()) as u32;
            let (at, head) = (record.arrival + self.epoch, headers(record));
            write_ng::packet(interface, at, &head, size, &comment(record), &mut bytes);
            file.write_all(&bytes)?;
            bytes.clear();
        }
        file.write_all(&bytes)?;
        file.flush()
    }
}

/// Counts of fates; duplicates count as packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Fates {
    /// Packets that arrived.
    pub arrived_packets: u64,
    /// Copies made of them.
    pub duplicated_packets: u64,
    /// Packets and copies that left.
    pub departed_packets: u64,
    /// Lost by the loss model.
    pub lost_packets: u64,
    /// Dropped because the queue was full.
    pub queue_dropped_packets: u64,
    /// Dropped by the queue discipline.
    pub discipline_dropped_packets: u64,
    /// Left with a congestion mark.
    pub marked_packets: u64,
    /// Left with a bit flipped.
    pub corrupted_packets: u64,
}

impl Fates {
    fn add(&mut self, record: &Record) {
        self.arrived_packets += u64::from(!record.copy);
        self.duplicated_packets += u64::from(record.copy);
        match record.fate {
            Fate::Departed { mark, corrupt, .. } => {
                self.departed_packets += 1;
                self.marked_packets += u64::from(mark);
                self.corrupted_packets += u64::from(corrupt.is_some());
            }
            Fate::Dropped { cause: DropCause::Loss, .. } => self.lost_packets += 1,
            Fate::Dropped { cause: DropCause::QueueFull, .. } => self.queue_dropped_packets += 1,
            Fate::Dropped { cause: DropCause::Discipline, .. } => {
                self.discipline_dropped_packets += 1
            }
        }
    }
}

/// A record in JSON; every number has its unit in its name.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct JsonRecord {
    direction: &'static str,
    number: u64,
    copy: bool,
    arrival_ns: u64,
    size_bytes: u64,
    backlog_bytes: u64,
    queued_ns: u64,
    /// `departed`, or the cause of the drop.
    fate: &'static str,
    /// Time of the departure or drop.
    at_ns: u64,
    mark: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    corrupt_byte: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    corrupt_bit: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    destination: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ack: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_bytes: Option<u64>,
}

impl From<&Record> for JsonRecord {
    fn from(record: &Record) -> Self {
        let (fate, at, mark, corrupt) = match record.fate {
            Fate::Departed { at, mark, corrupt } => ("departed", at, mark, corrupt),
            Fate::Dropped { at, cause } => (cause_name(cause), at, false, None),
        };
        JsonRecord {
            direction: direction_name(record.direction),
            number: record.number,
            copy: record.copy,
            arrival_ns: record.arrival.as_nanos(),
            size_bytes: record.size.get(),
            backlog_bytes: record.backlog.get(),
            queued_ns: record.queued.as_nanos(),
            fate,
            at_ns: at.as_nanos(),
            mark,
            corrupt_byte: corrupt.map(|bit| bit.byte),
            corrupt_bit: corrupt.map(|bit| bit.bit),
            source: record.flow.map(|flow| end(flow.source, flow.ports.map(|ports| ports.0))),
            destination: record
                .flow
                .map(|flow| end(flow.destination, flow.ports.map(|ports| ports.1))),
            protocol: record.flow.map(|flow| flow.protocol.to_string()),
            seq: record.tcp.map(|tcp| tcp.seq),
            ack: record.tcp.map(|tcp| tcp.ack),
            payload_bytes: record.tcp.map(|tcp| tcp.payload.get()),
        }
    }
}

/// The address, with the port if there is one.
fn end(address: IpAddr, port: Option<u16>) -> String {
    port.map_or(address.to_string(), |port| std::net::SocketAddr::new(address, port).to_string())
}

/// `to_client`, `to_server`.
pub fn direction_name(direction: Direction) -> &'static str {
    match direction {
        Direction::ToClient => "to_client",
        Direction::ToServer => "to_server",
    }
}

fn cause_name(cause: DropCause) -> &'static str {
    match cause {
        DropCause::Loss => "lost",
        DropCause::QueueFull => "queue_dropped",
        DropCause::Discipline => "discipline_dropped",
    }
}

/// What happened to it, as text.
fn comment(record: &Record) -> String {
    let copy = if record.copy { " (duplicate)" } else { "" };
    let waited = match (record.queued, record.backlog) {
        (Duration::ZERO, Bytes::ZERO) => String::new(),
        (queued, backlog) => format!(", waited {queued} behind {backlog}"),
    };
    let fate = match record.fate {
        Fate::Departed { at, mark, corrupt } => {
            let mark = if mark { ", marked CE" } else { "" };
            let corrupt =
                corrupt.map(|bit| format!(", bit {} of byte {} flipped", bit.bit, bit.byte));
            let after = at.since(record.arrival);
            format!("left after {after}{waited}{mark}{}", corrupt.unwrap_or_default())
        }
        Fate::Dropped { cause: DropCause::Loss, .. } => "lost".into(),
        Fate::Dropped { cause: DropCause::QueueFull, .. } => {
            format!("dropped, queue full at {}", record.backlog)
        }
        Fate::Dropped { at, cause: DropCause::Discipline } => {
            let after = at.since(record.arrival);
            format!("dropped by the queue's discipline after {after}{waited}")
        }
    };
    format!("link #{}{copy}: {fate}", record.number)
}

/// The packet's headers, as far as the log knows them; checksums are left out.
fn headers(record: &Record) -> Vec<u8> {
    let Some(PacketKey { source, destination, protocol, ports }) = record.flow else {
        return Vec::new();
    };
    let size = record.size.get();
    let mut head = match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let mut ip = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol.0, 0, 0];
            ip[2..4].copy_from_slice(&(size.min(0xffff) as u16).to_be_bytes());
            ip.extend(source.octets());
            ip.extend(destination.octets());
            ip
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let mut ip = vec![0x60, 0, 0, 0, 0, 0, protocol.0, 64];
            ip[4..6].copy_from_slice(&(size.saturating_sub(40).min(0xffff) as u16).to_be_bytes());
            ip.extend(source.octets());
            ip.extend(destination.octets());
            ip
        }
        _ => return Vec::new(),
    };
    let ip_len = head.len() as u64;
    if let Some((source, destination)) = ports {
        head.extend(source.to_be_bytes());
        head.extend(destination.to_be_bytes());
    }
    match (record.tcp, protocol) {
        (Some(tcp), _) => head.extend(tcp_rest(&tcp, size, ip_len)),
        (None, Protocol::UDP) if ports.is_some() => {
            head.extend((size.saturating_sub(ip_len).min(0xffff) as u16).to_be_bytes());
            head.extend([0; 2]);
        }
        _ => {}
    }
    head.truncate(size as usize);
    head
}

/// A TCP header after its ports. Options are only padding, so that the payload has its length.
fn tcp_rest(tcp: &Tcp, size: u64, ip_len: u64) -> Vec<u8> {
    const NOP: u8 = 1;
    let length = size.saturating_sub(ip_len).saturating_sub(tcp.payload.get()).clamp(20, 60) & !3;
    let mut rest = Vec::new();
    rest.extend(tcp.seq.to_be_bytes());
    rest.extend(tcp.ack.to_be_bytes());
    rest.extend([(length as u8 / 4) << 4, tcp.flags]);
    rest.extend([0; 6]);
    rest.resize(length as usize - 4, NOP);
    rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_flow::capture::segment::{Parsed, Segment};
    use fullpipe_model::link::Bit;
    use fullpipe_model::units::Instant;

    fn record(number: u64, fate: Fate) -> Record {
        Record {
            number,
            direction: Direction::ToClient,
            copy: false,
            arrival: Instant::from_nanos(number * 1_000_000),
            size: Bytes::new(1500),
            backlog: Bytes::new(3000),
            queued: Duration::from_micros(24),
            fate,
            flow: Some(PacketKey {
                source: [10, 0, 0, 1].into(),
                destination: [10, 0, 0, 2].into(),
                protocol: Protocol::TCP,
                ports: Some((443, 5000)),
            }),
            tcp: Some(Tcp { seq: 77, ack: 99, payload: Bytes::new(1448), flags: 0x18 }),
        }
    }

    #[test]
    fn headers_are_those_of_the_packet() {
        let left = Fate::Departed { at: Instant::from_nanos(9), mark: false, corrupt: None };
        let head = headers(&record(0, left));
        let Parsed::Tcp(segment) = Segment::from_ip(&head, 1500) else { panic!("no segment") };
        assert_eq!(
            (head.len(), segment.payload.get(), segment.seq.0, segment.ack.0),
            (52, 1448, 77, 99)
        );
    }

    #[test]
    fn comments_tell_the_fate() {
        let at = Instant::from_nanos(25_000_000);
        let corrupt = Some(Bit { byte: 60, bit: 3 });
        let left = comment(&record(0, Fate::Departed { at, mark: true, corrupt }));
        assert_eq!(
            left,
            "link #0: left after 25 ms, waited 24 us behind 3 kB, marked CE, bit 3 of byte 60 flipped"
        );
        assert_eq!(
            comment(&record(3, Fate::Dropped { at, cause: DropCause::Loss })),
            "link #3: lost"
        );
        let full = comment(&record(3, Fate::Dropped { at, cause: DropCause::QueueFull }));
        assert_eq!(full, "link #3: dropped, queue full at 3 kB");
    }
}
