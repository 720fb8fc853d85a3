//! Tasks: futures that lanes run, real-time ones before all others.
//!
//! ```text
//! spawn.rs    starting one, with options        join.rs    its result, and ending it early
//! state.rs    what a queue knows of it          live.rs    all that have not ended, for the end
//! blocking.rs closures that block               sync.rs    the words
//! ```
//!
//! A task is woken into the queue of a lane (`run_queue/`) and polled there between timers and softirqs
//! (`lane/items.rs`). Nothing interrupts a poll: a task that computes for long holds up its lane, and what
//! else waits there goes to others. A panic ends its task only.
//!
//! The handle, the waker and the storage of a task are those of the crate `async-task`.

mod blocking;
mod error;
mod join;
mod live;
mod local;
mod poll;
mod pool;
mod spawn;
mod state;
mod sync;

pub use crate::run_queue::WakeTo;
pub use crate::work::{DelayedWork, Work, WorkOptions};
pub use error::{JoinError, SpawnError};
pub use join::{AbortHandle, JoinHandle};
pub(crate) use live::LiveTasks;
pub(crate) use local::end_local_tasks;
pub(crate) use pool::BlockingPool;
pub use quietcore_core::realtime::Priority;
pub use spawn::TaskOptions;
pub(crate) use state::{Runnable, TaskPlace, run};
pub(crate) use sync::LastCpu;
