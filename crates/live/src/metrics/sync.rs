//! Counters that are always on: some cache lines and a histogram per CPU.
//!
//! All words are statistics: they guard nothing and order nothing, hence Relaxed everywhere, and readers may
//! see one word earlier than another. What is counted with each timer has one writer at a time, the thread
//! that drives the CPU; a claim of the CPU orders one driver's after another's.

use super::histogram::{BUCKETS, bucket_of};
use crate::words::sync::{AtomicU64, Ordering};

/// A number of events.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    #[inline]
    pub(crate) fn add(&self, more: u64) {
        // Relaxed: see the top of the file.
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// The same by the only thread that adds, the CPU's driver: no locked instruction.
    #[inline]
    pub(crate) fn add_alone(&self, more: u64) {
        // Relaxed, both: see the top of the file.
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        // Relaxed: see the top of the file.
        self.0.load(Ordering::Relaxed)
    }
}

/// What is counted of one CPU.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct MetricWords {
    /// Runs of timers of its own bases.
    pub(crate) ran_own: Count,
    /// Runs of timers of other CPUs' bases.
    pub(crate) ran_for_others: Count,
    pub(crate) turns: Count,
    /// Kicks that were sent to it.
    pub(crate) kicks: Count,
    pub(crate) panics: Count,
    /// Polls of tasks, and runs of work.
    pub(crate) items: Count,
    /// Of those, real-time tasks.
    pub(crate) realtime_polls: Count,
    /// Real-time tasks that ran on another lane before.
    pub(crate) migrations: Count,
    pub(crate) pulled: Count,
    pub(crate) pushed: Count,
    pub(crate) stolen: Count,
    /// Timer turns of an isolated lane that goes by ticks, and those that ran nothing.
    pub(crate) timer_raises: Count,
    pub(crate) empty_raises: Count,
    pub(crate) raises: Count,
    /// Runs of handlers, by the lane.
    pub(crate) softirqs: Count,
    /// The same, by its ksoftirqd.
    pub(crate) ksoftirqd_ran: Count,
    pub(crate) ksoftirqd_wakeups: Count,
    /// Vectors that were left because a real-time task waited.
    pub(crate) deferred: Count,
    /// Waits for ksoftirqd.
    pub(crate) donations: Count,
    /// Sum of lateness, in ns.
    pub(crate) late_sum: Count,
    late: Box<[Count]>,
}

impl MetricWords {
    pub(crate) fn new() -> Self {
        Self { late: (0..BUCKETS).map(|_| Count::default()).collect(), ..Self::default() }
    }

    /// A timer was run `nanos` after what it was armed for.
    #[inline]
    pub(crate) fn was_late(&self, nanos: u64) {
        self.late[bucket_of(nanos)].add_alone(1);
        self.late_sum.add_alone(nanos);
    }

    pub(crate) fn lateness(&self) -> Box<[u64]> {
        self.late.iter().map(Count::get).collect()
    }
}
