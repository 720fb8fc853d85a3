//! From an entry of a scenario to its loads: one for each CPU that it names, `count` times.
//!
//! Invariant: a plan has at most [`INSTANCES_MAX`] loads, whatever the file says.

use super::error::ScenarioProblem;
use super::load::{LoadKind, PlannedLoad};
use super::names::Preempt;
use super::raw::RawPairs;
use super::value::{CpuChoice, Span, resolve as resolve_cpus, span_within, within};
use quietcore_core::{CpuId, CpuSet};
use toml::Spanned;

/// The most timers and tasks of one plan.
const INSTANCES_MAX: usize = 1_000_000;
/// A minute.
pub(super) const SPAN_MAX: u64 = 60_000_000_000;
/// Shorter loops would do nothing but loop.
pub(super) const LOOP_MIN: u64 = 1_000;

/// What names of CPUs mean on a machine.
#[derive(Debug)]
pub(super) struct Places {
    pub(super) all: CpuSet,
    pub(super) isolated: CpuSet,
    pub(super) preempt: Preempt,
}

impl Places {
    pub(super) fn of(
        &self,
        cpus: &Spanned<CpuChoice>,
        every: Option<&Spanned<usize>>,
    ) -> Result<Vec<CpuId>, ScenarioProblem> {
        resolve_cpus(cpus, every, &self.all, &self.isolated)
    }
}

pub(super) fn spans<const N: usize>(
    values: [&Spanned<Span>; N],
    least: [u64; N],
) -> Result<[u64; N], ScenarioProblem> {
    let mut nanos = [0; N];
    for (place, value) in values.into_iter().enumerate() {
        nanos[place] = span_within(value, least[place], SPAN_MAX)?;
    }
    Ok(nanos)
}

pub(super) fn optional(value: Option<&Spanned<Span>>) -> Result<u64, ScenarioProblem> {
    value.map_or(Ok(0), |value| span_within(value, 0, SPAN_MAX))
}

pub(super) struct Expander<'a> {
    pub(super) places: &'a Places,
    pub(super) loads: Vec<PlannedLoad>,
    pub(super) affinities: Vec<CpuSet>,
}

pub(super) struct Loads {
    pub(super) loads: Vec<PlannedLoad>,
    pub(super) affinities: Vec<CpuSet>,
}

impl Expander<'_> {
    pub(super) fn add(
        &mut self,
        cpus: &Spanned<CpuChoice>,
        every: Option<&Spanned<usize>>,
        count: Option<&Spanned<usize>>,
        kind: LoadKind,
    ) -> Result<(), ScenarioProblem> {
        let count = count.map_or(Ok(1), |count| within(count, 1, INSTANCES_MAX))?;
        let chosen = self.places.of(cpus, every)?;
        self.make_room(cpus, chosen.len().saturating_mul(count))?;
        for cpu in chosen {
            self.loads.extend(std::iter::repeat_n(PlannedLoad { cpu, kind }, count));
        }
        Ok(())
    }

    pub(super) fn make_room<T>(&self, place: &Spanned<T>, count: usize) -> Result<(), ScenarioProblem> {
        if self.loads.len().saturating_add(count) > INSTANCES_MAX {
            return Err(ScenarioProblem::at(
                place,
                format!("more than {INSTANCES_MAX} timers and tasks in all"),
            ));
        }
        Ok(())
    }

    /// Clients and servers alternate over the CPUs, so that a pair sits side by side and 1 pair fills 2 CPUs.
    pub(super) fn add_pairs(
        &mut self,
        entry: &Spanned<RawPairs>,
        varied: Option<usize>,
    ) -> Result<(), ScenarioProblem> {
        let load = entry.get_ref();
        let count = match (&load.count, varied) {
            (_, Some(count)) if (1..=INSTANCES_MAX).contains(&count) => count,
            (Some(count), None) => within(count, 1, INSTANCES_MAX)?,
            (None, None) => {
                return Err(ScenarioProblem::at(entry, "count is missing, here or as pairs in [variants]"));
            }
            (_, Some(_)) => {
                return Err(ScenarioProblem::at(entry, "the variants ask for no pair, or for too many"));
            }
        };
        let [request, service, timeout] =
            spans([&load.request, &load.service, &load.timeout], [LOOP_MIN, LOOP_MIN, 1])?;
        let cpus = self.places.of(&load.cpus, None)?;
        self.make_room(entry, count.saturating_mul(2))?;
        for pair in 0..count {
            let (cpu, server) = (cpus[pair * 2 % cpus.len()], cpus[(pair * 2 + 1) % cpus.len()]);
            self.loads.push(PlannedLoad { cpu, kind: LoadKind::Pair { server, request, service, timeout } });
        }
        Ok(())
    }
}
