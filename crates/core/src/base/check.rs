//! Asserts every invariant of the bases, for tests and simulators that look after every step.

use super::Base;
use super::bases::Bases;
use super::store::Stored;
use super::timer::{ExactKind, TickKind, TimerKind, TimerRef};
use super::word::{BaseId, BaseKind, TimerWord};
use crate::lock::RawLock;
use crate::time::NEVER;
use crate::{CpuId, Nanos};
use alloc::vec;

impl<T: Copy> Base<T> {
    /// Asserts W1 to W5 of the queues, and what `mod.rs` says of a base. Cost: O(timers).
    ///
    /// # Panics
    /// When one does not hold, which is a bug of this crate or a broken promise of a timer's owner.
    pub(crate) fn check(&mut self) {
        let id = self.id;
        self.queues.check();
        self.runs.check();
        for due in self.runs.waiting() {
            let word = due.shared().word.load();
            assert!(
                word.is_at(id) && word.has(TimerWord::PENDING),
                "{due:?} waits on {id}, but {word:?} (W5)"
            );
            assert!(!word.has(TimerWord::COLLECTED), "{due:?} is on a record and in a queue");
            assert!(!word.has(TimerWord::DETACHED), "{due:?} is detached and waits for the end of a run");
        }
        let waiting = self.runs.waiting().count();
        assert!(waiting <= self.pending, "{id}: {waiting} wait and {} are pending", self.pending);
        if self.adopter().is_some() {
            assert_eq!(waiting, self.pending, "{id} is adopted and has timers in its queues");
            assert!(self.runner.is_none(), "{id} is adopted and has a runner");
        }
        self.check_published();
    }

    /// W1: what is published is the truth, or earlier after a cancel. Changes nothing.
    fn check_published(&mut self) {
        let (known, is_stale, overdue) = (self.published, self.is_stale, self.overdue);
        let truth = self.next_expiry().map_or(NEVER, |next| next.0);
        assert!(known <= truth, "{}: {known} was published, {truth} is true (W1)", self.id);
        assert!(is_stale || known == truth, "{}: {known} was published, {truth} is true (W1)", self.id);
        (self.published, self.is_stale, self.overdue) = (known, is_stale, overdue);
    }
}

impl<L: RawLock, T: Copy> Bases<L, T> {
    /// Asserts the invariants of all bases and of the timers that the machine owns. No other thread may use
    /// the bases meanwhile. Cost: O(bases + timers).
    ///
    /// # Panics
    /// When one does not hold.
    pub(crate) fn check(&self) {
        for cpu in 0..self.cpu_count() {
            for kind in BaseKind::ALL {
                let id = BaseId { cpu: CpuId(cpu), kind };
                let public = self.next_expiry(id);
                let mut base = self.lock(id, None);
                let known = (base.published != NEVER).then_some(Nanos(base.published));
                assert_eq!(public, known, "what anybody sees of {id}");
                base.check();
            }
        }
        self.check_store();
    }

    /// Every pending timer of the store is counted where its word says, and nowhere is more.
    fn check_store(&self) {
        let mut pending = vec![0; usize::from(self.cpu_count()) * BaseKind::ALL.len()];
        self.count_stored::<TickKind>(&mut pending);
        self.count_stored::<ExactKind>(&mut pending);
        for (at, count) in pending.into_iter().enumerate() {
            let kind = BaseKind::ALL[at % BaseKind::ALL.len()];
            let id = BaseId { cpu: CpuId((at / BaseKind::ALL.len()) as u16), kind };
            let known = self.lock(id, None).pending();
            assert!(count <= known, "{id} knows {known} pending timers, {count} say they are");
        }
    }

    /// Counts the store's timers of a kind by the base where they are pending.
    fn count_stored<K: Stored>(&self, pending: &mut [usize]) {
        for number in 0..self.store.capacity::<K>() {
            let timer = self.store.timer(self.store.id::<K>(number));
            if let Some(id) = timer.and_then(|timer| self.check_timer(timer)) {
                pending[id.index()] += 1;
            }
        }
    }

    /// The base where a timer is pending.
    fn check_timer<K: TimerKind>(&self, timer: TimerRef<T, K>) -> Option<BaseId> {
        let word = timer.shared().word.load();
        let id = word.base()?;
        let base = self.lock(id, None);
        let is_waiting = base.runs.pending(timer.address()).is_some();
        let is_running = base.runs.is_running(timer.address());
        assert!(!(is_running && word.has(TimerWord::DETACHED)), "{word:?} has a record");
        let is_linked = timer.linked().is_some();
        let is_pending = word.has(TimerWord::PENDING);
        assert!(is_pending == (is_linked || is_waiting), "{word:?}, {is_linked}, {is_waiting} (W5)");
        assert!(!(is_linked && is_waiting), "{word:?} is in a queue and on a record (W5)");
        assert!(!(is_pending && word.has(TimerWord::SHUT_DOWN)), "{word:?} (W6)");
        is_pending.then_some(id)
    }
}
