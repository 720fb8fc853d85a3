//! Stall reports: which lane did not turn, for how long, and what it was running.
//!
//! The core marks a lane absent when it does not turn ([`Machine`](crate::Machine) tells nobody of that: it
//! just takes over). Whoever has marked one looks here afterwards, off every hot path, and writes a report:
//! what the lane's record says that it runs (`sync.rs`), since when it is silent. The lane itself adds when
//! it was back. Reports wait in a ring until somebody asks ([`Machine::stalls`](crate::Machine::stalls)).
//!
//! What a callback costs more because of this: eight stores on a cache line of its lane. An arm costs a store
//! into the timer's memory, on a machine that keeps arm sites; on others it looks at no word more.
//!
//! Invariants: nobody waits for the lock of the reports on a lane; a mark that was not reported because the
//! lock was taken is reported by whoever looks next. Reports outlive panics and the end of the machine.
//! Absent: marking; what futures' tasks do (a waker says nothing of its task).

#[cfg(not(loom))]
mod log;
#[cfg(not(loom))]
mod report;
mod sync;
#[cfg(not(loom))]
mod turn;

use core::fmt;

#[cfg(not(loom))]
pub(crate) use log::Stalls;
#[cfg(not(loom))]
pub use report::{Stall, StallReport};
#[cfg(not(loom))]
pub(crate) use sync::{Lasting, Running};
#[cfg(not(loom))]
pub(crate) use turn::KeepSites;

/// What kind of code a timer calls. One for each closure that a program has.
#[derive(Clone, Copy)]
pub(crate) struct Callback {
    /// Of its type; a function, because the name is not known to the compiler before.
    pub(crate) name: fn() -> &'static str,
}

impl Callback {
    /// Of a closure.
    pub(crate) const fn of<F>() -> Self {
        Self { name: core::any::type_name::<F> }
    }

    /// Of a [`RawTimer`](crate::RawTimer): all that is known is its function's address.
    pub(crate) const RAW: Self = Self { name: || "a function" };

    /// Of futures.
    pub(crate) const WAKER: Self = Self { name: || "a task's waker" };
}

/// Two are the same if they are at the same place: one and the same name may have several.
impl PartialEq for Callback {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::eq(self, other)
    }
}

impl Eq for Callback {}

impl fmt::Debug for Callback {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str((self.name)())
    }
}
