//! Looks in what is to be shared for what was in the capture.
//!
//! Nothing here trusts the writer: [`InputMarks`] remembers what the input had, and a [`Search`]
//! reads the bytes of the output as they lie in the file. Of payloads, any eight bytes in a row are
//! remembered, up to a bound; beyond it those stay whose hash begins with enough zeroes, the same
//! ones that are looked up in the output, and of the packets behind the first 64 MB one in sixteen.
//! So every part of a small capture is looked for, and of a large one a share that
//! [`InputMarks::share`] tells: a leak of many bytes is still found for certain. Eight bytes with
//! fewer than six different values other than zero say nothing (a counter, a length, padding), nor
//! do those that look like the middle of a TCP header: both are found in any capture.

use super::addresses::AddressMap;
use super::words::ALL_WORDS;
use std::collections::HashSet;
use std::net::IpAddr;

/// After so many parts that were remembered, or were again, only half as many are; and after so
/// many more, half of those.
const PARTS_MAX: usize = 1 << 19;
const MORE_PARTS: usize = 1 << 16;
/// Bytes of packets that are all remembered, and of how many behind them one packet is.
const ALL_OF: u64 = 64 << 20;
const ONE_OF: u64 = 16;
/// Different values that make eight bytes tell something, and six bytes of a card's address.
const TELLING: u32 = 6;
const TELLING_CARD: u32 = 4;
const TELLING_ADDRESS: u32 = 3;
/// Makes a hash of eight bytes: Fibonacci hashing (Knuth, The Art of Computer Programming 6.4).
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
/// The most finds that are told.
const FINDS_MAX: usize = 8;

type PartSet = HashSet<u64, foldhash::fast::RandomState>;

/// What a capture had that its shared form must not have.
#[derive(Debug)]
pub struct InputMarks {
    /// Eight bytes of payloads each, of which the first `zeroes` bits of the hash are 0.
    parts: PartSet,
    zeroes: u32,
    /// How many came since there was another zero.
    came: usize,
    /// Bytes and packets until now.
    bytes: u64,
    packets: u64,
    /// The same of headers: what is there by right, although a payload may have it, too (somebody
    /// sent a capture, or a packet is there twice, once in a tunnel that is not known).
    headers: PartSet,
    /// A source's and a destination's address of IPv4, or half an address of IPv6.
    addresses: PartSet,
    cards: PartSet,
    /// Which ends of what is in the two sets before there are: most bytes of a file are none.
    ends: Box<[u64; 1 << 10]>,
}

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindKind {
    /// Eight bytes of a payload.
    Payload,
    /// An IP address, or two of IPv4.
    Address,
    /// A card's address.
    Mac,
}

/// A place in the output with something of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Find {
    /// What it is.
    pub kind: FindKind,
    /// Where in the file it ends.
    pub offset: u64,
}

impl Default for InputMarks {
    fn default() -> Self {
        let [parts, headers, addresses, cards] = Default::default();
        let ends = Box::new([0; 1 << 10]);
        InputMarks {
            parts,
            zeroes: 0,
            came: 0,
            bytes: 0,
            packets: 0,
            headers,
            addresses,
            cards,
            ends,
        }
    }
}

impl InputMarks {
    /// Remembers a packet, whose payload begins at `payload`.
    pub fn packet(&mut self, packet: &[u8], payload: usize) {
        self.bytes += packet.len() as u64;
        self.packets += 1;
        if self.bytes > ALL_OF && !self.packets.is_multiple_of(ONE_OF) {
            return;
        }
        let (header, payload) = packet.split_at(payload.min(packet.len()));
        self.remember(header, true);
        self.remember(payload, false);
    }

    fn remember(&mut self, bytes: &[u8], is_header: bool) {
        let Some((first, rest)) = bytes.split_at_checked(7) else { return };
        let mut part = number(first);
        for byte in rest {
            part = part << 8 | u64::from(*byte);
            if self.is_chosen(part) && tells(part) {
                let set = if is_header { &mut self.headers } else { &mut self.parts };
                set.insert(part);
                self.came += 1;
                if self.came > if self.zeroes == 0 { PARTS_MAX } else { MORE_PARTS } {
                    self.thin_out();
                }
            }
        }
    }

    #[cold]
    fn thin_out(&mut self) {
        (self.came, self.zeroes) = (0, self.zeroes + 1);
        let zeroes = self.zeroes;
        self.parts.retain(|part| begins_with_zeroes(*part, zeroes));
        self.headers.retain(|part| begins_with_zeroes(*part, zeroes));
    }

    /// No packet follows: what the input had above its headers alone is looked for, and addresses
    /// that were replaced.
    pub fn finish(&mut self, map: &AddressMap) {
        let headers = std::mem::take(&mut self.headers);
        self.parts.retain(|part| !headers.contains(part) && !may_be_words(*part));
        self.addresses(map);
    }

    /// Remembers the addresses that were replaced; those that stay by right are none of them.
    fn addresses(&mut self, map: &AddressMap) {
        for (before, after) in map.seen_pairs() {
            self.add_address(before, after);
        }
        for (before, after) in map.seen() {
            if let (IpAddr::V6(before), IpAddr::V6(after)) = (before, after) {
                let (before, after) = (before.to_bits(), after.to_bits());
                for half in [64, 0] {
                    self.add_address((before >> half) as u64, (after >> half) as u64);
                }
            }
        }
        for (before, after) in map.seen_macs() {
            let (before, after) = (number(&before), number(&after));
            if before != after && different(before) >= TELLING_CARD {
                self.cards.insert(before);
                self.note_end(before);
            }
        }
    }

    /// Of all parts of payloads that tell something, how many are looked for: one of so many.
    pub fn share(&self) -> u64 {
        (1 << self.zeroes) * if self.bytes > ALL_OF { ONE_OF } else { 1 }
    }

    fn add_address(&mut self, before: u64, after: u64) {
        if before != after && different(before) >= TELLING_ADDRESS {
            self.addresses.insert(before);
            self.note_end(before);
        }
    }

    fn note_end(&mut self, part: u64) {
        let end = part as u16;
        self.ends[usize::from(end >> 6)] |= 1 << (end & 63);
    }

    fn may_end(&self, part: u64) -> bool {
        let end = part as u16;
        self.ends[usize::from(end >> 6)] & 1 << (end & 63) != 0
    }

    #[inline]
    fn is_chosen(&self, part: u64) -> bool {
        begins_with_zeroes(part, self.zeroes)
    }

    /// What the eight bytes are of those that must not be there.
    #[inline]
    fn kind(&self, part: u64) -> Option<FindKind> {
        const CARD: u64 = (1 << 48) - 1;
        if self.is_chosen(part) && self.parts.contains(&part) {
            return Some(FindKind::Payload);
        }
        if !self.may_end(part) {
            return None;
        }
        if self.addresses.contains(&part) {
            return Some(FindKind::Address);
        }
        self.cards.contains(&(part & CARD)).then_some(FindKind::Mac)
    }
}

#[inline]
fn begins_with_zeroes(part: u64, zeroes: u32) -> bool {
    part.wrapping_mul(MIX).leading_zeros() >= zeroes
}

/// Up to eight bytes as a number.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// Whether the bytes are some that stand in for payloads, or end with how those begin: these are in
/// the output by right, behind the last bytes of a header.
fn may_be_words(part: u64) -> bool {
    const LEAST: usize = 4;
    let bytes = part.to_be_bytes();
    ALL_WORDS.iter().any(|words| {
        words.windows(8).any(|part| part == bytes)
            || (LEAST..8).any(|length| {
                words.get(..length).is_some_and(|beginning| bytes.ends_with(beginning))
            })
    })
}

/// Whether eight bytes say something of whoever sent them.
fn tells(part: u64) -> bool {
    different(part) >= TELLING && !is_of_header(part)
}

/// Whether there are a TCP header's length and flags with an ACK, or how its usual options begin:
/// the segment size, the window's scale, selective acknowledgements, time stamps. What is new in an
/// output, checksums and addresses, stands beside such bytes, and in a capture that somebody sent
/// may stand the same by chance.
fn is_of_header(part: u64) -> bool {
    const OPTIONS: [[u8; 3]; 5] = [[2, 4, 5], [1, 3, 3], [4, 2, 8], [1, 8, 10], [2, 8, 10]];
    let bytes = part.to_be_bytes();
    bytes.windows(2).any(|pair| is_length_and_flags([pair[0], pair[1]]))
        || bytes.windows(3).any(|three| OPTIONS.iter().any(|option| option == three))
}

/// Whether they are a length of five words or more, and flags with an ACK and without URG.
fn is_length_and_flags([length, flags]: [u8; 2]) -> bool {
    length >= 0x50 && length & 15 == 0 && flags & 0xf0 == 0x10
}

/// How many different values other than zero the bytes have.
fn different(part: u64) -> u32 {
    let bytes = part.to_be_bytes();
    let first = bytes.iter().enumerate().filter(|(at, byte)| !bytes[..*at].contains(byte));
    first.filter(|(_, byte)| **byte != 0).count() as u32
}

/// Reads a file piece by piece.
#[derive(Debug)]
pub struct Search<'a> {
    marks: &'a InputMarks,
    part: u64,
    offset: u64,
    finds: Vec<Find>,
    /// How many there are in all.
    count: u64,
}

impl<'a> Search<'a> {
    /// A search for what is remembered.
    pub fn new(marks: &'a InputMarks) -> Search<'a> {
        Search { marks, part: 0, offset: 0, finds: Vec::new(), count: 0 }
    }

    /// The next bytes of the file.
    pub fn look(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.part = self.part << 8 | u64::from(*byte);
            self.offset += 1;
            if let Some(kind) = self.marks.kind(self.part) {
                self.count += 1;
                if self.finds.len() < FINDS_MAX {
                    self.finds.push(Find { kind, offset: self.offset });
                }
            }
        }
    }

    /// How much was found, and the first of it.
    pub fn finish(self) -> (u64, Vec<Find>) {
        (self.count, self.finds)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Key;
    use super::*;
    use proptest::prelude::*;

    fn found(marks: &InputMarks, file: &[u8]) -> Vec<FindKind> {
        let mut search = Search::new(marks);
        file.chunks(3).for_each(|piece| search.look(piece));
        search.finish().1.into_iter().map(|find| find.kind).collect()
    }

    #[test]
    fn a_name_a_card_and_addresses_are_found() {
        let mut marks = InputMarks::default();
        let mut map = AddressMap::new(&Key([4; 32]));
        marks.packet(b"GET /secret HTTP/1.1\r\nHost: example.org\r\n\r\n", 0);
        map.mac([2, 0x16, 0x3e, 1, 4, 5]);
        map.pair([198, 51, 100, 7], [203, 0, 113, 80]);
        map.ip("2001:db8:1:2:a:b:c:d".parse().unwrap());
        marks.finish(&map);
        assert_eq!(found(&marks, b"\0\0\0.org\r\n\r\n\0"), [FindKind::Payload]);
        assert_eq!(found(&marks, &[9, 9, 2, 0x16, 0x3e, 1, 4, 5, 9]), [FindKind::Mac]);
        assert_eq!(found(&marks, &[0, 198, 51, 100, 7, 203, 0, 113, 80]), [FindKind::Address]);
        let part = [0, 0x20, 1, 0xd, 0xb8, 0, 1, 0, 2, 0xff];
        assert_eq!(found(&marks, &part), [FindKind::Address]);
        assert_eq!(found(&marks, b"SSH-2.0-OpenSSH and GET / and more than this"), []);
    }

    #[test]
    fn words_that_stand_in_are_none_of_the_input() {
        let mut marks = InputMarks::default();
        for words in ALL_WORDS {
            marks.packet(&[&[7, 6, 5, 4][..], words].concat(), 0);
        }
        marks.packet(&[0; 100], 0);
        // A capture that somebody sent: the header is in the output by right.
        let header = [9, 1, 2, 3, 4, 5, 6, 7, 8];
        marks.packet(&header, 9);
        marks.packet(&header, 0);
        marks.finish(&AddressMap::new(&Key([4; 32])));
        assert_eq!(found(&marks, &header), []);
        for words in ALL_WORDS {
            assert_eq!(found(&marks, words), []);
        }
        assert_eq!(found(&marks, &[0; 50]), []);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4))]

        /// Beyond the bound, a share is looked for, and a long part is found.
        #[test]
        fn a_long_part_of_a_large_capture_is_found(seed: u64, from in 0..5_000_000_usize) {
            let mut state = seed;
            let payload: Vec<u8> = (0..5_002_000).map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) as u8
            }).collect();
            let mut marks = InputMarks::default();
            payload.chunks(1400).for_each(|payload| marks.packet(payload, 0));
            marks.finish(&AddressMap::new(&Key([4; 32])));
            prop_assert!(marks.share() > 1 && marks.parts.len() <= 2 * PARTS_MAX);
            prop_assert!(!found(&marks, &payload[from..from + 2_000]).is_empty());
        }
    }
}
