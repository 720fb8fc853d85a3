//! Gates: which lanes take what is not bound to them.
//!
//! The gate of a lane is open while a thread drives it and it is not isolated. Claims, leaves and changes of
//! the masks are ordered by a lock of the world, that of control, whose holder calls what is here. What the
//! gates gave back is for other lanes, and is settled when that lock was given back: an item that comes too
//! late is dropped there, with its user's code.

use super::{LaneQueue, QueueWorld, RunQueues};
use crate::CpuId;
use alloc::vec::Vec;

/// What gates gave back, and the lane that a thread has left: for [`RunQueues::settle`].
#[derive(Debug)]
#[must_use]
pub struct Unsettled<I> {
    items: Vec<I>,
    left: Option<CpuId>,
}

impl<I> Unsettled<I> {
    /// How many items were given back.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether none was.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

impl<W: QueueWorld> RunQueues<W> {
    /// A thread has claimed `cpu`. By the holder of the lock of control.
    pub fn handle_claim(&self, cpu: CpuId) -> Unsettled<W::Item> {
        let items = if self.must_open(cpu) { self.open(cpu) } else { Vec::new() };
        Unsettled { items, left: None }
    }

    /// The thread that had `cpu` has released it, so that no other call opens it again. By the holder of the
    /// lock of control.
    pub fn handle_leave(&self, cpu: CpuId) -> Unsettled<W::Item> {
        Unsettled { items: self.close(cpu), left: Some(cpu) }
    }

    /// The masks have changed. When it returns, no isolated lane begins anything that is not bound to it; the
    /// world waits for what is under way. By the holder of the lock of control.
    pub fn handle_isolation(&self) -> Unsettled<W::Item> {
        let lanes = self.0.rules().lanes;
        let isolated = self.0.isolated();
        // Those first that may take what the others give back.
        let opened = lanes.difference(&isolated);
        let opened = opened.iter().filter(|cpu| self.must_open(*cpu)).flat_map(|cpu| self.open(cpu));
        let mut items: Vec<_> = opened.collect();
        items.extend(lanes.intersection(&isolated).iter().flat_map(|cpu| self.close(cpu)));
        Unsettled { items, left: None }
    }

    /// Items that gates gave back go where they can run; what is pending on a lane that was left, its
    /// ksoftirqd runs. Without a lock.
    pub fn settle(&self, unsettled: Unsettled<W::Item>) {
        unsettled.items.into_iter().for_each(|item| self.enqueue(item));
        if let Some(cpu) = unsettled.left {
            self.0.ask_ksoftirqd(cpu);
        }
    }

    fn must_open(&self, cpu: CpuId) -> bool {
        self.0.is_claimed(cpu) && !self.0.isolated().contains(cpu)
    }

    /// Gives what has waited for that.
    fn open(&self, cpu: CpuId) -> Vec<W::Item> {
        let Some(queue) = self.0.queue(cpu) else { return Vec::new() };
        let items = self.0.with_unplaced(|unplaced| {
            queue.open(self.0.rules().priorities);
            unplaced.take()
        });
        self.handle_open(cpu);
        items
    }

    fn close(&self, cpu: CpuId) -> Vec<W::Item> {
        self.0.queue(cpu).map_or_else(Vec::new, |queue| queue.close(self.0.rules().priorities))
    }

    /// No lane was found for `item`. Gives it back if there is one now, or never will be.
    pub(super) fn hold_unplaced(&self, item: W::Item) -> Result<(), W::Item> {
        self.0.with_unplaced(|unplaced| {
            let is_any_open = self.0.rules().lanes.iter().any(|cpu| self.is_open(cpu));
            unplaced.hold(item, is_any_open)
        })
    }
}
