//! World 1: the core on the threads of a real machine.
//!
//! A [`Machine`] gives every CPU timer bases of its own, so that arming and cancelling scales with threads,
//! and expires them wherever somebody is awake, so that a blocked thread delays nobody else's. It works under
//! any executor and without one: threads arm, a helper thread expires. Threads that turn by themselves can
//! claim a CPU and do it in their own loop.
//!
//! ```
//! use quietcore_live::Machine;
//!
//! let machine = Machine::start()?;
//! machine.install_default()?;
//! assert!(Machine::current().is_running());
//! machine.shutdown();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Where what is: `machine/` the machine, its helper, running what is due; `lane/` threads that play CPUs;
//! `time/` futures; `timer/` callbacks; `clock/` real and virtual time; `metrics/` counters; `stall/` who did
//! not turn; `isolation/` the host's masks; `events.rs`, `probe.rs` what tools are told, by the
//! features `tracing` and `usdt`; `words/` the words that threads share, all that exists under `--cfg loom`.
//!
//! `run_queue/` is what waits for lanes besides timers: `softirq/`, `task/`, `work/`.
//!
//! Not here: what is decided (`quietcore-core`).
#![cfg(not(loom))]

mod clock;
mod events;
mod fork;
mod isolation;
mod lane;
mod machine;
mod metrics;
mod payload;
mod probe;
mod run_queue;
mod softirq;
mod stall;
mod task;
pub mod time;
mod timer;
pub mod virtual_time;
mod words;
mod work;

pub use isolation::{HostIsolation, HostWatch, HostWatchGuard, IsolationChange, IsolationProblem};
pub use lane::{ClaimError, Cpu, Idle, IsolateError, LaneThreads, Note, Pinning, Turned, Unparker, WaitBy};
pub use machine::{ArmError, Builder, EnterGuard, InstallError, Machine, OnPanic, StartError};
pub use metrics::{CpuMetrics, Histogram, LaneMetrics, LaneState, Metrics};
pub use quietcore_core::place::{ExactPolicy, Exclusion, Policy};
pub use quietcore_core::realtime::Priority;
pub use quietcore_core::softirq::TimerRaise;
pub use quietcore_core::{Cancelled, Counters, CpuError, CpuId, CpuSet, IsolationReport, Nanos};
pub use run_queue::WakeTo;
pub use softirq::{Awareness, RaiseError, Runner, SoftirqRun, Vector, VectorSet};
pub use stall::{Stall, StallReport};
pub use task::{AbortHandle, JoinError, JoinHandle, SpawnError, TaskOptions};
pub use timer::{
    CallbackTimer, CancelAndWait, Precision, RawFn, RawTimer, Run, TimerHandle, TimerOptions, WouldBlock,
};
pub use words::lock::{FutexLock, LockStatistics};
pub use work::{DelayedWork, Work, WorkOptions};
