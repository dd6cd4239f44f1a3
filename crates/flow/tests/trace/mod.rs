//! Packet traces as text, in the manner of packetdrill, for tests that read like what they test.
//!
//! ```text
//! 0.000 > S  0:0          win 65535 <mss 1460,wscale 7,sackOK>
//! 0.050 < S. 0:0   ack 1  win 65535 <mss 1460,wscale 7,sackOK>
//! 0.100 > .  1:1   ack 1  win 512
//! 0.100 > P. 1:101 ack 1  win 512             # retransmission
//! ```
//!
//! `>` is from the client, `<` from the server; numbers are relative to each end's first; `win` is
//! as in the header; `tls N` makes the payload begin with a TLS record of that type, and `tls 22.M`
//! with a handshake's message M; what follows `#` are the labels expected. Seconds are from the start of the
//! trace.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use fullpipe_model::units::{Duration, Instant};

/// A segment to be put into a packet.
#[derive(Debug, Clone, Default)]
pub struct Line {
    pub at: Instant,
    pub from_client: bool,
    pub flags: u8,
    pub seq: u32,
    pub payload: usize,
    /// Its first bytes.
    pub begins: Vec<u8>,
    pub ack: u32,
    pub window: u16,
    pub options: Vec<u8>,
    pub labels: Vec<String>,
}

pub const SYN: u8 = 2;
pub const ACK: u8 = 16;
/// First numbers of the two ends: near the wrap, which must not matter.
const CLIENT_ISN: u32 = u32::MAX - 5000;
const SERVER_ISN: u32 = 77_000_000;
/// 2024-01-01, so that the traces look like captures.
const EPOCH: u64 = 1_704_067_200_000_000_000;

pub fn parse(text: &str) -> Vec<Line> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(parse_line)
        .collect()
}

fn parse_line(line: &str) -> Line {
    let (segment, labels) = line.split_once('#').unwrap_or((line, ""));
    let (segment, options) =
        segment.split_once('<').filter(|(before, _)| before.contains(':')).unwrap_or_else(|| {
            // The first `<` is the direction; options come after the numbers.
            let start =
                segment.find("win").and_then(|win| segment[win..].find('<').map(|at| win + at));
            start.map_or((segment, ""), |start| (&segment[..start], &segment[start + 1..]))
        });
    let words: Vec<&str> = segment.split_whitespace().collect();
    let after = |name: &str| {
        words.iter().position(|word| *word == name).map(|at| words[at + 1].parse::<u32>().unwrap())
    };
    let (seq, end) = words[3].split_once(':').unwrap();
    let (seq, end): (u32, u32) = (seq.parse().unwrap(), end.parse().unwrap());
    let flags = words[2].chars().map(|flag| match flag {
        'F' => 1,
        'S' => 2,
        'R' => 4,
        'P' => 8,
        '.' => 16,
        other => panic!("no flag '{other}' in '{line}'"),
    });
    Line {
        at: Instant::from_nanos(EPOCH) + Duration::from_secs_f64(words[0].parse().unwrap()),
        from_client: words[1] == ">",
        flags: flags.sum(),
        seq,
        payload: (end - seq) as usize,
        begins: words
            .iter()
            .position(|word| *word == "tls")
            .map_or(vec![], |at| record(words[at + 1])),
        ack: after("ack").unwrap_or(0),
        window: after("win").unwrap_or(0) as u16,
        options: parse_options(options.trim().trim_end_matches('>'), words[1] == ">"),
        labels: labels.split_whitespace().map(String::from).collect(),
    }
}

/// The beginning of a TLS record: its type, and where it is of a handshake that of the message.
fn record(types: &str) -> Vec<u8> {
    let (record, message) = types.split_once('.').unwrap_or((types, "0"));
    vec![record.parse().unwrap(), 3, 3, 0, 200, message.parse().unwrap()]
}

fn parse_options(text: &str, from_client: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    for option in text.split(',').filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once(' ').unwrap_or((option, ""));
        match name {
            "mss" => {
                bytes.extend([&[2, 4][..], &value.parse::<u16>().unwrap().to_be_bytes()].concat())
            }
            "wscale" => bytes.extend([1, 3, 3, value.parse().unwrap()]),
            "sackOK" => bytes.extend([1, 1, 4, 2]),
            "ts" => {
                let (value, echo) = value.split_once('-').unwrap();
                let number = |text: &str| text.parse::<u32>().unwrap().to_be_bytes();
                bytes.extend([&[1, 1, 8, 10][..], &number(value), &number(echo)].concat());
            }
            "sack" => {
                let (left, right) = value.split_once('-').unwrap();
                let number = |text: &str| {
                    isn(!from_client).wrapping_add(text.parse().unwrap()).to_be_bytes()
                };
                bytes.extend([&[1, 1, 5, 10][..], &number(left), &number(right)].concat());
            }
            other => panic!("no option '{other}'"),
        }
    }
    bytes
}

fn isn(of_client: bool) -> u32 {
    if of_client { CLIENT_ISN } else { SERVER_ISN }
}

impl Line {
    /// The whole IPv4 packet, checksums included.
    pub fn packet(&self) -> Vec<u8> {
        let header = 20 + self.options.len();
        let total = (20 + header + self.payload) as u16;
        let ends = [[192, 0, 2, 1], [198, 51, 100, 2]];
        let (source, destination) =
            if self.from_client { (ends[0], ends[1]) } else { (ends[1], ends[0]) };
        let mut ip = [
            &[0x45, 0][..],
            &total.to_be_bytes(),
            &[0, 0, 0x40, 0, 64, 6, 0, 0],
            &source,
            &destination,
        ]
        .concat();
        let sum = checksum(0, &ip);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        let ports: [u16; 2] = if self.from_client { [40_000, 80] } else { [80, 40_000] };
        let ack =
            if self.flags & ACK != 0 { isn(!self.from_client).wrapping_add(self.ack) } else { 0 };
        let mut tcp = ports.map(u16::to_be_bytes).concat();
        tcp.extend(isn(self.from_client).wrapping_add(self.seq).to_be_bytes());
        tcp.extend(ack.to_be_bytes());
        tcp.extend([(header as u8 / 4) << 4, self.flags]);
        tcp.extend(self.window.to_be_bytes());
        tcp.extend([0; 4]);
        tcp.extend(&self.options);
        tcp.extend(&self.begins);
        tcp.resize(header + self.payload, 0x5a);
        let pseudo =
            [&source[..], &destination, &[0, 6], &(tcp.len() as u16).to_be_bytes()].concat();
        let sum = checksum(!checksum(0, &pseudo), &tcp);
        tcp[16..18].copy_from_slice(&sum.to_be_bytes());
        [ip, tcp].concat()
    }
}

/// The Internet checksum (RFC 1071), continued from an earlier sum.
fn checksum(start: u16, bytes: &[u8]) -> u16 {
    let words = bytes
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low)));
    let mut sum = u32::from(start) + words.sum::<u32>();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
