//! All lanes of a machine: their slots, and what there is once for all of them.
//!
//! Made with the machine and never changed in size. Lock order: `control`, then anything of the core;
//! `own_threads` and `notes` are held for no call; `unplaced`, then a run queue's lock.

use super::options::StartNote;
use super::slot::{LanePlace, ThreadSlot};
use crate::run_queue::{Item, RunQueue};
use crate::words::ksoftirqd::Ksoftirqd;
use crate::words::run_queue::Hint;
use quietcore_core::lane::{Kick, LaneTable, Sleeper};
use quietcore_core::realtime::CpuPriorities;
use quietcore_core::run_queue::Unplaced;
use quietcore_core::{CpuId, CpuSet, Settings};
use rustix::thread::Pid;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The lanes of a machine; without any, all of it is empty.
#[derive(Debug)]
pub(crate) struct LaneSlots {
    /// What the core decides about.
    table: LaneTable<LanePlace>,
    /// Held while CPUs come, go, or are isolated.
    control: Mutex<()>,
    /// The machine's own threads, which keep off isolated CPUs. Locked after `control`.
    own_threads: Mutex<Vec<Pid>>,
    /// Their real-time priority.
    pub(super) own_priority: Option<u8>,
    notes: Mutex<Vec<StartNote>>,
    /// The highest real-time priority of every lane, for those who place tasks.
    pub(crate) priorities: CpuPriorities,
    /// For choices that are made in turns.
    pub(crate) rotation: Hint,
    /// What no lane takes now. Held while a lane opens its queue.
    aside: Mutex<Unplaced<Item>>,
}

impl LaneSlots {
    pub(crate) fn new(
        claimable: &CpuSet,
        spares: &CpuSet,
        settings: &Settings,
        own_priority: Option<u8>,
    ) -> Self {
        let table = LaneTable::new(claimable, spares, settings, LanePlace::new);
        let count = table.all().last().map_or(0, |last| last.cpu().index() + 1);
        Self {
            table,
            control: Mutex::new(()),
            own_threads: Mutex::new(Vec::new()),
            own_priority,
            notes: Mutex::new(Vec::new()),
            priorities: CpuPriorities::new(count as u16),
            rotation: Hint::new(),
            aside: Mutex::new(Unplaced::default()),
        }
    }

    /// What the core decides about: slots, kicks, the deadline word.
    #[inline]
    pub(crate) const fn table(&self) -> &LaneTable<LanePlace> {
        &self.table
    }

    /// Whether this machine has lanes.
    #[inline]
    pub(crate) fn exist(&self) -> bool {
        self.table.exist()
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

    #[inline]
    pub(super) fn slot(&self, cpu: CpuId) -> Option<&ThreadSlot> {
        self.table.slot(cpu)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &ThreadSlot> {
        self.table.all()
    }

    /// Where tasks and work wait for `cpu`.
    #[inline]
    pub(crate) fn queue(&self, cpu: CpuId) -> Option<&RunQueue> {
        self.slot(cpu).map(|slot| &slot.world.queue)
    }

    /// Wakes the lane of `cpu` if it waits.
    #[inline]
    pub(crate) fn kick_lane(&self, cpu: CpuId) -> Kick {
        self.slot(cpu).map_or(Kick::Vacant, |slot| slot.world.kick())
    }

    pub(crate) fn ksoftirqd(&self, cpu: CpuId) -> Option<&Ksoftirqd> {
        self.slot(cpu).map(|slot| &slot.world.ksoftirqd)
    }

    /// What no lane takes.
    pub(crate) fn aside(&self) -> MutexGuard<'_, Unplaced<Item>> {
        self.aside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What only the thread that drives `cpu` may drop; for that thread.
    pub(crate) fn take_of_thread(&self, cpu: CpuId) -> Vec<Item> {
        self.queue(cpu).map(RunQueue::take_of_thread).unwrap_or_default()
    }

    /// The machine has ended: all that waits and that any thread may drop.
    pub(crate) fn end_queues(&self) -> Vec<Item> {
        let mut items = self.aside().end();
        items.extend(self.all().flat_map(|slot| slot.world.queue.end_items(&self.priorities)));
        items
    }

    /// So that all threads that wait look whether the machine has ended.
    pub(crate) fn wake_ksoftirqds(&self) {
        self.all().for_each(|slot| slot.world.ksoftirqd.wake());
    }
}
