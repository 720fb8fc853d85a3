//! Many timers armed under one lock.
//!
//! Timers that lie anywhere cost one cache miss after the other: a timer's own memory, then its neighbours',
//! whose addresses are in it. Here the first misses of all timers come together, and then the second ones.
//! Source: none; the kernel arms timers one by one.

use super::bases::Bases;
use super::timer::TimerRef;
use super::word::BaseId;
use super::{ExpiryChange, arm::FastArm};
use crate::lock::RawLock;
use crate::{Context, Nanos};

/// A timer that is armed with others, and what became of it.
#[derive(Debug)]
pub struct ArmOfMany<T> {
    timer: Option<TimerRef<T>>,
    expires: Nanos,
    was_pending: Option<bool>,
}

impl<T> ArmOfMany<T> {
    /// Of no timer.
    #[must_use]
    pub const fn none() -> Self {
        Self { timer: None, expires: Nanos(0), was_pending: None }
    }

    /// An arm of `timer` for `expires`, as [`Arm::at`](crate::Arm::at).
    #[inline]
    #[must_use]
    pub const fn new(timer: TimerRef<T>, expires: Nanos) -> Self {
        Self { timer: Some(timer), expires, was_pending: None }
    }

    /// Whether the timer was pending; `None` if it was not armed.
    #[inline]
    #[must_use]
    pub const fn was_pending(&self) -> Option<bool> {
        self.was_pending
    }
}

impl<T> Copy for ArmOfMany<T> {}

impl<T> Clone for ArmOfMany<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<L: RawLock, T: Copy> Bases<L, T> {
    /// [`arm_fast`](Self::arm_fast) for many, under one lock.
    pub(crate) fn arm_many_fast(
        &self,
        arms: &mut [ArmOfMany<T>],
        onto: BaseId,
        context: Context,
    ) -> ExpiryChange {
        let mut change = ExpiryChange::default();
        let timers = arms.iter().filter_map(|arm| arm.timer);
        let word = |timer: &TimerRef<T>| timer.shared().word.load();
        // All are looked at, so that their memory comes together.
        if timers.clone().filter(|timer| word(timer).may_be_fast_at(onto)).count() == 0 {
            return change;
        }
        let mut base = self.lock(onto, context.own_cpu());
        // Of a timer that belongs to another base the links are not ours to read.
        for timer in timers.filter(|timer| word(timer).is_fast_at(onto)) {
            base.queues.prefetch_neighbours(timer);
        }
        for arm in arms {
            let Some(timer) = arm.timer else { continue };
            let armed = base.arm_fast(timer, self.length.floor(arm.expires), context.now());
            let Some(FastArm { was_pending, change: own }) = armed else { continue };
            arm.was_pending = Some(was_pending);
            change = change.and(own);
        }
        change
    }
}
