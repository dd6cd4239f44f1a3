//! A recorded rate: mahimahi's traces, which list when a packet could leave.
//!
//! Each line of the file is a time in milliseconds at which 1500 bytes may leave. Unused
//! opportunities are lost. After the last line the trace starts again; the last time is its length
//! (Netravali and others, "Mahimahi", USENIX ATC 2015).

use crate::units::{Bytes, Duration, Rate};
use std::sync::Arc;

/// Bytes of IP packets that leave at each time.
pub(super) const OPPORTUNITY: Bytes = Bytes::new(1500);
/// More lines than any recording has.
const LINES_MAX: usize = 10_000_000;

/// Times, in milliseconds from the start, that never decrease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace(Arc<[u32]>);

/// Why a text is not a trace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// A line that is not a time.
    #[error("trace: line {line} '{text}' is no whole number of milliseconds")]
    Line {
        /// Line number, from 1.
        line: usize,
        /// Its text.
        text: String,
    },
    /// Time goes back.
    #[error(
        "trace: line {line} is {time} ms, earlier than the line before; times must not decrease"
    )]
    Order {
        /// Line number, from 1.
        line: usize,
        /// Its time.
        time: u32,
    },
    /// The length is zero, so nothing or everything would leave.
    #[error("trace: the last time is its length and must be at least 1 ms")]
    Empty,
    /// Too long.
    #[error("trace: more than {LINES_MAX} lines")]
    TooLong,
}

impl Trace {
    /// Parses a mahimahi trace file.
    ///
    /// # Errors
    /// A line that is not a time, a time before the previous one, or no times at all.
    pub fn parse(file: &[u8]) -> Result<Self, TraceError> {
        let text = String::from_utf8_lossy(file);
        Trace::collect(text.lines().map(str::trim).enumerate().filter(|(_, line)| !line.is_empty()))
    }

    fn collect<'a>(lines: impl Iterator<Item = (usize, &'a str)>) -> Result<Self, TraceError> {
        let mut times: Vec<u32> = Vec::new();
        for (index, text) in lines {
            let line = index + 1;
            let time = text.parse().map_err(|_| TraceError::Line { line, text: text.into() })?;
            if times.last().is_some_and(|last| time < *last) {
                return Err(TraceError::Order { line, time });
            }
            if times.len() == LINES_MAX {
                return Err(TraceError::TooLong);
            }
            times.push(time);
        }
        if times.last().is_none_or(|last| *last == 0) {
            return Err(TraceError::Empty);
        }
        Ok(Trace(times.into()))
    }

    /// The time after which it starts again.
    pub fn period(&self) -> Duration {
        Duration::from_millis(self.0.last().copied().unwrap_or(1).into())
    }

    /// Its mean rate over the whole length.
    pub fn mean_rate(&self) -> Rate {
        let bytes = OPPORTUNITY.checked_mul(self.0.len() as u64).unwrap_or(Bytes::MAX);
        bytes.per(self.period()).unwrap_or(Rate::ZERO)
    }

    pub(super) fn times(&self) -> &[u32] {
        &self.0
    }
}

impl std::fmt::Display for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, time) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{time}")?;
        }
        Ok(())
    }
}

impl std::str::FromStr for Trace {
    type Err = TraceError;

    fn from_str(text: &str) -> Result<Self, TraceError> {
        Trace::collect(text.split(',').map(str::trim).enumerate())
    }
}
