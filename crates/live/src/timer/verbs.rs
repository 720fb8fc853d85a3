//! What can be done with a callback timer, from any thread and inside of callbacks.
//!
//! An arm costs the lock of one base, and a cancel too; neither allocates or waits. How they do it: `arm.rs`,
//! `wait.rs`.

use super::raw::Name;
use super::wait::{CancelAndWait, WouldBlock};
use crate::machine::ArmError;
use crate::{CpuId, Machine, Nanos};
use core::panic::Location;
use core::time::Duration;
use quietcore_core::{Arm, Cancelled};

/// Arms and cancels a timer with a callback. A [`TimerHandle`](super::TimerHandle) is one, and so is what
/// [`RawTimer::at`](super::RawTimer::at) returns. Any thread may call everything; only
/// [`cancel_sync`](Self::cancel_sync) waits.
///
/// ```
/// use core::time::Duration;
/// use quietcore::{Machine, timer::CallbackTimer};
///
/// let machine = Machine::start()?;
/// let timer = machine.timer(Default::default(), |_run| {});
/// let timer: &CallbackTimer = &timer;
/// assert!(!timer.arm_after(Duration::from_secs(60))?);
/// assert!(timer.arm_after(Duration::from_secs(90))?, "it was pending");
/// assert!(timer.cancel());
/// # machine.shutdown();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct CallbackTimer(pub(super) Name);

impl CallbackTimer {
    /// Arms the timer for a moment on the machine's clock, once; says whether it was pending before. A
    /// moment that is over is due at once. Cost: the lock of a base.
    ///
    /// # Errors
    /// When the timer or its machine was shut down; of a pinned timer, when there is no lane for it.
    ///
    /// ```
    /// # use quietcore::{Machine, Nanos};
    /// # let machine = Machine::start()?;
    /// # let timer = machine.timer(Default::default(), |_| {});
    /// let was_pending = timer.arm_at(Nanos(machine.now().0 + 5_000_000_000))?;
    /// assert!(!was_pending);
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    #[inline]
    pub fn arm_at(&self, at: impl Into<Nanos>) -> Result<bool, ArmError> {
        let context = self.0.armed_at(Location::caller())?.coarse_context();
        self.0.arm_once(at.into(), context)
    }

    /// Arms the timer for `delay` from now. Otherwise as [`arm_at`](Self::arm_at), and a reading of the
    /// clock.
    ///
    /// # Errors
    /// As for [`arm_at`](Self::arm_at).
    ///
    /// ```
    /// # use core::time::Duration;
    /// # let machine = quietcore::Machine::start()?;
    /// # let timer = machine.timer(Default::default(), |_| {});
    /// timer.arm_after(Duration::from_millis(250))?;
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    #[inline]
    pub fn arm_after(&self, delay: Duration) -> Result<bool, ArmError> {
        let machine = self.0.armed_at(Location::caller())?;
        let now = machine.clock.now();
        self.0.arm_once(after(now, delay), machine.context(now))
    }

    /// Arms the timer on `cpu`, once: it runs on its lane and on no other thread. This holds for one arm;
    /// [`reduce`](Self::reduce) and [`mod_pending`](Self::mod_pending) take it to the lane that calls them,
    /// or that is nearest to the caller. A timer that runs stays where it runs, so an arm in its own callback
    /// does not take it to another CPU; a callback that goes round arms a timer per CPU.
    ///
    /// # Errors
    /// [`ArmError::NoLane`] when no lane plays that CPU; otherwise as for [`arm_at`](Self::arm_at).
    ///
    /// ```
    /// # use quietcore::{ArmError, CpuId, Machine};
    /// # let machine = Machine::start()?;
    /// # let timer = machine.timer(Default::default(), |_| {});
    /// let cpu = CpuId::default();
    /// assert_eq!(timer.arm_on(cpu, machine.now()), Err(ArmError::NoLane { cpu })); // it has no lanes
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn arm_on(&self, cpu: CpuId, at: impl Into<Nanos>) -> Result<bool, ArmError> {
        let context = self.0.armed_at(Location::caller())?.coarse_context();
        self.0.arm_on(cpu, at.into(), context)
    }

    /// Arms the timer for `first` and for every `period` after that. Says whether it was pending before.
    ///
    /// The next run is armed when one has returned, for the first multiple that is ahead then: a slow
    /// callback skips periods ([`Run::overruns`](super::Run::overruns) counts them) and never drifts. Any
    /// other arm for a moment ends the periods, as a cancel does; [`reduce`](Self::reduce) and
    /// [`mod_pending`](Self::mod_pending) move one run and leave the others. A period of 0 counts as 1 ns:
    /// one run per tick.
    ///
    /// # Errors
    /// As for [`arm_at`](Self::arm_at).
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use quietcore::{Machine, Precision, TimerOptions};
    /// # use std::sync::mpsc;
    /// # let machine = Machine::start()?;
    /// let (sender, receiver) = mpsc::channel();
    /// let timer = machine.timer(TimerOptions::new().precision(Precision::Tick), move |run| {
    ///     sender.send(run.scheduled()).expect("somebody waits");
    /// });
    /// let first = machine.now();
    /// timer.arm_periodic(first, Duration::from_millis(2))?;
    /// for scheduled in receiver.iter().take(3) {
    ///     assert_eq!((scheduled.0 - first.0) % 2_000_000, 0);
    /// }
    /// timer.cancel();
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn arm_periodic(&self, first: impl Into<Nanos>, period: Duration) -> Result<bool, ArmError> {
        let context = self.0.armed_at(Location::caller())?.coarse_context();
        let period = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX).max(1);
        self.0.arm_course(first.into(), Nanos(period), context)
    }

    /// Arms the timer for `at`, unless it is pending for that moment or an earlier one. Says whether it was
    /// pending.
    ///
    /// # Errors
    /// As for [`arm_at`](Self::arm_at).
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use quietcore::{Machine, Nanos};
    /// # let machine = Machine::start()?;
    /// # let timer = machine.timer(Default::default(), |_| {});
    /// timer.arm_after(Duration::from_secs(60))?;
    /// assert!(timer.reduce(Nanos(machine.now().0 + 1_000_000_000))?);
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn reduce(&self, at: impl Into<Nanos>) -> Result<bool, ArmError> {
        let context = self.0.armed_at(Location::caller())?.coarse_context();
        self.0.modify(Arm::reduce(at.into()), context)
    }

    /// Arms the timer for `at`, if it is pending; says whether it was.
    ///
    /// # Errors
    /// As for [`arm_at`](Self::arm_at).
    ///
    /// ```
    /// # use quietcore::{Machine, Nanos};
    /// # let machine = Machine::start()?;
    /// # let timer = machine.timer(Default::default(), |_| {});
    /// assert!(!timer.mod_pending(machine.now())?);
    /// assert!(!timer.is_pending());
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn mod_pending(&self, at: impl Into<Nanos>) -> Result<bool, ArmError> {
        let context = self.0.armed_at(Location::caller())?.coarse_context();
        self.0.modify(Arm::mod_pending(at.into()), context)
    }

    /// Takes the timer out and ends its periods; says whether it was pending. A run that has begun goes on,
    /// and is not waited for. Cost: a lock if it is pending, else a load or two.
    ///
    /// ```
    /// # let machine = quietcore::Machine::start()?;
    /// # let timer = machine.timer(Default::default(), |_| {});
    /// assert!(!timer.cancel());
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn cancel(&self) -> bool {
        self.0.cancel()
    }

    /// Cancels as [`cancel`](Self::cancel) does, and says whether a run is under way:
    /// [`Cancelled::Running`] then, whatever was pending. After any other answer no run of it is left, and
    /// none begins before the next arm. Cost: a lock.
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use quietcore::{Machine, timer::Cancelled};
    /// # let machine = Machine::start()?;
    /// # let timer = machine.timer(Default::default(), |_| {});
    /// assert_eq!(timer.try_cancel(), Cancelled::Idle);
    /// timer.arm_after(Duration::from_secs(60))?;
    /// assert_eq!(timer.try_cancel(), Cancelled::WasPending);
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_cancel(&self) -> Cancelled {
        self.0.try_cancel()
    }

    /// Takes the timer out, and returns when no run of it is left; says whether it was pending. Until
    /// somebody arms it again it does not run.
    ///
    /// # Errors
    /// [`WouldBlock`] when a run of it is under way and this thread must not wait for it: inside of a
    /// callback of any timer, and on a lane. The timer is cancelled all the same.
    ///
    /// ```
    /// # use core::time::Duration;
    /// # let machine = quietcore::Machine::start()?;
    /// # let timer = machine.timer(Default::default(), |_| {});
    /// timer.arm_after(Duration::from_secs(60))?;
    /// assert!(timer.cancel_sync()?);
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cancel_sync(&self) -> Result<bool, WouldBlock> {
        self.0.cancel_sync()
    }

    /// The same for a task: the future is ready when no run of the timer is left, and says whether it was
    /// pending. Nothing happens before its first poll. A task that a callback waits for must not
    /// await this.
    ///
    /// ```
    /// # use core::time::Duration;
    /// # let machine = quietcore::Machine::start()?;
    /// let timer = machine.timer(Default::default(), |_run| {});
    /// timer.arm_after(Duration::from_secs(60))?;
    /// # futures_executor_stand_in(async {
    /// assert!(timer.cancel_and_wait().await);
    /// # });
    /// # machine.shutdown();
    /// # fn futures_executor_stand_in(future: impl Future<Output = ()>) {
    /// #     let mut context = core::task::Context::from_waker(core::task::Waker::noop());
    /// #     assert!(std::pin::pin!(future).poll(&mut context).is_ready());
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn cancel_and_wait(&self) -> CancelAndWait<'_> {
        CancelAndWait::new(self)
    }

    /// Takes the timer out for good: every later arm is refused. Says whether it was pending. A run that has
    /// begun goes on; [`cancel_sync`](Self::cancel_sync) waits for it.
    ///
    /// ```
    /// # use quietcore::{ArmError, Machine};
    /// # let machine = Machine::start()?;
    /// # let timer = machine.timer(Default::default(), |_| {});
    /// assert!(!timer.shutdown());
    /// assert_eq!(timer.arm_at(machine.now()), Err(ArmError::ShutDown));
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shutdown(&self) -> bool {
        self.0.shutdown()
    }

    /// Whether it is armed and neither cancelled nor handed out to run. While other threads arm it this says
    /// what was. Cost: a load.
    ///
    /// ```
    /// # use core::time::Duration;
    /// # let machine = quietcore::Machine::start()?;
    /// # let timer = machine.timer(Default::default(), |_| {});
    /// timer.arm_after(Duration::from_secs(60))?;
    /// assert!(timer.is_pending());
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.0.timer().is_pending()
    }

    /// Whether a run of it has begun and not ended. Cost: a lock.
    ///
    /// ```
    /// # let machine = quietcore::Machine::start()?;
    /// # let timer = machine.timer(Default::default(), |_| {});
    /// assert!(!timer.is_running());
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.0.is_running()
    }

    /// The machine that it was made for.
    ///
    /// ```
    /// # let machine = quietcore::Machine::start()?;
    /// # let timer = machine.timer(Default::default(), |_| {});
    /// assert!(core::ptr::eq(timer.machine(), machine));
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn machine(&self) -> &'static Machine {
        self.0.timer().machine()
    }
}

/// `delay` after `now`; the end of time is never.
fn after(now: Nanos, delay: Duration) -> Nanos {
    let delay = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
    Nanos(now.0.saturating_add(delay))
}
