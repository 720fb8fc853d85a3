//! The migration hierarchy as far as an explanation needs it: which CPUs share a level-0 group,
//! and whether the kernel's idea of isolation changed during the recording.

use super::count::group_of;
use super::report::{CountByNumber, HierarchyGroups};
use quietcore_core::{CpuId, CpuSet, Nanos};
use quietcore_trace::{Event, Migration, MigrationStep, Record, counted};
use std::collections::BTreeMap;

const CHANGES_MAX: usize = 4_096;
const SENTENCES_MAX: usize = 8;
const GROUP_CPUS: u16 = 8;
/// Changes of the same kind within this span are one sentence.
const SAME_CHANGE: Nanos = Nanos(500_000_000);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct GroupCounts {
    parents: BTreeMap<CpuId, u64>,
    changes: Vec<GroupLine>,
    /// When an isolated CPU was taken out of timer migration, the last time.
    pub(super) isolated_at: Option<Nanos>,
}

/// An availability event that contradicts the isolated set of the run.
#[derive(Debug)]
struct GroupLine {
    at: Nanos,
    cpu: CpuId,
    available: bool,
}

impl GroupCounts {
    pub(super) fn take(&mut self, record: &Record<'_>, isolated: &CpuSet, nohz_full: &CpuSet) {
        let Some((cpu, parent)) = group_of(&record.event) else { return };
        self.parents.entry(cpu).or_insert(parent);
        let Event::Migration(Migration::Cpu { step, .. }) = record.event else { return };
        let is_isolated = isolated.contains(cpu);
        if is_isolated && step == MigrationStep::Unavailable {
            self.isolated_at = Some(record.at);
        }
        let available = match step {
            // A CPU that is isolated and nohz_full stays in the hierarchy (KERNEL: 6.19 on).
            MigrationStep::Available if is_isolated && !nohz_full.contains(cpu) => true,
            MigrationStep::Unavailable if !is_isolated => false,
            _ => return,
        };
        if self.changes.len() < CHANGES_MAX {
            self.changes.push(GroupLine { at: record.at, cpu, available });
        }
    }

    /// One sentence per burst of contradicting events of one kind.
    pub(super) fn contradictions(&self, isolated: &CpuSet) -> Vec<String> {
        let mut bursts: Vec<(Nanos, Nanos, bool, CpuSet)> = Vec::new();
        for change in &self.changes {
            match bursts.last_mut() {
                Some((_, until, available, cpus))
                    if *available == change.available && change.at.since(*until) <= SAME_CHANGE =>
                {
                    *until = change.at;
                    cpus.insert(change.cpu);
                }
                _ => {
                    let cpus = CpuSet::from_iter([change.cpu]);
                    bursts.push((change.at, change.at, change.available, cpus));
                }
            }
        }
        let more = bursts.len().saturating_sub(SENTENCES_MAX);
        let shown = bursts.into_iter().take(SENTENCES_MAX);
        let mut sentences: Vec<String> =
            shown.map(|(at, _, available, cpus)| sentence(at, available, &cpus, isolated)).collect();
        if more > 0 {
            sentences.push(format!(
                "isolation changed {} after that",
                counted(more as u64, "more time", "more times")
            ));
        }
        sentences
    }

    /// Groups numbered by their lowest CPU; groups of eight when the input does not say for all
    /// of `cpus`.
    pub(super) fn groups(&self, cpu_count: u16, cpus: impl Iterator<Item = u16>) -> GroupTable {
        let known = |cpu: u16| CpuId::new(u64::from(cpu)).is_ok_and(|cpu| self.parents.contains_key(&cpu));
        let estimated = self.parents.is_empty() || !cpus.into_iter().all(known);
        let mut numbers: Vec<u64> = Vec::new();
        let mut of_cpu = BTreeMap::new();
        if estimated {
            of_cpu.extend((0..cpu_count).map(|cpu| (cpu, cpu / GROUP_CPUS)));
        } else {
            for (cpu, parent) in &self.parents {
                let known = numbers.iter().position(|group| group == parent);
                let number = known.unwrap_or(numbers.len());
                if known.is_none() {
                    numbers.push(*parent);
                }
                of_cpu.insert(cpu.index() as u16, number as u16);
            }
        }
        GroupTable { estimated, of_cpu }
    }
}

fn sentence(at: Nanos, available: bool, cpus: &CpuSet, isolated: &CpuSet) -> String {
    let at = at.as_secs_f64();
    if available {
        format!(
            "at {at:.6} s the kernel made CPUs {cpus} available for timer migration although they are \
             in the isolated set {isolated}; the set is taken as constant, so figures before they \
             became unavailable again are not about isolation"
        )
    } else {
        format!(
            "at {at:.6} s the kernel took CPUs {cpus} out of timer migration (isolated at run time, or \
             offline) although they are not in the isolated set; use --isolated to count them"
        )
    }
}

/// The level-0 group of each CPU, at least of all that ran a counted timer.
#[derive(Debug)]
pub(super) struct GroupTable {
    estimated: bool,
    of_cpu: BTreeMap<u16, u16>,
}

impl GroupTable {
    pub(super) fn of(&self, cpu: u16) -> u16 {
        self.of_cpu[&cpu]
    }

    /// Counts by CPU as counts by group.
    pub(super) fn sum(&self, by_cpu: &CountByNumber) -> CountByNumber {
        let mut by_group = CountByNumber::new();
        for (&cpu, &count) in by_cpu {
            *by_group.entry(self.of(cpu)).or_default() += count;
        }
        by_group
    }

    pub(super) fn report(&self) -> HierarchyGroups {
        let mut sets: BTreeMap<u16, CpuSet> = BTreeMap::new();
        for (&cpu, &group) in &self.of_cpu {
            if let Ok(cpu) = CpuId::new(u64::from(cpu)) {
                sets.entry(group).or_default().insert(cpu);
            }
        }
        let cpus = sets.into_iter().map(|(group, set)| (group, set.to_string())).collect();
        HierarchyGroups { estimated: self.estimated, cpus }
    }
}
