//! What happened on a CPU so far, to look at: counted where it happens, added up here.
//!
//! What bases count is counted under their locks and costs no atomic operation; reading it takes those locks,
//! one at a time. So the figures of one CPU are each true, but not of one moment. Marks are counted where
//! they are made, without a lock (`sync.rs`). Absent: time; a world that wants rates reads twice.

use super::{Machine, sync::CpuWatch};
use crate::base::{BaseId, BaseKind};
use crate::{CpuId, Nanos, RawLock};

/// How often things happened on a CPU's bases, or to the CPU. All figures only go up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Arms: pending periods that began.
    pub armed: u64,
    /// Pending periods that another arm ended.
    pub superseded: u64,
    /// Pending periods that a cancel or a shutdown ended.
    pub cancelled: u64,
    /// Timers of this CPU's bases that it ran itself.
    pub ran_here: u64,
    /// Timers of this CPU's bases that other CPUs ran.
    pub ran_elsewhere: u64,
    /// Timers that were due while they still ran, and waited for that.
    pub waited: u64,
    /// How often a base's runner was not allowed to go on: it was stuck, or left.
    pub revoked: u64,
    /// How often others marked this CPU absent.
    pub marks: u64,
    /// Marks without need: it came back at once.
    pub false_marks: u64,
    /// Marks that had to be put off, or remained incomplete, because the CPU was stopped inside a lock.
    pub busy_marks: u64,
}

/// What is known of a CPU that others may have to mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Silence {
    /// When it last began a turn or ended an item of it; if it sleeps, when it will wake up by itself or
    /// should have.
    pub since: Nanos,
    /// It went to sleep until that moment, and has not said that it is up.
    pub missed_wakeup: bool,
}

impl<L: RawLock, T: Copy> Machine<L, T> {
    /// What happened on `cpu` so far. From any thread; cost: the locks of its four bases, one at a time.
    ///
    /// # Panics
    /// When the machine has no such CPU.
    #[must_use]
    pub fn counters(&self, cpu: CpuId) -> Counters {
        let CpuWatch { marks, false_marks, busy_marks, .. } = &self.watch[cpu.index()];
        let mut sum = Counters {
            marks: marks.get(),
            false_marks: false_marks.get(),
            busy_marks: busy_marks.get(),
            ..Counters::default()
        };
        for kind in BaseKind::ALL {
            let base = self.bases.lock(BaseId { cpu, kind }, None).counters;
            sum.armed += base.armed;
            sum.superseded += base.superseded;
            sum.cancelled += base.cancelled;
            sum.ran_here += base.ran - base.ran_remote;
            sum.ran_elsewhere += base.ran_remote;
            sum.waited += base.waited;
            sum.revoked += base.revoked;
        }
        sum
    }

    /// How often others marked `cpu` absent. From any thread, without a lock: a world looks here which CPUs a
    /// call has marked.
    #[must_use]
    pub fn marks(&self, cpu: CpuId) -> u64 {
        self.watch[cpu.index()].marks.get()
    }

    /// Since when `cpu` says nothing, to the best of what is known without a lock; of a CPU that is marked
    /// that is what it was marked for. From any thread.
    #[must_use]
    pub fn silence(&self, cpu: CpuId) -> Silence {
        let watch = &self.watch[cpu.index()];
        let heartbeat = watch.heartbeat();
        match watch.sleeps_until().filter(|_| watch.flags.load().is_idle()) {
            Some(until) => Silence { since: heartbeat.max(until), missed_wakeup: true },
            None => Silence { since: heartbeat, missed_wakeup: false },
        }
    }

    /// Marks of all CPUs that had to be put off because the CPU was stopped inside a lock.
    #[must_use]
    pub fn busy_marks(&self) -> u64 {
        self.watch.iter().map(|watch| watch.busy_marks.get()).sum()
    }
}
