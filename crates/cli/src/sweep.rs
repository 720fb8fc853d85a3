//! `quietcore sweep SCENARIO --set KEY=A,B --seeds 1..100 -o FILE`: a scenario over a grid and seeds, on all
//! cores; a row per variant of each run, in the order of keys and seeds.

use crate::args::value::{seeds, setting};
use crate::atomic_file::{AtomicFile, OutputContent};
use crate::error::CliError;
use crate::outcome::CommandOutcome;
use crate::output;
use crate::progress::Display;
use crate::signals::SignalFlag;
use crate::text::Page;
use clap::Args;
use quietcore_answers::{Sweep, SweepKey, SweepRequest, SweepRun, SweepSoFar};
use quietcore_sim::SimOutcome;
use quietcore_tables::{ParquetFile, RunTable, holds};
use quietcore_trace::visible_path;
use serde::Serialize;
use std::num::NonZero;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::thread::available_parallelism;

const EXIT_CODES: &str = "\
Exit codes: 0 all runs are in FILE, whatever they came to; 2 an error, or 130 interrupted: FILE is not \
written. Everything in it is simulated. The same settings and seed have the same hash on every machine.";

/// Rows that are handed on at once.
const BATCH_ROWS: usize = 1 << 12;

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct SweepArgs {
    /// A scenario's file (docs/guide/simulator.md), or one of the program, as @isolated
    pub(crate) scenario: PathBuf,
    /// A key of the scenario and the values it takes in turn, as cpus=64,128,256 or load.sleeper.count=1,8;
    /// several times: all combinations. CPU lists are joined by + there, as isolated=1-3+5,1-7
    #[arg(long = "set", value_name = "KEY=A,B", value_parser = setting)]
    pub(crate) settings: Vec<SweepKey>,
    /// The seeds from the first to the last, both of them run, as 1..100 [default: the scenario's]
    #[arg(long, value_name = "FIRST..LAST", value_parser = seeds)]
    pub(crate) seeds: Option<RangeInclusive<u64>>,
    /// Where the rows go, as Parquet (docs/guide/tables.md); replaced at the end
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Run on so many threads [default: one for each CPU]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// The JSON of `quietcore sweep --json`, schema 1.
#[derive(Debug, Serialize)]
struct Swept {
    schema: u32,
    /// Always true: no figure was measured.
    simulated: bool,
    path: String,
    runs: usize,
    rows: u64,
    /// Variants of runs of which something does not hold that the scenario expects.
    not_as_expected: u64,
}

pub(crate) fn run(args: &SweepArgs) -> Result<CommandOutcome, CliError> {
    let request = SweepRequest {
        scenario: args.scenario.clone(),
        keys: args.settings.clone(),
        seeds: args.seeds.clone(),
    };
    let sweep = Sweep::plan(&request)?;
    let file = AtomicFile::create(&args.output, OutputContent::Ordinary)?;
    let interrupt = SignalFlag::install()?;
    let mut swept = Swept {
        schema: 1,
        simulated: true,
        path: visible_path(&args.output),
        runs: sweep.runs(),
        rows: 0,
        not_as_expected: 0,
    };
    write(args, &sweep, file, &interrupt, &mut swept)?;
    show(args, &swept)?;
    Ok(CommandOutcome::Fine)
}

fn write(
    args: &SweepArgs,
    sweep: &Sweep,
    file: AtomicFile,
    interrupt: &SignalFlag,
    swept: &mut Swept,
) -> Result<(), CliError> {
    let failed = |error| CliError::Write(args.output.clone(), error);
    let name = visible_path(&args.scenario);
    let mut table = RunTable::new(sweep.keys());
    let mut file = ParquetFile::new(file, table.layout()).map_err(failed)?;
    let display = Mutex::new(Display::new());
    let watch = |at: SweepSoFar| {
        let mut display = display.lock().unwrap_or_else(PoisonError::into_inner);
        display.show(|| format!("{} of {} runs", at.done, at.of));
        !interrupt.arrived()
    };
    let mut take = |run: SweepRun| -> Result<(), CliError> {
        table.take(&name, &run.values, &run.outcome);
        swept.rows += run.outcome.variants.len() as u64;
        swept.not_as_expected += not_as_expected(&run.outcome);
        if table.len() >= BATCH_ROWS {
            file.write(&table.take_batch()).map_err(failed)?;
        }
        Ok(())
    };
    let threads = args.threads.map_or_else(|| available_parallelism().map_or(1, NonZero::get), usize::from);
    let ran = sweep.run(threads, &watch, &mut take);
    display.lock().unwrap_or_else(PoisonError::into_inner).clear();
    ran?;
    file.write(&table.take_batch()).map_err(failed)?;
    file.finish().map_err(failed)?.finish()
}

fn not_as_expected(outcome: &SimOutcome) -> u64 {
    outcome.variants.iter().filter(|variant| holds(outcome, &variant.label) == Some(false)).count() as u64
}

fn show(args: &SweepArgs, swept: &Swept) -> Result<(), CliError> {
    if args.json {
        return output::print_json(swept);
    }
    let Swept { path, runs, rows, not_as_expected, .. } = swept;
    Page::print(|page| {
        page.line(&format!("{runs} runs, {rows} rows in {path} (simulated)"));
        if *not_as_expected > 0 {
            page.line(&format!(
                "{not_as_expected} of the rows are not as the scenario expects (column holds)"
            ));
        }
    })
}
