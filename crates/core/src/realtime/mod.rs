//! Real-time tasks: which CPU one goes to, and who makes room.
//!
//! `cpupri.rs` knows for every CPU the highest priority that is queued there, without a lock; `lowest.rs`
//! finds the CPU on which a task disturbs least; `wake.rs` decides where a task that wakes up goes, and
//! `balance.rs` which waiting task moves;
//! `fitness.rs` which CPUs a long softirq keeps busy, and what that changes; `queue.rs` is what waits on one
//! CPU.
//!
//! Invariants: a higher priority is never passed over for fitness; among equals the order is that of arrival.
//! Not here: threads, locks between two queues, normal tasks. Source: Linux 6.12, kernel/sched/cpupri.c and
//! kernel/sched/rt.c, by behaviour; the fitness of the fifth version of the softirq-aware series (2022).

mod balance;
mod cpupri;
mod fitness;
mod lowest;
mod queue;
mod wake;

pub use balance::{PullSource, pull_source, push_target};
pub use cpupri::{CpuPriorities, CpuPriority, SlotView};
pub use fitness::{Awareness, fits};
pub use lowest::{Seeker, find_lowest};
pub use queue::RealtimeQueue;
pub use wake::{RunnableTask, RunningTask, wake_target};

use core::fmt;

/// The priority of a real-time task: 1 is the lowest, 99 the highest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Priority(u8);

impl Priority {
    /// 1.
    pub const LOWEST: Self = Self(1);

    /// 99.
    pub const HIGHEST: Self = Self(99);

    /// `None` unless `priority` is between 1 and 99.
    #[must_use]
    pub const fn new(priority: u8) -> Option<Self> {
        if priority >= 1 && priority <= 99 { Some(Self(priority)) } else { None }
    }

    /// As a number.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, out)
    }
}

#[cfg(all(test, not(loom)))]
fn priority(number: u8) -> Priority {
    Priority::new(number).expect("1 to 99")
}
