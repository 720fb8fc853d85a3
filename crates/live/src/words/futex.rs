//! A word on which threads sleep in the kernel, and how they are woken.
//!
//! [`FutexWord::wait`] sleeps only if the word still has the value that the caller saw: the kernel compares
//! and queues in one step, under the lock under which [`FutexWord::wake`] looks for sleepers. So no thread
//! misses a wake that follows a change of the word. What the word means, and which changes are followed by a
//! wake, is the business of the files that use it. Words are private to the process.
//!
//! A return says little: a wake, a signal, a word that had changed. Callers look at their word again.
//! Under loom the kernel's queue is a mutex and a condition, with the same promise; a thread that no thread
//! wakes then fails the model. Source: futex(2), `FUTEX_WAIT_BITSET`.

use crate::words::sync::AtomicU32;

/// Why a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Slept {
    /// A thread woke the thread, or it did not sleep, or a signal came: look at the word.
    LookAgain,
    /// The moment came.
    TimedOut,
}

/// An atomic word with the kernel's queue behind it; 4 bytes.
#[derive(Debug, Default)]
pub(crate) struct FutexWord {
    value: AtomicU32,
    #[cfg(loom)]
    queue: likeness::Sleepers,
}

impl FutexWord {
    /// The word itself. The thread that changes it knows whether a wake is owed.
    #[inline]
    pub(crate) fn value(&self) -> &AtomicU32 {
        &self.value
    }
}

#[cfg(not(loom))]
mod kernel {
    #[cfg(miri)]
    use super::interpreted as futex;
    use super::{FutexWord, Slept};
    use crate::words::sync::AtomicU32;
    use core::num::NonZeroU32;
    use quietcore_core::Nanos;
    use rustix::io::Errno;
    #[cfg(not(miri))]
    use rustix::thread::futex;
    use rustix::thread::futex::Flags;
    use rustix::time::Timespec;

    const EVERYBODY: NonZeroU32 = NonZeroU32::MAX;

    impl FutexWord {
        pub(crate) const fn new(value: u32) -> Self {
            Self { value: AtomicU32::new(value) }
        }

        /// Sleeps while the word is `expected`, until `until` (`CLOCK_MONOTONIC`; `None`: for ever) at the
        /// longest. Cost: a system call. A moment of a thread without a real-time policy may be late by the
        /// thread's timer slack (50 us unless it was changed).
        pub(crate) fn wait(&self, expected: u32, until: Option<Nanos>) -> Slept {
            let until = until.map(timespec);
            // The bitset's variant takes a moment, the plain one a span.
            said(futex::wait_bitset(&self.value, Flags::PRIVATE, expected, until.as_ref(), EVERYBODY))
        }

        /// As `wait`, for at most `span`. The caller needs no clock.
        pub(crate) fn wait_for(&self, expected: u32, span: Nanos) -> Slept {
            said(futex::wait(&self.value, Flags::PRIVATE, expected, Some(&timespec(span))))
        }

        /// Wakes up to `count` sleepers. Cost: a system call, 7 us if a thread sleeps.
        pub(crate) fn wake(&self, count: u32) {
            // The kernel reads the count as signed. Nothing can fail: the address is a reference.
            let _ = futex::wake(&self.value, Flags::PRIVATE, count.min(i32::MAX as u32));
        }
    }

    fn said(result: Result<(), Errno>) -> Slept {
        match result {
            Ok(()) | Err(Errno::AGAIN | Errno::INTR) => Slept::LookAgain,
            Err(Errno::TIMEDOUT) => Slept::TimedOut,
            Err(errno) => panic!("a futex of this process refused to wait: {errno}"),
        }
    }

    fn timespec(nanos: Nanos) -> Timespec {
        const SECOND: u64 = 1_000_000_000;
        // 584 years of nanoseconds are few seconds for an i64.
        Timespec { tv_sec: (nanos.0 / SECOND) as i64, tv_nsec: (nanos.0 % SECOND) as _ }
    }
}

/// The same calls for the interpreter, which wants to see the types that the C library declares, and rustix
/// passes others of the same form.
#[cfg(miri)]
#[allow(unsafe_code, reason = "the C library's own call")]
mod interpreted {
    use core::num::NonZeroU32;
    use core::sync::atomic::AtomicU32;
    use rustix::io::{Errno, Result};
    use rustix::thread::futex::Flags;
    use rustix::time::Timespec;

    pub(super) fn wait_bitset(
        word: &AtomicU32,
        flags: Flags,
        expected: u32,
        until: Option<&Timespec>,
        set: NonZeroU32,
    ) -> Result<()> {
        call(word, libc::FUTEX_WAIT_BITSET | bits(flags), expected, until, set.get()).map(drop)
    }

    pub(super) fn wait(word: &AtomicU32, flags: Flags, expected: u32, span: Option<&Timespec>) -> Result<()> {
        call(word, libc::FUTEX_WAIT | bits(flags), expected, span, 0).map(drop)
    }

    pub(super) fn wake(word: &AtomicU32, flags: Flags, count: u32) -> Result<usize> {
        call(word, libc::FUTEX_WAKE | bits(flags), count, None, 0)
    }

    fn bits(flags: Flags) -> libc::c_int {
        flags.bits() as libc::c_int
    }

    fn call(
        word: &AtomicU32,
        operation: libc::c_int,
        value: u32,
        time: Option<&Timespec>,
        set: u32,
    ) -> Result<usize> {
        let time = time.map(|time| libc::timespec { tv_sec: time.tv_sec, tv_nsec: time.tv_nsec });
        let time = time.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
        let no_word = core::ptr::null_mut::<u32>();
        // SAFETY: the word and the time live until the call returns.
        let said =
            unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, time, no_word, set) };
        usize::try_from(said).map_err(|_| {
            let error = std::io::Error::last_os_error();
            Errno::from_io_error(&error).unwrap_or(Errno::INVAL)
        })
    }
}

/// The kernel's queue, as loom sees it.
#[cfg(loom)]
mod likeness {
    use super::{FutexWord, Slept};
    use crate::words::sync::{AtomicU32, Ordering};
    use loom::sync::{Condvar, Mutex};
    use quietcore_core::Nanos;

    #[derive(Debug, Default)]
    pub(super) struct Sleepers {
        /// The lock of the kernel's hash bucket.
        bucket: Mutex<()>,
        woken: Condvar,
    }

    impl FutexWord {
        pub(crate) fn new(value: u32) -> Self {
            Self { value: AtomicU32::new(value), queue: Sleepers::default() }
        }

        /// There is no clock: the thread that has a moment to wait for finds that it has come.
        pub(crate) fn wait(&self, expected: u32, until: Option<Nanos>) -> Slept {
            let bucket = self.queue.bucket.lock().expect("no thread panicked");
            // Relaxed: who changed the word and woke before this held the bucket's lock.
            if self.value.load(Ordering::Relaxed) != expected {
                return Slept::LookAgain;
            }
            if until.is_some() {
                return Slept::TimedOut;
            }
            drop(self.queue.woken.wait(bucket).expect("no thread panicked"));
            Slept::LookAgain
        }

        pub(crate) fn wait_for(&self, expected: u32, span: Nanos) -> Slept {
            loom::thread::yield_now();
            self.wait(expected, Some(span))
        }

        pub(crate) fn wake(&self, count: u32) {
            let _bucket = self.queue.bucket.lock().expect("no thread panicked");
            match count {
                1 => self.queue.woken.notify_one(),
                _ => self.queue.woken.notify_all(),
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{FutexWord, Slept};
    use crate::words::sync::Ordering;
    use quietcore_core::Nanos;
    use std::thread;

    /// Goal: a word that changed is not slept on; a moment in the past ends a sleep at once. Method: each
    /// once, moments and spans.
    #[test]
    fn sleeps_end() {
        let word = FutexWord::new(3);
        assert_eq!(word.wait(4, None), Slept::LookAgain, "the word is not 4");
        assert_eq!(word.wait_for(4, Nanos(u64::MAX)), Slept::LookAgain, "the word is not 4");
        for until in [0, 1, 1_000_000] {
            assert_eq!(word.wait(3, Some(Nanos(until))), Slept::TimedOut, "{until} ns after boot is over");
        }
        assert_eq!(word.wait_for(3, Nanos(1_000)), Slept::TimedOut);
        word.wake(u32::MAX);
    }

    /// Goal: a change that is followed by a wake ends a sleep, whichever comes first. Method: many rounds of
    /// two threads that wake each other; a lost wake hangs.
    #[test]
    fn wakes_are_not_lost() {
        const ROUNDS: u32 = if cfg!(miri) { 20 } else { 2_000 };
        let word = FutexWord::new(0);
        let play = |odd: u32| {
            for round in 0..ROUNDS {
                let turn = 2 * round + odd;
                loop {
                    // Acquire: pairs with Release below, from the other thread.
                    let seen = word.value().load(Ordering::Acquire);
                    if seen == turn {
                        break;
                    }
                    let _ = word.wait(seen, None);
                }
                // Release: pairs with Acquire above.
                word.value().store(turn + 1, Ordering::Release);
                word.wake(1);
            }
        };
        thread::scope(|scope| {
            scope.spawn(|| play(1));
            play(0);
        });
        assert_eq!(word.value().load(Ordering::Relaxed), 2 * ROUNDS);
    }
}
