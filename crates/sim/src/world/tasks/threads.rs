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
        let of_runs = |nanos: u64| (self.cycles > 0).then_some(nanos);
        CyclicThread {
            task: self.task,
            priority: self.cyclic.priority.get(),
            interval_ns: self.cyclic.interval,
            cycles: self.cycles,
            expected,
            skipped: self.skipped,
            min_ns: of_runs(self.least),
            act_ns: of_runs(self.last),
            avg_ns: self.sum.checked_div(self.cycles),
            max_ns: of_runs(self.most),
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

#[cfg(test)]
mod tests {
    use super::CyclicState;
    use crate::scenario::Cyclic;
    use quietcore_core::realtime::Priority;

    /// Goal: each figure of a thread is its own, and of one that never ran there is none. Method: four runs
    /// of an interval of 1000, the second of which takes 1200 too long; worked out by hand.
    #[test]
    fn figures_of_a_thread() {
        let priority = Priority::new(80).expect("of a real-time task");
        let cyclic = Cyclic { priority, interval: 1_000, work: 1, pinned: true, affinity: 0 };
        let mut state = CyclicState::new(cyclic, 7, 1_000);
        let none = state.figures(999);
        assert_eq!((none.expected, none.cycles), (0, 0));
        assert_eq!([none.min_ns, none.act_ns, none.avg_ns, none.max_ns], [None; 4]);
        let runs =
            [(1_300, 1_310, 2_000), (2_100, 4_300, 5_000), (5_500, 5_510, 6_000), (6_200, 6_210, 7_000)];
        for (woken, done, next) in runs {
            state.wake(woken);
            assert_eq!(state.sleep(done), next);
        }
        // Moments up to 6999: 1000 to 6000. Late by 300, 100, 500, 200; over meanwhile: 3000 and 4000.
        let figures = state.figures(6_999);
        assert_eq!((figures.task, figures.priority, figures.interval_ns), (7, 80, 1_000));
        assert_eq!((figures.cycles, figures.expected, figures.skipped), (4, 6, 2));
        let found = [figures.min_ns, figures.act_ns, figures.avg_ns, figures.max_ns];
        assert_eq!(found, [Some(100), Some(200), Some(275), Some(500)]);
    }
}
