//! What waits for a lane besides timers: real-time tasks, work, normal tasks.
//!
//! A queue per lane under one lock, held for a push or a pop. What is *bound* to the lane waits for it
//! whatever happens; the rest may be run by any lane whose gate is open, and is taken from a lane that is
//! busy, stuck or gone. `place.rs` is who gets what; `sync.rs` the words read without the lock; the lane's
//! loop is in `lane/items.rs`.
//!
//! Invariants: while the gate is closed nothing but bound items is in the queue; the lane's slot in
//! `CpuPriorities` is the highest priority that is queued or runs, absent while the gate is closed.

mod place;
mod queue;
mod wake_to;

pub(crate) use queue::{Item, NextItem, RunQueue};
pub use wake_to::WakeTo;
