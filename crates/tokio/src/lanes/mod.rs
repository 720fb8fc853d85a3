//! Lanes that host a runtime of tokio each: what is built on tokio runs on them unchanged.
//!
//! [`Lanes`] starts a thread for every lane of a machine. Each claims its CPU and drives a `current_thread`
//! runtime on it, with I/O and tokio's own time. Timers of this crate that its tasks arm go to the CPU's own
//! bases and expire there, in turns between polls; if the lane is stuck in a task, others run them.
//!
//! ```
//! use quietcore::Machine;
//! use quietcore::time::{Duration, sleep};
//! use quietcore::tokio::lanes::Lanes;
//!
//! let machine = Machine::builder().automatic_lanes().start()?;
//! let lanes = Lanes::start(machine)?;
//! let task = lanes.spawn(|| async {
//!     let here = std::rc::Rc::new(7); // a task stays on its lane, and need not be `Send`
//!     sleep(Duration::from_millis(1)).await;
//!     *here
//! })?;
//! assert_eq!(quietcore::time::block_on(task)?, 7);
//! lanes.shutdown();
//! machine.shutdown();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! No task moves from lane to lane. On a lane `tokio::spawn` and `tokio::task::spawn_local` start tasks on
//! the same lane; [`LanesHandle`] reaches the others. An isolated lane gets a task only when it is named.
//!
//! A task that computes for long holds up its lane: the tasks, not the timers of others. The lane turns when
//! its runtime looks at its driver, every [`event_interval`](LanesBuilder::event_interval) polls, so a turn
//! is late by as much as those polls take. What it costs is in docs/reference/tokio-lanes.md.
//!
//! ```text
//! lane_set.rs  starting and ending    handle.rs  spawning               settings.rs, error.rs
//! host.rs      the thread of a lane   join.rs    waiting for a task     alarm.rs, descriptor.rs
//! ```
//!
//! Not here: a queue that lanes share, priorities among tasks.

mod alarm;
mod descriptor;
mod error;
mod handle;
mod host;
mod join;
mod lane_set;
mod settings;

pub use error::{LaneSpawnError, LanesStartError};
pub use handle::LanesHandle;
pub use host::block_in_place;
pub use join::{LaneJoinError, LaneJoinHandle};
pub use lane_set::{Lanes, LanesBuilder};
