//! The kernel's timer that follows the machine's deadline word: what the helper, or the sentinel, waits on.
//!
//! When it is to go off is decided in the core ([`Deadline`]); here it is programmed and waited for. Source:
//! timerfd_create(2).

use crate::words::sync::Counter;
use quietcore_core::Nanos;
use quietcore_core::lane::Deadline;
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::io;
use std::os::fd::OwnedFd;

/// A timer of the kernel on `CLOCK_MONOTONIC`. `wait` is for one thread, all else for any.
#[derive(Debug)]
pub(crate) struct Alarm {
    timer: OwnedFd,
    programmed: Counter,
}

impl Alarm {
    /// Never goes off.
    ///
    /// # Errors
    /// When the process or the host has too many descriptors.
    pub(crate) fn new() -> io::Result<Self> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
        Ok(Self { timer, programmed: Counter::new() })
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
        let mut expirations = [0; 8];
        match rustix::io::read(&self.timer, &mut expirations) {
            Ok(8) | Err(Errno::INTR) => {}
            other => panic!("a timer of this process refused a read: {other:?}"),
        }
    }

    /// How often the kernel's timer was programmed.
    pub(crate) fn programmed(&self) -> u64 {
        self.programmed.get()
    }

    /// Expires once at `moment`, at once if that is over, never if it is none.
    fn program(&self, moment: Option<Nanos>) {
        const SECOND: u64 = 1_000_000_000;
        let zero = Timespec::default();
        let value = moment.map_or(zero, |moment| {
            // 0 would be none.
            let moment = moment.0.max(1);
            Timespec { tv_sec: (moment / SECOND) as i64, tv_nsec: (moment % SECOND) as _ }
        });
        let once = Itimerspec { it_interval: zero, it_value: value };
        let result = timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once);
        result.expect("a timer of this process takes any moment");
    }
}

#[cfg(test)]
mod tests;
