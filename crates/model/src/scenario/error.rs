//! Why a scenario cannot be run.

/// A place in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Its line, from 1.
    pub line: usize,
    /// Its character in that line, from 1.
    pub column: usize,
}

/// Why a scenario file cannot be run. The message names the key, the value and its bounds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScenarioError {
    /// Not TOML, an unknown key, a wrong unit.
    #[error("{}{problem}{}", place(.position), named(.key))]
    Toml {
        /// Where the file is wrong, if one place is.
        position: Option<Position>,
        /// The key whose value is wrong; `None` if the text is not TOML.
        key: Option<String>,
        /// What is wrong there.
        problem: String,
    },
    /// A row of the matrix or a case is invalid.
    #[error("{row}: {problem}")]
    Row {
        /// The row.
        row: String,
        /// What is wrong with it.
        problem: String,
    },
    /// `include` together with an experiment in the same file.
    #[error(
        "`include` lists other scenarios: it cannot be combined with [hosts], [link], [transfer], [matrix], [[cases]] or [[also]]"
    )]
    IncludeAndOwn,
    /// Too many combinations.
    #[error(
        "cases, matrix and repeat make {runs} runs, more than the {most} that one command runs: shorten a list, or repeat less"
    )]
    TooManyRuns {
        /// How many there would be.
        runs: u64,
        /// How many are allowed.
        most: u64,
    },
    /// Too many rows of a large table.
    #[error(
        "[matrix] and cases make {rows} rows of a large table, {text} B together: shorten a list, or split the file"
    )]
    TooMuchText {
        /// How many there would be.
        rows: u64,
        /// Their total size in bytes.
        text: u64,
    },
    /// A matrix key without values.
    #[error("[matrix] \"{0}\" has no values: give a list with at least one")]
    EmptyAxis(String),
    /// An invalid name.
    #[error("name '{0}': use letters, digits, '-', '_', '.', '=', '/', at most 100 of them")]
    Name(String),
}

/// "line 2, column 8: "
fn place(position: &Option<Position>) -> String {
    position
        .as_ref()
        .map(|at| format!("line {}, column {}: ", at.line, at.column))
        .unwrap_or_default()
}

/// " in `link.rtt`", as the `toml` crate names the keys of a row.
fn named(key: &Option<String>) -> String {
    key.as_ref().map(|key| format!(" in `{key}`")).unwrap_or_default()
}
