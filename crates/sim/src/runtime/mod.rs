//! Whole runtimes in the simulator: the lanes of `quietcore_core::lane`, as real programs run them, on
//! virtual threads that an operating system stops wherever it likes.
//!
//! A [`RuntimePlan`] is drawn from a seed; [`run_runtime`] plays it and says which property did not hold, if
//! one did not: no timer early, lost or twice; none later than what its arm promises and what the stops of
//! threads explain; nothing pending that no thread will come for; the same of softirqs and of items in run
//! queues; the sentinel waits for no stopped thread; the end comes; a child that was forked keeps off what is
//! its parent's.
//! [`smallest_failure`] takes away faults and lanes while a run still fails.
//!
//! Absent: memory ordering (the models of the core see to that), and what it costs.

mod child;
mod consistency;
mod forgotten;
mod helper_thread;
mod holders;
mod item_signs;
mod items;
mod lane_signs;
mod lane_thread;
mod many;
mod oracle;
mod place;
mod plan;
mod queue;
mod queues;
mod run;
mod schedule;
mod softirq_signs;
mod softirqs;
mod stranger;
mod switch;
mod turn;
mod virtual_lock;
mod world;

pub use many::{RuntimesOutcome, run_runtimes};
pub use plan::{RuntimeFaults, RuntimePlan};
pub use run::{RuntimeRun, run_runtime, smallest_failure, tell_runtime};
pub use world::RuntimeCounts;
