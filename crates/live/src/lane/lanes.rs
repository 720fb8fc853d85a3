//! All lanes of a machine: their slots, and what there is once for all of them.
//!
//! Made with the machine and never changed in size. Lock order: `control`, then anything of the core;
//! `own_threads` and `notes` are held for no call; `unplaced`, then a run queue's lock.

use super::options::StartNote;
use super::slot::LaneSlot;
use crate::run_queue::{Item, RunQueue};
use crate::softirq::Ksoftirqd;
use crate::words::park::{Notify, Parker};
use crate::words::run_queue::Hint;
use crate::words::stall_deadline::StallDeadline;
use quietcore_core::realtime::CpuPriorities;
use quietcore_core::{CpuId, CpuSet, Nanos, Settings};
use rustix::thread::Pid;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The lanes of a machine; without any, all of it is empty.
#[derive(Debug)]
pub(crate) struct LaneSlots {
    /// By CPU; `None` for those that no thread can claim.
    slots: Box<[Option<LaneSlot>]>,
    pub(super) spares: CpuSet,
    pub(super) stall_deadline: StallDeadline,
    pub(super) tick: Nanos,
    /// Held while CPUs come, go, or are isolated.
    control: Mutex<()>,
    /// The helper and the spares, which keep off isolated CPUs. Locked after `control`.
    own_threads: Mutex<Vec<Pid>>,
    /// Their real-time priority.
    pub(super) own_priority: Option<u8>,
    notes: Mutex<Vec<StartNote>>,
    /// The highest real-time priority of every lane, for those who place tasks.
    pub(crate) priorities: CpuPriorities,
    /// For choices that are made in turns.
    pub(crate) rotation: Hint,
    /// What no lane takes now. Held while a lane opens its queue.
    aside: Mutex<Unplaced>,
}

/// Items that no lane takes now.
#[derive(Debug, Default)]
struct Unplaced {
    items: Vec<Item>,
    /// The machine has ended.
    is_over: bool,
}

impl LaneSlots {
    pub(crate) fn new(
        claimable: &CpuSet,
        spares: &CpuSet,
        settings: &Settings,
        own_priority: Option<u8>,
    ) -> Self {
        let spares = if claimable.is_empty() { CpuSet::new() } else { spares.clone() };
        let all = claimable.union(&spares);
        let count = all.last().map_or(0, |last| last.index() + 1);
        let slot = |index| CpuId::new(index as u64).ok().filter(|cpu| all.contains(*cpu)).map(LaneSlot::new);
        Self {
            slots: (0..count).map(slot).collect(),
            spares,
            stall_deadline: StallDeadline::new(settings.tick.nanos(), settings.stall_in_force()),
            tick: settings.tick.nanos(),
            control: Mutex::new(()),
            own_threads: Mutex::new(Vec::new()),
            own_priority,
            notes: Mutex::new(Vec::new()),
            priorities: CpuPriorities::new(count as u16),
            rotation: Hint::new(),
            aside: Mutex::new(Unplaced::default()),
        }
    }

    /// Whether this machine has lanes.
    #[inline]
    pub(crate) fn exist(&self) -> bool {
        !self.slots.is_empty()
    }

    pub(crate) fn stall_deadline(&self) -> &StallDeadline {
        &self.stall_deadline
    }

    /// Whether lanes look after each other.
    pub(crate) fn watch(&self) -> bool {
        !self.stall_deadline.policy().is_never()
    }

    /// The lock of those who come, go, or isolate.
    pub(super) fn control(&self) -> MutexGuard<'_, ()> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn own_threads(&self) -> MutexGuard<'_, Vec<Pid>> {
        self.own_threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn notes(&self) -> MutexGuard<'_, Vec<StartNote>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn slot(&self, cpu: CpuId) -> Option<&LaneSlot> {
        self.slots.get(cpu.index())?.as_ref()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &LaneSlot> {
        self.slots.iter().flatten()
    }

    /// `cpu` has to look at once. If no thread drives it, another thread looks: a lane that sleeps, or a
    /// spare.
    pub(crate) fn kick(&self, cpu: CpuId) {
        if self.slot(cpu).and_then(LaneSlot::kick).is_none() {
            self.wake_one();
        }
    }

    /// Wakes the first driver that sleeps and can run what is not its own. The thread that is just about to
    /// sleep looks once more.
    pub(crate) fn wake_one(&self) {
        let _ = self.all_in_tree().find(|slot| {
            slot.queue.doorbell.ring();
            slot.kick() == Some(Notify::Woke)
        });
    }

    /// The same for all of them.
    pub(super) fn wake_tree(&self) {
        self.all_in_tree().for_each(|slot| _ = slot.kick());
    }

    /// Whether a lane waits that would take over what a spare does. `is_stuck` tells of one that waits for
    /// its CPU. Without a lock.
    pub(super) fn has_waiting_lane(&self, is_stuck: impl Fn(CpuId) -> bool) -> bool {
        let is_waiting = |slot: &LaneSlot| slot.parker().is_some_and(Parker::is_waiting);
        let mut lanes = self.all_in_tree().filter(|slot| !self.spares.contains(slot.cpu));
        lanes.any(|slot| is_waiting(slot) && !is_stuck(slot.cpu))
    }

    fn all_in_tree(&self) -> impl Iterator<Item = &LaneSlot> {
        self.all().filter(|slot| !slot.standalone.is_set())
    }

    /// Where tasks and work wait for `cpu`.
    #[inline]
    pub(crate) fn queue(&self, cpu: CpuId) -> Option<&RunQueue> {
        self.slot(cpu).map(|slot| &slot.queue)
    }

    /// Wakes the lane of `cpu` if it waits; `None` when no thread drives it.
    #[inline]
    pub(crate) fn kick_lane(&self, cpu: CpuId) -> Option<Notify> {
        self.slot(cpu).and_then(LaneSlot::kick)
    }

    /// Whether the lane of `cpu` waits; a hint.
    pub(crate) fn is_waiting(&self, cpu: CpuId) -> bool {
        self.slot(cpu).and_then(LaneSlot::parker).is_some_and(Parker::is_waiting)
    }

    pub(crate) fn ksoftirqd(&self, cpu: CpuId) -> Option<&Ksoftirqd> {
        self.slot(cpu).map(|slot| &slot.ksoftirqd)
    }

    fn aside(&self) -> MutexGuard<'_, Unplaced> {
        self.aside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// No lane takes `item`: it waits for one that opens. Gives it back if there is one now, or never will
    /// be.
    pub(crate) fn hold_unplaced(&self, item: Item) -> Result<(), Item> {
        let mut aside = self.aside();
        if aside.is_over || self.all().any(|slot| slot.queue.gate.is_open()) {
            return Err(item);
        }
        aside.items.push(item);
        Ok(())
    }

    /// The lane of `cpu` takes what is not bound to it; gives what has waited for that.
    pub(crate) fn open_queue(&self, cpu: CpuId) -> Vec<Item> {
        let mut aside = self.aside();
        if let Some(queue) = self.queue(cpu) {
            queue.open(&self.priorities);
        }
        core::mem::take(&mut aside.items)
    }

    /// What only the thread that drives `cpu` may drop; for that thread.
    pub(crate) fn take_of_thread(&self, cpu: CpuId) -> Vec<Item> {
        self.queue(cpu).map(RunQueue::take_of_thread).unwrap_or_default()
    }

    /// The machine has ended: all that waits and that any thread may drop.
    pub(crate) fn end_queues(&self) -> Vec<Item> {
        let mut aside = self.aside();
        aside.is_over = true;
        let mut items = core::mem::take(&mut aside.items);
        drop(aside);
        items.extend(self.all().flat_map(|slot| slot.queue.end(&self.priorities)));
        items
    }

    /// So that all threads that wait look whether the machine has ended.
    pub(crate) fn wake_ksoftirqds(&self) {
        self.all().for_each(|slot| slot.ksoftirqd.wake());
    }

    /// Wakes every driver that sleeps.
    pub(crate) fn wake_all(&self) {
        self.all().for_each(|slot| _ = slot.kick());
    }
}
