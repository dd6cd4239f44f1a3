//! The datagrams of a search, as bytes: 28 bytes that say what it is, and zeros up to the size.
//!
//! `fpM1` | token (16) | kind (1) | 0 (1) | size of this packet, IP header included (2) | number of
//! the probe (4), all in network order. A probe asks for an answer as small as possible, or for one
//! of its own size in [`ProbeKind::Ask`].

/// Bytes before the padding.
pub(super) const HEADER: usize = 28;
const MAGIC: &[u8; 4] = b"fpM1";

/// What only the two ends of one test know.
pub(super) type Token = [u8; 16];

/// What a datagram is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProbeKind {
    /// Padded to `size`: answer that it came.
    Probe,
    /// Answer with as much as `size` says.
    Ask,
    /// The answer to either.
    Answer,
    /// The answer to [`ProbeKind::Ask`]: this host's own device carries no packet of that size.
    TooLarge,
}

/// A datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Datagram {
    pub kind: ProbeKind,
    pub size: u16,
    pub number: u32,
}

impl Datagram {
    /// Its bytes, at least `length` of them.
    pub fn encode(self, token: &Token, length: usize) -> Vec<u8> {
        let kind = match self.kind {
            ProbeKind::Probe => 0,
            ProbeKind::Ask => 1,
            ProbeKind::Answer => 2,
            ProbeKind::TooLarge => 3,
        };
        let mut bytes = Vec::with_capacity(length.max(HEADER));
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(token);
        bytes.extend_from_slice(&[kind, 0]);
        bytes.extend_from_slice(&self.size.to_be_bytes());
        bytes.extend_from_slice(&self.number.to_be_bytes());
        bytes.resize(length.max(HEADER), 0);
        bytes
    }

    /// What `bytes` are; `None` if they are something else, or of another test.
    pub fn decode(bytes: &[u8], token: &Token) -> Option<Datagram> {
        let header = bytes.first_chunk::<HEADER>()?;
        let (magic, rest) = header.split_first_chunk::<4>()?;
        let (theirs, rest) = rest.split_first_chunk::<16>()?;
        // In the same time, wherever they differ.
        let difference = theirs.iter().zip(token).fold(0, |all, (a, b)| all | (a ^ b));
        if magic != MAGIC || difference != 0 {
            return None;
        }
        let [kind, _, size @ .., a, b, c, d] = *rest.first_chunk::<8>()?;
        let kind = match kind {
            0 => ProbeKind::Probe,
            1 => ProbeKind::Ask,
            2 => ProbeKind::Answer,
            3 => ProbeKind::TooLarge,
            _ => return None,
        };
        let number = u32::from_be_bytes([a, b, c, d]);
        Some(Datagram { kind, size: u16::from_be_bytes(size), number })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_are_a_datagram_or_nothing(bytes: Vec<u8>, token: Token) {
            let _ = Datagram::decode(&bytes, &token);
        }

        #[test]
        fn a_datagram_survives_and_is_nothing_to_others(
            size: u16, number: u32, token: Token, other: Token, length in 0usize..2000,
        ) {
            for kind in [ProbeKind::Probe, ProbeKind::Ask, ProbeKind::Answer, ProbeKind::TooLarge] {
                let datagram = Datagram { kind, size, number };
                let bytes = datagram.encode(&token, length);
                prop_assert_eq!(bytes.len(), length.max(HEADER));
                prop_assert_eq!(Datagram::decode(&bytes, &token), Some(datagram));
                prop_assert!(token == other || Datagram::decode(&bytes, &other).is_none());
                prop_assert_eq!(Datagram::decode(&bytes[..HEADER - 1], &token), None);
            }
        }
    }
}
