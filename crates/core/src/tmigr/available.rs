//! Joining and leaving: a CPU that is isolated or offline is in no active mask, runs no other CPU's global
//! timers, and no other runs its own (T4).
//!
//! Both calls may come from any thread, under the record's lock, because this machine keeps whether a CPU is
//! idle in the hierarchy; the kernel reads it from the CPU itself and so has to run there. Both are
//! idempotent, and wait for the locks that they need. Joiners come before leavers, by the caller. Source:
//! Linux 6.19, kernel/time/timer_migration.c.

use super::event::{AtBusyGroup, TreeChild};
use super::hierarchy::Hierarchy;
use super::presence::waited;
use super::record::Presence;
use super::walk::Walker;
use crate::sync::interleave;
use crate::{CpuId, Nanos, RawLock};

impl<L: RawLock> Hierarchy<L> {
    /// `cpu` takes part from now on; `next` is its first global expiry, which counts if it is not awake.
    ///
    /// Returns the first expiry of a tree in which no CPU is awake: one must wake up for it.
    pub fn set_available(&self, cpu: CpuId, next: Option<Nanos>) -> Option<Nanos> {
        interleave!(BeforeCpuLock);
        let this = self.cpu(cpu);
        let mut record = this.record.lock_remote();
        if core::mem::replace(&mut record.is_available, true) {
            return None;
        }
        if record.presence == Presence::Awake {
            let child = TreeChild::Cpu { is_active: true, event: None };
            return waited(self.walk_up(child, this.leaf(), Walker::Awake, AtBusyGroup::Waits));
        }
        waited(self.publish_event(cpu, &mut record, next, AtBusyGroup::Waits))
    }

    /// `cpu` takes no part from now on.
    ///
    /// Returns the first expiry of a tree in which no CPU is awake any more: the caller must wake an
    /// available one, and see that it is awake, before it relies on that expiry.
    #[must_use = "nobody else wakes up for what is returned"]
    pub fn set_unavailable(&self, cpu: CpuId) -> Option<Nanos> {
        interleave!(BeforeCpuLock);
        let this = self.cpu(cpu);
        let mut record = this.record.lock_remote();
        if !core::mem::replace(&mut record.is_available, false) {
            return None;
        }
        this.set_wakeup(None);
        self.exclude(cpu, &mut record)
    }
}
