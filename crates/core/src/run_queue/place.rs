//! Where an item goes that is to be run.
//!
//! Real-time tasks go where [`wake_target`] says: where they ran last unless something is in the way. A lane
//! cannot interrupt what it runs, so a normal task or work that is under way is in the way as a real-time
//! task of the kernel would be that cannot be moved (ours; softirqs are in the way only if the machine
//! [places](crate::realtime::Awareness::places) by them). Normal tasks and work go to the lane that they ran
//! on last, or to the one that wakes them; from there any idle lane takes them. What no lane takes waits
//! aside until one opens.

use super::{Activity, LaneQueue, Moved, QueueItem, QueueRules, QueueWorld, WakeTo};
use crate::CpuId;
use crate::realtime::{
    Priority, RunnableTask, RunningTask, Seeker, find_lowest, fits, push_target, wake_target,
};

/// What is decided about the queues of a world.
#[derive(Debug)]
pub struct RunQueues<W>(pub(super) W);

impl<W: QueueWorld> RunQueues<W> {
    /// Of `world`.
    #[inline]
    #[must_use]
    pub const fn new(world: W) -> Self {
        Self(world)
    }

    /// Whether `cpu` takes what is not bound to it, as far as any thread can see.
    #[inline]
    pub(super) fn is_free(&self, cpu: CpuId) -> bool {
        self.is_open(cpu) && !self.0.is_marked(cpu)
    }

    #[inline]
    pub(super) fn is_open(&self, cpu: CpuId) -> bool {
        self.0.queue(cpu).is_some_and(LaneQueue::is_open)
    }

    /// Whether there is a lane that is not stuck and takes what is not bound to it.
    pub(super) fn has_free_lane(&self) -> bool {
        self.0.rules().lanes.iter().any(|cpu| self.is_free(cpu))
    }

    /// `item` is to be run. From any thread.
    #[inline]
    pub fn enqueue(&self, mut item: W::Item) {
        while self.0.is_running() {
            let placed = match self.target(&item) {
                Some(cpu) => self.push_to(cpu, item),
                None => self.hold_unplaced(item),
            };
            match placed {
                Ok(()) => return,
                // The gate was closed, or another one opened, since it was looked at.
                Err(back) => item = back,
            }
        }
        self.0.dismiss(item);
    }

    /// Puts `item` into the queue of `cpu` and wakes the lanes that should look.
    #[inline]
    fn push_to(&self, cpu: CpuId, item: W::Item) -> Result<(), W::Item> {
        let queue = self.0.queue(cpu).expect("a lane was chosen");
        let is_bound = item.bound_to().is_some();
        let waited = queue.push(item, self.0.rules().priorities)?;
        self.wake_for(cpu, queue, waited, is_bound);
        Ok(())
    }

    #[inline]
    fn target(&self, item: &W::Item) -> Option<CpuId> {
        match (item.bound_to(), item.priority()) {
            (Some(cpu), _) => Some(cpu),
            (None, Some(priority)) => self.realtime_target(priority, item.last()),
            (None, None) => self.normal_target(item.last()),
        }
    }

    #[inline]
    fn normal_target(&self, last: CpuId) -> Option<CpuId> {
        let here = self.0.here();
        let preferred = match self.0.rules().wake_to {
            WakeTo::Last => [Some(last), here],
            WakeTo::Here => [here, Some(last)],
        };
        let preferred = preferred.into_iter().flatten().find(|cpu| self.is_free(*cpu));
        preferred.or_else(|| self.any_free()).or_else(|| self.any_open())
    }

    fn realtime_target(&self, priority: Priority, last: CpuId) -> Option<CpuId> {
        let QueueRules { lanes, priorities, topology, .. } = self.0.rules();
        let here = self.0.here().unwrap_or(last);
        let seeker = Seeker { priority, affinity: lanes, previous: last, here, turn: self.0.next_in_turn() };
        let fits = |cpu| self.fits_realtime(cpu);
        let found = if self.is_free(last) {
            let running = match self.0.queue(last).map(LaneQueue::current) {
                None | Some((Activity::None | Activity::Softirq, _)) => RunningTask::Nothing,
                Some((Activity::Normal, _)) => RunningTask::Uninterruptible,
                Some((Activity::Realtime(priority), can_move)) => {
                    RunningTask::Realtime { priority, can_move }
                }
            };
            Some(wake_target(priorities, topology, RunnableTask { seeker, running }, fits))
        } else {
            find_lowest(priorities, topology, seeker, fits)
        };
        found.filter(|cpu| self.is_free(*cpu)).or_else(|| self.any_free()).or_else(|| self.any_open())
    }

    /// Whether a real-time task may start on `cpu` soon, as far as the machine cares.
    fn fits_realtime(&self, cpu: CpuId) -> bool {
        let Some(queue) = self.0.queue(cpu).filter(|_| self.is_free(cpu)) else { return false };
        let claims = queue.claims();
        let is_avoided = self.0.rules().awareness.places() && !fits(claims.active(), claims.pending());
        queue.current().0 != Activity::Normal && !is_avoided
    }

    /// Real-time tasks that wait in `queue`, that of `cpu`, behind the one that its lane is about to run go
    /// where they can run now.
    pub(super) fn push_realtime(&self, cpu: CpuId, queue: &W::Queue) {
        let QueueRules { lanes, priorities, topology, .. } = self.0.rules();
        while let Some(priority) = queue.realtime_movable() {
            let turn = self.0.next_in_turn();
            let seeker = Seeker { priority, affinity: lanes, previous: cpu, here: cpu, turn };
            // It waits behind what this lane is about to run.
            let task = RunnableTask { seeker, running: RunningTask::Uninterruptible };
            let can_take = |other| self.fits_realtime(other);
            let target = push_target(priorities, topology, task, can_take, |_| true);
            let Some(target) = target else { return };
            let Some((_, item)) = queue.take_realtime(priorities) else { return };
            self.0.count(cpu, Moved::Pushed);
            if let Err(item) = self.push_to(target, item) {
                // It was closed meanwhile.
                return self.enqueue(item);
            }
        }
    }

    fn any_free(&self) -> Option<CpuId> {
        self.any_lane(|cpu| self.is_free(cpu))
    }

    fn any_open(&self) -> Option<CpuId> {
        self.any_lane(|cpu| self.is_open(cpu))
    }

    /// One of those of which `is_wanted` says yes, in turns.
    fn any_lane(&self, is_wanted: impl Fn(CpuId) -> bool) -> Option<CpuId> {
        let lanes = self.0.rules().lanes;
        let first = self.0.next_in_turn() % lanes.len().max(1);
        let in_turn = lanes.iter().skip(first).chain(lanes.iter().take(first));
        in_turn.into_iter().find(|cpu| is_wanted(*cpu))
    }
}
