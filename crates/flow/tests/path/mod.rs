//! A SACK sender and receiver over a path that loses, reorders and duplicates, in virtual time; the
//! path writes down what it did to each packet, which is the truth.
//!
//! Written apart from the code under test and much simpler than a kernel: loss is found by time
//! (RACK, RFC 8985) or by a timer, the receiver answers with SACK and DSACK.
#![allow(dead_code, reason = "each user takes a part of it")]

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

pub const MSS: u32 = 1448;
const MILLI: u64 = 1_000_000;
pub const ACK: u8 = 0x10;
const SYN: u8 = 0x02;

/// What the path is like: chances in 1, times in nanoseconds.
#[derive(Debug, Clone)]
pub struct Path {
    pub bytes: u64,
    pub rtt: u64,
    /// Bytes a second.
    pub rate: u64,
    pub loss: f64,
    pub ack_loss: f64,
    pub reorder: f64,
    /// How much later a reordered packet is, at most.
    pub displacement: u64,
    pub duplicate: f64,
    pub seed: u64,
    pub start: u64,
}

impl Default for Path {
    fn default() -> Self {
        Path {
            bytes: 3_000_000,
            rtt: 40 * MILLI,
            rate: 12_500_000,
            loss: 0.0,
            ack_loss: 0.0,
            reorder: 0.0,
            displacement: 4 * MILLI,
            duplicate: 0.0,
            seed: 1,
            start: 1_700_000_000_000_000_000,
        }
    }
}

/// A packet as a capture shows it.
#[derive(Debug, Clone)]
pub struct Seen {
    pub at: u64,
    pub from_client: bool,
    pub flags: u8,
    pub seq: u32,
    pub ack: u32,
    pub length: u32,
    pub window: u16,
    pub options: Vec<u8>,
    pub ip_id: u16,
    /// Which transmission of data it is.
    pub transmission: Option<usize>,
}

impl Seen {
    /// A packet without options: control bits, numbers, payload's length.
    pub fn plain(
        at: u64,
        from_client: bool,
        (flags, seq, ack, length): (u8, u32, u32, u32),
    ) -> Self {
        let (window, options) = (1000, Vec::new());
        Seen {
            at,
            from_client,
            flags,
            seq,
            ack,
            length,
            window,
            options,
            ip_id: 0,
            transmission: None,
        }
    }
}

/// What became of one transmission of data.
#[derive(Debug, Clone, Default)]
pub struct Transmission {
    pub seq: u32,
    pub sent: u64,
    pub lost: bool,
    pub arrivals: Vec<u64>,
    /// Its bytes were sent before.
    pub again: bool,
}

/// What both ends saw, and the truth. The server sends.
#[derive(Debug, Default)]
pub struct Outcome {
    pub at_sender: Vec<Seen>,
    pub at_receiver: Vec<Seen>,
    pub transmissions: Vec<Transmission>,
}

enum Event {
    Data { transmission: usize },
    Ack { ack: u32, blocks: Vec<(u32, u32)>, stamp: u32 },
    Delayed { count: u32 },
    Timer,
}

#[derive(Debug, Clone)]
struct Segment {
    length: u32,
    sent: u64,
    sacked: bool,
    lost: bool,
    sends: u32,
}

struct Run {
    path: Path,
    now: u64,
    order: u64,
    queue: BinaryHeap<Reverse<(u64, u64, usize)>>,
    events: Vec<Option<Event>>,
    out: Outcome,
    random: u64,
    // Sender.
    segments: BTreeMap<u32, Segment>,
    una: u32,
    next: u32,
    cwnd: f64,
    ssthresh: f64,
    recover: u32,
    newest_delivered: u64,
    progress: u64,
    link_free: u64,
    echo: u32,
    ids: [u16; 2],
    // Receiver.
    in_order: u32,
    above: BTreeMap<u32, u32>,
    recent: Vec<u32>,
    unacked: u32,
    deliveries: u32,
    ts_recent: u32,
}

/// Runs one transfer; data numbers start at 1.
pub fn run(path: &Path) -> Outcome {
    let mut run = Run {
        now: path.start,
        order: 0,
        queue: BinaryHeap::new(),
        events: Vec::new(),
        out: Outcome::default(),
        random: path.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
        segments: BTreeMap::new(),
        una: 1,
        next: 1,
        cwnd: 10.0,
        ssthresh: f64::INFINITY,
        recover: 1,
        newest_delivered: 0,
        progress: path.start,
        link_free: 0,
        echo: 0,
        ids: [0x1000, 0x8000],
        in_order: 1,
        above: BTreeMap::new(),
        recent: Vec::new(),
        unacked: 0,
        deliveries: 0,
        ts_recent: 0,
        path: path.clone(),
    };
    run.handshake();
    run.send();
    run.schedule(run.now + 50 * MILLI, Event::Timer);
    while let Some(Reverse((at, _, event))) = run.queue.pop() {
        run.now = at;
        match run.events[event].take().unwrap() {
            Event::Data { transmission } => run.data(transmission),
            Event::Ack { ack, blocks, stamp } => run.acked(ack, &blocks, stamp),
            Event::Delayed { count } if count == run.deliveries && run.unacked > 0 => {
                run.answer(None)
            }
            Event::Delayed { .. } => {}
            Event::Timer => run.timer(),
        }
        if u64::from(run.una) > run.path.bytes {
            break;
        }
        assert!(run.now < path.start + 3_600_000 * MILLI, "does not end: {path:?}");
    }
    run.out.at_sender.sort_by_key(|seen| seen.at);
    run.out.at_receiver.sort_by_key(|seen| seen.at);
    run.out
}

impl Run {
    fn schedule(&mut self, at: u64, event: Event) {
        self.order += 1;
        self.events.push(Some(event));
        self.queue.push(Reverse((at, self.order, self.events.len() - 1)));
    }

    fn chance(&mut self, part: f64) -> bool {
        self.draw() < part
    }

    fn draw(&mut self) -> f64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn stamp(&self) -> u32 {
        ((self.now - self.path.start) / MILLI) as u32 + 1000
    }

    fn handshake(&mut self) {
        let (start, half) = (self.now, self.path.rtt / 2);
        let options = |value: u32, echo: u32| {
            [
                &[2, 4, 5, 0xb4, 4, 2, 8, 10][..],
                &value.to_be_bytes(),
                &echo.to_be_bytes(),
                &[1, 3, 3, 7],
            ]
            .concat()
        };
        let seen = |from_client, flags, seq, ack, options, at| Seen {
            at,
            from_client,
            flags,
            seq,
            ack,
            length: 0,
            window: 65_000,
            options,
            ip_id: 0,
            transmission: None,
        };
        let parts = [
            (true, SYN, 0, 0, options(1000, 0), start, start + half),
            (false, SYN | ACK, 0, 1, options(1000, 1000), start + half, start + 2 * half),
            (true, ACK, 1, 1, stamps(1000, 1000), start + 2 * half, start + 3 * half),
        ];
        for (from_client, flags, seq, ack, options, sent, arrives) in parts {
            let (at_client, at_server) =
                if from_client { (sent, arrives) } else { (arrives, sent) };
            self.out.at_receiver.push(seen(
                from_client,
                flags,
                seq,
                ack,
                options.clone(),
                at_client,
            ));
            self.out.at_sender.push(seen(from_client, flags, seq, ack, options, at_server));
        }
        self.now = start + 3 * half;
    }

    fn in_flight(&self) -> usize {
        self.segments.values().filter(|segment| !segment.sacked && !segment.lost).count()
    }

    fn send(&mut self) {
        let mut in_flight = self.in_flight();
        while (in_flight as f64) < self.cwnd {
            let lost = self.segments.iter().find(|(_, segment)| segment.lost).map(|(seq, _)| *seq);
            if let Some(seq) = lost {
                self.transmit(seq);
            } else if u64::from(self.next) <= self.path.bytes {
                let length = u64::from(MSS).min(self.path.bytes + 1 - u64::from(self.next)) as u32;
                let segment = Segment { length, sent: 0, sacked: false, lost: false, sends: 0 };
                self.segments.insert(self.next, segment);
                self.next += length;
                self.transmit(self.next - length);
            } else {
                break;
            }
            in_flight += 1;
        }
    }

    fn transmit(&mut self, seq: u32) {
        let now = self.now;
        let segment = self.segments.get_mut(&seq).unwrap();
        (segment.sent, segment.lost) = (now, false);
        segment.sends += 1;
        let (length, again) = (segment.length, segment.sends > 1);
        self.ids[1] = self.ids[1].wrapping_add(1);
        let transmission = self.out.transmissions.len();
        let seen = Seen {
            at: now,
            from_client: false,
            flags: ACK,
            seq,
            ack: 1,
            length,
            window: 500,
            options: stamps(self.stamp(), self.echo),
            ip_id: self.ids[1],
            transmission: Some(transmission),
        };
        self.out.at_sender.push(seen.clone());
        let begin = self.link_free.max(now);
        let full = begin - now > self.path.rtt;
        let lost = full || self.chance(self.path.loss);
        let mut arrivals = Vec::new();
        if !full {
            self.link_free = begin + u64::from(length + 66) * 1_000_000_000 / self.path.rate;
        }
        if !lost {
            let mut arrives = self.link_free + self.path.rtt / 2;
            if self.chance(self.path.reorder) {
                arrives += (self.draw() * self.path.displacement as f64) as u64;
            }
            arrivals.push(arrives);
            if self.chance(self.path.duplicate) {
                arrivals.push(arrives + 20_000);
            }
        }
        for at in &arrivals {
            self.out.at_receiver.push(Seen { at: *at, ..seen.clone() });
            self.schedule(*at, Event::Data { transmission });
        }
        self.out.transmissions.push(Transmission { seq, sent: now, lost, arrivals, again });
    }

    fn data(&mut self, transmission: usize) {
        let Transmission { seq, sent, .. } = self.out.transmissions[transmission];
        let length = u64::from(MSS).min(self.path.bytes + 1 - u64::from(seq)) as u32;
        self.deliveries += 1;
        let stamp = ((sent - self.path.start) / MILLI) as u32 + 1000;
        if seq <= self.in_order {
            self.ts_recent = self.ts_recent.max(stamp);
        }
        if seq < self.in_order || self.above.contains_key(&seq) {
            return self.answer(Some((seq, seq + length)));
        }
        let had_gap = !self.above.is_empty();
        if seq == self.in_order {
            self.in_order += length;
            while let Some(length) = self.above.remove(&self.in_order) {
                self.in_order += length;
            }
        } else {
            self.above.insert(seq, length);
            self.recent.insert(0, seq);
            self.recent.truncate(8);
        }
        self.unacked += 1;
        if had_gap || !self.above.is_empty() || self.unacked >= 2 {
            self.answer(None);
        } else {
            self.schedule(self.now + 40 * MILLI, Event::Delayed { count: self.deliveries });
        }
    }

    fn block_around(&self, seq: u32) -> Option<(u32, u32)> {
        let length = *self.above.get(&seq)?;
        let (mut left, mut right) = (seq, seq + length);
        while let Some((start, length)) =
            self.above.range(..left).next_back().filter(|(s, l)| **s + **l == left)
        {
            (left, _) = (*start, length);
        }
        while let Some(length) = self.above.get(&right) {
            right += length;
        }
        Some((left, right))
    }

    fn answer(&mut self, repeated: Option<(u32, u32)>) {
        self.unacked = 0;
        let mut blocks: Vec<(u32, u32)> = repeated.into_iter().collect();
        for seq in self.recent.clone() {
            if let Some(block) = self.block_around(seq).filter(|block| !blocks.contains(block)) {
                blocks.push(block);
            }
        }
        blocks.truncate(3);
        let mut options = stamps(self.stamp(), self.ts_recent);
        if !blocks.is_empty() {
            options.extend([1, 1, 5, 2 + 8 * blocks.len() as u8]);
            for (left, right) in &blocks {
                options.extend([left.to_be_bytes(), right.to_be_bytes()].concat());
            }
        }
        self.ids[0] = self.ids[0].wrapping_add(1);
        let seen = Seen {
            at: self.now,
            from_client: true,
            flags: ACK,
            seq: 1,
            ack: self.in_order,
            length: 0,
            window: 32_000,
            options,
            ip_id: self.ids[0],
            transmission: None,
        };
        self.out.at_receiver.push(seen.clone());
        if self.chance(self.path.ack_loss) {
            return;
        }
        let at = self.now + self.path.rtt / 2;
        self.out.at_sender.push(Seen { at, ..seen });
        let (ack, stamp) = (self.in_order, self.stamp());
        self.schedule(at, Event::Ack { ack, blocks, stamp });
    }

    fn acked(&mut self, ack: u32, blocks: &[(u32, u32)], stamp: u32) {
        self.echo = stamp;
        if ack > self.una {
            let fresh = f64::from(ack - self.una) / f64::from(MSS);
            self.una = ack;
            self.progress = self.now;
            if ack >= self.recover {
                self.cwnd += if self.cwnd < self.ssthresh { fresh } else { fresh / self.cwnd };
                self.cwnd = self.cwnd.min(2000.0);
            }
        }
        let held = self.segments.split_off(&ack);
        for segment in std::mem::replace(&mut self.segments, held).values() {
            self.newest_delivered = self.newest_delivered.max(segment.sent);
        }
        for (left, right) in blocks {
            for (_, segment) in self.segments.range_mut(*left..(*right).max(*left)) {
                segment.sacked = true;
                segment.lost = false;
                self.newest_delivered = self.newest_delivered.max(segment.sent);
            }
        }
        let window = self.path.rtt / 4;
        let mut found = false;
        for segment in self.segments.values_mut() {
            if !segment.sacked && !segment.lost && segment.sent + window < self.newest_delivered {
                segment.lost = true;
                found = true;
            }
        }
        if found && self.una >= self.recover {
            self.ssthresh = (self.cwnd / 2.0).max(2.0);
            self.cwnd = self.ssthresh;
            self.recover = self.next;
        }
        self.send();
    }

    fn timer(&mut self) {
        if self.una < self.next && self.now - self.progress > 200 * MILLI + 2 * self.path.rtt {
            self.progress = self.now;
            self.segments
                .values_mut()
                .filter(|segment| !segment.sacked)
                .for_each(|segment| segment.lost = true);
            self.ssthresh = (self.cwnd / 2.0).max(2.0);
            self.cwnd = 2.0;
            self.recover = self.next;
            self.send();
        }
        self.schedule(self.now + 50 * MILLI, Event::Timer);
    }
}

fn stamps(value: u32, echo: u32) -> Vec<u8> {
    [&[1_u8, 1, 8, 10][..], &value.to_be_bytes(), &echo.to_be_bytes()].concat()
}

/// The packet from its IPv4 header on, its payload left out as a snap length would.
pub fn headers(seen: &Seen, client: ([u8; 4], u16), server: ([u8; 4], u16)) -> Vec<u8> {
    let (source, destination) = if seen.from_client { (client, server) } else { (server, client) };
    let header = 20 + seen.options.len();
    let total = (20 + header + seen.length as usize) as u16;
    let mut packet = vec![0x45, 0];
    packet.extend(total.to_be_bytes());
    packet.extend(seen.ip_id.to_be_bytes());
    packet.extend([0x40, 0, 64, 6, 0, 0]);
    packet.extend(source.0);
    packet.extend(destination.0);
    packet.extend(source.1.to_be_bytes());
    packet.extend(destination.1.to_be_bytes());
    packet.extend(seen.seq.to_be_bytes());
    packet.extend(seen.ack.to_be_bytes());
    packet.extend([(header as u8 / 4) << 4, seen.flags]);
    packet.extend(seen.window.to_be_bytes());
    packet.extend([0; 4]);
    packet.extend(&seen.options);
    packet
}
