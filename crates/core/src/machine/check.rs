//! What must be true of a machine between calls.

use super::Machine;
use crate::base::earliest;
use crate::tmigr::CpuState;
use crate::{CpuId, Nanos, RawLock};

impl<L: RawLock, T: Copy> Machine<L, T> {
    /// Asserts the invariants of bases (W1 to W6), of the hierarchy (T1 to T6) and of both together: what an
    /// idle or absent CPU has published is what its bases hold, `is_idle` says what the hierarchy says,
    /// nothing waits on a base of a CPU that is offline, and no CPU is kicked that is absent.
    ///
    /// For tests: only while no other call is under way, and after actions were carried out. Cost: one look
    /// at every timer.
    ///
    /// # Panics
    /// When one does not hold.
    pub fn check(&self) {
        self.check_until(None);
    }

    /// [`check`](Self::check), and what can be said only of a moment that all threads have come to: an alarm
    /// that is tried again is at most a tick ahead; where all CPUs are idle one was told to be up for the
    /// first event, or an alarm was asked for; and what was collected is held by a CPU that is not marked.
    ///
    /// # Panics
    /// When one does not hold.
    pub fn check_at(&self, now: Nanos) {
        self.check_until(Some(now));
        if !self.is_pulling() {
            return;
        }
        if let Some(first) = self.hierarchy.first_of_idle() {
            self.check_told(first, now);
        }
        for id in self.base_ids().filter(|id| id.kind.is_pullable()) {
            let base = self.bases.lock(id, None);
            let Some(runner) = base.runner().filter(|_| base.has_expired()) else { continue };
            let flags = self.flags(runner);
            assert!(
                !flags.is_marked() || flags.may_have_tokens() || flags.is_mark_incomplete(),
                "CPU {runner} is marked, and keeps what it collected of {id}"
            );
        }
    }

    /// Where all CPUs are idle, one that sleeps was told to be up for the first event at `first`, or an alarm
    /// was asked for: where all are absent and none can be kicked, at most a tick ahead. When that moment has
    /// come a kick may be on its way.
    fn check_told(&self, first: Nanos, now: Nanos) {
        let cpus = || (0..self.bases.cpu_count()).map(CpuId);
        let told = cpus().filter_map(|cpu| self.sleeps_until(cpu)).min();
        let alarm = self.alarm.get();
        let is_any_parked = cpus().any(|cpu| self.hierarchy.cpu_state(cpu) == CpuState::Parked);
        let latest = if is_any_parked { first } else { first.max(self.in_a_tick(now)) };
        assert!(
            first <= now || told.is_some_and(|up| up <= first) || alarm.is_some_and(|up| up <= latest),
            "the first event of an idle tree is at {first}; told was {told:?}, and the alarm is {alarm:?}"
        );
    }

    fn check_until(&self, now: Option<Nanos>) {
        self.bases.check();
        if self.is_pulling() {
            let retry = now.map(|now| now..=self.in_a_tick(now));
            self.hierarchy.check(self.alarm.get(), retry.as_ref());
        }
        for index in 0..self.watch.len() {
            self.check_cpu(CpuId(index as u16));
        }
    }

    fn check_cpu(&self, cpu: CpuId) {
        let state = self.hierarchy.cpu_state(cpu);
        let mut bases = self.lock_bases(cpu, None);
        let (is_idle, next) = (bases.is_idle(), bases.next_global());
        let local = bases.next_local();
        drop(bases);
        if !self.flags(cpu).is_online() {
            assert!(state == CpuState::Unavailable, "CPU {cpu} is offline and {state:?}");
            assert!(earliest(local, next).is_none(), "CPU {cpu} is offline and has timers");
            return;
        }
        if !self.is_pulling() {
            return;
        }
        // Of one that was stopped inside a lock only the duties were handed over, so far. What it arms when
        // it goes on is published when the mark is completed, or ended by its next turn.
        let is_owed = self.flags(cpu).is_mark_incomplete();
        match state {
            CpuState::Awake => assert!(!is_idle, "CPU {cpu} is awake, its bases are idle"),
            CpuState::Parked | CpuState::Absent => {
                assert!(is_idle || is_owed, "CPU {cpu} is {state:?}, its bases are not idle");
            }
            CpuState::Unavailable => {}
        }
        let published = self.hierarchy.published(cpu);
        // A parked CPU whose own timer comes first is awake by then; if that timer is cancelled it still
        // wakes up.
        let wakes = self.watch[cpu.index()].sleeps_until();
        let is_seen = |next: Nanos| {
            state == CpuState::Parked
                && (wakes.is_some_and(|wakes| wakes <= next) || local.is_some_and(|local| local <= next))
        };
        let is_published = |next| published.is_some_and(|published| published <= next);
        if matches!(state, CpuState::Parked | CpuState::Absent) {
            // Or it is noted that this has to be published anew.
            let is_owed = is_owed || self.flags(cpu).is_unpublished();
            let is_known = is_owed || next.is_none_or(|next| is_published(next) || is_seen(next));
            assert!(is_known, "CPU {cpu} has {next:?} and published {published:?}");
        }
    }
}
