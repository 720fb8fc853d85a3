//! The park word: how a thread goes to sleep without missing what is left for it.
//!
//! Three states: the owner is awake (`RUNNING`), on its way to sleep or asleep (`PARKING`), or wanted awake
//! (`NOTIFIED`). Going to sleep is: [`Parker::prepare`]; look once more at everything that a sender may have
//! left; then [`Parker::wait`], or [`Parker::finish`] if there was something. Waking is: leave it there, then
//! [`Parker::unpark`]. What a sender must have done before `unpark`: all stores that the owner's second look
//! reads, or the store to one word (an atomic, or a lock's release) through which the look finds the rest.
//!
//! Races 1 and 2 of core's [lane/README.md](../../../core/src/lane/README.md): one of the two fences is
//! first, and the thread whose fence is second sees what the other left (`models.rs`, `a_sleeper_is_woken`).
//!
//! With an event descriptor the owner waits in its own `epoll` (`event.rs`).

mod event;
mod outcome;

use crate::words::futex::{FutexWord, Slept};
use crate::words::sync::{Ordering, fence, swap_then_fence};
use event::EventDescriptor;
pub(crate) use outcome::{Notify, Woken};
use quietcore_core::Nanos;
use std::io;
use std::os::fd::BorrowedFd;

/// The owner is awake.
const RUNNING: u32 = 0;
/// The owner looks for the last time, or sleeps.
const PARKING: u32 = 1;
/// A thread left something after the owner said PARKING.
const NOTIFIED: u32 = 2;

/// The word. One thread owns it; any thread may notify.
#[derive(Debug)]
struct ParkWord(FutexWord);

impl ParkWord {
    fn new() -> Self {
        Self(FutexWord::new(RUNNING))
    }

    /// For the owner, before its second look.
    fn prepare(&self) {
        // Pairs with the fence in `notify`, see the file's comment. A late sender's NOTIFIED is overwritten:
        // the look finds what it left.
        let before = swap_then_fence(self.0.value(), PARKING);
        debug_assert_ne!(before, PARKING, "parked twice");
    }

    /// For the owner, awake again for whatever reason: RUNNING.
    fn finish(&self) -> Woken {
        // Acquire: pairs with the fence in `notify`: what the sender left is seen now, not only by the next
        // look. No thread reads what this one would release.
        match self.0.value().swap(RUNNING, Ordering::Acquire) {
            NOTIFIED => Woken::Notified,
            _ => Woken::TimedOut,
        }
    }

    fn sleep(&self, until: Option<Nanos>) {
        // Relaxed: `finish` acquires. A signal alone ends no sleep.
        while self.0.value().load(Ordering::Relaxed) == PARKING {
            if self.0.wait(PARKING, until) == Slept::TimedOut {
                break;
            }
        }
    }

    /// For any thread, after publishing. `Woke` obliges the caller to wake the owner.
    #[inline]
    fn notify(&self) -> Notify {
        // Fence: pairs with the one in `prepare`, see the file's comment. Relaxed: the fence orders it.
        fence(Ordering::SeqCst);
        if self.0.value().load(Ordering::Relaxed) == RUNNING {
            return Notify::NotNeeded;
        }
        self.notify_sleeper()
    }

    #[cold]
    fn notify_sleeper(&self) -> Notify {
        // Relaxed: the fence in `notify` makes it a release, which pairs with Acquire in `finish`. Of two who
        // notify at once one finds PARKING; the chain of swaps hands to the owner what the other left, too.
        match self.0.value().swap(NOTIFIED, Ordering::Relaxed) {
            PARKING => Notify::Woke,
            _ => Notify::NotNeeded,
        }
    }
}

/// How an owner sleeps.
#[derive(Debug)]
enum SleepBy {
    Futex,
    Event(EventDescriptor),
}

/// A place to sleep for one thread, its owner. `unpark` is for any thread, all else for the owner.
#[derive(Debug)]
pub(crate) struct Parker {
    word: ParkWord,
    how: SleepBy,
}

impl Parker {
    /// For an owner that sleeps in [`wait`](Self::wait).
    pub(crate) fn futex() -> Self {
        Self { word: ParkWord::new(), how: SleepBy::Futex }
    }

    /// For an owner that sleeps elsewhere, for example in `epoll`, on [`descriptor`](Self::descriptor).
    ///
    /// # Errors
    /// When the process or the host has too many descriptors.
    pub(crate) fn event_descriptor() -> io::Result<Self> {
        Ok(Self { word: ParkWord::new(), how: SleepBy::Event(EventDescriptor::new()?) })
    }

    /// Readable while a thread wants the owner awake. The owner reads it through [`finish`](Self::finish)
    /// only.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match &self.how {
            SleepBy::Futex => None,
            SleepBy::Event(event) => Some(event.descriptor()),
        }
    }

    /// Says that the owner is about to sleep. Look at everything once more, then `wait` or `finish`.
    /// Cost: a fence.
    #[inline]
    pub(crate) fn prepare(&self) {
        self.word.prepare();
    }

    /// Sleeps until `unpark` or until `until` (`CLOCK_MONOTONIC`; `None`: for ever). `finish` follows.
    ///
    /// # Panics
    /// If the owner is one that sleeps elsewhere.
    pub(crate) fn sleep(&self, until: Option<Nanos>) {
        assert!(matches!(self.how, SleepBy::Futex), "whoever waits for a descriptor does it elsewhere");
        self.word.sleep(until);
    }

    /// The same, awake again.
    pub(crate) fn wait(&self, until: Option<Nanos>) -> Woken {
        self.sleep(until);
        self.finish()
    }

    /// The owner is awake: it has slept, or the second look found something and it does not sleep at all.
    pub(crate) fn finish(&self) -> Woken {
        let woken = self.word.finish();
        if let SleepBy::Event(event) = &self.how {
            event.settle(woken);
        }
        woken
    }

    /// Whether the owner sleeps, or is about to; a hint.
    pub(crate) fn is_waiting(&self) -> bool {
        // Relaxed: the thread that acts on it wakes the owner by `unpark`.
        self.word.0.value().load(Ordering::Relaxed) == PARKING
    }

    /// Wakes the owner if it sleeps or is about to. Publish first; see the file's comment what that means.
    /// Cost: a fence and a load if the owner is awake; 7 us if it sleeps.
    #[inline]
    pub(crate) fn unpark(&self) -> Notify {
        let notify = self.word.notify();
        if notify == Notify::Woke {
            self.wake();
        }
        notify
    }

    #[cold]
    fn wake(&self) {
        match &self.how {
            SleepBy::Futex => self.word.0.wake(1),
            SleepBy::Event(event) => event.signal(),
        }
    }
}

#[cfg(all(test, loom))]
mod models;

#[cfg(all(test, not(loom)))]
mod tests;
