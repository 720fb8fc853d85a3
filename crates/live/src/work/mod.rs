//! Work: a closure that is queued again and again, runs on a lane, and never twice at a time.
//!
//! Queueing work that waits already does nothing; work that is queued while it runs runs once more. Bound
//! work runs on its lane only; unbound work on any that is not isolated. [`DelayedWork`] is work and a timer
//! that queues it. Unlike a timer's callback, work may take long: between two pieces of it a lane looks after
//! its timers, and what else waits behind it goes to others.
//!
//! `state.rs` is the word. Source: Linux 6.12, kernel/workqueue.c, by behaviour. Deviation: there are no
//! queues to name, and no worker threads but the lanes.

mod delayed;
mod item;
mod queued;

pub use delayed::DelayedWork;
pub(crate) use item::run;
pub use item::{Work, WorkOptions};
pub(crate) use queued::Queued;
