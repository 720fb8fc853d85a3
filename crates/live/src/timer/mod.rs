//! Callback timers: a function that is called at a moment, once or again and again.
//!
//! [`TimerHandle`] is for Rust programs: a closure, counted, safe. [`RawTimer`] is for who keeps timers in
//! memory of his own: a function and an argument, `unsafe`, the base of the C interface. Both are a timer of
//! the core with a [`course`] beside it, which says what follows a run; what can be done with them is
//! [`CallbackTimer`].
//!
//! A callback runs on whichever thread plays the CPU that the timer is on: a lane, a spare lane or the
//! helper. No lock is held. It never runs twice at a time; everything may be called in it, except what waits
//! for a run to end ([`WouldBlock`]).
//!
//! Where what is: `options.rs` what is fixed; `verbs.rs`, `arm.rs` arms and cancels; `course.rs` periods;
//! `wait.rs` waiting for the end of a run; `run.rs` the run; `raw.rs`, `handle.rs` the memory; `local.rs`
//! timers of one thread; `sync.rs` words.
//! Invariant: a timer whose last handle was dropped is not armed again. Source: DESIGN section 5; Linux 6.12,
//! kernel/time/timer.c and hrtimer.c. Deviation: periods belong to the timer, not to the callback.

mod arm;
mod course;
mod handle;
mod options;
mod raw;
mod run;
mod sync;
#[cfg(test)]
mod tests;
mod verbs;
mod wait;

pub use handle::TimerHandle;
pub use options::{Precision, TimerOptions};
pub use quietcore_core::Cancelled;
pub use quietcore_core::place::{ExactPolicy, Policy};
pub(crate) use raw::Call;
pub use raw::{RawFn, RawTimer};
pub use run::Run;
pub use verbs::CallbackTimer;
pub use wait::{CancelAndWait, WouldBlock};
pub(crate) use wait::{InRun, RunEnds};
