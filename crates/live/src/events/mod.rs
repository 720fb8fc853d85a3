//! Events for programs that follow themselves with `tracing`, by the feature of that name. Without it nothing
//! here does anything.
//!
//! What the program asked for itself (a machine starts or ends, a lane comes or goes, isolation changes) is
//! told on its own thread, before the call returns. What a lane finds while it turns (a stall, a panic) waits
//! in a bounded queue for a thread that has nothing else to do: a subscriber may block, and a lane must not.
//!
//! Invariants: no subscriber is called while a lock of the machine is held, on an arm, on a cancel or in a
//! turn. What does not fit into the queue is counted, and told with the next. Target: `quietcore`.

mod channel;
mod found;
#[cfg(feature = "tracing")]
mod queue;
mod tell;

pub(crate) use channel::Events;
pub(crate) use tell::host_isolation_changed;
