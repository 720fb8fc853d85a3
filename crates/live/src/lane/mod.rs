//! Threads that play CPUs: lanes, spares, and the sentinel that notices when none of them turns.
//!
//! ```text
//! claim.rs     how a thread gets a CPU            cpu.rs       what it gets
//! play.rs      turn, idle, park: every player     rest.rs      doze or sleep
//! items.rs     softirqs, tasks and work in a turn tick.rs      isolated lanes that go by ticks
//! switch.rs    the dead man's switch, the alarm   sentinel.rs  the helper thread of a machine with lanes
//! spare.rs     threads without a CPU of a host    thread.rs    ready-made lane threads
//! isolate.rs   isolation while the machine runs   realtime.rs  a thread's priority
//! slot.rs      where a player waits, who wakes it here.rs      which CPU this thread plays
//! lanes.rs     all of them                        sync.rs      the words
//! ```
//!
//! A lane is awake, parked or absent in the core's books. While it waits for a tick at most it *dozes* and
//! stays awake there: nobody has to be told of anything, and it goes on looking after others. Source:
//! PROTOCOL sections 3, 4, 6 and 9.

#[cfg(not(loom))]
mod claim;
#[cfg(not(loom))]
mod cpu;
#[cfg(not(loom))]
mod here;
#[cfg(not(loom))]
mod isolate;
#[cfg(not(loom))]
mod items;
#[cfg(not(loom))]
mod lanes;
#[cfg(all(test, loom))]
mod models;
#[cfg(not(loom))]
mod play;
#[cfg(not(loom))]
mod realtime;
#[cfg(not(loom))]
mod rest;
#[cfg(not(loom))]
mod sentinel;
#[cfg(not(loom))]
mod slot;
#[cfg(not(loom))]
mod spare;
mod switch;
mod sync;
#[cfg(not(loom))]
mod thread;
#[cfg(not(loom))]
mod tick;

#[cfg(not(loom))]
pub use {
    claim::{ClaimError, WaitBy},
    cpu::{Cpu, Idle, Turned, Unparker},
    isolate::IsolateError,
    thread::{LaneThreads, Note, Pinning},
};
#[cfg(not(loom))]
pub(crate) use {here::here, lanes::Lanes};
