//! Tasks of a run: woken by lanes, strangers, callbacks, handlers and each other; a lane runs one at a time.
//!
//! A task that is woken again before it has begun runs once; one that is woken while it runs, once more.

use super::oracle::stuck_for;
use super::place::Place;
use super::queue::{VirtualItem, VirtualTask};
use super::world::RuntimeWorld;
use quietcore_core::CpuId;
use quietcore_core::lane::Role;
use quietcore_core::run_queue::NextItem;
use std::rc::Rc;

impl RuntimeWorld {
    /// Wakes one of the tasks.
    pub(super) fn wake_somewhere(&self) {
        let count = self.tasks.len() as u64;
        if count > 0 && !self.is_child() && !self.drains.get() {
            let task = Rc::clone(&self.tasks[self.host.random(count) as usize]);
            self.wake_task(&task);
        }
    }

    /// The same in so many of a hundred cases.
    pub(super) fn wake_now_and_then(&self, percent: u32) {
        if !self.tasks.is_empty() && self.is_busy() && self.chance(percent) {
            self.wake_somewhere();
        }
    }

    fn wake_task(&self, task: &Rc<VirtualTask>) {
        if task.is_woken.replace(true) {
            return;
        }
        task.news.set(task.news.get() + 1);
        // One that runs goes into a queue when that is over.
        if task.runs.get().is_none() {
            self.note(|| format!("wakes task {}: {:?}, {:?}", task.number, task.bound, task.priority));
            self.place_item(VirtualItem(Rc::clone(task)));
        }
    }

    /// The thread at `slot` runs `next`.
    pub(super) fn run_item(&self, slot: &Place, next: NextItem<VirtualItem>, role: Role) {
        let (cpu, queue, activity) = (slot.cpu(), &slot.world.queue, next.activity);
        self.is_doing(cpu);
        if let Some(what) = self.is_chosen_wrong(cpu, &next) {
            self.violate(what);
        }
        let Some(VirtualItem(task)) = self.queues().begin(cpu, queue, next) else { return };
        self.note(|| format!("runs task {} as {activity:?}", task.number));
        if let Some(what) = self.begin_task(cpu, &task, role) {
            self.violate(what);
        }
        let stuck_after = self.plan.faults.stuck_after;
        let is_stuck = stuck_after > 0 && self.host.moment() >= stuck_after && !self.was_stuck.replace(true);
        let takes = self.host.random(self.plan.faults.longest_item);
        self.host.compute(if is_stuck { stuck_for(&self.plan) } else { takes });
        self.wake_now_and_then(35);
        if self.is_busy() && self.chance(5) {
            self.wake_task(&task);
        }
        self.may_fork(50);
        if self.is_child() {
            return;
        }
        task.runs.set(None);
        if task.is_woken.get() {
            self.place_item(VirtualItem(task));
        }
        self.signs[cpu.index()].item_since.set(None);
        self.queues().end(queue, activity);
    }

    /// `task` begins to run on `cpu`; says what is wrong with that.
    fn begin_task(&self, cpu: CpuId, task: &VirtualTask, role: Role) -> Option<String> {
        self.counts.borrow_mut().items += 1;
        task.ran.set(task.ran.get() + 1);
        let before = task.runs.replace(self.host.current());
        let was_woken = task.is_woken.replace(false);
        let signs = &self.signs[cpu.index()];
        let before_item = signs.item_since.replace(Some(self.host.moment()));
        let is_sealed = self.lanes.slot(cpu).is_some_and(|slot| slot.world.queue.is_sealed.get());
        if role == Role::Lane {
            task.last.set(cpu);
        }
        let what = if before.is_some() {
            "already runs"
        } else if !was_woken || task.ran.get() > task.news.get() - task.dismissed.get() {
            "was not woken"
        } else if before_item.is_some() {
            "begins inside of another one"
        } else if task.bound.is_some_and(|bound| bound != cpu) {
            "is bound to another lane"
        } else if task.bound.is_none() && is_sealed {
            "begins on a lane that is isolated"
        } else if self.is_child() {
            "runs in a child"
        } else {
            return None;
        };
        Some(format!("task {} runs on CPU {cpu} and {what}", task.number))
    }
}
