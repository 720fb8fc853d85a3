//! One lane's queue.

use crate::task::{Runnable, TaskPlace};
use crate::words::run_queue::{Activity, CurrentItem, Doorbell, Gate, Hint};
use crate::work::Queued;
use quietcore_core::realtime::{CpuPriorities, CpuPriority, Priority, RealtimeQueue};
use quietcore_core::{CpuId, softirq::Claims};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Something that a lane runs.
#[derive(Debug)]
pub(crate) enum Item {
    Task(Runnable),
    Work(Queued),
}

impl Item {
    /// The lane that it is bound to.
    pub(crate) fn bound_to(&self) -> Option<CpuId> {
        match self {
            Self::Task(task) => match task.metadata().place {
                TaskPlace::Anywhere => None,
                TaskPlace::Lane(cpu) | TaskPlace::Thread(cpu) => Some(cpu),
            },
            Self::Work(work) => work.bound_to(),
        }
    }

    pub(crate) fn priority(&self) -> Option<Priority> {
        match self {
            Self::Task(task) => task.metadata().priority,
            Self::Work(_) => None,
        }
    }

    /// Where it ran last, or was made.
    pub(crate) fn last(&self) -> CpuId {
        match self {
            Self::Task(task) => task.metadata().cpu.get(),
            Self::Work(work) => work.last(),
        }
    }

    /// Whether only the thread that made it may touch it, and even drop it.
    pub(crate) fn is_of_thread(&self) -> bool {
        matches!(self, Self::Task(task) if matches!(task.metadata().place, TaskPlace::Thread(_)))
    }

    fn is_movable(&self) -> bool {
        self.bound_to().is_none()
    }
}

/// What is behind the lock.
#[derive(Debug, Default)]
struct Queues {
    realtime: RealtimeQueue<Item>,
    bound: VecDeque<Item>,
    free: VecDeque<Item>,
    /// The real-time task that runs.
    running: Option<Priority>,
    /// Which of the two normal queues is next.
    is_free_next: bool,
    /// The machine has ended: nothing is taken any more but what only this lane's thread may drop.
    is_over: bool,
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
    queues: Mutex<Queues>,
}

/// A priority as a hint has it.
fn number(priority: Option<Priority>) -> u32 {
    priority.map_or(0, |priority| priority.get().into())
}

/// Why an item was given back: others have to take it.
#[derive(Debug)]
pub(crate) struct Refused(pub(crate) Item);

/// What a lane runs next.
#[derive(Debug)]
pub(crate) struct NextItem {
    pub(crate) item: Item,
    pub(crate) activity: Activity,
    pub(crate) is_movable: bool,
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
            queues: Mutex::new(Queues::default()),
        }
    }

    pub(crate) const fn cpu(&self) -> CpuId {
        self.cpu
    }

    /// The highest real-time priority that waits here; a hint.
    #[inline]
    pub(crate) fn realtime_waiting(&self) -> Option<Priority> {
        Priority::new(self.realtime.get() as u8)
    }

    /// The highest of those that wait here and may run elsewhere; a hint.
    #[inline]
    pub(crate) fn realtime_movable(&self) -> Option<Priority> {
        Priority::new(self.realtime_movable.get() as u8)
    }

    /// How many items wait here that others may take, real-time tasks apart; a hint.
    #[inline]
    pub(crate) fn free_waiting(&self) -> u32 {
        self.free.get()
    }

    /// Whether something waits here that others may take; a hint.
    #[inline]
    pub(crate) fn has_movable(&self) -> bool {
        self.free_waiting() > 0 || self.realtime_movable().is_some()
    }

    fn lock(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For those who must not wait for a lane that was stopped in here.
    fn try_lock(&self) -> Option<MutexGuard<'_, Queues>> {
        match self.queues.try_lock() {
            Ok(queues) => Some(queues),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Hints follow the queues; under the lock.
    fn tell(&self, queues: &Queues, priorities: &CpuPriorities) {
        let highest = queues.realtime.highest();
        self.realtime.set(number(highest));
        let movable = highest.and_then(|_| queues.realtime.first(Item::is_movable));
        self.realtime_movable.set(number(movable.map(|(priority, _)| priority)));
        self.free.set(queues.free.len() as u32);
        let level = if self.gate.is_open() {
            highest.max(queues.running).map_or(CpuPriority::Normal, CpuPriority::Realtime)
        } else {
            CpuPriority::Absent
        };
        priorities.set(self.cpu, level);
    }

    /// Puts `item` behind its equals; says how many items already waited.
    ///
    /// # Errors
    /// Gives it back when the gate is closed and it is not bound to this lane, or the machine has ended.
    pub(crate) fn push(&self, item: Item, priorities: &CpuPriorities) -> Result<usize, Refused> {
        let mut queues = self.lock();
        let is_bound = item.bound_to() == Some(self.cpu);
        if !is_bound && !self.gate.is_open() || queues.is_over && !item.is_of_thread() {
            return Err(Refused(item));
        }
        let waited = queues.realtime.len() + queues.bound.len() + queues.free.len();
        match item.priority() {
            Some(priority) => queues.realtime.push(priority, item),
            None if is_bound => queues.bound.push_back(item),
            None => queues.free.push_back(item),
        }
        self.tell(&queues, priorities);
        Ok(waited)
    }

    /// What the lane runs next. By the lane.
    pub(crate) fn pop(&self, priorities: &CpuPriorities) -> Option<NextItem> {
        let mut queues = self.lock();
        let next = if let Some((priority, item)) = queues.realtime.pop() {
            queues.running = Some(priority);
            Some(NextItem { is_movable: item.is_movable(), item, activity: Activity::Realtime(priority) })
        } else {
            let is_free_first = queues.is_free_next;
            queues.is_free_next = !is_free_first;
            let Queues { bound, free, .. } = &mut *queues;
            let (first, second) = if is_free_first { (free, bound) } else { (bound, free) };
            let item = first.pop_front().or_else(|| second.pop_front());
            item.map(|item| NextItem { is_movable: item.is_movable(), item, activity: Activity::Normal })
        };
        self.tell(&queues, priorities);
        next
    }

    /// The lane runs a real-time task that it took from another one.
    pub(crate) fn began(&self, priority: Priority, priorities: &CpuPriorities) {
        let mut queues = self.lock();
        queues.running = Some(priority);
        self.tell(&queues, priorities);
    }

    /// The real-time task that the lane ran is over for now.
    pub(crate) fn ended(&self, priorities: &CpuPriorities) {
        let mut queues = self.lock();
        queues.running = None;
        self.tell(&queues, priorities);
    }

    /// The first real-time task above `above` that may move, for another lane. Does not wait.
    pub(crate) fn take_realtime(
        &self,
        above: Option<Priority>,
        priorities: &CpuPriorities,
    ) -> Option<(Priority, Item)> {
        if self.realtime_movable() <= above {
            return None;
        }
        let mut queues = self.try_lock()?;
        let highest = queues.realtime.take_first(Item::is_movable)?;
        if Some(highest.0) <= above {
            queues.realtime.push_first(highest.0, highest.1);
            return None;
        }
        self.tell(&queues, priorities);
        Some(highest)
    }

    /// The first normal item that others may take, for another lane. Does not wait.
    pub(crate) fn take_free(&self, priorities: &CpuPriorities) -> Option<Item> {
        if self.free_waiting() == 0 {
            return None;
        }
        let mut queues = self.try_lock()?;
        let item = queues.free.pop_front();
        self.tell(&queues, priorities);
        item
    }

    /// The lane takes what is not bound to it from now on.
    pub(crate) fn open(&self, priorities: &CpuPriorities) {
        let queues = self.lock();
        if !queues.is_over {
            self.gate.open();
            self.tell(&queues, priorities);
        }
    }

    /// The lane takes nothing but what is bound to it from now on. Gives back all else that waited, and says
    /// whether the lane is in the middle of such a thing.
    pub(crate) fn close(&self, priorities: &CpuPriorities) -> (Vec<Item>, bool) {
        let mut queues = self.lock();
        let is_busy = self.gate.close_and_see(&self.current);
        let mut items: Vec<Item> = Vec::new();
        while let Some((_, item)) = queues.realtime.take_first(Item::is_movable) {
            items.push(item);
        }
        items.extend(queues.free.drain(..));
        self.tell(&queues, priorities);
        (items, is_busy)
    }

    /// Takes what only the calling thread, which is the lane's, may drop.
    pub(crate) fn take_of_thread(&self) -> Vec<Item> {
        let mut queues = self.lock();
        let (own, others) = queues.bound.drain(..).partition(Item::is_of_thread);
        queues.bound = others;
        Vec::from(own)
    }

    /// The machine has ended: takes everything that any thread may drop.
    pub(crate) fn end(&self, priorities: &CpuPriorities) -> Vec<Item> {
        let mut queues = self.lock();
        queues.is_over = true;
        let _ = self.gate.close_and_see(&self.current);
        let mut items: Vec<Item> = Vec::new();
        while let Some((_, item)) = queues.realtime.pop() {
            items.push(item);
        }
        items.extend(queues.free.drain(..));
        let (own, others): (VecDeque<_>, VecDeque<_>) = queues.bound.drain(..).partition(Item::is_of_thread);
        queues.bound = own;
        items.extend(others);
        self.tell(&queues, priorities);
        items
    }
}

#[cfg(test)]
mod tests {
    use super::RunQueue;
    use crate::{
        Cpu, Machine, StartError,
        task::{Priority, TaskOptions, WorkOptions},
    };
    use quietcore_core::CpuId;
    use quietcore_core::realtime::CpuPriority;

    /// A machine with one lane, and that lane's queue.
    fn machine() -> Result<(&'static Machine, &'static RunQueue), StartError> {
        let machine = Machine::builder().lanes("0".parse().expect("a list")).start()?;
        Ok((machine, machine.lanes.queue(CpuId::default()).expect("it has that lane")))
    }

    /// Goal: searchers see what runs as long as it runs. Method: a task that another lane had.
    #[test]
    fn what_runs_is_seen_until_it_ends() {
        let (machine, queue) = machine().expect("starts");
        let lane = Cpu::claim(machine, queue.cpu()).expect("a free lane");
        let (priorities, level) = (&machine.lanes.priorities, CpuPriority::Realtime(Priority::LOWEST));
        assert_eq!(priorities.of(queue.cpu()), CpuPriority::Normal);
        queue.began(Priority::LOWEST, priorities);
        assert_eq!(priorities.of(queue.cpu()), level);
        queue.ended(priorities);
        assert_eq!(priorities.of(queue.cpu()), CpuPriority::Normal);
        drop(lane);
        assert_eq!(priorities.of(queue.cpu()), CpuPriority::Absent);
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
        let (items, is_busy) = queue.close(&machine.lanes.priorities);
        assert_eq!((items.len(), is_busy), (3, false));
        assert!(items.iter().all(|item| item.bound_to().is_none()));
        assert_eq!((queue.free_waiting(), queue.realtime_waiting()), (0, Some(Priority::LOWEST)));
        drop((items, lane));
        machine.shutdown();
    }
}
