//! How a payload begins, of what the account of time asks.

/// What a segment's payload begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PayloadStart {
    /// Anything else, or it was not captured.
    #[default]
    Other,
    /// A TLS record with a ClientHello.
    ClientHello,
    /// A TLS record with another message of a handshake, in clear text.
    Handshake,
}

/// The record type of a handshake's messages, and the message type of a ClientHello (RFC 8446
/// sections 5.1 and 4).
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
/// The largest record (RFC 8446 section 5.2), and the smallest that has a message's header.
const RECORD_LENGTHS: std::ops::RangeInclusive<u16> = 4..=(1 << 14) + 256;

impl PayloadStart {
    /// Reads what was captured of a payload.
    #[inline]
    pub(super) fn of(payload: &[u8]) -> Self {
        match *payload {
            // The version of a record is 3.1 to 3.4, whatever is spoken; 3.0 is SSL.
            [HANDSHAKE, 3, 0..=4, high, low, message, ..]
                if RECORD_LENGTHS.contains(&u16::from_be_bytes([high, low])) =>
            {
                if message == CLIENT_HELLO { Self::ClientHello } else { Self::Handshake }
            }
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handshake_is_told_from_what_looks_like_it() {
        let hello = [22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3];
        assert_eq!(PayloadStart::of(&hello), PayloadStart::ClientHello);
        assert_eq!(PayloadStart::of(&hello[..6]), PayloadStart::ClientHello);
        let key_exchange = [22, 3, 3, 0, 37, 16, 0, 0, 33];
        assert_eq!(PayloadStart::of(&key_exchange), PayloadStart::Handshake);
        for other in [
            &hello[..5],
            &[],
            // Application data, a change of cipher, a record that is too long or has no message.
            &[23, 3, 3, 2, 0, 1],
            &[20, 3, 3, 0, 1, 1],
            &[22, 3, 1, 65, 1, 1],
            &[22, 3, 1, 0, 3, 1],
            &[22, 2, 1, 2, 0, 1],
            b"GET / HTTP/1.1",
        ] {
            assert_eq!(PayloadStart::of(other), PayloadStart::Other, "{other:?}");
        }
    }
}
