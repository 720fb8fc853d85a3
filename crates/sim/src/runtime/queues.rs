//! The world of the core's run queues, and gates that open and close as lanes come, go, and are isolated.

use super::place::VirtualPlace;
use super::queue::{VirtualItem, VirtualQueue};
use super::world::RuntimeWorld;
use quietcore_core::lane::{LaneTable, Sleeper};
use quietcore_core::run_queue::{Moved, QueueRules, QueueWorld, RunQueues, Unplaced, Unsettled, WakeTo};
use quietcore_core::{CpuId, CpuSet, RawLock};

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

    fn is_claimed(&self, cpu: CpuId) -> bool {
        self.lanes.slot(cpu).is_some_and(|slot| !slot.world.parker.is_vacant())
    }

    fn isolated(&self) -> CpuSet {
        self.machine.isolation().any()
    }

    fn with_unplaced<R>(&self, change: impl FnOnce(&mut Unplaced<VirtualItem>) -> R) -> R {
        self.aside.lock_remote();
        let result = change(&mut self.unplaced.borrow_mut());
        self.aside.unlock();
        result
    }

    fn ask_ksoftirqd(&self, cpu: CpuId) {
        RuntimeWorld::ask_ksoftirqd(self, cpu);
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

    /// `item` is to be run; one thread at most is woken for it, and lanes that were marked in their sleep,
    /// which wait for their CPU.
    pub(super) fn place_item(&self, item: VirtualItem) {
        let is_asleep = |cpu| self.lanes.slot(cpu).is_some_and(|slot| slot.world.is_waiting());
        let marked = |cpu: &CpuId| self.machine.is_marked(*cpu) && is_asleep(*cpu);
        let marked: CpuSet = self.lanes.all().map(|slot| slot.cpu()).filter(marked).collect();
        let woken = self.host.wakes();
        self.queues().enqueue(item);
        // Of these one may have got up by itself meanwhile.
        let late = marked.iter().filter(|cpu| !is_asleep(*cpu)).count();
        let woken = (self.host.wakes() - woken).saturating_sub(late as u64);
        if woken > 1 {
            self.violate(format!("{woken} threads are woken for one item"));
        }
    }

    /// What gates gave back goes elsewhere, without a lock.
    pub(super) fn settle(&self, unsettled: Unsettled<VirtualItem>) {
        let most = unsettled.len() as u64 + 1;
        let woken = self.host.wakes();
        self.queues().settle(unsettled);
        let woken = self.host.wakes() - woken;
        if woken > most {
            self.violate(format!("{woken} threads are woken for {most} reasons"));
        }
    }

    /// A thread drives `cpu` from now on.
    pub(super) fn open_claimed(&self, cpu: CpuId) {
        self.control.lock_remote();
        let unsettled = self.queues().handle_claim(cpu);
        self.control.unlock();
        self.settle(unsettled);
    }

    /// Run queues follow the masks. By the holder of the control lock, who gives it back, and then waits for
    /// what isolated lanes run for others.
    pub(super) fn change_queues(&self) {
        let unsettled = self.queues().handle_isolation();
        let isolated = self.machine.isolation().any();
        self.control.unlock();
        self.settle(unsettled);
        for cpu in self.lane_set.intersection(&isolated).iter() {
            let queue = &self.lanes.slot(cpu).expect("it has a queue").world.queue;
            while queue.runs_foreign() && !self.is_over.get() {
                let _ = self.host.wait(Some(self.host.moment() + PAUSE));
            }
            queue.is_sealed.set(!self.is_over.get());
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
