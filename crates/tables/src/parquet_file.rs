//! A table as a Parquet file, row group by row group.
//!
//! Invariant: at most one row group is in memory, compressed.

use crate::layout::TableLayout;
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use std::io::{self, Write};

/// Rows of a row group: some MiB, compressed.
const GROUP_ROWS: usize = 1 << 18;

/// Writes a Parquet file, compressed with zstd.
#[derive(Debug)]
pub struct ParquetFile<W: Write + Send> {
    writer: ArrowWriter<W>,
}

impl<W: Write + Send> ParquetFile<W> {
    /// A file with these columns.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(out: W, layout: &TableLayout) -> io::Result<Self> {
        Self::with_schema(out, layout.schema())
    }

    /// A file with the columns of this schema.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn with_schema(out: W, schema: SchemaRef) -> io::Result<Self> {
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .set_created_by(concat!("quietcore ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let writer = ArrowWriter::try_new(out, schema, Some(properties)).map_err(failed)?;
        Ok(Self { writer })
    }

    /// Adds rows of these columns.
    ///
    /// # Errors
    /// Those of the output.
    pub fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        self.writer.write(batch).map_err(failed)
    }

    /// Bytes of memory that hold rows which are not written yet.
    #[must_use]
    pub fn bytes_held(&self) -> usize {
        self.writer.memory_size()
    }

    /// Writes what is left, and the table of contents; returns the output.
    ///
    /// # Errors
    /// Those of the output.
    pub fn finish(self) -> io::Result<W> {
        self.writer.into_inner().map_err(failed)
    }
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
