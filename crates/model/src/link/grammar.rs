//! netem's grammar as text: a value is a few words in a fixed order, as after `tc ... netem`.
//!
//! The same grammar applies in scenario files, on the command line and over the control socket;
//! each impairment's file documents its own. The parser is strict: an extra word is an error that
//! shows what was expected.

use std::str::FromStr;

/// Why a text is not a valid value of a word of the link.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{word} '{text}': {problem}; write for example {example}")]
pub struct WordsError {
    /// The word of the link: `delay`, `loss`.
    pub word: &'static str,
    /// The given text.
    pub text: String,
    /// What is wrong with it.
    pub problem: String,
    /// A correct example.
    pub example: &'static str,
}

/// A text that is read word by word.
pub(super) struct Reader<'a> {
    word: &'static str,
    example: &'static str,
    text: &'a str,
    rest: Vec<&'a str>,
}

impl<'a> Reader<'a> {
    pub fn new(word: &'static str, example: &'static str, text: &'a str) -> Self {
        let mut rest: Vec<&str> = text.split_whitespace().collect();
        rest.reverse();
        Reader { word, example, text, rest }
    }

    pub fn error(&self, problem: impl Into<String>) -> WordsError {
        WordsError {
            word: self.word,
            text: self.text.into(),
            problem: problem.into(),
            example: self.example,
        }
    }

    pub fn peek(&self) -> Option<&'a str> {
        self.rest.last().copied()
    }

    pub fn next(&mut self) -> Option<&'a str> {
        self.rest.pop()
    }

    /// Takes `keyword` if it is next.
    pub fn keyword(&mut self, keyword: &str) -> bool {
        let found = self.peek() == Some(keyword);
        if found {
            self.rest.pop();
        }
        found
    }

    /// The value that must come next; `what` names it in errors. `100 ms` means the same as
    /// `100ms`.
    pub fn value<T: FromStr<Err: std::fmt::Display>>(
        &mut self,
        what: &str,
    ) -> Result<T, WordsError> {
        let Some(first) = self.next() else {
            return Err(self.error(format!("{what} is missing")));
        };
        if first.chars().all(|c| c.is_ascii_digit() || c == '.')
            && let Some(unit) =
                self.peek().filter(|unit| !unit.starts_with(|c: char| c.is_ascii_digit()))
            && let Ok(value) = format!("{first}{unit}").parse()
        {
            self.rest.pop();
            return Ok(value);
        }
        first.parse().map_err(|error: T::Err| {
            // The quantity's own message, without the example that this error adds anyway.
            let error = error.to_string();
            let problem = error.split("; write for example").next().unwrap_or_default();
            let alone = self.text.trim() == first;
            let own = format!(" '{first}': ");
            let problem = problem.split_once(&own).map_or(problem, |(_, problem)| problem);
            self.error(if alone { problem.into() } else { format!("{what} '{first}': {problem}") })
        })
    }

    /// An optional value: present if the next word is a number.
    pub fn optional<T: FromStr<Err: std::fmt::Display>>(
        &mut self,
        what: &str,
    ) -> Result<Option<T>, WordsError> {
        match self.peek() {
            Some(word)
                if word.starts_with(|c: char| c.is_ascii_digit() || c == '.' || c == '-') =>
            {
                self.value(what).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The value after `keyword`, if that comes next.
    pub fn after<T: FromStr<Err: std::fmt::Display>>(
        &mut self,
        keyword: &str,
    ) -> Result<Option<T>, WordsError> {
        if self.keyword(keyword) { self.value(keyword).map(Some) } else { Ok(None) }
    }

    /// Checks that nothing is left.
    pub fn end(mut self) -> Result<(), WordsError> {
        match self.next() {
            None => Ok(()),
            Some(word) => Err(self.error(format!("'{word}' is not expected there"))),
        }
    }
}

/// Serialises a type as the text that parses back to it; deserialises it from a text or a number.
macro_rules! words_serde {
    ($t:ty) => {
        impl serde::Serialize for $t {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }
        impl<'de> serde::Deserialize<'de> for $t {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                $crate::units::written::parsed(d)
            }
        }
    };
}
pub(super) use words_serde;
