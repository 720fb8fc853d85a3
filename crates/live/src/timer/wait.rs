//! Waiting until no run of a timer is left: for threads and for tasks.
//!
//! Both ask the base under its lock ([`Cancelled::Running`]), and wait for the end of any run to ask again:
//! threads in [`RunWait`], tasks with a waker in a list. A task is in the list and counted before it asks for
//! the last time; the fence between is the counterpart of the one in `RunWait::finished`.
//!
//! Who must not wait: a thread that is inside of a run (the other run may wait for this one), and a lane
//! (others may wait for its turn). Absent: time limits.

use super::raw::{CallbackTimer, TimerPtr, with_either};
use super::sync::Tasks;
use crate::lane::current_cpu;
use crate::words::run_wait::RunWait;
use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use quietcore_core::Cancelled;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The timer was cancelled, but a run of it has not ended, and this thread must not wait for it.
///
/// ```
/// use quietcore::timer::WouldBlock;
///
/// assert_eq!(WouldBlock.to_string(), "a run is under way, and this thread must not wait for its end");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WouldBlock;

impl fmt::Display for WouldBlock {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a run is under way, and this thread must not wait for its end")
    }
}

impl core::error::Error for WouldBlock {}

thread_local! {
    static RUNS: Cell<u32> = const { Cell::new(0) };
}

/// While it lives, its thread is inside of a run.
#[derive(Debug)]
pub(crate) struct InRun(PhantomData<*const ()>);

impl InRun {
    #[inline]
    pub(crate) fn begin() -> Self {
        RUNS.with(|runs| runs.set(runs.get() + 1));
        Self(PhantomData)
    }

    /// Whether the calling thread is inside of a run.
    pub(crate) fn is_here() -> bool {
        RUNS.with(Cell::get) != 0
    }
}

impl Drop for InRun {
    #[inline]
    fn drop(&mut self) {
        RUNS.with(|runs| runs.set(runs.get() - 1));
    }
}

/// Who waits for the end of a run, of one machine.
#[derive(Debug)]
pub(crate) struct RunEnds {
    threads: RunWait,
    tasks: Tasks,
    wakers: Mutex<Wakers>,
}

#[derive(Debug)]
struct Wakers {
    waiting: Vec<(u64, Waker)>,
    last: u64,
}

impl RunEnds {
    pub(crate) fn new() -> Self {
        let wakers = Wakers { waiting: Vec::new(), last: 0 };
        Self { threads: RunWait::new(), tasks: Tasks::new(), wakers: Mutex::new(wakers) }
    }

    fn lock(&self) -> MutexGuard<'_, Wakers> {
        self.wakers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns when `is_running` says no. It is asked again after every run's end.
    pub(crate) fn wait_while(&self, is_running: impl FnMut() -> bool) {
        self.threads.wait_while(is_running);
    }

    /// A run is over, and the base knows it. The caller wakes what this returns: it is user code. Cost: a
    /// fence and two loads.
    #[inline]
    pub(crate) fn finished(&self) -> Vec<Waker> {
        self.threads.finished();
        if self.tasks.any() { self.waiting_tasks() } else { Vec::new() }
    }

    /// Whether a task waits.
    #[cfg(test)]
    pub(super) fn is_awaited(&self) -> bool {
        self.tasks.any()
    }

    #[cold]
    fn waiting_tasks(&self) -> Vec<Waker> {
        let mut wakers = self.lock();
        let waiting = core::mem::take(&mut wakers.waiting);
        self.tasks.store(0);
        drop(wakers);
        waiting.into_iter().map(|(_, waker)| waker).collect()
    }

    /// From now on the end of any run wakes `waker`, once. `ticket` is of this task's last call.
    fn register(&self, ticket: Option<u64>, waker: &Waker) -> u64 {
        // Cloned before, and dropped after the lock is held: both are user code.
        let waker = waker.clone();
        let mut wakers = self.lock();
        let known = wakers.waiting.iter_mut().find(|(number, _)| Some(*number) == ticket);
        if let Some((number, known)) = known {
            let (number, before) = (*number, core::mem::replace(known, waker));
            drop(wakers);
            drop(before);
            return number;
        }
        wakers.last += 1;
        let number = wakers.last;
        wakers.waiting.push((number, waker));
        self.tasks.store(wakers.waiting.len());
        number
    }

    fn leave(&self, ticket: u64) {
        let mut wakers = self.lock();
        let at = wakers.waiting.iter().position(|(number, _)| *number == ticket);
        let waker = at.map(|at| wakers.waiting.swap_remove(at));
        self.tasks.store(wakers.waiting.len());
        drop(wakers);
        // Dropping it is its owner's code.
        drop(waker);
    }
}

/// What a cancel that may have to wait has found so far.
#[derive(Clone, Copy, Debug)]
enum Found {
    /// No run is left. Whether the timer was pending is known.
    Idle(bool),
    /// A run is under way. What was pending was taken out.
    Running(bool),
}

impl Found {
    const fn was_pending(self) -> bool {
        let (Self::Running(was_pending) | Self::Idle(was_pending)) = self;
        was_pending
    }
}

impl TimerPtr {
    /// Takes the timer out, whether or not a run of it is under way.
    pub(super) fn try_cancel(self) -> Cancelled {
        match self.look(Found::Idle(false)) {
            Found::Running(_) => Cancelled::Running,
            Found::Idle(true) => Cancelled::WasPending,
            Found::Idle(false) => Cancelled::Idle,
        }
    }

    /// The same, after what was found `before`.
    fn look(self, before: Found) -> Found {
        let was_pending = before.was_pending();
        let timer = self.timer();
        let machine = timer.machine();
        if machine.is_forked() {
            return Found::Idle(was_pending);
        }
        timer.rearm.end();
        let context = machine.cancel_context();
        let cancelled = with_either!(self.core(), |timer| machine.core.cancel_unless_running(timer, context));
        match cancelled.unwrap_or(Cancelled::Idle) {
            Cancelled::Idle => Found::Idle(was_pending),
            Cancelled::WasPending => {
                // As in `cancel`: another thread may have begun a period after the first look.
                if timer.rearm.follows() {
                    let _ = self.cancel();
                }
                Found::Idle(true)
            }
            // Its own callback may have armed it: else it would run once more before anybody looks again.
            Cancelled::Running => Found::Running(self.cancel() || was_pending),
        }
    }

    pub(super) fn cancel_sync(self) -> Result<bool, WouldBlock> {
        let machine = self.timer().machine();
        let mut found = self.look(Found::Idle(false));
        if matches!(found, Found::Running(_)) {
            if InRun::is_here() || current_cpu(machine).is_some() {
                return Err(WouldBlock);
            }
            machine.run_ends.wait_while(|| {
                found = self.look(found);
                matches!(found, Found::Running(_))
            });
        }
        Ok(found.was_pending())
    }
}

/// Waits until no run of a timer is left: [`CallbackTimer::cancel_and_wait`].
///
/// ```
/// use quietcore::{TimerHandle, timer::CancelAndWait};
///
/// fn end(timer: &TimerHandle) -> CancelAndWait<'_> {
///     timer.cancel_and_wait()
/// }
/// # let _ = end;
/// ```
#[derive(Debug)]
#[must_use = "nothing is cancelled before it is polled"]
pub struct CancelAndWait<'a> {
    timer: &'a CallbackTimer,
    found: Found,
    ticket: Option<u64>,
}

impl<'a> CancelAndWait<'a> {
    pub(super) const fn new(timer: &'a CallbackTimer) -> Self {
        Self { timer, found: Found::Idle(false), ticket: None }
    }
}

impl Future for CancelAndWait<'_> {
    type Output = bool;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<bool> {
        let timer = self.timer.0;
        self.found = timer.look(self.found);
        if matches!(self.found, Found::Running(_)) {
            let ends = &timer.timer().machine().run_ends;
            self.ticket = Some(ends.register(self.ticket, context.waker()));
            self.found = timer.look(self.found);
        }
        match self.found {
            Found::Idle(was_pending) => Poll::Ready(was_pending),
            Found::Running(_) => Poll::Pending,
        }
    }
}

impl Drop for CancelAndWait<'_> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let machine = self.timer.0.timer().machine();
        // In a forked child the lock may be taken for ever.
        if !machine.is_forked() {
            machine.run_ends.leave(ticket);
        }
    }
}
