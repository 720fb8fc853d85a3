//! A table as a Parquet file, row group by row group.
//!
//! The columns are handed to the writer of Parquet one by one; its own way from Arrow to Parquet knows all of
//! Arrow, a seventh of the command. Invariant: at most one row group is in memory.

use crate::layout::TableLayout;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt16Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType, ZstdLevel};
use parquet::data_type as parquet_types;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;
use std::io::{self, Write};
use std::sync::Arc;

/// Most rows of a row group: some tens of MiB before they are written.
const GROUP_ROWS: usize = 1 << 18;

/// Writes a Parquet file, compressed with zstd.
pub struct ParquetFile<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    /// The rows of the next row group.
    waiting: Vec<RecordBatch>,
    rows: usize,
}

impl<W: Write + Send> std::fmt::Debug for ParquetFile<W> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("ParquetFile").field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl<W: Write + Send> ParquetFile<W> {
    /// A file with these columns.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(out: W, layout: &TableLayout) -> io::Result<Self> {
        Self::with_schema(out, &layout.schema())
    }

    /// A file with the columns of this schema: of the kinds that a [`TableLayout`] has.
    ///
    /// # Errors
    /// Those of `out`, and a column of another kind.
    pub fn with_schema(out: W, schema: &SchemaRef) -> io::Result<Self> {
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_created_by(concat!("quietcore ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let message = message_of(schema).map_err(failed)?;
        let writer =
            SerializedFileWriter::new(out, Arc::new(message), Arc::new(properties)).map_err(failed)?;
        Ok(Self { writer, waiting: vec![], rows: 0 })
    }

    /// Adds rows of these columns.
    ///
    /// # Errors
    /// Those of the output.
    ///
    /// # Panics
    /// When the batch has other columns than the file.
    pub fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        let mut taken = 0;
        while taken < batch.num_rows() {
            let rows = (batch.num_rows() - taken).min(GROUP_ROWS - self.rows);
            self.waiting.push(batch.slice(taken, rows));
            self.rows += rows;
            taken += rows;
            if self.rows == GROUP_ROWS {
                self.write_group().map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Writes what is left, and the table of contents; returns the output.
    ///
    /// # Errors
    /// Those of the output.
    pub fn finish(mut self) -> io::Result<W> {
        if self.rows > 0 {
            self.write_group().map_err(failed)?;
        }
        self.writer.into_inner().map_err(failed)
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        let mut index = 0;
        while let Some(mut column) = group.next_column()? {
            for batch in &self.waiting {
                write_column(&mut column, batch.column(index))?;
            }
            column.close()?;
            index += 1;
        }
        group.close()?;
        self.waiting.clear();
        self.rows = 0;
        Ok(())
    }
}

/// The columns as Parquet calls them; each may be null.
fn message_of(schema: &Schema) -> Result<Type, ParquetError> {
    let column = |field: &Arc<Field>| {
        let (physical, logical) = match field.data_type() {
            DataType::UInt16 => (PhysicalType::INT32, Some(LogicalType::integer(16, false))),
            DataType::UInt64 => (PhysicalType::INT64, Some(LogicalType::integer(64, false))),
            DataType::Int64 => (PhysicalType::INT64, None),
            DataType::Float64 => (PhysicalType::DOUBLE, None),
            DataType::Boolean => (PhysicalType::BOOLEAN, None),
            DataType::Utf8 => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
            other => return Err(ParquetError::NYI(format!("column {} of {other}", field.name()))),
        };
        let column =
            Type::primitive_type_builder(field.name(), physical).with_repetition(Repetition::OPTIONAL);
        column.with_logical_type(logical).build().map(Arc::new)
    };
    let columns = schema.fields().iter().map(column).collect::<Result<_, _>>()?;
    Type::group_type_builder("table").with_fields(columns).build()
}

/// Writes the cells of an array: the place of each null, and what is not null.
fn write_column(column: &mut SerializedColumnWriter<'_>, array: &dyn Array) -> Result<(), ParquetError> {
    let levels: Vec<i16> = (0..array.len()).map(|row| i16::from(array.is_valid(row))).collect();
    match array.data_type() {
        DataType::UInt16 => {
            let cells = array.as_primitive::<UInt16Type>().iter().flatten().map(i32::from);
            write_cells::<parquet_types::Int32Type>(column, cells, &levels)
        }
        DataType::UInt64 => {
            // The same 64 bits: Parquet has no type of its own for them, but a mark.
            let cells = array.as_primitive::<UInt64Type>().iter().flatten().map(u64::cast_signed);
            write_cells::<parquet_types::Int64Type>(column, cells, &levels)
        }
        DataType::Int64 => {
            let cells = array.as_primitive::<Int64Type>().iter().flatten();
            write_cells::<parquet_types::Int64Type>(column, cells, &levels)
        }
        DataType::Float64 => {
            let cells = array.as_primitive::<Float64Type>().iter().flatten();
            write_cells::<parquet_types::DoubleType>(column, cells, &levels)
        }
        DataType::Boolean => {
            let cells = array.as_boolean().iter().flatten();
            write_cells::<parquet_types::BoolType>(column, cells, &levels)
        }
        _ => {
            let texts = array.as_string::<i32>();
            // Copied once, and shared by its cells.
            let bytes = ByteArray::from(texts.value_data().to_vec());
            let cells = (0..texts.len()).filter(|row| texts.is_valid(*row)).map(|row| {
                let start = texts.value_offsets()[row].cast_unsigned() as usize;
                bytes.slice(start, texts.value(row).len())
            });
            write_cells::<parquet_types::ByteArrayType>(column, cells, &levels)
        }
    }
}

fn write_cells<T: parquet_types::DataType>(
    column: &mut SerializedColumnWriter<'_>,
    cells: impl Iterator<Item = T::T>,
    levels: &[i16],
) -> Result<(), ParquetError> {
    column.typed::<T>().write_batch(&cells.collect::<Vec<_>>(), Some(levels), None).map(|_| ())
}

/// The output's own error, if it is one.
fn failed(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(inner) => io::Error::other(inner),
        },
        error => io::Error::other(error),
    }
}

#[cfg(test)]
mod tests {
    use super::{GROUP_ROWS, ParquetFile};
    use crate::layout::{Column, ColumnKind, TableLayout};
    use crate::rows::{Cell, TableRows};
    use arrow_array::RecordBatch;
    use arrow_schema::{DataType, Field, Schema};
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use std::fs::{self, File};
    use std::io;
    use std::sync::Arc;

    const KINDS: [ColumnKind; 6] = [
        ColumnKind::Cpu,
        ColumnKind::Unsigned,
        ColumnKind::Signed,
        ColumnKind::Float,
        ColumnKind::Boolean,
        ColumnKind::Text,
    ];

    fn layout() -> TableLayout {
        TableLayout::new("t", "", &KINDS.map(|kind| Column::new(kind.name(), kind, "")))
    }

    /// Each column is null in other rows; the largest and smallest numbers are among them.
    fn batch(rows: u64) -> RecordBatch {
        let mut table = TableRows::new(layout());
        for row in 0..rows {
            let text = "é".repeat(usize::try_from(row % 4).expect("below 4"));
            let cells: [Cell<'_>; 6] = [
                u16::MAX.wrapping_sub(u16::try_from(row % 9).expect("below 9")).into(),
                (u64::MAX - row).into(),
                (i64::MIN + i64::try_from(row).expect("few")).into(),
                (row as f64 / 3.0).into(),
                (row % 2 == 0).into(),
                text.as_str().into(),
            ];
            let cells: Vec<Cell<'_>> = (0..)
                .zip(cells)
                .map(|(column, cell)| if row % 7 == column { Cell::Null } else { cell })
                .collect();
            table.push(&cells);
        }
        table.into_batch()
    }

    /// Goal: what is read is what was written, over row groups that no batch ends with, and with the types of
    /// Arrow. Method: batches around the size of a row group, read back by Parquet's own reader.
    #[test]
    fn what_is_read_is_what_was_written() {
        let most = u64::try_from(GROUP_ROWS).expect("64 bits");
        let batches = [batch(5), batch(0), batch(most - 3), batch(1), batch(most + 7)];
        let mut file = ParquetFile::new(vec![], &layout()).expect("memory");
        batches.iter().for_each(|batch| file.write(batch).expect("memory"));
        let path = std::env::temp_dir().join(format!("quietcore-parquet-{}", std::process::id()));
        fs::write(&path, file.finish().expect("memory")).expect("a file");
        let opened = File::open(&path).expect("it is there");
        fs::remove_file(&path).expect("it is ours");

        let reader = ParquetRecordBatchReaderBuilder::try_new(opened).expect("Parquet");
        let groups = reader.metadata().row_groups().iter().map(|group| group.num_rows());
        assert_eq!(groups.collect::<Vec<_>>(), [GROUP_ROWS as i64, GROUP_ROWS as i64, 10]);
        let mut read = vec![];
        for part in reader.with_batch_size(1000).build().expect("a reader") {
            read.push(part.expect("rows"));
        }
        assert_eq!(read[0].schema(), layout().schema(), "types and names");
        let rows = |batches: &[RecordBatch]| {
            let row = |batch: &RecordBatch, row: usize| batch.slice(row, 1);
            let all = batches.iter().flat_map(|batch| (0..batch.num_rows()).map(move |at| row(batch, at)));
            all.collect::<Vec<_>>()
        };
        let (read, written) = (rows(&read), rows(&batches));
        assert_eq!(read.len(), written.len());
        let differs = read.iter().zip(&written).position(|(read, written)| read != written);
        assert_eq!(differs, None, "the first row that is another one");
    }

    /// Goal: a table without rows is a file too. Method: one, read back.
    #[test]
    fn a_table_without_rows_is_a_file() {
        let file = ParquetFile::new(vec![], &layout()).expect("memory").finish().expect("memory");
        assert!(file.starts_with(b"PAR1") && file.ends_with(b"PAR1"));
    }

    /// Goal: a column of a kind that no table has is refused by name. Method: one of dates.
    #[test]
    fn a_column_of_another_kind_is_refused() {
        let schema = Arc::new(Schema::new(vec![Field::new("day", DataType::Date32, true)]));
        let refused = ParquetFile::with_schema(io::sink(), &schema).expect_err("no kind of ours");
        assert!(refused.to_string().contains("day"), "{refused}");
    }
}
