//! Parses rows from a file's bytes: one JSON object on each line, or `{"rows": [..]}`, or a list,
//! or one row.

use fullpipe_flow::schema::RunRow;
use serde_json::{Deserializer, Value};

/// Why bytes are not rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowsError(String);

impl std::fmt::Display for RowsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RowsError {}

/// Fields that each row has and other JSON does not; a failed run has [`ERROR`] instead of figures.
const MARKS: [&str; 3] = ["name", "engine", "goodput_bps"];
const ERROR: &str = "error";

/// The rows in `bytes`.
///
/// # Errors
/// They are not JSON, have no rows, or are other JSON.
pub fn rows(bytes: &[u8]) -> Result<Vec<RunRow>, RowsError> {
    let mut rows = Vec::new();
    for (number, document) in Deserializer::from_slice(bytes).into_iter::<Value>().enumerate() {
        let document = document.map_err(|error| RowsError(format!("no JSON: {error}")))?;
        match document {
            Value::Array(values) => add_all(values, &mut rows)?,
            Value::Object(mut object) if object.get("rows").is_some_and(Value::is_array) => {
                let Some(Value::Array(values)) = object.remove("rows") else { continue };
                add_all(values, &mut rows)?;
            }
            value => rows.push(row(value, number)?),
        }
    }
    if rows.is_empty() { Err(RowsError("there is no row in it".into())) } else { Ok(rows) }
}

fn add_all(values: Vec<Value>, rows: &mut Vec<RunRow>) -> Result<(), RowsError> {
    for (number, value) in values.into_iter().enumerate() {
        rows.push(row(value, number)?);
    }
    Ok(())
}

fn row(value: Value, number: usize) -> Result<RunRow, RowsError> {
    let number = number + 1;
    // A row may lack columns, so that older results can be read; but not everything is a row.
    let is_failed = value.get(ERROR).is_some_and(Value::is_string);
    let marks = if is_failed { &MARKS[..2] } else { &MARKS[..] };
    if let Some(lacking) = marks.iter().find(|mark| value.get(mark).is_none()) {
        return Err(RowsError(format!(
            "entry {number} is no row of `lab run`: it has no {lacking}"
        )));
    }
    serde_json::from_value(value).map_err(|error| RowsError(format!("row {number}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_flow::schema::Clock;
    use proptest::prelude::*;

    fn row_named(name: &str) -> RunRow {
        RunRow {
            name: name.into(),
            engine: Clock::Real,
            limit_share: 1.0 / 3.0,
            ..RunRow::default()
        }
    }

    fn failed_row(name: &str) -> RunRow {
        RunRow { name: name.into(), error: Some("no room".into()), ..RunRow::default() }
    }

    #[test]
    fn each_form_gives_the_same_rows() {
        let written = [row_named("a"), failed_row("b")];
        let texts: Vec<String> =
            written.iter().map(|row| serde_json::to_string(row).unwrap()).collect();
        let list = format!("[{},{}]", texts[0], texts[1]);
        for text in [texts.join("\n"), list.clone(), format!("{{\"rows\": {list}}}\n")] {
            assert_eq!(rows(text.as_bytes()).unwrap(), written, "{text}");
        }
        assert_eq!(rows(texts[0].as_bytes()).unwrap(), written[..1]);
    }

    #[test]
    fn what_is_no_row_says_why() {
        let half = serde_json::to_string(&row_named("a")).unwrap();
        for (text, why) in [
            ("", "no row"),
            ("{\"rows\": []}", "no row"),
            ("{\"name\": \"x\"}", "no engine"),
            ("[1, 2]", "entry 1 is no row"),
            ("name,goodput", "no JSON"),
            (&half[..half.len() - 5], "no JSON"),
            ("{\"name\":\"a\",\"engine\":\"real\",\"goodput_bps\":-1}", "row 1"),
        ] {
            let error = rows(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_rows_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = rows(&bytes);
        }
    }
}
