//! Pausing, resuming and moving a machine's time, and taking part in it.

use super::error::TimeError;
use super::participant::{Hold, Participant};
use super::state::Participate;
use crate::machine::Machine;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use quietcore_core::Nanos;
use std::sync::Arc;

impl Machine {
    /// Whether its time can be paused.
    #[must_use]
    pub const fn has_virtual_time(&self) -> bool {
        self.virtual_time.is_allowed
    }

    /// Whether time stands still.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.clock.is_paused()
    }

    /// Takes part in this machine's time; not in a forked child.
    pub fn participate(&'static self, how: Arc<dyn Participate>) -> Participant {
        // In a forked child the lock may be taken for ever, and the number is not used.
        let number = if self.is_forked() { 0 } else { self.virtual_time.lock().join(how) };
        Participant { machine: self, number }
    }

    /// Keeps paused time from moving by itself, for work that no participant knows of: a thread
    /// that computes, a process that was started, a thread that is about to take part.
    pub fn hold(&'static self) -> Hold {
        if !self.is_forked() {
            self.virtual_time.lock().holds += 1;
        }
        Hold { machine: self }
    }

    /// Stops the clock, at the next edge of a tick: durations of whole ticks then end exactly. Waits while
    /// the helper runs what is due, unless a callback calls this.
    ///
    /// # Errors
    /// When the machine was not made for it, or time is paused already.
    pub fn pause(&'static self) -> Result<(), TimeError> {
        let time = &self.virtual_time;
        if !time.is_allowed || !self.is_running() {
            return Err(TimeError::Refused);
        }
        self.while_nobody_runs(|| {
            if self.clock.is_paused() {
                return Err(TimeError::Paused);
            }
            let edge = self.clock.now().0.div_ceil(time.tick).saturating_mul(time.tick);
            self.clock.freeze(Nanos(edge));
            Ok(())
        })
    }

    /// Lets time go on, from where it stands.
    ///
    /// # Errors
    /// When time is not paused, or this process is a forked child.
    pub fn resume(&'static self) -> Result<(), TimeError> {
        self.while_nobody_runs(|| {
            if !self.clock.is_paused() {
                return Err(TimeError::NotPaused);
            }
            self.clock.thaw();
            Ok(())
        })?;
        // Alarms that were asked for while time stood still were not set: the helper looks at all timers.
        self.wake_helper();
        Ok(())
    }

    /// Moves a paused clock forward by `duration` in one jump, and runs what is due on this thread. All of it
    /// sees the clock at its new place. From inside a callback only the clock is moved; what becomes due runs
    /// after it.
    ///
    /// # Errors
    /// When time is not paused, or would leave its range, or this process is a forked child.
    pub fn advance(&'static self, duration: Duration) -> Result<(), TimeError> {
        let step = u64::try_from(duration.as_nanos()).map_err(|_| TimeError::TooFar)?;
        self.while_nobody_runs(|| {
            if !self.clock.is_paused() {
                return Err(TimeError::NotPaused);
            }
            // The greatest word says that time goes on.
            let target = self.clock.now().0.checked_add(step).filter(|target| *target != u64::MAX);
            self.clock.freeze(Nanos(target.ok_or(TimeError::TooFar)?));
            Ok(())
        })
    }
}

/// Pauses the time of the current machine: see [`Machine::pause`].
///
/// # Panics
/// When there is no current machine, it was not made for it, or its time is paused already.
#[track_caller]
pub fn pause() {
    if let Err(error) = Machine::current().pause() {
        panic!("{error}");
    }
}

/// Lets the time of the current machine go on: see [`Machine::resume`].
///
/// # Panics
/// When there is no current machine, or its time is not paused.
#[track_caller]
pub fn resume() {
    if let Err(error) = Machine::current().resume() {
        panic!("{error}");
    }
}

/// Moves the paused clock of the current machine forward in one jump, runs what is due, and yields once, so
/// that other tasks can see it: see [`Machine::advance`]. To let timers fire one after another, sleep
/// instead.
///
/// # Panics
/// When there is no current machine, its time is not paused, or would leave its range.
pub async fn advance(duration: Duration) {
    if let Err(error) = Machine::current().advance(duration) {
        panic!("{error}");
    }
    YieldOnce::default().await;
}

/// Keeps the paused time of the current machine from moving by itself: see [`Machine::hold`].
///
/// # Panics
/// When there is no current machine.
#[track_caller]
pub fn hold() -> Hold {
    Machine::current().hold()
}

/// Pending once.
#[derive(Default)]
struct YieldOnce {
    has_yielded: bool,
}

impl Future for YieldOnce {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if core::mem::replace(&mut self.has_yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}
