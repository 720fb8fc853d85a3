//! Closures that block: threads of their own, as many as are needed, away from isolated CPUs.
//!
//! A closure goes to a thread that waits, or to a new one while there are fewer than the limit, else it waits
//! for a thread. Threads end after ten idle seconds. They inherit nothing from who started them: a lane's
//! thread may be bound to a CPU or have a real-time priority, and they are moved to all CPUs that are not
//! isolated. Absent: priorities among closures; ending one that has begun.

use super::error::SpawnError;
use super::join::JoinHandle;
use super::poll::Contained;
use super::state::{Origin, TaskPlace, TaskState};
use crate::machine::Machine;
use core::panic::Location;
use quietcore_core::CpuId;
use std::sync::Arc;

impl Machine {
    /// Runs `closure`, which may block, on a thread that is no lane. Works without lanes, too. When
    /// the machine ends, closures that have not begun are dropped; those that have are not waited for.
    ///
    /// # Errors
    /// When the machine does not run, or the system refuses a thread and none is there.
    #[track_caller]
    pub fn spawn_blocking<F, R>(&'static self, closure: F) -> Result<JoinHandle<R>, SpawnError>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        if !self.is_running() {
            return Err(SpawnError::NotRunning);
        }
        let origin = Origin::of::<F>(self.spawn_location(Location::caller()));
        let state = TaskState::new(self.reference(), TaskPlace::Anywhere, None, CpuId::default(), origin);
        let make =
            move |state: &Arc<TaskState>| Contained::new(async move { closure() }, Arc::clone(state), None);
        // It is scheduled from its beginning to its only poll, so no wake-up schedules it again.
        let (runnable, task) = async_task::Builder::new().metadata(state).spawn(make, drop);
        let handle = JoinHandle::new(task, runnable.waker());
        if self.blocking.push(runnable) {
            self.start_blocking_thread()?;
        }
        Ok(handle)
    }

    fn start_blocking_thread(&'static self) -> Result<(), SpawnError> {
        let work = move || {
            self.keep_off_isolated();
            let _own = self.join_own_threads();
            self.blocking.work(|| self.is_forked());
        };
        let thread = std::thread::Builder::new().name("quietcore-block".to_owned()).spawn(work);
        let Err(error) = thread else { return Ok(()) };
        if self.blocking.lose_thread() {
            return Err(SpawnError::NoThread { error: error.raw_os_error().unwrap_or_default() });
        }
        Ok(())
    }
}
