//! [`TimerHandle`]: a closure that is called at a moment, in counted memory.
//!
//! Two counts: the handles hold a [`Guard`], which holds the memory; a run holds the memory, too. The runner
//! takes its count under the lock of the timer's base, where the timer is pending: then a handle is left, or
//! the guard's end, which still holds the memory, waits for that lock to cancel the timer. So the count is
//! never taken from 0. When the guard has ended the timer is shut down, and no run follows.
//!
//! The closure is dropped by whoever gives the last count back: by the thread that drops the last handle, or
//! by the runner after the run.
#![allow(unsafe_code, reason = "a runner gets to the closure from the address of its timer")]

use super::raw::{Name, RawTimer};
use super::{CallbackTimer, Run, TimerOptions};
use crate::Machine;
use crate::payload::{Kind, Payload};
use crate::stall::{Callback, Lasting};
use core::cell::UnsafeCell;
use core::fmt;
use core::ops::Deref;
use core::panic::Location;
use core::ptr::NonNull;
use std::sync::Arc;

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
/// let timer = machine.timer(TimerOptions::new(), move |_run| sender.send("ran").expect("somebody waits"));
/// timer.arm_after(Duration::from_millis(1))?;
/// assert_eq!(receiver.recv()?, "ran");
/// drop(timer);
/// # machine.shutdown();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TimerHandle {
    timer: CallbackTimer,
    guard: Arc<Guard>,
}

/// What the handles hold together.
struct Guard {
    name: Name,
    /// Keeps `name` valid.
    _memory: Arc<dyn Send + Sync>,
}

/// Before the closure, whatever its type.
#[repr(C)]
struct Header {
    /// First: a runner gets here from its address.
    raw: RawTimer,
    /// Takes a count.
    hold: unsafe fn(Name),
    /// Gives it back.
    release: unsafe fn(Name),
    /// The closure's name.
    name: &'static Callback,
    /// Where it was armed last, if the machine keeps that.
    armed: Lasting<Location<'static>>,
}

#[repr(C)]
struct Held<F> {
    header: Header,
    /// For the one run that there is at a time.
    callback: UnsafeCell<F>,
}

// SAFETY: of what is shared, the header is written by nobody but through `RawTimer`, which is `Sync`. The
// closure is reached by one runner at a time, as a timer is not handed out again before the machine is told
// that its run is over; a lock lies between two runs. It may move to the runner's thread (`F: Send`).
unsafe impl<F: Send> Sync for Held<F> {}

impl Machine {
    /// Makes a timer that calls `callback`. It is idle.
    ///
    /// The callback runs on the helper thread or on a lane, with no lock held: it should be short, as others
    /// wait. When it panics, the machine's [`OnPanic`](crate::OnPanic) decides; with `Continue` the timer
    /// can be used as before. A callback that needs its own timer gets it from [`Run::timer`].
    ///
    /// Allocates twice.
    ///
    /// ```
    /// use quietcore::{Machine, TimerOptions};
    ///
    /// let machine = Machine::start()?;
    /// let timer = machine.timer(TimerOptions::new(), |run| println!("{:?} late", run.lateness()));
    /// assert!(!timer.is_pending());
    /// # machine.shutdown();
    /// # Ok::<(), quietcore::StartError>(())
    /// ```
    pub fn timer<F>(&'static self, options: TimerOptions, callback: F) -> TimerHandle
    where
        F: FnMut(&Run<'_>) + Send + 'static,
    {
        let raw = RawTimer::of_kind(Payload::new(self, Kind::Held), options, run::<F>);
        let (hold, release) = (hold_held::<F>, release_held::<F>);
        let header =
            Header { raw, hold, release, name: const { &Callback::of::<F>() }, armed: Lasting::new() };
        let memory = Arc::new(Held { header, callback: UnsafeCell::new(callback) });
        let address = NonNull::new(Arc::as_ptr(&memory).cast_mut()).expect("it was allocated");
        // SAFETY: the address is that of all of the memory, which the guard below and every run keep; before
        // the guard gives its count back it shuts the timer down.
        let name = unsafe { Name::new(address.cast()) };
        TimerHandle { timer: CallbackTimer(name), guard: Arc::new(Guard { name, _memory: memory }) }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.name.shutdown();
    }
}

impl Clone for TimerHandle {
    fn clone(&self) -> Self {
        Self { timer: CallbackTimer(self.guard.name), guard: Arc::clone(&self.guard) }
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
        fmt::Debug::fmt(self.guard.name.timer(), out)
    }
}

/// The function of a counted timer.
///
/// # Safety
/// `run` is of a timer that is the first field of a `Held<F>`, and no other run of it is under way.
unsafe fn run<F: FnMut(&Run<'_>)>(_argument: *mut (), run: &Run<'_>) {
    let held = run.timer().0.address().cast::<Held<F>>();
    // SAFETY: promised by the caller: the name of a counted timer reaches all of its memory, the run's count
    // keeps it, and nobody else has a reference to the closure.
    let callback = unsafe { &mut *held.as_ref().callback.get() };
    callback(run);
}

/// # Safety
/// `name` is of a timer in a `Held<F>` whose memory has a count.
unsafe fn hold_held<F>(name: Name) {
    // SAFETY: promised by the caller; the address is that of an `Arc`'s content.
    unsafe { Arc::increment_strong_count(name.address().cast::<Held<F>>().as_ptr()) };
}

/// # Safety
/// `name` is of a timer in a `Held<F>`, and a count of its memory is given up.
unsafe fn release_held<F>(name: Name) {
    // SAFETY: promised by the caller.
    unsafe { Arc::decrement_strong_count(name.address().cast::<Held<F>>().as_ptr()) };
}

/// Takes a count for a run.
///
/// # Safety
/// `name` is of a pending timer of [`Kind::Held`], made by [`Machine::timer`], and the lock of its base is
/// held.
#[inline]
pub(super) unsafe fn hold(name: Name) {
    // SAFETY: such a timer is the first field of a `Header`, and its name reaches all of its memory.
    let hold = unsafe { name.address().cast::<Header>().as_ref() }.hold;
    // SAFETY: the header was made with the function for its closure. There is a count: see the file's
    // comment.
    unsafe { hold(name) };
}

/// Keeps where a timer is armed.
///
/// # Safety
/// `name` is of a timer of [`Kind::Held`], made by [`Machine::timer`], that is there.
pub(super) unsafe fn keep_site(name: Name, site: &'static Location<'static>) {
    // SAFETY: as in `hold`.
    unsafe { name.address().cast::<Header>().as_ref() }.armed.store(Some(site));
}

/// The closure of a timer, and where it was armed.
///
/// # Safety
/// As for [`keep_site`].
#[inline]
pub(super) unsafe fn describe(name: Name) -> (&'static Callback, Option<&'static Location<'static>>) {
    // SAFETY: as in `hold`.
    let header = unsafe { name.address().cast::<Header>().as_ref() };
    (header.name, header.armed.load())
}

/// Gives a run's count back. May drop the closure.
///
/// # Safety
/// [`hold`] took the count, and the name is not used any more.
#[inline]
pub(super) unsafe fn release(name: Name) {
    // SAFETY: as in `hold`: there is a count.
    let release = unsafe { name.address().cast::<Header>().as_ref() }.release;
    // SAFETY: as above.
    unsafe { release(name) };
}
