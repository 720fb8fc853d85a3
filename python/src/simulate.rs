//! Simulated runs: one scenario, and sweeps.

use crate::answer::Answer;
use crate::ask::json;
use crate::table::Table;
use crate::watch::{Interrupt, refused};
use pyo3::prelude::*;
use quietcore_answers::{AnswerError, Sweep, SweepKey, SweepRequest, SweepRun, parsed_scenario};
use quietcore_core::Nanos;
use quietcore_sim::SimOptions;
use quietcore_tables::{RunTable, verdicts};
use std::num::NonZero;
use std::path::PathBuf;

/// A scenario, run on simulated CPUs: `runs`, `verdicts`.
#[pyfunction]
#[pyo3(signature = (scenario, *, seed=None, duration_ns=None))]
pub(crate) fn sim(
    py: Python<'_>,
    scenario: PathBuf,
    seed: Option<u64>,
    duration_ns: Option<u64>,
) -> PyResult<Answer> {
    let mut parsed = parsed_scenario(&scenario).map_err(refused)?;
    seed.into_iter().for_each(|seed| parsed.set_seed(seed));
    duration_ns.into_iter().for_each(|nanos| parsed.set_duration(Nanos(nanos)));
    let interrupt = Interrupt::default();
    let mut progress = |_: quietcore_sim::SimProgress<'_>| interrupt.goes_on();
    let ran = py.detach(|| parsed.run(SimOptions::default(), &mut progress, &mut |_| Ok(None)));
    let outcome = ran.map_err(refused)?.ok_or_else(|| interrupt.error(&AnswerError::Interrupted))?;
    let mut runs = RunTable::new(&[]);
    runs.take(&scenario.display().to_string(), &[], &outcome);
    let runs = Table::new("runs", runs.layout().schema(), vec![runs.take_batch()]);
    Ok(Answer::of_tables(vec![runs, Table::of(verdicts(&outcome))], json(&outcome)?))
}

/// What of a sweep has a usual value.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct SweepOptions {
    seeds: Option<(u64, u64)>,
    threads: Option<NonZero<usize>>,
    /// How the rows call the scenario, if not by its path.
    name: Option<String>,
}

/// A scenario over a grid of values and seeds, the first and the last of which are given: `runs`.
#[pyfunction]
pub(crate) fn sweep(
    py: Python<'_>,
    scenario: PathBuf,
    grid: Vec<(String, Vec<String>)>,
    options: SweepOptions,
) -> PyResult<Table> {
    let name = options.name.unwrap_or_else(|| scenario.display().to_string());
    let keys = grid.into_iter().map(|(key, values)| SweepKey { key, values }).collect();
    let seeds = options.seeds.map(|(first, last)| first..=last);
    let sweep = Sweep::plan(&SweepRequest { scenario, keys, seeds }).map_err(refused)?;
    let threads = options.threads.or_else(|| std::thread::available_parallelism().ok());
    let mut table = RunTable::new(sweep.keys());
    let interrupt = Interrupt::default();
    let mut take = |run: SweepRun| -> Result<(), AnswerError> {
        table.take(&name, &run.values, &run.outcome);
        Ok(())
    };
    let swept = py.detach(|| sweep.run(threads.map_or(1, NonZero::get), &|_| interrupt.goes_on(), &mut take));
    swept.map_err(|error| interrupt.error(&error))?;
    Ok(Table::new("runs", table.layout().schema(), vec![table.take_batch()]))
}

/// Refuses a scenario or a grid with a mistake; runs nothing.
#[pyfunction]
pub(crate) fn check_sweep(scenario: PathBuf, grid: Vec<(String, Vec<String>)>) -> PyResult<()> {
    let keys = grid.into_iter().map(|(key, values)| SweepKey { key, values }).collect();
    Sweep::plan(&SweepRequest { scenario, keys, seeds: None }).map(drop).map_err(refused)
}
