//! The memory of callback timers, and the address by which the other files of `timer/` reach it.
//!
//! A [`RawTimer`] is a timer of the core with a function, an argument and what follows a run ([`Rearm`]). One
//! of a [`TimerHandle`](super::TimerHandle) is the first field of a [`CountedHeader`], whose
//! [`CountedVtable`] knows the closure behind it: so the holder of an address takes and gives back counts
//! without its type.
//!
//! A [`TimerPtr`] is made in three places, each with the promise that the timer is there: for a caller who
//! promises it, from a count of owners, and by a runner from a timer that a base has handed out.
#![allow(unsafe_code, reason = "a timer reached by address has the validity that its owner promised")]

use super::options::TimerOptions;
use super::rearm::{Rearm, RunPlan};
use crate::machine::ArmError;
use crate::payload::{Payload, PayloadKind};
use crate::words::stall_record::{Callback, RunningCode, StaticRef};
use crate::{CpuId, Machine, Nanos};
use core::cell::Cell;
use core::fmt;
use core::marker::PhantomPinned;
use core::mem::ManuallyDrop;
use core::panic::Location;
use core::ptr::{NonNull, null_mut};
use quietcore_core::{ExactRef, ExactTimer, Timer, TimerRef};

/// The function of a raw timer: it gets its argument, and what it may know of its run.
pub type RawFn = unsafe fn(*mut (), &Run<'_>);

/// Either kind of the core's timers, at the same address. An enum's tag would stand before the timer.
#[repr(C)]
union Node {
    tick: ManuallyDrop<Timer<Payload>>,
    exact: ManuallyDrop<ExactTimer<Payload>>,
}

/// A value for a timer of ticks, or one for an exact timer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Either<A, B> {
    Tick(A),
    Exact(B),
}

/// Evaluates the same expression with either.
macro_rules! with_either {
    ($either:expr, |$timer:ident| $body:expr) => {
        match $either {
            $crate::timer::raw::Either::Tick($timer) => $body,
            $crate::timer::raw::Either::Exact($timer) => $body,
        }
    };
}
pub(super) use with_either;

/// A timer in memory of the caller, which calls a function with an argument. It never allocates. 152 bytes.
///
/// For programs that keep their timers inside of structures of their own, and for the C interface; others
/// use [`TimerHandle`](super::TimerHandle), which needs no promises. What can be done with it is in
/// [`CallbackTimer`].
///
/// ```
/// use core::ptr::{NonNull, null_mut};
/// use core::time::Duration;
/// use quietcore::{Machine, TimerOptions, timer::{RawTimer, Run}};
///
/// unsafe fn hello(_: *mut (), run: &Run<'_>) {
///     println!("{:?} late", run.lateness());
/// }
/// let machine = Machine::start()?;
/// // SAFETY: `hello` does not use its argument.
/// let memory = Box::pin(unsafe { RawTimer::new(machine, TimerOptions::new(), hello, null_mut()) });
/// // SAFETY: the timer is pinned, and it is idle for ever before it is dropped.
/// let timer = unsafe { RawTimer::at(NonNull::from(&*memory)) };
/// timer.arm_after(Duration::from_secs(3600))?;
/// assert!(timer.cancel_sync()?);
/// # machine.shutdown();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[repr(C)]
pub struct RawTimer {
    /// First: a runner gets here from its address.
    node: Node,
    run: RawFn,
    argument: *mut (),
    /// Of an exact timer.
    slack: Nanos,
    pub(super) rearm: Rearm,
    is_exact: bool,
    /// As it was made; an arm on a CPU pins any timer.
    pinned: Pinned,
    marker: PhantomPinned,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pinned {
    Always,
    OnDemand,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<RawTimer>() == 152 || size_of::<usize>() != 8);

// SAFETY: what is written after it was made is the node, which is `Sync`, and what follows a run, which has a
// lock. The maker of the timer promised that its function may be called with its argument on any thread.
unsafe impl Sync for RawTimer {}
// SAFETY: as above; and a timer that is moved was never armed.
unsafe impl Send for RawTimer {}

impl RawTimer {
    /// An idle timer that calls `run` with `argument`.
    ///
    /// # Safety
    /// `run` may be called with `argument` on any thread, one call at a time, as long as the timer may be
    /// armed.
    #[must_use]
    pub unsafe fn new(
        machine: &'static Machine,
        options: TimerOptions,
        run: RawFn,
        argument: *mut (),
    ) -> Self {
        Self { argument, ..Self::of_kind(Payload::new(machine.reference(), PayloadKind::Raw), options, run) }
    }

    /// Without an argument.
    pub(super) fn of_kind(payload: Payload, options: TimerOptions, run: RawFn) -> Self {
        let (core, is_exact) = (options.core(), options.is_exact());
        let node = if is_exact {
            Node { exact: ManuallyDrop::new(ExactTimer::of_kind(payload, core)) }
        } else {
            Node { tick: ManuallyDrop::new(Timer::new(payload, core)) }
        };
        let slack = Nanos(u64::try_from(options.slack.as_nanos()).unwrap_or(u64::MAX));
        let (argument, rearm, marker) = (null_mut(), Rearm::new(), PhantomPinned);
        let pinned = if options.is_pinned { Pinned::Always } else { Pinned::OnDemand };
        Self { node, run, argument, slack, rearm, is_exact, pinned, marker }
    }

    /// What can be done with the timer at `timer`.
    ///
    /// # Safety
    /// The timer is valid, where it is, and only accessed through shared references, during each call on what
    /// is returned, and from each arm until it is idle again; when an arm runs the timer, it may be idle
    /// before that call returns. It is idle when [`cancel_sync`](CallbackTimer::cancel_sync) or
    /// [`cancel_and_wait`](CallbackTimer::cancel_and_wait) has ended it, when
    /// [`try_cancel`](CallbackTimer::try_cancel) has found no run of it, or at the end of a callback that has
    /// [released](Run::release) it, if it is not armed after that. In a forked child every timer is idle, and
    /// when [`Machine::shutdown`] has returned outside of callbacks.
    #[inline]
    #[must_use]
    pub const unsafe fn at(timer: NonNull<Self>) -> CallbackTimer {
        CallbackTimer(TimerPtr(timer))
    }

    /// Of an exact timer.
    #[inline]
    pub(super) fn slack(&self) -> Nanos {
        self.slack
    }

    #[inline]
    pub(super) fn is_exact(&self) -> bool {
        self.is_exact
    }

    #[inline]
    fn node(&self) -> Either<&Timer<Payload>, &ExactTimer<Payload>> {
        if self.is_exact {
            // SAFETY: `is_exact` says which field was written when the timer was made.
            Either::Exact(unsafe { &self.node.exact })
        } else {
            // SAFETY: as above.
            Either::Tick(unsafe { &self.node.tick })
        }
    }

    #[inline]
    fn payload(&self) -> Payload {
        with_either!(self.node(), |timer| timer.payload())
    }

    #[inline]
    pub(super) fn machine(&self) -> &'static Machine {
        Machine::of(self.payload().machine())
    }

    #[inline]
    pub(super) fn is_pending(&self) -> bool {
        with_either!(self.node(), |timer| timer.is_pending())
    }

    #[inline]
    pub(super) fn is_pinned(&self) -> bool {
        with_either!(self.node(), |timer| timer.is_pinned())
    }

    #[inline]
    pub(super) fn is_deferrable(&self) -> bool {
        with_either!(self.node(), |timer| timer.is_deferrable())
    }

    /// Whether it was pinned by an arm on a CPU, which holds for that arm.
    #[inline]
    pub(super) fn is_lent(&self) -> bool {
        self.pinned == Pinned::OnDemand && self.is_pinned()
    }
}

impl fmt::Debug for RawTimer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RawTimer")
            .field("is_pending", &self.is_pending())
            .field("rearm", &self.rearm)
            .finish_non_exhaustive()
    }
}

/// The address of a timer, valid as long as its holder promises. It reaches the [`RawTimer`], or all of the
/// structure whose first field that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimerPtr(NonNull<RawTimer>);

// SAFETY: it is the address of a timer, which is `Sync`.
unsafe impl Send for TimerPtr {}
// SAFETY: as above.
unsafe impl Sync for TimerPtr {}

/// Before the closure of a counted timer, whatever the closure's type.
#[repr(C)]
pub(super) struct CountedHeader {
    /// First: a runner gets here from its address.
    pub(super) raw: RawTimer,
    pub(super) vtable: &'static CountedVtable,
    /// Where it was armed last, if the machine records that.
    pub(super) arm_location: StaticRef<Location<'static>>,
}

/// What the holder of an address needs to know of a closure's type.
pub(super) struct CountedVtable {
    /// Takes a count.
    pub(super) acquire_ref: unsafe fn(TimerPtr),
    /// Gives one back.
    pub(super) release_ref: unsafe fn(TimerPtr),
    /// The closure's name.
    pub(super) callback: Callback,
}

impl TimerPtr {
    /// # Safety
    /// As for [`RawTimer::at`]; `timer` reaches all of what the timer's kind says it is the first field of.
    #[inline]
    pub(super) const unsafe fn new(timer: NonNull<RawTimer>) -> Self {
        Self(timer)
    }

    pub(super) const fn address(self) -> NonNull<RawTimer> {
        self.0
    }

    /// For the length of a call.
    #[inline]
    pub(super) fn timer(&self) -> &RawTimer {
        // SAFETY: the maker of the address promised that the timer is there.
        unsafe { self.0.as_ref() }
    }

    /// The header of a counted timer.
    ///
    /// # Safety
    /// The timer is of [`PayloadKind::Counted`].
    #[inline]
    unsafe fn header(&self) -> &CountedHeader {
        // SAFETY: such a timer is the first field of a header, and its address reaches all of its memory.
        unsafe { self.0.cast().as_ref() }
    }

    /// What a run of it runs.
    ///
    /// # Safety
    /// The timer is of [`PayloadKind::Counted`] if `is_counted`.
    #[inline]
    unsafe fn code(&self, is_counted: bool) -> RunningCode {
        let (callback, location) = if is_counted {
            // SAFETY: the caller's promise.
            let header = unsafe { self.header() };
            (&header.vtable.callback, header.arm_location.load())
        } else {
            (&Callback::RAW, None)
        };
        let (subject, function) = (self.0.as_ptr() as usize, self.timer().run as usize);
        RunningCode { callback, subject, function, location }
    }

    #[inline]
    fn is_counted(self) -> bool {
        self.timer().payload().kind() == PayloadKind::Counted
    }

    /// Its machine, if that still accepts arms.
    #[inline]
    pub(super) fn alive(self) -> Result<&'static Machine, ArmError> {
        let machine = self.timer().machine();
        machine.check_alive().map(|()| machine)
    }

    /// Its machine, for an arm at `location`. Where that is not recorded it costs two loads, as without it.
    #[inline]
    pub(super) fn machine_for_arm(
        self,
        location: &'static Location<'static>,
    ) -> Result<&'static Machine, ArmError> {
        let machine = self.timer().machine();
        if machine.takes_plain_arms() { Ok(machine) } else { self.record_arm(location) }
    }

    #[cold]
    fn record_arm(self, location: &'static Location<'static>) -> Result<&'static Machine, ArmError> {
        let machine = self.alive()?;
        if self.is_counted() {
            // SAFETY: it is of that kind.
            unsafe { self.header() }.arm_location.store(Some(location));
        }
        Ok(machine)
    }

    /// The timer in the core's words.
    #[inline]
    pub(super) fn core(self) -> Either<TimerRef<Payload>, ExactRef<Payload>> {
        // SAFETY, both: the timer is the first field, and of that kind. The maker of the address promised
        // what `new` asks for: it stays until it is idle, and all its addresses lead to the machine that it
        // names.
        if self.timer().is_exact {
            // SAFETY: argued above.
            Either::Exact(unsafe { TimerRef::new(self.0.cast()) })
        } else {
            // SAFETY: argued above.
            Either::Tick(unsafe { TimerRef::new(self.0.cast()) })
        }
    }
}

/// Arms and cancels a timer with a callback. A [`TimerHandle`](super::TimerHandle) is one, and so is what
/// [`RawTimer::at`] returns. Any thread may call everything; only [`cancel_sync`](Self::cancel_sync) waits.
#[derive(Debug)]
pub struct CallbackTimer(pub(super) TimerPtr);

/// What a callback may know of its run.
pub struct Run<'a> {
    pub(super) timer: CallbackTimer,
    pub(super) scheduled: Nanos,
    pub(super) now: Nanos,
    pub(super) overruns: u64,
    pub(super) cpu: CpuId,
    /// What the runner does after the callback.
    pub(super) plan: &'a Cell<RunPlan>,
}

/// A callback that was taken out.
#[derive(Clone, Copy)]
pub struct CancelledTimer {
    /// Of a raw timer.
    raw: Option<(RawFn, *mut ())>,
}

/// What became of the periods of a timer that is to be taken out.
#[derive(Debug)]
pub(crate) enum EndedPeriods {
    Ended(CancelledTimer),
    /// Another thread is about to change them: the timer is left as it is.
    Busy,
}

impl CancelledTimer {
    /// What a [`RawTimer`] would have called, and with which argument; `None` of a closure.
    #[must_use]
    pub const fn raw(&self) -> Option<(RawFn, *mut ())> {
        self.raw
    }
}

impl fmt::Debug for CancelledTimer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let argument = self.raw.map(|(_, argument)| argument);
        out.debug_struct("CancelledTimer").field("argument", &argument).finish_non_exhaustive()
    }
}

/// A callback timer that was handed out. Its runner runs it, and then drops this when the machine knows that
/// the run is over.
#[derive(Debug)]
pub(crate) struct DueCallback {
    pub(super) timer: TimerPtr,
    is_counted: bool,
}

impl DueCallback {
    /// Takes what keeps the timer there.
    ///
    /// # Safety
    /// `timer` is pending and of that kind, and this is called under the lock of its base. Its reference was
    /// made by [`TimerPtr::core`].
    #[inline]
    pub(crate) unsafe fn begin(timer: NonNull<RawTimer>, kind: PayloadKind) -> Self {
        let (timer, is_counted) = (TimerPtr(timer), kind == PayloadKind::Counted);
        if is_counted {
            // SAFETY: it is counted, and the lock of its base is held, where it is pending: so there is a
            // count to take another one from (`callback.rs`).
            unsafe { (timer.header().vtable.acquire_ref)(timer) };
        }
        Self { timer, is_counted }
    }

    /// What a lane says that it runs.
    #[inline]
    pub(crate) fn running(&self) -> RunningCode {
        // SAFETY: if it is counted, `begin` took a count.
        unsafe { self.timer.code(self.is_counted) }
    }

    /// What a timer will run that is pending.
    ///
    /// # Safety
    /// As for [`begin`](Self::begin).
    pub(crate) unsafe fn pending(timer: NonNull<RawTimer>, kind: PayloadKind) -> RunningCode {
        // SAFETY: where it is pending, and the lock of its base is held, its memory is there.
        unsafe { TimerPtr(timer).code(kind == PayloadKind::Counted) }
    }

    /// Ends the periods of a timer that is pending and is to be taken out.
    ///
    /// # Safety
    /// As for [`begin`](Self::begin).
    pub(crate) unsafe fn end_periods(timer: NonNull<RawTimer>, kind: PayloadKind) -> EndedPeriods {
        // Where it is pending, and the lock of its base is held, its memory is there.
        let pointer = TimerPtr(timer);
        let timer = pointer.timer();
        if !timer.rearm.try_end() {
            return EndedPeriods::Busy;
        }
        EndedPeriods::Ended(CancelledTimer {
            raw: (kind == PayloadKind::Raw).then_some((timer.run, timer.argument)),
        })
    }

    /// Calls the function. A panic of it passes through.
    pub(super) fn call(&self, run: &Run<'_>) {
        let timer = self.timer.timer();
        // SAFETY: the maker of the timer promised that this may be called on any thread, one call at a time;
        // the machine does not hand it out again before it is told that this run is over.
        unsafe { (timer.run)(timer.argument, run) };
    }
}

impl Drop for DueCallback {
    fn drop(&mut self) {
        if self.is_counted {
            // SAFETY: `begin` took the count that this gives back.
            unsafe { (self.timer.header().vtable.release_ref)(self.timer) };
        }
    }
}
