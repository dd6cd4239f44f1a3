//! What a server chooses (RFC 8446 section 4.1.3), as far as its records' keys rest on it.

use super::super::keys::RANDOM;
use crate::capture::greeting::fields::Fields;

const SERVER_HELLO: usize = 2;
const SUPPORTED_VERSIONS: usize = 43;
const TLS13: usize = 0x0304;
/// The random number by which a server of TLS 1.3 asks for another ClientHello.
const RETRY: [u8; RANDOM] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
    0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

/// A server's choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ServerHello {
    pub random: [u8; RANDOM],
    pub suite: u16,
    pub is_tls13: bool,
}

impl ServerHello {
    /// Reads the first message of a record's body; `None` where it is no choice: another message,
    /// or the server asks for another ClientHello.
    pub fn read(body: &[u8]) -> Option<Self> {
        let mut message = Fields(body);
        if message.number::<1>()? != SERVER_HELLO {
            return None;
        }
        let mut hello = Fields(message.block::<3>()?);
        hello.take(2)?;
        let random: [u8; RANDOM] = hello.take(RANDOM)?.try_into().ok()?;
        hello.block::<1>()?;
        let suite = hello.number::<2>()? as u16;
        hello.take(1)?;
        let mut is_tls13 = false;
        let mut extensions = Fields(hello.block::<2>().unwrap_or_default());
        while let (Some(kind), Some(said)) = (extensions.number::<2>(), extensions.block::<2>()) {
            is_tls13 |= kind == SUPPORTED_VERSIONS && Fields(said).number::<2>() == Some(TLS13);
        }
        (random != RETRY).then_some(ServerHello { random, suite, is_tls13 })
    }
}
