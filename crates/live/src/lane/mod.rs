//! Threads that drive CPUs: claiming one, taking turns, waiting; spares, and the sentinel behind them.
//!
//! [README.md](README.md) has the states, the protocol, the races with their tests, and why no timer waits.
//!
//! ```text
//! claim.rs     how a thread gets a CPU            cpu.rs        what it gets
//! lane.rs      turns                              items.rs      softirqs, tasks and work in a turn
//! wait.rs      going idle, waiting, blocking      waiting.rs    the idle state
//! tick.rs      standalone lanes that go by ticks  idle_predictor.rs  doze or sleep
//! outcome.rs   what a turn did, how long to wait  sentinel.rs   the helper thread of a machine with lanes
//! spare.rs     threads without a CPU of a host    thread.rs     ready-made lane threads
//! options.rs   how those are run                  realtime.rs   a thread's priority
//! isolate.rs   isolation while the machine runs   current.rs    which CPU the calling thread drives
//! slot.rs      where a lane waits                 doze.rs       what ends a doze
//! lanes.rs     all of them
//! ```

mod claim;
mod cpu;
mod current;
mod doze;
mod idle_predictor;
mod isolate;
mod items;
mod lanes;
mod options;
mod outcome;
mod realtime;
mod sentinel;
mod slot;
mod spare;
mod thread;
mod tick;
mod turn;
mod wait;
mod waiting;

pub use {
    claim::{ClaimError, WaitBy},
    cpu::{Cpu, Unparker},
    isolate::IsolateError,
    options::{LaneThreads, Pinning, StartNote},
    outcome::{IdleUntil, TurnStats},
};
pub(crate) use {current::driven_here, lanes::LaneSlots};
