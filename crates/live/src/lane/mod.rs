//! Threads that play CPUs: lanes, spares, and the sentinel that notices when none of them turns.
//!
//! ```text
//! claim.rs     how a thread gets a CPU            cpu.rs       what it gets
//! play.rs      turn, idle, park: every player     rest.rs      doze or sleep
//! items.rs     softirqs, tasks and work in a turn tick.rs      isolated lanes that go by ticks
//! stall_deadline.rs    the dead man's switch, the alarm   sentinel.rs  the helper thread of a machine with lanes
//! spare.rs     threads without a CPU of a host    thread.rs    ready-made lane threads
//! isolate.rs   isolation while the machine runs   realtime.rs  a thread's priority
//! slot.rs      where a player waits, who wakes it here.rs      which CPU this thread plays
//! lanes.rs     all of them                        sync.rs      the words
//! ```
//!
//! A lane is awake, parked or absent in the core's books. While it waits for a tick at most it *dozes* and
//! stays awake there: nobody has to be told of anything, and it goes on looking after others. Source:
//! PROTOCOL sections 3, 4, 6 and 9.

mod claim;
mod cpu;
mod current;
mod doze;
mod idle_predictor;
mod isolate;
mod items;
mod lane;
mod lanes;
mod options;
mod outcome;
mod realtime;
mod sentinel;
mod slot;
mod spare;
mod thread;
mod tick;
mod wait;
mod waiting;

pub use {
    claim::{ClaimError, WaitBy},
    cpu::{Cpu, Unparker},
    isolate::IsolateError,
    options::{LaneThreads, Pinning, StartNote},
    outcome::{IdleUntil, TurnStats},
};
pub(crate) use {current::driven_here, lanes::Lanes};
