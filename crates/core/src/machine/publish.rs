//! Publishing: when the first global expiry of a CPU that is not awake changes, the hierarchy learns of it,
//! or the CPU is kicked.
//!
//! Each way exists twice: one that waits for the locks of the CPU's bases, and one (`try_*`) for CPUs that
//! watch others. Neither waits for the events of a group, where any thread may be stopped.

use super::Machine;
use super::arm::Promptness;
use crate::base::{BaseId, BaseKind, ExpiryChange, earliest};
use crate::lock::Busy;
use crate::tmigr::CpuState;
use crate::{Actions, CpuId, Nanos, RawLock};

impl<L: RawLock, T: Copy> Machine<L, T> {
    /// A base is due earlier than was known: if its CPU is idle, the hierarchy or the CPU must learn of it.
    #[inline]
    pub(super) fn publish_change(&self, base: BaseId, change: ExpiryChange, actions: &mut Actions) {
        if change.must_publish() {
            self.publish_first(base, Promptness::Tick, actions);
        }
    }

    /// Publishes the first global expiry of `cpu` anew, if it is idle or absent.
    pub(super) fn republish(&self, cpu: CpuId, actions: &mut Actions) {
        if !self.is_pulling() {
            return;
        }
        let mut global = self.bases.lock(BaseId { cpu, kind: BaseKind::Global }, None);
        let mut guest = self.bases.lock(BaseId { cpu, kind: BaseKind::Guest }, None);
        if !global.is_idle {
            return;
        }
        let next = earliest(global.next_expiry(), guest.next_expiry());
        let published = self.hierarchy.try_publish(cpu, next);
        if published.is_err() {
            // Before the locks are given back: one that is stopped after that has left the note.
            self.count_repairs(self.watch[cpu.index()].flags.transition_to_unpublished());
        }
        drop((guest, global));
        match published {
            Ok(first) => self.ask_for_alarm(first, actions),
            Err(Busy) => self.wake_for_unpublished(cpu, next, actions),
        }
    }

    /// The hierarchy could not learn that `cpu` has `next` first: a thread was stopped inside a lock. It is
    /// noted, each CPU that is awake tries again, and none sleeps before that has succeeded. So that one is
    /// awake, `cpu` itself wakes up; if it cannot, the alarm wakes another. Tests: `site::stopped`.
    #[cold]
    fn wake_for_unpublished(&self, cpu: CpuId, next: Option<Nanos>, actions: &mut Actions) {
        self.ask_for_alarm(next, actions);
        if !self.flags(cpu).is_marked() {
            actions.kick(cpu);
        }
    }

    /// Tells of a base that is due earlier, without waiting. Of one that others pull from it is noted already
    /// that it has to be published.
    pub(super) fn try_tell(&self, id: BaseId, actions: &mut Actions) {
        let is_published = id.kind.is_pullable() && self.is_pulling();
        match (is_published, self.hierarchy.try_cpu_state(id.cpu)) {
            (true, None | Some(CpuState::Awake)) => {}
            (true, Some(CpuState::Parked | CpuState::Absent)) => self.try_republish(id.cpu, actions),
            (true, Some(CpuState::Unavailable)) | (false, _) => self.kick_unless_stuck(id.cpu, actions),
        }
    }

    /// Publishes the first global expiry of `cpu` anew if no lock has to be waited for. Then nothing is noted
    /// any more: that ends under the locks under which it is noted, as an arm may note it anew right after.
    pub(super) fn try_republish(&self, cpu: CpuId, actions: &mut Actions) {
        let lock = |kind| self.bases.try_lock(BaseId { cpu, kind });
        let Some(mut global) = lock(BaseKind::Global) else { return };
        let Some(mut guest) = lock(BaseKind::Guest) else { return };
        let next = earliest(global.next_expiry(), guest.next_expiry());
        let Ok(first) = self.hierarchy.try_publish(cpu, next) else { return };
        self.count_repairs(self.watch[cpu.index()].flags.transition_to_published());
        drop((guest, global));
        self.ask_for_alarm(first, actions);
    }

    /// A CPU that was marked turns when it can, and a kick does not make it do so sooner; unless it sleeps.
    /// It says that it is idle before it looks at its bases, and an arm after that sees it.
    pub(super) fn kick_unless_stuck(&self, cpu: CpuId, actions: &mut Actions) {
        if !self.flags(cpu).is_marked() || self.flags(cpu).is_idle() {
            actions.kick(cpu);
        }
    }
}
