//! Runtimes of tokio whose time is a machine's.
//!
//! `quietcore::time` works on any runtime whose threads have a current machine. What is here saves entering
//! it on each of them, and lets time be paused: [`runtime::Builder`] has the names of tokio's.
//!
//! ```
//! use quietcore::time;
//! use std::time::Duration;
//!
//! let runtime = quietcore::tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
//! runtime.block_on(async {
//!     tokio::spawn(time::sleep(Duration::from_millis(1))).await.expect("it does not panic");
//! });
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Timers of tokio itself go by real time, always.
//!
//! Where timers are to scale with threads, and some CPUs to be left alone, [`lanes`] makes each CPU of a
//! machine a lane that hosts a runtime of its own.

#[cfg(feature = "macros")]
#[doc(hidden)]
pub mod attributes;
pub mod lanes;
pub mod runtime;
mod workers;

use quietcore_live::Machine;
use std::panic::resume_unwind;
use tokio::task::JoinHandle;

/// Runs `work` on a thread where it may block, as tokio's function of this name does; paused time stands
/// still until it is done. Time that is not held goes on: to the runtime such a thread is idle.
///
/// # Panics
/// When it is not called from a runtime. A panic of `work` is that of the task.
#[track_caller]
pub fn spawn_blocking<F, R>(work: F) -> JoinHandle<R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    let hold = Machine::try_current().map(Machine::hold);
    let thread = tokio::task::spawn_blocking(work);
    tokio::spawn(async move {
        let result = thread.await;
        // This task is polled now, so its waiter is woken before time can move.
        drop(hold);
        match result.map_err(tokio::task::JoinError::try_into_panic) {
            Ok(value) => value,
            Err(Ok(panic)) => resume_unwind(panic),
            // Only a runtime that shuts down cancels it, and with it this task.
            Err(Err(_)) => core::future::pending().await,
        }
    })
}
