//! Migration hierarchy: which CPU expires an idle CPU's global timers.
//!
//! Groups of eight form a tree. A group with an active child has exactly one *migrator*, which looks after
//! the events of the idle children; the last CPU to go idle carries the tree's first expiry home and must
//! wake for it.
//!
//! A CPU is in one of four states in the hierarchy ([`CpuState`]): awake, parked, absent (stalled: it
//! publishes, but nothing is expected of it), unavailable (isolated or offline: it neither pulls nor is
//! pulled).
//!
//! Invariants ([`Hierarchy::check`]; T1 to T8 and the proofs are in this folder's README.md). Not here:
//! timers, clocks, threads, sleeping. Expiries arrive as arguments; who must wake up when is returned.
//! Source: Linux 6.12 to 7.2, kernel/time/timer_migration.c. Deviations: `seq` has 48 bits; absent CPUs; one
//! walk for all purposes (`walk.rs`); parent and mask are one word; nothing is held while timers run
//! (`remote.rs`).

mod available;
mod check;
mod event;
mod growth;
mod hierarchy;
mod presence;
mod record;
mod remote;
mod shape;
mod state;
mod view;
mod walk;

pub use hierarchy::Hierarchy;
pub use record::CpuState;
pub use remote::Pulled;
pub use shape::{GroupId, GroupShape, Join, Levels, Tree};
pub use state::{ChildMask, Snapshot};
pub use view::View;
