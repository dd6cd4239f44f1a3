//! Why a scenario cannot be run.

/// Why a scenario file cannot be run. The message names the key, the value and its bounds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScenarioError {
    /// Not TOML, an unknown key, a wrong unit: with line and column.
    #[error("{0}")]
    Toml(String),
    /// A row of the matrix or a case does not fit.
    #[error("{row}: {problem}")]
    Row {
        /// Which row.
        row: String,
        /// What is wrong with it.
        problem: String,
    },
    /// `include` beside an experiment of its own.
    #[error(
        "`include` lists other scenarios: it cannot stand beside [hosts], [link], [transfer], [matrix], [[cases]] or [[also]]"
    )]
    IncludeAndOwn,
    /// Too many combinations.
    #[error(
        "cases, matrix and repeat make {runs} runs, at most {most} are made at once: shorten a list, or repeat less"
    )]
    TooManyRuns {
        /// How many there would be.
        runs: u64,
        /// How many are made at once.
        most: u64,
    },
    /// Many rows of a large file.
    #[error(
        "[matrix] and cases make {rows} rows of a large table, {text} B together: shorten a list, or split the file"
    )]
    TooMuchText {
        /// How many there would be.
        rows: u64,
        /// What all of them come to.
        text: u64,
    },
    /// A key of the matrix without values.
    #[error("[matrix] \"{0}\" has no values: give a list with at least one")]
    EmptyAxis(String),
    /// A name that would not be a name.
    #[error("name '{0}': use letters, digits, '-', '_', '.', '=', '/', at most 100 of them")]
    Name(String),
}
