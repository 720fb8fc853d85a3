//! Push and pull: a real-time task that waits behind another one goes to a CPU where it runs at once.
//!
//! A CPU *pushes* when it has a task that what it runs holds up. A CPU that is about to run something lower
//! *pulls* the highest task that waits elsewhere. Both leave a task alone that runs where it is as soon as it
//! can. The kernel's CPUs pull from one source after the other; a lane takes one task, the highest of all.
//! Both ask [`pull_source`], the kernel's with one source at a time.
//!
//! Not here: queues and their locks. Source: Linux 6.12, kernel/sched/rt.c (`push_rt_task`, `pull_rt_task`),
//! by behaviour.

use super::lowest::search;
use super::{CpuPriorities, Priority, RunnableTask, RunningTask};
use crate::CpuId;
use crate::topology::Topology;

/// A CPU on which a real-time task waits that may run on the CPU that pulls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PullSource {
    /// The CPU.
    pub cpu: CpuId,
    /// The highest task that waits there and may go.
    pub waiting: Priority,
    /// What runs there.
    pub running: RunningTask,
}

/// The CPU from which to pull: of those that hold a task up that is `above` all that the puller has, the one
/// with the highest; of equal ones the last.
#[must_use]
pub fn pull_source(sources: impl IntoIterator<Item = PullSource>, above: Option<Priority>) -> Option<CpuId> {
    let useful =
        |source: &PullSource| Some(source.waiting) > above && source.running.holds_up(source.waiting);
    let best = sources.into_iter().filter(useful).max_by_key(|source| source.waiting);
    best.map(|source| source.cpu)
}

/// The CPU to which a task is pushed that waits on its last CPU: one with the lowest priority below the
/// task's that `can_take` it, one that `fits` if there is one. `None` if nothing holds the task up or no CPU
/// can take it. Cost: as [`find_lowest`](super::find_lowest).
#[must_use]
pub fn push_target(
    priorities: &CpuPriorities,
    topology: &Topology,
    task: RunnableTask<'_>,
    can_take: impl Fn(CpuId) -> bool,
    fits: impl Fn(CpuId) -> bool,
) -> Option<CpuId> {
    let RunnableTask { seeker, running } = task;
    if !running.holds_up(seeker.priority) {
        return None;
    }
    let can_take = |cpu| cpu != seeker.previous && can_take(cpu);
    search(priorities, topology, seeker, |cpu| can_take(cpu) && fits(cpu))
        .or_else(|| search(priorities, topology, seeker, can_take))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{PullSource, pull_source, push_target};
    use crate::realtime::{
        CpuPriorities, CpuPriority, Priority, RunnableTask, RunningTask, Seeker, priority,
    };
    use crate::topology::Topology;
    use crate::{CpuId, CpuSet};
    use alloc::vec::Vec;

    fn running() -> Vec<RunningTask> {
        let realtime = |number| {
            [true, false].map(|can_move| RunningTask::Realtime { priority: priority(number), can_move })
        };
        let others = [RunningTask::Nothing, RunningTask::Normal, RunningTask::Uninterruptible];
        others.into_iter().chain((1..=3).flat_map(realtime)).collect()
    }

    /// What a task of this priority waits for, said the long way.
    fn is_held_up(waiting: Priority, running: RunningTask) -> bool {
        match running {
            RunningTask::Nothing | RunningTask::Normal => false,
            RunningTask::Uninterruptible => true,
            RunningTask::Realtime { priority, .. } => waiting <= priority,
        }
    }

    /// Goal: what is pulled outranks all that the puller has, is held up where it is, and none that could be
    /// pulled is higher. Method: every choice of two sources with priorities 1 to 3, for every puller.
    #[test]
    fn every_pull() {
        let every = |cpu| {
            let of = move |running| {
                (1..=3).map(move |waiting| PullSource {
                    cpu: CpuId(cpu),
                    waiting: priority(waiting),
                    running,
                })
            };
            running().into_iter().flat_map(of).map(Some).chain([None])
        };
        let mut pulled = 0;
        for (first, second) in every(1).flat_map(|first| every(2).map(move |second| (first, second))) {
            for above in [None, Some(priority(1)), Some(priority(2)), Some(priority(3))] {
                let sources: Vec<PullSource> = [first, second].into_iter().flatten().collect();
                let useful = |source: &&PullSource| {
                    Some(source.waiting) > above && is_held_up(source.waiting, source.running)
                };
                let highest = sources.iter().filter(useful).map(|source| source.waiting).max();
                let chosen = pull_source(sources.clone(), above);
                let chosen = sources.iter().find(|source| Some(source.cpu) == chosen);
                assert_eq!(chosen.map(|source| source.waiting), highest, "{sources:?} above {above:?}");
                assert!(chosen.is_none_or(|source| useful(&source)), "{sources:?} above {above:?}");
                pulled += u32::from(chosen.is_some());
            }
        }
        assert!(pulled > 0);
    }

    /// Goal: a task is pushed exactly when something holds it up and a CPU can take it that has nothing as
    /// high; the lowest of those that fit, or of all. Method: two other CPUs with every priority, and every
    /// answer of both questions; the task has priority 2.
    #[test]
    fn every_push() {
        let topology = Topology::builder(3).build().expect("valid");
        let affinity: CpuSet = "0-2".parse().expect("a list");
        let seeker = Seeker {
            priority: priority(2),
            affinity: &affinity,
            previous: CpuId(0),
            here: CpuId(0),
            turn: 0,
        };
        let levels: Vec<CpuPriority> = [CpuPriority::Absent, CpuPriority::Normal, CpuPriority::Higher]
            .into_iter()
            .chain((1..=3).map(|number| CpuPriority::Realtime(priority(number))))
            .collect();
        let below = CpuPriority::Normal..CpuPriority::Realtime(priority(2));
        for (one, two) in levels.iter().flat_map(|one| levels.iter().map(move |two| (*one, *two))) {
            let priorities = CpuPriorities::new(3);
            priorities.set(CpuId(0), CpuPriority::Realtime(priority(2)));
            priorities.set(CpuId(1), one);
            priorities.set(CpuId(2), two);
            for (running, bits) in
                running().into_iter().flat_map(|running| (0..16).map(move |bits| (running, bits)))
            {
                let can_take = |cpu: CpuId| bits >> (cpu.0.max(1) - 1) & 1 != 0;
                let fits = |cpu: CpuId| bits >> (cpu.0 + 1) & 1 != 0;
                let task = RunnableTask { seeker, running };
                let target = push_target(&priorities, &topology, task, can_take, fits);
                let open = [(CpuId(1), one), (CpuId(2), two)];
                let open = open.into_iter().filter(|(cpu, level)| can_take(*cpu) && below.contains(level));
                let open: Vec<(CpuId, CpuPriority)> = open.collect();
                let among = |is_wanted: &dyn Fn(CpuId) -> bool| {
                    open.iter().filter(|(cpu, _)| is_wanted(*cpu)).map(|(_, level)| *level).min()
                };
                let expected = among(&fits).or_else(|| among(&|_| true));
                let expected = expected.filter(|_| is_held_up(priority(2), running));
                let what = (one, two, running, bits);
                assert_eq!(target.map(|cpu| priorities.of(cpu)), expected, "{what:?}");
                assert!(target.is_none_or(|cpu| open.iter().any(|(other, _)| *other == cpu)), "{what:?}");
                let is_fit_open = open.iter().any(|(cpu, _)| fits(*cpu));
                assert!(target.is_none_or(|cpu| fits(cpu) || !is_fit_open), "{what:?}");
            }
        }
    }
}
