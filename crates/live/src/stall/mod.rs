//! Stall reports: which lane did not turn, for how long, and what it was running.
//!
//! The core marks a lane that does not turn, and other lanes take over. The thread that has marked one looks
//! here afterwards, off every hot path, and writes a report: what the lane's record says that it runs
//! (`words/stall_record.rs`), and since when it is silent. The lane itself adds when it was back. Reports
//! wait in a ring until [`Machine::stalls`](crate::Machine::stalls) is called.
//!
//! What a callback, a poll of a task, a run of work and a softirq's handler cost more because of this: seven
//! stores to begin and one to end, on a cache line of their lane. An arm costs a store into the timer's
//! memory, on a machine that records arm locations; on others it looks at no word more. A task keeps two
//! words more.
//!
//! Invariants: no lane waits for the lock of the reports; a mark that was not reported because the lock was
//! taken is reported by the next look. Reports outlive panics and the end of the machine. Not reported: whose
//! wakers a timer wakes (a waker says nothing of its task); what a ksoftirqd runs, as no lane waits for that.

mod locations;
mod log;
mod report;
mod turn;

pub(crate) use crate::words::stall_record::{Callback, RunningCode};
pub(crate) use locations::RecordLocations;
pub(crate) use log::Stalls;
pub use report::{StallCause, StallReport};
