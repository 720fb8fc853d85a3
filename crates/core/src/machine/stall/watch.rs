//! The watch: each CPU looks at its neighbours' heartbeats once per tick, and marks those that are stalled.

use super::super::Machine;
use super::mark::MarkOutcome;
use crate::tmigr::CpuState;
use crate::{Actions, CpuId, Nanos, RawLock};

impl<L: RawLock, T: Copy> Machine<L, T> {
    /// Looks at the neighbours, once per tick: a stalled CPU that has something overdue is marked. By the CPU
    /// itself, awake. Returns how many were marked.
    ///
    /// It judges only if its own last look was recent: when the whole machine was stopped, every heartbeat is
    /// old.
    pub fn watch(&self, cpu: CpuId, now: Nanos, actions: &mut Actions) -> u32 {
        self.mark_stalled(cpu, now, actions, |other| self.has_overdue(other, now))
    }

    /// The same by a CPU that is about to sleep: every stalled CPU is marked, also with nothing overdue.
    /// Asleep it would not see that something is; and a stalled CPU that is the only one awake in the
    /// hierarchy answers for all timers.
    pub fn watch_before_sleep(&self, cpu: CpuId, now: Nanos, actions: &mut Actions) -> u32 {
        self.mark_stalled(cpu, now, actions, |_| true)
    }

    /// Whether the next CPU that `cpu` watches is stalled, or a look has left something undone, as a lock was
    /// not to be had: a CPU that sees that should not sleep before it has looked again. Without a lock.
    #[must_use]
    pub fn watches_stalled(&self, cpu: CpuId, now: Nanos) -> bool {
        let mut is_stalled = false;
        if self.is_pulling() {
            is_stalled = self.has_repairs();
            self.hierarchy.watched(cpu, |other| {
                is_stalled |= self.is_stalled(other, now);
                true
            });
        }
        is_stalled
    }

    fn mark_stalled(
        &self,
        cpu: CpuId,
        now: Nanos,
        actions: &mut Actions,
        is_to_be_marked: impl Fn(CpuId) -> bool,
    ) -> u32 {
        self.beat(cpu, now);
        let looked = self.watch[cpu.index()].look(now);
        if !self.is_pulling() || !self.settings.stall.may_judge(now.since(looked), self.settings.tick.nanos())
        {
            return 0;
        }
        self.finish_repairs(now, actions);
        let mut marked = self.mark_missed_wakeups_once_per_tick(now, actions);
        self.hierarchy.watched(cpu, |other| {
            // A CPU that turns ends the look at this level: it watches the next itself. Behind one that does
            // not turn, the next is looked at, even if the first has nothing to be marked for. Test:
            // `site::stall::one_freezes_anywhere`.
            if !self.is_stalled(other, now) {
                return true;
            }
            if is_to_be_marked(other) {
                marked += u32::from(self.mark_if_stalled(other, now, actions) == MarkOutcome::Marked);
            }
            false
        });
        marked
    }

    /// Marks `cpu`, unless it has turned since it was looked at: it says so under the locks.
    fn mark_if_stalled(&self, cpu: CpuId, now: Nanos, actions: &mut Actions) -> MarkOutcome {
        self.mark_if(cpu, actions, || self.is_stalled(cpu, now))
    }

    /// For a sentinel: marks every CPU that is awake in the hierarchy and has not turned for too long. Says
    /// whether one of them has.
    pub(in crate::machine) fn mark_all_stalled(&self, now: Nanos, actions: &mut Actions) -> bool {
        let mut turns = false;
        for cpu in (0..self.bases.cpu_count()).map(CpuId) {
            if self.hierarchy.try_cpu_state(cpu) != Some(CpuState::Awake) {
                continue;
            }
            if self.is_stalled(cpu, now) {
                let _ = self.mark_if_stalled(cpu, now, actions);
            } else {
                turns = true;
            }
        }
        turns
    }

    /// Whether a CPU that could not be marked turns again, or has no duties any more.
    pub(super) fn is_not_stuck(&self, cpu: CpuId, now: Nanos) -> bool {
        let state = self.hierarchy.try_cpu_state(cpu);
        state.is_some_and(|state| state != CpuState::Awake) || !self.is_stalled(cpu, now)
    }

    /// Whether `cpu` has not turned for too long.
    fn is_stalled(&self, cpu: CpuId, now: Nanos) -> bool {
        let watch = &self.watch[cpu.index()];
        self.settings.stall.is_stalled(now.since(watch.heartbeat()), watch.patience(now))
    }

    /// Whether something waits for `cpu` since a tick or more.
    fn has_overdue(&self, cpu: CpuId, now: Nanos) -> bool {
        let tick = self.settings.tick.nanos();
        let overdue = |next| self.settings.stall.is_overdue(next, now, tick);
        // Its own timers, those of a group that it looks after (it may have become the migrator only when
        // another CPU was marked), or those that it has collected. Tests: `site::stall`.
        self.bases.next_global(cpu).is_some_and(overdue)
            || self.hierarchy.requires_handle_remote(cpu, now.since(tick))
            || self.holds_tokens(cpu)
    }

    /// Whether `cpu` has collected timers, of its own bases or of others, and not run them all.
    fn holds_tokens(&self, cpu: CpuId) -> bool {
        let mut ids = self.base_ids().filter(|id| id.kind.is_pullable());
        ids.any(|id| self.bases.try_lock(id).is_some_and(|base| base.runner() == Some(cpu)))
    }
}
