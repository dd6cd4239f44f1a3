//! What the shell says itself, in each language: its messages, remarks and headings.
//!
//! The languages stand beside each other where a thing is said, so that neither can be missing or
//! left over. Who prints chooses: what is printed at once is [`either`] of the two; what is carried
//! first, such as a failure, is a [`Sentence`]. Errors of other crates become sentences by what
//! they are, never by their text: [`errors`]. JSON has the English.

pub mod command_line;
pub mod errors;
pub mod phrases;

use crate::terminal;
use fullpipe_flow::Language;
use serde::{Serialize, Serializer};
use std::fmt::{self, Display};

/// The one in the user's language.
pub fn either<T>(english: T, chinese: T) -> T {
    match terminal::language() {
        Language::English => english,
        Language::Chinese => chinese,
    }
}

/// A sentence in each language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sentence {
    english: String,
    chinese: String,
}

impl Sentence {
    /// What is said, in English and in Chinese.
    pub fn new(english: impl Into<String>, chinese: impl Into<String>) -> Sentence {
        Sentence { english: english.into(), chinese: chinese.into() }
    }

    /// What is the same in each language: a number, a name, what the system or another process
    /// said.
    pub fn as_is(text: impl Display) -> Sentence {
        let text = text.to_string();
        Sentence { english: text.clone(), chinese: text }
    }

    /// What data has, and what another process is told.
    pub fn english(&self) -> &str {
        &self.english
    }

    /// It in Chinese.
    pub fn chinese(&self) -> &str {
        &self.chinese
    }

    /// What the user is told.
    pub fn here(&self) -> &str {
        either(&self.english, &self.chinese)
    }

    /// Several in one: `first; second`.
    pub fn joined(all: &[Sentence]) -> Sentence {
        let english: Vec<&str> = all.iter().map(Sentence::english).collect();
        let chinese: Vec<&str> = all.iter().map(Sentence::chinese).collect();
        Sentence::new(english.join("; "), chinese.join("；"))
    }

    /// Several, each in a line of its own.
    pub fn lines(all: &[Sentence]) -> Sentence {
        let english: Vec<&str> = all.iter().map(Sentence::english).collect();
        let chinese: Vec<&str> = all.iter().map(Sentence::chinese).collect();
        Sentence::new(english.join("\n"), chinese.join("\n"))
    }

    /// With a place or a subject before it: `place: sentence`.
    pub fn of(&self, place: impl Display) -> Sentence {
        let Sentence { english, chinese } = self;
        Sentence::new(format!("{place}: {english}"), format!("{place}：{chinese}"))
    }

    /// With another behind it: `sentence: other`.
    pub fn and(&self, other: &Sentence) -> Sentence {
        let Sentence { english, chinese } = self;
        Sentence::new(
            format!("{english}: {}", other.english),
            format!("{chinese}：{}", other.chinese),
        )
    }

    /// With what the system said behind it: `sentence: cause`.
    pub fn with(&self, cause: impl Display) -> Sentence {
        let Sentence { english, chinese } = self;
        Sentence::new(format!("{english}: {cause}"), format!("{chinese}：{cause}"))
    }
}

/// Data is in English.
impl Serialize for Sentence {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.english)
    }
}

/// As an error that is passed upwards, it reads as in data; who shows it asks for the language.
impl Display for Sentence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.english)
    }
}

impl std::error::Error for Sentence {}
