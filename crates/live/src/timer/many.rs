//! Many timers armed at once.
//!
//! A program that moves thousands of timers, one after the other, waits for memory most of the time: a timer
//! that was not used lately is a cache miss, and so is each of its neighbours in the queue. Here timers are
//! taken [`TOGETHER`], so that their misses come together, and one lock arms all of those that are alike.
//!
//! Those that are not, such as exact or periodic timers, are armed one by one. Source: none; the kernel arms
//! timers one by one.

use super::callback::TimerHandle;
use super::raw::CallbackTimer;
use crate::machine::ArmError;
use crate::{Machine, Nanos};
use core::panic::Location;
use quietcore_core::{ArmOfMany, TickKind, TimerKind as _};
use quietcore_wheel::prefetch;

/// As many misses as a processor has under way, and as many arms as others may have to wait for.
const TOGETHER: usize = 16;

/// A timer, and what it is armed for.
type ArmAt<'t> = (&'t CallbackTimer, Nanos);

impl Machine {
    /// Arms each timer for its moment: as [`arm_at`](CallbackTimer::arm_at) for one after the other, but much
    /// faster where there are many that were not used lately. Says how many were pending before.
    ///
    /// For a loop that moves timers by the hundred, such as the idle timeouts of the connections of a batch
    /// of packets. Timers need not be of this machine. Cost: a lock for 16 of them; no allocation. Any
    /// thread.
    ///
    /// # Errors
    /// The first error of an arm. All timers whose arm has none are armed.
    ///
    /// ```
    /// # use quietcore::{Machine, Nanos, TimerOptions};
    /// # let machine = Machine::start()?;
    /// let timeouts: Vec<_> = (0..1000).map(|_| machine.timer(TimerOptions::new(), |_| {})).collect();
    /// let in_a_minute = Nanos(machine.now().0 + 60_000_000_000);
    /// machine.arm_many(timeouts.iter().map(|timeout| (timeout, in_a_minute)))?;
    /// assert!(timeouts.iter().all(|timeout| timeout.is_pending()));
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn arm_many<'t, T>(
        &self,
        arms: impl IntoIterator<Item = (&'t T, impl Into<Nanos>)>,
    ) -> Result<usize, ArmError>
    where
        T: AsRef<CallbackTimer> + 't,
    {
        let mut arms = arms.into_iter().map(|(timer, at)| (timer.as_ref(), at.into()));
        let mut many = Many { machine: self, location: Location::caller(), pending: 0, error: None };
        let mut batch = Batch::take(&mut arms);
        while let Some(present) = batch {
            // The memory of the next ones comes while these are armed.
            batch = Batch::take(&mut arms);
            many.arm(present.arms());
        }
        many.error.map_or(Ok(many.pending), Err)
    }
}

/// Some timers, whose memory was asked for.
struct Batch<'t> {
    arms: [ArmAt<'t>; TOGETHER],
    count: usize,
}

impl<'t> Batch<'t> {
    /// The next ones, if any are left.
    fn take(arms: &mut impl Iterator<Item = ArmAt<'t>>) -> Option<Self> {
        let mut batch = Self { arms: [arms.next()?; TOGETHER], count: 1 };
        for (place, arm) in batch.arms[1..].iter_mut().zip(arms) {
            *place = arm;
            batch.count += 1;
        }
        batch.arms().iter().for_each(|(timer, _)| prefetch(timer.0.address().as_ptr()));
        Some(batch)
    }

    fn arms(&self) -> &[ArmAt<'t>] {
        &self.arms[..self.count]
    }
}

/// What came of those so far.
struct Many<'m> {
    machine: &'m Machine,
    location: &'static Location<'static>,
    /// Timers that were pending before.
    pending: usize,
    /// The first.
    error: Option<ArmError>,
}

impl Many<'_> {
    fn arm(&mut self, batch: &[ArmAt<'_>]) {
        let Some(furthest) = batch.iter().map(|(_, at)| *at).max() else { return };
        let context = self.machine.context_for(furthest);
        // The same timer may come twice, and its last arm counts: one beyond the wheel's reach ends its usual
        // ones.
        if self.machine.is_far(furthest, context.now()) {
            for (timer, at) in batch {
                let armed = self.arm_alone(timer, *at);
                self.note(armed);
            }
            return;
        }
        let mut arms = [const { ArmOfMany::none() }; TOGETHER];
        for (place, (timer, at)) in arms.iter_mut().zip(batch) {
            if self.is_own(timer)
                && let Some(timer) = timer.0.for_usual_arm(*at, context.now())
            {
                *place = ArmOfMany::new(timer, TickKind::not_before(*at, Nanos(0)));
            }
        }
        self.machine.arm_many_usual(&mut arms[..batch.len()], context);
        for (arm, (timer, at)) in arms.iter().zip(batch) {
            let armed = arm.was_pending().map_or_else(|| self.arm_alone(timer, *at), Ok);
            self.note(armed);
        }
    }

    fn note(&mut self, armed: Result<bool, ArmError>) {
        match armed {
            Ok(was_pending) => self.pending += usize::from(was_pending),
            Err(error) => _ = self.error.get_or_insert(error),
        }
    }

    /// Whether a timer is of this machine, which lives, and nothing of it is written down at each arm.
    fn is_own(&self, timer: &CallbackTimer) -> bool {
        core::ptr::eq(timer.machine(), self.machine) && self.machine.takes_plain_arms()
    }

    fn arm_alone(&self, timer: &CallbackTimer, at: Nanos) -> Result<bool, ArmError> {
        let context = timer.0.machine_for_arm(self.location)?.context_for(at);
        timer.0.arm_once(at, context)
    }
}

impl AsRef<CallbackTimer> for CallbackTimer {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl AsRef<CallbackTimer> for TimerHandle {
    #[inline]
    fn as_ref(&self) -> &CallbackTimer {
        self
    }
}
