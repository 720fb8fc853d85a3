//! `quietcore export TRACE --parquet DIR`: a recording as tables, for DuckDB, pandas, Polars, Spark.
//!
//! One pass; files appear at the end, all of them whole, or none.

use crate::args::expansion::ExpansionArgs;
use crate::args::value::cpus;
use crate::atomic_file::{AtomicFile, OutputContent};
use crate::error::CliError;
use crate::outcome::CommandOutcome;
use crate::output;
use crate::progress::Display;
use crate::signals::SignalFlag;
use crate::text::Page;
use clap::Args;
use quietcore_answers::{AnswerError, ExplainRequest, read_all};
use quietcore_core::CpuSet;
use quietcore_tables::{ExportCounts, ExportTables};
use quietcore_trace::{IDENTITIES_MAX, visible_path};
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};

const EXIT_CODES: &str = "\
Exit codes: 0 the tables are there; 2 an error, or 130 interrupted: nothing is.";

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct ExportArgs {
    /// A trace: text of tracefs, `trace-cmd report` or `perf script` (or a .gz, .xz, .zst of it), a
    /// trace.dat, a perf.data, a Perfetto trace; `-` is standard input, @g612-c16-iso a recording of the
    /// program
    pub(crate) trace: PathBuf,
    /// Write events.parquet, timers.parquet (armed, held and run on which CPU) and disturbances.parquet into
    /// this folder, which is made if it is not there; files of these names are replaced
    #[arg(long, value_name = "FOLDER")]
    pub(crate) parquet: PathBuf,
    /// The CPUs that must stay quiet, as 1-7,9, or none [default: the recording's list, else the host's]
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    pub(crate) isolated: Option<CpuSet>,
    /// The kernel release that wrote the trace, as 6.12, when the trace does not say
    #[arg(long, value_name = "RELEASE")]
    pub(crate) kernel: Option<String>,
    /// Remember at most this many timers, and as many hrtimers
    #[arg(long, value_name = "COUNT", default_value_t = IDENTITIES_MAX, value_parser = crate::args::value::identities)]
    pub(crate) max_identities: usize,
    #[command(flatten)]
    pub(crate) expansion: ExpansionArgs,
    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// The JSON of `quietcore export --json`, schema 1.
#[derive(Debug, Serialize)]
struct Exported {
    schema: u32,
    files: Vec<ExportedFile>,
}

#[derive(Debug, Serialize)]
struct ExportedFile {
    path: String,
    rows: u64,
}

/// The folder, if it was made here; it goes again unless it is kept.
struct Folder<'a> {
    path: &'a Path,
    is_new: bool,
}

impl<'a> Folder<'a> {
    fn make(path: &'a Path) -> Result<Self, CliError> {
        match std::fs::create_dir(path) {
            Ok(()) => Ok(Self { path, is_new: true }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(Self { path, is_new: false }),
            Err(error) => Err(CliError::Write(path.to_owned(), error)),
        }
    }

    fn keep(mut self) {
        self.is_new = false;
    }
}

impl Drop for Folder<'_> {
    fn drop(&mut self) {
        if self.is_new {
            // It may have files of others by now; then it stays.
            let _ = std::fs::remove_dir(self.path);
        }
    }
}

pub(crate) fn run(args: &ExportArgs) -> Result<CommandOutcome, CliError> {
    let request = ExplainRequest {
        path: args.trace.clone(),
        isolated: args.isolated.clone(),
        kernel: args.kernel.clone(),
        identities_max: args.max_identities,
        expansion_max: args.expansion.max_expansion,
        threads: None,
    };
    let folder = Folder::make(&args.parquet)?;
    let paths = ExportTables::<AtomicFile>::NAMES.map(|name| args.parquet.join(format!("{name}.parquet")));
    let counts = export(&request, &paths)?;
    folder.keep();
    show(args, &paths, counts)?;
    Ok(CommandOutcome::Fine)
}

fn export(request: &ExplainRequest, paths: &[PathBuf; 3]) -> Result<ExportCounts, CliError> {
    let path = &request.path;
    let mut reader = request.open()?;
    reader.read_header().map_err(|error| AnswerError::Read(path.clone(), error))?;
    let options = request.options(reader.header())?;
    let create = |path: &PathBuf| AtomicFile::create(path, OutputContent::Ordinary);
    let files = [create(&paths[0])?, create(&paths[1])?, create(&paths[2])?];
    let failed = |error| CliError::Write(paths[0].with_file_name(""), error);
    let mut tables = ExportTables::new(options, files).map_err(failed)?;
    // Only where reading never waits: elsewhere the system's own way of Ctrl-C is the one that ends it.
    let is_file = path.metadata().is_ok_and(|found| found.is_file());
    let interrupt = if is_file { Some(SignalFlag::install()?) } else { None };
    let mut display = Display::new();
    let mut watch = |at: quietcore_answers::ReadSoFar| {
        display.show(|| at.to_string());
        !interrupt.as_ref().is_some_and(SignalFlag::arrived)
    };
    let read = read_all(path, &mut reader, &mut watch, &mut |record| tables.take(record));
    display.clear();
    read?;
    let (files, counts) = tables.finish(reader.tally()).map_err(failed)?;
    files.into_iter().try_for_each(AtomicFile::finish)?;
    Ok(counts)
}

fn show(args: &ExportArgs, paths: &[PathBuf; 3], counts: ExportCounts) -> Result<(), CliError> {
    let rows = [counts.events, counts.timers, counts.disturbances];
    let files = paths.iter().zip(rows);
    let files = files.map(|(path, rows)| ExportedFile { path: visible_path(path), rows }).collect();
    let exported = Exported { schema: 1, files };
    if args.json {
        return output::print_json(&exported);
    }
    Page::print(|page| {
        for ExportedFile { path, rows } in &exported.files {
            page.line(&format!("{rows:>12} rows  {path}"));
        }
    })
}
