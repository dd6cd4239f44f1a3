//! Receive offload: a host sees what reached its card at the next interrupt, merged.

use super::run::{Headers, MergedPacket};
use super::{CapturedRecord, Stage};
use crate::capture::segment::{Flags, Segment};
use fullpipe_model::units::{Duration, Instant};
use std::collections::VecDeque;
use std::net::IpAddr;

/// Packets that one poll of a card takes at most: `netdev_budget` (net/core/hotdata.c).
const BUDGET: usize = 300;

/// Holds what reaches `host` until the interrupt, and the answers to it until after that.
#[derive(Debug)]
pub(super) struct Interrupts {
    host: IpAddr,
    every: Duration,
    /// When the first packet that waits came.
    since: Instant,
    incoming: Vec<(CapturedRecord, Headers)>,
    /// What the host sent on connections of which something waits.
    answers: Vec<(CapturedRecord, Headers)>,
}

impl Interrupts {
    pub fn new(host: IpAddr, every: Duration) -> Interrupts {
        Interrupts { host, every, since: Instant::ZERO, incoming: Vec::new(), answers: Vec::new() }
    }

    fn is_due(&self, now: Instant) -> bool {
        let due = self.since + self.every;
        !self.incoming.is_empty()
            && (now >= due || now < self.since || self.incoming.len() >= BUDGET)
    }

    fn interrupt(&mut self, now: Option<Instant>, out: &mut VecDeque<CapturedRecord>) {
        let Some((last, _)) = self.incoming.last() else { return };
        // With the budget used up, the poll is early; a clock that was set back must not go back
        // twice.
        let due = self.since + self.every;
        let at = if now.is_some_and(|now| now < due) { last.at } else { due };
        let mut runs: Vec<MergedPacket> = Vec::new();
        for (record, headers) in self.incoming.drain(..) {
            if let Some(run) = runs.iter_mut().rev().find(|run| run.is_of(&headers.segment)) {
                if run.join(&record, &headers) {
                    continue;
                }
                run.headers = None;
            }
            runs.push(MergedPacket::new(record, headers));
        }
        out.extend(runs.into_iter().map(|run| CapturedRecord { at, ..run.record }));
        let answers = std::mem::take(&mut self.answers);
        for (index, (record, headers)) in answers.iter().enumerate() {
            if !answers[index + 1..]
                .iter()
                .any(|(_, later)| replaces(&later.segment, &headers.segment))
            {
                out.push_back(CapturedRecord { at, ..record.clone() });
            }
        }
    }
}

/// A host that sees several segments as one packet acknowledges them once: whether `later` says all
/// that the acknowledgement before it said.
fn replaces(later: &Segment, before: &Segment) -> bool {
    is_plain_ack(later)
        && is_plain_ack(before)
        && (later.source, later.destination) == (before.source, before.destination)
        && later.ack != before.ack
}

/// Whether nothing is in it but what its ACK's number says.
fn is_plain_ack(segment: &Segment) -> bool {
    let control = Flags::SYN | Flags::FIN | Flags::RST;
    segment.payload_len() == 0 && segment.options.sack.is_empty() && !segment.flags.any(control)
}

impl Stage for Interrupts {
    fn push(&mut self, record: CapturedRecord, out: &mut VecDeque<CapturedRecord>) {
        if self.is_due(record.at) {
            self.interrupt(Some(record.at), out);
        }
        let Some(headers) = Headers::read(&record) else { return out.push_back(record) };
        let segment = &headers.segment;
        if segment.destination.ip() == self.host {
            if self.incoming.is_empty() {
                self.since = record.at;
            }
            self.incoming.push((record, headers));
        } else if self.incoming.iter().any(|(_, held)| {
            (held.segment.source, held.segment.destination) == (segment.destination, segment.source)
        }) {
            self.answers.push((record, headers));
        } else {
            out.push_back(record);
        }
    }

    fn finish(&mut self, out: &mut VecDeque<CapturedRecord>) {
        self.interrupt(None, out);
    }
}
