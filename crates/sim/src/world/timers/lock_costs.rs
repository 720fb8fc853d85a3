//! Locks as queues, and the ways up the hierarchy: what shared state costs those who touch it.
//!
//! A lock is known by when it is free again and which CPU held it last. A CPU that comes earlier waits; one
//! that did not hold it last pays for getting it. Events come in the order of time, so the queue is first
//! come, first served.

use quietcore_core::CpuId;
use quietcore_core::tmigr::{ChildMask, GroupId, Levels, Tree};
use quietcore_core::topology::Topology;

#[derive(Clone, Copy, Debug)]
struct Lock {
    free_at: u64,
    holder: u16,
}

/// What a lock is taken for, in ns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LockUse {
    /// For how long it is held.
    pub(crate) hold: u64,
    /// How long it takes to get it from another CPU.
    pub(crate) handover: u64,
}

/// What getting a lock costs, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LockCost {
    /// Until its holder is done.
    pub(crate) wait: u64,
    /// Until its cache line is there.
    pub(crate) handover: u64,
}

/// One lock per CPU, of its timer bases; or per transmit queue.
#[derive(Debug)]
pub(crate) struct Locks {
    locks: Vec<Lock>,
}

impl Locks {
    pub(crate) fn new(cpu_count: usize) -> Self {
        let lock = |cpu| Lock { free_at: 0, holder: cpu as u16 };
        Self { locks: (0..cpu_count).map(lock).collect() }
    }

    /// `by` takes the lock of `base` at `now`. Returns what getting it costs.
    pub(crate) fn take(&mut self, base: u16, by: u16, now: u64, wanted: LockUse) -> LockCost {
        let lock = &mut self.locks[usize::from(base)];
        let wait = lock.free_at.saturating_sub(now);
        let handover = if lock.holder == by { 0 } else { wanted.handover };
        *lock = Lock { free_at: now + wait + handover + wanted.hold, holder: by };
        LockCost { wait, handover }
    }

    /// The holder of the lock of `base` keeps it for so much longer.
    pub(crate) fn hold(&mut self, base: u16, longer: u64) {
        self.locks[usize::from(base)].free_at += longer;
    }
}

/// A CPU's groups from the lowest to the top, with its mask in each.
pub(crate) type GroupPath = Vec<(GroupId, ChildMask)>;

/// The ways up of all CPUs, if they join in ascending order.
pub(crate) fn paths(topology: &Topology) -> Vec<GroupPath> {
    let node_of = |cpu: CpuId| topology.node_of(cpu).map_or(0, |node| node.0);
    let nodes = topology.nodes().filter(|(_, cpus)| !cpus.is_empty()).count();
    let mut tree = Tree::new(Levels::new(topology.cpu_count() as u16, nodes as u16));
    let leaves: Vec<(GroupId, ChildMask)> =
        topology.possible().iter().map(|cpu| tree.join(node_of(cpu)).leaf).collect();
    let path = |leaf| std::iter::successors(Some(leaf), |(group, _)| tree.group(*group).parent).collect();
    leaves.into_iter().map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::{LockCost, LockUse, Locks};

    /// Goal: first come, first served; only a change of hands costs. Method: a short script.
    #[test]
    fn a_lock_is_a_queue() {
        let mut locks = Locks::new(3);
        let wanted = LockUse { hold: 10, handover: 50 };
        let mut take = |base, by, now| {
            let LockCost { wait, handover } = locks.take(base, by, now, wanted);
            (wait, handover)
        };
        assert_eq!(take(1, 1, 100), (0, 0), "its own CPU, free");
        assert_eq!(take(1, 2, 105), (5, 50), "held until 110, then another hand");
        assert_eq!(take(1, 2, 110), (60, 0), "behind itself");
        assert_eq!(take(1, 0, 1000), (0, 50), "free again, another hand");
        assert_eq!(take(0, 0, 1000), (0, 0), "another lock");
    }
}
