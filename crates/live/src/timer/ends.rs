//! The ends of runs: which thread is inside of a run, and what waits for the end of one.

use crate::words::run_wait::{RunWait, WaitingTasks};
use core::cell::Cell;
use core::marker::PhantomData;
use core::task::Waker;
use std::sync::{Mutex, MutexGuard, PoisonError};

thread_local! {
    static RUNS: Cell<u32> = const { Cell::new(0) };
}

/// While it lives, its thread is inside of a run.
#[derive(Debug)]
pub(crate) struct RunScope(PhantomData<*const ()>);

impl RunScope {
    #[inline]
    pub(crate) fn begin() -> Self {
        RUNS.with(|runs| runs.set(runs.get() + 1));
        Self(PhantomData)
    }

    /// Whether the calling thread is inside of a run.
    pub(crate) fn is_here() -> bool {
        RUNS.with(Cell::get) != 0
    }
}

impl Drop for RunScope {
    #[inline]
    fn drop(&mut self) {
        RUNS.with(|runs| runs.set(runs.get() - 1));
    }
}

/// The threads and tasks of one machine that wait for the end of a run.
#[derive(Debug)]
pub(crate) struct RunEnds {
    threads: RunWait,
    tasks: WaitingTasks,
    wakers: Mutex<Wakers>,
}

#[derive(Debug)]
struct Wakers {
    waiting: Vec<(u64, Waker)>,
    last: u64,
}

impl RunEnds {
    pub(crate) fn new() -> Self {
        let wakers = Wakers { waiting: Vec::new(), last: 0 };
        Self { threads: RunWait::new(), tasks: WaitingTasks::new(), wakers: Mutex::new(wakers) }
    }

    fn lock(&self) -> MutexGuard<'_, Wakers> {
        self.wakers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns when `is_running` is false, which is asked again after the end of every run.
    pub(crate) fn wait_while(&self, is_running: impl FnMut() -> bool) {
        self.threads.wait_while(is_running);
    }

    /// A run is over, and the base knows it. The caller wakes what this returns: it is user code. Cost: a
    /// fence and two loads.
    #[inline]
    pub(crate) fn finished(&self) -> Vec<Waker> {
        self.threads.finished();
        if self.tasks.any() { self.waiting_tasks() } else { Vec::new() }
    }

    /// Whether a task waits.
    #[cfg(test)]
    pub(super) fn is_awaited(&self) -> bool {
        self.tasks.any()
    }

    #[cold]
    fn waiting_tasks(&self) -> Vec<Waker> {
        let mut wakers = self.lock();
        let waiting = core::mem::take(&mut wakers.waiting);
        self.tasks.store(0);
        drop(wakers);
        waiting.into_iter().map(|(_, waker)| waker).collect()
    }

    /// From now on the end of any run wakes `waker`, once. `ticket` is what this task's last call returned.
    pub(super) fn register(&self, ticket: Option<u64>, waker: &Waker) -> u64 {
        // Cloned before, and dropped after the lock is held: both are user code.
        let waker = waker.clone();
        let mut wakers = self.lock();
        let known = wakers.waiting.iter_mut().find(|(number, _)| Some(*number) == ticket);
        if let Some((number, known)) = known {
            let (number, before) = (*number, core::mem::replace(known, waker));
            drop(wakers);
            drop(before);
            return number;
        }
        wakers.last += 1;
        let number = wakers.last;
        wakers.waiting.push((number, waker));
        self.tasks.store(wakers.waiting.len());
        number
    }

    pub(super) fn leave(&self, ticket: u64) {
        let mut wakers = self.lock();
        let at = wakers.waiting.iter().position(|(number, _)| *number == ticket);
        let waker = at.map(|at| wakers.waiting.swap_remove(at));
        self.tasks.store(wakers.waiting.len());
        drop(wakers);
        // Dropping it is its owner's code.
        drop(waker);
    }
}
