//! The world of the core's run queues, and gates that open and close as lanes come, go, and are isolated.

use super::place::VirtualPlace;
use super::queue::{VirtualItem, VirtualQueue};
use super::world::RuntimeWorld;
use quietcore_core::lane::LaneTable;
use quietcore_core::run_queue::{LaneQueue, Moved, QueueRules, QueueWorld, RunQueues, WakeTo};
use quietcore_core::{CpuId, RawLock};

const US: u64 = 1_000;

/// Between two looks at a lane that runs something foreign, in ns.
const PAUSE: u64 = 200 * US;

impl QueueWorld for &RuntimeWorld {
    type Item = VirtualItem;
    type Queue = VirtualQueue;
    type Place = VirtualPlace;

    fn table(&self) -> &LaneTable<VirtualPlace> {
        &self.lanes
    }

    fn queue(&self, cpu: CpuId) -> Option<&VirtualQueue> {
        self.lanes.slot(cpu).map(|slot| &slot.world.queue)
    }

    fn rules(&self) -> QueueRules<'_> {
        QueueRules {
            lanes: &self.lane_set,
            priorities: &self.priorities,
            topology: self.machine.topology(),
            awareness: self.plan.awareness,
            wake_to: if self.plan.wakes_here { WakeTo::Here } else { WakeTo::Last },
        }
    }

    fn next_in_turn(&self) -> usize {
        self.rotation.replace(self.rotation.get() + 1)
    }

    fn here(&self) -> Option<CpuId> {
        let current = self.host.current()?;
        let driver = self.drivers.borrow().iter().position(|driver| *driver == Some(current))?;
        let cpu = CpuId::new(driver as u64).expect("few");
        self.signs[driver].is_driven.get().then_some(cpu)
    }

    fn is_marked(&self, cpu: CpuId) -> bool {
        self.machine.is_marked(cpu)
    }

    fn is_running(&self) -> bool {
        RuntimeWorld::is_running(self)
    }

    fn hold_unplaced(&self, item: VirtualItem) -> Result<(), VirtualItem> {
        self.aside.lock_remote();
        let is_any_open = self.lanes.all().any(|slot| slot.world.queue.is_open());
        let held = self.unplaced.borrow_mut().hold(item, is_any_open);
        self.aside.unlock();
        held
    }

    fn dismiss(&self, item: VirtualItem) {
        // What a child has is its parent's.
        if !self.is_child() {
            let task = &item.0;
            if !self.is_over.get() {
                self.violate(format!("task {} is dismissed before the end", task.number));
            }
            task.is_woken.set(false);
            task.dismissed.set(task.dismissed.get() + 1);
        }
    }

    fn count(&self, cpu: CpuId, moved: Moved) {
        self.note(|| format!("{moved:?}, by CPU {cpu}"));
        let mut counts = self.counts.borrow_mut();
        match moved {
            Moved::Pulled => counts.pulled += 1,
            Moved::Pushed => counts.pushed += 1,
            Moved::Stolen => counts.stolen += 1,
        }
    }
}

impl RuntimeWorld {
    /// Which lane runs what, and who is woken.
    pub(super) const fn queues(&self) -> RunQueues<&Self> {
        RunQueues::new(self)
    }

    /// For items that a queue gave back.
    pub(super) fn place_all(&self, items: Vec<VirtualItem>) {
        items.into_iter().for_each(|item| self.place_item(item));
    }

    /// `item` is to be run; one thread at most is woken for it.
    pub(super) fn place_item(&self, item: VirtualItem) {
        let woken = self.host.wakes();
        self.queues().enqueue(item);
        let woken = self.host.wakes() - woken;
        if woken > 1 {
            self.violate(format!("{woken} threads are woken for one item"));
        }
    }

    /// By the holder of the control lock: if a thread drives `cpu` and it is not isolated, it takes what is
    /// not bound to it. Gives what has waited for that.
    fn open_queue_unless_isolated(&self, cpu: CpuId) -> Vec<VirtualItem> {
        let slot = self.lanes.slot(cpu).expect("it is a lane's");
        if slot.world.parker.is_vacant() || self.machine.isolation().any().contains(cpu) {
            return Vec::new();
        }
        self.signs[cpu.index()].is_sealed.set(false);
        self.aside.lock_remote();
        slot.world.queue.open(&self.priorities);
        let items = self.unplaced.borrow_mut().take();
        self.aside.unlock();
        self.queues().handle_open(cpu);
        items
    }

    /// The same for a lane that was just claimed.
    pub(super) fn open_claimed(&self, cpu: CpuId) {
        self.control.lock_remote();
        let items = self.open_queue_unless_isolated(cpu);
        self.control.unlock();
        self.place_all(items);
    }

    /// `cpu` takes nothing but what is bound to it; gives what it had besides, and says whether it is in the
    /// middle of something of that.
    pub(super) fn close_queue(&self, cpu: CpuId) -> (Vec<VirtualItem>, bool) {
        self.signs[cpu.index()].idle_since.set(None);
        let slot = self.lanes.slot(cpu).expect("it is a lane's");
        slot.world.queue.close(&self.priorities)
    }

    /// Run queues follow the masks. By the holder of the control lock, who gives it back, and then waits for
    /// what isolated lanes run for others.
    pub(super) fn change_queues(&self) {
        let isolated = self.machine.isolation().any();
        let mut items = Vec::new();
        // Those first that may take what the others give back.
        for cpu in self.lane_set.difference(&isolated).iter() {
            items.extend(self.open_queue_unless_isolated(cpu));
        }
        for cpu in self.lane_set.intersection(&isolated).iter() {
            items.extend(self.close_queue(cpu).0);
        }
        self.control.unlock();
        self.place_all(items);
        for cpu in self.lane_set.intersection(&isolated).iter() {
            let queue = &self.lanes.slot(cpu).expect("it is a lane's").world.queue;
            while queue.runs_foreign() && !self.is_over.get() {
                let _ = self.host.wait(Some(self.host.moment() + PAUSE));
            }
            self.signs[cpu.index()].is_sealed.set(!self.is_over.get());
        }
    }

    /// The end: nothing is taken any more, and what waits is dismissed.
    pub(super) fn end_items(&self) {
        self.aside.lock_remote();
        let mut items = self.unplaced.borrow_mut().end();
        self.aside.unlock();
        for slot in self.lanes.all() {
            items.extend(slot.world.queue.end_items(&self.priorities));
        }
        items.into_iter().for_each(|item| QueueWorld::dismiss(&self, item));
    }
}
