//! A part of what `fullpipe record --sockets` keeps, plain or compressed, with all that is in it:
//! what sockets did, and what the host knew beside.

use super::{SAMPLES_MAX, each_line};
use crate::error::Error;
use crate::origin::{Open, Origin};
use fullpipe_flow::capture::Unpack;
use fullpipe_flow::diagnosis::live::History;
use fullpipe_model::units::Instant;
use std::io::BufReader;

/// Reads parts, and why they are not whole. What stands before a line that is none is read.
pub fn read(origins: Vec<Origin>, open: &Open) -> (History, Vec<Error>) {
    let mut history = History::new(Instant::ZERO, Instant::from_nanos(u64::MAX));
    let mut errors = Vec::new();
    for origin in origins {
        let name = origin.name();
        let hosts = history.hosts().len();
        let wrong = part(&name, origin, open, &mut history);
        history.end_part();
        if wrong.is_empty() && history.hosts().len() == hosts {
            let cause = "no line says of which host it is: it is no part of a recording of sockets";
            errors.push(Error::Sample { name, line: 1, cause: cause.into(), samples: 0 });
        }
        errors.extend(wrong);
    }
    (history, errors)
}

fn part(name: &str, origin: Origin, open: &Open, history: &mut History) -> Vec<Error> {
    let source = match origin {
        Origin::File(path) => match open(&path) {
            Ok(source) => source,
            Err(cause) => return vec![Error::Open { path, cause }],
        },
        Origin::Reader(_, source) => source,
    };
    let source = match Unpack::new(source) {
        Ok(source) => source,
        Err(cause) => return vec![Error::Read { name: name.into(), cause: cause.into() }],
    };
    let mut lines = 0;
    let (_, errors) = each_line(name, Box::new(BufReader::new(source)), |line| {
        if lines == SAMPLES_MAX {
            return Err((format!("it has more than {SAMPLES_MAX} lines"), lines));
        }
        lines += 1;
        let text = std::str::from_utf8(line).map_err(|error| (error.to_string(), lines - 1))?;
        history.line(text).map_err(|error| (error.to_string(), lines - 1))
    });
    errors
}

#[cfg(test)]
mod tests {
    use crate::{Capture, Error};
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use fullpipe_flow::diagnosis::live::{HostNote, LookNote};
    use std::io::{Cursor, Write};

    fn part() -> String {
        let host = HostNote { host: "h1".into(), boot: "b".into(), ..HostNote::default() };
        format!("{host}\n{}\n", LookNote::default())
    }

    #[test]
    fn a_part_is_read_packed_or_not() {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(part().as_bytes()).unwrap();
        for bytes in [part().into_bytes(), packed.finish().unwrap()] {
            let (history, errors) = Capture::reader("part", Cursor::new(bytes)).history();
            assert!(errors.is_empty(), "{errors:?}");
            assert_eq!((history.hosts()[0].host.as_str(), history.looks().len()), ("h1", 1));
        }
    }

    #[test]
    fn what_is_no_part_is_told_and_what_stands_before_a_bad_line_is_kept() {
        for bytes in ["", "{\"at_ns\":7}\n", "no JSON"] {
            let (history, errors) = Capture::reader("part", Cursor::new(bytes)).history();
            let [error] = &errors[..] else { panic!("{bytes:?}: {errors:?}") };
            assert!(
                history.hosts().is_empty() && error.to_string().starts_with("part: "),
                "{error}"
            );
        }
        let cut = part() + "{\"at_ns\":7";
        let (history, errors) = Capture::reader("part", Cursor::new(cut)).history();
        assert!(matches!(&errors[..], [Error::Sample { line: 3, .. }]), "{errors:?}");
        assert_eq!(history.looks().len(), 1);
    }
}
