//! The columns of a kind of row, for Python.

use crate::options::Kind;
use fullpipe_columnar::{Layout, RowKind};
use fullpipe_flow::schema::{
    self, CONNECTIONS, FINDINGS, INTERVALS, PACKETS, Record, SPANS, WHOLES,
};
use pyo3::prelude::*;

/// A column: its name, what its values are, and what it means.
#[pyclass(module = "fullpipe", frozen, get_all)]
pub struct Column {
    /// Its name, with the unit at its end.
    name: &'static str,
    /// `text`, `integer`, `double`, `boolean`; `words`, `texts` and
    /// `objects` (JSON) are one text in a row.
    kind: &'static str,
    /// Its unit; empty for counts and what is no number.
    unit: &'static str,
    /// When it is null; empty: never.
    null: &'static str,
    /// What it means.
    meaning: &'static str,
}

#[pymethods]
impl Column {
    fn __repr__(&self) -> String {
        format!("Column({}: {}, {})", self.name, self.kind, self.meaning)
    }
}

impl Kind {
    /// The columns of its rows, in order.
    pub fn columns(self) -> Vec<Column> {
        match self {
            Kind::Of(RowKind::Connections) => in_rows(CONNECTIONS),
            Kind::Of(RowKind::Intervals) => of_part(INTERVALS),
            Kind::Of(RowKind::Findings) => of_part(FINDINGS),
            Kind::Of(RowKind::Spans) => of_part(SPANS),
            Kind::Packets => in_rows(PACKETS),
        }
    }

    /// The columns of its record batches.
    pub fn layout(self) -> Layout {
        match self {
            Kind::Of(kind) => kind.layout(),
            Kind::Packets => Layout::of(PACKETS),
        }
    }
}

fn of_part<K: Record>(columns: &'static [schema::Column<K>]) -> Vec<Column> {
    let mut all = in_rows(WHOLES);
    all.extend(in_rows(columns));
    all
}

fn in_rows<K: Record>(columns: &'static [schema::Column<K>]) -> Vec<Column> {
    let in_rows = columns.iter().filter(|column| column.place.is_in_rows());
    in_rows
        .map(|column| Column {
            name: column.name,
            kind: column.kind.words(),
            unit: column.unit(),
            null: column.null,
            meaning: column.meaning,
        })
        .collect()
}
