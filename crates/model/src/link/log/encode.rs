//! From records to bytes.

use super::coding::{put_address, put_difference, put_varint};
use super::*;
use std::collections::HashMap;

/// Writes a log. It remembers the flows it has written, and the last record of each direction.
#[derive(Debug, Default)]
pub struct Encoder {
    flows: HashMap<PacketKey, u64>,
    last: [Last; 2],
    body: Vec<u8>,
}

impl Encoder {
    /// An encoder for a new log, and the log's header; `epoch` is the offset from the records'
    /// clock to 1970.
    pub fn new(epoch: Duration) -> (Self, [u8; 16]) {
        let mut header = [0; 16];
        header[..7].copy_from_slice(&MAGIC);
        header[7] = VERSION;
        header[8..].copy_from_slice(&epoch.as_nanos().to_le_bytes());
        (Encoder::default(), header)
    }

    /// Appends `record` to `out`.
    pub fn encode(&mut self, record: &Record, out: &mut Vec<u8>) {
        let mut body = std::mem::take(&mut self.body);
        body.clear();
        body.push(0);
        let mut flags = if record.copy { COPY } else { 0 };
        let last = match record.direction {
            Direction::ToClient => &mut self.last[0],
            Direction::ToServer => {
                flags |= TO_SERVER;
                &mut self.last[1]
            }
        };
        put_difference(&mut body, last.number, record.number);
        put_difference(&mut body, last.arrival, record.arrival.as_nanos());
        *last = Last { number: record.number, arrival: record.arrival.as_nanos() };
        put_varint(&mut body, record.size.get());
        put_varint(&mut body, record.backlog.get());
        put_varint(&mut body, record.queued.as_nanos());
        flags |= fate(&mut body, record);
        if let Some(key) = &record.flow {
            flags |= FLOW | self.flow(&mut body, key);
        }
        if let Some(Tcp { seq, ack, payload, flags: tcp_flags }) = record.tcp {
            flags |= TCP;
            body.extend(seq.to_le_bytes());
            body.extend(ack.to_le_bytes());
            put_varint(&mut body, payload.get());
            body.push(tcp_flags);
        }
        body[0] = flags;
        put_varint(out, body.len() as u64);
        out.extend_from_slice(&body);
        self.body = body;
    }

    fn flow(&mut self, body: &mut Vec<u8>, key: &PacketKey) -> u8 {
        if let Some(index) = self.flows.get(key) {
            put_varint(body, *index);
            return 0;
        }
        if self.flows.len() < FLOWS_MAX {
            self.flows.insert(*key, self.flows.len() as u64);
        }
        let v6 = [key.source, key.destination].map(|address| u8::from(address.is_ipv6()));
        body.push(v6[0] | v6[1] << 1 | u8::from(key.ports.is_some()) << 2);
        put_address(body, key.source);
        put_address(body, key.destination);
        body.push(key.protocol.0);
        if let Some((source, destination)) = key.ports {
            body.extend(source.to_le_bytes());
            body.extend(destination.to_le_bytes());
        }
        FLOW_WRITTEN
    }
}

fn fate(body: &mut Vec<u8>, record: &Record) -> u8 {
    let arrival = record.arrival.as_nanos();
    match record.fate {
        Fate::Departed { at, mark, corrupt } => {
            put_difference(body, arrival, at.as_nanos());
            let mut flags = if mark { MARKED } else { 0 };
            if let Some(Bit { byte, bit }) = corrupt {
                flags |= CORRUPTED;
                put_varint(body, byte.into());
                body.push(bit);
            }
            flags
        }
        Fate::Dropped { at, cause } => {
            put_difference(body, arrival, at.as_nanos());
            body.push(match cause {
                DropCause::Loss => 0,
                DropCause::QueueFull => 1,
                DropCause::Discipline => 2,
            });
            DROPPED
        }
    }
}
