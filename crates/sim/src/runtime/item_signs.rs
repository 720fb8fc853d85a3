//! What is true of items whatever the core says: none is lost, and none waits where others could run it.

use super::oracle::{HELPER, takeover, usual};
use super::place::Place;
use super::queue::{QueueWait, VirtualItem, VirtualTask};
use super::world::RuntimeWorld;
use quietcore_core::CpuId;
use quietcore_core::lane::Sleeper;
use quietcore_core::run_queue::{Activity, LaneQueue, NextItem};

impl RuntimeWorld {
    /// The lane of `cpu` has something to do.
    pub(super) fn is_doing(&self, cpu: CpuId) {
        self.lanes.slot(cpu).into_iter().for_each(|slot| slot.world.queue.idle_since.set(None));
    }

    /// The lane at `slot` has found nothing, and waits.
    pub(super) fn is_idle(&self, slot: &Place) {
        let queue = &slot.world.queue;
        if queue.is_open() && !self.machine.is_marked(slot.cpu()) && queue.idle_since.get().is_none() {
            queue.idle_since.set(Some(self.host.moment()));
        }
    }

    /// The lane of `cpu` is about to run `next`, though a real-time item waits that goes first: on the lane
    /// itself, or behind an item of another one, since before it looked.
    pub(super) fn is_chosen_wrong(&self, cpu: CpuId, next: &NextItem<VirtualItem>) -> Option<String> {
        let signs = &self.signs[cpu.index()];
        let looked_at = signs.looked_at.get();
        // A spare runs what it gets; a lane that came and got nothing, or lost its own to another one, goes
        // on with what it has.
        let missed = self.lanes.all().map(|slot| slot.world.queue.missed_at.get()).max();
        let own = &self.lanes.slot(cpu)?.world.queue;
        let is_excused = missed >= Some(looked_at) || own.taken_at.get() >= looked_at;
        if next.activity != Activity::Normal || !signs.is_driven.get() || is_excused {
            return None;
        }
        let takes_all = own.is_open();
        let goes_first = |task: &&VirtualTask, waits: QueueWait| {
            let there = self.signs[waits.cpu.index()].item_since.get();
            let is_behind = takes_all && task.bound.is_none() && there.is_some_and(|since| since < looked_at);
            task.priority.is_some() && waits.since < looked_at && (waits.cpu == cpu || is_behind)
        };
        let waiting = self.waiting().find(|(task, waits)| goes_first(task, *waits));
        waiting.map(|(task, waits)| {
            let number = next.item.0.number;
            format!("CPU {cpu} runs task {number}; real-time task {} waits: {waits:?}", task.number)
        })
    }

    /// Tasks that wait in a queue.
    fn waiting(&self) -> impl Iterator<Item = (&VirtualTask, QueueWait)> {
        self.tasks.iter().filter_map(|task| Some((&**task, task.waits.get()?)))
    }

    /// Behind a closed gate something waits that is not bound to the lane.
    pub(super) fn is_open_in_vain(&self) -> Option<String> {
        let is_wrong = |(task, waits): &(&VirtualTask, QueueWait)| {
            let slot = self.lanes.slot(waits.cpu).expect("it has a queue");
            task.bound.is_none() && slot.world.queue.is_settled() && !slot.world.queue.is_open()
        };
        let found = self.waiting().find(is_wrong);
        found.map(|(task, waits)| format!("task {} waits behind a closed gate: {waits:?}", task.number))
    }

    /// An item that any lane may run waits though a lane has had nothing to do for long. Asked once per tick.
    pub(super) fn is_item_late(&self) -> Option<String> {
        let now = self.host.moment();
        let tick = now / self.plan.tick;
        if self.is_over.get() || self.asked_in.replace(tick) == tick {
            return None;
        }
        let span = usual(&self.plan) + takeover(&self.plan) + self.plan.tick;
        self.waiting().filter(|(task, _)| task.bound.is_none()).find_map(|(task, waits)| {
            let lanes = self.lanes.all().filter(|slot| self.lane_set.contains(slot.cpu()));
            let idle = lanes.filter_map(|slot| Some((slot.cpu(), slot.world.queue.idle_since.get()?)));
            let (idle, since) = idle.min_by_key(|of| of.1)?;
            let from = since.max(waits.since);
            if now - from <= span {
                return None;
            }
            // What was kept from running, and might have come for it, or has left it and told no other yet.
            let drivers = self.drivers.borrow();
            let matters =
                |thread| thread == HELPER || waits.left_by == Some(thread) || drivers.contains(&Some(thread));
            let held = self.host.held_since(from);
            let kept = held.iter().filter(|held| held.in_lock || !held.is_busy && matters(held.thread));
            let from = kept.map(|held| held.until).max().map_or(from, |until| until.max(from));
            let is_late = now - from > span;
            is_late.then(|| {
                let (number, bound) = (task.number, task.priority);
                format!("task {number} ({bound:?}) waits since {from}, CPU {idle} is idle: {waits:?}")
            })
        })
    }

    /// An item for which no thread will come. Asked when all threads wait.
    pub(super) fn is_item_forgotten(&self) -> Option<String> {
        let now = self.host.moment();
        let comes_now = |slot: &Place| {
            slot.world.parker.doorbell.get() && self.comes_at(slot).is_some_and(|comes| comes <= now)
        };
        let asleep = |slot: &&Place| slot.world.is_waiting() && !comes_now(slot);
        let slept_on = self.lanes.all().filter(asleep).find(|slot| !slot.world.queue.is_empty());
        if let Some(slot) = slept_on {
            return Some(format!("CPU {} sleeps, and an item waits for it", slot.cpu()));
        }
        let mut queues = self.lanes.all().map(|slot| &slot.world.queue);
        // While it is changed, it is nothing to look at.
        let is_any = self.unplaced.try_borrow().is_ok_and(|unplaced| !unplaced.is_empty());
        if is_any && queues.any(LaneQueue::is_open) {
            return Some("an item waits aside, and a gate is open".to_owned());
        }
        // What a lane has that is blocked is for those that are free; a spare's if none is.
        let is_free = |cpu| {
            self.lanes.slot(cpu).is_some_and(|slot| slot.world.queue.is_open())
                && !self.machine.is_marked(cpu)
        };
        let is_any_free = self.lane_set.iter().any(is_free);
        let helps = |slot: &&Place| {
            let is_spare = self.lanes.spares().contains(slot.cpu());
            let comes = self.comes_at(slot);
            asleep(slot)
                && comes.is_none_or(|comes| comes > now + self.plan.tick)
                && (if is_spare { !is_any_free } else { is_free(slot.cpu()) })
        };
        let helper = self.lanes.all().find(helps)?;
        let away = self.lanes.all().find(|slot| {
            let (signs, queue) = (&self.signs[slot.cpu().index()], &slot.world.queue);
            let is_away = signs.blocks.get() && self.machine.is_marked(slot.cpu());
            is_away && queue.has_movable() && queue.missed_at.get() + self.plan.stall_after < now
        })?;
        Some(format!("CPU {} blocks, and CPU {} sleeps on what it has", away.cpu(), helper.cpu()))
    }

    /// An item that was woken and is not run, at the end.
    pub(super) fn is_item_lost(&self) -> Option<String> {
        let lost = self.tasks.iter().find(|task| task.is_woken.get())?;
        Some(format!("task {} ({:?}) was woken and has not run: {lost:?}", lost.number, lost.priority))
    }

    /// An item that the shutdown has left.
    pub(super) fn is_item_left(&self) -> Option<String> {
        let mut queues = self.lanes.all().map(|slot| &slot.world.queue);
        let is_any = queues.any(|queue| !queue.is_empty()) || !self.unplaced.borrow().is_empty();
        let adds_up = |task: &VirtualTask| {
            !task.is_woken.get() && task.news.get() == task.ran.get() + task.dismissed.get()
        };
        let left = self.tasks.iter().find(|task| !adds_up(task));
        let what =
            left.map(|task| format!("after the shutdown task {} does not add up: {task:?}", task.number));
        what.or_else(|| is_any.then(|| "after the shutdown an item is in a queue".to_owned()))
    }
}
