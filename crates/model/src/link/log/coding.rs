//! Varints and differences.

use std::net::IpAddr;

pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The difference of two 64-bit numbers as a varint, which is short if they are close.
pub(super) fn put_difference(out: &mut Vec<u8>, from: u64, to: u64) {
    let difference = to.wrapping_sub(from) as i64;
    put_varint(out, ((difference << 1) ^ (difference >> 63)) as u64);
}

pub(super) fn put_address(out: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(v4) => out.extend(v4.octets()),
        IpAddr::V6(v6) => out.extend(v6.octets()),
    }
}

/// The unread rest of a record's body.
pub(super) struct Body<'a>(pub &'a [u8]);

impl Body<'_> {
    pub fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    pub fn varint(&mut self) -> Option<u64> {
        let (value, used) = varint(self.0)?;
        self.0 = &self.0[used..];
        value
    }

    pub fn difference(&mut self, from: u64) -> Option<u64> {
        let coded = self.varint()?;
        let difference = (coded >> 1) as i64 ^ -((coded & 1) as i64);
        Some(from.wrapping_add(difference as u64))
    }

    pub fn address(&mut self, v6: bool) -> Option<IpAddr> {
        if v6 { self.bytes::<16>().map(IpAddr::from) } else { self.bytes::<4>().map(IpAddr::from) }
    }
}

/// A varint at the beginning of `bytes`, and its length; `None` if it is incomplete.
/// `Some(None, _)`: longer than any 64-bit number.
pub(super) fn varint(bytes: &[u8]) -> Option<(Option<u64>, usize)> {
    let mut value = 0u64;
    for (index, byte) in bytes.iter().enumerate() {
        if index == 9 && *byte > 1 {
            return Some((None, index + 1));
        }
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some((Some(value), index + 1));
        }
    }
    None
}
