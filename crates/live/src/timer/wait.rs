//! Waiting until no run of a timer is left: for threads and for tasks.
//!
//! Both ask the base under its lock ([`Cancelled::Running`]), and wait for the end of any run to ask again:
//! threads in [`RunWait`], tasks with a waker in a list. A task is in the list and counted before it asks for
//! the last time; the fence between is the counterpart of the one in `RunWait::finished`.
//!
//! A thread that is inside of a run must not wait (the run that it waits for may wait for this one), nor a
//! lane (other threads may wait for its turn).

use super::ends::RunScope;
use super::raw::{CallbackTimer, TimerPtr, with_either};
use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll};
use quietcore_core::Cancelled;

/// The timer was cancelled, but a run of it has not ended, and this thread must not wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WouldBlock;

impl fmt::Display for WouldBlock {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a run is under way, and this thread must not wait for its end")
    }
}

impl core::error::Error for WouldBlock {}

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
        let context = machine.cancel_context();
        let cancelled = with_either!(self.core(), |timer| machine.core.cancel_unless_running(timer, context));
        match cancelled.unwrap_or(Cancelled::Idle) {
            Cancelled::Idle => Found::Idle(was_pending),
            Cancelled::WasPending => {
                // It was a period, or another thread began one: ends it.
                if timer.rearm.follows() {
                    let _ = self.cancel();
                }
                Found::Idle(true)
            }
            // Its own callback may have armed it: else it would run once more before the next look.
            Cancelled::Running => Found::Running(self.cancel() || was_pending),
        }
    }

    pub(super) fn cancel_sync(self) -> Result<bool, WouldBlock> {
        let machine = self.timer().machine();
        let mut found = self.look(Found::Idle(false));
        if matches!(found, Found::Running(_)) {
            if RunScope::is_here() || machine.current_cpu().is_some() {
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
