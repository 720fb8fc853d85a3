//! Threads that drive CPUs: claiming one, taking turns, waiting; spares, and the sentinel behind them. When a
//! lane waits, until when, and who takes over is decided in the core (`lane`).
//!
//! ```text
//! claim.rs     how a thread gets a CPU            cpu.rs        what it gets
//! turn.rs      turns                              items.rs      softirqs, tasks and work in a turn
//! wait.rs      going idle, waiting, blocking      sentinel.rs   the helper thread of a machine with lanes
//! tick.rs      standalone lanes that go by ticks  doze.rs       what ends a doze
//! outcome.rs   what a turn did                    spare.rs      threads without a CPU of a host
//! thread.rs    ready-made lane threads            options.rs    how those are run
//! realtime.rs  a thread's priority                current.rs    which CPU the calling thread drives
//! isolate.rs   isolation while the machine runs   slot.rs       where a lane waits
//! lanes.rs     all of them
//! ```

mod claim;
mod cpu;
mod current;
mod doze;
mod isolate;
mod items;
mod lanes;
mod options;
mod outcome;
mod realtime;
mod sentinel;
mod slot;
mod spare;
#[cfg(test)]
mod tests;
mod thread;
mod tick;
mod turn;
mod wait;

pub use quietcore_core::lane::IdleUntil;
pub use {
    claim::{ClaimError, WaitBy},
    cpu::{Cpu, Unparker},
    isolate::IsolateError,
    options::{LaneThreads, Pinning, StartNote},
    outcome::TurnStats,
};
pub(crate) use {current::driven_here, lanes::LaneSlots, slot::LanePlace};
