//! Rows as an Arrow record batch: text is `Utf8`, numbers are `UInt64`, fractions `Float64`,
//! booleans `Boolean`; each may be null. The schema's version is in the batch's metadata.

use crate::layout::{Layout, VERSION_KEY};
use arrow_array::builder::{
    ArrayBuilder, BooleanBuilder, Float64Builder, StringBuilder, UInt64Builder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use fullpipe_flow::schema::{Cell, Kind, SCHEMA_VERSION};
use std::collections::HashMap;
use std::sync::Arc;

/// Why rows cannot become a batch.
#[derive(Debug)]
pub enum BatchError {
    /// A row's cells do not match the layout.
    OtherColumns,
    /// Arrow refused the columns.
    Arrow(ArrowError),
}

impl std::fmt::Display for BatchError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BatchError::OtherColumns => {
                f.write_str("gather rows: a row does not have the layout's columns")
            }
            BatchError::Arrow(cause) => write!(f, "gather rows: {cause}"),
        }
    }
}

impl std::error::Error for BatchError {}

/// Rows that become a batch: [`push`](Batch::push) each, then [`finish`](Batch::finish).
pub struct Batch {
    layout: Layout,
    columns: Vec<Values>,
}

enum Values {
    Text(StringBuilder),
    Number(UInt64Builder),
    Fraction(Float64Builder),
    Boolean(BooleanBuilder),
}

impl Batch {
    /// An empty batch with these columns.
    pub fn new(layout: Layout) -> Self {
        let columns = layout.0.iter().map(|(_, kind)| Values::new(*kind)).collect();
        Batch { layout, columns }
    }

    /// Adds a row: a cell for each column, of its kind.
    ///
    /// # Errors
    /// The row does not have the layout's columns.
    pub fn push<'r>(
        &mut self,
        cells: impl IntoIterator<Item = Cell<'r>>,
    ) -> Result<(), BatchError> {
        let mut cells = cells.into_iter();
        for column in &mut self.columns {
            let cell = cells.next().ok_or(BatchError::OtherColumns)?;
            column.push(cell)?;
        }
        if cells.next().is_some() { Err(BatchError::OtherColumns) } else { Ok(()) }
    }

    /// Returns the rows as a batch.
    ///
    /// # Errors
    /// Arrow refuses the columns, because a row was refused halfway.
    pub fn finish(self) -> Result<RecordBatch, BatchError> {
        let fields: Vec<Field> = self
            .layout
            .0
            .iter()
            .map(|(name, kind)| Field::new(name, data_type(*kind), true))
            .collect();
        let version = HashMap::from([(VERSION_KEY.to_owned(), SCHEMA_VERSION.to_string())]);
        let schema = Schema::new(fields).with_metadata(version);
        let arrays = self.columns.into_iter().map(Values::finish).collect();
        RecordBatch::try_new(Arc::new(schema), arrays).map_err(BatchError::Arrow)
    }
}

fn data_type(kind: Kind) -> DataType {
    match kind {
        Kind::Number => DataType::UInt64,
        Kind::Fraction => DataType::Float64,
        Kind::Boolean => DataType::Boolean,
        Kind::Text | Kind::Words | Kind::Texts | Kind::Objects => DataType::Utf8,
    }
}

impl Values {
    fn new(kind: Kind) -> Self {
        match kind {
            Kind::Number => Values::Number(UInt64Builder::new()),
            Kind::Fraction => Values::Fraction(Float64Builder::new()),
            Kind::Boolean => Values::Boolean(BooleanBuilder::new()),
            Kind::Text | Kind::Words | Kind::Texts | Kind::Objects => {
                Values::Text(StringBuilder::new())
            }
        }
    }

    fn push(&mut self, cell: Cell<'_>) -> Result<(), BatchError> {
        match (self, cell) {
            (Values::Text(values), Cell::Text(text)) => values.append_option(text),
            (Values::Number(values), Cell::Number(number)) => values.append_option(number),
            (Values::Fraction(values), Cell::Fraction(fraction)) => values.append_option(fraction),
            (Values::Boolean(values), Cell::Boolean(is)) => values.append_option(is),
            _ => return Err(BatchError::OtherColumns),
        }
        Ok(())
    }

    fn finish(self) -> ArrayRef {
        match self {
            Values::Text(mut values) => ArrayBuilder::finish(&mut values),
            Values::Number(mut values) => ArrayBuilder::finish(&mut values),
            Values::Fraction(mut values) => ArrayBuilder::finish(&mut values),
            Values::Boolean(mut values) => ArrayBuilder::finish(&mut values),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Array, BooleanArray, StringArray, UInt64Array};

    #[test]
    fn cells_are_values_of_their_type_and_what_is_absent_is_null() {
        let mut batch = Batch::new(Layout::of_every_kind());
        batch
            .push([
                Cell::text("a"),
                Cell::number(u64::MAX),
                Cell::fraction(0.5),
                Cell::Boolean(Some(true)),
            ])
            .unwrap();
        batch
            .push([
                Cell::Text(None),
                Cell::Number(None),
                Cell::Fraction(None),
                Cell::Boolean(Some(false)),
            ])
            .unwrap();
        let batch = batch.finish().unwrap();
        assert_eq!(batch.schema().metadata()[VERSION_KEY], SCHEMA_VERSION.to_string());
        let name = batch.column(0).as_any().downcast_ref::<StringArray>().unwrap();
        let bytes = batch.column(1).as_any().downcast_ref::<UInt64Array>().unwrap();
        let whole = batch.column(3).as_any().downcast_ref::<BooleanArray>().unwrap();
        assert_eq!((name.value(0), name.is_null(1)), ("a", true));
        assert_eq!((bytes.value(0), bytes.is_null(1)), (u64::MAX, true));
        assert_eq!((whole.value(0), whole.value(1)), (true, false));
        assert!(batch.column(2).is_null(1));
    }

    #[test]
    fn other_rows_are_refused() {
        assert!(Batch::new(Layout::of_every_kind()).push([Cell::number(1_u64)]).is_err());
        assert!(Batch::new(Layout::of_every_kind()).push([]).is_err());
    }
}
