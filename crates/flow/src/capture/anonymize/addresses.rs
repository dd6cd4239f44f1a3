//! Addresses and ports under a key.
//!
//! IP addresses by the construction of Crypto-PAn (Xu, Fan, Ammar, Moon: Prefix-Preserving IP
//! Address Anonymization, ICNP 2002): bit `i` is turned over or not as the cipher says of the bits
//! before it. So two addresses have as many first bits in common afterwards as before, and no two
//! become one. On the way to an address of a special kind (loopback, private, link-local,
//! multicast) nothing is turned over, which leaves both properties as they are: such an address
//! keeps its kind, and no other gets it. The price is that an address that shares its first `n`
//! bits with a special kind keeps `n + 1` of them.

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Block};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The secret that decides how everything is replaced: the same key replaces the same in the same
/// way.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key(pub [u8; 32]);

// Whoever prints what holds a key must not print the key.
impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key")
    }
}

/// The most replacements that are remembered: a scan of a network has more addresses than memory.
const REMEMBERED: usize = 1 << 18;

/// Ranges of IPv4 that keep their first bits, and how many (IANA's IPv4 Special-Purpose Address
/// Registry): private, loopback, link-local, shared, multicast, broadcast.
const SPECIAL_V4: [(Ipv4Addr, u32); 8] = [
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(127, 0, 0, 1), 32),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::BROADCAST, 32),
];

/// The same of IPv6: unspecified, loopback, unique local, link-local, multicast. The last keeps its
/// flags and scope as well, which the second byte has.
const SPECIAL_V6: [(Ipv6Addr, u32); 5] = [
    (Ipv6Addr::UNSPECIFIED, 128),
    (Ipv6Addr::LOCALHOST, 128),
    (Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0), 8),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8),
];

/// Prefixes of 96 bits behind which an address of IPv4 stands, which is replaced as one: mapped
/// (RFC 4291 section 2.5.5.2) and NAT64 (RFC 6052).
const WITH_V4: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0)];

/// Bits behind which an embedded IPv4 address begins.
const EMBEDDED_AT: u32 = 96;

/// Replaces addresses under a key.
#[derive(Debug)]
pub struct AddressMap {
    cipher: Cipher,
    /// What stands in for the bits that are not known yet: Crypto-PAn's pad, and one for IPv6, so
    /// that what is known of one family says nothing of the other.
    pad_v4: u128,
    pad_v6: u128,
    /// Tells cards' addresses from those of IP.
    pad_mac: u128,
    known: HashMap<IpAddr, IpAddr, foldhash::fast::RandomState>,
    known_macs: HashMap<[u8; 6], [u8; 6], foldhash::fast::RandomState>,
    /// Sources and destinations of IPv4 that stood beside each other.
    known_pairs: HashMap<u64, u64, foldhash::fast::RandomState>,
}

/// One block in, one out.
#[derive(Clone)]
struct Cipher(Aes128);

impl std::fmt::Debug for Cipher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Cipher")
    }
}

impl Cipher {
    fn encrypted(&self, block: u128) -> u128 {
        let mut block = Block::from(block.to_be_bytes());
        self.0.encrypt_block(&mut block);
        u128::from_be_bytes(block.into())
    }
}

impl AddressMap {
    /// A map under this key: its first half is the cipher's, its second makes the pads.
    pub fn new(key: &Key) -> AddressMap {
        let (for_cipher, for_pad) = key.0.split_at(16);
        let halves = [for_cipher, for_pad]
            .map(|half| std::array::from_fn(|at| half.get(at).copied().unwrap_or_default()));
        let [for_cipher, for_pad]: [[u8; 16]; 2] = halves;
        let cipher = Cipher(Aes128::new(&for_cipher.into()));
        let pad_v4 = cipher.encrypted(u128::from_be_bytes(for_pad));
        let pad_v6 = cipher.encrypted(pad_v4);
        let pad_mac = cipher.encrypted(pad_v6);
        let (known, known_macs, known_pairs) = Default::default();
        AddressMap { cipher, pad_v4, pad_v6, pad_mac, known, known_macs, known_pairs }
    }

    /// The same map, which has seen nothing.
    pub(super) fn another(&self) -> AddressMap {
        let (known, known_macs, known_pairs) = Default::default();
        AddressMap { cipher: self.cipher.clone(), known, known_macs, known_pairs, ..*self }
    }

    /// What an IP address becomes.
    pub fn ip(&mut self, address: IpAddr) -> IpAddr {
        if let Some(known) = self.known.get(&address) {
            return *known;
        }
        let replaced = match address {
            IpAddr::V4(address) => self.v4(address).into(),
            IpAddr::V6(address) => self.v6(address).into(),
        };
        if self.known.len() >= REMEMBERED {
            self.known.clear();
        }
        self.known.insert(address, replaced);
        replaced
    }

    /// The IP addresses that were replaced, as far as they are remembered, each with what it
    /// became.
    pub fn seen(&self) -> impl Iterator<Item = (IpAddr, IpAddr)> {
        self.known.iter().map(|(before, after)| (*before, *after))
    }

    /// The same of cards' addresses.
    pub fn seen_macs(&self) -> impl Iterator<Item = ([u8; 6], [u8; 6])> {
        self.known_macs.iter().map(|(before, after)| (*before, *after))
    }

    /// A source and a destination of IPv4, as they stand beside each other in a header.
    pub fn pair(&mut self, source: [u8; 4], destination: [u8; 4]) -> [[u8; 4]; 2] {
        let before = joined([source, destination]);
        if let Some(after) = self.known_pairs.get(&before) {
            return [(after >> 32) as u32, *after as u32].map(u32::to_be_bytes);
        }
        let after = [source, destination].map(|address| match self.ip(address.into()) {
            IpAddr::V4(address) => address.octets(),
            // A map keeps the family.
            IpAddr::V6(_) => [0; 4],
        });
        if self.known_pairs.len() >= REMEMBERED {
            self.known_pairs.clear();
        }
        self.known_pairs.insert(before, joined(after));
        after
    }

    /// The pairs that were replaced, as far as they are remembered, the source before the
    /// destination, each with what it became.
    pub fn seen_pairs(&self) -> impl Iterator<Item = (u64, u64)> {
        self.known_pairs.iter().map(|(before, after)| (*before, *after))
    }

    fn v4(&self, address: Ipv4Addr) -> Ipv4Addr {
        let bits = u128::from(address.to_bits()) << 96;
        let kept = kept_bits(bits, SPECIAL_V4.map(|(a, n)| (u128::from(a.to_bits()) << 96, n)));
        let turned = self.turned(bits, kept, 32, self.pad_v4);
        Ipv4Addr::from_bits(((bits ^ turned) >> 96) as u32)
    }

    fn v6(&self, address: Ipv6Addr) -> Ipv6Addr {
        let bits = address.to_bits();
        if WITH_V4.iter().any(|prefix| (prefix.to_bits() ^ bits) >> (128 - EMBEDDED_AT) == 0) {
            let inner = self.v4(Ipv4Addr::from_bits(bits as u32));
            return Ipv6Addr::from_bits(bits & !u128::from(u32::MAX) | u128::from(inner.to_bits()));
        }
        let kept = kept_bits(bits, SPECIAL_V6.map(|(a, n)| (a.to_bits(), n)))
            .max(kept_bits(bits, WITH_V4.map(|a| (a.to_bits(), EMBEDDED_AT))));
        Ipv6Addr::from_bits(bits ^ self.turned(bits, kept, 128, self.pad_v6))
    }

    /// Which of the first `length` bits are turned over, of those behind the first `kept`.
    fn turned(&self, bits: u128, kept: u32, length: u32, pad: u128) -> u128 {
        let mut turned = 0;
        for at in kept..length {
            // The bits before this one; behind them the pad.
            let before = u128::MAX.checked_shl(128 - at).unwrap_or(0);
            let block = self.cipher.encrypted(bits & before | pad & !before);
            turned |= (block >> 127) << (127 - at);
        }
        turned
    }

    /// What a card's address becomes: as before one of a group or not, given locally or not; that
    /// of everybody and that of nobody stay.
    pub fn mac(&mut self, address: [u8; 6]) -> [u8; 6] {
        const GROUP_AND_LOCAL: u8 = 3;
        if matches!(address, [0xff, 0xff, 0xff, 0xff, 0xff, 0xff] | [0, 0, 0, 0, 0, 0]) {
            return address;
        }
        if let Some(known) = self.known_macs.get(&address) {
            return *known;
        }
        let number = address.iter().fold(0, |sum, byte| sum << 8 | u128::from(*byte));
        let [mut first, b, c, d, e, f, ..] =
            self.cipher.encrypted(number ^ self.pad_mac).to_be_bytes();
        first = first & !GROUP_AND_LOCAL | address[0] & GROUP_AND_LOCAL;
        let replaced = [first, b, c, d, e, f];
        if self.known_macs.len() >= REMEMBERED {
            self.known_macs.clear();
        }
        self.known_macs.insert(address, replaced);
        replaced
    }

    /// A number of 64 bits that the key decides, another one for each `label`.
    pub fn number(&self, label: u64) -> u64 {
        (self.cipher.encrypted(!self.pad_mac ^ u128::from(label)) >> 64) as u64
    }
}

/// Two addresses as they lie in a header.
fn joined(pair: [[u8; 4]; 2]) -> u64 {
    let [source, destination] = pair.map(|address| u64::from(u32::from_be_bytes(address)));
    source << 32 | destination
}

/// How many of the first bits must stay, so that what has one of these beginnings keeps it, and
/// what has not does not get it.
fn kept_bits<const N: usize>(bits: u128, special: [(u128, u32); N]) -> u32 {
    let kept = special.map(|(prefix, length)| ((prefix ^ bits).leading_zeros() + 1).min(length));
    kept.into_iter().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The key and the addresses that Crypto-PAn's own sample has.
    const SAMPLE_KEY: Key = Key([
        21, 34, 23, 141, 51, 164, 207, 128, 19, 10, 91, 22, 73, 144, 125, 16, 216, 152, 143, 131,
        121, 121, 101, 39, 98, 87, 76, 45, 42, 132, 34, 2,
    ]);

    #[test]
    fn without_special_kinds_it_is_crypto_pan() {
        let map = AddressMap::new(&SAMPLE_KEY);
        for (before, after) in [
            ("128.11.68.132", "135.242.180.132"),
            ("129.118.74.4", "134.136.186.123"),
            ("130.132.252.244", "133.68.164.234"),
            ("141.223.7.43", "141.167.8.160"),
            ("141.233.145.108", "141.129.237.235"),
            ("152.163.225.39", "151.140.114.167"),
            ("192.102.249.13", "252.138.62.131"),
            ("24.0.250.221", "100.15.198.226"),
        ] {
            let address: Ipv4Addr = before.parse().unwrap();
            let bits = u128::from(address.to_bits()) << 96;
            let turned = map.turned(bits, 0, 32, map.pad_v4);
            let found = Ipv4Addr::from_bits(((bits ^ turned) >> 96) as u32);
            assert_eq!(found, after.parse::<Ipv4Addr>().unwrap(), "{before}");
        }
    }

    #[test]
    fn special_kinds_stay_what_they_are() {
        let mut map = AddressMap::new(&Key([7; 32]));
        for same in ["127.0.0.1", "255.255.255.255", "::", "::1"] {
            let address = same.parse().unwrap();
            assert_eq!(map.ip(address), address, "{same}");
        }
        let mapped = map.ip("::ffff:198.51.100.7".parse().unwrap());
        assert_eq!(mapped.to_canonical(), map.ip("198.51.100.7".parse().unwrap()));
        assert_ne!(mapped.to_canonical(), "198.51.100.7".parse::<IpAddr>().unwrap());
    }

    #[test]
    fn a_card_stays_one_of_its_kind() {
        let mut map = AddressMap::new(&Key([7; 32]));
        assert_eq!((map.mac([0xff; 6]), map.mac([0; 6])), ([0xff; 6], [0; 6]));
        for first in [0x00, 0x01, 0x02, 0x33] {
            let card = [first, 0x16, 0x3e, 1, 2, 3];
            let replaced = map.mac(card);
            assert_eq!(replaced[0] & 3, first & 3);
            assert_ne!(replaced, card);
        }
    }

    fn kind(address: IpAddr) -> [bool; 8] {
        let shared = |a: Ipv4Addr| a.octets()[0] == 100 && a.octets()[1] & 0xc0 == 64;
        match address {
            IpAddr::V4(a) => [
                a.is_private(),
                a == Ipv4Addr::LOCALHOST,
                a.is_link_local(),
                a.is_multicast(),
                a.is_broadcast(),
                shared(a),
                false,
                false,
            ],
            IpAddr::V6(a) => [
                a.is_unique_local() && a.octets()[0] == 0xfd,
                a.is_loopback(),
                a.is_unicast_link_local(),
                a.is_multicast(),
                a.is_unspecified(),
                a.to_ipv4_mapped().is_some(),
                a.octets().starts_with(&[0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0]),
                a.segments()[0] >> 13 == 1,
            ],
        }
    }

    fn common(a: u128, b: u128) -> u32 {
        (a ^ b).leading_zeros()
    }

    /// Addresses of which many share a beginning, with each other or with a special kind.
    fn near(beginnings: [u128; 6], bits: u32) -> impl Strategy<Value = u128> {
        (0..6_usize, 0..=bits, any::<u128>()).prop_map(move |(which, at, random)| {
            let rest = u128::MAX.checked_shr(at).unwrap_or(0);
            beginnings[which] & !rest | random & rest
        })
    }

    fn v4() -> impl Strategy<Value = Ipv4Addr> {
        let beginnings = [0x0a00_0001, 0xc0a8_0105, 0x7f00_0001, 0xffff_ffff, 0xc633_6407, 0];
        near(beginnings.map(|bits: u128| bits << 96), 32)
            .prop_map(|bits| Ipv4Addr::from_bits((bits >> 96) as u32))
    }

    fn v6() -> impl Strategy<Value = Ipv6Addr> {
        let beginnings =
            ["2001:db8::1", "fe80::1", "::1", "::ffff:1.2.3.4", "64:ff9b::1", "ff02::1"];
        near(beginnings.map(|text| text.parse::<Ipv6Addr>().unwrap().to_bits()), 128)
            .prop_map(Ipv6Addr::from_bits)
    }

    proptest! {
        #[test]
        fn common_beginnings_stay_as_long_as_they_are(key: [u8; 32], a in v4(), b in v4()) {
            let mut map = AddressMap::new(&Key(key));
            let (IpAddr::V4(c), IpAddr::V4(d)) = (map.ip(a.into()), map.ip(b.into())) else {
                panic!("another family");
            };
            let bits = |a: Ipv4Addr| u128::from(a.to_bits()) << 96;
            prop_assert_eq!(common(bits(a), bits(b)), common(bits(c), bits(d)));
            prop_assert_eq!(kind(a.into()), kind(c.into()));
        }

        #[test]
        fn so_do_those_of_the_other_family(key: [u8; 32], a in v6(), b in v6()) {
            let mut map = AddressMap::new(&Key(key));
            let (IpAddr::V6(c), IpAddr::V6(d)) = (map.ip(a.into()), map.ip(b.into())) else {
                panic!("another family");
            };
            prop_assert_eq!(common(a.to_bits(), b.to_bits()), common(c.to_bits(), d.to_bits()));
            prop_assert_eq!(kind(a.into()), kind(c.into()));
        }

        #[test]
        fn another_key_is_another_map(one: [u8; 32], other: [u8; 32], a: u128) {
            prop_assume!(one != other);
            let a = Ipv6Addr::from_bits(a | 1 << 125 & !(3 << 126)).into();
            let of = |key| AddressMap::new(&Key(key)).ip(a);
            prop_assert_ne!(of(one), of(other));
        }
    }
}
