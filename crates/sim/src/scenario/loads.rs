//! What a machine has to do, CPU by CPU: every entry of `[load]` as loads of a plan.

use super::error::ScenarioProblem;
use super::expand::{Expander, LOOP_MIN, Loads, Places, SPAN_MAX, optional, spans};
use super::load::{LoadKind, Periodic};
use super::raw::RawLoads;
use super::realtime;
use super::value::span_within;

/// Expands all loads; `pairs` is the number of pairs if the variants say it.
pub(super) fn resolve(
    raw: &RawLoads,
    places: &Places,
    pairs: Option<usize>,
) -> Result<Loads, ScenarioProblem> {
    let mut loads = Expander { places, loads: Vec::new(), affinities: Vec::new() };
    timers(raw, &mut loads)?;
    for entry in &raw.timeout {
        let load = entry.get_ref();
        let [delay, run, sleep] = spans([&load.delay, &load.run, &load.sleep], [1, 0, LOOP_MIN])?;
        loads.add(
            &load.cpus,
            load.every.as_ref(),
            load.count.as_ref(),
            LoadKind::Timeout { delay, run, sleep },
        )?;
    }
    for entry in &raw.sleeper {
        let load = entry.get_ref();
        let [run, sleep] = spans([&load.run, &load.sleep], [0, LOOP_MIN])?;
        let jitter = optional(load.jitter.as_ref())?;
        let kind = LoadKind::Sleeper { run, sleep, jitter, rt: load.rt, precision: load.precision };
        loads.add(&load.cpus, load.every.as_ref(), load.count.as_ref(), kind)?;
    }
    for entry in &raw.busy {
        let load = entry.get_ref();
        let chunk =
            load.chunk.as_ref().map_or(Ok(1_000_000), |chunk| span_within(chunk, LOOP_MIN, SPAN_MAX))?;
        let kind = LoadKind::Busy { chunk, normal: load.normal };
        loads.add(&load.cpus, load.every.as_ref(), load.count.as_ref(), kind)?;
    }
    for entry in &raw.measure {
        let load = entry.get_ref();
        loads.add(&load.cpus, load.every.as_ref(), None, LoadKind::Measure)?;
    }
    for entry in &raw.enqueue {
        let load = entry.get_ref();
        let [delay] = spans([&load.delay], [1])?;
        loads.add(&load.cpus, load.every.as_ref(), None, LoadKind::Enqueue { delay })?;
    }
    for entry in &raw.pairs {
        loads.add_pairs(entry, pairs)?;
    }
    realtime::expand(raw, &mut loads)?;
    Ok(Loads { loads: loads.loads, affinities: loads.affinities })
}

fn timers(raw: &RawLoads, loads: &mut Expander<'_>) -> Result<(), ScenarioProblem> {
    for entry in &raw.periodic {
        let load = entry.get_ref();
        let [period] = spans([&load.period], [LOOP_MIN])?;
        let periodic = Periodic {
            period,
            jitter: optional(load.jitter.as_ref())?,
            callback: optional(load.callback.as_ref())?,
            pinned: load.pinned,
            deferrable: load.deferrable,
            precision: load.precision,
        };
        loads.add(&load.cpus, load.every.as_ref(), load.count.as_ref(), LoadKind::Periodic(periodic))?;
    }
    for entry in &raw.driver {
        let load = entry.get_ref();
        let [period, delay, work] = spans([&load.period, &load.delay, &load.work], [LOOP_MIN, 1, 1])?;
        let kind = LoadKind::Driver { period, jitter: optional(load.jitter.as_ref())?, delay, work };
        loads.add(&load.cpus, load.every.as_ref(), load.count.as_ref(), kind)?;
    }
    Ok(())
}
