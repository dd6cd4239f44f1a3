//! What a data connection begins with: which test it belongs to, which connection of it this is,
//! and a proof that who opened it has the control connection.
//!
//! The secret passes over the control connection alone. A ticket is good once: whoever reads one on
//! its way can do nothing with it.

use crate::key::{bytes_of, digits, random};
use ring::hmac;

/// The first bytes of a ticket. No TLS record and no control frame begins with `F`.
const MAGIC: [u8; 8] = *b"FPDATA01";
const ID: usize = 16;
const MAC: usize = 32;

/// A ticket, as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticket {
    id: [u8; ID],
    index: u16,
    mac: [u8; MAC],
}

/// What makes and checks the tickets of one test.
#[derive(Clone)]
pub(super) struct Secret {
    id: [u8; ID],
    key: [u8; MAC],
}

impl Ticket {
    /// Its length.
    pub const LENGTH: usize = MAGIC.len() + ID + 2 + MAC;

    /// Whether a stream that begins with this byte may begin with a ticket.
    pub(super) fn begins_with(first: u8) -> bool {
        first == MAGIC[0]
    }

    /// Reads a ticket. It may still be a forged one.
    pub fn parse(bytes: &[u8; Ticket::LENGTH]) -> Option<Ticket> {
        let rest = bytes.strip_prefix(&MAGIC)?;
        let (id, rest) = rest.split_first_chunk::<ID>()?;
        let (index, mac) = rest.split_first_chunk::<2>()?;
        Some(Ticket { id: *id, index: u16::from_be_bytes(*index), mac: mac.try_into().ok()? })
    }

    /// Which test it says it belongs to.
    pub(super) fn id(&self) -> [u8; ID] {
        self.id
    }

    /// Which of the test's connections it is.
    pub(super) fn index(&self) -> u16 {
        self.index
    }
}

impl Secret {
    /// A new one; `None` without randomness.
    pub fn generate() -> Option<Secret> {
        Some(Secret { id: random()?, key: random()? })
    }

    /// The two texts that pass over the control connection.
    pub fn to_texts(&self) -> (String, String) {
        (digits(&self.id), digits(&self.key))
    }

    /// From those texts.
    pub fn from_texts(id: &str, key: &str) -> Option<Secret> {
        Some(Secret { id: bytes_of(id)?, key: bytes_of(key)? })
    }

    pub fn id(&self) -> [u8; ID] {
        self.id
    }

    fn signed(&self, index: u16) -> (hmac::Key, Vec<u8>) {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.key);
        (key, [&MAGIC[..], &self.id, &index.to_be_bytes()].concat())
    }

    /// The bytes of the ticket for connection `index`.
    pub fn ticket(&self, index: u16) -> Vec<u8> {
        let (key, mut bytes) = self.signed(index);
        let mac = hmac::sign(&key, &bytes);
        bytes.extend(mac.as_ref());
        bytes
    }

    /// Whether this secret made the ticket. It takes as long for a wrong one.
    pub fn made(&self, ticket: &Ticket) -> bool {
        let (key, bytes) = self.signed(ticket.index);
        ticket.id == self.id && hmac::verify(&key, &bytes, &ticket.mac).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_ticket_is_good_for_its_test_and_its_connection_alone() {
        let (secret, other) = (Secret::generate().unwrap(), Secret::generate().unwrap());
        let bytes: [u8; Ticket::LENGTH] = secret.ticket(7).try_into().unwrap();
        let ticket = Ticket::parse(&bytes).unwrap();
        assert!(secret.made(&ticket) && !other.made(&ticket));
        assert!(!secret.made(&Ticket { index: 8, ..ticket.clone() }));
        let (id, key) = secret.to_texts();
        assert!(Secret::from_texts(&id, &key).unwrap().made(&ticket));
        assert!(Secret::from_texts(&id, &id).is_none());
    }

    proptest! {
        #[test]
        fn forged_tickets_are_refused(at in 0..Ticket::LENGTH, by in 1u8..) {
            let secret = Secret { id: [1; ID], key: [2; MAC] };
            let mut bytes: [u8; Ticket::LENGTH] = secret.ticket(3).try_into().unwrap();
            bytes[at] ^= by;
            prop_assert!(!Ticket::parse(&bytes).is_some_and(|ticket| secret.made(&ticket)));
        }
    }
}
