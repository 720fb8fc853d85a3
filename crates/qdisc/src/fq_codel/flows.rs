//! The queues, and what they hold together.
//!
//! Invariant: `statistics.backlog`, `statistics.qlen` and `memory` are sums over all queues. Not here: turns.

use crate::codel::control::{CodelQueue, CodelState, CodelTime, Waited};
use crate::pooled::{Pool, PooledQueue};
use crate::{Packet, Statistics};
use alloc::vec;
use alloc::vec::Vec;

/// Memory of a packet besides its bytes, about: a buffer's head in the kernel.
const PACKET_OVERHEAD: u64 = 256;

fn memory_of(packet: &impl Packet) -> u64 {
    u64::from(packet.len()) + PACKET_OVERHEAD
}

/// One queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlowQueue {
    pub(super) packets: PooledQueue,
    pub(super) backlog: u64,
    /// Bytes that it may send before others have their turn.
    pub(super) deficit: i64,
    /// Whether it takes turns.
    pub(super) is_listed: bool,
    pub(super) state: CodelState,
}

const EMPTY: FlowQueue = FlowQueue {
    packets: PooledQueue::new(),
    backlog: 0,
    deficit: 0,
    is_listed: false,
    state: CodelState::new(),
};

/// All queues.
#[derive(Debug)]
pub(super) struct CodelFlows<P> {
    pool: Pool<(CodelTime, P)>,
    queues: Vec<FlowQueue>,
    pub(super) statistics: Statistics,
    /// Bytes.
    pub(super) memory: u64,
}

impl<P: Packet> CodelFlows<P> {
    pub(super) fn new(count: u32) -> Self {
        let queues = vec![EMPTY; count as usize];
        Self { pool: Pool::new(), queues, statistics: Statistics::default(), memory: 0 }
    }

    pub(super) fn get(&self, flow: u32) -> Option<&FlowQueue> {
        self.queues.get(flow as usize)
    }

    pub(super) fn get_mut(&mut self, flow: u32) -> &mut FlowQueue {
        &mut self.queues[flow as usize]
    }

    /// Those that take turns.
    pub(super) fn listed(&self) -> impl Iterator<Item = u32> {
        (0_u32..).zip(&self.queues).filter(|(_, queue)| queue.is_listed).map(|(flow, _)| flow)
    }

    /// Puts a packet into a queue; says whether that takes turns from now on.
    pub(super) fn push(&mut self, flow: u32, now: CodelTime, packet: P) -> bool {
        let bytes = packet.len();
        self.memory += memory_of(&packet);
        self.statistics.arrived(packet.size());
        let queue = &mut self.queues[flow as usize];
        queue.backlog += u64::from(bytes);
        self.pool.push(&mut queue.packets, (now, packet));
        !core::mem::replace(&mut queue.is_listed, true)
    }

    /// The head of a queue, for CoDel, and what that knows of the queue.
    pub(super) fn head(&mut self, flow: u32) -> (&mut CodelState, FlowHead<'_, P>) {
        let FlowQueue { packets, backlog, state, .. } = &mut self.queues[flow as usize];
        let Self { pool, statistics, memory, .. } = self;
        (state, FlowHead { pool, packets, backlog, statistics, memory })
    }

    /// Drops from the head of the queue that has the most bytes, the first of several, until that has half
    /// of them or `most` packets are dropped, at least one. Says how many packets. Costs a look at each
    /// queue. CoDel's drops in that queue come closer, as if it had dropped these.
    pub(super) fn drop_of_longest(&mut self, most: u32) -> u32 {
        let before = |one: &(u32, u64), other: &(u32, u64)| one.1.cmp(&other.1).then(other.0.cmp(&one.0));
        let queues = (0_u32..).zip(&self.queues).map(|(flow, queue)| (flow, queue.backlog));
        let (flow, bytes) = queues.max_by(before).unwrap_or_default();
        let (_, mut head) = self.head(flow);
        let (mut dropped, mut dropped_bytes) = (0, 0);
        while dropped == 0 || (dropped < most && dropped_bytes < bytes / 2) {
            let Some(waited) = head.take() else { break };
            dropped_bytes += u64::from(waited.packet.len());
            head.discard(waited.packet);
            dropped += 1;
        }
        let state = &mut self.queues[flow as usize].state;
        state.count = state.count.wrapping_add(dropped);
        dropped
    }

    /// Empties all queues, which take no turns then.
    pub(super) fn clear(&mut self) {
        self.pool.clear();
        self.queues.fill(EMPTY);
        self.statistics.emptied();
        self.memory = 0;
    }
}

/// The head of a queue.
#[derive(Debug)]
pub(super) struct FlowHead<'a, P> {
    pool: &'a mut Pool<(CodelTime, P)>,
    packets: &'a mut PooledQueue,
    backlog: &'a mut u64,
    statistics: &'a mut Statistics,
    memory: &'a mut u64,
}

impl<P: Packet> CodelQueue<P> for FlowHead<'_, P> {
    /// Bytes of all queues say whether there is more than one packet, as in the kernel.
    fn take(&mut self) -> Option<Waited<P>> {
        let (arrived, packet) = self.pool.pop_first(self.packets)?;
        *self.backlog -= u64::from(packet.len());
        *self.memory -= memory_of(&packet);
        self.statistics.left(packet.size());
        Some(Waited { packet, arrived, backlog: self.statistics.backlog })
    }

    fn discard(&mut self, _: P) {
        self.statistics.dropped += 1;
    }
}
