//! Taking timers out: at once, for good, or only if no run of them is under way; what is asked of one.
//!
//! No call here waits for a run: a caller that must not go on before it has ended looks again when the world
//! says that a run has ended. A timer that was cancelled while it was the first of an idle CPU leaves that
//! CPU's published expiry as it is: a CPU looks once for nothing, which is cheaper than to publish. So no
//! call here has actions. Source: Linux 6.12, kernel/time/timer.c, `timer_delete`,
//! `__try_to_del_timer_sync`, `__timer_delete`. Deviation: trying and shutting down are two calls.

use super::{AnyTimer, ArmRefusal, Machine};
use crate::base::{Cancelled, TimerKind};
use crate::{Context, CpuId, Nanos, RawLock, TimerName};
use alloc::vec::Vec;

impl<L: RawLock, T: Copy> Machine<L, T> {
    /// Takes `timer` out; says whether it was pending. A run that has begun goes on.
    ///
    /// # Errors
    /// When there is no such timer.
    #[inline(always)]
    pub fn cancel<K: TimerKind>(
        &self,
        timer: impl AnyTimer<T, K>,
        context: Context,
    ) -> Result<bool, ArmRefusal> {
        let timer = timer.find(self.bases.store()).ok_or(ArmRefusal::UnknownTimer)?;
        Ok(self.bases.cancel(timer, context) == Cancelled::WasPending)
    }

    /// Takes `timer` out, but does nothing while a run of it has not ended, and says so: the building block
    /// of a cancel that waits. A [detached](crate::TimerOptions::detached) timer never runs. Cost: a lock.
    ///
    /// # Errors
    /// When there is no such timer.
    pub fn cancel_unless_running<K: TimerKind>(
        &self,
        timer: impl AnyTimer<T, K>,
        context: Context,
    ) -> Result<Cancelled, ArmRefusal> {
        let timer = timer.find(self.bases.store()).ok_or(ArmRefusal::UnknownTimer)?;
        Ok(self.bases.cancel_unless_running(timer, context))
    }

    /// Takes `timer` out and refuses every arm from now on; says whether it was pending. A run that has begun
    /// goes on: [`is_running`](Self::is_running) tells when it has ended, and no other one follows it.
    ///
    /// # Errors
    /// When there is no such timer.
    pub fn shutdown<K: TimerKind>(
        &self,
        timer: impl AnyTimer<T, K>,
        context: Context,
    ) -> Result<bool, ArmRefusal> {
        let timer = timer.find(self.bases.store()).ok_or(ArmRefusal::UnknownTimer)?;
        Ok(self.bases.shutdown(timer, context) == Cancelled::WasPending)
    }

    /// Takes out every timer that is pending on a CPU that `is_of` names, and of which `take` makes
    /// something, and puts that into `taken`; other timers stay. `take` is called under the lock of the
    /// timer's base, which is held until those of the base are taken out: so it arms nothing, and does not
    /// allocate. A timer that runs is not pending. False when timers were armed meanwhile that were not
    /// looked at. From any thread. Cost: the lock of each base for as long as its timers take, and memory for
    /// as many.
    pub fn cancel_all<R>(
        &self,
        is_of: impl Fn(CpuId) -> bool,
        taken: &mut Vec<R>,
        mut take: impl FnMut(T, TimerName<T>) -> Option<R>,
    ) -> bool {
        let mut is_whole = true;
        for id in self.base_ids().filter(|id| is_of(id.cpu)) {
            is_whole &= self.bases.cancel_all(id, taken, &mut take);
        }
        is_whole
    }

    /// What `timer` is armed for, as its run will be told
    /// ([`ExpiredTimer::expires`](crate::ExpiredTimer::expires)); `None` when it is not pending. From any
    /// thread. Cost: a lock.
    ///
    /// # Errors
    /// When there is no such timer.
    pub fn armed_for<K: TimerKind>(
        &self,
        timer: impl AnyTimer<T, K>,
        context: Context,
    ) -> Result<Option<Nanos>, ArmRefusal> {
        let timer = timer.find(self.bases.store()).ok_or(ArmRefusal::UnknownTimer)?;
        Ok(self.bases.armed_for(timer, context))
    }

    /// Whether a run of `timer` has begun and not ended.
    ///
    /// # Errors
    /// When there is no such timer.
    pub fn is_running<K: TimerKind>(
        &self,
        timer: impl AnyTimer<T, K>,
        context: Context,
    ) -> Result<bool, ArmRefusal> {
        let timer = timer.find(self.bases.store()).ok_or(ArmRefusal::UnknownTimer)?;
        Ok(self.bases.is_running(timer, context))
    }
}
