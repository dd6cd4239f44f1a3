//! Segmentation offload: a host's own capture shows what it sends before it is cut.

use super::run::{Headers, MergedPacket};
use super::{CapturedRecord, Stage};
use fullpipe_model::units::{Duration, Instant};
use std::collections::VecDeque;
use std::net::IpAddr;

/// Packets that wait for one before them that may grow; more only where a clock stands still.
const HELD_MAX: usize = 4096;

/// Merges what `host` sends; a packet has the time of its first segment.
#[derive(Debug)]
pub(super) struct Segmentation {
    host: IpAddr,
    gap: Duration,
    /// In the order of their times; the first may still grow, else it would be gone.
    held: VecDeque<MergedPacket>,
}

impl Segmentation {
    pub fn new(host: IpAddr, gap: Duration) -> Segmentation {
        Segmentation { host, gap, held: VecDeque::new() }
    }

    fn close_before(&mut self, now: Instant) {
        for run in &mut self.held {
            if run.last_at + self.gap < now || now < run.last_at {
                run.headers = None;
            }
        }
    }

    fn release(&mut self, out: &mut VecDeque<CapturedRecord>) {
        while self.held.front().is_some_and(|run| run.headers.is_none())
            || self.held.len() > HELD_MAX
        {
            out.extend(self.held.pop_front().map(|run| run.record));
        }
    }
}

impl Stage for Segmentation {
    fn push(&mut self, record: CapturedRecord, out: &mut VecDeque<CapturedRecord>) {
        self.close_before(record.at);
        let sent =
            Headers::read(&record).filter(|headers| headers.segment.source.ip() == self.host);
        match sent {
            None => self.held.push_back(MergedPacket::closed(record)),
            Some(headers) => {
                let open = self.held.iter_mut().rev().find(|run| run.is_of(&headers.segment));
                let joined = open.is_some_and(|run| {
                    let joined = run.join(&record, &headers);
                    if !joined {
                        run.headers = None;
                    }
                    joined
                });
                if !joined {
                    self.held.push_back(MergedPacket::new(record, headers));
                }
            }
        }
        self.release(out);
    }

    fn finish(&mut self, out: &mut VecDeque<CapturedRecord>) {
        out.extend(self.held.drain(..).map(|run| run.record));
    }
}
