//! The CPU on which a real-time task disturbs least.
//!
//! Of the CPUs with the lowest priority below the task's: the one that it ran on last, whose caches know it;
//! else one near that, the CPU that asks before others in the same domain; else the CPU that asks; else any.
//! Those that do not fit count only if none does: priority beats fitness.
//!
//! Source: Linux 6.12, kernel/sched/rt.c (`find_lowest_rq`) and kernel/sched/cpupri.c
//! (`cpupri_find_fitness`), by behaviour. Deviation: the rotating choice is by a number that the caller
//! counts up, so that it is the same from the same seed.

use super::{CpuPriorities, Priority};
use crate::topology::Topology;
use crate::{CpuId, CpuSet};

/// Who looks, and for what.
#[derive(Clone, Copy, Debug)]
pub struct Seeker<'a> {
    /// The task's.
    pub priority: Priority,
    /// Where it may run.
    pub affinity: &'a CpuSet,
    /// Where it ran last.
    pub previous: CpuId,
    /// The CPU that looks.
    pub here: CpuId,
    /// Which of several equally good ones is taken, modulo how many there are.
    pub turn: usize,
}

/// The CPU with the lowest priority for the task, or `None` when none is below its own, or when it may run on
/// one CPU only. `fits` is asked for CPUs of a slot that has any; the answer may be out of date when it is
/// used. Cost: a load per priority below the task's, and a look at each CPU of a slot.
#[must_use]
pub fn find_lowest(
    priorities: &CpuPriorities,
    topology: &Topology,
    seeker: Seeker<'_>,
    fits: impl Fn(CpuId) -> bool,
) -> Option<CpuId> {
    search(priorities, topology, seeker, fits).or_else(|| search(priorities, topology, seeker, |_| true))
}

/// The same among those that `is_candidate` says yes of.
pub(super) fn search(
    priorities: &CpuPriorities,
    topology: &Topology,
    seeker: Seeker<'_>,
    is_candidate: impl Fn(CpuId) -> bool,
) -> Option<CpuId> {
    if seeker.affinity.len() < 2 {
        return None;
    }
    priorities.find_map(seeker.priority, |slot| {
        let may_run = |cpu| seeker.affinity.contains(cpu) && slot.contains(cpu);
        choose(topology, seeker, |cpu| may_run(cpu) && is_candidate(cpu))
    })
}

/// One of those that `is_candidate` says yes of, the best first.
fn choose(topology: &Topology, seeker: Seeker<'_>, is_candidate: impl Fn(CpuId) -> bool) -> Option<CpuId> {
    let Seeker { previous, here, turn, .. } = seeker;
    if is_candidate(previous) {
        return Some(previous);
    }
    for domain in topology.domains(previous) {
        if domain.cpus.binary_search(&here).is_ok() && is_candidate(here) {
            return Some(here);
        }
        let found = nth_round(domain.cpus.iter().copied().filter(|cpu| is_candidate(*cpu)), turn);
        if found.is_some() {
            return found;
        }
    }
    if is_candidate(here) {
        return Some(here);
    }
    nth_round(seeker.affinity.iter().filter(|cpu| is_candidate(*cpu)), turn)
}

/// The element at `turn`, modulo how many there are.
fn nth_round(mut cpus: impl Iterator<Item = CpuId> + Clone, turn: usize) -> Option<CpuId> {
    let count = cpus.clone().count();
    // Fewer may be left than were counted: others move.
    if count == 0 { None } else { cpus.clone().nth(turn % count).or_else(|| cpus.next()) }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{Seeker, find_lowest};
    use crate::realtime::{CpuPriorities, CpuPriority, priority};
    use crate::topology::{Layout, Topology};
    use crate::{CpuId, CpuSet};

    fn cpu(index: u64) -> CpuId {
        CpuId::new(index).expect("a small number")
    }

    /// Two nodes of two caches of two CPUs: 0-1 2-3 | 4-5 6-7; real-time tasks where `busy` says so.
    fn machine(busy: &[(u64, u8)]) -> (Topology, CpuPriorities) {
        let topology =
            Topology::builder(8).nodes(2, Layout::Blocks).cores_per_cache(2).build().expect("valid");
        let priorities = CpuPriorities::new(8);
        topology.possible().iter().for_each(|cpu| priorities.set(cpu, CpuPriority::Normal));
        busy.iter().for_each(|&(index, number)| {
            priorities.set(cpu(index), CpuPriority::Realtime(priority(number)));
        });
        (topology, priorities)
    }

    fn lowest(busy: &[(u64, u8)], affinity: &str, here: u64, turn: usize, unfit: &str) -> Option<usize> {
        let (topology, priorities) = machine(busy);
        let (affinity, unfit): (CpuSet, CpuSet) =
            (affinity.parse().expect("a list"), unfit.parse().expect("a list"));
        let seeker =
            Seeker { priority: priority(50), affinity: &affinity, previous: cpu(2), here: cpu(here), turn };
        find_lowest(&priorities, &topology, seeker, |cpu| !unfit.contains(cpu)).map(CpuId::index)
    }

    /// Goal: the order of the module's text. Method: one case per clause; the task ran last on CPU 2.
    #[test]
    fn from_near_to_far() {
        assert_eq!(lowest(&[], "0-7", 5, 0, ""), Some(2), "where it was");
        assert_eq!(lowest(&[(2, 60)], "0-7", 3, 0, ""), Some(3), "near, and here");
        assert_eq!(lowest(&[(2, 60)], "0-7", 5, 0, ""), Some(3), "near before here");
        assert_eq!(lowest(&[(2, 60), (3, 60)], "0-7", 5, 0, ""), Some(0), "the same node");
        assert_eq!(lowest(&[(2, 60), (3, 60)], "0-7", 5, 1, ""), Some(1), "in turns");
        assert_eq!(lowest(&[(2, 60), (3, 60)], "4-7", 5, 0, ""), Some(5), "here");
        assert_eq!(lowest(&[(2, 60), (3, 60)], "4,6-7", 5, 1, ""), Some(6), "in turns");
        assert_eq!(lowest(&[], "2", 5, 0, ""), None, "it may not go anywhere");
    }

    /// Goal: a lower priority comes before a nearer CPU, and none at all is as high as the task. Method:
    /// priorities around the task's.
    #[test]
    fn priority_comes_first() {
        let busy = [(0, 9), (1, 9), (2, 9), (3, 9), (4, 9), (5, 9), (6, 8), (7, 9)];
        assert_eq!(lowest(&busy, "0-7", 2, 0, ""), Some(6));
        assert_eq!(lowest(&busy, "0-7", 2, 0, "6"), Some(2), "what fits comes before what is lower");
        let all = busy.map(|(cpu, _)| (cpu, 50));
        assert_eq!(lowest(&all, "0-7", 2, 0, ""), None);
    }

    /// Goal: fitness decides among those that outrank no task, and not at all when none fits. Method: CPUs
    /// that do not fit, then all.
    #[test]
    fn priority_beats_fitness() {
        assert_eq!(lowest(&[(3, 49)], "2-3", 2, 0, "2"), Some(3), "it is below the task");
        assert_eq!(lowest(&[(3, 50)], "2-3", 2, 0, "2"), Some(2), "it is not");
        assert_eq!(lowest(&[], "0-7", 5, 0, "0-7"), Some(2));
    }
}
