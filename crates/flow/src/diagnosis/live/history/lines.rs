//! The lines of a recording that goes on for days.

use super::super::Note;
use fullpipe_model::law::KernelVersion;
use fullpipe_model::limit::Limit;
use fullpipe_model::observe::{ParseSampleError, Sample};
use fullpipe_model::units::{Bytes, Duration, Instant, column};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A line of a recording.
#[derive(Debug, Clone, PartialEq)]
pub enum HistoryLine {
    /// A sample of a socket.
    Sample(Box<Sample>),
    /// What the host knew of a socket, after its samples.
    Note(Box<Note>),
    /// What a look at all sockets found.
    Look(LookNote),
    /// What the machine counted.
    Host(Box<HostNote>),
}

/// The difference between the calendar, since 1970, and the clock of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClockOffset(u64);

impl ClockOffset {
    /// One of so long.
    pub const fn new(offset: Duration) -> ClockOffset {
        ClockOffset(offset.as_nanos())
    }

    /// The calendar's time of a moment by the clock of samples.
    pub const fn calendar(self, at: Instant) -> Instant {
        Instant::from_nanos(at.as_nanos().saturating_add(self.0))
    }
}

/// What a look at all sockets found, and what they did since the look before it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LookNote {
    /// When it was taken, by the clock of samples.
    #[serde(skip)]
    pub at: Instant,
    /// The time since the look before it.
    #[serde(rename = "length_us", with = "column::micros")]
    pub length: Duration,
    /// How many connections there were.
    pub connections: u64,
    /// How many of them were busy.
    pub busy: u64,
    /// How many had samples kept of them.
    pub kept: u64,
    /// The time that all lost, summed over connections.
    #[serde(rename = "lost_us", with = "column::micros")]
    pub lost: Duration,
    /// Of it, that of connections of which no samples are kept.
    #[serde(rename = "lost_unkept_us", with = "column::micros")]
    pub lost_unkept: Duration,
    /// What was sent and acknowledged.
    #[serde(rename = "sent_bytes", with = "column::bytes")]
    pub sent: Bytes,
    /// What was received.
    #[serde(rename = "received_bytes", with = "column::bytes")]
    pub received: Bytes,
    /// Segments sent again.
    pub retransmissions: u64,
    /// How long each limit held, summed over connections.
    pub limits: Vec<NotedTime>,
}

/// How long a limit held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotedTime {
    /// The limit.
    #[serde(flatten)]
    pub limit: Limit,
    /// For how long.
    #[serde(rename = "time_us", with = "column::micros")]
    pub time: Duration,
}

/// What the machine counted by an instant, and how it was set.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HostNote {
    /// When, by the clock of samples.
    #[serde(skip)]
    pub at: Instant,
    /// What leads from the clock of samples to the calendar.
    #[serde(rename = "offset_ns")]
    pub offset: ClockOffset,
    /// The name of the machine; empty where its recorder did not write it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// The kernel's name of this boot: counters of another one began anew.
    pub boot: String,
    /// The kernel's version, where it is known.
    pub kernel: Option<KernelVersion>,
    /// Whose machine it is, by its firmware.
    pub vendor: String,
    /// Its counters of drops and stalls by name.
    pub counters: BTreeMap<String, u64>,
    /// The memory of all TCP sockets, where that was near its bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<NotedMemory>,
    /// Devices with the names of their offloads that are off.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub offloads_off: Vec<(String, String)>,
    /// Whether other users' processes could not be seen.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_blind: bool,
}

/// The memory of all TCP sockets together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotedMemory {
    /// What they hold.
    #[serde(rename = "held_bytes", with = "column::bytes")]
    pub held: Bytes,
    /// Where the kernel begins to save memory.
    #[serde(rename = "bound_bytes", with = "column::bytes")]
    pub bound: Bytes,
    /// The process that holds most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<NotedHolder>,
}

/// A process that holds memory in its sockets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotedHolder {
    /// Its name and id.
    pub process: String,
    /// What its busy sockets hold.
    #[serde(rename = "memory_bytes", with = "column::bytes")]
    pub memory: Bytes,
}

/// The JSON of a line that is neither a sample nor a note.
#[derive(Serialize, Deserialize)]
struct OtherLine<L, H> {
    #[serde(rename = "at_ns", with = "column::instant")]
    at: Instant,
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    look: Option<L>,
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    host: Option<H>,
}

const fn none<T>() -> Option<T> {
    None
}

impl std::fmt::Display for LookNote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write(f, &OtherLine::<_, &HostNote> { at: self.at, look: Some(self), host: None })
    }
}

impl std::fmt::Display for HostNote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write(f, &OtherLine::<&LookNote, _> { at: self.at, look: None, host: Some(self) })
    }
}

fn write<T: Serialize>(f: &mut std::fmt::Formatter<'_>, line: &T) -> std::fmt::Result {
    // Texts and numbers can always be written.
    f.write_str(&serde_json::to_string(line).map_err(|_| std::fmt::Error)?)
}

impl std::str::FromStr for HistoryLine {
    type Err = ParseSampleError;

    fn from_str(line: &str) -> Result<Self, Self::Err> {
        // Nearly every line is a sample.
        let error = match line.parse() {
            Ok(sample) => return Ok(HistoryLine::Sample(Box::new(sample))),
            Err(error) => error,
        };
        if let Ok(note) = line.parse() {
            return Ok(HistoryLine::Note(Box::new(note)));
        }
        match serde_json::from_str::<OtherLine<LookNote, HostNote>>(line) {
            Ok(OtherLine { at, look: Some(look), .. }) => {
                Ok(HistoryLine::Look(LookNote { at, ..look }))
            }
            Ok(OtherLine { at, host: Some(host), .. }) => {
                Ok(HistoryLine::Host(Box::new(HostNote { at, ..host })))
            }
            _ => Err(error),
        }
    }
}
