//! The three bases whose `is_idle` says the same: LOCAL, GLOBAL and GUEST of one CPU, locked together.

use super::Machine;
use crate::base::{BaseGuard, BaseId, BaseKind, earliest};
use crate::{CpuId, Nanos, RawLock};

/// Holds the locks, in their order, and so the right to write `is_idle` of all three.
pub(super) struct CpuBases<'a, L: RawLock, T> {
    local: BaseGuard<'a, L, T>,
    global: BaseGuard<'a, L, T>,
    guest: BaseGuard<'a, L, T>,
}

impl<L: RawLock, T: Copy> CpuBases<'_, L, T> {
    /// When only this CPU's own timers are due.
    pub(super) fn next_local(&mut self) -> Option<Nanos> {
        self.local.next_expiry()
    }

    /// When timers that others may run are due.
    pub(super) fn next_global(&mut self) -> Option<Nanos> {
        earliest(self.global.next_expiry(), self.guest.next_expiry())
    }

    /// When the first exact timer that others may run is due: they look with their ticks, which may be later.
    pub(super) fn next_exact(&self) -> Option<Nanos> {
        earliest(self.global.next_exact(), self.guest.next_exact())
    }

    /// Whether the CPU looks at these bases only when it is kicked or wakes up.
    pub(super) fn is_idle(&self) -> bool {
        self.local.is_idle
    }

    pub(super) fn set_idle(&mut self, is_idle: bool) {
        for base in [&mut self.local, &mut self.global, &mut self.guest] {
            base.is_idle = is_idle;
        }
    }

    /// Whether `cpu` has collected timers of its own and not run them all: its turn stopped at its budget.
    pub(super) fn has_leftovers(&self, cpu: CpuId) -> bool {
        let is_left = |base: &BaseGuard<'_, L, T>| base.runner() == Some(cpu) && base.has_expired();
        is_left(&self.local) || is_left(&self.global) || is_left(&self.guest)
    }
}

impl<L: RawLock, T: Copy> Machine<L, T> {
    /// Waits for the locks; `by` is the CPU that calls, if it is one.
    pub(super) fn lock_bases(&self, cpu: CpuId, by: Option<CpuId>) -> CpuBases<'_, L, T> {
        let lock = |kind| self.bases.lock(BaseId { cpu, kind }, by);
        let (local, global) = (lock(BaseKind::Local), lock(BaseKind::Global));
        CpuBases { local, global, guest: lock(BaseKind::Guest) }
    }

    /// Takes the locks if all can be had within their bound.
    pub(super) fn try_lock_bases(&self, cpu: CpuId) -> Option<CpuBases<'_, L, T>> {
        let lock = |kind| self.bases.try_lock(BaseId { cpu, kind });
        let (local, global) = (lock(BaseKind::Local)?, lock(BaseKind::Global)?);
        Some(CpuBases { local, global, guest: lock(BaseKind::Guest)? })
    }
}
