//! Arbitrary frames through a direction of the link: what comes out is what went in, segment by
//! segment, with right checksums. The judge cuts packets and sums checksums by itself and knows
//! nothing of the link's own cutting; a frame that it takes for no super-packet must come out
//! unchanged.
#![no_main]

use fullpipe_link::{Direction, OneWay, Tap};
use fullpipe_model::link::Config;
use fullpipe_model::units::{Duration, Instant, Rate};
use std::cell::RefCell;
use std::collections::BTreeSet;

const VNET: usize = 10;

/// Nothing, loss, duplication, reordering: by the low bits of the first byte.
const PATHS: usize = 4;

struct Link {
    direction: Direction,
    now: Instant,
}

/// One link for each path, link header and coalescing time: its memory is touched once.
fn link(path: usize, l2: usize, coalesce: u64) -> Link {
    let config = match path {
        0 => Config::default(),
        1 => Config { loss: "20%".parse().unwrap(), ..Config::default() },
        2 => Config { duplicate: "30%".parse().unwrap(), ..Config::default() },
        _ => Config {
            reorder: Some("50%".parse().unwrap()),
            delay: "1ms".parse().unwrap(),
            ..Config::default()
        },
    };
    let rate = Some(Rate::from_bits_per_sec(1_000_000_000));
    // Two of each of 65 000 one-byte segments in Ethernet, IPv6 and TCP headers still fit: only
    // asked losses are losses.
    let config = Config { rate, queue: "16MB".parse().unwrap(), ..config }.checked().unwrap();
    let path = OneWay::plain(config, Duration::from_millis(1), Duration::from_micros(coalesce), 1);
    Link { direction: Direction::new(path, l2, Tap::default()), now: Instant::ZERO }
}

impl Link {
    fn through(&mut self, frame: &[u8]) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        self.direction.space().expect("an empty link has room")[..frame.len()]
            .copy_from_slice(frame);
        self.direction.arrived(frame.len(), self.now);
        while let Some(due) = self.direction.due() {
            self.now = self.now.max(due);
            self.direction.deliver(self.now, |parts| {
                out.push(parts.iter().flat_map(|part| part.to_vec()).collect());
                Ok(0)
            });
        }
        out
    }
}

/// What a frame stands for: IP packets as on a wire where it can be told, else itself.
fn expand(frame: &[u8], l2: usize) -> Vec<Vec<u8>> {
    segments(frame, VNET + l2).unwrap_or_else(|| vec![frame.to_vec()])
}

fn segments(frame: &[u8], at: usize) -> Option<Vec<Vec<u8>>> {
    let ip = frame.get(at..)?;
    let gso = frame[1] & 0x7f;
    let field = |from: usize| usize::from(u16::from_ne_bytes([frame[from], frame[from + 1]]));
    let needs_csum = frame[0] & 1 != 0;
    if gso == 0 && !needs_csum {
        return None;
    }
    let v4 = ip.first()? >> 4 == 4;
    let (protocol, transport) = if v4 { above_v4(ip)? } else { above_v6(ip)? };
    let (header, csum) = match protocol {
        6 => (usize::from(ip.get(transport + 12)? >> 4) * 4, 16),
        17 => (8, 6),
        _ => return None,
    };
    let allowed: &[u8] = match (protocol, v4) {
        (6, true) => &[0, 1],
        (6, false) => &[0, 4],
        _ => &[0, 5],
    };
    let said_right = !needs_csum || (field(6) + VNET == at + transport && field(8) == csum);
    if !allowed.contains(&gso)
        || !said_right
        || (protocol == 6 && header < 20)
        || ip.len() < transport + header
    {
        return None;
    }
    let (headers, payload) = ip.split_at(transport + header);
    let size = if gso == 0 { payload.len().max(1) } else { field(4) };
    if gso != 0 && (size == 0 || payload.is_empty()) {
        return None;
    }
    let count = payload.len().div_ceil(size).max(1);
    let part = |number: usize| {
        &payload[(number * size).min(payload.len())..((number + 1) * size).min(payload.len())]
    };
    Some(
        (0..count)
            .map(|number| packet(headers, transport, protocol, number, size, count, part(number)))
            .collect(),
    )
}

/// Segment `number` with lengths, numbers, flags and checksums of its own.
fn packet(
    headers: &[u8],
    transport: usize,
    protocol: u8,
    number: usize,
    size: usize,
    count: usize,
    payload: &[u8],
) -> Vec<u8> {
    let mut packet = [headers, payload].concat();
    let len = packet.len();
    let addresses = if packet[0] >> 4 == 4 {
        packet[2..4].copy_from_slice(&(len as u16).to_be_bytes());
        let id = u16::from_be_bytes([packet[4], packet[5]]).wrapping_add(number as u16);
        packet[4..6].copy_from_slice(&id.to_be_bytes());
        packet[10..12].fill(0);
        let sum = checksum(&packet[..transport]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        12..20
    } else {
        packet[4..6].copy_from_slice(&((len - 40) as u16).to_be_bytes());
        8..40
    };
    let at = transport + if protocol == 6 { 16 } else { 6 };
    if protocol == 6 {
        let seq = transport + 4..transport + 8;
        let old = u32::from_be_bytes(packet[seq.clone()].try_into().unwrap());
        packet[seq].copy_from_slice(&old.wrapping_add((number * size) as u32).to_be_bytes());
        const FIN_AND_PSH: u8 = 0x09;
        const CWR: u8 = 0x80;
        packet[transport + 13] &= !(if number + 1 < count { FIN_AND_PSH } else { 0 });
        packet[transport + 13] &= !(if number > 0 { CWR } else { 0 });
    } else {
        packet[transport + 4..transport + 6]
            .copy_from_slice(&((len - transport) as u16).to_be_bytes());
    }
    packet[at..at + 2].fill(0);
    let pseudo =
        [&packet[addresses], &[0, protocol], &((len - transport) as u16).to_be_bytes()].concat();
    let sum = match checksum(&[&pseudo, &packet[transport..]].concat()) {
        0 if protocol == 17 => 0xffff,
        sum => sum,
    };
    packet[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// RFC 1071, as its text has it.
fn checksum(bytes: &[u8]) -> u16 {
    let words =
        bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

fn above_v4(ip: &[u8]) -> Option<(u8, usize)> {
    let header = usize::from(ip[0] & 15) * 4;
    let fields = ip.get(..header).filter(|_| header >= 20)?;
    let whole = u16::from_be_bytes([fields[2], fields[3]]) as usize == ip.len();
    let fragment = u16::from_be_bytes([fields[6], fields[7]]) & 0x3fff != 0;
    (whole && !fragment).then_some((fields[9], header))
}

fn above_v6(ip: &[u8]) -> Option<(u8, usize)> {
    let fixed = ip.get(..40).filter(|fixed| fixed[0] >> 4 == 6)?;
    if usize::from(u16::from_be_bytes([fixed[4], fixed[5]])) + 40 != ip.len() {
        return None;
    }
    let (mut next, mut at) = (fixed[6], 40);
    for _ in 0..8 {
        let (length, fragment) = (usize::from(*ip.get(at + 1).unwrap_or(&0)), next == 44);
        match next {
            0 | 60 => (next, at) = (*ip.get(at)?, at + 8 + length * 8),
            51 => (next, at) = (*ip.get(at)?, at + 8 + length * 4),
            44 if fragment
                && u16::from_be_bytes([*ip.get(at + 2)?, *ip.get(at + 3)?]) & 0xfff9 == 0 =>
            {
                (next, at) = (*ip.get(at)?, at + 8);
            }
            43 | 44 => return None,
            _ => break,
        }
    }
    Some((next, at))
}

/// Makes a frame that is a super-packet, or nearly, out of whatever bytes there are.
fn repaired(mut frame: Vec<u8>, l2: usize, v6: bool, udp: bool, grow: usize) -> Vec<u8> {
    let ip = VNET + l2;
    let transport = if v6 { 40 } else { 20 };
    frame.resize(frame.len().max(ip + transport + 60) + grow, 0x5a);
    let len = frame.len() - ip;
    frame[0] = 1;
    frame[1] = match (udp, v6) {
        (true, _) => 5,
        (false, true) => 4,
        (false, false) => 1,
    };
    frame[6..8].copy_from_slice(&((l2 + transport) as u16).to_ne_bytes());
    frame[8..10].copy_from_slice(&(if udp { 6u16 } else { 16 }).to_ne_bytes());
    if v6 {
        frame[ip] = 0x60;
        frame[ip + 4..ip + 6].copy_from_slice(&((len - 40) as u16).to_be_bytes());
        frame[ip + 6] = if udp { 17 } else { 6 };
    } else {
        frame[ip] = 0x45;
        frame[ip + 2..ip + 4].copy_from_slice(&(len as u16).to_be_bytes());
        frame[ip + 6..ip + 8].fill(0);
        frame[ip + 9] = if udp { 17 } else { 6 };
    }
    let offset = &mut frame[ip + transport + 12];
    if !udp {
        *offset = (*offset & 0xf1).max(0x50);
    }
    frame
}

thread_local! {
    static LINKS: RefCell<Vec<Option<Link>>> = RefCell::new((0..PATHS * 2 * 3).map(|_| None).collect());
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let [how, shape, grow, frame @ ..] = bytes else { return };
    let (path, coalesce) = (usize::from(*how) % PATHS, usize::from(how / 4 % 3));
    let l2 = if how & 0x80 == 0 { 0 } else { 14 };
    let frame = match shape % 4 {
        0 => frame.to_vec(),
        _ => repaired(frame.to_vec(), l2, shape & 4 != 0, shape & 8 != 0, usize::from(*grow) * 200),
    };
    let mut frame = frame;
    frame.truncate(65_500);
    if shape & 0x10 != 0 {
        // One lie in what was right.
        let at = usize::from(*grow) % frame.len().clamp(1, 80);
        if let Some(byte) = frame.get_mut(at) {
            *byte ^= shape;
        }
    }
    let out = LINKS.with_borrow_mut(|links| {
        let number = (path * 2 + usize::from(l2 > 0)) * 3 + coalesce;
        links[number].get_or_insert_with(|| link(path, l2, [0, 50, 150][coalesce])).through(&frame)
    });
    if frame.len() < VNET + l2 + 20 {
        assert!(out.is_empty(), "what is no packet goes nowhere");
        return;
    }
    let asked = expand(&frame, l2);
    let got: Vec<_> = out.iter().flat_map(|frame| expand(frame, l2)).collect();
    match path {
        0 => assert_eq!(got, asked),
        1 => {
            let mut rest = asked.iter();
            assert!(
                got.iter().all(|packet| rest.any(|other| other == packet)),
                "an order of its own"
            );
        }
        2 => {
            // Sorted: a super-packet of one-byte segments is 50 000 packets, too many to look each
            // up among the others.
            assert!(got.len() <= 2 * asked.len(), "no more than two of each");
            let kinds = |packets: &[Vec<u8>]| packets.iter().cloned().collect::<BTreeSet<_>>();
            assert_eq!(kinds(&got), kinds(&asked));
        }
        _ => {
            let sorted = |mut packets: Vec<Vec<u8>>| {
                packets.sort();
                packets
            };
            assert_eq!(sorted(got), sorted(asked));
        }
    }
});
