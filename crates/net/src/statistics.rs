//! What a transmit queue counts.

use core::time::Duration;
use quietcore_qdisc::Statistics;

/// What a queue has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueStatistics {
    /// The discipline's own.
    pub qdisc: Statistics,
    /// Packets that were taken out of it by the CPU that it belongs to.
    pub dequeued_at_home: u64,
    /// By another one.
    pub dequeued_elsewhere: u64,
    /// By a thread that drives no CPU.
    pub dequeued_by_strangers: u64,
    /// Packets that were dropped because the queue held as many bytes as it may
    /// ([`memory_max`](crate::DeviceOptions::memory_max)); no discipline has seen them.
    pub over_memory: u64,
    /// How often the watchdog ran, and how often on a CPU that the queue does not belong to.
    pub watchdogs: u64,
    /// See `watchdogs`.
    pub watchdogs_elsewhere: u64,
    /// How often the delay timer ran, of disciplines that have one.
    pub delay_timers: u64,
    /// How often the lock was taken, and how often it was not free. Reading statistics is not counted.
    pub locked: u64,
    /// See `locked`.
    pub contended: u64,
    /// How long it was waited for in all.
    pub waited: Duration,
}
