//! What a table is made of: columns with names, kinds, meanings.

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use std::borrow::Cow;
use std::sync::Arc;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// The number of a CPU: 16 bits, unsigned.
    Cpu,
    /// 64 bits, unsigned: counts, ns, line numbers, identities.
    Unsigned,
    /// 64 bits, signed.
    Signed,
    /// 64 bits, floating.
    Float,
    /// True or false.
    Boolean,
    /// UTF-8.
    Text,
}

impl ColumnKind {
    /// As Arrow calls it.
    #[must_use]
    pub const fn data_type(self) -> DataType {
        match self {
            Self::Cpu => DataType::UInt16,
            Self::Unsigned => DataType::UInt64,
            Self::Signed => DataType::Int64,
            Self::Float => DataType::Float64,
            Self::Boolean => DataType::Boolean,
            Self::Text => DataType::Utf8,
        }
    }

    /// As the guide calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "uint16",
            Self::Unsigned => "uint64",
            Self::Signed => "int64",
            Self::Float => "double",
            Self::Boolean => "bool",
            Self::Text => "string",
        }
    }
}

/// One column. Every column may be null: not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name, the unit last.
    pub name: Cow<'static, str>,
    /// What it holds.
    pub kind: ColumnKind,
    /// What it means, and when it is null.
    pub meaning: Cow<'static, str>,
}

impl Column {
    pub(crate) const fn new(name: &'static str, kind: ColumnKind, meaning: &'static str) -> Self {
        Self { name: Cow::Borrowed(name), kind, meaning: Cow::Borrowed(meaning) }
    }
}

/// A table: its name and its columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableLayout {
    /// Its name: that of a file, without its ending.
    pub name: &'static str,
    /// What a row is.
    pub row: &'static str,
    /// In their order.
    pub columns: Vec<Column>,
}

impl TableLayout {
    pub(crate) fn new(name: &'static str, row: &'static str, columns: &[Column]) -> Self {
        Self { name, row, columns: columns.to_vec() }
    }

    /// As Arrow has it.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        let field = |column: &Column| Field::new(column.name.clone(), column.kind.data_type(), true);
        Arc::new(Schema::new(self.columns.iter().map(field).collect::<Vec<_>>()))
    }
}
