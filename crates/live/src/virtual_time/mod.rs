//! Paused time: the clock stands still while any participant is busy, and jumps to the next expiry
//! when none has.
//!
//! A thread in [`block_on`] and the workers of a runtime are participants, which say so
//! ([`Machine::participate`](crate::Machine::participate)). When all of them are idle, the last one moves
//! the clock to the first expiry and runs what is due on its own thread; the helper runs nothing while time
//! is paused. So a test takes no real time, and with one thread it takes the same steps every time.
//!
//! Invariants:
//! - Time moves only when all who take part are idle, no thread [holds](hold) it and no thread runs timers.
//! - The thread that was woken counts as busy from the wake on, not from the moment its thread runs.
//! - When something changes that could let time move, a participant that is idle is asked to look again.
//!
//! Only machines that were made for it
//! ([`MachineBuilder::virtual_time`](crate::MachineBuilder::virtual_time)) can be paused. They have one CPU,
//! so that timers that are due at the same moment run in the order in which they were armed. Not here: the
//! clock itself (`clock/`), and how a runtime finds out that it is idle. Source: tokio's `time::pause`;
//! deviation: any number of threads may take part.

mod attend;
mod control;
mod error;
mod mover;
mod participant;
mod shared;
mod state;
#[cfg(test)]
mod tests;

pub use attend::{attend, block_on};
pub use control::{advance, hold, pause, resume};
pub use error::TimeError;
pub use participant::{Hold, Participant};
pub(crate) use shared::{Allowed, VirtualTime};
pub use state::{IdleOutcome, Participate};
