//! What can be done with a callback timer, and the timers of Rust programs: closures in counted memory.
//!
//! An arm costs the lock of one base, and a cancel too; neither allocates or waits. How they do it: `arm.rs`,
//! `wait.rs`.
//!
//! A closure has two counts: the handles hold a [`Guard`], which holds the memory; a run holds the memory,
//! too. The runner takes its count under the lock of the timer's base, where the timer is pending: then a
//! handle is left, or the guard's end, which still holds the memory, waits for that lock to cancel the
//! timer. So the count is never taken from 0. When the guard has ended the timer is shut down, and no run
//! follows. The closure is dropped with the last count: by the thread that drops the last handle, or by the
//! runner.
#![allow(unsafe_code, reason = "a runner gets to the closure from the address of its timer")]

use super::options::TimerOptions;
use super::raw::{CallbackTimer, CountedHeader, CountedVtable, RawTimer, Run, TimerPtr};
use super::wait::{CancelAndWait, WouldBlock};
use crate::machine::ArmError;
use crate::payload::{Payload, PayloadKind};
use crate::words::stall_record::{Callback, StaticRef};
use crate::{CpuId, Machine, Nanos};
use core::cell::UnsafeCell;
use core::fmt;
use core::ops::Deref;
use core::panic::Location;
use core::ptr::NonNull;
use core::time::Duration;
use quietcore_core::{Arm, Cancelled};
use std::sync::Arc;

impl CallbackTimer {
    /// Arms the timer for a moment on the machine's clock, once; returns whether it was pending before. A
    /// moment in the past is due at once. Cost: the lock of a base.
    ///
    /// # Errors
    /// When the timer or its machine was shut down; of a pinned timer, when there is no lane for it.
    #[track_caller]
    #[inline]
    pub fn arm_at(&self, at: impl Into<Nanos>) -> Result<bool, ArmError> {
        let at = at.into();
        let context = self.0.machine_for_arm(Location::caller())?.context_for(at);
        self.0.arm_once(at, context)
    }

    /// Arms the timer for `delay` from now; one that is not exact for up to some tens of microseconds later.
    /// Otherwise as [`arm_at`](Self::arm_at), and a reading of the clock, which for those is the processor's
    /// cycle counter where the kernel keeps time by it and was asked lately.
    ///
    /// # Errors
    /// As for [`arm_at`](Self::arm_at).
    #[track_caller]
    #[inline]
    pub fn arm_after(&self, delay: Duration) -> Result<bool, ArmError> {
        let machine = self.0.machine_for_arm(Location::caller())?;
        let now = if self.0.timer().is_exact() { machine.clock.now() } else { machine.clock.latest() };
        self.0.arm_once(after(now, delay), machine.context(now))
    }

    /// Arms the timer on `cpu`, once: it runs on its lane and on no other thread. This holds for one arm;
    /// [`reduce`](Self::reduce) and [`mod_pending`](Self::mod_pending) take it to the lane that calls them,
    /// or that is nearest to the caller. A timer that runs stays where it runs, so an arm in its own callback
    /// does not take it to another CPU.
    ///
    /// # Errors
    /// [`ArmError::NoLane`] when no lane drives that CPU; otherwise as for [`arm_at`](Self::arm_at).
    #[track_caller]
    pub fn arm_on(&self, cpu: CpuId, at: impl Into<Nanos>) -> Result<bool, ArmError> {
        let at = at.into();
        let context = self.0.machine_for_arm(Location::caller())?.context_for(at);
        self.0.arm_on(cpu, at, context)
    }

    /// The same for every `period` after `first`: all runs are on the lane of `cpu`, as long as it has one.
    /// Otherwise as [`arm_periodic`](Self::arm_periodic).
    ///
    /// # Errors
    /// As for [`arm_on`](Self::arm_on).
    #[track_caller]
    pub fn arm_periodic_on(
        &self,
        cpu: CpuId,
        first: impl Into<Nanos>,
        period: Duration,
    ) -> Result<bool, ArmError> {
        let first = first.into();
        let context = self.0.machine_for_arm(Location::caller())?.context_for(first);
        self.0.arm_periodic(Some(cpu), first, length(period), context)
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
    ///     sender.send(run.scheduled()).expect("the program waits");
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
        let first = first.into();
        let context = self.0.machine_for_arm(Location::caller())?.context_for(first);
        self.0.arm_periodic(None, first, length(period), context)
    }

    /// Arms the timer for one of its periods from now, and for every period after that: those that it was
    /// last armed for ([`arm_periodic`](Self::arm_periodic)), whether they go on or were ended. Says whether
    /// it was pending before. For a timeout that every sign of life puts off: the length is said once.
    ///
    /// In the timer's callback, too: the next run is one period after this call then, and not the next
    /// multiple. Of a timer that was armed on a CPU the periods go on where any arm goes.
    ///
    /// # Errors
    /// [`ArmError::NoPeriod`] when it was never armed for periods; otherwise as for [`arm_at`](Self::arm_at).
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use quietcore::{ArmError, Machine, Nanos};
    /// # let machine = Machine::start()?;
    /// let timeout = machine.timer(Default::default(), |_| println!("nothing came for a minute"));
    /// assert_eq!(timeout.arm_again(), Err(ArmError::NoPeriod));
    /// let minute = Duration::from_secs(60);
    /// timeout.arm_periodic(Nanos(machine.now().0 + 60_000_000_000), minute)?;
    /// // A sign of life:
    /// timeout.arm_again()?;
    /// assert!(timeout.due_in() > Some(minute - Duration::from_secs(1)));
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn arm_again(&self) -> Result<bool, ArmError> {
        let machine = self.0.machine_for_arm(Location::caller())?;
        let period = self.0.timer().rearm.last_period().ok_or(ArmError::NoPeriod)?;
        let now = machine.clock.now();
        self.0.arm_periodic(None, Nanos(now.0.saturating_add(period.0)), period, machine.context(now))
    }

    /// Arms the timer for `at`, unless it is pending for that moment or an earlier one. Says whether it was
    /// pending.
    ///
    /// # Errors
    /// As for [`arm_at`](Self::arm_at).
    #[track_caller]
    pub fn reduce(&self, at: impl Into<Nanos>) -> Result<bool, ArmError> {
        let at = at.into();
        let context = self.0.machine_for_arm(Location::caller())?.context_for(at);
        self.0.modify(Arm::reduce(at), context)
    }

    /// Arms the timer for `at`, if it is pending; says whether it was.
    ///
    /// # Errors
    /// As for [`arm_at`](Self::arm_at).
    #[track_caller]
    pub fn mod_pending(&self, at: impl Into<Nanos>) -> Result<bool, ArmError> {
        let at = at.into();
        let context = self.0.machine_for_arm(Location::caller())?.context_for(at);
        self.0.modify(Arm::mod_pending(at), context)
    }

    /// Takes the timer out and ends its periods; says whether it was pending. A run that has begun goes on,
    /// and is not waited for. A timer that is armed for longer than the wheel reaches (days) is put back once
    /// in that time: cancelled at that very moment it was not pending, and does not run either. Cost: a
    /// lock if it is pending, else a load or two.
    #[inline]
    pub fn cancel(&self) -> bool {
        self.0.cancel()
    }

    /// Cancels as [`cancel`](Self::cancel) does, and says whether a run is under way:
    /// [`Cancelled::Running`] then, whatever was pending. After any other answer no run of it is left, and
    /// none begins before the next arm. Cost: a lock.
    pub fn try_cancel(&self) -> Cancelled {
        self.0.try_cancel()
    }

    /// Takes the timer out, and returns when no run of it is left; says whether it was pending. It does not
    /// run before the next arm.
    ///
    /// # Errors
    /// [`WouldBlock`] when a run of it is under way and this thread must not wait for it: inside of a
    /// callback of any timer, and on a lane. The timer is cancelled all the same.
    pub fn cancel_sync(&self) -> Result<bool, WouldBlock> {
        self.0.cancel_sync()
    }

    /// The same for a task: the future is ready when no run of the timer is left, and returns whether it was
    /// pending. Nothing happens before its first poll. A task that a callback waits for must not
    /// await this.
    pub const fn cancel_and_wait(&self) -> CancelAndWait<'_> {
        CancelAndWait::new(self)
    }

    /// Takes the timer out for good: every later arm is refused. Says whether it was pending. A run that has
    /// begun goes on; [`cancel_sync`](Self::cancel_sync) waits for it.
    pub fn shutdown(&self) -> bool {
        self.0.shutdown()
    }

    /// Whether it is armed and neither cancelled nor handed out to run. While other threads arm it, the
    /// answer may be out of date. Cost: a load.
    #[inline]
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.0.timer().is_pending()
    }

    /// The moment that it is armed for; `None` when it is not pending. While other threads arm it, the answer
    /// may be out of date. Any thread. Cost: a lock.
    #[must_use]
    pub fn deadline(&self) -> Option<Nanos> {
        self.0.deadline()
    }

    /// How long until then, zero if that moment is over; `None` when it is not pending. Otherwise as
    /// [`deadline`](Self::deadline), and a reading of the clock.
    #[must_use]
    pub fn due_in(&self) -> Option<Duration> {
        let deadline = self.deadline()?;
        Some(Duration::from_nanos(deadline.since(self.machine().now()).0))
    }

    /// The length of its periods; `None` when it was not armed for any, or they were ended. Any thread. Cost:
    /// a lock.
    #[must_use]
    pub fn period(&self) -> Option<Duration> {
        // In a forked child the lock may be taken for ever, and every timer is idle.
        let length = if self.machine().is_forked() { None } else { self.0.timer().rearm.period() };
        length.map(|length| Duration::from_nanos(length.0))
    }

    /// Whether a run of it has begun and not ended. Cost: a lock.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.0.is_running()
    }

    /// The machine that it was made for.
    #[must_use]
    pub fn machine(&self) -> &'static Machine {
        self.0.timer().machine()
    }
}

/// What the clock can count of `period`.
fn length(period: Duration) -> Nanos {
    Nanos(u64::try_from(period.as_nanos()).unwrap_or(u64::MAX).max(1))
}

/// `delay` after `now`, or the clock's last moment where that is out of range.
fn after(now: Nanos, delay: Duration) -> Nanos {
    let delay = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
    Nanos(now.0.saturating_add(delay))
}

/// A timer that calls a closure. Handles are counted: when the last one is dropped the timer is cancelled,
/// and the closure is dropped when no run of it is left. Dropping never waits.
///
/// What can be done with it is in [`CallbackTimer`]. To make one, [`Machine::timer`].
///
/// ```
/// use core::time::Duration;
/// use quietcore::{Machine, TimerOptions};
/// use std::sync::mpsc;
///
/// let machine = Machine::start()?;
/// let (sender, receiver) = mpsc::channel();
/// let timer = machine.timer(TimerOptions::new(), move |_run| sender.send("ran").expect("it waits"));
/// timer.arm_after(Duration::from_millis(1))?;
/// assert_eq!(receiver.recv()?, "ran");
/// # machine.shutdown();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TimerHandle {
    timer: CallbackTimer,
    guard: Arc<Guard>,
}

/// What the handles hold together.
struct Guard {
    timer: TimerPtr,
    /// Keeps `timer` valid.
    _memory: Arc<dyn Send + Sync>,
}

#[repr(C)]
struct Counted<F> {
    header: CountedHeader,
    /// The closure, for the one run that there is at a time.
    callback: UnsafeCell<F>,
}

// SAFETY: of what is shared, the header is written through `RawTimer` only, which is `Sync`. The
// closure is reached by one runner at a time, as a timer is not handed out again before the machine is told
// that its run is over; a lock lies between two runs. It may move to the runner's thread (`F: Send`).
unsafe impl<F: Send> Sync for Counted<F> {}

impl Machine {
    /// Makes a timer that calls `callback`. It is idle.
    ///
    /// The callback runs on the helper thread or on a lane, with no lock held: it should be short, as others
    /// wait. When it panics, the machine's [`OnPanic`](crate::OnPanic) decides; with `Continue` the timer
    /// can be used as before. A callback that needs its own timer gets it from [`Run::timer`].
    ///
    /// Allocates twice.
    pub fn timer<F>(&'static self, options: TimerOptions, callback: F) -> TimerHandle
    where
        F: FnMut(&Run<'_>) + Send + 'static,
    {
        let raw = RawTimer::of_kind(Payload::new(self.reference(), PayloadKind::Counted), options, run::<F>);
        let vtable = const {
            &CountedVtable {
                acquire_ref: acquire::<F>,
                release_ref: release::<F>,
                callback: Callback::of::<F>(),
            }
        };
        let header = CountedHeader { raw, vtable, arm_location: StaticRef::new() };
        let memory = Arc::new(Counted { header, callback: UnsafeCell::new(callback) });
        let address = NonNull::new(Arc::as_ptr(&memory).cast_mut()).expect("it was allocated");
        // SAFETY: the address is that of all of the memory, which the guard below and every run keep; before
        // the guard gives its count back it shuts the timer down.
        let timer = unsafe { TimerPtr::new(address.cast()) };
        TimerHandle { timer: CallbackTimer(timer), guard: Arc::new(Guard { timer, _memory: memory }) }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.timer.shutdown();
    }
}

impl Clone for TimerHandle {
    fn clone(&self) -> Self {
        Self { timer: CallbackTimer(self.guard.timer), guard: Arc::clone(&self.guard) }
    }
}

impl Deref for TimerHandle {
    type Target = CallbackTimer;

    #[inline]
    fn deref(&self) -> &CallbackTimer {
        &self.timer
    }
}

impl fmt::Debug for TimerHandle {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("TimerHandle")
            .field("deadline", &self.deadline())
            .field("period", &self.period())
            .finish_non_exhaustive()
    }
}

/// The function of a counted timer.
///
/// # Safety
/// `run` is of a timer that is the first field of a `Counted<F>`, and no other run of it is under way.
unsafe fn run<F: FnMut(&Run<'_>)>(_argument: *mut (), run: &Run<'_>) {
    let held = run.timer().0.address().cast::<Counted<F>>();
    // SAFETY: promised by the caller: the name of a counted timer reaches all of its memory, the run's count
    // keeps it, and no other thread has a reference to the closure.
    let callback = unsafe { &mut *held.as_ref().callback.get() };
    callback(run);
}

/// # Safety
/// `timer` is of a timer in a `Counted<F>` whose memory has a count.
unsafe fn acquire<F>(timer: TimerPtr) {
    // SAFETY: promised by the caller; the address is that of an `Arc`'s content.
    unsafe { Arc::increment_strong_count(timer.address().cast::<Counted<F>>().as_ptr()) };
}

/// # Safety
/// `timer` is of a timer in a `Counted<F>`, and a count of its memory is given up.
unsafe fn release<F>(timer: TimerPtr) {
    // SAFETY: promised by the caller.
    unsafe { Arc::decrement_strong_count(timer.address().cast::<Counted<F>>().as_ptr()) };
}
