//! What a world has of run queues: items, a queue for each lane, and what is the same for all of them.

use super::{Activity, NextItem, QueueItem, Unplaced};
use crate::lane::{LaneTable, Sleeper};
use crate::realtime::{Awareness, CpuPriorities, Priority};
use crate::softirq::Claims;
use crate::topology::Topology;
use crate::{CpuId, CpuSet};
use alloc::vec::Vec;

/// Where a normal task or work is run that was woken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WakeTo {
    /// On the lane that it ran on last.
    #[default]
    Last,
    /// On the lane that wakes it; where it ran last if that is no lane.
    Here,
}

/// A lane's queue: an [`ItemQueue`](super::ItemQueue) behind a lock, and words about it that are read without
/// it. What those say is out of date when it is used.
pub trait LaneQueue {
    /// What waits in it.
    type Item: QueueItem;

    /// Whether the lane takes what is not bound to it.
    fn is_open(&self) -> bool;
    /// What the lane does, and whether that may move.
    fn current(&self) -> (Activity, bool);
    /// The highest real-time priority that waits here.
    fn realtime_waiting(&self) -> Option<Priority>;
    /// The highest of those that wait here and may run elsewhere.
    fn realtime_movable(&self) -> Option<Priority>;
    /// How many items wait here that others may take, real-time tasks apart.
    fn free_waiting(&self) -> u32;
    /// Softirqs of the CPU: pending, and who runs which.
    fn claims(&self) -> &Claims;

    /// The lane takes what is not bound to it from now on, unless the machine has ended. Under the lock.
    fn open(&self, priorities: &CpuPriorities);
    /// The lane begins nothing from now on but what is bound to it; gives back all else that waits. Under the
    /// lock.
    #[must_use]
    fn close(&self, priorities: &CpuPriorities) -> Vec<Self::Item>;
    /// [`ItemQueue::push`](super::ItemQueue::push), under the lock.
    ///
    /// # Errors
    /// Gives it back when the gate is closed and it is not bound to this lane, or the machine has ended.
    fn push(&self, item: Self::Item, priorities: &CpuPriorities) -> Result<usize, Self::Item>;
    /// [`ItemQueue::pop`](super::ItemQueue::pop), under the lock. By the lane.
    fn pop(&self, priorities: &CpuPriorities) -> Option<NextItem<Self::Item>>;
    /// [`ItemQueue::take_realtime`](super::ItemQueue::take_realtime), if the lock can be had at once.
    fn take_realtime(&self, priorities: &CpuPriorities) -> Option<(Priority, Self::Item)>;
    /// [`ItemQueue::take_free`](super::ItemQueue::take_free), if the lock can be had at once.
    fn take_free(&self, priorities: &CpuPriorities) -> Option<Self::Item>;
    /// The lane runs a real-time task of that priority, or the one that it ran is over. By the lane.
    fn set_running(&self, running: Option<Priority>, priorities: &CpuPriorities);
    /// By the lane: it is about to do something that is its own.
    fn begin_bound(&self, activity: Activity);
    /// By the lane: it would do something that is not bound to it. Says so first, then looks at the gate;
    /// says whether it may.
    #[must_use]
    fn begin_movable(&self, activity: Activity) -> bool;
    /// By the lane: it is done.
    fn end(&self);
}

/// What is the same for all queues of a machine.
#[derive(Clone, Copy, Debug)]
pub struct QueueRules<'a> {
    /// The machine's lanes, without spares.
    pub lanes: &'a CpuSet,
    /// The highest real-time priority of every lane, for those who place tasks.
    pub priorities: &'a CpuPriorities,
    /// Which lanes are near each other.
    pub topology: &'a Topology,
    /// What long softirqs mean for real-time tasks.
    pub awareness: Awareness,
    /// Where normal tasks and work go.
    pub wake_to: WakeTo,
}

/// How an item came to a lane other than the one that it waited for, for those who count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// A lane took a real-time task from another one.
    Pulled,
    /// A lane gave a real-time task to another one.
    Pushed,
    /// A lane took a normal task or work from another one.
    Stolen,
}

/// The world of a machine's queues.
pub trait QueueWorld {
    /// What waits.
    type Item: QueueItem;
    /// Where it waits.
    type Queue: LaneQueue<Item = Self::Item>;
    /// Where a lane waits.
    type Place: Sleeper;

    /// All lanes and spares.
    fn table(&self) -> &LaneTable<Self::Place>;
    /// The queue of `cpu`, if a thread can drive that.
    fn queue(&self, cpu: CpuId) -> Option<&Self::Queue>;
    /// What is the same for all.
    fn rules(&self) -> QueueRules<'_>;
    /// Counts up, for choices that are made in turns.
    fn next_in_turn(&self) -> usize;
    /// The lane that the calling thread drives.
    fn here(&self) -> Option<CpuId>;
    /// Whether `cpu` is marked absent.
    fn is_marked(&self, cpu: CpuId) -> bool;
    /// Whether the machine runs: items are taken.
    fn is_running(&self) -> bool;
    /// Whether a thread drives `cpu`. By the holder of the lock of control.
    fn is_claimed(&self, cpu: CpuId) -> bool;
    /// The CPUs that are isolated now.
    fn isolated(&self) -> CpuSet;
    /// `change` is called under the lock of what no lane takes.
    fn with_unplaced<R>(&self, change: impl FnOnce(&mut Unplaced<Self::Item>) -> R) -> R;
    /// The ksoftirqd of `cpu` is to run what is pending there, as no thread drives `cpu`.
    fn ask_ksoftirqd(&self, cpu: CpuId);
    /// No lane will run `item`: the machine has ended.
    fn dismiss(&self, item: Self::Item);
    /// An item has moved, as the lane of `cpu` did.
    fn count(&self, cpu: CpuId, moved: Moved);
}
