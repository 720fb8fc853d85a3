//! Closures that block: threads of their own, as many as are needed, away from isolated CPUs.
//!
//! A closure goes to a thread that waits, or to a new one while there are fewer than the limit, else it waits
//! for a thread. Threads end after ten idle seconds. They inherit nothing from who started them: a lane's
//! thread may be bound to a CPU or have a real-time priority, and they are moved to all CPUs that are not
//! isolated. Absent: priorities among closures; ending one that has begun.

use super::error::SpawnError;
use super::join::JoinHandle;
use super::state::{Contained, Origin, Runnable, TaskPlace, TaskState, run};
use crate::machine::Machine;
use core::panic::Location;
use quietcore_core::CpuId;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The most threads of a machine.
const LIMIT: usize = 512;

/// How long a thread waits for another closure.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
struct PoolState {
    waiting: VecDeque<Runnable>,
    threads: usize,
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
    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves `task`; says whether another thread is needed.
    fn push(&self, task: Runnable) -> bool {
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
    fn work(&self) {
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
                self.changed.wait_timeout(state, PATIENCE).unwrap_or_else(PoisonError::into_inner);
            state = after;
            state.idle -= 1;
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

impl Machine {
    /// Runs `closure`, which may block, on a thread that is nobody's lane. Works without lanes, too. When the
    /// machine ends, closures that have not begun are dropped; those that have are not waited for.
    ///
    /// # Errors
    /// When the machine does not run, or the system refuses a thread and none is there.
    ///
    /// ```
    /// # let machine = quietcore::Machine::start()?;
    /// let size = machine.spawn_blocking(|| std::fs::read("/proc/self/stat").map(|text| text.len()))?;
    /// assert!(futures_executor::block_on(size)?? > 0);
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn spawn_blocking<F, R>(&'static self, closure: F) -> Result<JoinHandle<R>, SpawnError>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        if !self.is_running() {
            return Err(SpawnError::NotRunning);
        }
        let origin = Origin::of::<F>(self, Location::caller());
        let state = TaskState::new(self, TaskPlace::Anywhere, None, CpuId::default(), origin);
        let make =
            move |state: &Arc<TaskState>| Contained::new(async move { closure() }, Arc::clone(state), None);
        let (runnable, task) = async_task::Builder::new().metadata(state).spawn(make, leave);
        let handle = JoinHandle::new(task, runnable.waker());
        if self.blocking.push(runnable) {
            self.start_blocking_thread()?;
        }
        Ok(handle)
    }

    fn start_blocking_thread(&'static self) -> Result<(), SpawnError> {
        let work = move || {
            self.keep_off_isolated();
            self.join_own_threads();
            self.blocking.work();
            self.leave_own_threads();
        };
        let thread = std::thread::Builder::new().name("quietcore-block".to_owned()).spawn(work);
        let Err(error) = thread else { return Ok(()) };
        let mut state = self.blocking.lock();
        state.threads -= 1;
        // Another thread will come to it; without any it is given up.
        if state.threads > 0 {
            return Ok(());
        }
        let waiting = core::mem::take(&mut state.waiting);
        drop(state);
        drop(waiting);
        Err(SpawnError::NoThread { error: error.raw_os_error().unwrap_or_default() })
    }
}

/// A closure is polled once; only an abort wakes it, to be dropped.
fn leave(task: Runnable) {
    let machine = task.metadata().machine;
    if machine.blocking.push(task)
        && let Err(error) = machine.start_blocking_thread()
    {
        // What waited was dropped: its handles say so.
        let _ = error;
    }
}
