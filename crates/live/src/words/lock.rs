//! How threads wait for each other's short sections: the only place that spins or sleeps on a lock.
//!
//! The word is 0 or says on which CPU its holder took it. A lock is one compare-and-swap, an unlock a plain
//! store and a look at `waiters`: neither enters the kernel unless a thread sleeps. Who finds it taken spins
//! for about a microsecond, longer than any section, and then sleeps. If the holder's CPU is the waiter's
//! own, the holder was preempted and spinning keeps it from going on: the waiter sleeps at once.
//!
//! The wake that can be missed. Unlock stores the word and then reads `waiters` with no fence between (6 ns,
//! nearly as much as all the rest), so the read may come first:
//!   1. U reads `waiters`: 0 (its store to the word is still in its CPU's buffer);
//!   2. W stores `waiters` = 1, the kernel sees the word unchanged, W sleeps;
//!   3. U's store becomes visible. No thread wakes W.
//!
//! W sleeps for 50 us at the longest, so that is what it costs (plus the timer slack of a thread without a
//! real-time policy). The holder's CPU is a hint, too: the thread may have moved on since its last arm or, as
//! a lane, its last tick. A wrong hint costs a sleep or a microsecond of spinning, and only where two meet.
//!
//! Invariants: the thread that takes the word from 0 is the only holder until it stores 0; Acquire and
//! Release on the word order sections (`models.rs`). Absent: fairness, priority inheritance (a lock for lanes
//! with a real-time policy is another type), and a bias to the owner, whose place is `lock_owner`. Source:
//! docs/design/PROTOCOL.md, section 1.
#![allow(unsafe_code, reason = "a lock says that it is one")]

use crate::words::futex::FutexWord;
#[cfg(not(loom))]
use crate::words::present_cpu;
use crate::words::sync::{AtomicU32, Counter, Ordering, spin_loop};
use quietcore_core::{Nanos, RawLock};

/// No thread holds the lock.
const FREE: u32 = 0;

/// Looks at a taken word before a waiter sleeps: about 1 us. The processor's hint takes 13 ns on a Sapphire
/// Rapids, up to 45 ns on a Skylake; a look at a word that changes hands about as much again.
#[cfg(not(loom))]
const SPINS: u32 = 40;
#[cfg(loom)]
const SPINS: u32 = 1;

/// The longest sleep, and so the price of a missed wake.
const SLEEP_MAX: Nanos = Nanos::from_micros(50);

static HOLDER_PREEMPTED: Counter = Counter::new();
static SLEPT: Counter = Counter::new();
static SPUN: Counter = Counter::new();

/// How often locks of this process were found taken, and what that led to. Each count is since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockStatistics {
    /// The holder had been taken off the waiter's own CPU.
    pub holder_preempted: u64,
    /// Sleeps in the kernel.
    pub slept: u64,
    /// Locks that were had after spinning, without a sleep.
    pub spun: u64,
}

/// What was counted so far. Cost: three loads.
pub(crate) fn statistics() -> LockStatistics {
    LockStatistics { holder_preempted: HOLDER_PREEMPTED.get(), slept: SLEPT.get(), spun: SPUN.get() }
}

/// The lock of this world's bases: two words, 8 bytes. Made free.
///
/// For sections below a microsecond that call no user code. Any thread may call anything; no thread may rely
/// on an order among waiters. Cost: 8 ns for lock and unlock when no other thread wants it.
#[derive(Debug, Default)]
pub struct FutexLock {
    /// [`FREE`], or the holder's CPU + 1.
    word: FutexWord,
    /// Not 0: a thread may sleep. Set by who is about to, and by who took the lock after a sleep, on behalf
    /// of others that may still sleep; cleared by who wakes one.
    waiters: AtomicU32,
}

/// What a look at a lock came to.
enum LockLook {
    Taken,
    /// The holder's word.
    Held(u32),
}

/// What a holder writes: never [`FREE`].
#[cfg(not(loom))]
#[inline]
fn holder_word() -> u32 {
    // A host has fewer than 2^32 - 1 CPUs.
    present_cpu::recent_number() as u32 + 1
}

#[cfg(loom)]
loom::thread_local! {
    /// As the model says. The real CPU would differ between two drives of one order, which loom does not
    /// allow.
    static HOLDER: core::cell::Cell<u32> = core::cell::Cell::new(1);
}

#[cfg(loom)]
fn holder_word() -> u32 {
    HOLDER.with(core::cell::Cell::get)
}

impl FutexLock {
    #[inline(always)]
    fn lock(&self) {
        let me = holder_word();
        if let LockLook::Held(_) = self.try_once(me) {
            self.lock_slowly();
        }
    }

    #[inline]
    fn try_once(&self, me: u32) -> LockLook {
        // Acquire: pairs with Release in `unlock`: what the last holder did is seen. Relaxed: nothing was
        // taken.
        match self.word.value().compare_exchange(FREE, me, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => LockLook::Taken,
            Err(seen) => LockLook::Held(seen),
        }
    }

    #[cold]
    #[inline(never)]
    fn lock_slowly(&self) {
        let mut has_slept = false;
        loop {
            // Anew each time: a sleep may end on another CPU.
            let me = holder_word();
            match self.spin(me) {
                LockLook::Taken => break,
                LockLook::Held(FREE) => {}
                LockLook::Held(seen) => {
                    // In this order: who reads them the other way round finds no more preempted holders than
                    // sleeps.
                    SLEPT.count();
                    if seen == me {
                        HOLDER_PREEMPTED.count();
                    }
                    has_slept = true;
                    self.sleep(seen);
                }
            }
        }
        if has_slept {
            // The thread that woke this thread cleared the word for all sleepers; our unlock wakes the next
            // one. Relaxed: read by this thread's unlock, or by a later holder's.
            self.waiters.store(1, Ordering::Relaxed);
        } else {
            SPUN.count();
        }
    }

    /// Looks until the lock is taken, its holder turns out to be off this CPU, or the bound is reached.
    fn spin(&self, me: u32) -> LockLook {
        // Relaxed, both: a look; `try_once` takes the lock.
        let mut seen = self.word.value().load(Ordering::Relaxed);
        for _ in 0..SPINS {
            if seen == FREE {
                match self.try_once(me) {
                    LockLook::Taken => return LockLook::Taken,
                    LockLook::Held(now) => seen = now,
                }
            }
            if seen == me {
                return LockLook::Held(seen);
            }
            spin_loop();
            seen = self.word.value().load(Ordering::Relaxed);
        }
        LockLook::Held(seen)
    }

    /// Sleeps while the word is `seen`. If it changed hands to a thread on the same CPU in the meantime, the
    /// sleep is in vain and short.
    fn sleep(&self, seen: u32) {
        // Relaxed: pairs with the look in `unlock`. The kernel orders this store before its look at the word;
        // the unlocker's side has no fence, see above.
        self.waiters.store(1, Ordering::Relaxed);
        let _ = self.word.wait_for(seen, SLEEP_MAX);
    }

    #[cold]
    #[inline(never)]
    fn wake_one(&self) {
        // Relaxed: cleared by the waker and not by the sleeper, or else every unlock until the sleeper runs
        // (10 us and more) would enter the kernel. Who else sleeps depends on the one who is woken here.
        self.waiters.store(0, Ordering::Relaxed);
        self.word.wake(1);
    }
}

// SAFETY: `try_once` changes the word from 0 for one caller, and it becomes 0 again in that caller's `unlock`
// only; Acquire and Release on the word order their sections. The other methods return through it.
unsafe impl RawLock for FutexLock {
    #[inline(always)]
    fn lock_owner(&self) {
        self.lock();
    }

    #[inline(always)]
    fn lock_remote(&self) {
        self.lock();
    }

    #[inline]
    fn try_lock_remote(&self) -> bool {
        let me = holder_word();
        matches!(self.try_once(me), LockLook::Taken) || self.try_for_a_while(me)
    }

    #[inline]
    fn unlock(&self) {
        // Release: pairs with Acquire in `try_once`.
        self.word.value().store(FREE, Ordering::Release);
        // Relaxed: may be read before the store is seen; see above what that costs.
        if self.waiters.load(Ordering::Relaxed) != 0 {
            self.wake_one();
        }
    }
}

impl FutexLock {
    #[cold]
    #[inline(never)]
    fn try_for_a_while(&self, me: u32) -> bool {
        let is_taken = matches!(self.spin(me), LockLook::Taken);
        if is_taken {
            SPUN.count();
        }
        is_taken
    }
}

#[cfg(all(test, loom))]
mod models;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{FREE, FutexLock, HOLDER_PREEMPTED, SLEPT, holder_word, statistics};
    use crate::words::sync::Ordering;
    use core::cell::UnsafeCell;
    use quietcore_core::RawLock;
    use std::thread;
    use std::time::Duration;

    /// Goal: a lock is small enough to stand beside what it guards. Method: its size.
    #[test]
    fn two_words() {
        assert_eq!(size_of::<FutexLock>(), 8);
    }

    /// Goal: a lock that is held cannot be taken; one that is free can. Method: each call once.
    #[test]
    fn held_and_free() {
        let lock = FutexLock::default();
        lock.lock_owner();
        assert_eq!(lock.word.value().load(Ordering::Relaxed), holder_word());
        assert!(!lock.try_lock_remote() && !lock.try_lock_remote());
        lock.unlock();
        assert_eq!(lock.word.value().load(Ordering::Relaxed), FREE);
        lock.lock_remote();
        lock.unlock();
        assert!(lock.try_lock_remote());
        lock.unlock();
        assert_eq!(lock.waiters.load(Ordering::Relaxed), 0, "nobody had to wait");
    }

    /// A sum that only the holder of the lock touches.
    #[derive(Default)]
    struct Sum {
        lock: FutexLock,
        value: UnsafeCell<[u64; 2]>,
    }

    // SAFETY: `value` is touched between `lock` and `unlock` only.
    unsafe impl Sync for Sum {}

    impl Sum {
        fn add(&self) {
            // SAFETY: the lock is held.
            let [first, second] = unsafe { &mut *self.value.get() };
            assert_eq!(first, second, "somebody is in the middle of a section");
            *first += 1;
            *second += 1;
        }

        fn count(&self) {
            // SAFETY: the lock is held, unless undefined behaviour is what is asked for.
            unsafe { (*self.value.get())[0] += 1 };
        }
    }

    /// Goal: no section overlaps another, and all get through. Method: four threads, more than many a host
    /// has CPUs, so that holders are preempted; one only tries.
    #[test]
    fn many_threads_one_sum() {
        const ROUNDS: u64 = if cfg!(miri) { 30 } else { 50_000 };
        let sum = Sum::default();
        let tried = thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        sum.lock.lock_remote();
                        sum.add();
                        sum.lock.unlock();
                    }
                });
            }
            let trier = scope.spawn(|| {
                (0..ROUNDS)
                    .filter(|_| sum.lock.try_lock_remote())
                    .inspect(|_| {
                        sum.add();
                        sum.lock.unlock();
                    })
                    .count() as u64
            });
            trier.join().expect("it does not panic")
        });
        assert_eq!(sum.value.into_inner()[0], 3 * ROUNDS + tried);
    }

    /// Goal: `cargo xtask miri` and `cargo xtask tsan` see a race where there is one. Method: two threads
    /// write under the lock; where those commands ask for it, without it, and they expect a report.
    #[test]
    fn canary() {
        let is_locked = std::env::var_os("QUIETCORE_CANARY").is_none();
        let sum = Sum::default();
        let write = || {
            if is_locked {
                sum.lock.lock_remote();
            }
            sum.count();
            if is_locked {
                sum.lock.unlock();
            }
        };
        thread::scope(|scope| [(); 2].map(|()| scope.spawn(write)).map(drop));
        assert!(!is_locked || sum.value.into_inner()[0] == 2);
    }

    /// Goal: a waiter sleeps while the section is long, also if its holder seems to be on its CPU, and gets
    /// the lock afterwards. Method: the word says the waiter's CPU, or one that no host has.
    #[test]
    fn long_sections_are_slept_through() {
        for holder in [None, Some(u32::MAX)] {
            let lock = FutexLock::default();
            let before = statistics();
            thread::scope(|scope| {
                let word = holder.unwrap_or(holder_word());
                lock.word.value().store(word, Ordering::Relaxed);
                let waiter = scope.spawn(|| {
                    lock.lock_remote();
                    lock.unlock();
                });
                // The waiter cannot end before it slept; how often it does is up to the clock.
                while lock.waiters.load(Ordering::Relaxed) == 0 {
                    thread::sleep(Duration::from_micros(100));
                }
                lock.unlock();
                waiter.join().expect("it does not panic");
            });
            assert!(statistics().slept > before.slept, "{holder:?}");
            assert_eq!(lock.word.value().load(Ordering::Relaxed), FREE);
        }
        assert!(SLEPT.get() >= HOLDER_PREEMPTED.get(), "who waits for a preempted holder sleeps");
    }
}
