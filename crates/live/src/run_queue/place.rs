//! Which lane runs what waits: where a task wakes up, which lane takes it from which, and which is woken.
//!
//! Real-time tasks go where the core says (`wake_target`): where they ran last unless something is in the
//! way. A lane cannot interrupt what it runs, so a normal task or work that is under way is in the way as a
//! real-time task of the kernel would be that cannot be moved (ours; softirqs are in the way only if the
//! machine [places](quietcore_core::realtime::Awareness::places) by them). Normal tasks and work go to the
//! lane that they ran on last, or to the one that wakes them; from there any idle lane takes them.
//!
//! An item that comes to a lane where others wait already wakes one that sleeps. One that comes first does
//! not: the lane is about to take it; if it is stuck instead, others look for what waits whenever they look
//! after it. What no lane takes, as all are isolated or none was claimed, waits aside until one opens.
//!
//! Source: docs/design/KERNEL.md, section 6; docs/design/PROTOCOL.md, section 4.

use super::queue::{Item, NextItem, RunQueue};
use super::wake_to::WakeTo;
use crate::machine::Machine;
use crate::panic::contain;
use crate::timer::RunScope;
use crate::words::run_queue::Activity;
use quietcore_core::CpuId;
use quietcore_core::lane::Kick;
use quietcore_core::realtime::{
    Priority, PullSource, RunnableTask, RunningTask, Seeker, find_lowest, fits, pull_source, push_target,
    wake_target,
};
use std::cell::RefCell;

impl Machine {
    fn queue(&self, cpu: CpuId) -> Option<&RunQueue> {
        self.lanes.queue(cpu)
    }

    /// Whether `cpu` takes what is not bound to it, as far as any thread can see.
    fn is_free(&self, cpu: CpuId) -> bool {
        self.queue(cpu).is_some_and(|queue| queue.gate.is_open()) && !self.core.is_marked(cpu)
    }

    /// `item` is to be run. From any thread.
    pub(crate) fn enqueue(&'static self, mut item: Item) {
        if !self.is_running() {
            return self.dismiss(item);
        }
        loop {
            let target = match (item.bound_to(), item.priority()) {
                (Some(cpu), _) => Some(cpu),
                (None, Some(priority)) => self.realtime_target(priority, item.last()),
                (None, None) => self.normal_target(item.last()),
            };
            let Some(cpu) = target else {
                match self.lanes.hold_unplaced(item) {
                    Ok(()) => return,
                    Err(back) if !self.is_running() => return self.dismiss(back),
                    Err(back) => item = back,
                }
                continue;
            };
            match self.push_to(cpu, item) {
                Ok(()) => return,
                Err(back) if !self.is_running() => return self.dismiss(back),
                // Its gate was closed since it was looked at.
                Err(back) => item = back,
            }
        }
    }

    /// Puts `item` into the queue of `cpu` and wakes the lanes that should look.
    fn push_to(&self, cpu: CpuId, item: Item) -> Result<(), Item> {
        let queue = self.queue(cpu).expect("a lane was chosen");
        let is_bound = item.bound_to().is_some();
        let waited = queue.push(item, &self.lanes.priorities).map_err(|refused| refused.0)?;
        queue.doorbell.ring();
        let is_woken = self.lanes.kick_lane(cpu) == Kick::Woke;
        // A lane runs the one item that it pushed for itself soon; if it gets stuck, a watcher finds it. From
        // two on, or behind an item that runs, another lane is woken to take one.
        let is_here = self.current_cpu().map(|(here, _)| here) == Some(cpu);
        let is_busy = matches!(queue.current.get().0, Activity::Normal | Activity::Realtime(_));
        let waited = if is_here { waited } else { waited + usize::from(is_busy) };
        let may_wait = usize::from(is_here);
        if is_woken || is_bound {
            return Ok(());
        }
        if self.core.is_marked(cpu) {
            self.lanes.table().wake_one();
        } else if waited > may_wait || is_here && !self.lanes.watch() {
            self.wake_idle_lane(cpu);
        }
        Ok(())
    }

    /// Wakes a lane that sleeps, if there is one that takes what others have.
    pub(crate) fn wake_idle_lane(&self, but: CpuId) {
        for cpu in self.lane_set.iter().filter(|cpu| *cpu != but && self.is_free(*cpu)) {
            let queue = self.queue(cpu).expect("it is free");
            if !self.lanes.is_waiting(cpu) {
                continue;
            }
            queue.doorbell.ring();
            if self.lanes.kick_lane(cpu) == Kick::Woke {
                return;
            }
        }
    }

    fn normal_target(&self, last: CpuId) -> Option<CpuId> {
        let here = self.current_cpu().map(|(cpu, _)| cpu);
        let preferred = match self.wake_to {
            WakeTo::Last => [Some(last), here],
            WakeTo::Here => [here, Some(last)],
        };
        let preferred = preferred.into_iter().flatten().find(|cpu| self.is_free(*cpu));
        preferred.or_else(|| self.any_lane(|cpu| self.is_free(cpu))).or_else(|| self.any_open())
    }

    /// One of those of which `is_wanted` says yes, in turns.
    fn any_lane(&self, is_wanted: impl Fn(CpuId) -> bool) -> Option<CpuId> {
        let first = self.lanes.rotation.next() % self.lane_set.len().max(1);
        let in_turn = self.lane_set.iter().skip(first).chain(self.lane_set.iter().take(first));
        in_turn.into_iter().find(|cpu| is_wanted(*cpu))
    }

    fn any_open(&self) -> Option<CpuId> {
        self.any_lane(|cpu| self.queue(cpu).is_some_and(|queue| queue.gate.is_open()))
    }

    /// Whether a real-time task may start on `cpu` soon, as far as the machine cares.
    fn fits_realtime(&self, cpu: CpuId) -> bool {
        let Some(queue) = self.queue(cpu).filter(|_| self.is_free(cpu)) else { return false };
        let is_avoided = self.awareness.places() && !fits(queue.claims.active(), queue.claims.pending());
        queue.current.get().0 != Activity::Normal && !is_avoided
    }

    fn realtime_target(&self, priority: Priority, last: CpuId) -> Option<CpuId> {
        let here = self.current_cpu().map_or(last, |(cpu, _)| cpu);
        let turn = self.lanes.rotation.next();
        let seeker = Seeker { priority, affinity: &self.lane_set, previous: last, here, turn };
        let (priorities, topology) = (&self.lanes.priorities, self.core.topology());
        let fits = |cpu| self.fits_realtime(cpu);
        let found = if self.is_free(last) {
            let running = match self.queue(last).map(|queue| queue.current.get()) {
                None | Some((Activity::None | Activity::Softirq, _)) => RunningTask::Nothing,
                Some((Activity::Normal, _)) => RunningTask::Uninterruptible,
                Some((Activity::Realtime(priority), can_move)) => {
                    RunningTask::Realtime { priority, can_move }
                }
            };
            Some(wake_target(priorities, topology, RunnableTask { seeker, running }, fits))
        } else {
            find_lowest(priorities, topology, seeker, fits)
        };
        let found = found.filter(|cpu| self.is_free(*cpu));
        found.or_else(|| self.any_lane(|cpu| self.is_free(cpu))).or_else(|| self.any_open())
    }

    /// What `cpu`, which has nothing above `above` itself, takes from a lane that is busy with something, or
    /// stuck: the highest real-time task.
    pub(crate) fn pull_realtime(&self, cpu: CpuId, above: Option<Priority>) -> Option<(Priority, Item)> {
        let others = self.lane_set.iter().filter(|other| *other != cpu);
        let sources = others.filter_map(|other| self.pull_source(self.queue(other)?));
        let queue = self.queue(pull_source(sources, above)?)?;
        let pulled = queue.take_realtime(above, &self.lanes.priorities);
        if pulled.is_some() {
            self.counts[cpu.index()].pulled.add(1);
        }
        pulled
    }

    /// Real-time tasks that wait on `cpu` behind the one that it is about to run go where they can run now.
    pub(crate) fn push_realtime(&'static self, cpu: CpuId) {
        let Some(queue) = self.queue(cpu) else { return };
        while let Some(priority) = queue.realtime_movable() {
            let seeker = Seeker {
                priority,
                affinity: &self.lane_set,
                previous: cpu,
                here: cpu,
                turn: self.lanes.rotation.next(),
            };
            // It waits behind what this lane is about to run.
            let task = RunnableTask { seeker, running: RunningTask::Uninterruptible };
            let can_take = |other| self.fits_realtime(other);
            let (priorities, topology) = (&self.lanes.priorities, self.core.topology());
            let target = push_target(priorities, topology, task, can_take, |_| true);
            let Some(target) = target else { return };
            let Some((_, item)) = queue.take_realtime(None, &self.lanes.priorities) else { return };
            self.counts[cpu.index()].pushed.add(1);
            if let Err(item) = self.push_to(target, item) {
                // It was closed meanwhile.
                self.enqueue(item);
                return;
            }
        }
    }

    /// What `cpu`, which has nothing to run, takes from another lane.
    pub(crate) fn steal(&self, cpu: CpuId) -> Option<Item> {
        let lanes = &self.lane_set;
        let behind = lanes.iter().filter(|other| *other > cpu);
        let mut others = behind.chain(lanes.iter().filter(|other| *other < cpu));
        let stolen = others.find_map(|other| {
            let queue = self.queue(other).filter(|queue| self.has_free_to_take(queue))?;
            queue.take_free(&self.lanes.priorities)
        });
        if stolen.is_some() {
            self.counts[cpu.index()].stolen.add(1);
        }
        stolen
    }

    /// Whether there is a lane that is not stuck and takes what is not bound to it.
    pub(crate) fn has_free_lane(&self) -> bool {
        self.lane_set.iter().any(|cpu| self.is_free(cpu))
    }

    /// What the spare `cpu` runs, as no lane does: all of them are stuck.
    pub(crate) fn rescue(&self, cpu: CpuId) -> Option<NextItem> {
        if self.has_free_lane() {
            return None;
        }
        let pulled = self.pull_realtime(cpu, None).map(|(_, item)| item);
        let item = pulled.or_else(|| self.steal(cpu))?;
        // A spare has no lane's rank: it runs everything as a normal task.
        Some(NextItem { item, activity: Activity::Normal, is_movable: false })
    }

    /// Whether something waits with a lane other than `cpu` that does not get to it. Cost: two loads per
    /// lane.
    pub(crate) fn is_help_wanted(&self, cpu: CpuId) -> bool {
        let mut others = self.lane_set.iter().filter(|other| *other != cpu);
        others.any(|other| {
            self.queue(other).is_some_and(|queue| {
                self.has_free_to_take(queue) || pull_source(self.pull_source(queue), None).is_some()
            })
        })
    }

    /// What waits on another lane, if it is a real-time task, and what runs there.
    fn pull_source(&self, queue: &RunQueue) -> Option<PullSource> {
        let waiting = queue.realtime_movable()?;
        let is_busy = match queue.current.get().0 {
            Activity::None => false,
            // A kernel that does not look at softirqs leaves a task behind them.
            Activity::Softirq => self.awareness.places(),
            Activity::Normal | Activity::Realtime(_) => true,
        };
        let is_held_up = is_busy || !self.is_free(queue.cpu());
        let running = if is_held_up { RunningTask::Uninterruptible } else { RunningTask::Nothing };
        Some(PullSource { cpu: queue.cpu(), waiting, running })
    }

    /// The same for normal tasks and work: a lane that is just about to run its only one keeps it.
    fn has_free_to_take(&self, queue: &RunQueue) -> bool {
        let is_busy = || queue.current.get().0 != Activity::None || !self.is_free(queue.cpu());
        match queue.free_waiting() {
            0 => false,
            1 => is_busy(),
            _ => true,
        }
    }

    /// Once per tick, by the lane of `queue`: others may run what waits there. The thread that was woken for
    /// it may have found the lock taken, and gone to sleep again. Cost: two loads.
    pub(crate) fn offer_backlog(&self, queue: &RunQueue) {
        if queue.has_movable() {
            self.wake_idle_lane(queue.cpu());
        }
    }

    /// The same for all lanes that are marked.
    pub(crate) fn offer_items_of_marked(&self) {
        self.lane_set.iter().filter(|cpu| self.core.is_marked(*cpu)).for_each(|cpu| self.offer_items_of(cpu));
    }

    /// `cpu` does not turn from now on: what waits there and others may run needs a lane that is awake.
    pub(crate) fn offer_items_of(&self, cpu: CpuId) {
        if self.queue(cpu).is_some_and(RunQueue::has_movable) {
            self.lanes.table().wake_one();
        }
    }

    /// `cpu` takes nothing but what is bound to it; gives what it had besides. The caller
    /// [enqueues](Self::enqueue) that when it holds no lock: user code may be dropped there.
    #[must_use]
    pub(crate) fn close_queue(&self, cpu: CpuId) -> Vec<Item> {
        self.queue(cpu).map(|queue| queue.close(&self.lanes.priorities).0).unwrap_or_default()
    }

    /// For items that a queue gave back.
    pub(crate) fn enqueue_all(&'static self, items: Vec<Item>) {
        items.into_iter().for_each(|item| self.enqueue(item));
    }

    /// Drops what no thread will run. What only another thread may touch stays where that finds it; a forked
    /// child touches nothing.
    pub(crate) fn dismiss(&self, item: Item) {
        if self.is_forked() {
            core::mem::forget(item);
            return;
        }
        let is_ours = |cpu| self.current_cpu().map(|(here, _)| here) == Some(cpu);
        match item.bound_to().filter(|_| item.is_of_thread()) {
            Some(cpu) if !is_ours(cpu) => {
                let queue = self.queue(cpu).expect("its lane made it");
                let kept = queue.push(item, &self.lanes.priorities);
                kept.expect("what is of a thread is always taken");
            }
            _ => drop_in_turn(item),
        }
    }
}

thread_local! {
    /// What is to be dropped by this thread, while it drops something.
    static DROPPING: RefCell<Option<Vec<Item>>> = const { RefCell::new(None) };
}

/// Drops `item`. A destructor may wake others who end here, too: those wait for it, so that a chain of them
/// needs no stack.
fn drop_in_turn(item: Item) {
    let outermost = DROPPING.try_with(|list| match &mut *list.borrow_mut() {
        Some(waiting) => {
            waiting.push(item);
            None
        }
        list => {
            *list = Some(Vec::new());
            Some(item)
        }
    });
    // A thread that ends has no list any more; then `item` was dropped by the closure.
    let mut next = outermost.unwrap_or_default();
    while let Some(item) = next {
        let _in_run = RunScope::begin();
        // The destructor of user code; the panic hook has printed what it says.
        let _ = contain(|| drop(item));
        next = DROPPING
            .try_with(|list| {
                let mut list = list.borrow_mut();
                let next = list.as_mut().and_then(Vec::pop);
                if next.is_none() {
                    *list = None;
                }
                next
            })
            .unwrap_or_default();
    }
}
