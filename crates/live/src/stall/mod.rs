//! Stall reports: which lane did not turn, for how long, and what it was running.
//!
//! The core marks a lane absent when it does not turn ([`Machine`](crate::Machine) tells nobody of that: it
//! just takes over). Whoever has marked one looks here afterwards, off every hot path, and writes a report:
//! what the lane's record says that it runs (`sync.rs`), since when it is silent. The lane itself adds when
//! it was back. Reports wait in a ring until somebody asks ([`Machine::stalls`](crate::Machine::stalls)).
//!
//! What a callback, a poll of a task, a run of work and a softirq's handler cost more because of this: eight
//! stores each, on a cache line of their lane. An arm costs a store into the timer's memory, on a machine
//! that keeps arm sites; on others it looks at no word more. A task keeps two words more.
//!
//! Invariants: nobody waits for the lock of the reports on a lane; a mark that was not reported because the
//! lock was taken is reported by whoever looks next. Reports outlive panics and the end of the machine.
//! Absent: marking; whose wakers a timer wakes (a waker says nothing of its task); what a ksoftirqd runs, as
//! no lane waits for that.

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

/// What kind of code a lane runs. One for each closure, and each type of future, that a program has.
#[derive(Clone, Copy)]
pub(crate) struct Callback {
    /// Of its type; a function, because the name is not known to the compiler before.
    pub(crate) name: fn() -> &'static str,
    pub(crate) kind: Kind,
}

/// What it is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A timer: a callback, or wakers.
    Timer,
    /// A task: the type is its future's.
    Task,
    /// Work.
    Work,
    /// A softirq: which, its number says.
    Softirq,
}

impl Callback {
    /// Of a timer's closure.
    pub(crate) const fn of<F>() -> Self {
        Self { name: core::any::type_name::<F>, kind: Kind::Timer }
    }

    /// Of a future.
    pub(crate) const fn task<F>() -> Self {
        Self { name: core::any::type_name::<F>, kind: Kind::Task }
    }

    /// Of work whose type only the compiler can name.
    pub(crate) const fn work<F>(_: &F) -> &'static Self {
        const { &Self { name: core::any::type_name::<F>, kind: Kind::Work } }
    }

    /// Of a [`RawTimer`](crate::RawTimer): all that is known is its function's address.
    pub(crate) const RAW: Self = Self { name: || "a function", kind: Kind::Timer };

    /// Of futures.
    pub(crate) const WAKER: Self = Self { name: || "a task's waker", kind: Kind::Timer };

    /// Of handlers: the vector says more than a type.
    pub(crate) const SOFTIRQ: Self = Self { name: || "a softirq's handler", kind: Kind::Softirq };
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
