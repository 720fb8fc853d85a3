//! `fq_codel`: flows share by turns, and CoDel keeps each one's delay low.
//!
//! Packets are spread over queues by their flow's number. Queues take turns by deficit round robin; one that
//! had nothing goes before those that had a turn. What leaves a queue passes CoDel (`codel::control`). When
//! there is no room, packets are dropped from the head of the queue with the most bytes: until it has half
//! of them left, or a batch is dropped.
//!
//! A packet's priority that names a class (`major:minor`), or a filter, chooses the queue directly,
//! `major:1` the first; a filter that names a class that there is not drops.
//!
//! Invariants (tests/fq_codel): within a queue packets leave in order of arrival; as long as a queue has
//! packets it is in exactly one list; `backlog`, `qlen` and memory are sums over the queues.
//!
//! Source: RFC 8290; Linux net/sched/sch_fq_codel.c, by behaviour. Deviations: flows are spread by one fixed
//! function, where the kernel draws one when it boots; a packet takes its bytes and 256 of memory, where
//! the kernel counts what it has allocated; what a lower limit drops is counted as dropped; packets that
//! no filter knows go by their flow, where the kernel drops them as soon as there is a filter.

mod flows;
mod inner;
mod settings;
pub(crate) mod tc;

pub use settings::{FqCodelError, FqCodelSettings};

use crate::codel::control::{CodelCounts, CodelRun, CodelTime};
use crate::{ClassId, CodelStatistics, Dequeued, Enqueued, Packet, Qdisc, Statistics};
use alloc::collections::VecDeque;
use core::fmt::Debug;
use flows::CodelFlows;
use quietcore_core::Nanos;

/// What an [`FqCodel`] has counted, and holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FqCodelStatistics {
    /// The longest packet that has left or was dropped by CoDel.
    pub longest_packet: u32,
    /// Packets that were dropped for want of room, of whatever kind.
    pub limit_drops: u64,
    /// Those of them that were dropped because packets took too much memory.
    pub memory_drops: u64,
    /// How often a queue had something that was in no list.
    pub new_flows: u64,
    /// Packets that were marked instead of dropped.
    pub ecn_marks: u64,
    /// Packets that were marked for having waited longer than `ce_threshold`.
    pub ce_marks: u64,
    /// Bytes of memory that packets take.
    pub memory: u64,
    /// Queues that wait for their first turn.
    pub new_flows_len: u64,
    /// Queues that had one.
    pub old_flows_len: u64,
}

/// A flow of an [`FqCodel`], as `tc -s class show` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FqCodelFlow {
    /// Packets and bytes that are queued.
    pub statistics: Statistics,
    /// Bytes that it may send before others have their turn.
    pub deficit: i64,
    /// What CoDel knows of it.
    pub codel: CodelStatistics,
}

/// Fair queues with controlled delay.
///
/// ```
/// use quietcore_core::Nanos;
/// use quietcore_qdisc::{Enqueued, FqCodel, FqCodelSettings, Packet, Qdisc};
///
/// #[derive(Debug)]
/// struct Datagram(u64);
///
/// impl Packet for Datagram {
///     fn len(&self) -> u32 {
///         1_000
///     }
///
///     fn flow(&self) -> u64 {
///         self.0
///     }
/// }
/// let mut queue = FqCodel::new(FqCodelSettings::default()).expect("settings that can be");
/// for flow in [1, 1, 1, 1, 2] {
///     assert_eq!(queue.enqueue(Nanos(0), Datagram(flow)), Enqueued::Queued);
/// }
/// let sent = core::iter::from_fn(|| queue.dequeue(Nanos(0)).packet());
/// assert_eq!(sent.map(|packet| packet.0).collect::<Vec<_>>(), [1, 1, 2, 1, 1], "turns of 1514 bytes");
/// ```
#[derive(Debug)]
pub struct FqCodel<P> {
    settings: FqCodelSettings,
    flows: CodelFlows<P>,
    /// Queues that have had no turn since they had nothing.
    new: VecDeque<u32>,
    /// All others that are not empty, or were not at their last turn.
    old: VecDeque<u32>,
    counts: CodelCounts,
    limit_drops: u64,
    memory_drops: u64,
    new_flows: u64,
    /// When a packet was last asked for.
    now: CodelTime,
}

impl<P: Packet> FqCodel<P> {
    /// An empty one.
    ///
    /// # Errors
    /// [`FqCodelError`] names the setting that cannot be.
    pub fn new(settings: FqCodelSettings) -> Result<Self, FqCodelError> {
        settings.check()?;
        Ok(Self {
            settings,
            flows: CodelFlows::new(settings.flows),
            new: VecDeque::new(),
            old: VecDeque::new(),
            counts: CodelCounts::default(),
            limit_drops: 0,
            memory_drops: 0,
            new_flows: 0,
            now: CodelTime::default(),
        })
    }

    /// What it was told.
    #[must_use]
    pub const fn settings(&self) -> &FqCodelSettings {
        &self.settings
    }

    /// Other settings from now on. What is above the new limits leaves in its turn, and is dropped.
    ///
    /// # Errors
    /// [`FqCodelError`] names the setting that cannot be: then nothing has changed.
    pub fn change(&mut self, now: Nanos, settings: FqCodelSettings) -> Result<(), FqCodelError> {
        settings.check()?;
        if settings.flows != self.settings.flows {
            return Err(FqCodelError::FlowsChanged { are: self.settings.flows });
        }
        self.settings = settings;
        while (self.is_full() || self.is_over_memory()) && self.next(now).is_some() {
            self.flows.statistics.dropped += 1;
        }
        Ok(())
    }

    /// What it has counted besides what all disciplines count.
    #[must_use]
    pub fn fq_codel_statistics(&self) -> FqCodelStatistics {
        FqCodelStatistics {
            longest_packet: self.counts.longest_packet,
            limit_drops: self.limit_drops,
            memory_drops: self.memory_drops,
            new_flows: self.new_flows,
            ecn_marks: self.counts.ecn_marks,
            ce_marks: self.counts.ce_marks,
            memory: self.flows.memory,
            new_flows_len: self.new.len() as u64,
            old_flows_len: self.old.len() as u64,
        }
    }

    /// A flow that is in a list, by its class.
    #[must_use]
    pub fn flow(&self, class: ClassId) -> Option<FqCodelFlow> {
        let flow = self.flows.get(self.flow_of(class)?).filter(|flow| flow.is_listed)?;
        let mut statistics = Statistics::default();
        (statistics.backlog, statistics.qlen) = (flow.backlog, flow.packets.len().into());
        let codel = CodelStatistics {
            count: flow.state.count,
            last_count: flow.state.last_count,
            delay: flow.state.delay.nanos(),
            drop_next: flow.state.until_next(self.now),
            ..CodelStatistics::default()
        };
        Some(FqCodelFlow { statistics, deficit: flow.deficit, codel })
    }

    /// The queue that is called `class`.
    fn flow_of(&self, class: ClassId) -> Option<u32> {
        u32::from(class.minor()).checked_sub(1).filter(|flow| *flow < self.settings.flows)
    }

    /// The queue that a packet's priority names.
    fn named_flow(&self, packet: &P) -> Option<u32> {
        let named = ClassId(packet.priority());
        (named.major() == self.settings.major).then(|| self.flow_of(named)).flatten()
    }

    fn is_full(&self) -> bool {
        self.flows.statistics.qlen > u64::from(self.settings.limit)
    }

    fn is_over_memory(&self) -> bool {
        self.flows.memory > u64::from(self.settings.memory_limit)
    }

    /// Puts a packet into a queue; makes room if there is none for it.
    fn put(&mut self, now: Nanos, flow: u32, packet: P) -> Enqueued {
        if self.flows.push(flow, CodelTime::of(now), packet) {
            self.flows.get_mut(flow).deficit = self.settings.quantum.into();
            self.new.push_back(flow);
            self.new_flows += 1;
        }
        let is_over_memory = self.is_over_memory();
        if !is_over_memory && !self.is_full() {
            return Enqueued::Queued;
        }
        let dropped = self.flows.drop_of_longest(self.settings.drop_batch);
        self.limit_drops += u64::from(dropped);
        self.memory_drops += if is_over_memory { dropped.into() } else { 0 };
        // The packet was behind all others of its queue.
        if self.flows.get_mut(flow).packets.len() == 0 { Enqueued::Dropped } else { Enqueued::Queued }
    }

    /// The packet whose turn it is.
    fn next(&mut self, now: Nanos) -> Option<P> {
        self.now = CodelTime::of(now);
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let index = *list.front()?;
            let flow = self.flows.get_mut(index);
            if flow.deficit <= 0 {
                flow.deficit += i64::from(self.settings.quantum);
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let (state, mut queue) = self.flows.head(index);
            let mut run =
                CodelRun { law: &self.settings.law, state, counts: &mut self.counts, now: self.now };
            if let Some(packet) = run.next(&mut queue) {
                self.flows.get_mut(index).deficit -= i64::from(packet.len());
                return Some(packet);
            }
            list.pop_front();
            // One that is new waits for a turn of the others first, lest one that has little, but often, is
            // always before them.
            if is_new && !self.old.is_empty() {
                self.old.push_back(index);
            } else {
                self.flows.get_mut(index).is_listed = false;
            }
        }
    }
}

/// The queue of a flow, of so many: each difference in a flow's number may make any.
const fn spread(flow: u64, queues: u32) -> u32 {
    // The finaliser of MurmurHash3, then the upper bits of the product.
    let mixed = (flow ^ (flow >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    let upper = (mixed ^ (mixed >> 33)) >> 32;
    ((upper * queues as u64) >> 32) as u32
}

impl<P: Packet + Debug + Send> Qdisc<P> for FqCodel<P> {
    fn kind(&self) -> &'static str {
        "fq_codel"
    }

    fn enqueue(&mut self, now: Nanos, packet: P) -> Enqueued {
        let named = self.named_flow(&packet);
        let flow = named.unwrap_or_else(|| spread(packet.flow(), self.settings.flows));
        self.put(now, flow, packet)
    }

    fn dequeue(&mut self, now: Nanos) -> Dequeued<P> {
        let Some(packet) = self.next(now) else { return Dequeued::Empty };
        self.flows.statistics.count_sent(packet.size());
        Dequeued::Packet(packet)
    }

    fn reset(&mut self, _: Nanos) {
        self.flows.clear();
        self.new.clear();
        self.old.clear();
    }

    fn statistics(&self) -> Statistics {
        self.flows.statistics
    }

    fn is_empty(&self) -> bool {
        self.flows.statistics.qlen == 0
    }
}
