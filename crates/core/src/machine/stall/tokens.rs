//! Tokens of absent CPUs: what they collected and have not run is taken back and published.
//!
//! Any CPU that watches does it, so a CPU may stop at any point in between: what is left to do is noted in the
//! flags of the CPU concerned before the lock that protects it is given back.

use super::super::{Machine, flag};
use crate::{Actions, CpuId, Nanos, RawLock};

impl<L: RawLock, T: Copy> Machine<L, T> {
    /// `cpu` may have tokens that must be taken back. Said under its bases' locks: whoever marks it may be
    /// stopped before it has done so, and then any watcher does it. Test: `site::stall::two_freeze_anywhere`.
    pub(super) fn defer_revoke(&self, cpu: CpuId) {
        if self.watch[cpu.index()].set(flag::REVOKE) {
            self.pending_repairs.count();
        }
    }

    /// Takes the tokens that `holder` has on any base, and publishes what waits there. Waits for no lock: a
    /// base whose lock is not to be had keeps its token, and one that could not be published is owed, until
    /// somebody looks again ([`watch`](Self::watch)).
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
            let must_publish = base.revoke().must_publish();
            // Owed before the lock is given back: whoever is stopped after it has left that, whoever is
            // stopped before it the token. Test: `site::stall::two_freeze_anywhere`.
            let watch = &self.watch[id.cpu.index()];
            if must_publish && watch.set(flag::PUBLISH) {
                self.pending_repairs.count();
            }
            drop(base);
            if must_publish && self.try_tell(id, actions) && watch.clear(flag::PUBLISH) {
                self.pending_repairs.count_down();
            }
        }
        if is_complete && self.watch[holder.index()].clear(flag::REVOKE) {
            self.pending_repairs.count_down();
        }
    }

    /// Ends what others have left undone: tokens of CPUs that are absent.
    pub(super) fn finish_repairs(&self, now: Nanos, actions: &mut Actions) {
        if self.pending_repairs.get() == 0 {
            return;
        }
        for cpu in (0..self.bases.cpu_count()).map(CpuId) {
            if self.has_flag(cpu, flag::HANDED) {
                self.complete_mark(cpu, now, actions);
            }
            self.repair_tokens(cpu, actions);
            if self.has_flag(cpu, flag::PUBLISH)
                && self.try_republish(cpu, actions)
                && self.watch[cpu.index()].clear(flag::PUBLISH)
            {
                self.pending_repairs.count_down();
            }
        }
    }

    pub(super) fn repair_tokens(&self, cpu: CpuId, actions: &mut Actions) {
        if self.has_flag(cpu, flag::REVOKE) {
            self.take_back_tokens(cpu, actions);
        }
    }

    /// The same for who may wait; and the tokens that others have on the bases of `cpu`.
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
