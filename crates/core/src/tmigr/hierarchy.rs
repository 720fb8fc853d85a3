//! The hierarchy itself: its groups, its CPUs, and what can be read of them. It is changed in `presence.rs`
//! (CPUs wake up and go idle), `available.rs` (they take part or not) and `growth.rs` (they join).

use super::event::Group;
use super::record::{CpuState, MigrationCpu, Presence};
use super::shape::{GroupId, Levels, Tree};
use super::state::Snapshot;
use crate::lock::Locked;
use crate::{CpuId, Nanos, RawLock};
use alloc::boxed::Box;
use alloc::vec;

/// The tree, and every CPU's place in it.
///
/// All calls are allowed from all threads when the world's lock allows it, unless they say "by the CPU
/// itself". Cost: a walk is at most one compare-and-swap and two locks per level; there are 4 levels for 4096
/// CPUs.
#[derive(Debug)]
pub struct Hierarchy<L: RawLock> {
    pub(super) groups: Box<[Group<L>]>,
    pub(super) cpus: Box<[MigrationCpu<L>]>,
    /// The node of each CPU.
    pub(super) nodes: Box<[u16]>,
    pub(super) tree: Locked<L, Tree>,
}

impl<L: RawLock> Hierarchy<L> {
    /// A tree for as many CPUs as `nodes` is long, with the node of each; none has joined.
    ///
    /// All memory there will ever be is allocated here, so joining cannot fail half way.
    #[must_use]
    pub fn new(nodes: &[u16]) -> Self {
        let node_count = nodes.iter().max().map_or(1, |last| usize::from(*last) + 1);
        let mut per_node = vec![0_u16; node_count];
        nodes.iter().for_each(|&node| per_node[usize::from(node)] += 1);
        per_node.retain(|&cpus| cpus > 0);
        let levels = Levels::new(nodes.len() as u16, per_node.len() as u16);
        let groups = (0..Tree::capacity(&per_node, levels)).map(|_| Group::new()).collect();
        let cpus = nodes.iter().map(|_| MigrationCpu::new()).collect();
        Self { groups, cpus, nodes: nodes.into(), tree: Locked::new(Tree::new(levels)) }
    }

    pub(super) fn cpu(&self, cpu: CpuId) -> &MigrationCpu<L> {
        &self.cpus[cpu.index()]
    }

    /// The shape as it is now. Takes the lock of growth; a copy.
    #[must_use]
    pub fn tree(&self) -> Tree {
        self.tree.lock_remote().clone()
    }

    /// The word of a group; `None` when there is no such group yet.
    #[must_use]
    pub fn group_state(&self, group: GroupId) -> Option<Snapshot> {
        self.groups.get(group.index()).map(|group| group.word.load())
    }

    /// The first expiry that a group's migrator has to look after, as a poll sees it.
    #[must_use]
    pub fn group_next_expiry(&self, group: GroupId) -> Option<Nanos> {
        self.groups.get(group.index()).and_then(Group::next_expiry)
    }

    /// What the hierarchy knows of `cpu`.
    #[must_use]
    pub fn cpu_state(&self, cpu: CpuId) -> CpuState {
        self.cpu(cpu).record.lock_remote().cpu_state()
    }

    /// The same if the record can be had within the lock's bound.
    pub(crate) fn try_cpu_state(&self, cpu: CpuId) -> Option<CpuState> {
        self.cpu(cpu).record.try_lock_remote().map(|record| record.cpu_state())
    }

    /// Whether `cpu` is recorded as absent, also while it is unavailable, if the record can be had within the
    /// lock's bound.
    pub(crate) fn try_is_absent(&self, cpu: CpuId) -> Option<bool> {
        self.cpu(cpu).record.try_lock_remote().map(|record| record.presence == Presence::Absent)
    }

    /// When `cpu` must wake up for the whole tree.
    #[must_use]
    pub fn wakeup(&self, cpu: CpuId) -> Option<Nanos> {
        self.cpu(cpu).wakeup()
    }

    /// The first expiry that a parked or absent CPU has published; `None` for any other.
    #[must_use]
    pub fn published(&self, cpu: CpuId) -> Option<Nanos> {
        let record = self.cpu(cpu).record.lock_remote();
        record.published.filter(|_| record.is_available && record.presence != Presence::Awake)
    }
}
