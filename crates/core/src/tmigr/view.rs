//! A hierarchy to look at: what a machine shows of its own, which only the machine may change.

use super::hierarchy::Hierarchy;
use super::record::CpuState;
use super::shape::{GroupId, Tree};
use super::state::Snapshot;
use crate::{CpuId, Nanos, RawLock};

/// The hierarchy of a machine, for reading.
#[derive(Clone, Copy, Debug)]
pub struct View<'a, L: RawLock>(pub(crate) &'a Hierarchy<L>);

impl<L: RawLock> View<'_, L> {
    /// The shape as it is now; a copy. Takes the lock of growth.
    #[must_use]
    pub fn tree(&self) -> Tree {
        self.0.tree()
    }

    /// As [`Hierarchy::group_state`].
    #[must_use]
    pub fn group_state(&self, group: GroupId) -> Option<Snapshot> {
        self.0.group_state(group)
    }

    /// As [`Hierarchy::group_next_expiry`].
    #[must_use]
    pub fn group_next_expiry(&self, group: GroupId) -> Option<Nanos> {
        self.0.group_next_expiry(group)
    }

    /// As [`Hierarchy::cpu_state`].
    #[must_use]
    pub fn cpu_state(&self, cpu: CpuId) -> CpuState {
        self.0.cpu_state(cpu)
    }

    /// As [`Hierarchy::wakeup`].
    #[must_use]
    pub fn wakeup(&self, cpu: CpuId) -> Option<Nanos> {
        self.0.wakeup(cpu)
    }

    /// As [`Hierarchy::published`].
    #[must_use]
    pub fn published(&self, cpu: CpuId) -> Option<Nanos> {
        self.0.published(cpu)
    }

    /// As [`Hierarchy::is_active`].
    #[must_use]
    pub fn is_active(&self, cpu: CpuId) -> bool {
        self.0.is_active(cpu)
    }
}
