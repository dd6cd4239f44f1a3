//! A download whose every packet's fate is known, as two places captured it.

use super::*;
use crate::capture::segment::Parsed;
use fullpipe_model::units::Bytes;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

const MS: i64 = 1_000_000;
/// When it begins, by A's clock.
const START: i64 = 1_700_000_000_000 * MS;
const SEGMENT: u32 = 1448;

/// What is on the way of the download, in thousandths of the segments, and how it was captured.
#[derive(Debug, Clone, Copy)]
struct World {
    seed: u64,
    segments: u32,
    rtt: i64,
    lost: u64,
    lost_before: u64,
    lost_after: u64,
    missed_by_server: u64,
    missed_by_client: u64,
    duplicated: u64,
    acks_lost: u64,
    acks_missed: u64,
    ahead: i64,
    drift_ppm: i64,
    is_translated: bool,
    is_renumbered: bool,
    has_timestamps: bool,
    /// Segments that each capture merges at most.
    merged: [u32; 2],
}

impl Default for World {
    fn default() -> Self {
        World {
            seed: 1,
            segments: 2000,
            rtt: 40 * MS,
            lost: 0,
            lost_before: 0,
            lost_after: 0,
            missed_by_server: 0,
            missed_by_client: 0,
            duplicated: 0,
            acks_lost: 0,
            acks_missed: 0,
            ahead: 0,
            drift_ppm: 0,
            is_translated: false,
            is_renumbered: false,
            has_timestamps: true,
            merged: [1, 1],
        }
    }
}

/// What the world knows.
#[derive(Debug, Default, PartialEq, Eq, Clone, Copy)]
struct Fates {
    sent: u64,
    lost: u64,
    lost_before: u64,
    lost_after: u64,
    missed_by_server: u64,
    missed_by_client: u64,
    duplicated: u64,
}

/// A packet at one place.
#[derive(Debug, Clone)]
struct Drawn {
    to_client: bool,
    seq: u32,
    ack: u32,
    flags: u8,
    payload: u32,
    timestamp: u32,
    sack: Option<(u32, u32)>,
    ttl: u8,
    id: u16,
}

struct Simulated {
    world: World,
    random: u64,
    taps: [Vec<(i64, Drawn)>; 2],
    known: Fates,
    /// Acknowledgements that the server's capture does not have.
    acks_absent: u64,
    ids: u16,
    /// Segments of which a copy has passed the first place, or was lost before it.
    begun: BTreeSet<u32>,
    /// Those of them that were lost before it, until a copy passes.
    gaps: BTreeSet<u32>,
}

const SYN: u8 = 2;
const ACK: u8 = 16;

impl Simulated {
    fn chance(&mut self, thousandths: u64) -> bool {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % 1000 < thousandths
    }

    fn of(world: World) -> Simulated {
        let mut it = Simulated {
            world,
            random: world.seed,
            taps: Default::default(),
            known: Fates::default(),
            acks_absent: 0,
            ids: 1,
            begun: BTreeSet::new(),
            gaps: BTreeSet::new(),
        };
        it.run();
        it
    }

    fn packet(&mut self, to_client: bool, at: i64, seq: u32, payload: u32, flags: u8) -> Drawn {
        self.ids = self.ids.wrapping_add(1);
        let timestamp = (at / MS) as u32;
        Drawn {
            to_client,
            seq,
            ack: 1,
            flags,
            payload,
            timestamp,
            sack: None,
            ttl: 64,
            id: self.ids,
        }
    }

    /// It passes both places: A is the client's.
    fn passes(&mut self, at: i64, packet: Drawn) {
        let half = self.world.rtt / 2;
        let (a, b) = if packet.to_client { (at + half, at) } else { (at, at + half) };
        let far = Drawn { ttl: packet.ttl - 7, ..packet.clone() };
        let (of_a, of_b) = if packet.to_client { (far, packet) } else { (packet, far) };
        self.taps[0].push((a, of_a));
        self.taps[1].push((b, of_b));
    }

    /// Sends a segment at `at`; whether and when the client has it.
    fn send(&mut self, number: u32, at: i64) -> Option<i64> {
        let half = self.world.rtt / 2;
        let data = self.packet(true, at, 1 + number * SEGMENT, SEGMENT, ACK);
        if self.chance(self.world.lost_before) {
            // Of what has passed already, or is absent already, no capture shows one loss more.
            if self.begun.insert(number) {
                self.gaps.insert(number);
            }
            return None;
        }
        self.begun.insert(number);
        let fills_gap = self.gaps.remove(&number);
        self.known.sent += 1;
        let is_lost = self.chance(self.world.lost);
        let mut is_missed = false;
        if is_lost {
            self.known.lost += 1;
        } else {
            let seen = Drawn { ttl: 57, ..data.clone() };
            is_missed = self.chance(self.world.missed_by_client);
            if is_missed {
                self.known.missed_by_client += 1;
            } else {
                self.taps[0].push((at + half, seen.clone()));
                if self.chance(self.world.duplicated) {
                    self.known.duplicated += 1;
                    self.taps[0].push((at + half + 1000, seen));
                }
            }
        }
        if !is_lost && self.chance(self.world.missed_by_server) {
            // What neither capture has, nobody can miss.
            self.known.missed_by_server += u64::from(!is_missed);
            self.known.missed_by_client -= u64::from(is_missed);
            self.known.sent -= 1;
        } else {
            // A copy that the capture missed does not show that an earlier one was lost.
            self.known.lost_before += u64::from(fills_gap);
            self.taps[1].push((at, data));
        }
        if is_lost {
            return None;
        }
        let is_lost_after = self.chance(self.world.lost_after);
        self.known.lost_after += u64::from(is_lost_after);
        (!is_lost_after).then_some(at + half + 50_000)
    }

    fn run(&mut self) {
        let rtt = self.world.rtt;
        let syn = self.packet(false, START, 0, 0, SYN);
        self.passes(START, syn);
        let answer = self.packet(true, START + rtt / 2, 0, 0, SYN | ACK);
        self.passes(START + rtt / 2, answer);
        let mut ack = self.packet(false, START + rtt, 1, 0, ACK);
        ack.ack = 1;
        self.passes(START + rtt, ack);
        // What is to be sent, and what arrives, by time.
        let mut queue: BTreeMap<(i64, u32), u32> = BTreeMap::new();
        let mut arrived: BTreeMap<(i64, u32), u32> = BTreeMap::new();
        for number in 0..self.world.segments {
            queue.insert((START + 2 * rtt + i64::from(number) * 120_000, number), 0);
        }
        while let Some(((at, number), tries)) = queue.pop_first() {
            match self.send(number, at) {
                Some(at) => {
                    arrived.insert((at, number), number);
                }
                // The last ones would need a timeout, as nothing comes after them.
                None => {
                    queue.insert((at + rtt * 3 / 2 + 5 * MS, number), tries + 1);
                }
            }
        }
        let mut has = vec![false; self.world.segments as usize];
        let mut next = 0;
        for (at, number) in arrived.keys().copied().collect::<Vec<_>>() {
            has[number as usize] = true;
            while has.get(next).is_some_and(|has| *has) {
                next += 1;
            }
            let mut ack = self.packet(false, at, 1, 0, ACK);
            ack.ack = 1 + next as u32 * SEGMENT;
            let start = 1 + number * SEGMENT;
            ack.sack = (number as usize >= next).then_some((start, start + SEGMENT));
            self.passes(at, ack);
            let is_lost = self.chance(self.world.acks_lost);
            if is_lost || self.chance(self.world.acks_missed) {
                self.taps[Tap::B.at()].pop();
                self.acks_absent += 1;
            }
        }
    }

    /// The packets of a place as bytes, in the order of time.
    fn captured(&self, tap: Tap) -> Vec<(Instant, Vec<u8>, usize)> {
        let mut packets = self.taps[tap.at()].clone();
        packets.sort_by_key(|(at, _)| *at);
        let packets = merged(packets, self.world.merged[tap.at()]);
        let of = |(at, packet): &(i64, Drawn)| {
            let (bytes, length) = self.bytes(tap, packet);
            let off = (at - START) / 1_000_000 * self.world.drift_ppm + self.world.ahead;
            let at = if tap == Tap::A { *at } else { at + off };
            (Instant::from_nanos(at as u64), bytes, length)
        };
        packets.iter().map(of).collect()
    }

    fn bytes(&self, tap: Tap, packet: &Drawn) -> (Vec<u8>, usize) {
        let is_far = tap == Tap::B;
        let client =
            if is_far && self.world.is_translated { [203, 0, 113, 9] } else { [10, 0, 0, 1] };
        let port: u16 = if is_far && self.world.is_translated { 61_000 } else { 40_000 };
        // The firewall numbers what the client sends anew.
        let anew = if is_far && self.world.is_renumbered { 0x7fff_fff0 } else { 0 };
        let isn = [u32::MAX - 100_000, 5_000_u32.wrapping_add(anew)];
        let (of_server, of_client) = (isn[0], isn[1]);
        let ends = [([192, 0, 2, 9], 443), (client, port)];
        let (seq, ack) =
            if packet.to_client { (of_server, of_client) } else { (of_client, of_server) };
        let (source, destination) =
            if packet.to_client { (ends[0], ends[1]) } else { (ends[1], ends[0]) };
        let mut options: Vec<u8> = Vec::new();
        if packet.flags & SYN != 0 {
            options.extend([2, 4, 0x05, 0xb4, 1, 1, 4, 2]);
        }
        if self.world.has_timestamps {
            options.extend([1, 1, 8, 10]);
            options.extend(packet.timestamp.to_be_bytes());
            options.extend(0_u32.to_be_bytes());
        }
        if let Some((from, to)) = packet.sack {
            options.extend([1, 1, 5, 10]);
            options.extend(of_server.wrapping_add(from).to_be_bytes());
            options.extend(of_server.wrapping_add(to).to_be_bytes());
        }
        let header = 20 + options.len();
        let length = 20 + header + packet.payload as usize;
        let mut ip = vec![0x45, 0];
        ip.extend((length as u16).to_be_bytes());
        ip.extend(packet.id.to_be_bytes());
        ip.extend([0x40, 0, packet.ttl, 6, 0, 0]);
        ip.extend(source.0);
        ip.extend(destination.0);
        ip.extend(source.1.to_be_bytes());
        ip.extend(destination.1.to_be_bytes());
        ip.extend(seq.wrapping_add(packet.seq).to_be_bytes());
        ip.extend(ack.wrapping_add(packet.ack).to_be_bytes());
        ip.extend([(header as u8 / 4) << 4, packet.flags, 0xff, 0xff, 0, 0, 0, 0]);
        ip.extend(options);
        (ip, length)
    }

    fn paired(&self) -> PairedCaptures {
        self.paired_by(Pairing::new())
    }

    fn paired_by(&self, mut pairing: Pairing) -> PairedCaptures {
        for tap in Tap::ALL {
            for (at, data, original_length) in self.captured(tap) {
                push(&mut pairing, tap, at, &data, original_length);
            }
        }
        pairing.finish()
    }
}

/// Gives it a packet that begins with its IP header.
fn push(pairing: &mut Pairing, tap: Tap, at: Instant, ip: &[u8], length: usize) {
    let Parsed::Tcp(segment) = Segment::from_ip(ip, length) else { panic!("no segment: {ip:?}") };
    pairing.push(tap, at, Some(&segment));
}

/// Neighbours with the same time stamp as one, as GRO and TSO have them.
fn merged(packets: Vec<(i64, Drawn)>, most: u32) -> Vec<(i64, Drawn)> {
    let mut out: Vec<(i64, Drawn)> = Vec::new();
    for (at, packet) in packets {
        if let Some((_, last)) = out.last_mut()
            && last.payload > 0
            && packet.payload > 0
            && last.to_client == packet.to_client
            && last.seq + last.payload == packet.seq
            && last.timestamp == packet.timestamp
            && last.payload + packet.payload <= (most * SEGMENT).min(60_000)
        {
            last.payload += packet.payload;
        } else {
            out.push((at, packet));
        }
    }
    out
}

fn said(paired: &PairedCaptures) -> Fates {
    let [one] = &paired.connections[..] else { panic!("{paired:?}") };
    let way = one.to_client.as_ref().unwrap();
    Fates {
        // The SYN's answer is a segment, too.
        sent: way.sent.segments - 1,
        lost: way.lost.segments,
        lost_before: way.lost_before.segments,
        lost_after: way.lost_after.segments,
        missed_by_server: way.missed_at_near.segments,
        missed_by_client: way.missed_at_far.segments,
        duplicated: way.duplicated.segments,
    }
}

#[test]
fn what_both_places_saw_is_found_to_be_the_same() {
    let world = Simulated::of(World::default());
    let paired = world.paired();
    assert_eq!(said(&paired), world.known);
    let one = &paired.connections[0];
    assert_eq!(one.near_client, Some(Tap::A));
    assert_eq!(one.client, [SocketAddr::from(([10, 0, 0, 1], 40_000)); 2]);
    // Nothing but the hops differs.
    let fields: Vec<_> = one.changes.iter().map(|change| change.field).collect();
    assert_eq!(fields, [HeaderField::Hops, HeaderField::Hops]);
    assert_eq!(paired.clocks.round_trip(), Some(Duration::from_millis(40)));
    let acks = one.to_server.as_ref().unwrap();
    assert_eq!((acks.acknowledgements, acks.acknowledgements_lost), (2001, 0));
}

/// What the path does to the bytes of a packet, from its IP header on, as a place shows it.
type Planted = fn(Tap, &mut [u8]);

const CLIENTS_SYN: u8 = SYN;
const FLAGS: usize = 33;
const OPTIONS: usize = 40;

/// Each kind of change but the hops, which the world has anyway, by packets to the client (which
/// pass A last) or by the client's SYN (which passes B last).
const PLANTED: [(HeaderField, u8, Planted); 11] = [
    (HeaderField::MaximumSegmentSize, CLIENTS_SYN, |tap, ip| ip[43] -= tap as u8 * 100),
    (HeaderField::WindowScale, CLIENTS_SYN, |tap, ip| {
        ip[OPTIONS + 4..OPTIONS + 8].copy_from_slice(&[1, 3, 3, 7 - tap as u8]);
    }),
    (HeaderField::SackPermitted, CLIENTS_SYN, |tap, ip| {
        if tap == Tap::B {
            ip[OPTIONS + 6..OPTIONS + 8].fill(1);
        }
    }),
    (HeaderField::Timestamps, CLIENTS_SYN, |tap, ip| {
        if tap == Tap::B {
            ip[OPTIONS + 8..OPTIONS + 20].fill(1);
        }
    }),
    (HeaderField::EcnRequest, CLIENTS_SYN, |tap, ip| {
        ip[FLAGS] |= if tap == Tap::A { 0xc0 } else { 0 };
    }),
    (HeaderField::TimestampValue, ACK, |tap, ip| ip[OPTIONS + 4] += tap as u8),
    (HeaderField::Ecn, ACK, |tap, ip| ip[1] = tap as u8 * 2),
    (HeaderField::CongestionMark, ACK, |tap, ip| ip[1] = 3 - tap as u8),
    (HeaderField::Dscp, ACK, |tap, ip| ip[1] = tap as u8 * 0x28),
    (HeaderField::Identification, ACK, |tap, ip| ip[4] ^= tap as u8),
    (HeaderField::Window, ACK, |tap, ip| ip[34] = 100 + tap as u8),
];

/// The kinds of change that are named, without the hops.
fn named(world: &Simulated, flags: u8, planted: Planted) -> BTreeSet<HeaderField> {
    let mut pairing = Pairing::new();
    for tap in Tap::ALL {
        for (at, mut ip, length) in world.captured(tap) {
            let is_to_client = ip[12] == 192;
            if ip[FLAGS] == flags && is_to_client == (flags == ACK) {
                planted(tap, &mut ip);
            }
            push(&mut pairing, tap, at, &ip, length);
        }
    }
    let paired = pairing.finish();
    let [one] = &paired.connections[..] else { panic!("{paired:?}") };
    let fields = one.changes.iter().map(|change| change.field);
    fields.filter(|field| *field != HeaderField::Hops).collect()
}

/// Each of the fourteen kinds is named, and no other one beside it.
#[test]
fn what_the_path_changed_is_named_and_nothing_else() {
    let world = World { lost: 5, segments: 300, ..World::default() };
    let plain = Simulated::of(world);
    assert_eq!(named(&plain, ACK, |_, _| ()), BTreeSet::new());
    for (field, flags, planted) in PLANTED {
        assert_eq!(named(&plain, flags, planted), BTreeSet::from([field]));
    }
    let translated = Simulated::of(World { is_translated: true, ..world });
    assert_eq!(named(&translated, ACK, |_, _| ()), BTreeSet::from([HeaderField::Address]));
    let renumbered = Simulated::of(World { is_renumbered: true, ..world });
    let fields = named(&renumbered, ACK, |_, _| ());
    assert_eq!(fields, BTreeSet::from([HeaderField::SequenceNumbers]));
}

/// Where a capture misses packets, nothing tells whether an acknowledgement was lost.
#[test]
fn acknowledgements_are_lost_only_where_that_is_known() {
    for (acks_lost, acks_missed, missed_by_server) in [(20, 0, 0), (0, 20, 20), (20, 20, 20)] {
        let world =
            Simulated::of(World { acks_lost, acks_missed, missed_by_server, ..World::default() });
        let paired = world.paired();
        let way = paired.connections[0].to_server.as_ref().unwrap();
        let said = (way.acknowledgements_lost, way.acknowledgements_missed);
        let known =
            if missed_by_server == 0 { (world.acks_absent, 0) } else { (0, world.acks_absent) };
        assert!(world.acks_absent > 20);
        assert_eq!(said, known);
    }
}

/// A path that takes no full segments, and one that takes them all.
#[test]
fn what_is_too_large_for_the_path_is_told_from_other_losses() {
    for (largest, said) in [(1000, Some(1000)), (u32::MAX, None)] {
        let mut world = Simulated::of(World { segments: 0, ..World::default() });
        for number in 0..40_u32 {
            let at = START + 100 * MS + i64::from(number) * 5 * MS;
            let payload = if number % 4 == 0 { 1448 } else { 1000 };
            let data = world.packet(true, at, 1 + number * 1448, payload, ACK);
            world.taps[Tap::B.at()].push((at, data.clone()));
            if payload <= largest && !(largest > 2000 && number % 7 == 3) {
                world.taps[Tap::A.at()].push((at + 20 * MS, Drawn { ttl: 57, ..data }));
            }
        }
        let paired = world.paired();
        let way = paired.connections[0].to_client.as_ref().unwrap();
        assert!(way.lost.segments >= 5, "{way:?}");
        assert_eq!(way.nothing_above.map(Bytes::get), said);
    }
}

#[test]
fn a_clock_that_was_set_back_is_found() {
    let world = Simulated::of(World { lost: 10, ..World::default() });
    let mut pairing = Pairing::new();
    for tap in Tap::ALL {
        let captured = world.captured(tap);
        let half = captured.len() / 2;
        for (number, (at, data, original_length)) in captured.into_iter().enumerate() {
            let is_set = tap == Tap::B && number >= half;
            let at = at.saturating_sub(Duration::from_secs(if is_set { 5 } else { 0 }));
            push(&mut pairing, tap, at, &data, original_length);
        }
    }
    let paired = pairing.finish();
    let [none, back] = paired.set_back;
    assert_eq!(none, Duration::ZERO);
    assert!(back.abs_diff(Duration::from_secs(5)) < Duration::from_millis(1), "{back}");
    assert_eq!(paired.clocks.pieces.len(), 1, "{:?}", paired.clocks);
    assert_eq!(said(&paired), world.known);
}

/// Where one capture ends long before the other, nothing is said of what came after.
#[test]
fn what_could_not_be_seen_is_not_judged() {
    let mut world = Simulated::of(World { lost: 10, ..World::default() });
    let end = START + 150 * MS;
    world.taps[Tap::A.at()].retain(|(at, _)| *at < end);
    let way = world.paired().connections[0].to_client.clone().unwrap();
    assert!(way.not_judged.segments > 1000, "{way:?}");
    let judged = way.sent.segments - way.not_judged.segments;
    assert!(way.lost.segments <= judged / 20, "{way:?}");
    assert_eq!(way.nothing_above, None);
}

/// Over one clock nothing arrives before it was sent, and what was lost is where it passed the near
/// place.
#[test]
fn a_course_is_that_of_the_packets() {
    let world = World { lost: 20, segments: 1500, ahead: 5000 * MS, ..World::default() };
    let world = Simulated::of(world);
    assert!(world.paired().connections[0].to_client.as_ref().unwrap().course.is_none());
    let paired = world.paired_by(Pairing::new().drawn());
    let way = paired.connections[0].to_client.as_ref().unwrap();
    let course = way.course.as_ref().unwrap();
    assert_eq!(course.lost.len() as u64, way.lost.segments);
    assert_eq!(course.sent.len() as u64, way.sent.segments);
    assert!(course.lost.iter().all(|one| course.sent.contains(one)));
    // What was sent again is told by its first copy.
    let sent = |span: &CourseSpan| {
        let of = |one: &&CourseSpan| (one.least, one.most) == (span.least, span.most);
        course.sent.iter().find(of).map(|one| one.at)
    };
    // The way takes half of the round trip, but for what the clocks are uncertain by.
    let half = Duration::from_millis(20);
    for one in &course.arrived {
        let took = one.at.saturating_sub(sent(one).unwrap());
        assert!(took >= half.saturating_sub(Duration::from_millis(1)), "{one:?} took {took}");
    }
    assert!(course.waited.iter().all(|one| one.least >= 0));
    assert!(course.sent.last().unwrap().at <= course.ends);
}

/// What a sniffer missed is not drawn as lost, and what was lost at the end is.
#[test]
fn what_is_drawn_as_lost_is_what_is_counted() {
    for (seed, missed) in [(1, 15), (2, 15), (3, 0)] {
        let world = World { seed, lost: 15, missed_by_client: missed, ..World::default() };
        let drawn = Pairing::new().drawn();
        let paired = Simulated::of(World { segments: 1500, ..world }).paired_by(drawn);
        let way = paired.connections[0].to_client.as_ref().unwrap();
        assert_eq!(way.missed_at_far.segments > 0, missed > 0, "{way:?}");
        assert!(way.lost.segments > 0);
        assert_eq!(way.course.as_ref().unwrap().lost.len() as u64, way.lost.segments);
    }
}

/// A lost segment that is sent again and then missed by the far capture is acknowledged once: that
/// answers the copy that arrived.
#[test]
fn a_copy_that_the_sniffer_missed_does_not_answer_for_one_that_was_lost() {
    let [one, other] = [(1_037_020_160, 132), (190_307_503, 173)].map(|(seed, rtt)| {
        let world = World { seed, rtt: rtt * MS, lost: 25, lost_before: 3, ..World::default() };
        World { lost_after: 5, missed_by_server: 9, missed_by_client: 7, duplicated: 6, ..world }
    });
    let other = World { lost: 26, lost_before: 6, lost_after: 2, duplicated: 9, ..other };
    let other = World { missed_by_server: 8, missed_by_client: 8, ..other };
    for has_timestamps in [true, false] {
        for world in [one, other] {
            let world = Simulated::of(World { has_timestamps, ..world });
            let (said, known) = (said(&world.paired()), world.known);
            assert_eq!(said.lost, known.lost, "{said:?} {known:?}");
        }
    }
}

#[test]
fn nothing_is_said_of_one_place_alone() {
    let world = Simulated::of(World::default());
    let mut pairing = Pairing::new();
    for (at, data, original_length) in world.captured(Tap::A) {
        push(&mut pairing, Tap::A, at, &data, original_length);
    }
    let paired = pairing.finish();
    assert_eq!((paired.connections.len(), paired.unmatched), (0, [1, 0]));
    assert!(Pairing::new().finish().connections.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Each packet is placed where it was lost, whatever else happened.
    #[test]
    fn losses_are_placed(
        seed in any::<u64>(),
        (lost, lost_before, lost_after) in (0..30_u64, 0..10_u64, 0..10_u64),
        (missed_by_server, missed_by_client, duplicated) in (0..10_u64, 0..10_u64, 0..10_u64),
        rtt in 8..200_i64,
        ahead in -5_000..5_000_i64,
        drift_ppm in -100..100_i64,
        (is_translated, is_renumbered, has_timestamps) in any::<(bool, bool, bool)>(),
    ) {
        let world = Simulated::of(World {
            seed, lost, lost_before, lost_after, missed_by_server, missed_by_client, duplicated,
            rtt: rtt * MS, ahead: ahead * MS, drift_ppm, is_translated,
            is_renumbered: is_renumbered && !is_translated, has_timestamps,
            ..World::default()
        });
        let (paired, known) = (world.paired(), world.known);
        let said = said(&paired);
        prop_assert_eq!(said.sent, known.sent);
        let close = |one: u64, other: u64| one.abs_diff(other) <= 1 + known.sent / 1000;
        prop_assert!(close(said.lost, known.lost), "{:?} {:?}", said, known);
        prop_assert!(close(said.lost_before, known.lost_before), "{:?} {:?}", said, known);
        prop_assert!(close(said.lost_after, known.lost_after), "{:?} {:?}", said, known);
        prop_assert!(close(said.missed_by_server, known.missed_by_server), "{:?} {:?}", said, known);
        prop_assert!(close(said.missed_by_client, known.missed_by_client), "{:?} {:?}", said, known);
        prop_assert!(close(said.duplicated, known.duplicated), "{:?} {:?}", said, known);
    }

    /// The same where either capture merges segments.
    #[test]
    fn losses_are_placed_in_merged_captures(
        seed in any::<u64>(),
        lost in 0..30_u64,
        rtt in 8..200_i64,
        merged in (1..40_u32, 1..40_u32),
    ) {
        let world = Simulated::of(World {
            seed, lost, rtt: rtt * MS, merged: merged.into(), ..World::default()
        });
        let (paired, known) = (world.paired(), world.known);
        let said = said(&paired);
        prop_assert_eq!(said.sent, known.sent);
        prop_assert_eq!(said.lost, known.lost, "{:?} {:?}", said, known);
        prop_assert_eq!(said.lost_before + said.lost_after + said.missed_by_server, 0, "{:?}", said);
    }
}
