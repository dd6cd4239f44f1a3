//! A TCP transfer in virtual time whose limit is known because it is built in: the truth for the
//! limits' tests.
//!
//! One sender (slow start, then congestion avoidance; NewReno-like repair), one link with a rate, a
//! delay and a drop-tail queue, one receiver with a buffer and a reader. Written apart from the
//! code under test and much simpler than a kernel.

use crate::trace::{ACK, Line, SYN};
use fullpipe_model::units::{Duration, Instant};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

pub const MSS: u64 = 1448;

/// What the transfer is like. Bytes, bytes a second, nanoseconds.
#[derive(Debug, Clone)]
pub struct Transfer {
    pub bytes: u64,
    pub rtt: u64,
    pub rate: u64,
    pub queue: u64,
    pub receive_buffer: u64,
    /// The reader's rate; 0 for "at once".
    pub read_rate: u64,
    pub send_buffer: u64,
    /// The application's write and its period; a period of 0 means that it writes whenever it can.
    pub write: (u64, u64),
    /// The rate at which the sender lets two segments go at a time; 0 for "at once".
    pub pace: u64,
    /// One of so many segments is lost, 0 for none.
    pub lose_one_in: u64,
    pub seed: u64,
}

impl Default for Transfer {
    fn default() -> Self {
        Transfer {
            bytes: 20_000_000,
            rtt: 50_000_000,
            rate: 12_500_000,
            queue: 625_000,
            receive_buffer: 4_000_000,
            read_rate: 0,
            send_buffer: 8_000_000,
            write: (0, 0),
            pace: 0,
            lose_one_in: 0,
            seed: 1,
        }
    }
}

/// Where packets are noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    Sender,
    Receiver,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Data { start: u64, length: u64 },
    Ack { number: u64, window: u64, length: u64, stamp: u32 },
    Write,
    Read,
    Timer,
}

struct Sim {
    t: Transfer,
    now: u64,
    order: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    lines: BTreeMap<(u64, u64), Line>,
    point: Point,
    // Sender, in bytes.
    written: u64,
    writable: bool,
    una: u64,
    next: u64,
    /// Until when the pace allows nothing.
    paced_until: u64,
    edge: u64,
    cwnd: f64,
    ssthresh: f64,
    duplicates: u32,
    recover: u64,
    /// Bytes that are under way and will arrive, and segments that will not.
    pipe: u64,
    lost: BTreeMap<u64, u64>,
    echo: u32,
    progress: u64,
    link_free: u64,
    random: u64,
    // Receiver.
    arrived: BTreeMap<u64, u64>,
    in_order: u64,
    read: u64,
    advertised: u64,
}

/// Runs the transfer and gives what a capture at `point` shows.
pub fn run(transfer: &Transfer, point: Point) -> Vec<Line> {
    let start = 1_000_000_000;
    let mut sim = Sim {
        now: start,
        order: 0,
        events: BinaryHeap::new(),
        lines: BTreeMap::new(),
        point,
        written: 0,
        writable: true,
        una: 0,
        next: 0,
        paced_until: 0,
        edge: transfer.receive_buffer,
        cwnd: 10.0 * MSS as f64,
        ssthresh: f64::INFINITY,
        duplicates: 0,
        recover: 0,
        pipe: 0,
        lost: BTreeMap::new(),
        echo: 0,
        progress: start,
        link_free: 0,
        random: transfer.seed,
        arrived: BTreeMap::new(),
        in_order: 0,
        read: 0,
        advertised: transfer.receive_buffer,
        t: transfer.clone(),
    };
    sim.handshake();
    sim.at(sim.now, Event::Write);
    sim.at(sim.now + 10_000_000, Event::Read);
    sim.at(sim.now + 100_000_000, Event::Timer);
    while let Some(Reverse((at, _, event))) = sim.events.pop() {
        sim.now = at;
        match event {
            Event::Data { start, length } => sim.data_arrives(start, length),
            Event::Ack { number, window, length, stamp } => {
                sim.ack_arrives(number, window, length, stamp)
            }
            Event::Write => sim.write(),
            Event::Read => sim.reads(),
            Event::Timer => sim.timer(),
        }
        if sim.una >= sim.t.bytes {
            break;
        }
        assert!(sim.now < 600_000_000_000, "the simulated transfer does not end: {:?}", sim.t);
    }
    sim.lines.into_values().collect()
}

impl Sim {
    fn at(&mut self, at: u64, event: Event) {
        self.order += 1;
        self.events.push(Reverse((at, self.order, event)));
    }

    fn note(&mut self, at: u64, line: Line) {
        self.order += 1;
        self.lines.insert((at, self.order), Line { at: Instant::from_nanos(at), ..line });
    }

    fn handshake(&mut self) {
        let syn = Line {
            from_client: true,
            flags: SYN,
            window: 65_535,
            options: options(),
            ..Line::default()
        };
        let window = self.t.receive_buffer.min(65_535) as u16;
        // The client receives; the server, which sends, has answered its SYN.
        let syn_ack = Line { from_client: false, flags: SYN | ACK, ack: 1, ..syn.clone() };
        let ack = Line {
            from_client: true,
            flags: ACK,
            seq: 1,
            ack: 1,
            window: self.field(window.into()),
            ..Line::default()
        };
        let (half, start) = (self.t.rtt / 2, self.now);
        match self.point {
            Point::Sender => {
                self.note(start + half, Line { window, ..syn });
                self.note(start + half, syn_ack);
                self.note(start + 2 * half + half, ack);
            }
            Point::Receiver => {
                self.note(start, Line { window, ..syn });
                self.note(start + 2 * half, syn_ack);
                self.note(start + 2 * half, ack);
            }
        }
        self.now = start + 3 * half;
        self.progress = self.now;
    }

    fn field(&self, window: u64) -> u16 {
        (window >> SCALE) as u16
    }

    fn write(&mut self) {
        let left = self.t.bytes - self.written;
        let held = self.written - self.una;
        // As in Linux: once the buffer is full, the writer is woken when a third of it is free.
        self.writable |= held <= self.t.send_buffer * 2 / 3;
        if self.writable {
            let room = self.t.send_buffer.saturating_sub(held);
            let wants = if self.t.write.1 == 0 { left } else { self.t.write.0.min(left) };
            self.written += wants.min(room);
            self.writable = wants < room;
        }
        if self.t.write.1 > 0 && left > 0 {
            self.at(self.now + self.t.write.1, Event::Write);
        }
        self.send();
    }

    fn send(&mut self) {
        while self.next < self.written {
            let length = MSS.min(self.written - self.next);
            // A short segment goes out when nothing will join it: at the end, or at the end of a
            // write.
            let whole = length == MSS || self.written == self.t.bytes || self.t.write.1 > 0;
            if !whole
                || self.next + length > self.edge
                || !self.has_room(length)
                || self.waits_for_pace()
            {
                break;
            }
            self.transmit(self.next, length);
            self.next += length;
        }
    }

    /// Whether the sender's pace holds the next segment back. Two go at a time.
    fn waits_for_pace(&mut self) -> bool {
        if self.t.pace == 0 || !(self.next / MSS).is_multiple_of(2) {
            return false;
        }
        if self.now < self.paced_until {
            return true;
        }
        self.paced_until = self.now + 2 * MSS * 1_000_000_000 / self.t.pace;
        self.at(self.paced_until, Event::Write);
        false
    }

    fn has_room(&self, length: u64) -> bool {
        (self.pipe + length) as f64 <= self.cwnd.max(MSS as f64)
    }

    fn transmit(&mut self, start: u64, length: u64) {
        let line = Line {
            from_client: false,
            flags: ACK,
            seq: (start + 1) as u32,
            payload: length as usize,
            ack: 1,
            window: 512,
            options: timestamps(stamp(self.now), self.echo),
            ..Line::default()
        };
        if self.point == Point::Sender {
            self.note(self.now, line.clone());
        }
        let begin = self.link_free.max(self.now);
        if (begin - self.now) * self.t.rate / 1_000_000_000 > self.t.queue || self.is_unlucky() {
            self.lost.insert(start, length);
            return;
        }
        self.link_free = begin + (length + 52) * 1_000_000_000 / self.t.rate;
        let arrives = self.link_free + self.t.rtt / 2;
        if self.point == Point::Receiver {
            self.note(arrives, line);
        }
        self.pipe += length;
        self.at(arrives, Event::Data { start, length });
    }

    /// What SACK would tell: the holes, oldest first, as far as the window goes.
    fn repair(&mut self) {
        let holes: Vec<(u64, u64)> =
            self.lost.range(..self.recover).take(2).map(|(s, l)| (*s, *l)).collect();
        for (start, length) in holes {
            if self.has_room(length) {
                self.lost.remove(&start);
                self.transmit(start, length);
            }
        }
    }

    fn is_unlucky(&mut self) -> bool {
        let one = self.random_below(self.t.lose_one_in.max(1));
        self.t.lose_one_in > 0 && one == 0
    }

    fn random_below(&mut self, end: u64) -> u64 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % end
    }

    fn data_arrives(&mut self, start: u64, length: u64) {
        self.arrived.insert(start, length);
        while let Some(length) = self.arrived.remove(&self.in_order) {
            self.in_order += length;
        }
        if self.t.read_rate == 0 {
            self.read = self.in_order;
        }
        self.acknowledge(length);
    }

    fn acknowledge(&mut self, length: u64) {
        let free = self.t.receive_buffer - (self.in_order - self.read);
        // Never take back what was given (RFC 9293, 3.8.6), and give in whole segments (silly
        // window avoidance).
        let edge = self.in_order + free;
        let floor = self.advertised.max(self.in_order);
        if edge >= floor + MSS.min(self.t.receive_buffer / 2)
            || edge == self.in_order + self.t.receive_buffer
        {
            self.advertised = edge.max(floor);
        }
        let window = self.field(self.advertised.saturating_sub(self.in_order));
        let line = Line {
            from_client: true,
            flags: ACK,
            seq: 1,
            ack: (self.in_order + 1) as u32,
            window,
            options: timestamps(stamp(self.now), 0),
            ..Line::default()
        };
        let arrives = self.now + self.t.rtt / 2;
        // No host answers at once.
        let late = if self.t.pace > 0 { self.random_below(20_000) } else { 0 };
        let noted = if self.point == Point::Sender { arrives } else { self.now };
        self.note(noted + late, line);
        let (stamp, window) = (stamp(self.now), u64::from(window) << SCALE);
        self.at(arrives, Event::Ack { number: self.in_order, window, length, stamp });
    }

    fn reads(&mut self) {
        const PERIOD: u64 = 10_000_000;
        if self.t.read_rate > 0 {
            let before = self.advertised;
            let amount = self.t.read_rate * PERIOD / 1_000_000_000;
            self.read = (self.read + amount).min(self.in_order);
            if self.in_order - self.read + before.saturating_sub(self.in_order) + 2 * MSS
                <= self.t.receive_buffer
            {
                self.acknowledge(0);
            }
        }
        self.at(self.now + PERIOD, Event::Read);
    }

    fn ack_arrives(&mut self, number: u64, window: u64, length: u64, stamp: u32) {
        self.edge = self.edge.max(number + window);
        self.pipe -= length;
        self.echo = stamp;
        if number > self.una {
            let fresh = (number - self.una) as f64;
            self.una = number;
            self.progress = self.now;
            self.duplicates = 0;
            if number >= self.recover {
                let slow_start = self.cwnd < self.ssthresh;
                self.cwnd += if slow_start { fresh } else { MSS as f64 * fresh / self.cwnd };
            }
        } else if length > 0 {
            self.duplicates += 1;
            if self.duplicates == 3 && self.una >= self.recover {
                self.reduce();
            }
        }
        if self.una < self.recover {
            self.repair();
        }
        if self.t.write.1 == 0 {
            self.write();
        }
        self.send();
    }

    fn reduce(&mut self) {
        self.ssthresh = (self.cwnd.min((self.next - self.una) as f64) / 2.0).max(2.0 * MSS as f64);
        self.cwnd = self.ssthresh;
        self.recover = self.next;
    }

    fn timer(&mut self) {
        const PERIOD: u64 = 100_000_000;
        if !self.lost.is_empty() && self.now - self.progress > 200_000_000 + 2 * self.t.rtt {
            self.progress = self.now;
            self.reduce();
            self.repair();
        }
        self.at(self.now + PERIOD, Event::Timer);
    }
}

fn stamp(now: u64) -> u32 {
    (now / 1_000_000) as u32
}

fn timestamps(value: u32, echo: u32) -> Vec<u8> {
    [&[1u8, 1, 8, 10][..], &value.to_be_bytes(), &echo.to_be_bytes()].concat()
}

const SCALE: u32 = 7;

fn options() -> Vec<u8> {
    vec![2, 4, 5, 0xb4, 1, 3, 3, SCALE as u8]
}

/// A time as the tests write it.
pub const fn millis(millis: u64) -> u64 {
    Duration::from_millis(millis).as_nanos()
}
