//! One lane's queue: the lock around it, and the words that others read without.

use crate::task::{Runnable, TaskPlace};
use crate::words::run_queue::{CurrentItem, Doorbell, Gate, Hint};
use crate::work::Queued;
use quietcore_core::realtime::{CpuPriorities, Priority};
use quietcore_core::run_queue::{Activity, ItemQueue, LaneQueue, NextItem, QueueItem};
use quietcore_core::{CpuId, softirq::Claims};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Something that a lane runs.
#[derive(Debug)]
pub(crate) enum Item {
    Task(Runnable),
    Work(Queued),
}

impl QueueItem for Item {
    fn bound_to(&self) -> Option<CpuId> {
        match self {
            Self::Task(task) => match task.metadata().place {
                TaskPlace::Anywhere => None,
                TaskPlace::Lane(cpu) | TaskPlace::Thread(cpu) => Some(cpu),
            },
            Self::Work(work) => work.bound_to(),
        }
    }

    fn priority(&self) -> Option<Priority> {
        match self {
            Self::Task(task) => task.metadata().priority,
            Self::Work(_) => None,
        }
    }

    fn last(&self) -> CpuId {
        match self {
            Self::Task(task) => task.metadata().cpu.get(),
            Self::Work(work) => work.last(),
        }
    }

    fn is_of_thread(&self) -> bool {
        self.owner().is_some()
    }
}

impl Item {
    /// The lane whose thread made it, and alone may touch it, and even drop it.
    pub(super) fn owner(&self) -> Option<CpuId> {
        match self {
            Self::Task(task) => match task.metadata().place {
                TaskPlace::Thread(cpu) => Some(cpu),
                TaskPlace::Anywhere | TaskPlace::Lane(_) => None,
            },
            Self::Work(_) => None,
        }
    }
}

/// A lane's queue, and the words about it.
#[derive(Debug)]
pub(crate) struct RunQueue {
    cpu: CpuId,
    pub(crate) doorbell: Doorbell,
    pub(crate) current: CurrentItem,
    pub(crate) gate: Gate,
    /// Softirqs of the CPU: pending, and who runs which.
    pub(crate) claims: Claims,
    /// The highest real-time priority that waits; 0: none.
    realtime: Hint,
    /// The same of those that may move.
    realtime_movable: Hint,
    /// Normal items that others may take.
    free: Hint,
    items: Mutex<ItemQueue<Item>>,
}

/// A priority as a hint has it.
fn number(priority: Option<Priority>) -> u32 {
    priority.map_or(0, |priority| priority.get().into())
}

impl RunQueue {
    pub(crate) fn new(cpu: CpuId) -> Self {
        Self {
            cpu,
            doorbell: Doorbell::new(),
            current: CurrentItem::new(),
            gate: Gate::new(),
            claims: Claims::new(),
            realtime: Hint::new(),
            realtime_movable: Hint::new(),
            free: Hint::new(),
            items: Mutex::new(ItemQueue::new(cpu)),
        }
    }

    pub(crate) const fn cpu(&self) -> CpuId {
        self.cpu
    }

    fn lock(&self) -> MutexGuard<'_, ItemQueue<Item>> {
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For those who must not wait for a lane that was stopped in here.
    fn try_lock(&self) -> Option<MutexGuard<'_, ItemQueue<Item>>> {
        match self.items.try_lock() {
            Ok(items) => Some(items),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Hints follow the items; under the lock.
    fn tell(&self, items: &ItemQueue<Item>, priorities: &CpuPriorities) {
        let hints = items.hints(self.gate.is_open());
        self.realtime.set(number(hints.realtime));
        self.realtime_movable.set(number(hints.realtime_movable));
        self.free.set(hints.free);
        priorities.set(self.cpu, hints.level);
    }

    /// Takes what only the calling thread, which is the lane's, may drop.
    pub(crate) fn take_of_thread(&self) -> Vec<Item> {
        self.lock().take_of_thread()
    }

    /// The machine has ended: takes everything that any thread may drop.
    pub(crate) fn end_items(&self, priorities: &CpuPriorities) -> Vec<Item> {
        let mut items = self.lock();
        let _ = self.gate.close_and_see(&self.current);
        let left = items.end();
        self.tell(&items, priorities);
        left
    }
}

impl LaneQueue for RunQueue {
    type Item = Item;

    #[inline]
    fn is_open(&self) -> bool {
        self.gate.is_open()
    }

    #[inline]
    fn current(&self) -> (Activity, bool) {
        self.current.get()
    }

    #[inline]
    fn realtime_waiting(&self) -> Option<Priority> {
        Priority::new(self.realtime.get() as u8)
    }

    #[inline]
    fn realtime_movable(&self) -> Option<Priority> {
        Priority::new(self.realtime_movable.get() as u8)
    }

    #[inline]
    fn free_waiting(&self) -> u32 {
        self.free.get()
    }

    #[inline]
    fn claims(&self) -> &Claims {
        &self.claims
    }

    fn open(&self, priorities: &CpuPriorities) {
        let items = self.lock();
        if !items.is_over() {
            self.gate.open();
            self.tell(&items, priorities);
        }
    }

    fn close(&self, priorities: &CpuPriorities) -> Vec<Item> {
        let mut items = self.lock();
        // What is under way is asked for again when all gates are closed.
        let _ = self.gate.close_and_see(&self.current);
        let given_back = items.close();
        self.tell(&items, priorities);
        given_back
    }

    fn push(&self, item: Item, priorities: &CpuPriorities) -> Result<usize, Item> {
        let mut items = self.lock();
        let waited = items.push(item, self.gate.is_open())?;
        self.tell(&items, priorities);
        Ok(waited)
    }

    fn pop(&self, priorities: &CpuPriorities) -> Option<NextItem<Item>> {
        let mut items = self.lock();
        let next = items.pop();
        self.tell(&items, priorities);
        next
    }

    fn take_realtime(&self, priorities: &CpuPriorities) -> Option<(Priority, Item)> {
        self.realtime_movable()?;
        let mut items = self.try_lock()?;
        let highest = items.take_realtime();
        self.tell(&items, priorities);
        highest
    }

    fn take_free(&self, priorities: &CpuPriorities) -> Option<Item> {
        if self.free_waiting() == 0 {
            return None;
        }
        let mut items = self.try_lock()?;
        let item = items.take_free();
        self.tell(&items, priorities);
        item
    }

    fn set_running(&self, running: Option<Priority>, priorities: &CpuPriorities) {
        let mut items = self.lock();
        items.set_running(running);
        self.tell(&items, priorities);
    }

    #[inline]
    fn begin_bound(&self, activity: Activity) {
        self.current.begin(activity);
    }

    #[inline]
    fn begin_movable(&self, activity: Activity) -> bool {
        self.current.begin_movable(activity, &self.gate)
    }

    #[inline]
    fn end(&self) {
        self.current.end();
    }
}

#[cfg(test)]
mod tests {
    use super::RunQueue;
    use crate::{
        Cpu, Machine, StartError,
        task::{Priority, TaskOptions, WorkOptions},
    };
    use core::time::Duration;
    use quietcore_core::CpuId;
    use quietcore_core::realtime::CpuPriority;
    use quietcore_core::run_queue::{LaneQueue, QueueItem};

    /// A machine with one lane, and that lane's queue.
    fn machine() -> Result<(&'static Machine, &'static RunQueue), StartError> {
        // The lane does not turn: by a slow clock it would look stuck, and lose its tasks to others.
        let machine = Machine::builder().lanes("0".parse().expect("a list")).stall_after(Duration::MAX);
        let machine = machine.start()?;
        Ok((machine, machine.lanes.queue(CpuId::default()).expect("it has that lane")))
    }

    /// Goal: searchers see what runs as long as it runs. Method: a task that another lane had.
    #[test]
    fn what_runs_is_seen_until_it_ends() {
        let (machine, queue) = machine().expect("starts");
        let lane = Cpu::claim(machine, queue.cpu()).expect("a free lane");
        let (priorities, level) = (&machine.lanes.priorities, CpuPriority::Realtime(Priority::LOWEST));
        assert_eq!(priorities.of(queue.cpu()), CpuPriority::Normal);
        queue.set_running(Some(Priority::LOWEST), priorities);
        assert_eq!(priorities.of(queue.cpu()), level);
        queue.set_running(None, priorities);
        assert_eq!(priorities.of(queue.cpu()), CpuPriority::Normal);
        drop(lane);
        assert_eq!(priorities.of(queue.cpu()), CpuPriority::Absent);
        machine.shutdown();
    }

    /// Goal: searchers see no item that its lane has taken. Method: a real-time task and a normal one, popped
    /// one after the other.
    #[test]
    fn what_was_taken_waits_no_more() {
        let (machine, queue) = machine().expect("starts");
        let lane = Cpu::claim(machine, queue.cpu()).expect("a free lane");
        let priorities = &machine.lanes.priorities;
        for options in [TaskOptions::new().realtime(Priority::LOWEST), TaskOptions::new()] {
            drop(machine.spawn_with(options, async {}).expect("it runs"));
        }
        let seen = || (queue.realtime_waiting(), queue.realtime_movable(), queue.free_waiting());
        assert_eq!(seen(), (Some(Priority::LOWEST), Some(Priority::LOWEST), 1));
        let realtime = queue.pop(priorities).expect("it waits");
        assert_eq!(seen(), (None, None, 1));
        let normal = queue.pop(priorities).expect("it waits");
        assert_eq!(seen(), (None, None, 0));
        drop((realtime, normal, lane));
        machine.shutdown();
    }

    /// Goal: searchers see no item that another lane has taken. Method: a real-time task and a normal one,
    /// taken one after the other.
    #[test]
    fn what_another_lane_took_waits_no_more() {
        let (machine, queue) = machine().expect("starts");
        let lane = Cpu::claim(machine, queue.cpu()).expect("a free lane");
        let priorities = &machine.lanes.priorities;
        for options in [TaskOptions::new().realtime(Priority::LOWEST), TaskOptions::new()] {
            drop(machine.spawn_with(options, async {}).expect("it runs"));
        }
        let seen = || (queue.realtime_waiting(), queue.realtime_movable(), queue.free_waiting());
        let level = CpuPriority::Realtime(Priority::LOWEST);
        assert_eq!(
            (seen(), priorities.of(queue.cpu())),
            ((Some(Priority::LOWEST), Some(Priority::LOWEST), 1), level)
        );
        let realtime = queue.take_realtime(priorities).expect("it waits");
        assert_eq!((seen(), priorities.of(queue.cpu())), ((None, None, 1), CpuPriority::Normal));
        let normal = queue.take_free(priorities).expect("it waits");
        assert_eq!(seen(), (None, None, 0));
        drop((realtime, normal, lane));
        machine.shutdown();
    }

    /// Goal: a lane whose machine has ended takes nothing and is no place for anything. Method: a queue that
    /// has ended with something in it, and the claim comes after that.
    #[test]
    fn a_queue_that_has_ended_opens_no_more() {
        let (machine, queue) = machine().expect("starts");
        let lane = Cpu::claim(machine, queue.cpu()).expect("a free lane");
        let priorities = &machine.lanes.priorities;
        drop(machine.spawn_rt(Priority::LOWEST, async {}).expect("it runs"));
        assert_eq!(queue.end_items(priorities).len(), 1);
        assert_eq!((queue.realtime_waiting(), priorities.of(queue.cpu())), (None, CpuPriority::Absent));
        queue.open(priorities);
        assert_eq!((queue.is_open(), priorities.of(queue.cpu())), (false, CpuPriority::Absent));
        drop(lane);
        machine.shutdown();
    }

    /// Goal: a queue that closes gives back all that is not bound to its lane. Method: a task of each kind,
    /// and work.
    #[test]
    fn closing_gives_back_what_may_move() {
        let (machine, queue) = machine().expect("starts");
        let lane = Cpu::claim(machine, queue.cpu()).expect("a free lane");
        let realtime = TaskOptions::new().realtime(Priority::LOWEST);
        for options in [TaskOptions::new(), realtime] {
            for options in [options, options.lane(queue.cpu())] {
                drop(machine.spawn_with(options, async {}).expect("it runs"));
            }
        }
        let work = machine.work(WorkOptions::new(), || ()).expect("it has a lane");
        assert!(work.queue().expect("it runs"));
        let items = queue.close(&machine.lanes.priorities);
        assert_eq!((items.len(), queue.is_open()), (3, false));
        assert!(items.iter().all(|item| item.bound_to().is_none()));
        assert_eq!((queue.free_waiting(), queue.realtime_waiting()), (0, Some(Priority::LOWEST)));
        drop((items, lane));
        machine.shutdown();
    }
}
