//! `codel`: one queue, whose delay is kept low by drops, or marks, as packets leave.
//!
//! What is dropped, and when, is decided by CoDel (`control`, which `fq_codel` has for each flow). What
//! does not fit the limit is dropped on arrival.
//!
//! Invariants (tests/codel): packets leave in order of arrival; nothing is dropped but for want of room
//! before packets have waited for the target during a whole interval, nor while no more than one packet's
//! bytes wait behind.
//!
//! Source: RFC 8289; Linux net/sched/sch_codel.c, by behaviour. Deviation: `drop_next` in what is shown
//! counts from the last time that a packet was asked for, not from the moment of showing.

pub(crate) mod control;
mod settings;
pub(crate) mod tc;

pub use settings::{CeSelector, CodelLaw, CodelSettings};

use crate::{Dequeued, Enqueued, Packet, Qdisc, Statistics};
use alloc::collections::VecDeque;
use control::{CodelCounts, CodelQueue, CodelRun, CodelState, CodelTime, Waited};
use core::fmt::Debug;
use quietcore_core::Nanos;

/// What a [`Codel`] has counted, and where it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CodelStatistics {
    /// Drops, or marks, since it last began to drop; more if it went on with the pace of the time before.
    pub count: u32,
    /// The same as it began.
    pub last_count: u32,
    /// How long the last packet was queued that was looked at.
    pub delay: Nanos,
    /// How long until the next drop, while it drops; less than 0 if that was due.
    pub drop_next: Option<i64>,
    /// The longest packet that has left or was dropped.
    pub longest_packet: u32,
    /// Packets that were marked instead of dropped.
    pub ecn_marks: u64,
    /// Packets that were marked for having waited longer than `ce_threshold`.
    pub ce_marks: u64,
    /// Packets that were dropped for want of room.
    pub limit_drops: u64,
}

/// A queue with controlled delay.
///
/// ```
/// use quietcore_core::Nanos;
/// use quietcore_qdisc::{Codel, CodelSettings, Qdisc};
///
/// let mut queue = Codel::new(CodelSettings::default());
/// // Twice as many packets come as can leave, one each millisecond.
/// for millisecond in 0..300 {
///     let now = Nanos(millisecond * 1_000_000);
///     for _ in 0..2 {
///         assert!(queue.enqueue(now, vec![0; 1_000]).is_accepted());
///     }
///     assert!(queue.dequeue(now).packet().is_some());
/// }
/// // Delays were above 5 ms from about 10 ms on, so it drops from about 110 ms on, ever faster.
/// assert_eq!(queue.statistics().dropped, 3);
/// ```
#[derive(Debug)]
pub struct Codel<P> {
    settings: CodelSettings,
    queue: CodelFifo<P>,
    state: CodelState,
    counts: CodelCounts,
    limit_drops: u64,
    /// When a packet was last asked for.
    now: CodelTime,
}

/// The packets, and what became of them.
#[derive(Debug)]
struct CodelFifo<P> {
    packets: VecDeque<(CodelTime, P)>,
    statistics: Statistics,
}

impl<P: Packet> CodelQueue<P> for CodelFifo<P> {
    fn take(&mut self) -> Option<Waited<P>> {
        let (arrived, packet) = self.packets.pop_front()?;
        self.statistics.left(packet.size());
        Some(Waited { packet, arrived, backlog: self.statistics.backlog })
    }

    fn discard(&mut self, _: P) {
        self.statistics.dropped += 1;
    }
}

impl<P: Packet> Codel<P> {
    /// An empty one.
    #[must_use]
    pub fn new(settings: CodelSettings) -> Self {
        Self {
            settings,
            queue: CodelFifo { packets: VecDeque::new(), statistics: Statistics::default() },
            state: CodelState::new(),
            counts: CodelCounts::default(),
            limit_drops: 0,
            now: CodelTime::default(),
        }
    }

    /// What it was told.
    #[must_use]
    pub const fn settings(&self) -> &CodelSettings {
        &self.settings
    }

    /// Other settings from now on. What is above the new limit is dropped, the oldest first.
    pub fn change(&mut self, settings: CodelSettings) {
        self.settings = settings;
        while self.queue.statistics.qlen > u64::from(settings.limit)
            && let Some(waited) = self.queue.take()
        {
            self.queue.discard(waited.packet);
        }
    }

    /// What it has counted besides what all disciplines count.
    #[must_use]
    pub fn codel_statistics(&self) -> CodelStatistics {
        CodelStatistics {
            count: self.state.count,
            last_count: self.state.last_count,
            delay: self.state.delay.nanos(),
            drop_next: self.state.until_next(self.now),
            longest_packet: self.counts.longest_packet,
            ecn_marks: self.counts.ecn_marks,
            ce_marks: self.counts.ce_marks,
            limit_drops: self.limit_drops,
        }
    }
}

impl<P: Packet + Debug + Send> Qdisc<P> for Codel<P> {
    fn kind(&self) -> &'static str {
        "codel"
    }

    fn enqueue(&mut self, now: Nanos, packet: P) -> Enqueued {
        let statistics = &mut self.queue.statistics;
        if statistics.qlen >= u64::from(self.settings.limit) {
            self.limit_drops += 1;
            statistics.dropped += 1;
            return Enqueued::Dropped;
        }
        statistics.arrived(packet.size());
        self.queue.packets.push_back((CodelTime::of(now), packet));
        Enqueued::Queued
    }

    fn dequeue(&mut self, now: Nanos) -> Dequeued<P> {
        self.now = CodelTime::of(now);
        let Self { settings, queue, state, counts, .. } = self;
        let mut run = CodelRun { law: &settings.law, state, counts, now: self.now };
        let Some(packet) = run.next(queue) else { return Dequeued::Empty };
        queue.statistics.count_sent(packet.size());
        Dequeued::Packet(packet)
    }

    fn reset(&mut self, _: Nanos) {
        self.queue.packets.clear();
        self.queue.statistics.emptied();
        self.state = CodelState::new();
    }

    fn statistics(&self) -> Statistics {
        self.queue.statistics
    }

    fn is_empty(&self) -> bool {
        self.queue.statistics.qlen == 0
    }
}
