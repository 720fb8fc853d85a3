//! Which lane is woken for what waits.
//!
//! An item that comes to a lane where others wait already wakes one that sleeps. One that comes first does
//! not: the lane is about to take it; if it is stuck instead, others look for what waits whenever they look
//! after it. What waits is offered again once per tick, and whenever its lane is marked, blocks, or was found
//! to be stuck. One item that comes wakes one lane at most; one that was marked in its sleep does not count,
//! as it has missed its wake-up and waits for its CPU.

use super::{Activity, LaneQueue, QueueWorld, RunQueues};
use crate::CpuId;
use crate::lane::{Kick, LaneLook, Role, Sleeper};

impl<W: QueueWorld> RunQueues<W> {
    /// An item was left in `queue`, that of `cpu`, where `waited` others did already.
    #[inline]
    pub(super) fn wake_for(&self, cpu: CpuId, queue: &W::Queue, waited: usize, is_bound: bool) {
        let slot = self.0.table().slot(cpu);
        let is_woken = slot.map(|slot| slot.world.kick_to_help()) == Some(Kick::Woke);
        let is_marked = self.0.is_marked(cpu);
        // One that is marked in its sleep has missed its wake-up: the kick does not bring it its CPU.
        if is_woken && !is_marked || is_bound {
            return;
        }
        // A lane runs the one item that it pushed for itself soon; if it gets stuck, a watcher finds it. From
        // two on, or behind an item that runs, another lane is woken to take one.
        let is_here = self.0.here() == Some(cpu);
        let is_busy = || matches!(queue.current().0, Activity::Normal | Activity::Realtime(_));
        let is_behind = if is_here { waited > 1 } else { waited > 0 || is_busy() };
        if is_marked {
            self.wake_one();
        } else if is_behind || is_here && !self.0.table().watch() {
            self.wake_idle_lane(cpu);
        }
    }

    /// Wakes a lane that sleeps, if there is one that takes what others have.
    fn wake_idle_lane(&self, but: CpuId) {
        let free = self.0.rules().lanes.iter().filter(|cpu| *cpu != but && self.is_free(*cpu));
        let waiting = free.filter_map(|cpu| self.0.table().slot(cpu).filter(|slot| slot.world.is_waiting()));
        let _ = waiting.map(|slot| slot.world.kick_to_help()).find(|kick| *kick == Kick::Woke);
    }

    /// The lane of `cpu` has looked around. What waits there others may run: the thread that was woken for it
    /// may have found the lock taken, and gone to sleep again. And what those have that were marked needs a
    /// lane that is awake. Cost: two loads, or two per lane if any was marked.
    pub fn handle_look(&self, cpu: CpuId, look: LaneLook) {
        if look.looked_around && self.has_movable(cpu) {
            self.wake_idle_lane(cpu);
        }
        if look.marked > 0 {
            self.offer_of_marked();
        }
    }

    /// The sentinel has marked lanes while another one seemed to turn
    /// ([`MarkedBesideAwake`](crate::lane::SentinelLook)): that may have looked for what waits before they
    /// were marked, and be on its way to sleep. Test:
    /// `tasks::stuck::a_lane_that_has_looked_is_told`.
    pub fn handle_silence(&self) {
        self.offer_of_marked();
    }

    fn offer_of_marked(&self) {
        let marked = self.0.rules().lanes.iter().filter(|cpu| self.0.is_marked(*cpu));
        marked.for_each(|cpu| self.handle_absence(cpu));
    }

    /// The gate of `cpu` was opened: what others have and do not get to is for this lane from now on, and no
    /// more for a spare that was woken for it.
    pub(super) fn handle_open(&self, cpu: CpuId) {
        if self.must_help(cpu, Role::Lane) {
            let slot = self.0.table().slot(cpu);
            slot.into_iter().for_each(|slot| _ = slot.world.kick_to_help());
        }
    }

    /// `cpu` does not turn from now on: what waits there and others may run needs a lane that is awake.
    pub fn handle_absence(&self, cpu: CpuId) {
        if self.has_movable(cpu) {
            self.wake_one();
        }
    }

    fn wake_one(&self) {
        self.0.table().wake_one(|cpu| self.0.is_marked(cpu));
    }

    /// Whether something waits there that others may take.
    fn has_movable(&self, cpu: CpuId) -> bool {
        let has_movable = |queue: &W::Queue| queue.free_waiting() > 0 || queue.realtime_movable().is_some();
        self.0.queue(cpu).is_some_and(has_movable)
    }
}
