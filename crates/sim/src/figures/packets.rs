//! Figures of packets and their queues.
//!
//! Invariant: packets of a window, and those that came by themselves, are somewhere (`lost` is 0).

use super::SpanQuantiles;
use super::names::share;
use serde::Serialize;
use std::collections::BTreeMap;

/// Transmit queues, all together.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PacketFigures {
    /// Packets that were taken out of a queue by the CPU that sends through it.
    pub at_home: u64,
    /// By another one.
    pub elsewhere: u64,
    /// Packets that found no room.
    pub dropped: u64,
    /// Packets in queues at the end.
    pub held: u64,
    /// Packets that are nowhere; contract: 0.
    pub lost: u64,
    /// The most packets in one queue.
    pub queue_max: u64,
    /// Times that a queue's lock was held by another CPU when it was wanted.
    pub lock_waits: u64,
    /// Time of CPUs until they had a queue's lock: until its holder was done, and until its line was there.
    pub lock_wait_ns: u64,
    /// Time of CPUs in enqueue and in dequeue, with the lock.
    pub enqueue_ns: u64,
    /// See `enqueue_ns`.
    pub dequeue_ns: u64,
    /// Time in which CPUs were not idle.
    pub busy_ns: u64,
    /// Watchdogs that went off, by CPU.
    pub watchdogs: BTreeMap<u16, u64>,
    /// Those of them that did on another CPU than the one that sends through the queue.
    pub watchdogs_elsewhere: u64,
    /// From the moment at which a packet might leave until it was taken out; `None` where that is not known
    /// beforehand.
    pub late_ns: Option<SpanQuantiles>,
}

impl PacketFigures {
    /// Packets that were taken out of their queues.
    #[must_use]
    pub const fn dequeues(&self) -> u64 {
        self.at_home + self.elsewhere
    }

    /// Of all packets that were taken out.
    pub(super) fn elsewhere_share(&self) -> Option<f64> {
        share(self.elsewhere, self.dequeues())
    }

    /// Of the time in which CPUs were not idle.
    pub(super) fn share_of_busy(&self, ns: fn(&Self) -> u64) -> Option<f64> {
        share(ns(self), self.busy_ns)
    }

    /// The CPU with the most watchdogs, of all of them.
    pub(super) fn top_share(&self) -> Option<f64> {
        share(*self.watchdogs.values().max()?, self.watchdogs.values().sum())
    }

    pub(super) fn number_of(&self, name: &str, cpu: u16) -> Option<f64> {
        (name == "watchdogs").then(|| self.watchdogs.get(&cpu).copied().unwrap_or(0) as f64)
    }
}
