//! The columns of a file or a batch, and the cells of their rows.

use fullpipe_flow::schema::{Cell, Column, Kind, Record};

/// The metadata key of a file's schema version.
pub(crate) const VERSION_KEY: &str = "fullpipe.schema_version";

/// Names and kinds of columns, in order. A column of several words, sentences or objects becomes
/// one text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Layout(pub(crate) Vec<(String, Kind)>);

impl Layout {
    /// The columns of a table.
    pub fn of<K: Record>(columns: &[Column<K>]) -> Self {
        Layout::default().and(columns)
    }

    /// Appends the columns of another table.
    pub fn and<K: Record>(mut self, columns: &[Column<K>]) -> Self {
        let in_rows = columns.iter().filter(|column| column.place.is_in_rows());
        self.0.extend(in_rows.map(|column| (column.name.to_owned(), in_a_row(column.kind))));
        self
    }

    /// Appends text columns.
    pub fn and_texts(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.0.extend(names.into_iter().map(|name| (name, Kind::Text)));
        self
    }

    /// A column of each kind, for tests.
    #[cfg(test)]
    pub(crate) fn of_every_kind() -> Layout {
        let columns = [
            ("name", Kind::Text),
            ("bytes", Kind::Number),
            ("share", Kind::Fraction),
            ("whole", Kind::Boolean),
        ];
        Layout(columns.into_iter().map(|(name, kind)| (name.to_owned(), kind)).collect())
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
