//! Real-time threads like those of cyclictest, and what CPUs know of each other's priorities, as data.

use crate::figures::CyclicThread;
use crate::scenario::Cyclic;
use quietcore_core::CpuSet;
use quietcore_core::realtime::CpuPriorities;

#[derive(Clone, Copy, Debug)]
pub(crate) struct CyclicState {
    pub(crate) cyclic: Cyclic,
    pub(crate) task: u32,
    /// When its interval is over, or was.
    pub(crate) due: u64,
    first_due: u64,
    cycles: u64,
    skipped: u64,
    least: u64,
    last: u64,
    sum: u64,
    most: u64,
}

impl CyclicState {
    pub(crate) const fn new(cyclic: Cyclic, task: u32, due: u64) -> Self {
        let (cycles, skipped, sum) = (0, 0, 0);
        Self { cyclic, task, due, first_due: due, cycles, skipped, least: u64::MAX, last: 0, sum, most: 0 }
    }

    /// It runs at `now`; returns how late that is.
    pub(crate) fn wake(&mut self, now: u64) -> u64 {
        let late = now.saturating_sub(self.due);
        (self.last, self.least, self.most) = (late, self.least.min(late), self.most.max(late));
        self.cycles += 1;
        self.sum += late;
        late
    }

    /// It has worked; returns when its next interval is over. Those that are over by now are skipped.
    pub(crate) fn sleep(&mut self, now: u64) -> u64 {
        let over = (now - self.due) / self.cyclic.interval;
        self.skipped += over;
        self.due += (over + 1) * self.cyclic.interval;
        self.due
    }

    pub(crate) fn figures(&self, end: u64) -> CyclicThread {
        let expected =
            if end < self.first_due { 0 } else { (end - self.first_due) / self.cyclic.interval + 1 };
        CyclicThread {
            task: self.task,
            priority: self.cyclic.priority.get(),
            interval_ns: self.cyclic.interval,
            cycles: self.cycles,
            expected,
            skipped: self.skipped,
            min_ns: if self.cycles == 0 { 0 } else { self.least },
            act_ns: self.last,
            avg_ns: self.sum.checked_div(self.cycles).unwrap_or(0),
            max_ns: self.most,
            latency_ns: None,
        }
    }
}

/// What is known of all CPUs and threads.
#[derive(Debug)]
pub(crate) struct RealtimeState {
    pub(crate) priorities: CpuPriorities,
    pub(crate) threads: Vec<CyclicState>,
    /// CPUs with more than one real-time task, one of which may go.
    pub(crate) overloaded: CpuSet,
    /// Counts up with every search: which of equally good CPUs is taken.
    pub(crate) turn: usize,
    /// Counts up with every task that is put behind its equals.
    stamp: u64,
}

impl RealtimeState {
    pub(crate) fn new(cpu_count: u16) -> Self {
        Self {
            priorities: CpuPriorities::new(cpu_count),
            threads: Vec::new(),
            overloaded: CpuSet::new(),
            turn: 0,
            stamp: 0,
        }
    }

    pub(crate) fn next_stamp(&mut self) -> u64 {
        self.stamp += 1;
        self.stamp
    }
}
