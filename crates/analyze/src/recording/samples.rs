//! Samples of sockets as the input, one a line, that `fullpipe why --record` wrote, with a note of
//! what the host knew of each socket beside them.

use super::{Lines, Recorded, SAMPLES_MAX, each_line};
use crate::drive::End;
use fullpipe_flow::diagnosis::live::{HistoryLine, Note, connections};
use fullpipe_flow::{Config, Counts};
use fullpipe_model::observe::{ParseSampleError, Sample};

/// Reads and diagnoses a recording. What stands before a line that is no sample is analysed.
pub(super) fn read(name: String, lines: Lines, config: &Config) -> Recorded {
    let (mut samples, mut notes): (Vec<Sample>, Vec<Note>) = (Vec::new(), Vec::new());
    let mut counts = Counts::default();
    let (_, errors) = each_line(&name, lines, |line| {
        let before = counts.samples.saturating_add(notes.len() as u64);
        match entry(line, before).map_err(|cause| (cause, counts.samples))? {
            // What all sockets did together is of no connection.
            None | Some(HistoryLine::Look(_) | HistoryLine::Host(_)) => {}
            Some(HistoryLine::Note(note)) => notes.push(*note),
            Some(HistoryLine::Sample(sample)) => {
                counts.samples += 1;
                if config.filter.as_ref().is_none_or(|one| one.matches(sample.local, sample.remote))
                {
                    samples.push(*sample);
                }
            }
        }
        Ok(())
    });
    (connections(samples, &notes, config.trace), End { counts, errors })
}

/// What a line holds, after so many others; `None` of an empty one.
fn entry(line: &[u8], before: u64) -> Result<Option<HistoryLine>, String> {
    if line.iter().all(u8::is_ascii_whitespace) {
        return Ok(None);
    }
    if before == SAMPLES_MAX {
        return Err(format!("it has more than {SAMPLES_MAX} samples; record for a shorter time"));
    }
    let text = std::str::from_utf8(line).map_err(|error| error.to_string())?;
    text.parse().map(Some).map_err(|error: ParseSampleError| error.to_string())
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
