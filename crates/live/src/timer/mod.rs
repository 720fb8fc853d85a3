//! Callback timers: a function that is called at a moment, once or again and again.
//!
//! [`TimerHandle`] is for Rust programs: a closure, counted, safe. [`RawTimer`] is for programs that keep
//! timers in memory of their own: a function and an argument, `unsafe`, the base of the C interface. Both
//! are a timer of the core and, beside it, what follows a run; the calls of both are in [`CallbackTimer`].
//!
//! A callback runs on the thread that drives the CPU that the timer is on: a lane, a spare lane or the
//! helper. No lock is held. It never runs twice at a time; everything may be called in it, except what
//! waits for a run to end ([`WouldBlock`]).
//!
//! ```text
//! callback.rs  the public calls, closures     raw.rs    memory, addresses
//! arm.rs       arms and cancels               rearm.rs  periods, waits beyond the wheel
//! many.rs      arms of many at once   cancel_all.rs  cancels of all
//! wait.rs      waiting for the end of a run   run.rs    a run
//! options.rs   what is fixed                  sync.rs   words
//! pending.rs   what is armed, to look at
//! ```
//!
//! Invariant: a timer whose last handle was dropped is not armed again. Source: Linux 6.12,
//! kernel/time/timer.c and hrtimer.c. Deviation: periods belong to the timer, not to the callback.

mod arm;
mod callback;
mod cancel_all;
mod ends;
mod many;
mod options;
mod pending;
mod raw;
mod rearm;
mod run;
mod sync;
#[cfg(test)]
mod tests;
mod wait;

pub use callback::TimerHandle;
pub(crate) use ends::{RunEnds, RunKind, RunScope};
pub use options::{Precision, TimerOptions};
pub use pending::PendingTimers;
pub use quietcore_core::Cancelled;
pub use quietcore_core::place::{ExactPolicy, Policy};
pub use raw::{CallbackTimer, CancelledTimer, RawFn, RawTimer, Run};
pub(crate) use raw::{DueCallback, EndedPeriods};
pub use wait::{CancelAndWait, WouldBlock};
