//! Secrets of TLS connections, as browsers, curl and OpenSSL write them for debugging: NSS's key
//! log, one line a secret (`SSLKEYLOGFILE`, RFC 9850). It stands in a file of its own, or in a
//! pcapng's decryption secrets block.
//!
//! Only what opens a connection's application data is kept: the first traffic secrets of TLS 1.3
//! and the master secret of TLS 1.2. Later secrets follow from these.

use std::collections::BTreeMap;
use std::sync::Arc;

/// The most connections whose secrets are kept; those of a longer log are not read.
const SESSIONS_MOST: usize = 1 << 16;
/// The longest secret: SHA-384's, or a master secret.
const SECRET_MOST: usize = 48;
/// The random number by which a log names a connection.
pub(crate) const RANDOM: usize = 32;

/// What a log has of one connection.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SessionSecrets {
    /// The first traffic secrets of client and server, of TLS 1.3.
    pub traffic: [Option<Secret>; 2],
    /// The master secret of TLS 1.2.
    pub master: Option<Secret>,
}

/// A secret.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Secret {
    length: u8,
    bytes: [u8; SECRET_MOST],
}

impl Secret {
    /// `None` where it is longer than any, or empty.
    pub fn new(secret: &[u8]) -> Option<Self> {
        let mut bytes = [0; SECRET_MOST];
        bytes.get_mut(..secret.len())?.copy_from_slice(secret);
        (!secret.is_empty()).then_some(Secret { length: secret.len() as u8, bytes })
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length.into()]
    }
}

/// The secrets of connections, by the random number of their client. It is shared when it is
/// cloned, and never printed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct KeyLog(Arc<BTreeMap<[u8; RANDOM], SessionSecrets>>);

/// Why a key log is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyLogError {
    /// No line of it has a secret that opens a connection's data.
    #[error(
        "none of its {lines} lines is a secret of NSS's key log: CLIENT_TRAFFIC_SECRET_0, \
         SERVER_TRAFFIC_SECRET_0 (TLS 1.3) or CLIENT_RANDOM (TLS 1.2), each with two numbers in \
         hexadecimal"
    )]
    NoSecrets {
        /// Its lines.
        lines: usize,
    },
}

/// The number of connections, and none of their secrets.
impl std::fmt::Debug for KeyLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeyLog({} connections)", self.0.len())
    }
}

impl KeyLog {
    /// The secrets of a log.
    ///
    /// # Errors
    /// [`KeyLogError`] where there are none in it.
    pub fn parse(log: &[u8]) -> Result<Self, KeyLogError> {
        let mut keys = KeyLog::default();
        keys.learn(log);
        let lines = log.split(|byte| *byte == b'\n').count();
        if keys.is_empty() { Err(KeyLogError::NoSecrets { lines }) } else { Ok(keys) }
    }

    /// Adds the secrets of another log. What is no line of one is passed over.
    pub fn learn(&mut self, log: &[u8]) {
        let sessions = Arc::make_mut(&mut self.0);
        for line in log.split(|byte| matches!(byte, b'\n' | b'\r')) {
            let Some((label, random, secret)) = read(line) else { continue };
            if sessions.len() >= SESSIONS_MOST && !sessions.contains_key(&random) {
                continue;
            }
            let session = sessions.entry(random).or_default();
            match label {
                SecretLabel::Client => session.traffic[0] = Some(secret),
                SecretLabel::Server => session.traffic[1] = Some(secret),
                SecretLabel::Master => session.master = Some(secret),
            }
        }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Of how many connections it has some.
    pub fn sessions(&self) -> usize {
        self.0.len()
    }

    /// Whether it has those of the connection whose client said this random number.
    pub(crate) fn has(&self, random: &[u8; RANDOM]) -> bool {
        self.0.contains_key(random)
    }

    /// Those of the connection whose client said this random number.
    pub(super) fn of(&self, random: &[u8; RANDOM]) -> Option<SessionSecrets> {
        self.0.get(random).copied()
    }
}

/// Which secret a line has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SecretLabel {
    Client,
    Server,
    Master,
}

/// Reads a line: a label, the client's random number and the secret.
fn read(line: &[u8]) -> Option<(SecretLabel, [u8; RANDOM], Secret)> {
    let mut words = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    let label = match words.next()? {
        b"CLIENT_TRAFFIC_SECRET_0" => SecretLabel::Client,
        b"SERVER_TRAFFIC_SECRET_0" => SecretLabel::Server,
        b"CLIENT_RANDOM" => SecretLabel::Master,
        _ => return None,
    };
    let mut random = [0; RANDOM];
    let mut secret = [0; SECRET_MOST];
    let is_whole = from_hex(words.next()?, &mut random)? == RANDOM;
    let length = from_hex(words.next()?, &mut secret)?;
    let secret = Secret::new(&secret[..length])?;
    (is_whole && words.next().is_none()).then_some((label, random, secret))
}

/// Reads a number in hexadecimal, and gives how many bytes it has. `None` where it has others, or
/// does not fit.
fn from_hex(digits: &[u8], into: &mut [u8]) -> Option<usize> {
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let pairs = digits.chunks_exact(2);
    let length = pairs.len();
    for (byte, pair) in into.get_mut(..length)?.iter_mut().zip(pairs) {
        let [high, low] = [pair[0], pair[1]].map(|digit| char::from(digit).to_digit(16));
        *byte = (high? << 4 | low?) as u8;
    }
    Some(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn secrets_are_found_by_the_random_number_and_others_are_passed_over() {
        let (random, secret) = ([7; RANDOM], [9_u8; 32]);
        let log = format!(
            "# SSL/TLS secrets log file\nCLIENT_HANDSHAKE_TRAFFIC_SECRET {r} {s}\n\
             CLIENT_TRAFFIC_SECRET_0 {r} {s}\r\nEXPORTER_SECRET {r} {s}\nCLIENT_RANDOM {r} {m}\n\
             SERVER_TRAFFIC_SECRET_0 {r}\nSERVER_TRAFFIC_SECRET_0 {r} 0\n",
            r = hex(&random),
            s = hex(&secret),
            m = hex(&[3; 48]).to_uppercase(),
        );
        let keys = KeyLog::parse(log.as_bytes()).unwrap();
        assert_eq!(keys.sessions(), 1);
        let session = keys.of(&random).unwrap();
        assert_eq!(session.traffic[0].map(|one| one.bytes().to_vec()), Some(secret.to_vec()));
        assert!(session.traffic[1].is_none(), "lines that end early");
        assert_eq!(session.master.map(|one| one.bytes().to_vec()), Some(vec![3; 48]));
        assert!(keys.has(&random) && !keys.has(&[8; RANDOM]));
        assert_eq!(format!("{keys:?}"), "KeyLog(1 connections)", "secrets are not printed");
    }

    #[test]
    fn what_is_no_key_log_is_refused() {
        let refused = KeyLog::parse(b"-----BEGIN PRIVATE KEY-----\nMIIE\n");
        assert_eq!(refused, Err(KeyLogError::NoSecrets { lines: 3 }));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(log in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = KeyLog::parse(&log);
        }

        #[test]
        fn what_is_written_is_read(
            random: [u8; RANDOM],
            secret in proptest::collection::vec(any::<u8>(), 1..=SECRET_MOST),
        ) {
            let log = format!("SERVER_TRAFFIC_SECRET_0 {} {}", hex(&random), hex(&secret));
            let keys = KeyLog::parse(log.as_bytes()).unwrap();
            let found = keys.of(&random).and_then(|session| session.traffic[1]).unwrap();
            prop_assert_eq!(found.bytes(), &secret[..]);
        }
    }
}
