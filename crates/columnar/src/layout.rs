//! The columns of a file or a batch, and the rows that they are filled with.

use fullpipe_flow::schema::{Cell, Column, Kind, Record};

/// Where a file says which version of the schema it has.
pub(crate) const VERSION_KEY: &str = "fullpipe.schema_version";

/// Names and kinds of columns, in order. Words and sentences are one text in a row.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Layout(pub(crate) Vec<(String, Kind)>);

impl Layout {
    /// The columns that rows of a table have.
    pub fn of<K: Record>(columns: &[Column<K>]) -> Self {
        Layout::default().and(columns)
    }

    /// The same, and those of another table behind them.
    pub fn and<K: Record>(mut self, columns: &[Column<K>]) -> Self {
        let in_rows = columns.iter().filter(|column| column.place.is_in_rows());
        self.0.extend(in_rows.map(|column| (column.name.to_owned(), in_a_row(column.kind))));
        self
    }

    /// The same, and columns of texts behind them.
    pub fn and_texts(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.0.extend(names.into_iter().map(|name| (name, Kind::Text)));
        self
    }

    /// The cells of a row, one for each column of [`Layout::of`].
    pub fn cells<'r, K: Record>(
        columns: &'static [Column<K>],
        row: &'r K::Row<'r>,
    ) -> impl Iterator<Item = Cell<'r>> + use<'r, K> {
        columns
            .iter()
            .filter(|column| column.place.is_in_rows())
            .map(move |column| (column.get)(row).joined())
    }
}

fn in_a_row(kind: Kind) -> Kind {
    match kind {
        Kind::Words | Kind::Texts | Kind::Objects => Kind::Text,
        other => other,
    }
}
