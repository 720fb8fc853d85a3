//! What a lane runs next: its own, or what another lane does not get to.
//!
//! A lane with no real-time task takes the highest that waits on a lane that is busy or stuck; one with
//! nothing at all takes a normal item. A lane that is just about to run its only one keeps it. A spare takes
//! what waits only while all lanes are stuck.

use super::{Activity, LaneQueue, Moved, NextItem, QueueRules, QueueWorld, RunQueues};
use crate::CpuId;
use crate::lane::Role;
use crate::realtime::{Priority, PullSource, RunningTask, pull_source};

impl<W: QueueWorld> RunQueues<W> {
    /// The first of what is in `queue`, that of `cpu`, or of what others have. By the lane of `cpu`.
    #[inline]
    pub fn next_item(&self, cpu: CpuId, queue: &W::Queue, role: Role) -> Option<NextItem<W::Item>> {
        if role == Role::Spare {
            return self.rescue(cpu);
        }
        let priorities = self.0.rules().priorities;
        // Asked once: a gate that opens after the look for real-time tasks would let a normal one go first.
        let takes_all = queue.is_open();
        if queue.realtime_waiting().is_none()
            && takes_all
            && let Some((priority, item)) = self.pull_realtime(cpu)
        {
            queue.set_running(Some(priority), priorities);
            return Some(NextItem { item, activity: Activity::Realtime(priority), is_movable: true });
        }
        let next = queue.pop(priorities);
        if next.is_some() || !takes_all {
            return next;
        }
        let stolen = self.steal(cpu)?;
        Some(NextItem { item: stolen, activity: Activity::Normal, is_movable: true })
    }

    /// The lane of `cpu`, whose queue is `queue`, is about to run `next`. `None` if it was isolated since
    /// that was chosen: others have it then. After the run: [`end`](Self::end).
    #[inline]
    pub fn begin(&self, cpu: CpuId, queue: &W::Queue, next: NextItem<W::Item>) -> Option<W::Item> {
        let NextItem { item, activity, is_movable } = next;
        let is_realtime = matches!(activity, Activity::Realtime(_));
        if !is_movable {
            queue.begin_bound(activity);
        } else if !queue.begin_movable(activity) {
            if is_realtime {
                queue.set_running(None, self.0.rules().priorities);
            }
            self.enqueue(item);
            return None;
        }
        if is_realtime {
            self.push_realtime(cpu, queue);
        }
        Some(item)
    }

    /// The item that the lane of `queue` ran as `activity` is over for now.
    #[inline]
    pub fn end(&self, queue: &W::Queue, activity: Activity) {
        queue.end();
        if matches!(activity, Activity::Realtime(_)) {
            queue.set_running(None, self.0.rules().priorities);
        }
    }

    /// Whether another lane has something that it does not get to, and `cpu` may take it. Cost: two loads per
    /// lane.
    #[must_use]
    pub fn must_help(&self, cpu: CpuId, role: Role) -> bool {
        let may_help = match role {
            Role::Lane => self.0.queue(cpu).is_some_and(LaneQueue::is_open),
            Role::Spare => !self.has_free_lane(),
        };
        let mut others = self.0.rules().lanes.iter().filter(|other| *other != cpu);
        may_help && others.any(|other| self.has_free_to_take(other) || self.is_source(other))
    }

    /// What the spare `cpu` runs, as no lane does: all of them are stuck.
    fn rescue(&self, cpu: CpuId) -> Option<NextItem<W::Item>> {
        if self.has_free_lane() {
            return None;
        }
        let pulled = self.pull_realtime(cpu).map(|(_, item)| item);
        let item = pulled.or_else(|| self.steal(cpu))?;
        // A spare has no lane's rank: it runs everything as a normal task.
        Some(NextItem { item, activity: Activity::Normal, is_movable: false })
    }

    /// What `cpu`, which has no real-time task itself, takes from a lane that is busy with something, or
    /// stuck: the highest real-time task. Nearly always none waits: that is found here.
    #[inline]
    fn pull_realtime(&self, cpu: CpuId) -> Option<(Priority, W::Item)> {
        let waits = |queue: &W::Queue| queue.realtime_movable().is_some();
        if self.does_another(cpu, waits) { self.pull_highest(cpu) } else { None }
    }

    /// Whether `waits` is so of the queue of any lane but that of `cpu`.
    #[inline]
    fn does_another(&self, cpu: CpuId, waits: impl Fn(&W::Queue) -> bool) -> bool {
        let mut others = self.0.rules().lanes.iter().filter(|other| *other != cpu);
        others.any(|other| self.0.queue(other).is_some_and(&waits))
    }

    #[cold]
    fn pull_highest(&self, cpu: CpuId) -> Option<(Priority, W::Item)> {
        let QueueRules { lanes, priorities, .. } = self.0.rules();
        let others = lanes.iter().filter(|other| *other != cpu);
        let source = pull_source(others.filter_map(|other| self.source(other)), None)?;
        let pulled = self.0.queue(source)?.take_realtime(priorities)?;
        self.0.count(cpu, Moved::Pulled);
        Some(pulled)
    }

    /// What waits on another lane, if it is a real-time task, and what runs there.
    fn source(&self, cpu: CpuId) -> Option<PullSource> {
        let queue = self.0.queue(cpu)?;
        let waiting = queue.realtime_movable()?;
        let is_busy = match queue.current().0 {
            Activity::None => false,
            // A kernel that does not look at softirqs leaves a task behind them.
            Activity::Softirq => self.0.rules().awareness.places(),
            Activity::Normal | Activity::Realtime(_) => true,
        };
        let is_held_up = is_busy || !self.is_free(cpu);
        let running = if is_held_up { RunningTask::Uninterruptible } else { RunningTask::Nothing };
        Some(PullSource { cpu, waiting, running })
    }

    fn is_source(&self, cpu: CpuId) -> bool {
        pull_source(self.source(cpu), None).is_some()
    }

    /// What `cpu`, which has nothing to run, takes from another lane. Nearly always nothing waits there.
    #[inline]
    fn steal(&self, cpu: CpuId) -> Option<W::Item> {
        if self.does_another(cpu, |queue| queue.free_waiting() > 0) { self.steal_first(cpu) } else { None }
    }

    #[cold]
    fn steal_first(&self, cpu: CpuId) -> Option<W::Item> {
        let QueueRules { lanes, priorities, .. } = self.0.rules();
        let behind = lanes.iter().filter(|other| *other > cpu);
        let mut others = behind.chain(lanes.iter().filter(|other| *other < cpu));
        let stolen = others.find_map(|other| {
            let queue = self.0.queue(other).filter(|_| self.has_free_to_take(other))?;
            queue.take_free(priorities)
        })?;
        self.0.count(cpu, Moved::Stolen);
        Some(stolen)
    }

    /// The same for normal tasks and work: a lane that is just about to run its only one keeps it.
    fn has_free_to_take(&self, cpu: CpuId) -> bool {
        let Some(queue) = self.0.queue(cpu) else { return false };
        match queue.free_waiting() {
            0 => false,
            1 => queue.current().0 != Activity::None || !self.is_free(cpu),
            _ => true,
        }
    }
}
