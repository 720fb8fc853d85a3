//! What waits for a lane besides timers: real-time tasks, work, normal tasks.
//!
//! A queue per lane under one lock, held for a push or a pop, and words that are read without it
//! (`words/run_queue.rs`). Who gets what is decided in the core ([`quietcore_core::run_queue`]); `world.rs`
//! is what it decides about, `dismiss.rs` what becomes of items that no lane will run; the lane's loop is in
//! `lane/items.rs`.

mod dismiss;
mod queue;
mod world;

pub(crate) use queue::{Item, RunQueue};
pub use quietcore_core::run_queue::WakeTo;
