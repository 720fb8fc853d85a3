//! The closures of a machine that block, and the threads that run them.

use super::state::{Runnable, run};
use quietcore_core::CpuId;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The most threads of a machine.
const LIMIT: usize = 512;

/// How long a thread waits for another closure.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub(super) struct PoolState {
    pub(super) waiting: VecDeque<Runnable>,
    pub(super) threads: usize,
    idle: usize,
    is_over: bool,
}

/// The closures of a machine that block, and who runs them.
#[derive(Debug, Default)]
pub(crate) struct BlockingPool {
    state: Mutex<PoolState>,
    changed: Condvar,
}

impl BlockingPool {
    pub(super) fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves `task`; says whether another thread is needed.
    pub(super) fn push(&self, task: Runnable) -> bool {
        let mut state = self.lock();
        if state.is_over {
            drop(state);
            drop(task);
            return false;
        }
        state.waiting.push_back(task);
        let is_needed = state.waiting.len() > state.idle && state.threads < LIMIT;
        if is_needed {
            state.threads += 1;
        }
        drop(state);
        self.changed.notify_one();
        is_needed
    }

    /// The calling thread runs closures until it has had none for a while.
    pub(super) fn work(&self) {
        self.work_with(PATIENCE);
    }

    fn work_with(&self, patience: Duration) {
        let mut state = self.lock();
        loop {
            if let Some(task) = state.waiting.pop_front() {
                drop(state);
                // Its panic is its result.
                let _ = run(task, CpuId::default());
                state = self.lock();
                continue;
            }
            if state.is_over {
                break;
            }
            state.idle += 1;
            let (after, timeout) =
                self.changed.wait_timeout(state, patience).unwrap_or_else(PoisonError::into_inner);
            state = after;
            state.idle -= 1;
            // A closure may have been left for this thread since its time was over.
            if timeout.timed_out() && state.waiting.is_empty() {
                break;
            }
        }
        state.threads -= 1;
    }

    /// Nothing is begun any more: what waits is dropped, threads end when they are done.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.is_over = true;
        let waiting = core::mem::take(&mut state.waiting);
        drop(state);
        self.changed.notify_all();
        drop(waiting);
    }
}

#[cfg(test)]
mod tests {
    use super::super::state::{Origin, Runnable, TaskPlace, TaskState};
    use crate::Machine;
    use quietcore_core::CpuId;
    use std::thread;
    use std::time::{Duration, Instant};

    /// Goal: a thread of a pool that is over ends at once. Method: one with much patience, which comes after
    /// the end.
    #[test]
    fn a_pool_that_is_over_keeps_no_thread() {
        let machine = Machine::start().expect("it starts");
        machine.blocking.end();
        machine.blocking.lock().threads += 1;
        let worker = thread::spawn(|| machine.blocking.work_with(Duration::from_secs(3600)));
        let end = Instant::now() + Duration::from_secs(20);
        while !worker.is_finished() {
            assert!(Instant::now() < end, "it waits");
            thread::sleep(Duration::from_millis(1));
        }
        machine.shutdown();
    }

    /// Goal: a closure that is left for a thread whose patience has just ended is run by it. Method: the
    /// pool's lock is held until that is so.
    #[test]
    fn a_thread_looks_once_more_before_it_ends() {
        let machine = Machine::start().expect("it starts");
        let origin = Origin::of::<()>(None);
        let state = TaskState::new(machine.reference(), TaskPlace::Anywhere, None, CpuId::default(), origin);
        let make = |_: &_| core::future::ready(());
        let (closure, task) = async_task::Builder::new().metadata(state).spawn(make, |_: Runnable| ());
        machine.blocking.lock().threads += 1;
        let patience = Duration::from_millis(20);
        let worker = thread::spawn(move || machine.blocking.work_with(patience));
        let end = Instant::now() + Duration::from_secs(20);
        let mut state = machine.blocking.lock();
        while state.idle == 0 {
            assert!(Instant::now() < end, "it does not wait");
            drop(state);
            thread::yield_now();
            state = machine.blocking.lock();
        }
        state.waiting.push_back(closure);
        thread::sleep(10 * patience);
        drop(state);
        worker.join().expect("it does not panic");
        assert!(task.is_finished() && machine.blocking.lock().waiting.is_empty(), "it was left there");
        machine.shutdown();
    }
}
