//! What goes wrong on purpose, always within what the machine's contract allows the world to do.

use super::error::ScenarioProblem;
use super::expand::Places;
use super::raw::{RawFaults, RawFlips};
use super::value::{span_within, within};
use quietcore_core::CpuId;
use toml::Spanned;

const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLISECOND;
const ENTRIES_MAX: usize = 64;

/// A CPU that runs nothing for a while, again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StallFault {
    pub(crate) cpu: CpuId,
    pub(crate) blocked: u64,
    pub(crate) every: u64,
}

/// Every so often one of these CPUs changes sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flips {
    pub(crate) cpus: Vec<CpuId>,
    pub(crate) every: u64,
}

/// What happens to some of many, and the time that goes with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RareFault {
    /// To how many in a hundred.
    pub(crate) percent: u32,
    pub(crate) span: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Faults {
    pub(crate) stalls: Vec<StallFault>,
    /// Kicks that are lost, and after how long they are sent again.
    pub(crate) lost_kicks: RareFault,
    /// Wake-ups from idle that are late, and by how much at most.
    pub(crate) late_wakeups: RareFault,
    pub(crate) isolation: Vec<Flips>,
    pub(crate) hotplug: Vec<Flips>,
    /// In a hundred: callbacks that panic.
    pub(crate) panics: u32,
}

pub(super) fn resolve(raw: &RawFaults, places: &Places) -> Result<Faults, ScenarioProblem> {
    let mut faults = Faults::default();
    for entry in bounded(&raw.stall)? {
        let stall = entry.get_ref();
        let every = span_within(&stall.every, MILLISECOND, 60 * SECOND)?;
        let blocked = span_within(&stall.blocked, 1, every - 1)?;
        let cpus = places.of(&stall.cpus, None)?;
        faults.stalls.extend(cpus.into_iter().map(|cpu| StallFault { cpu, blocked, every }));
    }
    if let Some(lost) = &raw.lost_kicks {
        let lost = lost.get_ref();
        let retry = span_within(&lost.retry, 1_000, 100 * MILLISECOND)?;
        faults.lost_kicks = RareFault { percent: within(&lost.percent, 0, 90)?, span: retry };
    }
    if let Some(late) = &raw.late_wakeups {
        let late = late.get_ref();
        let (percent, span) = (within(&late.percent, 0, 100)?, span_within(&late.upto, 1, SECOND)?);
        faults.late_wakeups = RareFault { percent, span };
    }
    faults.isolation = flips(&raw.isolation, places)?;
    faults.hotplug = flips(&raw.hotplug, places)?;
    if let Some(panics) = &raw.panics {
        faults.panics = within(&panics.get_ref().percent, 0, 100)?;
    }
    Ok(faults)
}

fn flips(raw: &[Spanned<RawFlips>], places: &Places) -> Result<Vec<Flips>, ScenarioProblem> {
    let mut flips = Vec::new();
    for entry in bounded(raw)? {
        let every = span_within(&entry.get_ref().every, 10_000, 60 * SECOND)?;
        flips.push(Flips { cpus: places.of(&entry.get_ref().cpus, None)?, every });
    }
    Ok(flips)
}

fn bounded<T>(entries: &[Spanned<T>]) -> Result<&[Spanned<T>], ScenarioProblem> {
    match entries.get(ENTRIES_MAX) {
        Some(extra) => {
            Err(ScenarioProblem::at(extra, format!("more than {ENTRIES_MAX} entries of one kind")))
        }
        None => Ok(entries),
    }
}
