//! Strings that others wrote.

use serde_json::{Value, json};

/// Where a string comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuotedFrom {
    /// The packets of a capture, its comments and names.
    Capture,
    /// A process of this host, or a name that was given on it.
    Host,
    /// A file with results or samples.
    File,
}

impl QuotedFrom {
    /// All of them.
    pub const ALL: [QuotedFrom; 3] = [QuotedFrom::Capture, QuotedFrom::Host, QuotedFrom::File];

    /// The key that such a string stands under.
    pub const fn key(self) -> &'static str {
        match self {
            QuotedFrom::Capture => "from_capture",
            QuotedFrom::Host => "from_host",
            QuotedFrom::File => "from_file",
        }
    }
}

/// Bytes of a string that others wrote, at most.
pub(super) const QUOTED_MAX: usize = 96;
/// The same of a sentence that may repeat such strings.
pub(super) const SENTENCE_MAX: usize = 320;

/// `text` as an object that says where it comes from: `{"from_capture": "www.example.org"}`.
///
/// Letters and digits of ASCII and a few signs of names stay. Everything else (controls, markup,
/// quotes, what changes the direction of text, is not visible, or looks like another letter) is
/// escaped as Rust writes it. What is longer is cut, and the object says so.
///
/// ```
/// use fullpipe_report::agent::{QuotedFrom, quoted};
/// let shown = quoted(QuotedFrom::Capture, "a.org<b>\u{1b}").to_string();
/// assert_eq!(shown, r#"{"from_capture":"a.org\\u{3c}b\\u{3e}\\u{1b}"}"#);
/// ```
pub fn quoted(origin: QuotedFrom, text: &str) -> Value {
    at_most(origin, text, QUOTED_MAX)
}

/// The same for a sentence that may repeat what others wrote, which may be longer.
pub fn sentence(origin: QuotedFrom, text: &str) -> Value {
    at_most(origin, text, SENTENCE_MAX)
}

fn at_most(origin: QuotedFrom, text: &str, most: usize) -> Value {
    let mut plain = String::new();
    let mut is_cut = false;
    for c in text.chars() {
        let before = plain.len();
        if is_plain(c) {
            plain.push(c);
        } else {
            plain.extend(c.escape_unicode());
        }
        if plain.len() > most {
            plain.truncate(before);
            is_cut = true;
            break;
        }
    }
    if is_cut { json!({origin.key(): plain, "cut": true}) } else { json!({origin.key(): plain}) }
}

/// Whether `c` is of the characters that names are made of.
pub(super) fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || " _-./:,;=+@%()".contains(c)
}
