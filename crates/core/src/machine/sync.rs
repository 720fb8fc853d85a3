//! What a machine's CPUs say of themselves without a lock: hints, all of them. Locks decide what is true.
//!
//! Every access is Relaxed: a hint orders nothing, and a CPU that acts on one takes the lock and looks again;
//! the partner of each access is that lock. A heartbeat that is read too late marks a CPU a tick later. The
//! flags are in `cpu_flags.rs`.

use super::cpu_flags::CpuFlags;
use super::stall::policy::Patience;
use crate::Nanos;
use crate::sync::{AtomicU64, Ordering};
use crate::time::{NEVER, from_word, to_word};

/// What a CPU tells others that look at it without a lock. On cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct CpuWatch {
    /// When it last began a turn or finished an item, in ns. Written by the CPU itself.
    heartbeat: AtomicU64,
    pub(super) flags: CpuFlags,
    /// When it last looked after others, in ns. Written by the CPU itself.
    looked: AtomicU64,
    /// When it will wake up by itself, in ns; said when it last went idle.
    sleeps_until: AtomicU64,
    /// Until then the CPU has [`Patience::Doubled`], in ns. Written by the CPU itself.
    patient_until: AtomicU64,
    /// When a mark last was false, in ns. Written by the CPU itself.
    falsely_marked: AtomicU64,
    /// How often it was marked; by the marker.
    pub(super) marks: EventCount,
    /// How many of those marks were false: it returned at once.
    pub(super) false_marks: EventCount,
    /// Marks that could not be made because a lock of it was not to be had.
    pub(super) busy_marks: EventCount,
}

impl CpuWatch {
    pub(super) fn new() -> Self {
        Self {
            heartbeat: AtomicU64::new(0),
            flags: CpuFlags::default(),
            looked: AtomicU64::new(0),
            sleeps_until: AtomicU64::new(NEVER),
            patient_until: AtomicU64::new(0),
            falsely_marked: AtomicU64::new(NEVER),
            marks: EventCount::default(),
            false_marks: EventCount::default(),
            busy_marks: EventCount::default(),
        }
    }

    #[inline]
    pub(super) fn beat(&self, now: Nanos) {
        self.heartbeat.store(now.0, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn heartbeat(&self) -> Nanos {
        Nanos(self.heartbeat.load(Ordering::Relaxed))
    }

    /// The CPU looks after others now; returns when it last did.
    #[inline]
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
        self.patient_until.store(until.0, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn patience(&self, now: Nanos) -> Patience {
        let is_doubled = now.0 < self.patient_until.load(Ordering::Relaxed);
        if is_doubled { Patience::Doubled } else { Patience::Usual }
    }

    /// A mark was false; returns when one last was before.
    pub(super) fn was_falsely_marked(&self, now: Nanos) -> Option<Nanos> {
        from_word(self.falsely_marked.swap(now.0, Ordering::Relaxed))
    }
}

/// The alarm that the world was asked for, until it goes off. The world orders its own timer.
#[derive(Debug)]
pub(super) struct TreeAlarm(AtomicU64);

impl TreeAlarm {
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
#[derive(Debug, Default)]
pub(super) struct LastTick(AtomicU64);

impl LastTick {
    /// Whether the caller is the first in `tick`.
    pub(super) fn is_first_in(&self, tick: u64) -> bool {
        // A look first: a word that all CPUs only read is shared.
        self.0.load(Ordering::Relaxed) < tick && self.0.fetch_max(tick, Ordering::Relaxed) < tick
    }
}

/// How often something happened, or how much of it is left.
#[derive(Debug, Default)]
pub(super) struct EventCount(AtomicU64);

impl EventCount {
    pub(super) fn count(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// May be behind its cause for a moment: a count below 0 is not 0, either.
    pub(super) fn add(&self, difference: i32) {
        if difference != 0 {
            self.0.fetch_add(i64::from(difference).cast_unsigned(), Ordering::Relaxed);
        }
    }

    #[inline]
    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
