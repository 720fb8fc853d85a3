//! The return: a CPU that was marked turns again.
//!
//! It takes the same locks in the same order as the mark, each within its bound: a CPU that comes back never
//! waits for one that was stopped inside them. Until it could take them it goes on as an absent CPU.

use super::super::shared::Shared;
use super::super::{Machine, flag};
use crate::{CpuId, Nanos, RawLock};

/// For how long a CPU that was marked without need gets twice the time, in ns.
const PATIENCE: Nanos = Nanos(1_000_000_000);

impl<L: RawLock, T: Copy> Machine<L, T> {
    /// A CPU that was marked turns again; says whether its locks were to be had. If not it goes on as an
    /// absent one and tries again in its next turn. By the CPU itself.
    ///
    /// ```
    /// # use quietcore_core::{Actions, CpuId, Machine, Nanos, SequentialLock, Settings};
    /// # use quietcore_core::topology::Topology;
    /// # let machine: Machine<SequentialLock, u32> =
    /// #     Machine::new(Topology::builder(2).build()?, Settings::default())?;
    /// # let (cpu, mut actions) = (CpuId::default(), Actions::new(2));
    /// # machine.online(cpu, Nanos(0), &mut actions)?;
    /// machine.go_absent(cpu, Nanos(5), &mut actions);
    /// assert!(machine.return_from_absence(cpu, Nanos(9)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use = "a CPU whose locks were not to be had is still absent"]
    pub fn return_from_absence(&self, cpu: CpuId, now: Nanos) -> bool {
        let watch = &self.watch[cpu.index()];
        let silence = now.since(watch.heartbeat());
        let Some(mut bases) = self.try_lock_shared(cpu) else { return false };
        if !self.hierarchy.try_activate(cpu) {
            return false;
        }
        self.clear_mark(cpu, &mut bases);
        watch.clear(flag::IDLE);
        // It was silent for hardly longer than is allowed, and not for the first time: it is slow, not stuck.
        let is_false =
            watch.clear(flag::ACCUSED) && silence.0 < self.settings.stall_after.0.saturating_mul(2);
        if is_false {
            watch.false_marks.count();
        }
        if is_false && watch.accused_falsely(now).is_some_and(|last| now.since(last) < PATIENCE) {
            watch.be_patient_until(Nanos(now.0.saturating_add(PATIENCE.0)));
        }
        self.beat(cpu, now);
        true
    }

    /// A mark ends, whoever finds it; under the bases' locks, when the hierarchy has the CPU as awake.
    pub(in crate::machine) fn clear_mark(&self, cpu: CpuId, bases: &mut Shared<'_, L, T>) {
        bases.set_idle(false);
        self.bases.set_absent(cpu, false);
        self.watch[cpu.index()].clear(flag::MARKED);
        self.settle_hand_over(cpu);
    }

    /// Under the bases' locks.
    pub(super) fn settle_hand_over(&self, cpu: CpuId) {
        if self.watch[cpu.index()].clear(flag::HANDED) {
            self.pending_repairs.count_down();
        }
    }

    /// Whether somebody has marked `cpu` absent, or it did so itself, and it is not back: a hint. From any
    /// thread; cost: a load.
    ///
    /// ```
    /// # use quietcore_core::{Actions, CpuId, Machine, Nanos, SequentialLock, Settings, topology::Topology};
    /// # let machine: Machine<SequentialLock, u32> =
    /// #     Machine::new(Topology::builder(2).build()?, Settings::default())?;
    /// # let (cpu, mut actions) = (CpuId::default(), Actions::new(2));
    /// # machine.online(cpu, Nanos(0), &mut actions)?;
    /// let _ = machine.mark_absent(cpu, &mut actions);
    /// assert!(machine.is_marked(cpu));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_marked(&self, cpu: CpuId) -> bool {
        self.has_flag(cpu, flag::MARKED)
    }
}
