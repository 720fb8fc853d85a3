//! Questions about recordings: explain, events, timers, verify, whatif, diff.

use crate::answer::Answer;
use crate::table::{Table, layout};
use crate::watch::{Interrupt, refused};
use arrow_array::RecordBatch;
use pyo3::prelude::*;
use quietcore_answers::{AnswerError, DiffRequest, ExplainRequest, WhatifRequest, open_with, read_all};
use quietcore_core::CpuSet;
use quietcore_core::place::Policy;
use quietcore_tables::{EventTable, TableRows, TimerTable};
use quietcore_trace::{EXPANSION_MAX, Record};
use std::num::NonZero;
use std::path::PathBuf;

/// Rows of a batch of a table that is made while a recording is read.
const BATCH_ROWS: usize = 1 << 16;

/// A kernel list, or `none`.
pub(crate) fn cpus(text: Option<&str>) -> PyResult<Option<CpuSet>> {
    match text {
        None => Ok(None),
        Some("none") => Ok(Some(CpuSet::new())),
        Some(list) => list.parse().map(Some).map_err(refused),
    }
}

/// An answer's JSON, as the command prints it.
pub(crate) fn json(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string_pretty(value).map_err(refused)
}

/// What is asked of a recording beside its path.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct ExplainChoices {
    isolated: Option<String>,
    kernel: Option<String>,
    max_expansion: Option<u32>,
    threads: Option<NonZero<usize>>,
}

/// Who disturbed which CPU of a recording: `figures`, `findings`, `disturbances`.
#[pyfunction]
pub(crate) fn explain(py: Python<'_>, path: PathBuf, options: ExplainChoices) -> PyResult<Answer> {
    let ExplainChoices { isolated, kernel, max_expansion, threads } = options;
    let isolated = cpus(isolated.as_deref())?;
    let max_expansion = max_expansion.unwrap_or(EXPANSION_MAX);
    let request = ExplainRequest {
        isolated,
        kernel,
        expansion_max: max_expansion,
        threads,
        ..ExplainRequest::new(path)
    };
    let interrupt = Interrupt::default();
    let explained = py.detach(|| quietcore_answers::explain(&request, &mut |_| interrupt.goes_on()));
    let report = explained.map_err(|error| interrupt.error(&error))?;
    let tables = [
        quietcore_tables::figures(&report),
        quietcore_tables::findings(&report),
        quietcore_tables::disturbances(&report),
    ];
    Ok(Answer::new(tables, json(&report)?))
}

/// Every event of a recording, in memory; `quietcore export` writes those of long ones.
#[pyfunction]
#[pyo3(signature = (path, *, max_expansion=EXPANSION_MAX))]
pub(crate) fn events(py: Python<'_>, path: PathBuf, max_expansion: u32) -> PyResult<Table> {
    let request = ExplainRequest { expansion_max: max_expansion, ..ExplainRequest::new(path) };
    let mut events = EventTable::new();
    let batches = taken(py, &request, &mut |record| {
        events.take(record);
        full(events.rows())
    })?;
    Ok(Table::new("events", layout("events").schema(), with_rest(batches, events.rows())))
}

/// Every timer that ran in a recording, with the CPUs that armed it, held it and ran it; in memory.
#[pyfunction]
#[pyo3(signature = (path, *, isolated=None, max_expansion=EXPANSION_MAX))]
pub(crate) fn timers(
    py: Python<'_>,
    path: PathBuf,
    isolated: Option<&str>,
    max_expansion: u32,
) -> PyResult<Table> {
    let isolated = cpus(isolated)?;
    let request = ExplainRequest { isolated, expansion_max: max_expansion, ..ExplainRequest::new(path) };
    let mut reader = request.open().map_err(refused)?;
    let header = reader.read_header().map_err(|error| AnswerError::Read(request.path.clone(), error));
    header.map_err(refused)?;
    let options = request.options(reader.header()).map_err(refused)?;
    let mut timers = TimerTable::new(options.isolated, options.identities_max);
    drop(reader);
    let batches = taken(py, &request, &mut |record| {
        timers.take(record);
        full(timers.rows())
    })?;
    timers.finish();
    Ok(Table::new("timers", layout("timers").schema(), with_rest(batches, timers.rows())))
}

/// A batch, if there are enough rows for one.
fn full(rows: &mut TableRows) -> Option<RecordBatch> {
    (rows.len() >= BATCH_ROWS).then(|| rows.take_batch())
}

fn with_rest(mut batches: Vec<RecordBatch>, rows: &mut TableRows) -> Vec<RecordBatch> {
    batches.push(rows.take_batch());
    batches
}

/// Gives every event to `take`; the batches that it makes of them.
fn taken(
    py: Python<'_>,
    request: &ExplainRequest,
    take: &mut (dyn FnMut(&Record<'_>) -> Option<RecordBatch> + Send),
) -> PyResult<Vec<RecordBatch>> {
    let interrupt = Interrupt::default();
    let read = py.detach(|| {
        let mut batches = Vec::new();
        let mut reader = open_with(&request.path, request.expansion_max, 1)?;
        read_all(&request.path, &mut reader, &mut |_| interrupt.goes_on(), &mut |record| {
            batches.extend(take(record));
        })?;
        Ok(batches)
    });
    read.map_err(|error: AnswerError| interrupt.error(&error))
}

/// A recording's timers, replayed in quietcore's wheel: `verification`, `mismatches`.
#[pyfunction]
#[pyo3(signature = (path, *, max_expansion=EXPANSION_MAX))]
pub(crate) fn verify(py: Python<'_>, path: PathBuf, max_expansion: u32) -> PyResult<Answer> {
    let interrupt = Interrupt::default();
    let verified =
        py.detach(|| quietcore_answers::verify(&path, max_expansion, &mut |_| interrupt.goes_on()));
    let end = verified.map_err(|error| interrupt.error(&error))?;
    if end.is_early {
        return Err(interrupt.error(&AnswerError::Interrupted));
    }
    let of = &end.verification;
    let tables = [quietcore_tables::verification(of), quietcore_tables::mismatches(of)];
    Ok(Answer::new(tables, json(of)?))
}

/// What is asked of a recording beside its path.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct WhatifOptions {
    policy: Option<String>,
    exclude: Option<String>,
    keep_awake: Option<String>,
    isolated: Option<String>,
    kernel: Option<String>,
    max_expansion: Option<u32>,
}

/// A recording's timers under another policy: `whatif`.
#[pyfunction]
pub(crate) fn whatif(py: Python<'_>, path: PathBuf, options: WhatifOptions) -> PyResult<Answer> {
    let request = WhatifRequest {
        policy: options.policy.as_deref().map(policy).transpose()?,
        exclude: cpus(options.exclude.as_deref())?,
        keep_awake: cpus(options.keep_awake.as_deref())?.unwrap_or_default(),
        isolated: cpus(options.isolated.as_deref())?,
        kernel: options.kernel,
        expansion_max: options.max_expansion.unwrap_or(EXPANSION_MAX),
        path,
    };
    if request.policy.is_none() && request.exclude.is_none() && request.keep_awake.is_empty() {
        return Err(refused("say what is to change: policy, exclude or keep_awake"));
    }
    let interrupt = Interrupt::default();
    let answered = py.detach(|| quietcore_answers::whatif(&request, &mut |_| interrupt.goes_on()));
    let run = answered.map_err(|error| interrupt.error(&error))?;
    let comparison = run.comparison();
    Ok(Answer::new([quietcore_tables::whatif(&comparison)], json(&comparison)?))
}

fn policy(name: &str) -> PyResult<Policy> {
    match name {
        "pull" => Ok(Policy::Pull),
        "push" => Ok(Policy::Push),
        "stay" => Ok(Policy::Stay),
        _ => Err(refused(format!("{name:?} is no policy; choose from pull, push and stay"))),
    }
}

/// Two recordings, or two reports in JSON, side by side: `diff`.
#[pyfunction]
#[pyo3(signature = (before, after, *, isolated=None, max_expansion=EXPANSION_MAX))]
pub(crate) fn diff(
    py: Python<'_>,
    before: PathBuf,
    after: PathBuf,
    isolated: Option<&str>,
    max_expansion: u32,
) -> PyResult<Answer> {
    let isolated = cpus(isolated)?;
    let request = DiffRequest { isolated, expansion_max: max_expansion, ..DiffRequest::new(before, after) };
    let interrupt = Interrupt::default();
    let compared = py.detach(|| quietcore_answers::diff(&request, &mut |_| interrupt.goes_on()));
    let comparison = compared.map_err(|error| interrupt.error(&error))?;
    Ok(Answer::new([quietcore_tables::diff(&comparison)], json(&comparison)?))
}
