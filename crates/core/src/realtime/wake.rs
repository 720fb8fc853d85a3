//! Where a real-time task goes when it wakes up.
//!
//! It stays on its CPU unless another real-time task is in the way there, or the CPU does not fit. Moving the
//! one that wakes up is better than moving the one that runs, whose caches are warm. It moves only to a CPU
//! on which it outranks everything, and for fitness alone only to one that fits.
//!
//! Source: Linux 6.12, kernel/sched/rt.c (`select_task_rq_rt`), by behaviour, with the fitness of the series'
//! fifth version.

use super::{CpuPriorities, CpuPriority, Priority, Seeker, find_lowest};
use crate::CpuId;
use crate::topology::Topology;

/// What runs on the CPU of a task that wakes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunningTask {
    /// Nothing.
    Nothing,
    /// A normal task.
    Normal,
    /// A real-time task.
    Realtime {
        /// Its priority.
        priority: Priority,
        /// Whether it may run on more CPUs than this one.
        can_move: bool,
    },
    /// Something that no task takes the CPU from, whatever its priority.
    Uninterruptible,
}

impl RunningTask {
    /// Whether a task of priority `waiting` in the queue of this CPU has to wait for what runs.
    #[must_use]
    pub fn holds_up(self, waiting: Priority) -> bool {
        match self {
            Self::Nothing | Self::Normal => false,
            Self::Realtime { priority, .. } => priority >= waiting,
            Self::Uninterruptible => true,
        }
    }
}

/// A task that wakes up or waits, and the CPU that it ran on last.
#[derive(Clone, Copy, Debug)]
pub struct RunnableTask<'a> {
    /// The task, its last CPU, and the CPU that looks for a place.
    pub seeker: Seeker<'a>,
    /// What runs on its last CPU now.
    pub running: RunningTask,
}

/// The CPU for a task that wakes up. `fits` as in [`find_lowest`]. When nothing is better it is the last CPU:
/// whether the task may still run there, and whether that CPU is there, the caller knows.
#[must_use]
pub fn wake_target(
    priorities: &CpuPriorities,
    topology: &Topology,
    task: RunnableTask<'_>,
    fits: impl Fn(CpuId) -> bool,
) -> CpuId {
    let RunnableTask { seeker, running } = task;
    let is_in_the_way = match running {
        RunningTask::Realtime { can_move: false, .. } => true,
        other => other.holds_up(seeker.priority),
    };
    if !is_in_the_way && fits(seeker.previous) {
        return seeker.previous;
    }
    let target = find_lowest(priorities, topology, seeker, &fits);
    // The search may be out of date by now: what counts is what is queued there now.
    let below = CpuPriority::Normal..CpuPriority::Realtime(seeker.priority);
    let is_below = |cpu: &CpuId| below.contains(&priorities.of(*cpu));
    let is_better = |cpu: &CpuId| is_in_the_way || fits(*cpu);
    target.filter(|cpu| is_below(cpu) && is_better(cpu)).unwrap_or(seeker.previous)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{RunnableTask, RunningTask, wake_target};
    use crate::realtime::{CpuPriorities, CpuPriority, Priority, Seeker, priority};
    use crate::topology::Topology;
    use crate::{CpuId, CpuSet};

    /// The target of a task of priority 50 that ran on CPU 0, where `running` runs now; `others` are the
    /// priorities of CPUs 1 to 3, 0 for normal.
    fn target(running: RunningTask, others: [u8; 3], unfit: &str) -> usize {
        let (topology, priorities) = (Topology::builder(4).build().expect("valid"), CpuPriorities::new(4));
        let of = |number: u8| Priority::new(number).map_or(CpuPriority::Normal, CpuPriority::Realtime);
        for (cpu, number) in topology.possible().iter().skip(1).zip(others) {
            priorities.set(cpu, of(number));
        }
        let own = match running {
            RunningTask::Realtime { priority, .. } => CpuPriority::Realtime(priority),
            RunningTask::Nothing | RunningTask::Normal => CpuPriority::Normal,
            RunningTask::Uninterruptible => CpuPriority::Higher,
        };
        priorities.set(CpuId::default(), own);
        let (previous, here) = (CpuId::default(), CpuId::new(3).expect("small"));
        let seeker =
            Seeker { priority: priority(50), affinity: topology.possible(), previous, here, turn: 0 };
        let unfit: CpuSet = unfit.parse().expect("a list");
        wake_target(&priorities, &topology, RunnableTask { seeker, running }, |cpu| !unfit.contains(cpu))
            .index()
    }

    /// Goal: a task stays where nothing is in its way and the CPU fits. Method: each kind of what runs there.
    #[test]
    fn it_stays_where_it_may_run() {
        let lower = RunningTask::Realtime { priority: priority(49), can_move: true };
        for running in [RunningTask::Nothing, RunningTask::Normal, lower] {
            assert_eq!(target(running, [0, 0, 0], ""), 0, "{running:?}");
        }
    }

    /// Goal: it goes elsewhere when it would wait, or when the one it would displace cannot go. Method: the
    /// same priority, a higher one, and a lower one that may not move.
    #[test]
    fn it_makes_way() {
        for (number, can_move) in [(50, true), (60, true), (10, false)] {
            let running = RunningTask::Realtime { priority: priority(number), can_move };
            assert_eq!(target(running, [0, 9, 9], ""), 1, "{running:?}");
        }
        let higher = RunningTask::Realtime { priority: priority(60), can_move: true };
        assert_eq!(target(higher, [50, 60, 99], ""), 0, "nobody is below it");
    }

    /// Goal: for fitness alone it goes only where it fits, and never to where it is outranked. Method: its
    /// CPU does not fit; others fit, do not, or run something higher.
    #[test]
    fn fitness_alone() {
        assert_eq!(target(RunningTask::Normal, [0, 0, 0], "0"), 3, "the CPU that wakes it");
        assert_eq!(target(RunningTask::Normal, [60, 60, 60], "0"), 0, "all others are higher");
        assert_eq!(target(RunningTask::Normal, [60, 9, 60], "0"), 2, "lower than the task is enough");
        assert_eq!(target(RunningTask::Normal, [0, 0, 0], "0-3"), 0, "nobody fits");
        let lower = RunningTask::Realtime { priority: priority(10), can_move: true };
        assert_eq!(target(lower, [0, 60, 60], "0-3"), 0, "the other one does not fit either");
        let higher = RunningTask::Realtime { priority: priority(60), can_move: true };
        assert_eq!(target(higher, [0, 60, 60], "0-3"), 1, "something is in its way, too");
    }

    /// Goal: a task goes only where it outranks everything by the end of the search. Method: the one CPU that
    /// is below it gets a task of each rank while the search runs.
    #[test]
    fn the_search_may_be_out_of_date() {
        let (topology, priorities) = (Topology::builder(2).build().expect("valid"), CpuPriorities::new(2));
        let [first, second] = [0, 1].map(|number| CpuId::new(number).expect("small"));
        let (previous, here) = (first, second);
        let seeker =
            Seeker { priority: priority(50), affinity: topology.possible(), previous, here, turn: 0 };
        let running = RunningTask::Realtime { priority: priority(50), can_move: true };
        for (number, expected) in [(49, second), (50, first), (51, first)] {
            priorities.set(first, CpuPriority::Realtime(priority(50)));
            priorities.set(second, CpuPriority::Normal);
            let fits = |cpu| {
                if cpu == second {
                    priorities.set(second, CpuPriority::Realtime(priority(number)));
                }
                true
            };
            let target = wake_target(&priorities, &topology, RunnableTask { seeker, running }, fits);
            assert_eq!(target, expected, "{number}");
        }
    }
}
