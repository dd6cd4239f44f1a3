//! Rows as a Parquet file, for pyarrow, DuckDB, pandas and the like.
//!
//! Make a [`ParquetTable`] with a layout, pass it rows of [`Cell`]s in that order, and finish it.
//! Rows are collected into row groups, so memory does not grow with their number. Text is UTF-8
//! (dictionary-encoded, because addresses and words repeat), a number an unsigned 64-bit integer, a
//! fraction a double, a boolean a boolean; each may be null. The schema's version is in the file's
//! metadata. Pages are compressed with Snappy, which every reader knows: of intervals a half is
//! left, of packets two thirds, of connections nearly all, because dictionaries did that.

use crate::layout::{Layout, VERSION_KEY};
use fullpipe_flow::schema::{Cell, Kind, SCHEMA_VERSION};
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use std::io::Write;
use std::sync::Arc;

/// Rows in a row group: some megabytes of a wide table.
const GROUP: usize = 1 << 15;

/// A Parquet file under construction.
pub struct ParquetTable<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    columns: Vec<Values>,
    rows: usize,
}

/// The pending values of one column, and for each row whether it has one.
struct Values {
    kept: ColumnValues,
    present: Vec<i16>,
}

enum ColumnValues {
    Text(Vec<ByteArray>),
    Number(Vec<i64>),
    Fraction(Vec<f64>),
    Boolean(Vec<bool>),
}

impl<W: Write + Send> ParquetTable<W> {
    /// Begins a file with these columns.
    ///
    /// # Errors
    /// `out` fails.
    pub fn new(out: W, layout: &Layout) -> Result<Self> {
        let columns = &layout.0;
        let fields = columns
            .iter()
            .map(|(name, kind)| field(name, *kind).map(Arc::new))
            .collect::<Result<_>>()?;
        let schema = Type::group_type_builder("rows").with_fields(fields).build()?;
        let made_by = format!("fullpipe {}", env!("CARGO_PKG_VERSION"));
        let version = KeyValue::new(VERSION_KEY.to_owned(), SCHEMA_VERSION.to_string());
        let properties = WriterProperties::builder()
            .set_created_by(made_by)
            .set_compression(Compression::SNAPPY)
            .set_key_value_metadata(Some(vec![version]))
            .build();
        let columns = columns.iter().map(|(_, kind)| Values::new(*kind)).collect();
        Ok(ParquetTable {
            writer: SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))?,
            columns,
            rows: 0,
        })
    }

    /// Adds a row: a cell for each column, of its kind.
    ///
    /// # Errors
    /// The row does not match the columns, or the file fails.
    pub fn row<'r>(&mut self, cells: impl IntoIterator<Item = Cell<'r>>) -> Result<()> {
        let mut cells = cells.into_iter();
        for column in &mut self.columns {
            let fits = cells.next().is_some_and(|cell| column.push(cell));
            if !fits {
                return Err(ParquetError::General(
                    "a row does not have the table's columns".into(),
                ));
            }
        }
        self.rows += 1;
        if self.rows >= GROUP { self.flush() } else { Ok(()) }
    }

    /// Writes the pending rows and the end of the file.
    ///
    /// # Errors
    /// The file fails.
    pub fn finish(mut self) -> Result<()> {
        self.flush()?;
        self.writer.close().map(drop)
    }

    fn flush(&mut self) -> Result<()> {
        if std::mem::take(&mut self.rows) == 0 {
            return Ok(());
        }
        let mut group = self.writer.next_row_group()?;
        self.columns.iter_mut().try_for_each(|column| column.write(&mut group))?;
        group.close().map(drop)
    }
}

fn field(name: &str, kind: Kind) -> Result<Type> {
    let (physical, logical) = match kind {
        Kind::Text | Kind::Words | Kind::Texts | Kind::Objects => {
            (Physical::BYTE_ARRAY, Some(LogicalType::String))
        }
        Kind::Number => (Physical::INT64, Some(LogicalType::integer(64, false))),
        Kind::Fraction => (Physical::DOUBLE, None),
        Kind::Boolean => (Physical::BOOLEAN, None),
    };
    let field = Type::primitive_type_builder(name, physical).with_repetition(Repetition::OPTIONAL);
    field.with_logical_type(logical).build()
}

impl Values {
    fn new(kind: Kind) -> Self {
        let kept = match kind {
            Kind::Text | Kind::Words | Kind::Texts | Kind::Objects => {
                ColumnValues::Text(Vec::new())
            }
            Kind::Number => ColumnValues::Number(Vec::new()),
            Kind::Fraction => ColumnValues::Fraction(Vec::new()),
            Kind::Boolean => ColumnValues::Boolean(Vec::new()),
        };
        Values { kept, present: Vec::new() }
    }

    /// Adds a cell if it is of this kind.
    fn push(&mut self, cell: Cell<'_>) -> bool {
        let present = match (&mut self.kept, cell) {
            (ColumnValues::Text(values), Cell::Text(text)) => {
                let is_there = text.is_some();
                values.extend(text.map(|text| ByteArray::from(text.into_owned().into_bytes())));
                is_there
            }
            (ColumnValues::Number(values), Cell::Number(number)) => {
                // The bits of an unsigned number; the column's type says so.
                values.extend(number.map(u64::cast_signed));
                number.is_some()
            }
            (ColumnValues::Fraction(values), Cell::Fraction(fraction)) => {
                values.extend(fraction);
                fraction.is_some()
            }
            (ColumnValues::Boolean(values), Cell::Boolean(is)) => {
                values.extend(is);
                is.is_some()
            }
            _ => return false,
        };
        self.present.push(i16::from(present));
        true
    }

    fn write<W: Write + Send>(
        &mut self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<()> {
        let Some(mut column) = group.next_column()? else {
            return Err(ParquetError::General("the file has fewer columns than the table".into()));
        };
        let present = std::mem::take(&mut self.present);
        match (column.untyped(), &mut self.kept) {
            (ColumnWriter::ByteArrayColumnWriter(writer), ColumnValues::Text(values)) => {
                writer.write_batch(&std::mem::take(values), Some(&present), None)?;
            }
            (ColumnWriter::Int64ColumnWriter(writer), ColumnValues::Number(values)) => {
                writer.write_batch(&std::mem::take(values), Some(&present), None)?;
            }
            (ColumnWriter::DoubleColumnWriter(writer), ColumnValues::Fraction(values)) => {
                writer.write_batch(&std::mem::take(values), Some(&present), None)?;
            }
            (ColumnWriter::BoolColumnWriter(writer), ColumnValues::Boolean(values)) => {
                writer.write_batch(&std::mem::take(values), Some(&present), None)?;
            }
            _ => {
                return Err(ParquetError::General(
                    "a column is of another kind than the file's".into(),
                ));
            }
        }
        column.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    fn read(file: Vec<u8>) -> Vec<Vec<Field>> {
        let reader = SerializedFileReader::new(bytes_of(file)).unwrap();
        let rows = reader.get_row_iter(None).unwrap();
        rows.map(|row| row.unwrap().get_column_iter().map(|(_, field)| field.clone()).collect())
            .collect()
    }

    fn bytes_of(file: Vec<u8>) -> std::fs::File {
        let mut stored = tempfile::tempfile().unwrap();
        stored.write_all(&file).unwrap();
        stored
    }

    #[test]
    fn what_is_written_is_read_over_the_end_of_a_row_group() {
        let mut file = Vec::new();
        let mut table = ParquetTable::new(&mut file, &Layout::of_every_kind()).unwrap();
        let rows = GROUP as u64 + 7;
        for number in 0..rows {
            let cells = [
                Cell::Text((number % 7 != 0).then(|| format!("n{}", number % 3).into())),
                Cell::Number((number % 2 == 0).then_some(u64::MAX - number)),
                Cell::Fraction((number % 5 != 0).then_some(0.25)),
                Cell::Boolean(Some(number % 2 == 0)),
            ];
            table.row(cells).unwrap();
        }
        table.finish().unwrap();
        let read = read(file);
        assert_eq!(read.len() as u64, rows);
        for (number, row) in (0_u64..).zip(read) {
            let name =
                if number % 7 == 0 { Field::Null } else { Field::Str(format!("n{}", number % 3)) };
            assert_eq!((&row[0], &row[3]), (&name, &Field::Bool(number % 2 == 0)));
            assert_eq!(
                row[1],
                if number % 2 == 0 { Field::ULong(u64::MAX - number) } else { Field::Null }
            );
            assert_eq!(row[2], if number % 5 == 0 { Field::Null } else { Field::Double(0.25) });
        }
    }

    #[test]
    fn no_rows_are_a_file_too_and_other_rows_are_refused() {
        let mut file = Vec::new();
        let mut table = ParquetTable::new(&mut file, &Layout::of_every_kind()).unwrap();
        assert!(table.row([Cell::Number(None)]).is_err());
        let mut empty = Vec::new();
        ParquetTable::new(&mut empty, &Layout::of_every_kind()).unwrap().finish().unwrap();
        assert_eq!(read(empty).len(), 0);
    }
}
