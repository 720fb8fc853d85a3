//! Timers change their CPU without being armed: adoption when it goes offline, evacuation when it is
//! isolated.
//!
//! Both take the locks of a base and of the base of the same kind that gets the timers, and hand them over
//! for what they were armed for. A timer that runs stays until its run has ended: it waits on its record, and
//! of an adopted base the end of the run hands it over ([`Bases::finish`]).
//!
//! Source: Linux 6.12, kernel/time/timer.c, `timers_dead_cpu`, `timers_prepare_cpu`. Deviations: the kernel
//! takes care that nothing runs on a dead CPU's bases; evacuation is ours.

use super::bases::{BaseGuard, Bases};
use super::runs::Wait;
use super::timer::Due;
use super::word::TimerWord;
use super::{Base, BaseId, BaseKind, ExpiryChange, Takes};
use crate::lock::RawLock;
use crate::{Context, CpuId};

/// Timers per lock hold of an evacuation.
const CHUNK: usize = 64;

/// What an adoption did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "the adopter may be due earlier"]
pub(crate) struct Adopted {
    pub(crate) moved: usize,
    /// Runs that began on the dead CPU's bases and have not ended.
    pub(crate) still_running: usize,
    /// Of the adopter's bases together.
    pub(crate) change: ExpiryChange,
}

/// What an evacuation did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "the other CPU may be due earlier, and timers may be left"]
pub(crate) struct Evacuated {
    pub(crate) moved: usize,
    /// Timers that are still pending: beyond the limit, or running as well.
    pub(crate) remaining: usize,
    pub(crate) still_running: usize,
    /// Of the other CPU's bases together.
    pub(crate) change: ExpiryChange,
}

impl<L: RawLock, T: Copy> Bases<L, T> {
    /// Gives all timers of `dead` to `onto`, pinned ones too. From now on an arm that asks for a base of
    /// `dead` gets the adopter's, until [`prepare`](Self::prepare). What is closed keeps its timers.
    ///
    /// # Panics
    /// When `onto` was adopted itself, or is `dead`.
    pub(crate) fn adopt(&self, dead: CpuId, onto: CpuId, context: Context) -> Adopted {
        let mut adopted = Adopted::default();
        for kind in BaseKind::ALL {
            let (mut old, mut new) = self.lock_same_kind(dead, onto, kind, context);
            assert!(new.adopter().is_none(), "CPU {onto} is offline and takes no timers");
            if old.is_closed() {
                continue;
            }
            old.takes = Takes::NothingFor(onto);
            let _ = old.revoke();
            let (moved, change) = old.hand_over_some(&mut new, usize::MAX);
            adopted.moved += moved;
            adopted.change = adopted.change.and(change);
            adopted.still_running += old.running();
        }
        adopted
    }

    /// Makes the bases of a CPU that was adopted ready for its return.
    pub(crate) fn prepare(&self, cpu: CpuId, context: Context) {
        for kind in BaseKind::ALL {
            let mut base = self.lock(BaseId { cpu, kind }, context.own_cpu());
            if base.adopter().is_some() {
                base.takes = Takes::Arms;
            }
            base.is_idle = false;
            base.forward(context.now());
        }
    }

    /// Gives up to `limit` timers of `cpu` that others may run to `onto`, a few per lock hold. `None` when
    /// `onto` was adopted: what it got before that its adopter has. What is closed keeps its timers.
    ///
    /// # Panics
    /// When `onto` is `cpu`.
    pub(crate) fn evacuate(
        &self,
        cpu: CpuId,
        onto: CpuId,
        limit: usize,
        context: Context,
    ) -> Option<Evacuated> {
        let mut evacuated = Evacuated::default();
        for kind in BaseKind::ALL.into_iter().filter(|kind| kind.is_pullable()) {
            loop {
                let (mut old, mut new) = self.lock_same_kind(cpu, onto, kind, context);
                if new.adopter().is_some() {
                    return None;
                }
                if old.is_closed() {
                    break;
                }
                let chunk = CHUNK.min(limit - evacuated.moved);
                let (moved, change) = old.hand_over_some(&mut new, chunk);
                evacuated.moved += moved;
                evacuated.change = evacuated.change.and(change);
                if moved < CHUNK {
                    old.runs.leave();
                    evacuated.remaining += old.pending();
                    evacuated.still_running += old.running();
                    break;
                }
            }
        }
        Some(evacuated)
    }

    /// Locks a base and the one that gets its timers, which takes its clock to the present for them.
    pub(super) fn lock_same_kind(
        &self,
        from: CpuId,
        onto: CpuId,
        kind: BaseKind,
        context: Context,
    ) -> (BaseGuard<'_, L, T>, BaseGuard<'_, L, T>) {
        let ids = [from, onto].map(|cpu| BaseId { cpu, kind });
        let (old, mut new) = self.lock_pair(ids[0], ids[1], context.own_cpu());
        new.forward(context.now());
        (old, new)
    }
}

impl<T: Copy> Base<T> {
    /// Hands up to `limit` timers over; returns how many.
    fn hand_over_some(&mut self, new: &mut Self, limit: usize) -> (usize, ExpiryChange) {
        let (mut moved, mut total) = (0, ExpiryChange::default());
        while moved < limit {
            let ready = self.runs.pop_ready();
            let Some(due) = ready.or_else(|| self.queues.pop_pending()) else { break };
            if self.runs.is_running(due.address()) {
                let word = &due.shared().word;
                word.store(word.load().without(TimerWord::COLLECTED));
                self.runs.wait(due.address(), Wait::Rearmed(due));
                continue;
            }
            total = total.and(self.hand_over(new, due));
            moved += 1;
        }
        self.renew();
        (moved, total)
    }

    /// Hands over a timer that is pending here, and was just taken out of its queue or off its record.
    pub(super) fn hand_over(&mut self, new: &mut Self, due: Due<T>) -> ExpiryChange {
        self.pending -= 1;
        let word = &due.shared().word;
        word.store(word.load().without(TimerWord::COLLECTED).at(new.id));
        new.insert_due(due)
    }
}
