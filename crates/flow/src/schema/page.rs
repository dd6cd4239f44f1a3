//! The tables as text: for the guide's page and `--help`, and what names became.

use super::{Column, Kind, Place, Record};

/// A column whose name or form changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Renamed {
    /// The version that changed it.
    pub version: u32,
    /// The kind of row.
    pub of: &'static str,
    /// What it was.
    pub before: &'static str,
    /// What it is now.
    pub after: &'static str,
}

const fn since_2(of: &'static str, before: &'static str, after: &'static str) -> Renamed {
    Renamed { version: 2, of, before, after }
}

/// Every change of a name or a form, by version.
pub const RENAMED: &[Renamed] = &[
    since_2("connection", "lost_segment", "label_lost_segment"),
    since_2("connection", "spurious_retransmission", "label_spurious_retransmission"),
    since_2("packet", "differs.wireshark", "labels_wireshark"),
    since_2("packet", "differs.why", "why"),
    since_2("run", "cached, complete, quiet: 1 or 0 in CSV and Parquet", "true or false"),
];

impl<K: Record> Column<K> {
    /// The column as a line of a table in Markdown.
    fn line(&self) -> String {
        let place = match self.place {
            Place::Everywhere => "the same".to_owned(),
            Place::At(path) | Place::Json(path) => format!("`{path}`"),
            Place::InDirection(path) => format!("`..._to_....{path}`"),
            Place::Rows => "-".to_owned(),
        };
        let rows = if self.place.is_in_rows() { "" } else { "only JSON: " };
        let (name, kind, unit, null) = (self.name, self.kind.words(), self.unit(), self.null);
        format!("| `{name}` | {kind} | {unit} | {null} | {rows}{} | {place} |\n", self.meaning)
    }
}

/// A table of columns in Markdown, its head included.
pub fn markdown<K: Record>(columns: &[Column<K>]) -> String {
    let head =
        "| column | type | unit | absent when | meaning | in JSON |\n|---|---|---|---|---|---|\n";
    columns.iter().fold(head.to_owned(), |text, column| text + &column.line())
}

/// The columns in short, for `--help`: names with commas between them.
pub fn columns_in_short<K: Record>(columns: &[Column<K>]) -> String {
    let rows =
        columns.iter().filter(|column| column.place.is_in_rows() && column.kind != Kind::Objects);
    rows.map(|column| column.name).collect::<Vec<_>>().join(", ")
}
