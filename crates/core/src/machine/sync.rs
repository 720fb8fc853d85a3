//! What a machine's CPUs say of themselves without a lock: hints, all of them. Locks decide what is true.
//!
//! Every access is Relaxed: a hint orders nothing, and whoever acts on one takes the lock and looks again.
//! Who reads a heartbeat too late marks a CPU a tick later; who reads a flag too late places a timer by an
//! older mask, as if it had been armed a moment earlier.

use crate::Nanos;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::time::{NEVER, from_word, to_word};

/// Bits of [`Watch::has`].
pub(super) mod flag {
    /// The CPU has nothing to run but timers.
    pub(in crate::machine) const IDLE: u32 = 1;
    /// Somebody marked it absent.
    pub(in crate::machine) const MARKED: u32 = 2;
    /// Timers that others arm may be put here.
    pub(in crate::machine) const TIMERS: u32 = 4;
    /// It is online.
    pub(in crate::machine) const ONLINE: u32 = 8;
    /// It was marked, and may have tokens that were not taken back yet.
    pub(in crate::machine) const REVOKE: u32 = 16;
    /// Its first global expiry has to be published anew; the lock was not to be had.
    pub(in crate::machine) const PUBLISH: u32 = 32;
    /// Its duties were handed over, and its bases could not be locked to complete the mark.
    pub(in crate::machine) const HANDED: u32 = 128;
    /// It was marked by somebody else, not by itself.
    pub(in crate::machine) const ACCUSED: u32 = 64;
}

/// What a CPU tells those who look at it without a lock. On cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Watch {
    /// When it last began a turn or finished an item, in ns. Written by the CPU itself.
    heartbeat: AtomicU64,
    flags: AtomicU32,
    /// When it last looked after others, in ns. Written by the CPU itself.
    looked: AtomicU64,
    /// When it will wake up by itself, in ns; said when it last went idle.
    sleeps_until: AtomicU64,
    /// Until then a mark needs twice the time: two were false lately.
    patience: AtomicU64,
    /// When a mark last was false, in ns. Written by the CPU itself.
    falsely: AtomicU64,
    /// How often somebody marked it, by whoever did.
    pub(super) marks: Counter,
    /// How many of them were false: it came back at once.
    pub(super) false_marks: Counter,
    /// Marks that could not be made because a lock of it was not to be had.
    pub(super) busy_marks: Counter,
}

impl Watch {
    pub(super) fn new() -> Self {
        Self {
            heartbeat: AtomicU64::new(0),
            flags: AtomicU32::new(0),
            looked: AtomicU64::new(0),
            sleeps_until: AtomicU64::new(NEVER),
            patience: AtomicU64::new(0),
            falsely: AtomicU64::new(NEVER),
            marks: Counter::new(),
            false_marks: Counter::new(),
            busy_marks: Counter::new(),
        }
    }

    #[inline]
    pub(super) fn beat(&self, now: Nanos) {
        self.heartbeat.store(now.0, Ordering::Relaxed);
    }

    pub(super) fn heartbeat(&self) -> Nanos {
        Nanos(self.heartbeat.load(Ordering::Relaxed))
    }

    #[inline]
    pub(super) fn has(&self, flag: u32) -> bool {
        self.flags.load(Ordering::Relaxed) & flag != 0
    }

    /// Returns whether it was not set.
    #[inline]
    pub(super) fn set(&self, flag: u32) -> bool {
        self.flags.fetch_or(flag, Ordering::Relaxed) & flag == 0
    }

    /// Returns whether it was set.
    #[inline]
    pub(super) fn clear(&self, flag: u32) -> bool {
        self.flags.fetch_and(!flag, Ordering::Relaxed) & flag != 0
    }

    /// The CPU looks after others now; returns when it last did.
    pub(super) fn look(&self, now: Nanos) -> Nanos {
        Nanos(self.looked.swap(now.0, Ordering::Relaxed))
    }

    pub(super) fn sleep_until(&self, until: Option<Nanos>) {
        self.sleeps_until.store(to_word(until), Ordering::Relaxed);
    }

    pub(super) fn sleeps_until(&self) -> Option<Nanos> {
        from_word(self.sleeps_until.load(Ordering::Relaxed))
    }

    pub(super) fn be_patient_until(&self, until: Nanos) {
        self.patience.store(until.0, Ordering::Relaxed);
    }

    /// A mark was false; returns when one last was before.
    pub(super) fn accused_falsely(&self, now: Nanos) -> Option<Nanos> {
        from_word(self.falsely.swap(now.0, Ordering::Relaxed))
    }

    pub(super) fn is_patient(&self, now: Nanos) -> bool {
        now.0 < self.patience.load(Ordering::Relaxed)
    }
}

/// The alarm that the world was asked for, until it goes off. The world orders its own timer.
#[derive(Debug)]
pub(super) struct Alarm(AtomicU64);

impl Alarm {
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(NEVER))
    }

    pub(super) fn get(&self) -> Option<Nanos> {
        from_word(self.0.load(Ordering::Relaxed))
    }

    pub(super) fn ask_for(&self, expires: Nanos) {
        self.0.fetch_min(expires.0, Ordering::Relaxed);
    }

    pub(super) fn forget(&self) {
        self.0.store(NEVER, Ordering::Relaxed);
    }
}

/// The last tick in which something was done that one CPU does for all. A hint: twice does no harm.
#[derive(Debug)]
pub(super) struct LastTick(AtomicU64);

impl LastTick {
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Whether the caller is the first in `tick`.
    pub(super) fn is_first_in(&self, tick: u64) -> bool {
        // A look first: a word that all CPUs only read is shared.
        self.0.load(Ordering::Relaxed) < tick && self.0.fetch_max(tick, Ordering::Relaxed) < tick
    }
}

/// Counts.
#[derive(Debug)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    pub(super) fn count(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_down(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
