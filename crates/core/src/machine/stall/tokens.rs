//! Tokens of absent CPUs: what they collected and have not run is taken back and published.
//!
//! Any CPU that watches does it, so a CPU may stop at any point in between: what is left to do is noted in
//! the flags of the CPU concerned before the lock that protects it is given back.

use super::super::Machine;
use crate::{Actions, CpuId, Nanos, RawLock};

impl<L: RawLock, T: Copy> Machine<L, T> {
    /// Takes the tokens that `holder` has on any base, and publishes what waits there. Waits for no lock: a
    /// base whose lock is taken keeps its token, and one that could not be published is noted, until a CPU
    /// looks again ([`watch`](Self::watch)).
    pub(in crate::machine) fn take_back_tokens(&self, holder: CpuId, actions: &mut Actions) {
        let mut is_complete = true;
        for id in self.base_ids() {
            let Some(mut base) = self.bases.try_lock(id) else {
                is_complete = false;
                continue;
            };
            if base.runner() != Some(holder) {
                continue;
            }
            let must_tell = base.revoke().must_publish();
            // Noted before the lock is given back: a CPU that is stopped after that has left the note, one
            // that is stopped before it the token. Test: `site::stall::two_freeze_anywhere`.
            if must_tell && id.kind.is_pullable() && self.is_pulling() {
                self.count_repairs(self.watch[id.cpu.index()].flags.transition_to_unpublished());
            }
            drop(base);
            if must_tell {
                self.try_tell(id, actions);
            }
        }
        if is_complete {
            self.count_repairs(self.watch[holder.index()].flags.transition_to_revoked());
        }
    }

    /// Finishes what other watchers have left undone.
    pub(super) fn finish_repairs(&self, now: Nanos, actions: &mut Actions) {
        if !self.has_repairs() {
            return;
        }
        for cpu in (0..self.bases.cpu_count()).map(CpuId) {
            if self.flags(cpu).is_stuck() && self.is_not_stuck(cpu, now) {
                self.count_repairs(self.watch[cpu.index()].flags.transition_to_not_stuck());
            }
            if self.flags(cpu).is_mark_incomplete() {
                self.complete_mark(cpu, now, actions);
            }
            self.repair_tokens(cpu, actions);
            if self.flags(cpu).is_unpublished() {
                self.try_republish(cpu, actions);
            }
        }
    }

    pub(super) fn repair_tokens(&self, cpu: CpuId, actions: &mut Actions) {
        if self.flags(cpu).may_have_tokens() {
            self.take_back_tokens(cpu, actions);
        }
    }

    /// The same by a caller that may wait for locks; also the tokens that other CPUs have on the bases of
    /// `cpu`.
    pub(in crate::machine) fn take_all_tokens(&self, cpu: CpuId, actions: &mut Actions) {
        for id in self.base_ids() {
            let mut base = self.bases.lock(id, None);
            if base.runner().is_some_and(|runner| runner == cpu || id.cpu == cpu) {
                let change = base.revoke();
                drop(base);
                self.publish_change(id, change, actions);
            }
        }
    }
}
