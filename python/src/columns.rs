//! The columns of a kind of row, for Python.

use fullpipe_columnar::{RowKind, RowSource};
use fullpipe_flow::schema::{
    self, CONNECTIONS, FINDINGS, INTERVALS, PACKETS, Record, SPANS, WHOLES, WORKLOADS,
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

/// The columns of the rows of `source`, in order.
pub fn columns_of_rows(source: RowSource) -> Vec<Column> {
    match source {
        RowSource::Connection(RowKind::Connections) => in_rows(CONNECTIONS),
        RowSource::Connection(RowKind::Intervals) => of_part(INTERVALS),
        RowSource::Connection(RowKind::Findings) => of_part(FINDINGS),
        RowSource::Connection(RowKind::Spans) => of_part(SPANS),
        RowSource::Packets => in_rows(PACKETS),
        RowSource::Workloads => in_rows(WORKLOADS),
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
