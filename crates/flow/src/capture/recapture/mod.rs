//! Captures as they are really taken: the lab's are of a wire, segment by segment and complete;
//! those that people bring are of a host whose kernel or card merges segments, cut, one-sided, with
//! gaps.
//!
//! A [`Recapture`] turns the first kind into the second. It is a chain of [`CaptureChange`]s;
//! packets go in in the order of the file and come out in the order of the new one. What limited
//! the transfer stays the same, so a verdict that changes is wrong: `cargo xtask truth` counts how
//! many do.
//!
//! ```
//! use fullpipe_flow::capture::recapture::{CaptureChange, Recapture, CapturedRecord};
//! let host = "10.77.0.1".parse().unwrap();
//! let changes = [CaptureChange::parse("tso", Some(host)).unwrap(), CaptureChange::parse("start=400", None).unwrap()];
//! let mut recapture = Recapture::new(&changes);
//! let mut out: Vec<CapturedRecord> = Vec::new();
//! // recapture.push(record, &mut out) for each packet, then:
//! recapture.finish(&mut out);
//! assert!(out.is_empty());
//! ```

mod change;
mod plain;
mod receive;
mod run;
mod send;

pub use change::{CaptureChange, ChangeError, as_host};

use crate::capture::{LinkType, Packet};
use fullpipe_model::units::Instant;
use std::collections::VecDeque;

/// A packet of a capture with bytes of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturedRecord {
    /// When it was captured.
    pub at: Instant,
    /// What the bytes begin with.
    pub link_type: LinkType,
    /// What was kept of it.
    pub data: Vec<u8>,
    /// Bytes that it had, link header included.
    pub original_length: usize,
}

impl From<Packet<'_>> for CapturedRecord {
    fn from(packet: Packet<'_>) -> CapturedRecord {
        CapturedRecord {
            at: packet.at,
            link_type: packet.link_type,
            data: packet.data.to_vec(),
            original_length: packet.original_length,
        }
    }
}

/// One change, as a state machine: a packet in, any number out.
trait Stage: std::fmt::Debug {
    fn push(&mut self, record: CapturedRecord, out: &mut VecDeque<CapturedRecord>);
    /// No packet follows.
    fn finish(&mut self, _out: &mut VecDeque<CapturedRecord>) {}
}

/// A capture on its way through changes: [`push`](Recapture::push) each packet in the file's order,
/// then [`finish`](Recapture::finish) once.
#[derive(Debug)]
pub struct Recapture {
    stages: Vec<Box<dyn Stage>>,
}

impl Recapture {
    /// The changes, the first of them first.
    pub fn new(changes: &[CaptureChange]) -> Recapture {
        Recapture { stages: changes.iter().map(change::stage).collect() }
    }

    /// The next packet; what becomes of it and of packets that were held is appended to `out`.
    pub fn push(&mut self, record: CapturedRecord, out: &mut Vec<CapturedRecord>) {
        self.through(0, VecDeque::from([record]), out);
    }

    /// The file has ended: what is still held is appended to `out`.
    pub fn finish(&mut self, out: &mut Vec<CapturedRecord>) {
        for index in 0..self.stages.len() {
            let mut rest = VecDeque::new();
            self.stages[index].finish(&mut rest);
            self.through(index + 1, rest, out);
        }
    }

    fn through(
        &mut self,
        from: usize,
        mut records: VecDeque<CapturedRecord>,
        out: &mut Vec<CapturedRecord>,
    ) {
        for stage in &mut self.stages[from..] {
            let mut next = VecDeque::new();
            for record in records {
                stage.push(record, &mut next);
            }
            records = next;
        }
        out.extend(records);
    }
}

#[cfg(test)]
mod tests;
