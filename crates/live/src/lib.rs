//! World 1: the core on the threads of a real machine.
//!
//! A [`Machine`] gives every CPU timer bases of its own, so that arming and cancelling scales with threads,
//! and expires them on any thread that is awake, so that a blocked thread delays only its own. It works under
//! any executor and without one: threads arm, a helper thread expires. Threads that turn by themselves can
//! claim a CPU and do it in their own loop.
//!
//! ```
//! use quietcore::Machine;
//!
//! let machine = Machine::start()?;
//! machine.install_default()?;
//! assert!(Machine::current().is_running());
//! machine.shutdown();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Where what is: `machine/` the machine, its helper, running what is due; `lane/` threads that drive CPUs;
//! `time/` futures; `timer/` callbacks; `clock/` real and virtual time; `metrics/` counters; `stall/` who did
//! not turn; `isolation/` the host's masks; `events.rs`, `probe.rs` what tools are told, by the
//! features `tracing` and `usdt`; `words/` the words that threads share, all that exists under `--cfg loom`.
//!
//! `run_queue/` is what waits for lanes besides timers: `softirq/`, `task/`, `work/`.
//!
//! Not here: what is decided (`quietcore-core`).
#![cfg(not(loom))]

#[cfg(not(target_os = "linux"))]
compile_error!(
    "quietcore's machines of threads need Linux: they wait with its futex and timerfd. What needs no system builds \
     everywhere: quietcore-wheel, quietcore-core, quietcore-qdisc, quietcore-trace and quietcore-sim"
);

mod clock;
mod events;
mod fork;
pub mod isolation;
mod job;
pub mod lane;
mod machine;
mod machine_ref;
pub mod metrics;
mod panic;
mod payload;
mod probe;
mod run_queue;
mod slack;
pub mod softirq;
pub mod stall;
pub mod task;
pub mod time;
pub mod timer;
pub mod virtual_time;
mod words;
mod work;

pub use lane::{Cpu, LaneThreads};
pub use machine::{ArmError, EnterGuard, InstallError, Machine, MachineBuilder, OnPanic, StartError};
pub use quietcore_core::{CpuError, CpuId, CpuSet, Nanos};
pub use timer::{Precision, TimerHandle, TimerOptions};
