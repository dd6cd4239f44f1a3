//! One direction of a link: which segments of which frame leave when, and which are delivered in
//! one write.
//!
//! It has no clock and no descriptors: [`Direction::arrived`] is called with what was read and
//! when, and [`Direction::deliver`] delivers what is due. So the real clock drives the same code in
//! the lab as a simulated one does in its tests.

use super::lane::{Lane, Segment};
use super::lanes::{Lanes, OneWay};
use super::lateness::Lateness;
use super::outgoing::{Parts, Scratch, Treatment};
use super::ring::{Origin, Ring};
use super::statistics::{DirectionStatistics, DriverCounters};
use super::super_packet::Layout;
use super::tap::Tap;
use super::truth::{Entry, Identity, Log};
use fullpipe_model::link::log::Fate;
use fullpipe_model::link::{Counters, Departure, Dropped, Ecn, Event, Fate as PushFate, Packet};
use fullpipe_model::units::{Bytes, Duration, Instant};
use std::io::IoSlice;

/// Segments of one frame that are delivered together.
#[derive(Debug, Clone, Copy)]
struct SegmentRun {
    frame: u64,
    index: u16,
    count: u16,
    treatment: Treatment,
}

impl SegmentRun {
    fn of(first: &Departure<Segment>) -> SegmentRun {
        SegmentRun {
            frame: first.item.frame,
            index: first.item.index,
            count: 1,
            treatment: treatment(first),
        }
    }

    /// What is handed over of `frame`, which this run is of.
    fn parts<'a>(&self, frame: &'a [u8], layout: &'a Layout) -> Parts<'a> {
        let SegmentRun { index, count, treatment, .. } = *self;
        Parts { frame, layout, index, count, treatment }
    }

    /// Adds `next` if it continues this run; returns whether it does.
    fn takes(&mut self, next: &Departure<Segment>) -> bool {
        let follows = next.item.frame == self.frame
            && Some(next.item.index) == self.index.checked_add(self.count)
            && treatment(next) == self.treatment
            // A corrupted packet goes separately, because the others' checksums are still
            // incomplete.
            && self.treatment.corrupt.is_none();
        self.count += u16::from(follows);
        follows
    }
}

/// The log entries of the packet and its duplicate, if they were dropped at once.
fn refusals(origin: Origin, index: u16, fate: &PushFate) -> impl Iterator<Item = Entry> {
    let (backlog, at) = (fate.backlog, origin.arrival);
    let both = [(false, Some(fate.original)), (true, fate.copy)].into_iter();
    both.filter_map(|(copy, result)| Some((copy, result?.err()?))).map(move |(copy, cause)| {
        let fate = Fate::Dropped { at, cause };
        Entry { origin, index, copy, backlog, queued: Duration::ZERO, fate }
    })
}

/// Logs a segment that the queue dropped after it had waited, and frees its memory.
fn forget_dropped(lane: &mut Lane, log: Option<&mut Log>, dropped: &Dropped<Segment>) {
    if let Some(log) = log {
        let fate = Fate::Dropped { at: dropped.at, cause: dropped.cause };
        lane.tell(log, dropped.item, dropped.copy, dropped.queued, fate);
    }
    lane.memory_mut().release(dropped.item.frame, 1);
}

fn treatment(departure: &Departure<Segment>) -> Treatment {
    Treatment { mark: departure.mark, corrupt: departure.corrupt }
}

/// The results of a direction that has ended.
#[derive(Debug)]
pub struct Finished {
    /// The model's counters.
    pub link: Counters,
    /// The driver's counters.
    pub driver: DriverCounters,
    /// How late deliveries were.
    pub lateness: Lateness,
}

/// A new path for an active direction.
#[derive(Debug)]
pub struct Change {
    /// The new path, with memory if it needs more than there is.
    pub path: OneWay,
}

/// A direction of an emulated link, without clock and descriptors.
#[derive(Debug)]
pub struct Direction {
    lanes: Lanes,
    l2_len: usize,
    tap: Tap,
    log: Option<Log>,
    /// The number of the next arriving packet.
    number: u64,
    lateness: Lateness,
    counters: DriverCounters,
    last_departure: Instant,
    scratch: Scratch,
}

impl Direction {
    /// A direction whose frames have link headers of `l2_len` bytes.
    pub fn new(path: OneWay, l2_len: usize, tap: Tap) -> Self {
        Direction {
            lanes: Lanes::new(path),
            l2_len,
            tap,
            log: None,
            number: 0,
            lateness: Lateness::default(),
            counters: DriverCounters::default(),
            last_departure: Instant::ZERO,
            scratch: Scratch::default(),
        }
    }

    /// Writes each packet's fate to `log`.
    pub fn with_log(mut self, log: Option<Log>) -> Self {
        self.log = log;
        self
    }

    /// Changes the path from `now` on. Packets on the wire leave as planned, see `Lanes::set`.
    pub fn change(&mut self, change: Change, now: Instant) {
        self.lanes.set(change.path, now);
    }

    /// Unused memory, to be freed by another thread, because freeing takes time.
    pub fn superfluous(&mut self) -> Option<Ring> {
        self.lanes.superfluous()
    }

    /// Where to read the next frame to; `None` if there is no room for one.
    pub fn space(&mut self) -> Option<&mut [u8]> {
        let memory = self.lanes.rest().memory_mut();
        if memory.space().is_none() {
            self.counters.ring_full += 1;
        }
        memory.space()
    }

    /// Handles a frame of `len` bytes that was read into [`Direction::space`] at `now`: the model
    /// decides the fate of each segment.
    pub fn arrived(&mut self, len: usize, now: Instant) {
        let frame = self.lanes.rest().memory().fresh(len);
        let Some((layout, headers)) = Layout::read(frame, self.l2_len) else {
            self.counters.malformed += 1;
            return;
        };
        self.counters.frames_read += 1;
        if let Some(capture) = &mut self.tap.ingress {
            let treatment = Treatment::default();
            let parts =
                Parts { frame, layout: &layout, index: 0, count: layout.count(), treatment };
            for index in 0..layout.count() {
                capture.segment(&parts, index, now);
            }
        }
        let (flow, ecn) = headers.map_or((0, Ecn::NotEct), |headers| (headers.flow(), headers.ecn));
        let packet = |index| Packet { size: Bytes::new(layout.ip_len(index) as u64), flow, ecn };
        let origin = Origin { arrival: now, number: self.number };
        self.number += u64::from(layout.count());
        let rule = self.lanes.rule(headers.as_ref().map(|headers| &headers.key));
        let identity = self
            .log
            .is_some()
            .then(|| Identity::of(self.lanes.rest().memory().fresh(len), &layout));
        let mut refused = Vec::new();
        let told = identity
            .is_some()
            .then_some(|index, fate: &PushFate| refused.extend(refusals(origin, index, fate)));
        match rule.and_then(|rule| self.lanes.rule_and_rest(rule)) {
            None => self.lanes.rest().arrived(len, layout, origin, packet, told),
            Some((lane, rest)) => match lane.copy(rest.memory().fresh(len)) {
                true => lane.arrived(len, layout, origin, packet, told),
                false => self.counters.ring_dropped += u64::from(layout.count()),
            },
        }
        if let (Some(log), Some(identity)) = (&mut self.log, identity) {
            refused.iter().for_each(|entry| log.record(entry, &identity, &layout));
        }
    }

    /// When to call [`Direction::deliver`] next; `None` while nothing is on the link.
    pub fn due(&mut self) -> Option<Instant> {
        self.lanes.earliest().map(|(_, due)| due)
    }

    /// Passes the next run to `write` if it is due at `now`: the frame's parts in order. Returns
    /// whether it did.
    pub fn deliver(
        &mut self,
        now: Instant,
        write: impl FnOnce(&[IoSlice<'_>]) -> std::io::Result<usize>,
    ) -> bool {
        let Some((lane, due)) = self.lanes.earliest().filter(|(_, due)| *due <= now) else {
            return false;
        };
        let late = now.since(due);
        let departure = match lane.take(now) {
            Some(Event::Departure(departure)) => departure,
            Some(Event::Drop(dropped)) => {
                forget_dropped(lane, self.log.as_mut(), &dropped);
                return true;
            }
            None => return false,
        };
        let mut run = SegmentRun::of(&departure);
        let Some(layout) = lane.memory().get(run.frame).map(|(_, layout)| layout) else {
            return false;
        };
        let mut last = departure;
        loop {
            // On the wire each segment leaves separately, at its own time; all of them have the
            // emulator's lateness.
            self.last_departure = self.last_departure.max((last.at + late).min(now));
            if let (Some(capture), Some((frame, _))) =
                (&mut self.tap.egress, lane.memory().get(run.frame))
            {
                let parts = Parts { count: 1, ..run.parts(frame, &layout) };
                capture.segment(&parts, last.item.index, self.last_departure);
            }
            if let Some(log) = &mut self.log {
                let fate = Fate::Departed { at: last.at, mark: last.mark, corrupt: last.corrupt };
                lane.tell(log, last.item, last.copy, last.queued, fate);
            }
            match lane.take(now) {
                Some(Event::Departure(departure)) if run.takes(&departure) => last = departure,
                Some(other) => {
                    lane.put_back(other);
                    break;
                }
                None => break,
            }
        }
        let Some((frame, _)) = lane.memory().get(run.frame) else {
            return false;
        };
        let parts = run.parts(frame, &layout);
        let [first, second] = parts.slices(&mut self.scratch);
        let written = if second.is_empty() { write(&[first]) } else { write(&[first, second]) };
        match written {
            Ok(_) => self.counters.frames_written += 1,
            Err(_) => self.counters.write_errors += 1,
        }
        self.lateness.record(late, run.count.into());
        lane.memory_mut().release(run.frame, run.count.into());
        true
    }

    /// Whether segments that depart close together are delivered together.
    pub fn joins_writes(&self) -> bool {
        self.lanes.join_writes()
    }

    /// Statistics up to `now`.
    pub fn statistics(&self, now: Instant) -> DirectionStatistics {
        let statistics = DirectionStatistics {
            link: self.lanes.counters(),
            driver: self.counters,
            queue: self.lanes.backlog(now),
            inside_packets: self.lanes.inside() as u64,
            rules: self.lanes.rules(now),
            ..DirectionStatistics::default()
        };
        statistics.with_lateness(&self.lateness)
    }

    /// The model's counters.
    pub fn link_counters(&self) -> Counters {
        self.lanes.counters()
    }

    /// How late deliveries were.
    pub fn lateness(&self) -> &Lateness {
        &self.lateness
    }

    /// Ends the direction; its taps write what they still hold, and the log gets every drop that
    /// was counted.
    pub fn finish(mut self) -> Finished {
        for lane in self.lanes.all_mut() {
            while let Some(dropped) = lane.take_dropped() {
                forget_dropped(lane, self.log.as_mut(), &dropped);
            }
        }
        self.tap.finish();
        if let Some(log) = self.log {
            log.finish();
        }
        Finished { link: self.lanes.counters(), driver: self.counters, lateness: self.lateness }
    }
}

#[cfg(test)]
mod tests {
    use super::super::log_file::LogFile;
    use super::super::super_packet::VNET_LEN;
    use super::super::super_packet::tests::super_packet;
    use super::super::truth::LogWriter;
    use super::*;
    use fullpipe_model::link::{Config, log};
    use fullpipe_model::units::Rate;

    fn direction(config: Config, coalesce: Duration) -> Direction {
        let path = OneWay::plain(config.checked().unwrap(), Duration::from_millis(50), coalesce, 1);
        Direction::new(path, 0, Tap::default())
    }

    fn feed(direction: &mut Direction, frame: &[u8], now: Instant) {
        direction.space().unwrap()[..frame.len()].copy_from_slice(frame);
        direction.arrived(frame.len(), now);
    }

    /// Delivers everything on time: (time, bytes).
    fn drain(direction: &mut Direction) -> Vec<(Instant, Vec<u8>)> {
        let mut out = Vec::new();
        while let Some(due) = direction.due() {
            if due > Instant::ZERO {
                assert!(
                    !direction
                        .deliver(due.saturating_sub(Duration::from_nanos(1)), |_| panic!("early"))
                );
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
        let mut direction = direction(
            Config { delay: Duration::from_millis(5).into(), ..Config::default() },
            Duration::ZERO,
        );
        feed(&mut direction, &frame, Instant::ZERO);
        assert_eq!(drain(&mut direction), [(Instant::from_nanos(5_000_000), frame)]);
    }

    #[test]
    fn at_a_rate_segments_leave_in_groups_no_wider_than_the_coalescing_time() {
        let rate = Rate::from_bits_per_sec(1_000_000_000);
        let frame = super_packet(false, 0, &[7; 14_480], 1448, false);
        let mut direction =
            direction(Config { rate: Some(rate), ..Config::default() }, Duration::from_micros(50));
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
            bytes += drain(&mut direction)
                .iter()
                .map(|(_, out)| out.len() - VNET_LEN - 52)
                .sum::<usize>();
        }
        let counters = direction.link_counters();
        assert_eq!(counters.arrived_packets, arrived);
        assert_eq!(bytes as u64, (arrived - counters.lost_packets) * 1448);
        // 2000 draws at 20 %: sigma 17.9; 5 sigma.
        assert!(counters.lost_packets.abs_diff(400) < 90, "{counters:?}");
    }

    #[test]
    fn what_was_not_handed_over_has_not_departed() {
        let mut direction = direction(Config::default(), Duration::ZERO);
        let size = super_packet(false, 0, b"x", 1448, false).len() - VNET_LEN;
        for _ in 0..3 {
            feed(&mut direction, &super_packet(false, 0, b"x", 1448, false), Instant::ZERO);
        }
        for delivered in 1..=3 {
            // Three frames leave at the same time: the next one is looked at before it is due.
            assert!(direction.deliver(Instant::ZERO, |_| Ok(0)));
            let statistics = direction.statistics(Instant::ZERO);
            assert_eq!(statistics.link.departed_packets, delivered);
            assert_eq!(statistics.link.departed_bytes, delivered * size as u64);
            assert_eq!(statistics.inside_packets, 3 - delivered);
        }
    }

    #[test]
    fn wherever_a_link_ends_its_log_has_every_drop_that_it_counted() {
        let config = Config {
            rate: Some(Rate::from_bits_per_sec(10_000_000)),
            queue: "1MB".parse().unwrap(),
            discipline: "codel target 1ms interval 4ms".parse().unwrap(),
            ..Config::default()
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("link.log");
        let mut dropped = 0;
        for events in 0..160 {
            let (writer, [log, other]) = LogWriter::start(&path, Duration::ZERO).unwrap();
            let mut direction = direction(config.clone(), Duration::ZERO).with_log(Some(log));
            for _ in 0..30 {
                let frame = super_packet(false, 0, &[7; 14_480], 1448, false);
                feed(&mut direction, &frame, Instant::ZERO);
            }
            for _ in 0..events {
                let due = direction.due().unwrap();
                direction.deliver(due, |_| Ok(0));
            }
            let counted = direction.finish().link;
            other.finish();
            assert_eq!(writer.finish().unwrap(), 0);
            let told = LogFile::read(&path).unwrap().count(log::Direction::ToClient);
            assert_eq!(told.departed_packets, counted.departed_packets, "after {events} events");
            assert_eq!(
                (told.queue_dropped_packets, told.discipline_dropped_packets),
                (counted.queue_dropped_packets, counted.discipline_dropped_packets),
                "after {events} events"
            );
            dropped = counted.discipline_dropped_packets;
        }
        assert!(dropped > 10, "CoDel dropped {dropped}");
    }

    #[test]
    fn lateness_is_told() {
        let mut direction = direction(
            Config { delay: Duration::from_millis(1).into(), ..Config::default() },
            Duration::ZERO,
        );
        feed(&mut direction, &super_packet(false, 0, b"x", 1448, false), Instant::ZERO);
        assert!(direction.deliver(Instant::from_nanos(1_300_000), |_| Ok(0)));
        assert_eq!(direction.lateness().max(), Duration::from_micros(300));
    }

    #[test]
    fn another_path_and_its_memory_take_over_in_mid_transfer() {
        let delay =
            |millis| Config { delay: Duration::from_millis(millis).into(), ..Config::default() };
        let mut direction = direction(delay(20), Duration::ZERO);
        let frame = super_packet(false, 0, b"x", 1448, false);
        feed(&mut direction, &frame, Instant::ZERO);
        let mut path = OneWay::plain(
            delay(5).checked().unwrap(),
            Duration::from_millis(10),
            Duration::ZERO,
            1,
        );
        assert_eq!(path.allocate(&[(None, Bytes::new(1))]).len(), 1);
        direction.change(Change { path }, Instant::from_nanos(500_000));
        feed(&mut direction, &frame, Instant::from_nanos(1_000_000));
        let statistics = direction.statistics(Instant::from_nanos(1_000_000));
        assert_eq!((statistics.inside_packets, statistics.link.arrived_packets), (2, 2));
        assert!(direction.superfluous().is_none(), "a packet is still in it");
        let out = drain(&mut direction);
        assert!(
            out.iter().all(|(_, bytes)| *bytes == frame),
            "each from the memory that it was read into"
        );
        assert!(direction.superfluous().is_some());
        assert_eq!(direction.link_counters().departed_packets, 2);
    }
}
