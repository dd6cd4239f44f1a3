//! Ed25519 keys of peers, as text that a user can paste.
//!
//! A private key is one line, `fullpipe-private-key:` and 64 hexadecimal digits (the seed of RFC
//! 8032). A public key is `ed25519:` and 64 digits. A list of allowed keys has one public key a
//! line; what follows the key, and lines that begin with `#`, are comments.

use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{Ed25519KeyPair, KeyPair};
use std::fmt::Write;

const PRIVATE: &str = "fullpipe-private-key:";
const PUBLIC: &str = "ed25519:";
/// The start of an Ed25519 public key as SubjectPublicKeyInfo, and of a private one as PKCS#8 (RFC
/// 8410).
const SPKI: [u8; 12] = [0x30, 0x2a, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 3, 0x21, 0];
const PKCS8: [u8; 16] = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];

/// Who a peer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; 32]);

/// The secret that proves it. It is not printed by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct PrivateKey([u8; 32]);

/// Why a text is no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseKeyError {
    /// It does not have the form of a public key.
    #[error(
        "'{0}' is no public key: it is ed25519: and 64 hexadecimal digits, as `fullpipe keygen` prints it"
    )]
    Public(String),
    /// It does not have the form of a private key. The text is not repeated: it may be a secret.
    #[error("this is no private key: make one with `fullpipe keygen FILE`")]
    Private,
}

/// The hexadecimal digits of bytes.
pub(super) fn digits(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Bytes from their hexadecimal digits.
pub(super) fn bytes_of<const N: usize>(digits: &str) -> Option<[u8; N]> {
    let digits = digits.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        *byte = pair.iter().try_fold(0, |byte, &digit| {
            let digit = char::from(digit).to_digit(16)?;
            Some(16 * byte + digit as u8)
        })?;
    }
    Some(bytes)
}

impl PublicKey {
    /// The key as SubjectPublicKeyInfo in DER, as TLS carries it.
    pub(super) fn spki(self) -> Vec<u8> {
        [&SPKI[..], &self.0].concat()
    }

    /// The key from its SubjectPublicKeyInfo; `None` for one of another kind.
    pub(super) fn of_spki(der: &[u8]) -> Option<PublicKey> {
        der.strip_prefix(&SPKI)?.try_into().ok().map(PublicKey)
    }

    /// The keys of a list, one a line.
    pub fn list(text: &str) -> Result<Vec<PublicKey>, ParseKeyError> {
        let lines = text.lines().map(str::trim);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines.map(|line| line.split_whitespace().next().unwrap_or(line).parse()).collect()
    }
}

impl std::str::FromStr for PublicKey {
    type Err = ParseKeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bytes = text.strip_prefix(PUBLIC).and_then(bytes_of);
        bytes.map(PublicKey).ok_or_else(|| {
            ParseKeyError::Public(text.chars().take(100).filter(|c| !c.is_control()).collect())
        })
    }
}

impl std::fmt::Display for PublicKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{PUBLIC}{}", digits(&self.0))
    }
}

impl PrivateKey {
    /// A new key from the system's randomness; `None` if there is none.
    pub fn generate() -> Option<PrivateKey> {
        random().map(PrivateKey)
    }

    /// The key that belongs to it; `None` for a seed that the library refuses.
    pub fn public(&self) -> Option<PublicKey> {
        let pair = Ed25519KeyPair::from_seed_unchecked(&self.0).ok()?;
        pair.public_key().as_ref().try_into().ok().map(PublicKey)
    }

    /// The key as PKCS#8 in DER.
    pub(super) fn pkcs8(&self) -> Vec<u8> {
        [&PKCS8[..], &self.0].concat()
    }

    /// The secret itself, where it is the key of something else than a connection.
    pub fn secret(&self) -> [u8; 32] {
        self.0
    }

    /// The line of its file: a secret.
    pub fn to_line(&self) -> String {
        format!("{PRIVATE}{}\n", digits(&self.0))
    }
}

impl std::str::FromStr for PrivateKey {
    type Err = ParseKeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bytes = text.trim().strip_prefix(PRIVATE).and_then(bytes_of);
        bytes.map(PrivateKey).ok_or(ParseKeyError::Private)
    }
}

impl std::fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PrivateKey(..)")
    }
}

/// Random bytes of the system.
pub(crate) fn random<const N: usize>() -> Option<[u8; N]> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_public_key_as_in_rfc_8032() {
        // Section 7.1, test 1.
        let seed = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
        let key: PrivateKey = format!("{PRIVATE}{seed}\n").parse().unwrap();
        let public = key.public().unwrap();
        assert_eq!(
            public.to_string(),
            "ed25519:d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
        );
        assert_eq!(PublicKey::of_spki(&public.spki()), Some(public));
        assert_eq!(key.to_line().parse(), Ok(key.clone()));
        assert!(!format!("{key:?}").contains("9d61"), "a secret is not printed");
    }

    #[test]
    fn a_list_has_comments() {
        let key = PrivateKey::generate().unwrap().public().unwrap();
        let text = format!("# who may test\n\n{key} ada@example.org\n  {key}\n");
        assert_eq!(PublicKey::list(&text), Ok(vec![key, key]));
        let wrong = PublicKey::list("ed25519:12").unwrap_err().to_string();
        assert!(wrong.contains("64 hexadecimal digits"), "{wrong}");
    }

    proptest! {
        #[test]
        fn any_text_is_a_key_or_refused(text: String, digits in "[0-9a-f]{62,66}") {
            let _ = (text.parse::<PublicKey>(), text.parse::<PrivateKey>());
            let key = format!("{PUBLIC}{digits}").parse::<PublicKey>();
            prop_assert_eq!(key.is_ok(), digits.len() == 64);
            if let Ok(key) = key {
                prop_assert_eq!(key.to_string(), format!("{PUBLIC}{digits}"));
            }
        }
    }
}
