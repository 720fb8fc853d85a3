//! The timer that follows the machine's deadline word: what the helper, or the sentinel, waits on.
//!
//! When it is to go off is decided in the core ([`Deadline`]); here it is programmed and waited for. A timer
//! of the kernel is programmed without waking the thread that waits for it. Tests make thousands of machines
//! whose time can be paused: those have none, and each programming wakes the thread. Source:
//! timerfd_create(2).

use crate::clock::monotonic;
use crate::words::sync::Counter;
use core::time::Duration;
use quietcore_core::Nanos;
use quietcore_core::lane::Deadline;
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Condvar, Mutex, PoisonError, RwLock};

/// A timer on `CLOCK_MONOTONIC`. `wait` and `end` are for one thread, all else for any.
#[derive(Debug)]
pub(crate) struct Alarm {
    timer: AlarmTimer,
    programmed: Counter,
}

#[derive(Debug)]
enum AlarmTimer {
    /// The kernel's, until the thread that waits has ended.
    Kernel(RwLock<Option<OwnedFd>>),
    /// The waiting thread's sleep, until this moment.
    Sleep { until: Mutex<Option<Nanos>>, changed: Condvar },
}

impl Alarm {
    /// On a timer of the kernel. Never goes off.
    ///
    /// # Errors
    /// When the process or the host has too many descriptors.
    pub(crate) fn of_kernel() -> io::Result<Self> {
        if cfg!(miri) {
            // Miri has no such timers, and both kinds keep the same promise.
            return Ok(Self::of_sleep());
        }
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
        Ok(Self::on(AlarmTimer::Kernel(RwLock::new(Some(timer)))))
    }

    /// Without a descriptor. Never goes off.
    pub(crate) fn of_sleep() -> Self {
        Self::on(AlarmTimer::Sleep { until: Mutex::new(None), changed: Condvar::new() })
    }

    const fn on(timer: AlarmTimer) -> Self {
        Self { timer, programmed: Counter::new() }
    }

    /// Goes off when `deadline`, which the caller changed, says. Cost: a system call of 0.5 us.
    pub(crate) fn follow(&self, deadline: &Deadline) {
        deadline.program(|moment| {
            self.programmed.count();
            self.program(moment);
        });
    }

    /// Sleeps until it goes off, or a signal comes. Perhaps for nothing: take the deadline and look.
    pub(crate) fn wait(&self) {
        match &self.timer {
            AlarmTimer::Kernel(timer) => {
                let timer = timer.read().unwrap_or_else(PoisonError::into_inner);
                let timer = timer.as_ref().expect("the thread that waits ends it");
                let mut expirations = [0; 8];
                match rustix::io::read(timer, &mut expirations) {
                    Ok(8) | Err(Errno::INTR) => {}
                    other => panic!("a timer of this process refused a read: {other:?}"),
                }
            }
            AlarmTimer::Sleep { until, changed } => sleep_until(until, changed),
        }
    }

    /// The thread that waited has ended, or never began: what was opened is closed, and programming does
    /// nothing.
    pub(crate) fn end(&self) {
        if let AlarmTimer::Kernel(timer) = &self.timer {
            *timer.write().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }

    /// How often the kernel's timer was programmed.
    pub(crate) fn programmed(&self) -> u64 {
        self.programmed.get()
    }

    /// Expires once at `moment`, at once if that is over, never if it is none.
    fn program(&self, moment: Option<Nanos>) {
        match &self.timer {
            AlarmTimer::Kernel(timer) => {
                let timer = timer.read().unwrap_or_else(PoisonError::into_inner);
                let Some(timer) = timer.as_ref() else { return };
                let result = timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &once_at(moment));
                result.expect("a timer of this process takes any moment");
            }
            AlarmTimer::Sleep { until, changed } => {
                *until.lock().unwrap_or_else(PoisonError::into_inner) = moment;
                changed.notify_one();
            }
        }
    }
}

fn once_at(moment: Option<Nanos>) -> Itimerspec {
    const SECOND: u64 = 1_000_000_000;
    let zero = Timespec::default();
    let value = moment.map_or(zero, |moment| {
        // 0 would be none.
        let moment = moment.0.max(1);
        Timespec { tv_sec: (moment / SECOND) as i64, tv_nsec: (moment % SECOND) as _ }
    });
    Itimerspec { it_interval: zero, it_value: value }
}

/// Returns when the moment has come, and takes it away.
fn sleep_until(until: &Mutex<Option<Nanos>>, changed: &Condvar) {
    let mut locked = until.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let left = locked.map(|moment| moment.since(monotonic()).0);
        locked = match left {
            None => changed.wait(locked).unwrap_or_else(PoisonError::into_inner),
            Some(0) => {
                *locked = None;
                return;
            }
            Some(left) => {
                let waited = changed.wait_timeout(locked, Duration::from_nanos(left));
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        };
    }
}

#[cfg(test)]
mod tests;
