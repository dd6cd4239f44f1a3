//! One direction at work: which segments of which frame leave when, and what is handed over in one write.
//!
//! No clock and no descriptors here: [`Direction::arrived`] is told what was read and when, [`Direction::deliver`] hands
//! over what is due. So the same code is driven by the real clock in the lab and by a made-up one in its tests.

use super::lateness::Lateness;
use super::ring::Ring;
use super::super_packet::{HEADER_MAX, Layout};
use super::tap::Tap;
use fullpipe_model::link::{Counters, Link};
use fullpipe_model::units::{Bytes, Duration, Instant};
use std::io::IoSlice;

/// One segment on the link: which frame, which of its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    frame: u64,
    index: u16,
}

/// Segments of one frame that are handed over together.
#[derive(Debug, Clone, Copy)]
struct Run {
    frame: u64,
    index: u16,
    count: u16,
    /// When the last of them is due: the run is handed over then.
    due: Instant,
}

/// What a direction did besides what the model counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct DriverCounters {
    /// Frames read, super-packets counted once.
    pub frames_read: u64,
    /// Frames handed over.
    pub frames_written: u64,
    /// Frames that were no packets.
    pub malformed: u64,
    /// Writes that the host's device refused.
    pub write_errors: u64,
    /// Times that reading stopped because the ring was full: packets then wait in a queue the model does not know.
    pub ring_full: u64,
}

/// Everything one direction of an emulated link needs but a clock and descriptors.
#[derive(Debug)]
pub struct Direction {
    link: Link<Segment>,
    ring: Ring,
    l2_len: usize,
    coalesce: Duration,
    /// The next run, as planned; recomputed after each delivery.
    next: Option<Run>,
    tap: Tap,
    lateness: Lateness,
    counters: DriverCounters,
    last_departure: Instant,
}

impl Direction {
    /// A direction over `link` whose frames have link headers of `l2_len`. Segments of one frame that are due within
    /// `coalesce` of each other are handed over together, when the last of them is due.
    pub fn new(link: Link<Segment>, ring: Ring, l2_len: usize, coalesce: Duration, tap: Tap) -> Self {
        Direction {
            link,
            ring,
            l2_len,
            coalesce,
            next: None,
            tap,
            lateness: Lateness::default(),
            counters: DriverCounters::default(),
            last_departure: Instant::ZERO,
        }
    }

    /// Where to read the next frame to; `None` while there is no room for one.
    pub fn space(&mut self) -> Option<&mut [u8]> {
        if self.ring.space().is_none() {
            self.counters.ring_full += 1;
        }
        self.ring.space()
    }

    /// A frame of `len` bytes has been read into [`Direction::space`] at `now`: each of its segments meets its fate.
    pub fn arrived(&mut self, len: usize, now: Instant) {
        let frame = self.ring.fresh(len);
        let Some(layout) = Layout::parse(frame, self.l2_len) else {
            self.counters.malformed += 1;
            return;
        };
        self.counters.frames_read += 1;
        if let Some(capture) = &mut self.tap.ingress {
            for index in 0..layout.count() {
                capture.segment(frame, &layout, index, now);
            }
        }
        let serial = self.ring.next_serial();
        let mut kept = 0;
        for index in 0..layout.count() {
            let size = Bytes::new(layout.ip_len(index) as u64);
            kept += u32::from(self.link.push(Segment { frame: serial, index }, size, now).is_ok());
        }
        if kept > 0 {
            self.ring.keep(len, layout, kept);
        }
    }

    /// When to call [`Direction::deliver`] next; `None` while nothing is on the link.
    pub fn due(&mut self) -> Option<Instant> {
        if self.next.is_none() {
            self.next = self.plan();
        }
        self.next.map(|run| run.due)
    }

    /// The run at the front of the link.
    fn plan(&self) -> Option<Run> {
        let mut planned = self.link.planned();
        let (first, at) = planned.next()?;
        let mut run = Run { frame: first.frame, index: first.index, count: 1, due: at };
        for (segment, next_at) in planned {
            let follows = segment.frame == run.frame && segment.index == run.index + run.count;
            if !follows || next_at.since(at) > self.coalesce {
                break;
            }
            run.count += 1;
            run.due = next_at;
        }
        Some(run)
    }

    /// Hands the next run over to `write` if it is due at `now`: the frame's parts in order. Returns whether it did.
    pub fn deliver(&mut self, now: Instant, write: impl FnOnce(&[IoSlice<'_>]) -> std::io::Result<usize>) -> bool {
        let Some(run) = self.due().and(self.next).filter(|run| run.due <= now) else {
            return false;
        };
        self.next = None;
        let late = now.since(run.due);
        let Some((frame, layout)) = self.ring.get(run.frame) else {
            return false;
        };
        for _ in 0..run.count {
            let Some(departure) = self.link.poll(now) else { break };
            debug_assert_eq!(departure.item.frame, run.frame);
            // On the wire each segment leaves by itself, at its own time; what the emulator was late, all of them are.
            self.last_departure = self.last_departure.max(departure.at + late);
            if let Some(capture) = &mut self.tap.egress {
                capture.segment(frame, &layout, departure.item.index, self.last_departure);
            }
        }
        let written = if layout.is_whole(run.index, run.count) {
            write(&[IoSlice::new(frame)])
        } else {
            let mut head = [0u8; HEADER_MAX];
            let head_len = layout.header(frame, run.index, run.count, &mut head);
            let (start, end) = layout.payload_range(run.index, run.count);
            write(&[IoSlice::new(&head[..head_len]), IoSlice::new(&frame[start..end])])
        };
        match written {
            Ok(_) => self.counters.frames_written += 1,
            Err(_) => self.counters.write_errors += 1,
        }
        self.lateness.record(late, run.count.into());
        self.ring.release(run.frame, run.count.into());
        true
    }

    /// What the model counted.
    pub fn link_counters(&self) -> Counters {
        self.link.counters()
    }

    /// What the driver counted.
    pub fn counters(&self) -> DriverCounters {
        self.counters
    }

    /// How late hand-overs were.
    pub fn lateness(&self) -> &Lateness {
        &self.lateness
    }

    /// Bytes of the ring, which is all the memory that packets take.
    pub fn ring_size(&self) -> usize {
        self.ring.size()
    }

    /// Ends the direction; its taps write what they still hold.
    pub fn finish(self) -> (Counters, DriverCounters, Lateness) {
        self.tap.finish();
        (self.link.counters(), self.counters, self.lateness)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super_packet::VNET_LEN;
    use super::super::super_packet::tests::super_packet;
    use super::*;
    use fullpipe_model::link::Config;
    use fullpipe_model::units::Rate;

    fn direction(config: Config, coalesce: Duration) -> Direction {
        let link = Link::new(&config.checked().unwrap(), Duration::from_millis(50), 1);
        Direction::new(link, Ring::new(1 << 22), 0, coalesce, Tap::default())
    }

    fn feed(direction: &mut Direction, frame: &[u8], now: Instant) {
        direction.space().unwrap()[..frame.len()].copy_from_slice(frame);
        direction.arrived(frame.len(), now);
    }

    /// Delivers everything at its time: (time, bytes).
    fn drain(direction: &mut Direction) -> Vec<(Instant, Vec<u8>)> {
        let mut out = Vec::new();
        while let Some(due) = direction.due() {
            if due > Instant::ZERO {
                assert!(!direction.deliver(due.saturating_sub(Duration::from_nanos(1)), |_| panic!("early")));
            }
            direction.deliver(due, |parts| {
                out.push((due, parts.iter().flat_map(|part| part.to_vec()).collect()));
                Ok(0)
            });
        }
        out
    }

    #[test]
    fn a_super_packet_that_needs_no_cut_passes_untouched() {
        let frame = super_packet(false, 0, &[7; 14_480], 1448, false);
        let mut direction = direction(Config { delay: Duration::from_millis(5), ..Config::default() }, Duration::ZERO);
        feed(&mut direction, &frame, Instant::ZERO);
        assert_eq!(drain(&mut direction), [(Instant::from_nanos(5_000_000), frame)]);
    }

    #[test]
    fn at_a_rate_segments_leave_in_groups_no_wider_than_the_coalescing_time() {
        let rate = Rate::from_bits_per_sec(1_000_000_000);
        let frame = super_packet(false, 0, &[7; 14_480], 1448, false);
        let mut direction = direction(Config { rate: Some(rate), ..Config::default() }, Duration::from_micros(50));
        feed(&mut direction, &frame, Instant::from_nanos(1));
        let out = drain(&mut direction);
        // 1500 bytes take 12 us at 1 Gbit/s: five fit into 50 us (first to last 48 us).
        assert_eq!(out.iter().map(|(at, _)| at.as_nanos()).collect::<Vec<_>>(), [60_001, 120_001]);
        let payload: usize = out.iter().map(|(_, bytes)| bytes.len() - VNET_LEN - 52).sum();
        assert_eq!(payload, 14_480);
        assert_eq!(direction.link_counters().departed_bytes, 15_000);
    }

    #[test]
    fn a_dropped_segment_makes_two_super_packets_and_no_byte_of_the_others_is_lost() {
        let config = Config { loss: "20%".parse().unwrap(), ..Config::default() };
        let mut direction = direction(config, Duration::ZERO);
        let (mut arrived, mut bytes) = (0, 0);
        for round in 0..200u64 {
            let frame = super_packet(false, 0, &[7; 14_480], 1448, false);
            feed(&mut direction, &frame, Instant::from_nanos(round * 1_000_000));
            arrived += 10;
            bytes += drain(&mut direction).iter().map(|(_, out)| out.len() - VNET_LEN - 52).sum::<usize>();
        }
        let counters = direction.link_counters();
        assert_eq!(counters.arrived_packets, arrived);
        assert_eq!(bytes as u64, (arrived - counters.lost_packets) * 1448);
        // 2000 draws at 20 %: sigma 17.9; 5 sigma.
        assert!(counters.lost_packets.abs_diff(400) < 90, "{counters:?}");
    }

    #[test]
    fn lateness_is_told() {
        let mut direction = direction(Config { delay: Duration::from_millis(1), ..Config::default() }, Duration::ZERO);
        feed(&mut direction, &super_packet(false, 0, b"x", 1448, false), Instant::ZERO);
        assert!(direction.deliver(Instant::from_nanos(1_300_000), |_| Ok(0)));
        assert_eq!(direction.lateness().max(), Duration::from_micros(300));
    }
}
