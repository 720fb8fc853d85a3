//! A world without threads: what others see of a lane is set by hand.

use crate::lane::{Kick, LaneTable, Role, Sleeper};
use crate::realtime::{Awareness, CpuPriorities, CpuPriority, Priority};
use crate::run_queue::{
    Activity, ItemQueue, LaneQueue, Moved, NextItem, QueueItem, QueueRules, QueueWorld, RunQueues, Unplaced,
    WakeTo,
};
use crate::softirq::Claims;
use crate::topology::Topology;
use crate::{CpuId, CpuSet, Settings};
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

pub(super) fn priority(number: u8) -> Priority {
    Priority::new(number).expect("1 to 99")
}

/// An item of a test, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) name: u32,
    pub(super) bound: Option<CpuId>,
    pub(super) priority: Option<Priority>,
    pub(super) last: CpuId,
    pub(super) is_of_thread: bool,
}

/// One that any lane may run, and that ran last on CPU `last`.
pub(super) fn free(name: u32, last: u16) -> Piece {
    Piece { name, bound: None, priority: None, last: CpuId(last), is_of_thread: false }
}

pub(super) fn bound(name: u32, cpu: u16) -> Piece {
    Piece { bound: Some(CpuId(cpu)), ..free(name, cpu) }
}

pub(super) fn realtime(name: u32, last: u16, number: u8) -> Piece {
    Piece { priority: Some(priority(number)), ..free(name, last) }
}

impl QueueItem for Piece {
    fn bound_to(&self) -> Option<CpuId> {
        self.bound
    }

    fn priority(&self) -> Option<Priority> {
        self.priority
    }

    fn last(&self) -> CpuId {
        self.last
    }

    fn is_of_thread(&self) -> bool {
        self.is_of_thread
    }
}

/// Where a lane of a test waits: it does if it is said to.
#[derive(Default)]
pub(super) struct Bed {
    pub(super) waits: Cell<bool>,
    /// It was kicked before, and seems to wait still.
    pub(super) wakes_up: Cell<bool>,
    pub(super) kicks: Cell<u32>,
}

impl Sleeper for Bed {
    fn prepare(&self) {}

    fn finish(&self) {}

    fn kick(&self) -> Kick {
        self.kicks.set(self.kicks.get() + 1);
        let sleeps = self.waits.replace(false) && !self.wakes_up.get();
        if sleeps { Kick::Woke } else { Kick::NotNeeded }
    }

    fn kick_to_help(&self) -> Kick {
        self.kick()
    }

    fn is_waiting(&self) -> bool {
        self.waits.get()
    }
}

pub(super) struct Queue {
    pub(super) items: RefCell<ItemQueue<Piece>>,
    pub(super) is_open: Cell<bool>,
    /// As soon as an item comes, or is about to begin, the gate is found closed.
    pub(super) closes: Cell<bool>,
    /// The gate opens while the lane takes what is its own.
    pub(super) opens: Cell<bool>,
    pub(super) current: Cell<(Activity, bool)>,
    pub(super) claims: Claims,
}

impl Queue {
    pub(super) fn tell(&self, priorities: &CpuPriorities, cpu: CpuId) {
        priorities.set(cpu, self.items.borrow().hints(self.is_open.get()).level);
    }
}

impl LaneQueue for Queue {
    type Item = Piece;

    fn is_open(&self) -> bool {
        self.is_open.get()
    }

    fn current(&self) -> (Activity, bool) {
        self.current.get()
    }

    fn realtime_waiting(&self) -> Option<Priority> {
        self.items.borrow().hints(true).realtime
    }

    fn realtime_movable(&self) -> Option<Priority> {
        self.items.borrow().hints(true).realtime_movable
    }

    fn free_waiting(&self) -> u32 {
        self.items.borrow().hints(true).free
    }

    fn claims(&self) -> &Claims {
        &self.claims
    }

    fn open(&self, _: &CpuPriorities) {
        self.is_open.set(true);
    }

    fn close(&self, _: &CpuPriorities) -> Vec<Piece> {
        self.is_open.set(false);
        self.items.borrow_mut().close()
    }

    fn push(&self, item: Piece, _: &CpuPriorities) -> Result<usize, Piece> {
        if self.closes.get() {
            self.is_open.set(false);
        }
        self.items.borrow_mut().push(item, self.is_open.get())
    }

    fn pop(&self, _: &CpuPriorities) -> Option<NextItem<Piece>> {
        self.is_open.set(self.is_open.get() || self.opens.get());
        self.items.borrow_mut().pop()
    }

    fn take_realtime(&self, _: &CpuPriorities) -> Option<(Priority, Piece)> {
        self.items.borrow_mut().take_realtime()
    }

    fn take_free(&self, _: &CpuPriorities) -> Option<Piece> {
        self.items.borrow_mut().take_free()
    }

    fn set_running(&self, running: Option<Priority>, _: &CpuPriorities) {
        self.items.borrow_mut().set_running(running);
    }

    fn begin_bound(&self, activity: Activity) {
        self.current.set((activity, false));
    }

    fn begin_movable(&self, activity: Activity) -> bool {
        let may_run = self.is_open.get() && !self.closes.get();
        if may_run {
            self.current.set((activity, true));
        } else {
            self.is_open.set(false);
        }
        may_run
    }

    fn end(&self) {
        self.current.set((Activity::None, false));
    }
}

/// Lanes 0 to 2, all of them open and awake, and spare 3.
pub(super) struct World {
    pub(super) table: LaneTable<Bed>,
    pub(super) lanes: CpuSet,
    pub(super) queues: Vec<Queue>,
    pub(super) priorities: CpuPriorities,
    pub(super) topology: Topology,
    pub(super) awareness: Awareness,
    pub(super) wake_to: WakeTo,
    pub(super) turn: Cell<usize>,
    pub(super) here: Cell<Option<CpuId>>,
    pub(super) marked: RefCell<CpuSet>,
    pub(super) claimed: RefCell<CpuSet>,
    pub(super) isolated: RefCell<CpuSet>,
    /// Whose ksoftirqd was asked, in this order.
    pub(super) asked: RefCell<Vec<usize>>,
    pub(super) has_ended: Cell<bool>,
    pub(super) unplaced: RefCell<Unplaced<Piece>>,
    pub(super) dismissed: RefCell<Vec<u32>>,
    pub(super) moved: RefCell<Vec<(usize, Moved)>>,
}

pub(super) const LANES: u16 = 3;
pub(super) const SPARE: CpuId = CpuId(LANES);

impl World {
    pub(super) fn new() -> Self {
        let lanes = CpuSet::range(CpuId(0), LANES).expect("few");
        let spares = CpuSet::range(SPARE, 1).expect("few");
        let queue = |number| Queue {
            items: RefCell::new(ItemQueue::new(CpuId(number))),
            is_open: Cell::new(number < LANES),
            closes: Cell::new(false),
            opens: Cell::new(false),
            current: Cell::new((Activity::None, false)),
            claims: Claims::new(),
        };
        let priorities = CpuPriorities::new(LANES + 1);
        lanes.iter().for_each(|cpu| priorities.set(cpu, CpuPriority::Normal));
        Self {
            table: LaneTable::new(&lanes, &spares, &Settings::default(), |_| Bed::default()),
            claimed: RefCell::new(lanes.clone()),
            lanes,
            queues: (0..=LANES).map(queue).collect(),
            priorities,
            topology: Topology::builder(LANES + 1).build().expect("valid"),
            awareness: Awareness::Both,
            wake_to: WakeTo::Last,
            turn: Cell::new(0),
            here: Cell::new(None),
            marked: RefCell::new(CpuSet::new()),
            isolated: RefCell::new(CpuSet::new()),
            asked: RefCell::default(),
            has_ended: Cell::new(false),
            unplaced: RefCell::default(),
            dismissed: RefCell::default(),
            moved: RefCell::default(),
        }
    }

    pub(super) fn queues(&self) -> RunQueues<&Self> {
        RunQueues::new(self)
    }

    pub(super) fn enqueue(&self, item: Piece) {
        self.queues().enqueue(item);
        self.tell();
    }

    /// Searchers learn what is queued.
    pub(super) fn tell(&self) {
        self.lanes.iter().for_each(|cpu| self.queues[cpu.index()].tell(&self.priorities, cpu));
    }

    /// How many items wait on each CPU.
    pub(super) fn waiting(&self) -> Vec<usize> {
        self.queues.iter().map(|queue| queue.items.borrow().len()).collect()
    }

    /// How often each CPU was kicked.
    pub(super) fn kicks(&self) -> Vec<u32> {
        self.table.all().map(|slot| slot.world.kicks.get()).collect()
    }

    pub(super) fn sleep(&self, cpu: u16) {
        self.table.slot(CpuId(cpu)).expect("it has a slot").world.waits.set(true);
    }

    /// What the lane of `cpu` is in the middle of, which may move.
    pub(super) fn set_busy(&self, cpu: u16, activity: Activity) {
        self.queues[usize::from(cpu)].current.set((activity, true));
    }

    pub(super) fn mark(&self, cpu: u16) {
        self.marked.borrow_mut().insert(CpuId(cpu));
    }

    pub(super) fn next(&self, cpu: u16, role: Role) -> Option<u32> {
        let queue = &self.queues[usize::from(cpu)];
        let next = self.queues().next_item(CpuId(cpu), queue, role);
        self.tell();
        next.map(|next| next.item.name)
    }

    pub(super) fn must_help(&self, cpu: u16) -> bool {
        self.queues().must_help(CpuId(cpu), if cpu == LANES { Role::Spare } else { Role::Lane })
    }
}

impl QueueWorld for &World {
    type Item = Piece;
    type Queue = Queue;
    type Place = Bed;

    fn table(&self) -> &LaneTable<Bed> {
        &self.table
    }

    fn queue(&self, cpu: CpuId) -> Option<&Queue> {
        self.queues.get(cpu.index())
    }

    fn rules(&self) -> QueueRules<'_> {
        QueueRules {
            lanes: &self.lanes,
            priorities: &self.priorities,
            topology: &self.topology,
            awareness: self.awareness,
            wake_to: self.wake_to,
        }
    }

    fn next_in_turn(&self) -> usize {
        self.turn.replace(self.turn.get() + 1)
    }

    fn here(&self) -> Option<CpuId> {
        self.here.get()
    }

    fn is_marked(&self, cpu: CpuId) -> bool {
        self.marked.borrow().contains(cpu)
    }

    fn is_running(&self) -> bool {
        !self.has_ended.get()
    }

    fn is_claimed(&self, cpu: CpuId) -> bool {
        self.claimed.borrow().contains(cpu)
    }

    fn isolated(&self) -> CpuSet {
        self.isolated.borrow().clone()
    }

    fn with_unplaced<R>(&self, change: impl FnOnce(&mut Unplaced<Piece>) -> R) -> R {
        change(&mut self.unplaced.borrow_mut())
    }

    fn ask_ksoftirqd(&self, cpu: CpuId) {
        self.asked.borrow_mut().push(cpu.index());
    }

    fn dismiss(&self, item: Piece) {
        self.dismissed.borrow_mut().push(item.name);
    }

    fn count(&self, cpu: CpuId, moved: Moved) {
        self.moved.borrow_mut().push((cpu.index(), moved));
    }
}
