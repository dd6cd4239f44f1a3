//! Finds a measured path in JSON: the path itself, a row that has it under `path`, a list of such,
//! an object with such a list, or one on each line.

use super::MeasuredPath;
use serde_json::{Deserializer, Value};

/// The key of a row under which its path stands.
const KEY: &str = "path";
/// The key of a row with the number of its connection.
const NUMBER: &str = "connection";
/// What every path has, and other JSON does not.
const MARKS: [&str; 2] = ["rtt_us", "goodput_bps"];

/// Why a text has no measured path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MeasuredPathError {
    /// It is not JSON.
    #[error("read measured path: no JSON: {0}; write it with `fullpipe why --json`")]
    Json(String),
    /// There is none in it.
    #[error(
        "read measured path: there is none: no entry has rtt_us and goodput_bps, by itself or under \
         the key path; write it with `fullpipe why --json`"
    )]
    None,
    /// There are some, but not the one that was asked for.
    #[error("read measured path: no connection {asked}: {found} of them have a path")]
    Number {
        /// The number that was asked for.
        asked: u64,
        /// How many paths there are.
        found: usize,
    },
    /// One is there, and cannot have been measured.
    #[error("read measured path: {0}")]
    Impossible(String),
}

impl std::str::FromStr for MeasuredPath {
    type Err = MeasuredPathError;

    fn from_str(text: &str) -> Result<Self, MeasuredPathError> {
        MeasuredPath::find(text, None)
    }
}

impl MeasuredPath {
    /// The path of connection number `connection` in `text`, or the first one. The number is the
    /// row's own (`connection`), or else its place among the rows with a path, from 0.
    ///
    /// # Errors
    /// The text is not JSON, has no measured path or not that one, or one that is impossible.
    pub fn find(text: &str, connection: Option<u64>) -> Result<Self, MeasuredPathError> {
        let mut found = Vec::new();
        for document in Deserializer::from_str(text).into_iter::<Value>() {
            let document = document.map_err(|error| MeasuredPathError::Json(error.to_string()))?;
            collect(document, &mut found);
        }
        let count = found.len();
        let Some(asked) = connection else {
            return found.into_iter().next().map_or(Err(MeasuredPathError::None), FoundPath::path);
        };
        if count == 0 {
            return Err(MeasuredPathError::None);
        }
        let is_numbered = found.iter().any(|one| one.number.is_some());
        let mut numbered = found.into_iter().enumerate();
        let meant = numbered.find(|(at, one)| {
            let number = if is_numbered { one.number } else { u64::try_from(*at).ok() };
            number == Some(asked)
        });
        meant.map_or(Err(MeasuredPathError::Number { asked, found: count }), |(_, one)| one.path())
    }
}

/// An object that is a path, and the number of its row.
struct FoundPath {
    number: Option<u64>,
    path: Value,
}

impl FoundPath {
    fn path(self) -> Result<MeasuredPath, MeasuredPathError> {
        serde_json::from_value(self.path)
            .map_err(|error| MeasuredPathError::Impossible(error.to_string()))
    }
}

fn is_path(value: &Value) -> bool {
    MARKS.iter().all(|mark| value.get(mark).is_some())
}

/// The parser has a bound of depth, and so has this.
fn collect(value: Value, found: &mut Vec<FoundPath>) {
    match value {
        Value::Array(values) => values.into_iter().for_each(|value| collect(value, found)),
        Value::Object(mut row) => {
            let number = row.get(NUMBER).and_then(Value::as_u64);
            if row.get(KEY).is_some_and(is_path) {
                found.extend(row.remove(KEY).map(|path| FoundPath { number, path }));
            } else if MARKS.iter().all(|mark| row.contains_key(*mark)) {
                found.push(FoundPath { number, path: Value::Object(row) });
            } else {
                row.into_iter().for_each(|(_, value)| collect(value, found));
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn path(rtt: u64) -> String {
        format!(r#"{{"rtt_us": {rtt}, "goodput_bps": 1000000, "limit": "link"}}"#)
    }

    fn rtt(text: &str, connection: Option<u64>) -> u64 {
        MeasuredPath::find(text, connection).unwrap().rtt.as_micros()
    }

    #[test]
    fn each_form_gives_the_path() {
        let row = |connection, rtt| {
            format!(r#"{{"connection": {connection}, "pid": 7, "path": {}}}"#, path(rtt))
        };
        let rows = format!(r#"[{}, {{"pid": 9}}, {}]"#, row(4, 1), row(6, 2));
        for text in
            [rows.clone(), format!(r#"{{"sockets": {rows}}}"#), row(4, 1) + "\n" + &row(6, 2)]
        {
            assert_eq!((rtt(&text, None), rtt(&text, Some(4)), rtt(&text, Some(6))), (1, 1, 2));
            let error = MeasuredPath::find(&text, Some(0)).unwrap_err();
            assert_eq!(error, MeasuredPathError::Number { asked: 0, found: 2 });
        }
        let plain = format!("[{}, {}]", path(1), path(2));
        assert_eq!((rtt(&plain, None), rtt(&plain, Some(1))), (1, 2), "by place");
        assert_eq!(rtt(&path(3), None), 3);
    }

    #[test]
    fn what_has_no_path_says_why() {
        for (text, why) in [
            ("", "there is none"),
            ("[]", "there is none"),
            (r#"{"path": {"rtt_us": 5}}"#, "there is none"),
            ("rate,rtt", "no JSON"),
            (r#"{"rtt_us": 0, "goodput_bps": 5}"#, "rtt_us is 0"),
            (r#"{"rtt_us": 50666666666666000, "goodput_bps": 5}"#, "no round trip takes more"),
            (r#"{"rtt_us": 5, "goodput_bps": 0}"#, "goodput_bps is 0"),
            (r#"{"rtt_us": -5, "goodput_bps": 1}"#, "invalid value"),
            (r#"{"rtt_us": 5, "goodput_bps": 1, "loss": 1.5}"#, "not a share"),
            (r#"{"rtt_us": 5, "goodput_bps": 1, "limit": "moon"}"#, "'moon' is not a limit"),
        ] {
            let error = text.parse::<MeasuredPath>().unwrap_err().to_string();
            assert!(error.contains(why) && error.starts_with("read measured path"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*", number in prop::option::of(0..3_u64)) {
            let _ = MeasuredPath::find(&text, number);
        }

        #[test]
        fn any_object_with_the_marks_is_read_or_refused(
            values in prop::collection::vec("-?[0-9]{1,22}|null|true|\"[a-z]{0,9}\"|\\{\\}|[0-9.e]{1,9}", 8)
        ) {
            let names = ["rtt_us", "goodput_bps", "rate_bps", "queue_bytes", "loss", "limit",
                "sender", "framing"];
            let fields = names.iter().zip(&values).map(|(name, value)| format!("\"{name}\":{value}"));
            let _ = format!("{{{}}}", fields.collect::<Vec<_>>().join(",")).parse::<MeasuredPath>();
        }
    }
}
