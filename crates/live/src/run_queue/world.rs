//! What the core decides about: the queues of a machine, and what it can be asked.

use super::queue::{Item, RunQueue};
use crate::lane::LanePlace;
use crate::machine::Machine;
use quietcore_core::lane::LaneTable;
use quietcore_core::run_queue::{Moved, QueueRules, QueueWorld, RunQueues, Unplaced};
use quietcore_core::{CpuId, CpuSet};

/// The queues of a machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LiveQueues<'a>(&'a Machine);

impl Machine {
    /// Which lane runs what, and who is woken.
    #[inline]
    pub(crate) const fn queues(&self) -> RunQueues<LiveQueues<'_>> {
        RunQueues::new(LiveQueues(self))
    }
}

impl QueueWorld for LiveQueues<'_> {
    type Item = Item;
    type Queue = RunQueue;
    type Place = LanePlace;

    #[inline]
    fn table(&self) -> &LaneTable<LanePlace> {
        self.0.lanes.table()
    }

    #[inline]
    fn queue(&self, cpu: CpuId) -> Option<&RunQueue> {
        self.0.lanes.queue(cpu)
    }

    #[inline]
    fn rules(&self) -> QueueRules<'_> {
        QueueRules {
            lanes: &self.0.lane_set,
            priorities: &self.0.lanes.priorities,
            topology: self.0.core.topology(),
            awareness: self.0.awareness,
            wake_to: self.0.wake_to,
        }
    }

    fn next_in_turn(&self) -> usize {
        self.0.lanes.rotation.next()
    }

    #[inline]
    fn here(&self) -> Option<CpuId> {
        self.0.current_cpu().map(|(cpu, _)| cpu)
    }

    #[inline]
    fn is_marked(&self, cpu: CpuId) -> bool {
        self.0.core.is_marked(cpu)
    }

    #[inline]
    fn is_running(&self) -> bool {
        self.0.is_running()
    }

    fn is_claimed(&self, cpu: CpuId) -> bool {
        self.table().slot(cpu).is_some_and(|slot| slot.world.is_claimed())
    }

    fn isolated(&self) -> CpuSet {
        self.0.core.isolation().any()
    }

    fn with_unplaced<R>(&self, change: impl FnOnce(&mut Unplaced<Item>) -> R) -> R {
        change(&mut self.0.lanes.aside())
    }

    fn ask_ksoftirqd(&self, cpu: CpuId) {
        self.0.ask_ksoftirqd(cpu);
    }

    fn dismiss(&self, item: Item) {
        self.0.dismiss(item);
    }

    fn count(&self, cpu: CpuId, moved: Moved) {
        let counts = &self.0.counts[cpu.index()];
        match moved {
            Moved::Pulled => counts.pulled.add(1),
            Moved::Pushed => counts.pushed.add(1),
            Moved::Stolen => counts.stolen.add(1),
        }
    }
}
