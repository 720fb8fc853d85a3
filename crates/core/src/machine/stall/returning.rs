//! The return: a CPU that was marked turns again.
//!
//! It takes the same locks in the same order as the mark, each within its bound: a CPU that returns never
//! waits for a CPU that was stopped inside them. Until it could take them it goes on as an absent CPU.

use super::super::Machine;
use super::super::cpu_bases::CpuBases;
use super::super::cpu_flags::FlagsSnapshot;
use crate::{CpuId, Nanos, RawLock};

impl<L: RawLock, T: Copy> Machine<L, T> {
    /// A CPU that was marked turns again; says whether its locks could be taken. If not it goes on as an
    /// absent one and tries again in its next turn. By the CPU itself.
    #[must_use = "a CPU whose locks were not to be had is still absent"]
    pub fn return_from_absence(&self, cpu: CpuId, now: Nanos) -> bool {
        let watch = &self.watch[cpu.index()];
        let silence = now.since(watch.heartbeat());
        let Some(mut bases) = self.try_lock_bases(cpu) else { return false };
        if !self.hierarchy.try_activate(cpu) {
            return false;
        }
        let before = self.end_mark(cpu, &mut bases);
        watch.flags.transition_to_busy();
        let policy = self.settings.stall;
        if before.is_marked_by_other() && policy.was_false(silence) {
            watch.false_marks.count();
            let last = watch.was_falsely_marked(now);
            policy.patient_until(last, now).into_iter().for_each(|until| watch.be_patient_until(until));
        }
        self.beat(cpu, now);
        true
    }

    /// A mark ends, under the bases' locks, when the hierarchy has the CPU as awake. Returns what the mark
    /// was.
    pub(in crate::machine) fn end_mark(&self, cpu: CpuId, bases: &mut CpuBases<'_, L, T>) -> FlagsSnapshot {
        bases.set_idle(false);
        self.bases.set_absent(cpu, false);
        self.end_mark_unless_absent(cpu)
    }

    /// The flags of a mark end, under the bases' locks, unless a watcher that could not have those has handed
    /// over the CPU's duties meanwhile: it notes that after it has changed the record, so one that clears the
    /// note looks at the record again. Returns the flags as they were.
    pub(super) fn end_mark_unless_absent(&self, cpu: CpuId) -> FlagsSnapshot {
        let change = self.watch[cpu.index()].flags.transition_to_unmarked();
        self.count_repairs(change);
        if self.hierarchy.try_is_absent(cpu) != Some(false) {
            self.defer_mark(cpu);
        }
        change.before
    }

    /// Whether `cpu` was marked absent, by another CPU or by itself, and has not returned: a hint. From any
    /// thread; cost: a load.
    #[must_use]
    pub fn is_marked(&self, cpu: CpuId) -> bool {
        self.flags(cpu).is_marked()
    }
}
