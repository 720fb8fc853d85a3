//! The run queue of a virtual lane: the core's, behind a lock in which a thread can be stopped, and the words
//! that others read without it.

use super::plan::RuntimePlan;
use super::schedule::Host;
use super::switch::ThreadId;
use super::virtual_lock::VirtualLock;
use quietcore_core::realtime::{CpuPriorities, CpuPriority, Priority};
use quietcore_core::run_queue::{Activity, ItemQueue, LaneQueue, NextItem, QueueHints, QueueItem};
use quietcore_core::softirq::Claims;
use quietcore_core::{CpuId, RawLock};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// A load or a store that others see, in ns.
const WORD: u64 = 30;

/// A task or work of a run, which is woken again and again, and what the world knows of it without asking the
/// core.
#[derive(Debug)]
pub(super) struct VirtualTask {
    pub(super) number: usize,
    pub(super) bound: Option<CpuId>,
    pub(super) priority: Option<Priority>,
    /// Where it ran last.
    pub(super) last: Cell<CpuId>,
    /// It was woken, and has not begun to run since.
    pub(super) is_woken: Cell<bool>,
    /// The thread in whose hands it runs.
    pub(super) runs: Cell<Option<ThreadId>>,
    /// In which queue it waits, since when, and who left it there.
    pub(super) waits: Cell<Option<QueueWait>>,
    /// Wake-ups that found it not woken.
    pub(super) news: Cell<u64>,
    /// Runs that began.
    pub(super) ran: Cell<u64>,
    /// Wake-ups that came after the end.
    pub(super) dismissed: Cell<u64>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct QueueWait {
    pub(super) cpu: CpuId,
    pub(super) since: u64,
    pub(super) left_by: Option<ThreadId>,
}

/// The tasks of `plan`: bound to a lane or not, real-time or not.
pub(super) fn draw_tasks(plan: &RuntimePlan, host: &Host) -> Vec<Rc<VirtualTask>> {
    let draw = |number| {
        let lane = CpuId::new(host.random(u64::from(plan.lanes.max(1)))).expect("few");
        let priority = Priority::new(1 + host.random(3) as u8);
        Rc::new(VirtualTask {
            number: usize::from(number),
            bound: (host.random(3) == 0).then_some(lane),
            priority: priority.filter(|_| host.random(5) < 2),
            last: Cell::new(lane),
            is_woken: Cell::new(false),
            runs: Cell::new(None),
            waits: Cell::new(None),
            news: Cell::new(0),
            ran: Cell::new(0),
            dismissed: Cell::new(0),
        })
    };
    (0..plan.tasks).map(draw).collect()
}

/// A task that is to be run once.
#[derive(Clone, Debug)]
pub(super) struct VirtualItem(pub(super) Rc<VirtualTask>);

impl VirtualItem {
    /// It has left its queue.
    fn leave(&self) {
        self.0.waits.set(None);
    }
}

impl QueueItem for VirtualItem {
    fn bound_to(&self) -> Option<CpuId> {
        self.0.bound
    }

    fn priority(&self) -> Option<Priority> {
        self.0.priority
    }

    fn last(&self) -> CpuId {
        self.0.last.get()
    }

    fn is_of_thread(&self) -> bool {
        false
    }
}

pub(super) struct VirtualQueue {
    host: Rc<Host>,
    cpu: CpuId,
    lock: VirtualLock,
    items: RefCell<ItemQueue<VirtualItem>>,
    hints: Cell<QueueHints>,
    is_open: Cell<bool>,
    current: Cell<(Activity, bool)>,
    pub(super) claims: Claims,
    /// When another lane last came for something and did not get it.
    pub(super) missed_at: Cell<u64>,
    /// When another lane last took something.
    pub(super) taken_at: Cell<u64>,
    /// Since when the lane has nothing to do, and takes what others have.
    pub(super) idle_since: Cell<Option<u64>>,
    /// The lane was isolated, and what it ran for others was waited for.
    pub(super) is_sealed: Cell<bool>,
}

impl VirtualQueue {
    pub(super) fn new(host: &Rc<Host>, cpu: CpuId) -> Self {
        let (items, level) = (ItemQueue::new(cpu), CpuPriority::Absent);
        Self {
            host: Rc::clone(host),
            cpu,
            lock: VirtualLock::default(),
            hints: Cell::new(QueueHints { level, ..items.hints(false) }),
            items: RefCell::new(items),
            is_open: Cell::new(false),
            current: Cell::new((Activity::None, false)),
            claims: Claims::new(),
            missed_at: Cell::new(0),
            taken_at: Cell::new(0),
            idle_since: Cell::new(None),
            is_sealed: Cell::new(false),
        }
    }

    /// Changes the items, with the lock, which the calling thread has; it is given back.
    fn change<R>(
        &self,
        priorities: &CpuPriorities,
        change: impl FnOnce(&mut ItemQueue<VirtualItem>) -> R,
    ) -> R {
        self.host.step(WORD);
        let result = change(&mut self.items.borrow_mut());
        self.tell(priorities);
        self.lock.unlock();
        result
    }

    /// Hints follow the items; under the lock.
    fn tell(&self, priorities: &CpuPriorities) {
        self.host.step(WORD);
        let hints = self.items.borrow().hints(self.is_open.get());
        self.hints.set(hints);
        priorities.set(self.cpu, hints.level);
    }

    /// Another lane comes for something that is there, and does not wait for the lock.
    fn take<R>(
        &self,
        priorities: &CpuPriorities,
        take: impl FnOnce(&mut ItemQueue<VirtualItem>) -> Option<R>,
    ) -> Option<R> {
        let taken = if self.lock.try_once() { self.change(priorities, take) } else { None };
        let at = if taken.is_some() { &self.taken_at } else { &self.missed_at };
        at.set(self.host.moment());
        taken
    }

    /// The machine has ended: takes everything.
    pub(super) fn end_items(&self, priorities: &CpuPriorities) -> Vec<VirtualItem> {
        self.lock.lock_remote();
        self.is_open.set(false);
        self.change(priorities, |items| leave(items.end()))
    }

    /// Whether the lane is in the middle of something that is not bound to it.
    pub(super) fn runs_foreign(&self) -> bool {
        self.current.get().1
    }

    /// Whether no thread is about to change it.
    pub(super) fn is_settled(&self) -> bool {
        self.lock.is_free()
    }

    /// Whether nothing waits here.
    pub(super) fn is_empty(&self) -> bool {
        self.items.borrow().is_empty()
    }

    /// Whether something waits here that others may take.
    pub(super) fn has_movable(&self) -> bool {
        let hints = self.items.borrow().hints(true);
        hints.free > 0 || hints.realtime_movable.is_some()
    }
}

/// Items that have left their queue.
fn leave(items: Vec<VirtualItem>) -> Vec<VirtualItem> {
    items.iter().for_each(VirtualItem::leave);
    items
}

impl LaneQueue for VirtualQueue {
    type Item = VirtualItem;

    fn is_open(&self) -> bool {
        self.is_open.get()
    }

    fn current(&self) -> (Activity, bool) {
        self.current.get()
    }

    fn realtime_waiting(&self) -> Option<Priority> {
        self.hints.get().realtime
    }

    fn realtime_movable(&self) -> Option<Priority> {
        self.host.step(WORD);
        self.hints.get().realtime_movable
    }

    fn free_waiting(&self) -> u32 {
        self.host.step(WORD);
        self.hints.get().free
    }

    fn claims(&self) -> &Claims {
        &self.claims
    }

    fn open(&self, priorities: &CpuPriorities) {
        self.is_sealed.set(false);
        self.lock.lock_remote();
        self.change(priorities, |items| {
            if !items.is_over() {
                self.is_open.set(true);
            }
        });
    }

    fn close(&self, priorities: &CpuPriorities) -> Vec<VirtualItem> {
        self.idle_since.set(None);
        self.lock.lock_remote();
        self.is_open.set(false);
        self.host.step(WORD);
        self.change(priorities, |items| leave(items.close()))
    }

    fn push(&self, item: VirtualItem, priorities: &CpuPriorities) -> Result<usize, VirtualItem> {
        self.lock.lock_remote();
        self.host.step(WORD);
        let task = Rc::clone(&item.0);
        let pushed = self.items.borrow_mut().push(item, self.is_open.get());
        self.tell(priorities);
        if pushed.is_ok() {
            // From now on others can know of it.
            let (cpu, since, left_by) = (self.cpu, self.host.moment(), self.host.current());
            task.waits.set(Some(QueueWait { cpu, since, left_by }));
        }
        self.lock.unlock();
        pushed
    }

    fn pop(&self, priorities: &CpuPriorities) -> Option<NextItem<VirtualItem>> {
        self.lock.lock_remote();
        self.change(priorities, |items| {
            let next = items.pop();
            next.iter().for_each(|next| next.item.leave());
            next
        })
    }

    fn take_realtime(&self, priorities: &CpuPriorities) -> Option<(Priority, VirtualItem)> {
        if self.hints.get().realtime_movable.is_none() {
            // Another lane was faster.
            self.missed_at.set(self.host.moment());
            return None;
        }
        self.take(priorities, |items| {
            let taken = items.take_realtime();
            taken.iter().for_each(|(_, item)| item.leave());
            taken
        })
    }

    fn take_free(&self, priorities: &CpuPriorities) -> Option<VirtualItem> {
        if self.hints.get().free == 0 {
            return None;
        }
        self.take(priorities, |items| {
            let taken = items.take_free();
            taken.iter().for_each(VirtualItem::leave);
            taken
        })
    }

    fn set_running(&self, running: Option<Priority>, priorities: &CpuPriorities) {
        self.lock.lock_remote();
        self.change(priorities, |items| items.set_running(running));
    }

    fn begin_bound(&self, activity: Activity) {
        self.host.step(WORD);
        self.current.set((activity, false));
    }

    fn begin_movable(&self, activity: Activity) -> bool {
        self.host.step(WORD);
        self.current.set((activity, true));
        self.host.step(WORD);
        let is_open = self.is_open.get();
        if !is_open {
            self.end();
        }
        is_open
    }

    fn end(&self) {
        self.host.step(WORD);
        self.current.set((Activity::None, false));
    }
}
