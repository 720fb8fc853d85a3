//! Rows on their way into columns. A cell that is not known is null.

use crate::layout::{ColumnKind, TableLayout};
use arrow_array::builder::{BooleanBuilder, Float64Builder, Int64Builder, StringBuilder};
use arrow_array::builder::{UInt16Builder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use std::sync::Arc;

/// What a row has in one column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// Not known, or nothing that this row has.
    Null,
    /// A count, a number of ns, an identity, or a CPU's number.
    Unsigned(u64),
    /// A number that may be negative.
    Signed(i64),
    /// A number that need not be whole.
    Float(f64),
    /// True or false.
    Boolean(bool),
    /// A text.
    Text(&'a str),
}

impl From<u64> for Cell<'_> {
    fn from(value: u64) -> Self {
        Self::Unsigned(value)
    }
}

impl From<u16> for Cell<'_> {
    fn from(value: u16) -> Self {
        Self::Unsigned(u64::from(value))
    }
}

impl From<i64> for Cell<'_> {
    fn from(value: i64) -> Self {
        Self::Signed(value)
    }
}

impl From<f64> for Cell<'_> {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<bool> for Cell<'_> {
    fn from(value: bool) -> Self {
        Self::Boolean(value)
    }
}

impl<'a> From<&'a str> for Cell<'a> {
    fn from(value: &'a str) -> Self {
        Self::Text(value)
    }
}

impl<'a> From<&'a String> for Cell<'a> {
    fn from(value: &'a String) -> Self {
        Self::Text(value)
    }
}

impl<'a, T: Into<Cell<'a>>> From<Option<T>> for Cell<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

#[derive(Debug)]
enum ColumnBuilder {
    Cpu(UInt16Builder),
    Unsigned(UInt64Builder),
    Signed(Int64Builder),
    Float(Float64Builder),
    Boolean(BooleanBuilder),
    Text(StringBuilder),
}

impl ColumnBuilder {
    fn of(kind: ColumnKind) -> Self {
        match kind {
            ColumnKind::Cpu => Self::Cpu(UInt16Builder::new()),
            ColumnKind::Unsigned => Self::Unsigned(UInt64Builder::new()),
            ColumnKind::Signed => Self::Signed(Int64Builder::new()),
            ColumnKind::Float => Self::Float(Float64Builder::new()),
            ColumnKind::Boolean => Self::Boolean(BooleanBuilder::new()),
            ColumnKind::Text => Self::Text(StringBuilder::new()),
        }
    }

    fn push(&mut self, cell: Cell<'_>) {
        match (self, cell) {
            (Self::Cpu(column), Cell::Unsigned(value)) => column.append_option(u16::try_from(value).ok()),
            (Self::Unsigned(column), Cell::Unsigned(value)) => column.append_value(value),
            (Self::Signed(column), Cell::Signed(value)) => column.append_value(value),
            (Self::Float(column), Cell::Float(value)) => column.append_value(value),
            (Self::Boolean(column), Cell::Boolean(value)) => column.append_value(value),
            (Self::Text(column), Cell::Text(value)) => column.append_value(value),
            (column, Cell::Null) => column.push_null(),
            (column, cell) => panic!("{cell:?} in a column of another kind: {column:?}"),
        }
    }

    fn push_null(&mut self) {
        match self {
            Self::Cpu(column) => column.append_null(),
            Self::Unsigned(column) => column.append_null(),
            Self::Signed(column) => column.append_null(),
            Self::Float(column) => column.append_null(),
            Self::Boolean(column) => column.append_null(),
            Self::Text(column) => column.append_null(),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Cpu(column) => Arc::new(column.finish()),
            Self::Unsigned(column) => Arc::new(column.finish()),
            Self::Signed(column) => Arc::new(column.finish()),
            Self::Float(column) => Arc::new(column.finish()),
            Self::Boolean(column) => Arc::new(column.finish()),
            Self::Text(column) => Arc::new(column.finish()),
        }
    }
}

/// Rows of one table.
#[derive(Debug)]
pub struct TableRows {
    layout: TableLayout,
    builders: Vec<ColumnBuilder>,
    rows: usize,
}

impl TableRows {
    /// Without rows.
    #[must_use]
    pub fn new(layout: TableLayout) -> Self {
        let builders = layout.columns.iter().map(|column| ColumnBuilder::of(column.kind)).collect();
        Self { layout, builders, rows: 0 }
    }

    /// Its columns.
    #[must_use]
    pub fn layout(&self) -> &TableLayout {
        &self.layout
    }

    /// Rows that wait to be taken.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Adds a row: a cell for each column, in their order.
    ///
    /// # Panics
    /// When there are more or fewer cells than columns, or one is of another kind than its column.
    pub fn push(&mut self, cells: &[Cell<'_>]) {
        assert_eq!(cells.len(), self.builders.len(), "cells of a row of {}", self.layout.name);
        for (builder, cell) in self.builders.iter_mut().zip(cells) {
            builder.push(*cell);
        }
        self.rows += 1;
    }

    /// The rows so far; those that are pushed from now on are others.
    ///
    /// # Panics
    /// Never: all columns have one length, and their kinds are the layout's.
    pub fn take_batch(&mut self) -> RecordBatch {
        self.rows = 0;
        let columns = self.builders.iter_mut().map(ColumnBuilder::finish).collect();
        RecordBatch::try_new(self.layout.schema(), columns).expect("columns of one length")
    }

    /// All rows.
    #[must_use]
    pub fn into_batch(mut self) -> RecordBatch {
        self.take_batch()
    }
}

#[cfg(test)]
mod tests {
    use super::{Cell, TableRows};
    use crate::layout::{Column, ColumnKind, TableLayout};
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::UInt64Type;

    /// Goal: what is not known is null, and 0 is 0. Method: one of each kind, both in every column.
    #[test]
    fn what_is_not_known_is_null() {
        let kinds = [
            (ColumnKind::Cpu, Cell::Unsigned(0)),
            (ColumnKind::Unsigned, Cell::Unsigned(0)),
            (ColumnKind::Signed, Cell::Signed(0)),
            (ColumnKind::Float, Cell::Float(0.0)),
            (ColumnKind::Boolean, Cell::Boolean(false)),
            (ColumnKind::Text, Cell::Text("")),
        ];
        for (kind, zero) in kinds {
            let layout = TableLayout::new("t", "", &[Column::new("c", kind, "")]);
            let mut rows = TableRows::new(layout);
            rows.push(&[zero]);
            rows.push(&[Cell::Null]);
            assert_eq!((rows.len(), rows.is_empty()), (2, false));
            let batch = rows.into_batch();
            let column = batch.column(0);
            assert_eq!((column.is_null(0), column.is_null(1)), (false, true), "{kind:?}");
            assert_eq!(column.data_type(), &kind.data_type());
        }
    }

    /// Goal: a batch has the rows since the last one. Method: three rows, taken after two.
    #[test]
    fn a_batch_has_the_rows_since_the_last_one() {
        let mut rows =
            TableRows::new(TableLayout::new("t", "", &[Column::new("c", ColumnKind::Unsigned, "")]));
        (1..=2_u64).for_each(|value| rows.push(&[value.into()]));
        let first = rows.take_batch();
        assert!(rows.is_empty());
        rows.push(&[3_u64.into()]);
        let second = rows.take_batch();
        let values =
            |batch: &arrow_array::RecordBatch| batch.column(0).as_primitive::<UInt64Type>().values().to_vec();
        assert_eq!((values(&first), values(&second)), (vec![1, 2], vec![3]));
    }
}
