//! What other programs' tests say of their sockets: the JSON of iperf3 and of M-Lab's ndt7.
//!
//! [`read`] takes a whole text, finds out by its keys what it is, and makes [`Sample`]s of it: one
//! where an interval ends, or where the test took one. A text may hold several values, as
//! ndt7-client and `iperf3 --json-stream` print them.

mod iperf3;
mod ndt7;

use super::Sample;
use super::line::is_possible_socket;
use crate::units::{Bytes, Rate};
use serde::de::IgnoredAny;

/// The samples of one end of one connection of a test.
#[derive(Debug, Clone, PartialEq)]
pub struct TestedSocket {
    /// In order of time.
    pub samples: Vec<Sample>,
    /// The program that wrote them.
    pub by: TestProgram,
}

/// The program that made a test, and what it was asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestProgram {
    /// A server of ndt7, which has the kernel's account of its socket.
    Ndt7,
    /// iperf3, which prints the mean of each interval.
    Iperf3 {
        /// The rate that it was told to keep to.
        rate: Option<Rate>,
        /// The send buffer that it asked for, as the kernel gave it.
        sndbuf: Option<Bytes>,
    },
}

/// Why a text is no result that can be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseResultError {
    /// It is no JSON, or is cut, or a value in it has another type.
    #[error("{0}; was the file cut or changed?")]
    Json(String),
    /// It is JSON of something else.
    #[error(
        "it is no result of iperf3 --json, of ndt7, or of fullpipe why --record; these are the JSON that is read"
    )]
    Unknown,
    /// The test failed, and its program said why.
    #[error("its test failed: {0}")]
    Failed(String),
    /// It is a test of another protocol.
    #[error("it is a test of {0}, and only TCP has the limits that are looked for")]
    Protocol(String),
    /// iperf3 printed no intervals.
    #[error("it has no intervals of a TCP stream; iperf3 --json prints them unless -i 0 is given")]
    NoIntervals,
    /// ndt7's server measured nothing, or the client kept nothing of it.
    #[error("it has no TCPInfo among the server's measurements")]
    NoTcpInfo,
    /// It is longer than any test's.
    #[error("it is larger than 64 MiB; print longer intervals (iperf3 -i 10)")]
    Long,
    /// A number in it is larger than any kernel's.
    #[error("a number in it is larger than any kernel's")]
    Impossible,
}

impl From<serde_json::Error> for ParseResultError {
    fn from(error: serde_json::Error) -> Self {
        ParseResultError::Json(error.to_string())
    }
}

/// The keys that tell what a value is.
#[derive(serde::Deserialize)]
struct Outline {
    start: Option<IgnoredAny>,
    intervals: Option<IgnoredAny>,
    event: Option<IgnoredAny>,
    error: Option<IgnoredAny>,
    #[serde(rename = "Download")]
    download: Option<IgnoredAny>,
    #[serde(rename = "Upload")]
    upload: Option<IgnoredAny>,
    #[serde(rename = "Key")]
    key: Option<IgnoredAny>,
    raw: Option<IgnoredAny>,
}

/// What a value is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ResultForm {
    Iperf3,
    Iperf3Stream,
    Ndt7,
    Ndt7Client,
    Other,
}

impl Outline {
    fn form(&self) -> ResultForm {
        match self {
            Outline { event: Some(_), .. } => ResultForm::Iperf3Stream,
            Outline { intervals: Some(_), .. } => ResultForm::Iperf3,
            Outline { start: Some(_), error: Some(_), .. } => ResultForm::Iperf3,
            Outline { download: Some(_), .. } | Outline { upload: Some(_), .. } => ResultForm::Ndt7,
            // A row of M-Lab's table has the result below `raw`.
            Outline { raw: Some(_), .. } => ResultForm::Ndt7,
            Outline { key: Some(_), .. } => ResultForm::Ndt7Client,
            _ => ResultForm::Other,
        }
    }
}

fn is_possible(sample: &Sample) -> bool {
    sample.at.as_nanos() <= TIME_MOST && is_possible_socket(sample)
}

/// The year 2116, in nanoseconds since 1970.
const TIME_MOST: u64 = 1 << 62;

/// The sockets of a result, in the order of the text.
///
/// # Errors
/// It is none that can be read, or says nothing of a TCP socket.
pub fn read(text: &str) -> Result<Vec<TestedSocket>, ParseResultError> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Outline>();
    let (mut events, mut messages) = (Vec::new(), Vec::new());
    let mut sockets = Vec::new();
    let mut from = 0;
    while let Some(outline) = values.next() {
        let outline = outline?;
        let to = values.byte_offset();
        let value = &text[from..to];
        from = to;
        match outline.form() {
            ResultForm::Iperf3 => sockets.extend(iperf3::read(value)?),
            ResultForm::Iperf3Stream => events.push(serde_json::from_str(value)?),
            ResultForm::Ndt7Client => messages.push(serde_json::from_str(value)?),
            // The summary of ndt7-client stands behind its messages.
            ResultForm::Ndt7 | ResultForm::Other if !messages.is_empty() => (),
            ResultForm::Ndt7 => sockets.extend(ndt7::read(value)?),
            ResultForm::Other => return Err(ParseResultError::Unknown),
        }
    }
    if !events.is_empty() {
        sockets.extend(iperf3::of_events(events)?);
    }
    if !messages.is_empty() {
        sockets.extend(ndt7::of_messages(messages)?);
    }
    let mut all = sockets.iter().flat_map(|socket: &TestedSocket| &socket.samples);
    match () {
        () if sockets.is_empty() => Err(ParseResultError::Unknown),
        () if !all.all(is_possible) => Err(ParseResultError::Impossible),
        () => Ok(sockets),
    }
}

#[cfg(test)]
mod tests;
