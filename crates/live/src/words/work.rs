//! Whether a piece of work waits, runs, or both: one word.
//!
//! Bits: PENDING, it is to run; RUNNING; QUEUED, an entry of it is in a queue, or will be put there by its
//! runner. The thread that sets PENDING while neither QUEUED nor RUNNING is set puts it into a queue; while
//! it runs, the runner does that at the end. So there is one entry at most, and it never runs twice at a
//! time. A cancel takes it out of no queue: the thread that finds it there has nothing to do, unless it was
//! queued again. What the queueing thread did before, the run sees: PENDING is set by a release and taken by
//! an acquire, also when it was set already, so a run that comes after a call that said "waits already" sees
//! what that caller did. Model: `models.rs`, `work_that_is_queued_runs_once`.
//!
//! Source: Linux 6.12, kernel/workqueue.c (WORK_STRUCT_PENDING), by behaviour.

use crate::words::sync::{AtomicU32, Ordering};

const PENDING: u32 = 1;
const RUNNING: u32 = 2;
const QUEUED: u32 = 4;

/// What a thread that wants it to run has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum QueueDuty {
    /// Put it into a queue.
    Enqueue,
    /// Nothing: its runner does it.
    AfterRun,
    /// Nothing: a cancel has left it there.
    Entered,
    /// Nothing: it waits already.
    Known,
}

/// The word.
#[derive(Debug)]
pub(crate) struct WorkState(AtomicU32);

impl WorkState {
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// A thread wants it to run.
    pub(crate) fn queue(&self) -> QueueDuty {
        // Release: pairs with Acquire in `begin`; and with AcqRel in `end`, if that finds it.
        let before = self.0.fetch_or(PENDING | QUEUED, Ordering::Release);
        match (before & PENDING != 0, before & QUEUED != 0, before & RUNNING != 0) {
            (true, _, _) => QueueDuty::Known,
            (false, true, _) => QueueDuty::Entered,
            (false, false, true) => QueueDuty::AfterRun,
            (false, false, false) => QueueDuty::Enqueue,
        }
    }

    /// By the thread that took it out of a queue. Says whether it is to be run: it may have been cancelled.
    #[must_use]
    pub(crate) fn begin(&self) -> bool {
        // Acquire: pairs with Release in `queue` and in `end`.
        self.change(Ordering::Acquire, |word| if word & PENDING != 0 { RUNNING } else { 0 })
    }

    /// By the runner. Says whether it was queued meanwhile: then the caller puts it into a queue.
    #[must_use]
    pub(crate) fn end(&self) -> bool {
        // AcqRel: pairs with Release in `queue`; and with Acquire in `begin` and `is_running`: the next run,
        // and who waited for the end, see this one.
        self.change(Ordering::AcqRel, |word| if word & PENDING != 0 { PENDING | QUEUED } else { 0 })
    }

    /// Says whether PENDING was set.
    #[allow(deprecated, reason = "the new name, `try_update`, is younger than our oldest Rust")]
    fn change(&self, order: Ordering, next: impl Fn(u32) -> u32) -> bool {
        // Relaxed: a failed try is repeated.
        let before = self.0.fetch_update(order, Ordering::Relaxed, |word| Some(next(word)));
        before.expect("every word has a next one") & PENDING != 0
    }

    /// It is not to run; says whether it waited. A run that is under way goes on.
    pub(crate) fn cancel(&self) -> bool {
        // Acquire: who cancels may free what the queueing thread left.
        self.0.fetch_and(!PENDING, Ordering::Acquire) & PENDING != 0
    }

    /// Whether it waits.
    pub(crate) fn is_pending(&self) -> bool {
        // Relaxed: out of date when it is used.
        self.0.load(Ordering::Relaxed) & PENDING != 0
    }

    /// Whether it runs.
    pub(crate) fn is_running(&self) -> bool {
        // Acquire: pairs with AcqRel in `end`.
        self.0.load(Ordering::Acquire) & RUNNING != 0
    }
}

#[cfg(all(test, loom))]
mod models;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{QueueDuty, WorkState};

    /// Goal: there is one entry in a queue at most, also after a cancel; one that was cancelled starts
    /// nothing; what was queued during a run is the runner's to put into a queue. Method: one after the
    /// other.
    #[test]
    fn one_entry() {
        let state = WorkState::new();
        assert_eq!(state.queue(), QueueDuty::Enqueue);
        assert!(state.cancel() && !state.cancel(), "and its entry stays");
        assert_eq!((state.queue(), state.queue()), (QueueDuty::Entered, QueueDuty::Known));
        assert!(state.begin());
        assert_eq!((state.queue(), state.queue()), (QueueDuty::AfterRun, QueueDuty::Known));
        assert!(state.end(), "it is to run once more");
        assert!(state.cancel());
        assert!(!state.begin(), "its entry is taken, and it was cancelled");
        assert_eq!(state.queue(), QueueDuty::Enqueue);
        assert!(state.begin() && state.queue() == QueueDuty::AfterRun && state.cancel());
        assert_eq!(state.queue(), QueueDuty::Entered, "the runner sees to that");
        assert!(state.end() && state.begin() && !state.end());
        assert!(!state.is_pending() && !state.is_running());
        assert!(state.queue() == QueueDuty::Enqueue && state.begin());
        assert!(state.queue() == QueueDuty::AfterRun && state.cancel() && !state.end());
        assert_eq!(state.queue(), QueueDuty::Enqueue, "what was cancelled during the run has no entry");
    }
}
