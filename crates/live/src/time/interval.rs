//! A moment that comes again and again.
//!
//! Ticks are multiples of the period from the first one on, whenever they are taken, so a period never
//! drifts. Source: tokio 1.54, `tokio::time::Interval` (names, behaviour). Deviations: missed ticks are
//! skipped by default, and counted.

use super::{Duration, Instant, MissedTickBehavior, Precision, Sleep, sleep_until};
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::{Context, Poll, ready};

/// Ticks every `period`, the first time at once.
///
/// # Panics
/// When `period` is zero, or there is no current machine.
///
/// ```
/// use quietcore::Machine;
/// use quietcore::time::{Duration, Instant, interval};
///
/// let machine = Machine::start()?;
/// let _entered = machine.enter();
/// let started = Instant::now();
/// futures_executor::block_on(async {
///     let mut ticks = interval(Duration::from_millis(2));
///     let first = ticks.tick().await; // at once
///     assert!(ticks.tick().await >= first + Duration::from_millis(2));
/// });
/// assert!(started.elapsed() >= Duration::from_millis(2));
/// # machine.shutdown();
/// # Ok::<(), quietcore::StartError>(())
/// ```
#[track_caller]
pub fn interval(period: Duration) -> Interval {
    check(period);
    Interval::starting_with(sleep_until(Instant::now()), period)
}

/// Ticks every `period`, the first time at `start`.
///
/// # Panics
/// When `period` is zero, or there is no current machine.
#[track_caller]
pub fn interval_at(start: Instant, period: Duration) -> Interval {
    check(period);
    Interval::starting_with(sleep_until(start), period)
}

#[track_caller]
fn check(period: Duration) {
    assert!(!period.is_zero(), "the period of an interval must not be zero");
}

/// Ticks at the multiples of a period. Made by [`interval`] and [`interval_at`].
#[derive(Debug)]
pub struct Interval {
    delay: Pin<Box<Sleep>>,
    period: Duration,
    behavior: MissedTickBehavior,
    overruns: u64,
}

impl Interval {
    fn starting_with(delay: Sleep, period: Duration) -> Self {
        Self { delay: Box::pin(delay), period, behavior: MissedTickBehavior::default(), overruns: 0 }
    }

    /// The same with another precision, before its first tick. Default [`Precision::Tick`].
    #[must_use]
    pub fn with_precision(self, precision: Precision) -> Self {
        let delay = Box::pin(self.delay.renewed(precision));
        Self { delay, ..self }
    }

    /// Waits for the next tick, and returns when it was due. Dropping the future before it is ready loses no
    /// tick.
    pub async fn tick(&mut self) -> Instant {
        poll_fn(|context| self.poll_tick(context)).await
    }

    /// Ready with the moment at which the tick was due. No task is woken before the next call then.
    pub fn poll_tick(&mut self, context: &mut Context<'_>) -> Poll<Instant> {
        ready!(self.delay.as_mut().poll(context));
        let due = self.delay.deadline();
        let (next, missed) = self.behavior.next(due, self.delay.now(), self.period);
        self.overruns = self.overruns.saturating_add(missed);
        self.delay.as_mut().reset(next);
        Poll::Ready(due)
    }

    /// The next tick is a period from now.
    pub fn reset(&mut self) {
        self.reset_after(self.period);
    }

    /// The next tick is due now.
    pub fn reset_immediately(&mut self) {
        self.reset_at(self.delay.now());
    }

    /// The next tick is due in `after`.
    pub fn reset_after(&mut self, after: Duration) {
        self.reset_at(self.delay.now().after(after));
    }

    /// The next tick is due at `deadline`, the one after it a period later.
    pub fn reset_at(&mut self, deadline: Instant) {
        self.delay.as_mut().reset(deadline);
    }

    /// What the interval does about missed ticks. Default [`MissedTickBehavior::Skip`], which is not tokio's.
    #[must_use]
    pub const fn missed_tick_behavior(&self) -> MissedTickBehavior {
        self.behavior
    }

    /// Says what to do about missed ticks from now on.
    pub const fn set_missed_tick_behavior(&mut self, behavior: MissedTickBehavior) {
        self.behavior = behavior;
    }

    /// The time from tick to tick.
    #[must_use]
    pub const fn period(&self) -> Duration {
        self.period
    }

    /// How many ticks were left out so far, because they were over when the one before was taken. With
    /// [`MissedTickBehavior::Burst`] none is left out.
    #[must_use]
    pub const fn overruns(&self) -> u64 {
        self.overruns
    }
}
