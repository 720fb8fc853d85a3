//! When the thread behind the lanes has to be awake: the deadline word W. A timer of the world follows it.
//!
//! Any thread may make W earlier ([`Deadline::pull`]); an awake lane pushes it ahead of itself as long as it
//! turns (`push`). The thread that changed W then has the timer programmed ([`Deadline::program`]), without a
//! lock: programming takes half a microsecond, and the holder of a lock could be preempted in it. Two threads
//! that program at the same time may do so in the wrong order, so each reads W again afterwards and goes on
//! while W is earlier than what it programmed.
//!
//! Invariants, when no call is under way (`models.rs`):
//! - A1: the timer is programmed for W or earlier, or has expired and was not [taken](Deadline::take) since.
//!   Proof: let S be the last programming, for v, by T, and suppose W = w < v. T read W after S and saw no
//!   less than v, so w was written after what T saw, by a thread that lowers W and programs afterwards; that
//!   is before S, since S is the last. The timer's own lock orders it before S, and so before T's read, which
//!   must have seen w.
//! - A2: what was published before a `pull` is seen by the look after the `take` that ended it.
//!
//! Earlier than W is not repaired: the timer expires, the waiter takes, looks, finds nothing and pulls anew.
//! Later would be: a thread that repaired by programming what it had read, and lost its CPU before it did,
//! could move the timer behind a W that was set in the meantime, for as long as it is off its CPU. What
//! remains of this is a thread that is preempted between its change of W and its last look at it, when
//! another one pulled to a later moment meanwhile, or to the same: that one relies on it.
//!
//! The waiter's duty: wait for the timer; then `take`; then look at everything (also whether it is to end);
//! then `pull` what comes next. `take` swaps W to "none" and leaves the timer: it has expired. A pull before
//! the `take` is part of what the look finds (A2) and leaves at most one expiry for nothing; a pull after it
//! finds "none" and programs. Without `take` an expired W would swallow later pulls.
//!
//! Source: docs/design/PROTOCOL.md, sections 4 and 6.

use crate::Nanos;
use crate::sync::{AtomicU64, Ordering};
use crate::time::{NEVER, from_word, to_word};

/// W of a waiter that is to end.
const END: Nanos = Nanos(1);

/// What a call of `push` came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[must_use]
pub(super) enum PushOutcome {
    /// W is the new moment: the timer has to be programmed.
    Done,
    /// A thread changed W in the meantime, to this; nothing was done.
    Changed(Option<Nanos>),
}

/// The word. `take` is for one thread, the waiter; all else is for any thread.
#[derive(Debug)]
pub struct Deadline(AtomicU64);

impl Deadline {
    /// No moment.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "loom's atomics have no default")]
    pub fn new() -> Self {
        Self(AtomicU64::new(NEVER))
    }

    /// The moment for which the waiter is to be awake; a look.
    #[inline]
    #[must_use]
    pub fn load(&self) -> Option<Nanos> {
        // Relaxed: the thread that acts on it changes it by compare-and-swap.
        from_word(self.0.load(Ordering::Relaxed))
    }

    /// The waiter is to be awake at `at`, or earlier. Publish first what it is to find. Says whether that is
    /// news: then the timer has to be [programmed](Self::program). Cost: 5 ns.
    #[must_use = "a timer that is not programmed wakes nobody"]
    pub fn pull(&self, at: Nanos) -> bool {
        // Release, also if nothing changes: pairs with Acquire in `take` (A2). Relaxed would do for the
        // timer.
        at.0 < self.0.fetch_min(at.0, Ordering::Release)
    }

    /// The waiter is to end: no thread moves W away from this. As [`pull`](Self::pull).
    #[must_use = "a timer that is not programmed wakes nobody"]
    pub fn end(&self) -> bool {
        self.pull(END)
    }

    /// Moves W from what the caller saw to `at`: by the lane that answers for everything until `at`.
    /// Cost: a compare-and-swap.
    pub(super) fn push(&self, seen: Option<Nanos>, at: Option<Nanos>) -> PushOutcome {
        // AcqRel: as one that takes and pulls: pairs with Release in `pull`, so that it sees what was
        // published for the moment it replaces, and with Acquire in `take`. Relaxed: nothing was done.
        if seen == Some(END) {
            return PushOutcome::Changed(seen);
        }
        match self.0.compare_exchange(to_word(seen), to_word(at), Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => PushOutcome::Done,
            Err(now) => PushOutcome::Changed(from_word(now)),
        }
    }

    /// W is none, and is returned as it was. For the waiter, after its wait and before it looks. Cost: a
    /// swap.
    #[must_use = "the waiter judges by it"]
    pub fn take(&self) -> Option<Nanos> {
        // Acquire: pairs with Release in `pull` (A2). It releases nothing: no thread reads what the waiter
        // did here.
        from_word(self.0.swap(NEVER, Ordering::Acquire))
    }

    /// Has the world's timer programmed for W: `set` makes it expire once at a moment, at once if that is
    /// over, never if there is none. By the thread that changed W, with no lock held.
    pub fn program(&self, mut set: impl FnMut(Option<Nanos>)) {
        // Relaxed: its own change, or one that came after it.
        let mut moment = self.0.load(Ordering::Relaxed);
        loop {
            set(from_word(moment));
            // Relaxed: the timer's lock orders it after every change whose programming came first (A1).
            let word = self.0.load(Ordering::Relaxed);
            if word >= moment {
                return;
            }
            moment = word;
        }
    }
}

#[cfg(all(test, loom))]
mod models;

#[cfg(all(test, not(loom)))]
mod tests;
