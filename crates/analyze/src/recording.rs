//! A recording as the input: samples of sockets, one a line, that `fullpipe why --record` wrote,
//! with a note of what the host knew of each socket beside them.
//!
//! No capture begins with `{`, so the first byte tells a recording. A log of `ss -tin` is one, too:
//! text in which ss's own lines stand ([`crate::ss_log`]). All of it is in memory at once, because a
//! socket's verdict rests on all of its samples.

use crate::drive::End;
use crate::error::Error;
use crate::origin::Origin;
use crate::ss_log;
use fullpipe_flow::capture::ReadError;
use fullpipe_flow::diagnosis::DiagnosedConnection;
use fullpipe_flow::diagnosis::live::{Note, connections};
use fullpipe_flow::{Config, Counts};
use fullpipe_model::observe::ss::{OPENING, could_be_log, is_log};
use fullpipe_model::observe::{ParseSampleError, Sample};
use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};

/// The first byte of a line of JSON.
const FIRST: u8 = b'{';
/// A line of a recording has some 1.5 kB.
pub(crate) const LINE_MAX: u64 = 1 << 16;
/// The most lines of a recording that are read, samples and notes: 3 GB of memory.
pub const SAMPLES_MAX: u64 = 4_000_000;

/// Reads the only origin if it is a recording; otherwise the origins stay as they are.
pub type Read = fn(&mut Vec<Origin>, &Config) -> Option<Recorded>;

/// The connections of a recording, and what is known at its end.
pub type Recorded = (Vec<DiagnosedConnection>, End);

/// The [`Read`] that there is.
pub fn read_only(origins: &mut Vec<Origin>, config: &Config) -> Option<Recorded> {
    only(origins).map(|(name, form, lines)| match form {
        RecordedForm::Samples => read(name, lines, config),
        RecordedForm::SsLog => ss_log::read(name, lines, config),
    })
}

/// The lines of a recording.
pub(crate) type Lines = Box<dyn BufRead + Send>;

/// What a recording's lines are.
enum RecordedForm {
    /// One sample each.
    Samples,
    /// What ss prints.
    SsLog,
}

impl RecordedForm {
    /// By how it begins; `None` of a capture.
    fn of(opening: &[u8]) -> Option<RecordedForm> {
        match opening.first() {
            Some(&FIRST) => Some(RecordedForm::Samples),
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

/// Something to read.
type Source = Box<dyn std::io::Read + Send>;

/// Reads as much of a source as tells whether it is a recording. What is none is given back whole.
fn told(mut source: Source) -> Result<(RecordedForm, Lines), Source> {
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

/// Reads and diagnoses a recording. What stands before a line that is no sample is analysed.
fn read(name: String, mut lines: Lines, config: &Config) -> Recorded {
    let (mut samples, mut notes): (Vec<Sample>, Vec<Note>) = (Vec::new(), Vec::new());
    let (mut counts, mut errors) = (Counts::default(), Vec::new());
    let mut number = 0;
    loop {
        let mut line = Vec::new();
        match lines.by_ref().take(LINE_MAX).read_until(b'\n', &mut line) {
            Ok(0) => break,
            Ok(_) => number += 1,
            Err(cause) => {
                errors.push(Error::Read { name: name.clone(), cause: ReadError::Source(cause) });
                break;
            }
        }
        let before = counts.samples.saturating_add(notes.len() as u64);
        match entry(&line, before) {
            Ok(None) => {}
            Ok(Some(RecordedEntry::Note(note))) => notes.push(*note),
            Ok(Some(RecordedEntry::Sample(sample))) => {
                counts.samples += 1;
                if config.filter.as_ref().is_none_or(|one| one.matches(sample.local, sample.remote))
                {
                    samples.push(*sample);
                }
            }
            Err(cause) => {
                let (name, samples) = (name.clone(), counts.samples);
                errors.push(Error::Sample { name, line: number, cause, samples });
                break;
            }
        }
    }
    (connections(samples, &notes, config.trace), End { counts, errors })
}

/// What a line holds.
enum RecordedEntry {
    Sample(Box<Sample>),
    Note(Box<Note>),
}

/// What a line holds, after so many others; `None` of an empty one.
fn entry(line: &[u8], before: u64) -> Result<Option<RecordedEntry>, String> {
    if line.iter().all(u8::is_ascii_whitespace) {
        return Ok(None);
    }
    if before == SAMPLES_MAX {
        return Err(format!("it has more than {SAMPLES_MAX} samples; record for a shorter time"));
    }
    let text = std::str::from_utf8(line).map_err(|error| error.to_string())?;
    // Nearly every line is a sample, so a note is what is none.
    let parsed = text.parse().map(|sample| RecordedEntry::Sample(Box::new(sample)));
    let parsed = parsed.or_else(|error: ParseSampleError| {
        let note = text.parse().map(|note| RecordedEntry::Note(Box::new(note)));
        note.map_err(|_: ParseSampleError| error)
    });
    parsed.map(Some).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use crate::{Capture, Connections, Error, Options};
    use std::io::Write;

    /// A sender's socket at `ms`, 400 kB further every 10 ms.
    fn line(ms: u64) -> String {
        let acked = ms * 40_000;
        format!(
            "{{\"at_ns\":{},\"local\":\"192.0.2.1:80\",\"remote\":\"192.0.2.2:4000\",\"state\":\"established\",\
             \"rqueue_bytes\":0,\"wqueue_bytes\":500000,\"info\":{}}}\n",
            ms * 1_000_000,
            info(acked)
        )
    }

    fn info(acked: u64) -> String {
        let info = fullpipe_model::observe::TcpInfo {
            bytes_acked: Some(fullpipe_model::units::Bytes::new(acked)),
            ..Default::default()
        };
        serde_json::to_string(&info).unwrap()
    }

    fn recording() -> String {
        (0..50).map(|n| line(n * 10)).collect()
    }

    fn bytes(text: String, options: &Options) -> Connections {
        Capture::reader("samples", std::io::Cursor::new(text)).or_recording().connections(options)
    }

    #[test]
    fn it_is_a_capture_of_nothing_where_no_recording_is_taken() {
        let (counts, errors) = crate::bytes(recording(), &Options::default()).finish();
        assert!(counts.samples == 0 && !errors.is_empty(), "{errors:?}");
    }

    #[test]
    fn a_file_and_a_reader_give_the_same() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(recording().as_bytes()).unwrap();
        let options = Options::default();
        let [from_file, read] = [
            Capture::file(file.path()).or_recording().connections(&options),
            bytes(recording(), &options),
        ]
        .map(|connections| connections.map(Result::unwrap).collect::<Vec<_>>());
        assert_eq!((from_file.len(), read.len()), (1, 1));
        let both = [from_file, read].map(|all| serde_json::to_string(&all).unwrap());
        assert_eq!(both[0], both[1]);
        let (counts, errors) = bytes(recording(), &options).finish();
        assert!(errors.is_empty() && counts.packets == 0);
        assert_eq!(counts.samples, 50);
    }

    #[test]
    fn what_stands_before_a_bad_line_is_analysed() {
        let cut = recording() + "{\"at_ns\": 7}\n" + &line(990);
        let mut connections = bytes(cut, &Options::default());
        assert_eq!(connections.next_round().map(|round| round.len()), Some(1));
        let (counts, errors) = connections.finish();
        let [Error::Sample { line, samples, .. }] = &errors[..] else { panic!("{errors:?}") };
        assert_eq!((*line, *samples, counts.samples), (51, 50, 50));
        assert!(errors[0].to_string().contains("line 51: missing field"), "{}", errors[0]);
    }

    #[test]
    fn a_note_is_no_sample() {
        let note = "{\"at_ns\":490000000,\"local\":\"192.0.2.1:80\",\"remote\":\"192.0.2.2:4000\",\
                    \"note\":{\"kernel\":\"6.12\"}}\n";
        let (counts, errors) = bytes(recording() + note, &Options::default()).finish();
        assert!(errors.is_empty(), "{errors:?}");
        assert_eq!(counts.samples, 50);
        let bad = note.replace("6.12", "new");
        let (_, errors) = bytes(recording() + &bad, &Options::default()).finish();
        assert!(matches!(&errors[..], [Error::Sample { line: 51, .. }]), "{errors:?}");
    }

    #[test]
    fn a_filter_leaves_connections_out() {
        let mut options = Options::default();
        options.config.filter = Some("port 443".parse().unwrap());
        assert_eq!(bytes(recording(), &options).count(), 0);
    }
}
