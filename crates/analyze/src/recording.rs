//! A recording as the input: samples of sockets, one a line, that `fullpipe why --record` wrote,
//! with a note of what the host knew of each socket beside them.
//!
//! No capture begins with `{`, so the first byte tells a recording, and its first line, whether it
//! is one: other JSON is the [`result`] of a test. A log of `ss -tin` is a recording, too: text in
//! which ss's own lines stand ([`ss_log`]). All of it is in memory at once, because a socket's
//! verdict rests on all of its samples.

pub mod history;
mod result;
mod samples;
mod ss_log;

use crate::drive::End;
use crate::error::Error;
use crate::origin::Origin;
use fullpipe_flow::Config;
use fullpipe_flow::capture::ReadError;
use fullpipe_flow::diagnosis::DiagnosedConnection;
use fullpipe_model::observe::is_line;
use fullpipe_model::observe::ss::{OPENING, could_be_log, is_log};
use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};

/// The first byte of a line of JSON.
const FIRST: u8 = b'{';
/// A line of a recording has some 1.5 kB; one that says what packets pass on their way out may have
/// thousands of classes.
const LINE_MAX: u64 = 1 << 20;
/// The most lines of a recording that are read, samples and notes: 3 GB of memory.
pub const SAMPLES_MAX: u64 = 4_000_000;

/// Reads the only origin if it is a recording; otherwise the origins stay as they are.
pub type Read = fn(&mut Vec<Origin>, &Config) -> Option<Recorded>;

/// The connections of a recording, and what is known at its end.
pub type Recorded = (Vec<DiagnosedConnection>, End);

/// The [`Read`] that there is.
pub fn read_only(origins: &mut Vec<Origin>, config: &Config) -> Option<Recorded> {
    only(origins).map(|(name, form, lines)| match form {
        RecordedForm::Json => {
            let (is_of_samples, lines) = is_of_samples(lines);
            let read = if is_of_samples { samples::read } else { result::read };
            read(name, lines, config)
        }
        RecordedForm::SsLog => ss_log::read(name, lines, config),
    })
}

/// The lines of a recording.
type Lines = Box<dyn BufRead + Send>;

/// What a recording's lines are.
enum RecordedForm {
    /// A sample each, or all together what a test of another program found.
    Json,
    /// What ss prints.
    SsLog,
}

impl RecordedForm {
    /// By how it begins; `None` of a capture.
    fn of(opening: &[u8]) -> Option<RecordedForm> {
        match opening.first() {
            Some(&FIRST) => Some(RecordedForm::Json),
            _ => is_log(opening).then_some(RecordedForm::SsLog),
        }
    }
}

/// The only origin, with its name, if it is a recording; otherwise the origins stay as they are.
fn only(origins: &mut Vec<Origin>) -> Option<(String, RecordedForm, Lines)> {
    if origins.len() != 1 {
        return None;
    }
    match origins.pop()? {
        Origin::File(path) => {
            // A pipe can be opened once only, and so is left to whoever reads packets.
            let is_file = path.metadata().is_ok_and(|metadata| metadata.is_file());
            let opened = is_file.then(|| File::open(&path).ok()).flatten();
            let told = opened.and_then(|file| told(Box::new(file)).ok());
            let name = path.display().to_string();
            if told.is_none() {
                origins.push(Origin::File(path));
            }
            let (form, lines) = told?;
            Some((name, form, lines))
        }
        Origin::Reader(name, source) => match told(source) {
            Ok((form, lines)) => Some((name, form, lines)),
            Err(whole) => {
                origins.push(Origin::Reader(name, whole));
                None
            }
        },
    }
}

/// Reads lines one after another, until one cannot be read or `take` refuses it, with why and how
/// many samples there were before it. Gives how many were read, and what stopped it.
fn each_line(
    name: &str,
    mut lines: Lines,
    mut take: impl FnMut(&[u8]) -> Result<(), (String, u64)>,
) -> (u64, Vec<Error>) {
    let mut number = 0;
    let mut line = Vec::new();
    loop {
        line.clear();
        match lines.by_ref().take(LINE_MAX).read_until(b'\n', &mut line) {
            Ok(0) => return (number, Vec::new()),
            Ok(_) => number += 1,
            Err(cause) => {
                let cause = ReadError::Source(cause);
                return (number, vec![Error::Read { name: name.into(), cause }]);
            }
        }
        if let Err((cause, samples)) = take(&line) {
            let error = Error::Sample { name: name.into(), line: number, cause, samples };
            return (number, vec![error]);
        }
    }
}

/// Whether the first line is a sample or a note, and all lines again.
fn is_of_samples(mut lines: Lines) -> (bool, Lines) {
    let mut first = Vec::new();
    let read = lines.by_ref().take(LINE_MAX).read_until(b'\n', &mut first);
    let is_so = is_line(&first);
    let whole = std::io::Cursor::new(first).chain(lines);
    // What failed to be read fails again, and is told then.
    (is_so && read.is_ok(), Box::new(BufReader::new(whole)))
}

/// Something to read.
type RecordedSource = Box<dyn std::io::Read + Send>;

/// Reads as much of a source as tells whether it is a recording. What is none is given back whole.
fn told(mut source: RecordedSource) -> Result<(RecordedForm, Lines), RecordedSource> {
    let mut opening = vec![0; OPENING];
    let mut length = 0;
    // A pipe gives a little at a time. An error is met again, and told, by whoever reads packets.
    while let Some(free) = opening.get_mut(length..).filter(|free| !free.is_empty()) {
        match source.read(free) {
            Ok(0) | Err(_) => break,
            Ok(more) => length += more,
        }
        let so_far = &opening[..length];
        if !could_be_log(so_far) || RecordedForm::of(so_far).is_some() {
            break;
        }
    }
    opening.truncate(length);
    let form = RecordedForm::of(&opening);
    let whole = std::io::Cursor::new(opening).chain(source);
    match form {
        Some(form) => Ok((form, Box::new(BufReader::new(whole)))),
        None => Err(Box::new(whole)),
    }
}
