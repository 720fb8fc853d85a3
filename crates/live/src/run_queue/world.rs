//! What the core decides about: the queues of a machine, and what it can be asked.

use super::queue::{Item, RunQueue};
use crate::lane::LanePlace;
use crate::machine::Machine;
use quietcore_core::CpuId;
use quietcore_core::lane::LaneTable;
use quietcore_core::run_queue::{Moved, QueueRules, QueueWorld, RunQueues};

/// The queues of a machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LiveQueues<'a>(&'a Machine);

impl Machine {
    /// Which lane runs what, and who is woken.
    #[inline]
    pub(crate) const fn queues(&self) -> RunQueues<LiveQueues<'_>> {
        RunQueues::new(LiveQueues(self))
    }

    /// `cpu` takes nothing but what is bound to it; gives what it had besides. The caller
    /// [enqueues](Self::enqueue_all) that when it holds no lock: user code may be dropped there.
    #[must_use]
    pub(crate) fn close_queue(&self, cpu: CpuId) -> Vec<Item> {
        self.lanes.queue(cpu).map(|queue| queue.close(&self.lanes.priorities).0).unwrap_or_default()
    }

    /// For items that a queue gave back.
    pub(crate) fn enqueue_all(&self, items: Vec<Item>) {
        items.into_iter().for_each(|item| self.queues().enqueue(item));
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

    fn hold_unplaced(&self, item: Item) -> Result<(), Item> {
        self.0.lanes.hold_unplaced(item)
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
