//! Run queues: which lane runs what waits, who is woken for it, and what an idle lane takes from another.
//!
//! An *item* is a task or work that is to be run once. What is *bound* to a lane waits for it whatever
//! happens; the rest may be run by any lane whose gate is open, and is taken from a lane that is busy, stuck
//! or gone. [`RunQueues`] decides, and does it by calls of its world ([`QueueWorld`]), which has the locks,
//! the words and the threads; [`ItemQueue`] is what one lane's lock guards. The same queues run on real
//! threads (`quietcore-live`) and on simulated ones (`quietcore-sim`).
//!
//! ```text
//! place.rs  where an item goes            wake.rs  which lane is woken, what is offered
//! take.rs   what a lane runs next         queue.rs what waits for one lane
//! world.rs  what a world has              unplaced.rs  what no lane takes
//! item.rs   what waits                    gates.rs  which lanes take what is not bound to them
//! ```
//!
//! Invariants: while the gate is closed nothing but bound items is in a queue; a lane's slot in
//! [`CpuPriorities`](crate::realtime::CpuPriorities) is the highest priority that is queued or runs, absent
//! while its gate is closed. Not here: locks, threads, what an item does. Source: docs/design/KERNEL.md,
//! section 6; docs/design/PROTOCOL.md, section 4.

mod gates;
mod item;
mod place;
mod queue;
mod take;
#[cfg(all(test, not(loom)))]
mod tests;
mod unplaced;
mod wake;
mod world;

pub use gates::Unsettled;
pub use item::{Activity, NextItem, QueueItem};
pub use place::RunQueues;
pub use queue::{ItemQueue, QueueHints};
pub use unplaced::Unplaced;
pub use world::{LaneQueue, Moved, QueueRules, QueueWorld, WakeTo};
