//! What makes a run repeatable: the queue of events, the randomness of a seed, the hash of a run.
//!
//! Nothing here knows CPUs or timers. Invariants: events leave in the order of their times; equal times are
//! shuffled by the seed; nothing is allocated per event once the queue has grown.

mod hash;
mod queue;
mod random;
mod tail;

pub use hash::TraceHash;
pub use queue::EventQueue;
pub use random::SimRandom;
pub(crate) use tail::{Tail, interval};
