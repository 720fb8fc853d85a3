//! The flows that hold packets, and which of them holds the most.
//!
//! Invariant: a flow is in the list of as many packets as it has, `longest` is the greatest number of a list
//! that is not empty. Lists are in order of the last change, the latest first.

use super::settings::DEPTH_MAX;
use crate::pooled::PooledQueue;
use crate::red::average::RedAverage;
use alloc::vec::Vec;

/// No flow.
pub(super) const NONE: u32 = u32::MAX;

/// One flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct SfqFlow {
    pub(super) packets: PooledQueue,
    /// Bytes.
    pub(super) backlog: u64,
    /// Bytes that it may send before others have their turn.
    pub(super) allot: i64,
    pub(super) bucket: u32,
    /// Whether it takes turns.
    pub(super) is_listed: bool,
    pub(super) average: RedAverage,
    /// In the list of as many packets; of a flow that is in no use, the next such one.
    behind: u32,
    before: u32,
}

/// All flows.
#[derive(Debug)]
pub(super) struct SfqFlows {
    flows: Vec<SfqFlow>,
    free: u32,
    used: u32,
    /// By the number of packets, the first of each list.
    lists: [u32; DEPTH_MAX as usize + 1],
    longest: usize,
}

impl SfqFlows {
    pub(super) const fn new() -> Self {
        let lists = [NONE; DEPTH_MAX as usize + 1];
        Self { flows: Vec::new(), free: NONE, used: 0, lists, longest: 0 }
    }

    /// How many hold packets.
    pub(super) const fn used(&self) -> u32 {
        self.used
    }

    pub(super) fn get(&self, flow: u32) -> &SfqFlow {
        &self.flows[flow as usize]
    }

    pub(super) fn get_mut(&mut self, flow: u32) -> &mut SfqFlow {
        &mut self.flows[flow as usize]
    }

    /// A flow without packets, in no list yet.
    pub(super) fn begin(&mut self, bucket: u32, allot: i64) -> u32 {
        let (packets, average) = (PooledQueue::new(), RedAverage::new());
        let fresh = SfqFlow {
            packets,
            backlog: 0,
            allot,
            bucket,
            is_listed: false,
            average,
            behind: NONE,
            before: NONE,
        };
        self.used += 1;
        let Some(flow) = self.flows.get_mut(self.free as usize) else {
            self.flows.push(fresh);
            return self.flows.len() as u32 - 1;
        };
        let at = core::mem::replace(&mut self.free, flow.behind);
        *flow = fresh;
        at
    }

    /// A flow without packets, which is in no list any more, is not used.
    pub(super) fn end(&mut self, flow: u32) {
        self.used -= 1;
        let free = core::mem::replace(&mut self.free, flow);
        self.get_mut(flow).behind = free;
    }

    /// The flow has one packet more, or less, than `before`.
    pub(super) fn moved(&mut self, flow: u32, before: u32) {
        let count = self.get(flow).packets.len();
        if before > 0 {
            self.unlink(flow, before as usize);
        }
        if count > 0 {
            self.link(flow, count as usize);
        }
        while self.longest > 0 && self.lists[self.longest] == NONE {
            self.longest -= 1;
        }
    }

    fn link(&mut self, flow: u32, count: usize) {
        let first = core::mem::replace(&mut self.lists[count], flow);
        if let Some(first) = self.flows.get_mut(first as usize) {
            first.before = flow;
        }
        let linked = self.get_mut(flow);
        (linked.before, linked.behind) = (NONE, first);
        self.longest = self.longest.max(count);
    }

    fn unlink(&mut self, flow: u32, count: usize) {
        let SfqFlow { before, behind, .. } = *self.get(flow);
        if let Some(behind) = self.flows.get_mut(behind as usize) {
            behind.before = before;
        }
        match self.flows.get_mut(before as usize) {
            Some(before) => before.behind = behind,
            None => self.lists[count] = behind,
        }
    }

    /// The flow with the most packets, if that is more than one; of several the one that changed last.
    pub(super) const fn longest(&self) -> Option<u32> {
        if self.longest > 1 { Some(self.lists[self.longest]) } else { None }
    }
}
