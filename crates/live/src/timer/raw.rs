//! Timers in memory of the caller, with a function and an argument: what the C interface and
//! [`TimerHandle`](super::TimerHandle) are made of.
//!
//! [`Name`] is the address of such a timer, and what the other files of `timer/` follow it with. It is made
//! in three places, each with the promise that the timer is there: for a caller who promises it, from a count
//! of owners, and by a runner from a timer that a base has handed out.
#![allow(unsafe_code, reason = "a timer reached by address has the validity that its owner promised")]

use super::course::Course;
use super::handle;
use super::{CallbackTimer, Run, TimerOptions};
use crate::Machine;
use crate::machine::ArmError;
use crate::payload::{Kind, Payload};
use crate::stall::{Callback, Running};
use core::fmt;
use core::marker::PhantomPinned;
use core::mem::ManuallyDrop;
use core::panic::Location;
use core::ptr::{NonNull, null_mut};
use quietcore_core::{ExactRef, ExactTimer, Timer, TimerRef};

/// The function of a raw timer: it gets its argument, and what it may know of its run.
pub type RawFn = unsafe fn(*mut (), &Run<'_>);

/// Either kind of the core's timers, at the same address.
#[repr(C)]
union Node {
    tick: ManuallyDrop<Timer<Payload>>,
    exact: ManuallyDrop<ExactTimer<Payload>>,
}

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
    /// In ns; `NOT_EXACT` for a timer of ticks.
    slack: u64,
    pub(super) course: Course,
    /// As it was made; an arm on a CPU pins any timer.
    pinned: Pinned,
    marker: PhantomPinned,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pinned {
    Always,
    OnDemand,
}

const NOT_EXACT: u64 = u64::MAX;

#[cfg(not(loom))]
const _: () = assert!(size_of::<RawTimer>() == 152);

// SAFETY: what is written after it was made is the node, which is `Sync`, and the course, which has a lock.
// Whoever made the timer promised that its function may be called with its argument on any thread.
unsafe impl Sync for RawTimer {}
// SAFETY: as above; and a timer that is moved was never armed.
unsafe impl Send for RawTimer {}

impl RawTimer {
    /// An idle timer that calls `run` with `argument`.
    ///
    /// # Safety
    /// `run` may be called with `argument` on any thread, one call at a time, as long as the timer may be
    /// armed.
    ///
    /// ```
    /// # use quietcore::{Machine, TimerOptions, timer::{RawTimer, Run}};
    /// # let machine = Machine::start()?;
    /// unsafe fn count(counter: *mut (), _: &Run<'_>) {
    ///     // SAFETY: it is the address of a counter that outlives the timer, and nobody else uses it.
    ///     unsafe { *counter.cast::<u64>() += 1 };
    /// }
    /// let counter: *mut u64 = Box::into_raw(Box::new(0));
    /// // SAFETY: `count` may be called with a pointer to a counter.
    /// let timer = unsafe { RawTimer::new(machine, TimerOptions::new(), count, counter.cast()) };
    /// # let _ = timer;
    /// # // SAFETY: it was made from a box, and the timer was never armed.
    /// # drop(unsafe { Box::from_raw(counter) });
    /// # machine.shutdown();
    /// # Ok::<(), quietcore::StartError>(())
    /// ```
    #[must_use]
    pub unsafe fn new(
        machine: &'static Machine,
        options: TimerOptions,
        run: RawFn,
        argument: *mut (),
    ) -> Self {
        Self { argument, ..Self::of_kind(Payload::new(machine, Kind::Raw), options, run) }
    }

    /// Without an argument.
    pub(super) fn of_kind(payload: Payload, options: TimerOptions, run: RawFn) -> Self {
        let core = options.core();
        let (node, slack) = if options.is_exact() {
            let slack = u64::try_from(options.slack.as_nanos()).unwrap_or(NOT_EXACT).min(NOT_EXACT - 1);
            (Node { exact: ManuallyDrop::new(ExactTimer::of_kind(payload, core)) }, slack)
        } else {
            (Node { tick: ManuallyDrop::new(Timer::new(payload, core)) }, NOT_EXACT)
        };
        let (argument, course) = (null_mut(), Course::new());
        let pinned = if options.is_pinned { Pinned::Always } else { Pinned::OnDemand };
        Self { node, run, argument, slack, course, pinned, marker: PhantomPinned }
    }

    /// What can be done with the timer at `timer`.
    ///
    /// # Safety
    /// The timer is valid, where it is, and only accessed through shared references, during each call on what
    /// is returned, and from each arm until it is idle again; when an arm runs the timer, it may be idle
    /// before that call returns. It is idle when [`cancel_sync`](CallbackTimer::cancel_sync) or
    /// [`cancel_and_wait`](CallbackTimer::cancel_and_wait) has ended it, when
    /// [`try_cancel`](CallbackTimer::try_cancel) has found no run of it, or at the end of a callback that has
    /// [released](Run::release) it, and nobody arms it after that. In a forked child every timer is idle, and
    /// when [`Machine::shutdown`] has returned outside of callbacks.
    ///
    /// ```
    /// # use core::ptr::{NonNull, null_mut};
    /// # use quietcore::{Machine, TimerOptions, timer::{RawTimer, Run}};
    /// # let machine = Machine::start()?;
    /// # unsafe fn nothing(_: *mut (), _: &Run<'_>) {}
    /// # // SAFETY: `nothing` may be called with anything.
    /// # let memory = Box::pin(unsafe { RawTimer::new(machine, TimerOptions::new(), nothing, null_mut()) });
    /// // SAFETY: the timer is pinned, and never armed.
    /// let timer = unsafe { RawTimer::at(NonNull::from(&*memory)) };
    /// assert!(!timer.is_pending());
    /// # machine.shutdown();
    /// # Ok::<(), quietcore::StartError>(())
    /// ```
    #[inline]
    #[must_use]
    pub const unsafe fn at(timer: NonNull<Self>) -> CallbackTimer {
        CallbackTimer(Name(timer))
    }

    /// In ns, of an exact timer.
    #[inline]
    pub(super) fn slack(&self) -> Option<u64> {
        (self.slack != NOT_EXACT).then_some(self.slack)
    }

    /// Asks the timer, whichever it is.
    #[inline]
    fn ask<R>(
        &self,
        tick: impl FnOnce(&Timer<Payload>) -> R,
        exact: impl FnOnce(&ExactTimer<Payload>) -> R,
    ) -> R {
        match self.slack() {
            // SAFETY: whether there is a slack says which field was written when the timer was made.
            None => tick(unsafe { &self.node.tick }),
            // SAFETY: as above.
            Some(_) => exact(unsafe { &self.node.exact }),
        }
    }

    #[inline]
    pub(super) fn machine(&self) -> &'static Machine {
        self.ask(Timer::payload, ExactTimer::payload).machine()
    }

    fn kind(&self) -> Kind {
        self.ask(Timer::payload, ExactTimer::payload).kind()
    }

    #[inline]
    pub(super) fn is_pending(&self) -> bool {
        self.ask(Timer::is_pending, ExactTimer::is_pending)
    }

    #[inline]
    pub(super) fn is_pinned(&self) -> bool {
        self.ask(Timer::is_pinned, ExactTimer::is_pinned)
    }

    /// Whether it was pinned by an arm on a CPU, which holds for that arm.
    #[inline]
    pub(super) fn is_lent(&self) -> bool {
        self.pinned == Pinned::OnDemand && self.is_pinned()
    }

    #[inline]
    pub(super) fn is_deferrable(&self) -> bool {
        self.ask(Timer::is_deferrable, ExactTimer::is_deferrable)
    }
}

impl fmt::Debug for RawTimer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RawTimer")
            .field("is_pending", &self.is_pending())
            .field("course", &self.course)
            .finish_non_exhaustive()
    }
}

/// The address of a timer that is valid as long as whoever has the name says so. What it reaches is the
/// [`RawTimer`], or all of what that is the first field of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name(NonNull<RawTimer>);

// SAFETY: it is the address of a timer, which is `Sync`.
unsafe impl Send for Name {}
// SAFETY: as above.
unsafe impl Sync for Name {}

/// A timer in the core's words.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reference {
    Tick(TimerRef<Payload>),
    /// And its slack, in ns.
    Exact(ExactRef<Payload>, u64),
}

impl Name {
    /// # Safety
    /// As for [`RawTimer::at`]; `timer` reaches all of what the timer's kind says it is the first field of.
    pub(super) const unsafe fn new(timer: NonNull<RawTimer>) -> Self {
        Self(timer)
    }

    pub(super) const fn address(self) -> NonNull<RawTimer> {
        self.0
    }

    /// For the length of a call.
    #[inline]
    pub(super) fn timer(&self) -> &RawTimer {
        // SAFETY: whoever made the name promised that the timer is there.
        unsafe { self.0.as_ref() }
    }

    /// The machine, if it takes arms; this one comes from `site`. Where that is not kept it costs two loads,
    /// as without it.
    #[inline]
    pub(super) fn armed_at(self, site: &'static Location<'static>) -> Result<&'static Machine, ArmError> {
        let machine = self.timer().machine();
        if machine.takes_plain_arms() { Ok(machine) } else { self.keep_site(site) }
    }

    #[cold]
    fn keep_site(self, site: &'static Location<'static>) -> Result<&'static Machine, ArmError> {
        let machine = self.alive()?;
        if self.timer().kind() == Kind::Held {
            // SAFETY: it is of that kind; whoever made the name promised that the timer is there.
            unsafe { handle::keep_site(self, site) };
        }
        Ok(machine)
    }

    #[inline]
    pub(super) fn reference(self) -> Reference {
        match self.timer().slack() {
            // SAFETY: the timer is the first field, and of that kind. Who made the name promised what `new`
            // asks for: it stays until it is idle, and all names of it lead to the one machine that it names.
            None => Reference::Tick(unsafe { TimerRef::new(self.0.cast()) }),
            // SAFETY: as above.
            Some(slack) => Reference::Exact(unsafe { TimerRef::new(self.0.cast()) }, slack),
        }
    }
}

/// A timer that was handed out: who runs it, and then drops this when the machine knows that the run is
/// over.
#[derive(Debug)]
pub(crate) struct Call {
    pub(super) name: Name,
    kind: Kind,
}

impl Call {
    /// Takes what keeps the timer there.
    ///
    /// # Safety
    /// `timer` is pending and of that kind, and this is called under the lock of its base. Its reference was
    /// made by [`Name::reference`].
    #[inline]
    pub(crate) unsafe fn begin(timer: NonNull<RawTimer>, kind: Kind) -> Self {
        let name = Name(timer);
        if kind == Kind::Held {
            // SAFETY: promised by the caller.
            unsafe { handle::hold(name) };
        }
        Self { name, kind }
    }

    /// What a lane says that it runs.
    #[inline]
    pub(crate) fn running(&self) -> Running {
        let (callback, site) = match self.kind {
            // SAFETY: it is of that kind, and `begin` took a count.
            Kind::Held => unsafe { handle::describe(self.name) },
            Kind::Wake | Kind::Raw => (&Callback::RAW, None),
        };
        let (subject, function) = (self.name.address().as_ptr() as usize, self.name.timer().run as usize);
        Running { callback, subject, function, site }
    }

    /// Calls the function. A panic of it passes through.
    pub(super) fn call(&self, run: &Run<'_>) {
        let timer = self.name.timer();
        // SAFETY: whoever made the timer promised that this may be called on any thread, one call at a time;
        // the machine does not hand it out again before it is told that this run is over.
        unsafe { (timer.run)(timer.argument, run) };
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if self.kind == Kind::Held {
            // SAFETY: `begin` took the count that this gives back.
            unsafe { handle::release(self.name) };
        }
    }
}
