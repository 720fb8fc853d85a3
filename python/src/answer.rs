//! Several tables about one input, and the command's JSON of the same.

use crate::table::Table;
use pyo3::exceptions::{PyAttributeError, PyKeyError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use quietcore_tables::TableRows;

/// The tables of one answer, by name; taken as one table, it is the first of them.
#[pyclass(frozen, module = "quietcore")]
#[derive(Debug)]
pub(crate) struct Answer {
    tables: Vec<Table>,
    json: String,
}

impl Answer {
    pub(crate) fn new(tables: impl IntoIterator<Item = TableRows>, json: String) -> Self {
        Self { tables: tables.into_iter().map(Table::of).collect(), json }
    }

    pub(crate) fn of_tables(tables: Vec<Table>, json: String) -> Self {
        Self { tables, json }
    }

    fn find(&self, name: &str) -> Option<Table> {
        let names = self.tables.iter().zip(self.keys());
        names.into_iter().find(|(_, known)| *known == name).map(|(table, _)| table.shared())
    }
}

#[pymethods]
impl Answer {
    /// The names of the tables, the main one first.
    fn keys(&self) -> Vec<String> {
        self.tables.iter().map(Table::table_name).collect()
    }

    /// What the command prints with `--json`.
    #[getter]
    fn json(&self) -> &str {
        &self.json
    }

    fn __getitem__(&self, name: &str) -> PyResult<Table> {
        self.find(name).ok_or_else(|| PyKeyError::new_err(name.to_owned()))
    }

    fn __getattr__(&self, name: &str) -> PyResult<Table> {
        let why = || format!("no table {name:?}; there are {}", self.keys().join(", "));
        self.find(name).ok_or_else(|| PyAttributeError::new_err(why()))
    }

    fn __dir__(&self) -> Vec<String> {
        [self.keys(), vec!["json".to_owned(), "keys".to_owned()]].concat()
    }

    fn __len__(&self) -> usize {
        self.tables.len()
    }

    fn __repr__(&self) -> String {
        format!("<quietcore.Answer: {}>", self.keys().join(", "))
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        self.tables[0].__arrow_c_stream__(py, requested_schema)
    }
}
