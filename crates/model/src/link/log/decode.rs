//! From bytes to records. The bytes are untrusted, so every length and index is checked.

use super::coding::{Body, varint};
use super::*;
use crate::link::rule::Protocol;

/// Bytes of the header.
const HEADER: usize = 16;

/// Reads a log from bytes as they arrive.
#[derive(Debug, Default)]
pub struct Decoder {
    pending: Vec<u8>,
    /// How many bytes of `pending` have been read.
    used: usize,
    epoch: Option<Duration>,
    flows: Vec<PacketKey>,
    last: [Last; 2],
    records: u64,
}

impl Decoder {
    /// A decoder for a log from its beginning.
    pub fn new() -> Self {
        Decoder::default()
    }

    /// The next bytes of the file.
    pub fn push(&mut self, bytes: &[u8]) {
        self.pending.drain(..self.used);
        self.used = 0;
        self.pending.extend_from_slice(bytes);
    }

    /// The next record; `None` if more bytes are needed.
    ///
    /// # Errors
    /// The bytes are not a log. Records after an error are not trustworthy.
    pub fn poll(&mut self) -> Result<Option<Record>, LogError> {
        if self.epoch.is_none() && !self.header()? {
            return Ok(None);
        }
        let rest = &self.pending[self.used..];
        let Some((length, used)) = varint(rest) else {
            return if rest.len() > 10 {
                Err(self.wrong("its length is no number"))
            } else {
                Ok(None)
            };
        };
        let length = length
            .and_then(|length| usize::try_from(length).ok())
            .filter(|length| *length <= RECORD_MAX);
        let Some(length) = length else { return Err(self.wrong("it is longer than any record")) };
        let Some(body) = rest.get(used..used + length) else { return Ok(None) };
        let body = body.to_vec();
        self.used += used + length;
        let record = self.record(&mut Body(&body)).map_err(|problem| self.wrong(problem))?;
        self.records += 1;
        Ok(Some(record))
    }

    /// Checks that the log is complete.
    ///
    /// # Errors
    /// The last record is incomplete.
    pub fn finish(self) -> Result<(), LogError> {
        match self.epoch {
            None => Err(LogError::Truncated { record: 0 }),
            Some(_) if self.used < self.pending.len() => {
                Err(LogError::Truncated { record: self.records + 1 })
            }
            Some(_) => Ok(()),
        }
    }

    /// The offset from the records' clock to 1970, once the header has been read.
    pub fn epoch(&self) -> Option<Duration> {
        self.epoch
    }

    fn header(&mut self) -> Result<bool, LogError> {
        let known = self.pending.len().min(MAGIC.len());
        if self.pending[..known] != MAGIC[..known] {
            return Err(LogError::Magic);
        }
        let Some((header, _)) = self.pending.split_first_chunk::<HEADER>() else {
            return Ok(false);
        };
        if header[7] == 0 || header[7] > VERSION {
            return Err(LogError::Version(header[7]));
        }
        let mut epoch = [0; 8];
        epoch.copy_from_slice(&header[8..]);
        self.epoch = Some(Duration::from_nanos(u64::from_le_bytes(epoch)));
        self.used = HEADER;
        Ok(true)
    }

    fn wrong(&self, problem: &'static str) -> LogError {
        LogError::Record { record: self.records + 1, problem }
    }

    fn record(&mut self, body: &mut Body<'_>) -> Result<Record, &'static str> {
        const SHORT: &str = "it is too short";
        let flags = body.byte().ok_or(SHORT)?;
        let (direction, index) = if flags & TO_SERVER == 0 {
            (Direction::ToClient, 0)
        } else {
            (Direction::ToServer, 1)
        };
        let last = self.last[index];
        let number = body.difference(last.number).ok_or(SHORT)?;
        let arrival = body.difference(last.arrival).ok_or(SHORT)?;
        self.last[index] = Last { number, arrival };
        let size = Bytes::new(body.varint().ok_or(SHORT)?);
        let backlog = Bytes::new(body.varint().ok_or(SHORT)?);
        let queued = Duration::from_nanos(body.varint().ok_or(SHORT)?);
        let fate = fate(body, flags, arrival).ok_or("its fate is none")?;
        let flow = if flags & FLOW == 0 {
            None
        } else {
            Some(self.flow(body, flags).ok_or("its flow is none")?)
        };
        let tcp = if flags & TCP == 0 { None } else { Some(tcp(body).ok_or(SHORT)?) };
        if !body.0.is_empty() {
            return Err("it is longer than it should be");
        }
        let (copy, arrival) = (flags & COPY != 0, Instant::from_nanos(arrival));
        Ok(Record { number, direction, copy, arrival, size, backlog, queued, fate, flow, tcp })
    }

    fn flow(&mut self, body: &mut Body<'_>, flags: u8) -> Option<PacketKey> {
        if flags & FLOW_WRITTEN == 0 {
            let index = usize::try_from(body.varint()?).ok()?;
            return self.flows.get(index).copied();
        }
        let shape = body.byte().filter(|shape| *shape < 8)?;
        let source = body.address(shape & 1 != 0)?;
        let destination = body.address(shape & 2 != 0)?;
        let protocol = Protocol(body.byte()?);
        let ports = if shape & 4 == 0 {
            None
        } else {
            Some((u16::from_le_bytes(body.bytes()?), u16::from_le_bytes(body.bytes()?)))
        };
        let key = PacketKey { source, destination, protocol, ports };
        if self.flows.len() < FLOWS_MAX {
            self.flows.push(key);
        }
        Some(key)
    }
}

fn fate(body: &mut Body<'_>, flags: u8, arrival: u64) -> Option<Fate> {
    let at = Instant::from_nanos(body.difference(arrival)?);
    if flags & DROPPED != 0 {
        let cause = match body.byte()? {
            0 => DropCause::Loss,
            1 => DropCause::QueueFull,
            2 => DropCause::Discipline,
            _ => return None,
        };
        return Some(Fate::Dropped { at, cause });
    }
    let corrupt = if flags & CORRUPTED == 0 {
        None
    } else {
        Some(Bit {
            byte: u32::try_from(body.varint()?).ok()?,
            bit: body.byte().filter(|bit| *bit < 8)?,
        })
    };
    Some(Fate::Departed { at, mark: flags & MARKED != 0, corrupt })
}

fn tcp(body: &mut Body<'_>) -> Option<Tcp> {
    let (seq, ack) = (u32::from_le_bytes(body.bytes()?), u32::from_le_bytes(body.bytes()?));
    Some(Tcp { seq, ack, payload: Bytes::new(body.varint()?), flags: body.byte()? })
}
