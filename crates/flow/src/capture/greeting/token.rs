//! Short texts of a capture. Whoever wrote them is a stranger, and they are printed in terminals
//! and pages: so they are of plain characters and a bounded length from here on.

use std::fmt;
use std::hash::{Hash, Hasher};

/// The name or version of something, as an end of a connection gives it: printable ASCII, at most
/// [`Token::LONGEST`] bytes. Each other byte is a `?`.
#[derive(Clone, Copy)]
pub struct Token {
    length: u8,
    bytes: [u8; Token::LONGEST],
}

impl Token {
    /// More is left out.
    pub const LONGEST: usize = 47;

    /// What these bytes say, without spaces around it; `None` if that is nothing.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let said = bytes.trim_ascii();
        let length = said.len().min(Self::LONGEST);
        let mut token = Token { length: length as u8, bytes: [0; Self::LONGEST] };
        for (to, from) in token.bytes.iter_mut().zip(said) {
            *to = shown(*from);
        }
        (length > 0).then_some(token)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..self.length.into()).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default()
    }
}

/// A name of any length up to that of a host (RFC 1035 section 2.3.4), made safe in the same way.
pub(super) fn name(bytes: &[u8]) -> Option<Box<str>> {
    const LONGEST: usize = 255;
    let said = bytes.trim_ascii();
    let shown: String = said.iter().take(LONGEST).map(|byte| char::from(shown(*byte))).collect();
    (!shown.is_empty()).then(|| shown.into_boxed_str())
}

/// A byte as a character that every terminal shows.
fn shown(byte: u8) -> u8 {
    if byte.is_ascii_graphic() || byte == b' ' { byte } else { b'?' }
}

impl PartialEq for Token {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Token {}

impl Hash for Token {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl serde::Serialize for Token {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whatever_the_bytes_are_a_terminal_shows_them(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            if let Some(token) = Token::of(&bytes) {
                prop_assert!((1..=Token::LONGEST).contains(&token.as_str().len()));
                prop_assert!(token.as_str().bytes().all(|byte| (0x20..0x7f).contains(&byte)));
            }
            if let Some(name) = name(&bytes) {
                prop_assert!((1..=255).contains(&name.len()));
                prop_assert!(name.bytes().all(|byte| (0x20..0x7f).contains(&byte)));
            }
        }
    }

    #[test]
    fn plain_text_stays_as_it_is() {
        assert_eq!(Token::of(b" OpenSSH_9.2p1 ").unwrap().as_str(), "OpenSSH_9.2p1");
        assert_eq!(Token::of(b"a\x1b[2Jb").unwrap().as_str(), "a?[2Jb");
        assert_eq!(Token::of(b" \r\n"), None);
    }
}
