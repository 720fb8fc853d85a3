//! What quietcore says of recordings and runs, as Arrow tables: for pandas, Polars, DuckDB, Spark.
//!
//! - **Of a recording, while it is read**: [`EventTable`] has a row per event, [`TimerTable`] one per timer
//!   that ran, with the CPUs that armed it, held it and ran it. Both hand out batches, so a recording is
//!   never in memory as a whole.
//! - **Of an answer**: [`figures`], [`findings`], [`disturbances`] (of an explanation), [`verification`],
//!   [`mismatches`], [`whatif`], [`diff`].
//! - **Of simulated runs**: [`RunTable`], for one scenario and for sweeps.
//! - **Files**: [`ParquetFile`].
//!
//! Invariants: a column's unit is in its name (`_ns`), what is not known is null and never 0, and a row's
//! order is that of its input. `docs/guide/tables.md` describes every column; [`layouts`] has the same text.
//!
//! ```
//! use quietcore_answers::{ExplainRequest, explain};
//!
//! let report = explain(&ExplainRequest::new("@g612-c16-iso"), &mut |_| true)?;
//! let batch = quietcore_tables::figures(&report).into_batch();
//! assert_eq!(batch.schema().field(0).name(), "figure");
//! assert_eq!(batch.num_rows(), 16);
//! # Ok::<(), quietcore_answers::AnswerError>(())
//! ```

#![forbid(unsafe_code)]

mod answers;
mod events;
mod export;
mod guide;
mod layout;
mod parquet_file;
mod rows;
mod runs;
mod timers;

pub use answers::{diff, disturbances, figures, findings, mismatches, verification, whatif};
pub use events::EventTable;
pub use export::{ExportCounts, ExportTables};
pub use guide::layouts;
pub use layout::{Column, ColumnKind, TableLayout};
pub use parquet_file::ParquetFile;
pub use rows::{Cell, TableRows};
pub use runs::{RunTable, holds, verdicts};
pub use timers::TimerTable;
