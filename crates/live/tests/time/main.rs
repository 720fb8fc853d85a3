//! The futures of `time` through the public API.
//!
//! `sleep.rs`, `reset.rs`, `timeout.rs`, `interval.rs`, `stream.rs` and `delay_queue.rs` run in paused time,
//! so they are exact; `drops.rs` lets go of sleeps at every awkward moment; `stress.rs` does it with threads
//! and real time; `executors.rs` has other runtimes poll.

mod delay_queue;
mod drops;
mod executors;
mod interval;
mod reset;
mod scene;
mod sleep;
mod stream;
mod stress;
mod timeout;
