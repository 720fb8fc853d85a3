//! What can be done with a callback timer, from any thread and inside of callbacks.
//!
//! An arm costs the lock of one base, and a cancel too; neither allocates or waits. A timer that has a
//! course pays for its lock as well: an arm for a moment ends it, as a cancel does, so that no period begins
//! again behind somebody's back. An arm that saw no course looks again afterwards: had another thread begun
//! one before, as the base's lock orders them, it is ended then.

use super::course::{Locked, Planned, before};
use super::raw::{Name, RawTimer, Reference};
use super::wait::{CancelAndWait, WouldBlock};
use crate::machine::ArmError;
use crate::{CpuId, Machine, Nanos};
use core::time::Duration;
use quietcore_core::{Actions, Armed, Cancelled, Context, Expiry};
use quietcore_wheel::Shape;

/// Of a coarse timer: beyond this many ticks the wheel would hand it out early. Half of the wheel's reach,
/// whose clock may be behind.
const FAR: u64 = Shape::<9, 64>::LONGEST / 2;

/// Arms and cancels a timer with a callback. A [`TimerHandle`](super::TimerHandle) is one, and so is what
/// [`RawTimer::at`] returns. Any thread may call everything; only [`cancel_sync`](Self::cancel_sync) waits.
///
/// ```
/// use core::time::Duration;
/// use quietcore_live::{CallbackTimer, Machine};
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

/// How an arm treats a timer that is pending already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Arm,
    Reduce,
    ModPending,
}

impl CallbackTimer {
    /// Arms the timer for a moment on the machine's clock, once; says whether it was pending before. A
    /// moment that is over is due at once. Cost: the lock of a base.
    ///
    /// # Errors
    /// When the timer or its machine was shut down; of a pinned timer, when there is no lane for it.
    ///
    /// ```
    /// # use quietcore_live::{Machine, Nanos};
    /// # let machine = Machine::start()?;
    /// # let timer = machine.timer(Default::default(), |_| {});
    /// let was_pending = timer.arm_at(Nanos(machine.now().0 + 5_000_000_000))?;
    /// assert!(!was_pending);
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn arm_at(&self, at: impl Into<Nanos>) -> Result<bool, ArmError> {
        let context = self.0.alive()?.coarse_context();
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
    /// # let machine = quietcore_live::Machine::start()?;
    /// # let timer = machine.timer(Default::default(), |_| {});
    /// timer.arm_after(Duration::from_millis(250))?;
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn arm_after(&self, delay: Duration) -> Result<bool, ArmError> {
        let machine = self.0.alive()?;
        let now = machine.clock.now();
        self.0.arm_once(after(now, delay), machine.context(now))
    }

    /// Arms the timer on `cpu`, once: it runs on its lane and on no other thread. This holds for one arm;
    /// [`reduce`](Self::reduce) and [`mod_pending`](Self::mod_pending) take it to the lane that calls them,
    /// or that is nearest to the caller.
    ///
    /// # Errors
    /// [`ArmError::NoLane`] when no lane plays that CPU; otherwise as for [`arm_at`](Self::arm_at).
    ///
    /// ```
    /// # use quietcore_live::{ArmError, CpuId, Machine};
    /// # let machine = Machine::start()?;
    /// # let timer = machine.timer(Default::default(), |_| {});
    /// let cpu = CpuId::default();
    /// assert_eq!(timer.arm_on(cpu, machine.now()), Err(ArmError::NoLane { cpu })); // it has no lanes
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn arm_on(&self, cpu: CpuId, at: impl Into<Nanos>) -> Result<bool, ArmError> {
        let context = self.0.alive()?.coarse_context();
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
    /// # use quietcore_live::{Machine, Precision, TimerOptions};
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
    pub fn arm_periodic(&self, first: impl Into<Nanos>, period: Duration) -> Result<bool, ArmError> {
        let context = self.0.alive()?.coarse_context();
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
    /// # use quietcore_live::{Machine, Nanos};
    /// # let machine = Machine::start()?;
    /// # let timer = machine.timer(Default::default(), |_| {});
    /// timer.arm_after(Duration::from_secs(60))?;
    /// assert!(timer.reduce(Nanos(machine.now().0 + 1_000_000_000))?);
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reduce(&self, at: impl Into<Nanos>) -> Result<bool, ArmError> {
        let context = self.0.alive()?.coarse_context();
        self.0.modify(at.into(), Verb::Reduce, context)
    }

    /// Arms the timer for `at`, if it is pending; says whether it was.
    ///
    /// # Errors
    /// As for [`arm_at`](Self::arm_at).
    ///
    /// ```
    /// # use quietcore_live::{Machine, Nanos};
    /// # let machine = Machine::start()?;
    /// # let timer = machine.timer(Default::default(), |_| {});
    /// assert!(!timer.mod_pending(machine.now())?);
    /// assert!(!timer.is_pending());
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn mod_pending(&self, at: impl Into<Nanos>) -> Result<bool, ArmError> {
        let context = self.0.alive()?.coarse_context();
        self.0.modify(at.into(), Verb::ModPending, context)
    }

    /// Takes the timer out and ends its periods; says whether it was pending. A run that has begun goes on,
    /// and is not waited for. Cost: a lock if it is pending, else a load or two.
    ///
    /// ```
    /// # let machine = quietcore_live::Machine::start()?;
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
    /// # use quietcore_live::{Cancelled, Machine};
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
    /// # let machine = quietcore_live::Machine::start()?;
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
    /// # let machine = quietcore_live::Machine::start()?;
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
    /// # use quietcore_live::{ArmError, Machine};
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
    /// # let machine = quietcore_live::Machine::start()?;
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
    /// # let machine = quietcore_live::Machine::start()?;
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
    /// # let machine = quietcore_live::Machine::start()?;
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

impl Name {
    #[inline]
    fn alive(&self) -> Result<&'static Machine, ArmError> {
        let machine = self.timer().machine();
        machine.check_alive().map(|()| machine)
    }

    #[inline]
    fn arm_once(self, at: Nanos, context: Context) -> Result<bool, ArmError> {
        let course = &self.timer().course;
        if course.follows() || self.is_far(at, context.now) {
            return self.arm_slowly(at, context);
        }
        course.due.store(at);
        let was_pending = self.put(at, Verb::Arm, context)?;
        // See the file's comment.
        if course.follows() {
            let _ = self.arm_slowly(at, context)?;
        }
        Ok(was_pending)
    }

    /// Whether a coarse timer would be handed out before its time.
    #[inline]
    fn is_far(&self, at: Nanos, now: Nanos) -> bool {
        let tick = self.timer().machine().core.settings().tick.nanos().0;
        at.since(now).0 >= tick.saturating_mul(FAR) && self.timer().slack().is_none()
    }

    /// Ends the course, or begins one that is only far ahead.
    #[cold]
    fn arm_slowly(self, at: Nanos, context: Context) -> Result<bool, ArmError> {
        if self.is_far(at, context.now) {
            return self.arm_course(at, Nanos(0), context);
        }
        self.under_lock(at, |course, actions| {
            course.end();
            self.enqueue(at, Verb::Arm, (context, actions))
        })
    }

    fn arm_course(self, at: Nanos, period: Nanos, context: Context) -> Result<bool, ArmError> {
        self.under_lock(at, |course, actions| {
            course.begin(at, period);
            let armed = self.enqueue(at, Verb::Arm, (context, actions));
            if armed.is_err() {
                course.end();
            }
            armed
        })
    }

    fn modify(self, at: Nanos, verb: Verb, context: Context) -> Result<bool, ArmError> {
        let timer = self.timer();
        let is_pending = timer.is_pending();
        if self.is_far(at, context.now) && !is_pending && verb == Verb::Reduce {
            return self.arm_slowly(at, context);
        }
        // What the base does is the truth: this is for a run to know its moment to the nanosecond.
        let moves = match verb {
            Verb::Arm => true,
            Verb::Reduce => !is_pending || at < timer.course.due.load(),
            Verb::ModPending => is_pending,
        };
        if moves {
            timer.course.due.store(at);
        }
        self.put(at, verb, context)
    }

    fn arm_on(self, cpu: CpuId, at: Nanos, context: Context) -> Result<bool, ArmError> {
        let machine = self.timer().machine();
        if !machine.lane_set.contains(cpu) {
            return Err(ArmError::NoLane { cpu });
        }
        self.under_lock(at, |course, actions| {
            course.end();
            let armed = match self.reference() {
                Reference::Tick(timer) => machine.core.arm_on(timer, (cpu, before(at)), context, actions),
                Reference::Exact(timer, slack) => {
                    let expiry = Expiry::with_slack(at.0, slack);
                    machine.core.arm_exact_on(timer, (cpu, expiry), context, actions)
                }
            };
            Ok(armed?)
        })
    }

    /// Changes the course together with the timer.
    fn under_lock(
        self,
        at: Nanos,
        change: impl FnOnce(&mut Locked<'_>, &mut Actions) -> Result<Armed, ArmError>,
    ) -> Result<bool, ArmError> {
        let timer = self.timer();
        let armed = timer.machine().act(|actions| {
            let mut course = timer.course.lock();
            timer.course.due.store(at);
            change(&mut course, actions)
        })?;
        Ok(self.armed(armed, at))
    }

    #[inline]
    fn put(self, at: Nanos, verb: Verb, context: Context) -> Result<bool, ArmError> {
        let armed = self.timer().machine().act(|actions| self.enqueue(at, verb, (context, actions)))?;
        Ok(self.armed(armed, at))
    }

    /// With no lock held: lanes that doze look once per tick.
    #[inline]
    fn armed(self, armed: Armed, at: Nanos) -> bool {
        let timer = self.timer();
        if timer.slack().is_some() || timer.is_pinned() {
            timer.machine().interrupt_doze(armed.base, at);
        }
        armed.was_pending
    }

    #[inline]
    fn enqueue(
        self,
        at: Nanos,
        verb: Verb,
        (context, actions): (Context, &mut Actions),
    ) -> Result<Armed, ArmError> {
        let timer = self.timer();
        let core = &timer.machine().core;
        let context = timer.place(context)?;
        let is_lent = timer.is_lent();
        let armed = match (self.reference(), verb) {
            (Reference::Tick(timer), Verb::Arm) if is_lent => {
                core.arm_floating(timer, before(at), context, actions)
            }
            (Reference::Tick(timer), Verb::Arm) => core.arm(timer, before(at), context, actions),
            (Reference::Tick(timer), Verb::Reduce) => core.reduce(timer, before(at), context, actions),
            (Reference::Tick(timer), Verb::ModPending) => {
                core.mod_pending(timer, before(at), context, actions)
            }
            (Reference::Exact(timer, slack), verb) => {
                let expiry = Expiry::with_slack(at.0, slack);
                match verb {
                    Verb::Arm if is_lent => core.arm_exact_floating(timer, expiry, context, actions),
                    Verb::Arm => core.arm_exact(timer, expiry, context, actions),
                    Verb::Reduce => core.reduce_exact(timer, expiry, context, actions),
                    Verb::ModPending => core.mod_pending_exact(timer, expiry, context, actions),
                }
            }
        };
        Ok(armed?)
    }

    #[inline]
    pub(super) fn cancel(self) -> bool {
        let timer = self.timer();
        let machine = timer.machine();
        if machine.is_forked() {
            return false;
        }
        timer.course.end();
        // Nothing here looks at the time.
        let context = machine.context(Nanos(0));
        let cancelled = match self.reference() {
            Reference::Tick(timer) => machine.core.cancel(timer, context),
            Reference::Exact(timer, _) => machine.core.cancel_exact(timer, context),
        };
        cancelled.is_ok_and(|was_pending| was_pending)
    }

    pub(super) fn shutdown(self) -> bool {
        let timer = self.timer();
        let machine = timer.machine();
        if machine.is_forked() {
            return false;
        }
        timer.course.end();
        let context = machine.context(Nanos(0));
        let cancelled = match self.reference() {
            Reference::Tick(timer) => machine.core.shutdown(timer, context),
            Reference::Exact(timer, _) => machine.core.shutdown_exact(timer, context),
        };
        cancelled.is_ok_and(|was_pending| was_pending)
    }

    fn is_running(self) -> bool {
        let machine = self.timer().machine();
        if machine.is_forked() {
            return false;
        }
        let context = machine.context(Nanos(0));
        let is_running = match self.reference() {
            Reference::Tick(timer) => machine.core.is_running(timer, context),
            Reference::Exact(timer, _) => machine.core.is_running_exact(timer, context),
        };
        is_running.is_ok_and(|is_running| is_running)
    }

    /// By the runner, after what was planned and before the machine is told that this run is over.
    pub(super) fn follow(self, planned: Planned, now: Nanos) {
        let timer = self.timer();
        let machine = timer.machine();
        if machine.check_alive().is_err() {
            return;
        }
        machine.act(|actions| {
            let mut course = timer.course.lock();
            if timer.is_pending() {
                return;
            }
            if let Some(at) = course.next(planned, now) {
                timer.course.due.store(at);
                // It stays with its runner, who looks again. Refused only when it was shut down meanwhile.
                let _ = self.enqueue(at, Verb::Arm, (machine.context(now), actions));
            }
        });
    }
}

impl RawTimer {
    /// Where an arm goes that comes from `context`.
    #[inline]
    fn place(&self, context: Context) -> Result<Context, ArmError> {
        let machine = self.machine();
        if !machine.lane_set.is_empty() {
            return Ok(context);
        }
        if self.is_pinned() {
            return Err(ArmError::NoLane { cpu: context.cpu });
        }
        // The helper is the only one whose being awake a deferrable timer can wait for.
        Ok(if self.is_deferrable() { Context::near(machine.spare, context.now) } else { context })
    }
}
