//! Lanes: threads that drive CPUs. When they wait, until when, who is woken, and who takes over from whom.
//!
//! A kernel's CPUs have interrupts; threads have a futex and a timer. [`Lane`] is what one thread must
//! remember, [`Sentinel`] what the thread behind all of them does, [`Helper`] the one thread of a machine
//! without lanes; [`LaneTable`] is what they share, without a lock. They decide; a world has the threads: it
//! waits, wakes ([`Sleeper`]), reads the clock, and programs a timer for the [`Deadline`]. The same lanes run
//! on real threads (`quietcore-live`) and on simulated ones (`quietcore-sim`).
//!
//! [README.md](README.md) has the states, the protocol, the races with their tests, and why no timer waits.
//!
//! ```text
//! state.rs      what a look at the clock brings     idle.rs        going idle, waking up, blocking
//! waiting.rs    the idle state                      idle_predictor.rs  doze or sleep
//! sentinel.rs   when no lane turns                  helper.rs      a machine without lanes
//! slots.rs      all lanes, kicks                    slot_words.rs  what others read of a lane
//! deadline.rs   the deadline word                   stall_deadline.rs  who moves it where
//! until.rs      how long a lane may wait
//! ```

mod deadline;
mod helper;
mod idle;
mod idle_predictor;
mod sentinel;
mod slot_words;
mod slots;
mod stall_deadline;
mod state;
mod until;
mod waiting;

pub use deadline::Deadline;
pub use helper::Helper;
pub use sentinel::{Sentinel, SentinelCall, SentinelLook};
pub use slots::{Kick, LaneSlot, LaneTable, Sleeper};
pub use state::{Lane, LaneContext, LaneLook, Role};
pub use until::IdleUntil;
