//! What running timers touches: the bases, the counts, the time; apart from the hierarchy, which calls back
//! into it.

use super::bases::{LoadTimer, WhatifBases};
use super::figures::{RunPlace, WhatifCounts};
use super::load::{LoadArm, LoadBase, LoadEvent, RecordedLoad};
use quietcore_core::CpuId;

#[derive(Debug)]
pub(super) struct TimerRuns<'a> {
    pub(super) load: &'a RecordedLoad,
    pub(super) bases: WhatifBases,
    pub(super) tally: WhatifCounts<'a>,
    pub(super) now: u64,
    /// CPUs whose timers ran since they were last asked for.
    pub(super) owners: Vec<CpuId>,
    /// By timer: in which tick it ran last, and where, in the replay.
    pub(super) last_runs: Vec<Option<(u64, RunPlace)>>,
}

impl TimerRuns<'_> {
    /// Runs what is due in a base, on `runner`.
    pub(super) fn run(&mut self, owner: CpuId, kind: LoadBase, runner: CpuId) {
        let now = self.load.jiffies(self.now);
        while let Some(LoadTimer { timer, arm: place, armed_on }) = self.bases.next_expired(owner, kind, now)
        {
            let ran = RunPlace { base: owner, cpu: runner };
            self.last_runs[timer as usize] = Some((self.now, ran));
            if let Some(LoadEvent::Arm(arm)) = self.load.inputs.get(place as usize).map(|input| input.what) {
                self.tally.ran(place, &LoadArm { cpu: armed_on, ..arm }, ran, self.now);
            }
            if self.owners.last() != Some(&owner) {
                self.owners.push(owner);
            }
        }
    }

    /// When a base is due first, in ticks.
    pub(super) fn next(&mut self, cpu: CpuId, kind: LoadBase) -> Option<u64> {
        let next = self.bases.next(cpu, kind)?;
        Some(self.load.tick_of(next))
    }

    /// The first local expiry, and the first global one if nothing local comes before it: what is published.
    pub(super) fn firsts(&mut self, cpu: CpuId) -> (Option<u64>, Option<u64>) {
        let (local, global) = (self.next(cpu, LoadBase::Local), self.next(cpu, LoadBase::Global));
        (local, global.filter(|&global| local.is_none_or(|local| global < local)))
    }
}
