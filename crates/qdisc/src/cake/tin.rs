//! A tin: its queues, the hosts that share it, and how queues change between lists.
//!
//! A queue is sparse as long as a turn is enough for it, bulk when it is not, and decays when it is empty
//! and not yet at rest. Sparse ones go first. A flow's turn is shorter the more flows with a backlog its
//! host has.
//!
//! Invariants: `sparse`, `bulk` and `decaying` count the queues of each role; `backlog` is the sum over
//! queues; a queue with packets is sparse, waiting or bulk.

use super::cobalt::Cobalt;
use super::framing::moved;
use super::rotation::{Rotation, TurnList};
use super::settings::CakeIsolation;
use super::spread::{CakePlace, HostPlaces, PacketTags, QUEUES, place_of};
use super::statistics::CakeTinStatistics;
use super::tins::TinLaw;
use crate::pooled::PooledQueue;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use quietcore_core::Nanos;

/// What a queue is to its tin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueueRole {
    /// In no list.
    Absent,
    /// It has not had a turn's worth yet.
    Sparse,
    /// Its turn is used up, but it is empty: it counts as sparse.
    Waiting,
    Bulk,
    Decaying,
}

/// One queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct CakeQueue {
    pub(super) packets: PooledQueue,
    pub(super) backlog: u64,
    /// Bytes that it may send before others have their turn.
    pub(super) deficit: i64,
    pub(super) role: QueueRole,
    pub(super) cobalt: Cobalt,
    pub(super) dropped: u64,
    /// The last flow that it was of.
    tag: u32,
    source: u16,
    destination: u16,
}

const EMPTY: CakeQueue = CakeQueue {
    packets: PooledQueue::new(),
    backlog: 0,
    deficit: 0,
    role: QueueRole::Absent,
    cobalt: Cobalt::new(),
    dropped: 0,
    tag: 0,
    source: 0,
    destination: 0,
};

/// A tin.
#[derive(Debug)]
pub(super) struct CakeTin {
    pub(super) law: TinLaw,
    pub(super) queues: Vec<CakeQueue>,
    pub(super) rotation: Rotation,
    sources: Box<HostPlaces>,
    destinations: Box<HostPlaces>,
    /// When it has had what its threshold gives it, in nanoseconds.
    pub(super) next_packet: u64,
    /// Bytes that it may send in a round without a rate.
    pub(super) deficit: i32,
    pub(super) sparse: u64,
    pub(super) bulk: u64,
    pub(super) decaying: u64,
    /// What is shown; what follows from the rest is put in then.
    pub(super) counts: CakeTinStatistics,
}

impl CakeTin {
    pub(super) fn new(law: TinLaw) -> Self {
        Self {
            law,
            queues: vec![EMPTY; QUEUES],
            rotation: Rotation::new(),
            sources: Box::new(HostPlaces::new()),
            destinations: Box::new(HostPlaces::new()),
            next_packet: 0,
            deficit: 0,
            sparse: 0,
            bulk: 0,
            decaying: 0,
            counts: CakeTinStatistics::default(),
        }
    }

    /// Whether it has queues that take turns.
    pub(super) const fn is_active(&self) -> bool {
        self.sparse + self.bulk > 0
    }

    /// The queue of a packet.
    pub(super) fn place(&mut self, tags: PacketTags, isolation: CakeIsolation) -> usize {
        if isolation == CakeIsolation::FlowBlind {
            return 0;
        }
        let queues = &self.queues;
        let is_used = |at: usize| queues[at].role != QueueRole::Absent;
        let (at, is_new) = match place_of(tags.flow, |at| queues[at].tag == tags.flow, is_used) {
            CakePlace::Known { at, passed } => {
                self.counts.way_indirect_hits += u64::from(passed > 0);
                (at, !is_used(at))
            }
            CakePlace::Free(at) => {
                self.counts.way_misses += 1;
                (at, true)
            }
            CakePlace::Shared(at) => {
                self.counts.way_collisions += 1;
                if queues[at].role == QueueRole::Bulk {
                    self.leave_hosts(at, isolation);
                }
                (at, true)
            }
        };
        self.queues[at].tag = tags.flow;
        if is_new {
            self.join_hosts(at, tags, isolation);
        }
        at
    }

    /// Notes of which hosts the flow of a queue is.
    fn join_hosts(&mut self, at: usize, tags: PacketTags, isolation: CakeIsolation) {
        let queue = &mut self.queues[at];
        let is_bulk = queue.role == QueueRole::Bulk;
        if isolation.shares_sources() {
            queue.source = self.sources.place(tags.source);
            if is_bulk {
                self.sources.add(queue.source);
            }
        }
        if isolation.shares_destinations() {
            queue.destination = self.destinations.place(tags.destination);
            if is_bulk {
                self.destinations.add(queue.destination);
            }
        }
    }

    fn leave_hosts(&mut self, at: usize, isolation: CakeIsolation) {
        let CakeQueue { source, destination, .. } = self.queues[at];
        if isolation.shares_sources() {
            self.sources.subtract(source);
        }
        if isolation.shares_destinations() {
            self.destinations.subtract(destination);
        }
    }

    /// Bytes of a flow's turn: of the flows with a backlog of its busier host, its part. What does not divide
    /// is evened out by chance.
    pub(super) fn turn(&self, at: usize, isolation: CakeIsolation, random: u32) -> i64 {
        let CakeQueue { source, destination, .. } = self.queues[at];
        let mut load = 1;
        if isolation.shares_sources() {
            load = load.max(self.sources.bulk(source));
        }
        if isolation.shares_destinations() {
            load = load.max(self.destinations.bulk(destination));
        }
        let part = u32::from(u16::MAX / load);
        i64::from((self.law.flow_quantum * part + (random >> 16)) >> 16)
    }

    /// It has more than its turn: it is bulk.
    fn become_bulk(&mut self, at: usize, isolation: CakeIsolation) {
        let queue = &mut self.queues[at];
        queue.role = QueueRole::Bulk;
        self.sparse -= 1;
        self.bulk += 1;
        if isolation.shares_sources() {
            self.sources.add(queue.source);
        }
        if isolation.shares_destinations() {
            self.destinations.add(queue.destination);
        }
    }

    /// A queue has a packet: it takes turns from now on. Says whether it is new to that, and has a turn to
    /// get.
    pub(super) fn wake(&mut self, at: usize, isolation: CakeIsolation) -> bool {
        match self.queues[at].role {
            QueueRole::Sparse | QueueRole::Bulk => false,
            QueueRole::Waiting => {
                self.become_bulk(at, isolation);
                false
            }
            role @ (QueueRole::Absent | QueueRole::Decaying) => {
                self.decaying -= u64::from(role == QueueRole::Decaying);
                self.sparse += 1;
                self.queues[at].role = QueueRole::Sparse;
                self.rotation.put_last(at, TurnList::New);
                true
            }
        }
    }

    /// The turn of a queue is over: it goes behind the old ones, with another turn ahead.
    pub(super) fn end_turn(&mut self, at: usize, isolation: CakeIsolation) {
        if self.queues[at].role == QueueRole::Sparse {
            if self.queues[at].packets.len() > 0 {
                self.become_bulk(at, isolation);
            } else {
                self.queues[at].role = QueueRole::Waiting;
            }
        }
        self.rotation.put_last(at, TurnList::Old);
    }

    /// A queue was found empty.
    pub(super) fn retire(&mut self, at: usize, now: i64, isolation: CakeIsolation) {
        let law = self.law.cobalt;
        let responds = self.queues[at].cobalt.empty(now, &law);
        self.counts.unresponsive_flows -= u64::from(responds);
        match self.queues[at].role {
            QueueRole::Absent => {}
            QueueRole::Sparse | QueueRole::Waiting => self.sparse -= 1,
            QueueRole::Bulk => {
                self.bulk -= 1;
                self.leave_hosts(at, isolation);
            }
            QueueRole::Decaying => self.decaying -= 1,
        }
        let queue = &mut self.queues[at];
        if queue.cobalt.is_at_rest(now) {
            queue.role = QueueRole::Absent;
            self.rotation.remove(at);
        } else {
            queue.role = QueueRole::Decaying;
            self.decaying += 1;
            self.rotation.put_last(at, TurnList::Decaying);
        }
    }

    /// Notes how long a packet waited that leaves, in nanoseconds.
    pub(super) fn note_delay(&mut self, waited: u64) {
        let shift = |is_fast| if is_fast { 2 } else { 8 };
        let counts = &mut self.counts;
        let (peak, base) = (counts.peak_delay.0, counts.base_delay.0);
        counts.peak_delay = Nanos(moved(peak, waited, shift(waited > peak)));
        counts.average_delay = Nanos(moved(counts.average_delay.0, waited, 8));
        counts.base_delay = Nanos(moved(base, waited, shift(waited < base)));
    }

    /// What is shown.
    pub(super) fn statistics(&self) -> CakeTinStatistics {
        let TinLaw { rate, flow_quantum, cobalt, .. } = self.law;
        CakeTinStatistics {
            threshold: rate,
            target: Nanos(cobalt.target),
            interval: Nanos(cobalt.interval),
            sparse_flows: self.sparse + self.decaying,
            bulk_flows: self.bulk,
            flow_quantum,
            ..self.counts
        }
    }

    /// Nothing is queued any more; lists and what was counted stay.
    pub(super) fn empty_queues(&mut self) {
        for queue in &mut self.queues {
            (queue.packets, queue.backlog) = (PooledQueue::new(), 0);
        }
        self.counts.backlog = 0;
    }
}
