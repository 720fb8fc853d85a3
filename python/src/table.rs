//! A table that every library of Arrow's can take without a copy, by the PyCapsule protocol.

use crate::watch::refused;
use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int64Type, UInt16Type, UInt64Type};
use arrow_array::{Array, RecordBatch, RecordBatchIterator};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{DataType, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};
use quietcore_tables::{ParquetFile, TableLayout, layouts};

/// Rows with named columns: take it with pandas, Polars, DuckDB or pyarrow.
#[pyclass(frozen, module = "quietcore")]
#[derive(Debug)]
pub(crate) struct Table {
    name: String,
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    pub(crate) fn new(name: &str, schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self { name: name.to_owned(), schema, batches }
    }

    pub(crate) fn of(rows: quietcore_tables::TableRows) -> Self {
        let (name, schema) = (rows.layout().name, rows.layout().schema());
        Self::new(name, schema, vec![rows.into_batch()])
    }

    pub(crate) fn table_name(&self) -> String {
        self.name.clone()
    }

    /// The same rows again: columns are shared.
    pub(crate) fn shared(&self) -> Self {
        Self::new(&self.name, self.schema.clone(), self.batches.clone())
    }
}

#[pymethods]
impl Table {
    /// What the guide calls it.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// How many rows there are.
    #[getter]
    fn num_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// The columns, in their order.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.num_rows()
    }

    fn __repr__(&self) -> String {
        let (name, rows, columns) = (&self.name, self.num_rows(), self.column_names().join(", "));
        format!("<quietcore.Table {name}: {rows} rows of {columns}>")
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.schema.as_ref()).map_err(refused)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    #[pyo3(signature = (requested_schema=None))]
    pub(crate) fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The protocol lets a producer ignore it; its consumers convert.
        drop(requested_schema);
        let batches: Vec<_> = self.batches.iter().cloned().map(Ok).collect();
        let reader = RecordBatchIterator::new(batches, self.schema.clone());
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// A dictionary for each row, without any other library.
    fn to_pylist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let rows = PyList::empty(py);
        for batch in &self.batches {
            for row in 0..batch.num_rows() {
                let cells = PyDict::new(py);
                for (field, column) in self.schema.fields().iter().zip(batch.columns()) {
                    cells.set_item(field.name(), cell(py, column.as_ref(), row)?)?;
                }
                rows.append(cells)?;
            }
        }
        Ok(rows)
    }

    /// Writes a Parquet file, compressed with zstd; it appears under its name whole.
    fn write_parquet(&self, py: Python<'_>, path: std::path::PathBuf) -> PyResult<()> {
        py.detach(|| self.write(&path))
            .map_err(|error| refused(format!("writing {}: {error}", path.display())))
    }
}

impl Table {
    fn write(&self, path: &std::path::Path) -> std::io::Result<()> {
        let name = path.file_name().ok_or(std::io::ErrorKind::IsADirectory)?;
        let temporary = path.with_file_name(format!(".{}.{}.tmp", name.display(), std::process::id()));
        let written = self.write_to(&temporary).and_then(|()| std::fs::rename(&temporary, path));
        if written.is_err() {
            // It may not have been made at all.
            let _ = std::fs::remove_file(&temporary);
        }
        written
    }

    fn write_to(&self, path: &std::path::Path) -> std::io::Result<()> {
        let file = std::fs::OpenOptions::new().write(true).create_new(true).open(path)?;
        let mut file = ParquetFile::with_schema(std::io::BufWriter::new(file), &self.schema)?;
        self.batches.iter().try_for_each(|batch| file.write(batch))?;
        file.finish()?.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all()
    }
}

fn cell<'py>(py: Python<'py>, column: &dyn Array, row: usize) -> PyResult<Bound<'py, PyAny>> {
    if column.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    Ok(match column.data_type() {
        DataType::UInt16 => column.as_primitive::<UInt16Type>().value(row).into_pyobject(py)?.into_any(),
        DataType::UInt64 => column.as_primitive::<UInt64Type>().value(row).into_pyobject(py)?.into_any(),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).into_pyobject(py)?.into_any(),
        DataType::Float64 => column.as_primitive::<Float64Type>().value(row).into_pyobject(py)?.into_any(),
        DataType::Boolean => column.as_boolean().value(row).into_pyobject(py)?.to_owned().into_any(),
        DataType::Utf8 => column.as_string::<i32>().value(row).into_pyobject(py)?.into_any(),
        other => return Err(refused(format!("a column of {other}"))),
    })
}

/// The layout of a table of the guide.
pub(crate) fn layout(name: &str) -> TableLayout {
    layouts().into_iter().find(|layout| layout.name == name).expect("a table of the guide")
}
