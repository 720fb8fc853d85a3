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
//! not turn; `isolation_source/` the host's masks; `events.rs`, `probe.rs` what tools are told, by the
//! features `tracing` and `usdt`. The words that threads share have a file each: `lock.rs`, `park.rs`,
//! `alarm.rs`, `waker_cell.rs`, `run_wait.rs`.
//!
//! `run_queue/` is what waits for lanes besides timers: `softirq/`, `task/`, `work/`.
//!
//! Not here: what is decided (`quietcore-core`).

mod alarm;
#[cfg(not(loom))]
mod clock;
#[cfg(not(loom))]
mod events;
#[cfg(not(loom))]
mod fork;
mod futex;
#[cfg(not(loom))]
mod isolation_source;
mod lane;
mod lock;
#[cfg(not(loom))]
mod machine;
#[cfg(not(loom))]
mod metrics;
mod park;
#[cfg(not(loom))]
mod payload;
mod present_cpu;
#[cfg(not(loom))]
mod probe;
mod run_queue;
mod run_wait;
#[cfg(not(loom))]
mod softirq;
#[cfg(any(not(loom), test))]
mod stall;
mod sync;
#[cfg(not(loom))]
mod task;
#[cfg(not(loom))]
pub mod time;
#[cfg(not(loom))]
mod timer;
#[cfg(not(loom))]
pub mod virtual_time;
mod waker_cell;
mod work;

#[cfg(not(loom))]
pub use isolation_source::{HostIsolation, HostWatch, HostWatchGuard, IsolationChange, IsolationProblem};
#[cfg(not(loom))]
pub use lane::{ClaimError, Cpu, Idle, IsolateError, LaneThreads, Note, Pinning, Turned, Unparker, WaitBy};
pub use lock::{FutexLock, LockStatistics};
#[cfg(not(loom))]
pub use machine::{ArmError, Builder, EnterGuard, InstallError, Machine, OnPanic, StartError};
#[cfg(not(loom))]
pub use metrics::{CpuMetrics, Histogram, LaneMetrics, LaneState, Metrics};
#[cfg(not(loom))]
pub use quietcore_core::place::{ExactPolicy, Exclusion, Policy};
#[cfg(not(loom))]
pub use quietcore_core::realtime::Priority;
#[cfg(not(loom))]
pub use quietcore_core::softirq::TimerRaise;
#[cfg(not(loom))]
pub use quietcore_core::{Cancelled, Counters, CpuError, CpuId, CpuSet, Nanos, Report as IsolationReport};
#[cfg(not(loom))]
pub use run_queue::WakeTo;
#[cfg(not(loom))]
pub use softirq::{Awareness, RaiseError, Runner, SoftirqRun, Vector, VectorSet};
#[cfg(not(loom))]
pub use stall::{Stall, StallReport};
#[cfg(not(loom))]
pub use task::{AbortHandle, JoinError, JoinHandle, SpawnError, TaskOptions};
#[cfg(not(loom))]
pub use timer::{
    CallbackTimer, CancelAndWait, LocalRun, LocalTimer, LocalTimers, Precision, RawFn, RawTimer, Run,
    TimerHandle, TimerOptions, WouldBlock,
};
#[cfg(not(loom))]
pub use work::{DelayedWork, Work, WorkOptions};
