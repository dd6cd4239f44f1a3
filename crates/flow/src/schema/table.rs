//! What a column is, and rows made of columns.

use super::{Cell, Kind};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// A kind of row: a type without values that names the type of its rows.
pub trait Record: 'static {
    /// A row, as a table reads it.
    type Row<'r>;
}

/// Where a column is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In every format, in JSON under its own name.
    Everywhere,
    /// In every format, in JSON at this path, its parts parted by dots.
    At(&'static str),
    /// In every format; in a connection's JSON at this path within the object of its direction.
    InDirection(&'static str),
    /// In CSV, Parquet and Arrow only.
    Rows,
    /// In JSON only, at this path.
    Json(&'static str),
}

impl Place {
    /// Whether rows of CSV, Parquet and Arrow have the column.
    pub const fn is_in_rows(self) -> bool {
        !matches!(self, Place::Json(_))
    }
}

/// A column of the rows of `K`.
pub struct Column<K: Record + ?Sized> {
    /// Its name, the unit at its end.
    pub name: &'static str,
    /// What its values are.
    pub kind: Kind,
    /// When it is absent; empty: never.
    pub null: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// Where it is found.
    pub place: Place,
    /// How it is had of a row.
    pub get: for<'r> fn(&'r K::Row<'r>) -> Cell<'r>,
}

impl<K: Record> Column<K> {
    /// A column that is found everywhere.
    pub(super) const fn new(
        name: &'static str,
        kind: Kind,
        null: &'static str,
        meaning: &'static str,
        get: for<'r> fn(&'r K::Row<'r>) -> Cell<'r>,
    ) -> Self {
        Column { name, kind, null, meaning, place: Place::Everywhere, get }
    }

    /// The same column, found elsewhere.
    pub(super) const fn at(mut self, place: Place) -> Self {
        self.place = place;
        self
    }

    /// The unit that its name says; empty for counts and what is no number.
    pub fn unit(&self) -> &'static str {
        match (self.kind, self.name.rsplit('_').next()) {
            (Kind::Number, Some("us")) => "µs",
            (Kind::Number, Some("ns")) => "ns",
            (Kind::Number, Some("bytes")) => "bytes",
            (Kind::Number, Some("bps")) => "bit/s",
            _ => "",
        }
    }
}

/// A row as a flat JSON object.
pub struct Object<'r, K: Record> {
    columns: &'static [Column<K>],
    row: &'r K::Row<'r>,
}

impl<'r, K: Record> Object<'r, K> {
    /// `row` under the names of `columns`.
    pub fn new(columns: &'static [Column<K>], row: &'r K::Row<'r>) -> Self {
        Object { columns, row }
    }
}

impl<K: Record> Serialize for Object<'_, K> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(Some(self.columns.len()))?;
        for column in self.columns {
            map.serialize_entry(column.name, &(column.get)(self.row))?;
        }
        map.end()
    }
}

/// The names of the columns that rows have, as the first line of CSV, its end included.
pub fn csv_header<K: Record>(columns: &[Column<K>]) -> String {
    let names: Vec<_> = columns
        .iter()
        .filter(|column| column.place.is_in_rows())
        .map(|column| column.name)
        .collect();
    names.join(",") + "\n"
}

/// Appends a row as a line of CSV, its end included.
pub fn csv_line<'r, K: Record>(columns: &[Column<K>], row: &'r K::Row<'r>, line: &mut String) {
    let mut is_first = true;
    for column in columns.iter().filter(|column| column.place.is_in_rows()) {
        if !std::mem::take(&mut is_first) {
            line.push(',');
        }
        (column.get)(row).push_csv(line);
    }
    line.push('\n');
}
