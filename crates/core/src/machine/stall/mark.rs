//! The mark: a CPU is recorded as absent, by itself before it blocks or by another CPU that watches it.
//!
//! A mark takes LOCAL, GLOBAL and GUEST of the CPU and then its record in the hierarchy, each within the
//! lock's bound. A CPU that was stopped inside one of these locks is marked in two steps: its duties in the
//! hierarchy go to others at once, the rest follows when the locks can be had.

use super::super::Machine;
use super::super::cpu_bases::CpuBases;
use crate::lock::Busy;
use crate::tmigr::CpuState;
use crate::{Actions, CpuId, Nanos, RawLock};

/// What became of an attempt to mark a CPU absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum MarkOutcome {
    /// It is absent now.
    Marked,
    /// It was absent or parked already, or it has turned since.
    NotAwake,
    /// It was stopped inside one of its locks; try again at the next tick.
    Busy,
}

impl<L: RawLock, T: Copy> Machine<L, T> {
    /// `cpu` is about to block in user code: other CPUs may run its global timers. By the CPU itself. It is
    /// not marked if a thread was stopped inside a lock that this needs: then it is found to be stalled.
    pub fn go_absent(&self, cpu: CpuId, now: Nanos, actions: &mut Actions) {
        self.beat(cpu, now);
        let mut bases = self.lock_bases(cpu, Some(cpu));
        let next = bases.next_global();
        let Ok(first) = self.hierarchy.try_go_absent(cpu, next) else {
            self.watch[cpu.index()].busy_marks.count();
            self.note_stuck(cpu);
            return;
        };
        let first = first.filter(|_| self.is_pulling());
        bases.set_idle(true);
        self.count_repairs(self.watch[cpu.index()].flags.transition_to_marked());
        self.bases.set_absent(cpu, true);
        drop(bases);
        self.ask_for_alarm(first, actions);
        self.take_back_tokens(cpu, actions);
    }

    /// Another CPU notices that `cpu` does not turn. Never waits for a lock.
    pub fn mark_absent(&self, cpu: CpuId, actions: &mut Actions) -> MarkOutcome {
        self.mark_if(cpu, actions, || true)
    }

    /// The same, unless `is_stuck` says no under these locks.
    pub(super) fn mark_if(
        &self,
        cpu: CpuId,
        actions: &mut Actions,
        is_stuck: impl Fn() -> bool,
    ) -> MarkOutcome {
        let Some(mut bases) = self.try_lock_bases(cpu) else {
            self.watch[cpu.index()].busy_marks.count();
            if self.hand_over_duties(cpu, actions).is_err() {
                self.note_stuck(cpu);
            }
            return MarkOutcome::Busy;
        };
        if bases.is_idle() || !is_stuck() {
            return MarkOutcome::NotAwake;
        }
        let next = bases.next_global();
        let Ok(first) = self.hierarchy.try_go_absent(cpu, next) else {
            self.watch[cpu.index()].busy_marks.count();
            self.note_stuck(cpu);
            return MarkOutcome::Busy;
        };
        self.complete_absence(cpu, &mut bases);
        drop(bases);
        self.ask_for_alarm(first, actions);
        self.take_back_tokens(cpu, actions);
        MarkOutcome::Marked
    }

    /// What a mark is besides the record in the hierarchy, under the bases' locks.
    pub(super) fn complete_absence(&self, cpu: CpuId, bases: &mut CpuBases<'_, L, T>) {
        bases.set_idle(true);
        let watch = &self.watch[cpu.index()];
        self.count_repairs(watch.flags.transition_to_marked_by_other());
        watch.marks.count();
        self.bases.set_absent(cpu, true);
    }

    /// `cpu` was stopped inside a lock of its bases: its duties in the hierarchy go to others at once, with
    /// what is known of its timers without the lock; the mark is completed when that can be had. It counts as
    /// marked, so that it comes back by the same way. `Err`: they are still its own.
    fn hand_over_duties(&self, cpu: CpuId, actions: &mut Actions) -> Result<(), Busy> {
        if self.hierarchy.try_cpu_state(cpu).ok_or(Busy)? != CpuState::Awake {
            return Ok(());
        }
        let next = self.bases.next_global(cpu);
        self.defer_mark(cpu);
        // Also `Err` if it has gone idle since: then there are no duties to hand over.
        let first = self.hierarchy.try_go_absent_from_awake(cpu, next)?;
        self.watch[cpu.index()].marks.count();
        // Again: in between the CPU, or another watcher, may have found the record as it was before, and
        // ended a mark that had not been made.
        self.defer_mark(cpu);
        self.ask_for_alarm(first, actions);
        Ok(())
    }

    /// `cpu` is stalled and could not be marked, so it may still be the migrator of its groups: until it
    /// turns or is marked, each CPU that is awake looks after all that are idle
    /// ([`next_expired`](Self::next_expired)), and takes back what it has collected and not run. One that is
    /// only slow, or about to block, finds that out when it locks again. Tests: `site::stopped`,
    /// `busy::what_a_stuck_cpu_collected_is_taken_back`.
    pub(super) fn note_stuck(&self, cpu: CpuId) {
        self.count_repairs(self.watch[cpu.index()].flags.transition_to_stuck());
    }

    /// Without the bases' locks: the mark of `cpu` has to be completed, or ended, by the next watcher.
    /// [`watch`](Self::watch) alone would look at active CPUs only. Test: `site::stall::armed_while_it_runs`.
    pub(super) fn defer_mark(&self, cpu: CpuId) {
        self.count_repairs(self.watch[cpu.index()].flags.transition_to_mark_incomplete());
    }

    /// Completes a mark of which only the duties were handed over, if the locks can be had now.
    pub(super) fn complete_mark(&self, cpu: CpuId, now: Nanos, actions: &mut Actions) {
        let Some(mut bases) = self.try_lock_bases(cpu) else { return };
        let watch = &self.watch[cpu.index()];
        match self.hierarchy.try_is_absent(cpu) {
            None => return,
            // Also of one that was isolated since: it is absent when it is so no more. Test:
            // `absence::a_mark_outlives_an_isolation`.
            Some(true) => {
                let next = bases.next_global();
                let Ok(first) = self.hierarchy.try_publish(cpu, next) else { return };
                bases.set_idle(true);
                self.bases.set_absent(cpu, true);
                self.count_repairs(watch.flags.transition_to_mark_complete());
                self.ask_for_alarm(first, actions);
            }
            // It went on in the lock that it was stopped in, and its record says something else by now.
            Some(false) => {
                let _ = self.end_mark_unless_absent(cpu);
                // Meanwhile its heartbeats were not stored.
                watch.beat(now);
                self.bases.set_absent(cpu, false);
            }
        }
        drop(bases);
        self.repair_tokens(cpu, actions);
    }
}
