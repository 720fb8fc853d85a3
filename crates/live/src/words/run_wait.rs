//! How a thread waits until a callback has returned: an epoch, and how many wait for it.
//!
//! What is running is not kept here: the caller asks, under its own locks, and this file makes sure that the
//! thread that asked in vain is woken when a run is over. A run's end is announced after its record was
//! cleared:
//!   1. W counts itself;  2. W: fence;  3. W reads the epoch;  4. W asks: running, and sleeps on that epoch;
//!   5. F clears the record;  6. F: fence;  7. F reads the count: if it is not 0, moves the epoch and wakes.
//!
//! If 6 comes before 2, step 4 finds that the run is over. If 2 comes before 6, step 7 finds W, and the epoch
//! moves: before step 3, and then step 4 sees what 5 did; or after it, and then the word is no longer what W
//! sleeps on. Without a fence on either side both may read the old values (`models.rs`, `a_waiter_is_woken`).
//!
//! All waiters are woken by any run's end, and ask again: waits are rare, runs are not. So a run's end costs
//! a fence and a load, and no more while no thread waits. Absent: who may wait. A callback that waits for its
//! own end waits for ever. Source: docs/design/KERNEL.md, section 1, `timer_delete_sync`.
//! Deviation: it sleeps instead of
//! spinning.

use crate::words::futex::FutexWord;
use crate::words::sync::{AtomicU32, Ordering, fence};

/// For one machine.
#[derive(Debug)]
pub(crate) struct RunWait {
    /// Runs that ended while a thread waited, modulo 2^32.
    epoch: FutexWord,
    /// Threads in `wait_while`.
    waiters: AtomicU32,
}

impl RunWait {
    pub(crate) fn new() -> Self {
        Self { epoch: FutexWord::new(0), waiters: AtomicU32::new(0) }
    }

    /// Returns when `is_running` says no. It is asked at least once, and again after every run's end; it may
    /// lock.
    pub(crate) fn wait_while(&self, mut is_running: impl FnMut() -> bool) {
        if !is_running() {
            return;
        }
        let _waiting = Waiting::begin(&self.waiters);
        loop {
            // Acquire: pairs with the fence in `finished`: a new epoch comes with the end of the run.
            let epoch = self.epoch.value().load(Ordering::Acquire);
            if !is_running() {
                return;
            }
            // Whatever ended the sleep, the question is asked again.
            let _ = self.epoch.wait(epoch, None);
        }
    }

    /// A run is over: what `is_running` reads says so already. For any thread, with no lock held.
    /// Cost: a fence and a load; a system call if a thread waits.
    #[inline]
    pub(crate) fn finished(&self) {
        // Fence: pairs with the one in `Waiting::begin`, see the file's comment. Relaxed: the fence orders
        // it.
        fence(Ordering::SeqCst);
        if self.waiters.load(Ordering::Relaxed) != 0 {
            self.wake_all();
        }
    }

    #[cold]
    fn wake_all(&self) {
        // Relaxed: the fence in `finished` makes it a release, which pairs with Acquire in `wait_while`.
        self.epoch.value().fetch_add(1, Ordering::Relaxed);
        self.epoch.wake(u32::MAX);
    }
}

/// Counts a waiter while it lives: the question may panic.
struct Waiting<'a>(&'a AtomicU32);

impl<'a> Waiting<'a> {
    fn begin(waiters: &'a AtomicU32) -> Self {
        // Relaxed, fence: pairs with the fence in `finished`, see the file's comment.
        waiters.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        Self(waiters)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        // Relaxed: who reads the count too late wakes no thread.
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How many tasks wait for the end of a run: their wakers are elsewhere, and no one sleeps here.
#[derive(Debug)]
pub(crate) struct WaitingTasks(AtomicU32);

impl WaitingTasks {
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// For the holder of the list of the tasks' wakers. Whether a run has ended is looked at after this.
    pub(crate) fn store(&self, count: usize) {
        // Relaxed, fence: pairs with the fence of `RunWait::finished`, which comes before `any`: either this
        // count is seen there, or the end of the run is seen by a task that asks after this.
        self.0.store(u32::try_from(count).unwrap_or(u32::MAX), Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// After `RunWait::finished`.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        // Relaxed: the fence of `RunWait::finished` orders it, see `store`.
        self.0.load(Ordering::Relaxed) != 0
    }
}

#[cfg(all(test, loom))]
mod models;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::RunWait;
    use crate::words::sync::{AtomicU32, Ordering};
    use std::thread;

    /// Goal: who asks about something that does not run is not kept; who is kept is let go by the end of the
    /// run. Method: an answer that changes with the second question, which only a wake-up leads to.
    #[test]
    fn questions() {
        let wait = RunWait::new();
        wait.wait_while(|| false);
        wait.finished();
        let asked = AtomicU32::new(0);
        thread::scope(|scope| {
            let waiter = scope.spawn(|| wait.wait_while(|| asked.fetch_add(1, Ordering::Relaxed) < 2));
            while asked.load(Ordering::Relaxed) < 2 {
                thread::yield_now();
            }
            // RequestedAlarm twice: the third question is asked after a wake-up.
            wait.finished();
            waiter.join().expect("it does not panic");
        });
        assert_eq!(asked.load(Ordering::Relaxed), 3);
        assert_eq!(wait.waiters.load(Ordering::Relaxed), 0);
    }

    /// Goal: no waiter is left behind. Method: three threads wait for each of many runs; a lost wake hangs.
    #[test]
    fn many_runs() {
        const RUNS: u32 = if cfg!(miri) { 20 } else { 5_000 };
        let wait = RunWait::new();
        let ended = AtomicU32::new(0);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for run in 0..RUNS {
                        // Relaxed: the words of `wait` order it.
                        wait.wait_while(|| ended.load(Ordering::Relaxed) <= run);
                    }
                });
            }
            for run in 0..RUNS {
                if run % 64 == 0 {
                    thread::yield_now();
                }
                ended.store(run + 1, Ordering::Relaxed);
                wait.finished();
            }
        });
        assert_eq!(wait.waiters.load(Ordering::Relaxed), 0);
    }
}
