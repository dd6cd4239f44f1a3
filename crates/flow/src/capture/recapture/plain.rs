//! Changes that treat each packet by itself.

use super::run::lower_hop_limit;
use super::{CapturedRecord, Stage};
use crate::capture::ip_packet;
use crate::capture::segment::{Parsed, Segment};
use fullpipe_model::units::{Duration, Instant, Probability};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::VecDeque;
use std::net::IpAddr;

/// Who sent the segment, and to whom.
pub(super) fn ends(record: &CapturedRecord) -> Option<(IpAddr, IpAddr)> {
    let ip = ip_packet(record.link_type, &record.data)?;
    match Segment::from_ip(ip, record.original_length) {
        Parsed::Tcp(segment) => Some((segment.source.ip(), segment.destination.ip())),
        _ => None,
    }
}

#[derive(Debug)]
pub(super) struct Start {
    pub left: u64,
}

impl Stage for Start {
    fn push(&mut self, record: CapturedRecord, out: &mut VecDeque<CapturedRecord>) {
        match self.left {
            0 => out.push_back(record),
            _ => self.left -= 1,
        }
    }
}

#[derive(Debug)]
pub(super) struct Snap {
    pub bytes: usize,
}

impl Stage for Snap {
    fn push(&mut self, mut record: CapturedRecord, out: &mut VecDeque<CapturedRecord>) {
        record.data.truncate(self.bytes);
        out.push_back(record);
    }
}

#[derive(Debug)]
pub(super) struct OneSide {
    pub from: IpAddr,
}

impl Stage for OneSide {
    fn push(&mut self, record: CapturedRecord, out: &mut VecDeque<CapturedRecord>) {
        if ends(&record).is_none_or(|(source, _)| source == self.from) {
            out.push_back(record);
        }
    }
}

#[derive(Debug)]
pub(super) struct Drop {
    share: Probability,
    random: Pcg64Mcg,
}

impl Drop {
    pub fn new(share: Probability, seed: u64) -> Drop {
        Drop { share, random: Pcg64Mcg::seed_from_u64(seed) }
    }
}

impl Stage for Drop {
    fn push(&mut self, record: CapturedRecord, out: &mut VecDeque<CapturedRecord>) {
        if !self.share.happens(self.random.next_u64()) {
            out.push_back(record);
        }
    }
}

#[derive(Debug)]
pub(super) struct Twice {
    after: Duration,
    /// Copies whose time has not come.
    copies: VecDeque<CapturedRecord>,
}

impl Twice {
    pub fn new(after: Duration) -> Twice {
        Twice { after, copies: VecDeque::new() }
    }
}

impl Stage for Twice {
    fn push(&mut self, record: CapturedRecord, out: &mut VecDeque<CapturedRecord>) {
        while self.copies.front().is_some_and(|copy| copy.at <= record.at) {
            out.extend(self.copies.pop_front());
        }
        let mut copy = CapturedRecord { at: record.at + self.after, ..record.clone() };
        lower_hop_limit(&mut copy);
        self.copies.push_back(copy);
        out.push_back(record);
    }

    fn finish(&mut self, out: &mut VecDeque<CapturedRecord>) {
        out.append(&mut self.copies);
    }
}

#[derive(Debug)]
pub(super) struct ClockStep {
    after: Duration,
    by: Duration,
    back: bool,
    first: Option<Instant>,
}

impl ClockStep {
    pub fn new(after: Duration, by: Duration, back: bool) -> ClockStep {
        ClockStep { after, by, back, first: None }
    }
}

impl Stage for ClockStep {
    fn push(&mut self, mut record: CapturedRecord, out: &mut VecDeque<CapturedRecord>) {
        let first = *self.first.get_or_insert(record.at);
        if record.at >= first + self.after {
            let at = record.at.as_nanos();
            let by = self.by.as_nanos();
            record.at = Instant::from_nanos(if self.back {
                at.saturating_sub(by)
            } else {
                at.saturating_add(by)
            });
        }
        out.push_back(record);
    }
}
