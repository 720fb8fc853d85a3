//! A recording as three Parquet files, in one pass: `events`, `timers` and `disturbances`.
//!
//! Invariant: no more than a batch and a row group of each file are in memory.

use crate::answers::disturbances;
use crate::events::EventTable;
use crate::guide::layouts;
use crate::layout::TableLayout;
use crate::parquet_file::ParquetFile;
use crate::rows::TableRows;
use crate::timers::TimerTable;
use quietcore_explain::{Explain, ExplainOptions};
use quietcore_trace::{Record, Tally};
use std::io::{self, Write};

/// Rows that are handed on at once.
const BATCH_ROWS: usize = 1 << 14;

/// How many rows each file has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportCounts {
    /// Of `events`.
    pub events: u64,
    /// Of `timers`.
    pub timers: u64,
    /// Of `disturbances`.
    pub disturbances: u64,
}

/// Takes events, writes files.
#[derive(Debug)]
pub struct ExportTables<W: Write + Send> {
    events: EventTable,
    timers: TimerTable,
    explain: Explain,
    files: [ParquetFile<W>; 3],
    counts: ExportCounts,
    failed: Option<io::Error>,
}

impl<W: Write + Send> ExportTables<W> {
    /// The names of the files, without their ending, in the order of [`ExportTables::new`].
    pub const NAMES: [&'static str; 3] = ["events", "timers", "disturbances"];

    /// With what an explanation must know, and an output for each of [`ExportTables::NAMES`].
    ///
    /// # Errors
    /// Those of the outputs.
    pub fn new(options: ExplainOptions, outputs: [W; 3]) -> io::Result<Self> {
        let [events, timers, disturbed] = outputs;
        let files = [
            ParquetFile::new(events, &named(Self::NAMES[0]))?,
            ParquetFile::new(timers, &named(Self::NAMES[1]))?,
            ParquetFile::new(disturbed, &named(Self::NAMES[2]))?,
        ];
        Ok(Self {
            events: EventTable::new(),
            timers: TimerTable::new(options.isolated.clone(), options.identities_max),
            explain: Explain::new(options),
            files,
            counts: ExportCounts::default(),
            failed: None,
        })
    }

    /// Takes the next event. An error of an output is kept and told by [`ExportTables::finish`].
    pub fn take(&mut self, record: &Record<'_>) {
        self.explain.take(record);
        self.events.take(record);
        self.timers.take(record);
        if self.events.rows().len() >= BATCH_ROWS && self.failed.is_none() {
            self.failed = self.write().err();
        }
    }

    /// The error of an output, if there was one.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.failed.is_some()
    }

    fn write(&mut self) -> io::Result<()> {
        let [events, timers, _] = &mut self.files;
        self.counts.events += write(events, self.events.rows())?;
        self.counts.timers += write(timers, self.timers.rows())?;
        Ok(())
    }

    /// Writes what is left; returns the outputs and how many rows each has.
    ///
    /// # Errors
    /// Those of the outputs.
    pub fn finish(mut self, tally: &Tally) -> io::Result<([W; 3], ExportCounts)> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        self.timers.finish();
        self.write()?;
        let mut disturbed = disturbances(&self.explain.finish(tally));
        self.counts.disturbances = write(&mut self.files[2], &mut disturbed)?;
        let [events, timers, disturbed] = self.files;
        Ok(([events.finish()?, timers.finish()?, disturbed.finish()?], self.counts))
    }
}

/// Hands the rows on; returns how many there were.
fn write<W: Write + Send>(file: &mut ParquetFile<W>, rows: &mut TableRows) -> io::Result<u64> {
    let count = rows.len() as u64;
    if count > 0 {
        file.write(&rows.take_batch())?;
    }
    Ok(count)
}

fn named(name: &str) -> TableLayout {
    layouts().into_iter().find(|layout| layout.name == name).expect("a table of the guide")
}
