//! The record of an apply: what it set, line by line, in the order in which it happened.

use std::path::PathBuf;

use fullpipe_model::change::Knob;
use fullpipe_model::units::{Duration, column};
use serde::{Deserialize, Serialize};

/// Something that an apply sets: a setting of the kernel, or the file that sets it at boot.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Item {
    /// A setting.
    Knob(Knob),
    /// A file with this content; no content: no file.
    File(PathBuf),
}

impl std::fmt::Display for Item {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Item::Knob(knob) => knob.fmt(f),
            Item::File(path) => write!(f, "file {}", path.display()),
        }
    }
}

/// By its text.
impl Serialize for Item {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        match text.strip_prefix("file ") {
            Some(path) => Ok(Item::File(path.into())),
            None => text.parse().map(Item::Knob).map_err(serde::de::Error::custom),
        }
    }
}

/// One thing to set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Set {
    /// What.
    pub item: Item,
    /// Its value before; `None`: absent.
    pub from: Option<String>,
    /// Its value after.
    pub to: Option<String>,
}

/// The first line of a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begin {
    /// The program's version.
    pub version: String,
    /// When, since 1970.
    #[serde(rename = "at_unix_us", with = "column::micros")]
    pub at: Duration,
    /// Which boot of the machine.
    pub boot_id: String,
    /// Which network namespace: the number in `net:[4026531840]`.
    pub network_namespace: u64,
    /// When it is undone unless somebody confirms it, since 1970.
    #[serde(
        rename = "deadline_unix_us",
        with = "column::micros_optional",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub deadline: Option<Duration>,
    /// What it is for, as a phrase.
    pub purpose: String,
}

/// A line of a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
pub enum Line {
    /// The first one.
    Begin(Begin),
    /// This is about to be set.
    Set(Set),
    /// Everything is set.
    Applied,
    /// It stays beyond its deadline.
    Confirmed,
    /// Everything is put back.
    PutBack,
}

/// How far an apply has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// It began, and nobody knows how it ended: it was killed.
    Unfinished,
    /// Everything is set.
    Applied,
    /// Everything is put back.
    PutBack,
}

/// An apply as its record tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// How it began.
    pub begin: Begin,
    /// What it set, or was about to set when it ended.
    pub sets: Vec<Set>,
    /// How far it came.
    pub phase: Phase,
    /// Whether it was confirmed.
    pub is_confirmed: bool,
}

/// Why lines are not a record.
#[derive(Debug, thiserror::Error)]
#[error("read record: line {number}: {problem}; move the file away if it is not one of fullpipe's")]
pub struct RecordError {
    number: usize,
    problem: String,
}

impl Record {
    /// Reads the lines of a record; `None` for one that was killed before its first line.
    ///
    /// # Errors
    /// A line is not one of a record.
    pub fn read(lines: &[String]) -> Result<Option<Record>, RecordError> {
        let mut record: Option<Record> = None;
        for (at, text) in lines.iter().enumerate() {
            let wrong = |problem: String| RecordError { number: at + 1, problem };
            let line = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
            match (line, &mut record) {
                (Line::Begin(begin), none @ None) => {
                    *none = Some(Record {
                        begin,
                        sets: Vec::new(),
                        phase: Phase::Unfinished,
                        is_confirmed: false,
                    });
                }
                (Line::Set(set), Some(record)) => record.sets.push(set),
                (Line::Applied, Some(record)) => record.phase = Phase::Applied,
                (Line::Confirmed, Some(record)) => record.is_confirmed = true,
                (Line::PutBack, Some(record)) => record.phase = Phase::PutBack,
                _ => return Err(wrong("a record begins once".into())),
            }
        }
        Ok(record)
    }

    /// Whether it should have been undone by `now` (since 1970).
    pub fn is_overdue(&self, now: Duration) -> bool {
        let deadline = self.begin.deadline.filter(|_| !self.is_confirmed);
        self.phase != Phase::PutBack && deadline.is_some_and(|deadline| deadline <= now)
    }
}
