//! When the helper has to be awake: the deadline word W, and the kernel timer that follows it.
//!
//! Any thread may make W earlier ([`Alarm::pull`]); an awake lane pushes it ahead of itself as long as it
//! runs ([`Alarm::push`]). The thread that changed W then programs the timer, without a lock: programming
//! takes half a microsecond, and the holder of a lock could be preempted in it. Two threads that program at
//! the same time may do so in the wrong order, so each reads W again afterwards and goes on while W is
//! earlier than what it programmed.
//!
//! Invariants, when no call is under way (`models.rs`):
//! - A1: the timer is programmed for W or earlier, or has expired and [`Alarm::take`] was not called since.
//!   Proof: let S be the last programming, for v, by T, and suppose W = w < v. T read W after S and saw no
//!   less than v, so w was written after what T saw, by a thread that lowers W and programs afterwards; that
//!   is before S, since S is the last. The timer's own lock orders it before S, and so before T's read, which
//!   must have seen w.
//! - A2: what was published before a `pull` is seen by the look after the `take` that ended it.
//!
//! Earlier than W is not repaired: the timer expires, the helper takes, looks, finds nothing and pulls anew.
//! Later would be: a caller that repaired by programming what it had read, and lost its CPU before it did,
//! could move the timer behind a W that was set in the meantime, for as long as it is off its CPU. What
//! remains of this is a caller that is preempted between its programming and its second look, when another
//! pulled during its system call.
//!
//! The waiter's duty: `wait`; then `take`; then look at everything (also whether it is to end); then `pull`
//! what comes next. `take` swaps W to "none" and leaves the timer: it has expired. A pull before the `take`
//! is part of what the look finds (A2) and leaves at most one expiry for nothing; a pull after it finds
//! "none" and programs. Without `take` an expired W would swallow later pulls.
//!
//! Source: docs/design/PROTOCOL.md, sections 4 and 6; timerfd_create(2).

use crate::words::sync::{AtomicU64, Counter, Ordering};
use kernel::KernelTimer;
use quietcore_core::Nanos;

/// W: no moment.
const NONE: u64 = u64::MAX;

/// W of a waiter that is to end.
const END: Nanos = Nanos(1);

/// What a call of `push` came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[must_use]
pub(crate) enum PushOutcome {
    /// W is the new moment.
    Done,
    /// A thread changed W in the meantime, to this; nothing was done.
    Changed(Option<Nanos>),
}

/// The word and its timer. `wait` and `take` are for one thread, the waiter; all else is for any thread.
#[derive(Debug)]
pub(crate) struct Alarm {
    /// W, in ns of `CLOCK_MONOTONIC`.
    word: AtomicU64,
    timer: KernelTimer,
    programmed: Counter,
}

impl Alarm {
    /// The moment for which the waiter is to be awake; a look.
    #[inline]
    pub(crate) fn load(&self) -> Option<Nanos> {
        // Relaxed: the thread that acts on it changes it by compare-and-swap.
        from_word(self.word.load(Ordering::Relaxed))
    }

    /// The waiter is awake at `at`, or earlier. Publish first what it is to find. Cost: 5 ns if it is anyway;
    /// else a system call of 0.5 us.
    pub(crate) fn pull(&self, at: Nanos) {
        // Release, also if nothing changes: pairs with Acquire in `take` (A2). Relaxed would do for the
        // timer.
        let before = self.word.fetch_min(at.0, Ordering::Release);
        if at.0 < before {
            self.program(at.0);
        }
    }

    /// The waiter is to end: no thread moves W away from this.
    pub(crate) fn end(&self) {
        self.pull(END);
    }

    /// Moves W from what the caller saw to `at`: for who answers for everything until `at`.
    /// Cost: a compare-and-swap; if it is done, a system call of 0.5 us.
    pub(crate) fn push(&self, seen: Option<Nanos>, at: Option<Nanos>) -> PushOutcome {
        // AcqRel: as one that takes and pulls: pairs with Release in `pull`, so that it sees what was
        // published for the moment it replaces, and with Acquire in `take`. Relaxed: nothing was done.
        if seen == Some(END) {
            return PushOutcome::Changed(seen);
        }
        let moment = to_word(at);
        match self.word.compare_exchange(to_word(seen), moment, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => {
                self.program(moment);
                PushOutcome::Done
            }
            Err(now) => PushOutcome::Changed(from_word(now)),
        }
    }

    /// W is none, and is returned as it was. For the waiter, after `wait` and before it looks. Cost: a swap.
    pub(crate) fn take(&self) -> Option<Nanos> {
        // Acquire: pairs with Release in `pull` (A2). It releases nothing: no thread reads what the waiter
        // did here.
        from_word(self.word.swap(NONE, Ordering::Acquire))
    }

    /// How often the kernel's timer was programmed.
    pub(crate) fn programmed(&self) -> u64 {
        self.programmed.get()
    }

    fn program(&self, mut moment: u64) {
        loop {
            self.programmed.count();
            self.timer.program(moment);
            // Relaxed: the timer's lock orders it after every change whose programming came first (A1).
            let word = self.word.load(Ordering::Relaxed);
            if word >= moment {
                return;
            }
            moment = word;
        }
    }
}

#[inline]
fn to_word(moment: Option<Nanos>) -> u64 {
    moment.map_or(NONE, |moment| moment.0)
}

#[inline]
fn from_word(word: u64) -> Option<Nanos> {
    (word != NONE).then_some(Nanos(word))
}

#[cfg(not(loom))]
mod kernel {
    use super::{Alarm, AtomicU64, Counter, NONE};
    use rustix::io::Errno;
    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use std::io;
    use std::os::fd::OwnedFd;
    #[cfg(test)]
    use std::os::fd::{AsFd, BorrowedFd};

    /// A timer of the kernel on `CLOCK_MONOTONIC`.
    #[derive(Debug)]
    pub(super) struct KernelTimer(OwnedFd);

    impl KernelTimer {
        /// Expires once at `moment`, at once if that is over, never if it is none.
        pub(super) fn program(&self, moment: u64) {
            const SECOND: u64 = 1_000_000_000;
            let zero = Timespec::default();
            let value = match moment {
                NONE => zero,
                // 0 would be none.
                _ => {
                    let moment = moment.max(1);
                    Timespec { tv_sec: (moment / SECOND) as i64, tv_nsec: (moment % SECOND) as _ }
                }
            };
            let once = Itimerspec { it_interval: zero, it_value: value };
            let result = timerfd_settime(&self.0, TimerfdTimerFlags::ABSTIME, &once);
            result.expect("a timer of this process takes any moment");
        }
    }

    impl Alarm {
        /// W is none.
        ///
        /// # Errors
        /// When the process or the host has too many descriptors.
        pub(crate) fn new() -> io::Result<Self> {
            let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
            Ok(Self { word: AtomicU64::new(NONE), timer: KernelTimer(timer), programmed: Counter::new() })
        }

        /// Sleeps until the timer expires, or a signal comes. Perhaps for nothing: `take` and look.
        pub(crate) fn wait(&self) {
            let mut expirations = [0; 8];
            match rustix::io::read(&self.timer.0, &mut expirations) {
                Ok(8) | Err(Errno::INTR) => {}
                other => panic!("a timer of this process refused a read: {other:?}"),
            }
        }

        /// Readable when the timer has expired, until `wait`.
        #[cfg(test)]
        pub(super) fn fd(&self) -> BorrowedFd<'_> {
            self.timer.0.as_fd()
        }
    }
}

/// The kernel's timer, as loom sees it: a moment under a lock.
#[cfg(loom)]
mod kernel {
    use super::{Alarm, AtomicU64, Counter, NONE};
    use loom::sync::Mutex;

    #[derive(Debug)]
    pub(super) struct KernelTimer(Mutex<u64>);

    impl KernelTimer {
        pub(super) fn program(&self, moment: u64) {
            *self.0.lock().expect("no thread panicked") = moment;
        }
    }

    impl Alarm {
        pub(crate) fn model() -> Self {
            Self {
                word: AtomicU64::new(NONE),
                timer: KernelTimer(Mutex::new(NONE)),
                programmed: Counter::new(),
            }
        }

        /// It expires, and the waiter reads it.
        pub(super) fn expire(&self) {
            self.timer.program(NONE);
        }

        /// What the timer is programmed for.
        pub(super) fn timer(&self) -> u64 {
            *self.timer.0.lock().expect("no thread panicked")
        }
    }
}

#[cfg(all(test, loom))]
mod models;

#[cfg(all(test, not(loom)))]
mod tests;
