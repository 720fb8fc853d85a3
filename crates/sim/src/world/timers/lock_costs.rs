//! Locks as queues, and the ways up the hierarchy: what shared state costs those who touch it.
//!
//! A lock is known by when it is free again and who held it last. Whoever comes earlier waits; whoever comes
//! from another CPU pays for getting it. Events come in the order of time, so the queue is first come, first
//! served.

use quietcore_core::CpuId;
use quietcore_core::tmigr::{ChildMask, GroupId, Levels, Tree};
use quietcore_core::topology::Topology;

#[derive(Clone, Copy, Debug)]
struct Lock {
    free_at: u64,
    holder: u16,
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

    /// `by` takes the lock of `base` at `now` and holds it for `hold`, if getting it takes `handover` from
    /// another CPU. Returns how long it waits for a holder, and how long it takes to get it.
    pub(crate) fn take(&mut self, base: u16, by: u16, now: u64, [hold, handover]: [u64; 2]) -> (u64, u64) {
        let lock = &mut self.locks[usize::from(base)];
        let wait = lock.free_at.saturating_sub(now);
        let handover = if lock.holder == by { 0 } else { handover };
        *lock = Lock { free_at: now + wait + handover + hold, holder: by };
        (wait, handover)
    }

    /// Who has taken the lock of `base` holds it for so much longer.
    pub(crate) fn hold(&mut self, base: u16, longer: u64) {
        self.locks[usize::from(base)].free_at += longer;
    }
}

/// A CPU's groups from the lowest to the top, with its mask in each.
pub(crate) type Path = Vec<(GroupId, ChildMask)>;

/// The ways up of all CPUs, if they join in ascending order.
pub(crate) fn paths(topology: &Topology) -> Vec<Path> {
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
    use super::Locks;

    /// Goal: first come, first served; only a change of hands costs. Method: a short script.
    #[test]
    fn a_lock_is_a_queue() {
        let mut locks = Locks::new(3);
        assert_eq!(locks.take(1, 1, 100, [10, 50]), (0, 0), "its own CPU, free");
        assert_eq!(locks.take(1, 2, 105, [10, 50]), (5, 50), "held until 110, then another hand");
        assert_eq!(locks.take(1, 2, 110, [10, 50]), (60, 0), "behind itself");
        assert_eq!(locks.take(1, 0, 1000, [10, 50]), (0, 50), "free again, another hand");
        assert_eq!(locks.take(0, 0, 1000, [10, 50]), (0, 0), "another lock");
    }
}
