//! A snapshot of what a machine counts.
//!
//! A snapshot is a sum of words that are read one after the other while timers go on, so figures of one
//! snapshot may differ by what happened meanwhile. Lateness is from the start of the tick that a timer was
//! armed for (exact timers: from the moment), so it counts the wait for the end of that tick, too. Not here:
//! percentiles of single timers, and printing.

use super::histogram::Histogram;
use super::lanes::LaneMetrics;
use crate::machine::Machine;
use crate::words::lock::{self, LockStatistics};
use quietcore_core::{Counters, CpuId, CpuSet, Nanos};

/// What one CPU of the machine has counted so far.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CpuMetrics {
    /// Which CPU; those above the host's are spares, which the helper or spare lanes drive.
    pub cpu: CpuId,
    /// Whether it is a spare.
    pub is_spare: bool,
    /// What happened to timers of its bases.
    pub bases: Counters,
    /// Runs by its driver of timers of its own bases.
    pub ran_own: u64,
    /// Runs by its driver of timers of other CPUs: pulled, or served by the helper.
    pub ran_for_others: u64,
    /// Turns that it took.
    pub turns: u64,
    /// Kicks that were sent to it.
    pub kicks: u64,
    /// Callbacks, wakers, handlers, tasks and work that panicked.
    pub panics: u64,
    /// Polls of tasks, and runs of work.
    pub items: u64,
    /// Of those, polls of real-time tasks.
    pub realtime_polls: u64,
    /// Real-time tasks that came from another lane.
    pub migrations: u64,
    /// Real-time tasks that its lane took from others, as it had nothing as urgent.
    pub pulled: u64,
    /// Real-time tasks that its lane gave to others, as they waited.
    pub pushed: u64,
    /// Normal tasks and work that its lane took from others.
    pub stolen: u64,
    /// Timer turns that its lane took as an isolated one that goes by ticks
    /// ([`timer_raise`](crate::MachineBuilder::timer_raise)).
    pub timer_raises: u64,
    /// Of those, turns in which nothing was due.
    pub empty_raises: u64,
    /// Times that vectors were raised for it.
    pub raises: u64,
    /// Handlers that its lane ran.
    pub softirqs: u64,
    /// Handlers that its ksoftirqd ran.
    pub ksoftirqd_ran: u64,
    /// Times that its ksoftirqd was woken.
    pub ksoftirqd_wakeups: u64,
    /// Vectors that its lane left because a real-time task waited.
    pub deferred: u64,
    /// Times that its lane waited for its ksoftirqd, which had begun what was deferred for too long.
    pub donations: u64,
    /// Stalls that were [reported](Machine::stalls).
    pub stalls: u64,
    /// What it is as a lane; `None` if no thread can drive it.
    pub lane: Option<LaneMetrics>,
    /// How late the timers were that it ran.
    pub lateness: Histogram,
    /// The sum of that.
    pub lateness_sum: Nanos,
}

/// What a machine has counted so far.
///
/// ```
/// let machine = quietcore::Machine::start()?;
/// let metrics = machine.metrics();
/// assert!(metrics.to_openmetrics().ends_with("# EOF\n"));
/// machine.shutdown();
/// # Ok::<(), quietcore::StartError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metrics {
    /// By CPU, spares last.
    pub cpus: Vec<CpuMetrics>,
    /// Timers of the kernel that were set.
    pub settimes: u64,
    /// Of all machines of this process: waiting for locks.
    pub locks: LockStatistics,
}

impl Metrics {
    /// How late timers were run, on all CPUs.
    ///
    /// # Panics
    /// Never: a machine has a CPU.
    #[must_use]
    pub fn lateness(&self) -> Histogram {
        let mut all = self.cpus.iter().map(|cpu| cpu.lateness.clone());
        let first = all.next().expect("a machine has a spare at least");
        all.fold(first, |mut sum, one| {
            sum.merge(&one);
            sum
        })
    }

    /// A sum over all CPUs.
    #[must_use]
    pub fn sum(&self, of: impl Fn(&CpuMetrics) -> u64) -> u64 {
        self.cpus.iter().map(of).sum()
    }
}

impl Machine {
    /// What was counted so far. Any thread; cost: each base's lock once, and an allocation per CPU. Without
    /// CPUs in a forked child.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        if self.is_forked() {
            // There the locks may be held for ever.
            return Metrics {
                cpus: Vec::new(),
                settimes: self.alarm.programmed(),
                locks: lock::statistics(),
            };
        }
        let possible = self.core.topology().possible();
        let isolated = self.core.isolation().any();
        let cpus = possible.iter().map(|cpu| self.cpu_metrics(cpu, &isolated)).collect();
        Metrics { cpus, settimes: self.alarm.programmed(), locks: lock::statistics() }
    }

    fn cpu_metrics(&self, cpu: CpuId, isolated: &CpuSet) -> CpuMetrics {
        let counts = &self.counts[cpu.index()];
        CpuMetrics {
            cpu,
            is_spare: !self.cpus.contains(cpu),
            bases: self.core.counters(cpu),
            ran_own: counts.ran_own.get(),
            ran_for_others: counts.ran_for_others.get(),
            turns: counts.turns.get(),
            kicks: counts.kicks.get(),
            panics: counts.panics.get(),
            items: counts.items.get(),
            realtime_polls: counts.realtime_polls.get(),
            migrations: counts.migrations.get(),
            pulled: counts.pulled.get(),
            pushed: counts.pushed.get(),
            stolen: counts.stolen.get(),
            timer_raises: counts.timer_raises.get(),
            empty_raises: counts.empty_raises.get(),
            raises: counts.raises.get(),
            softirqs: counts.softirqs.get(),
            ksoftirqd_ran: counts.ksoftirqd_ran.get(),
            ksoftirqd_wakeups: counts.ksoftirqd_wakeups.get(),
            deferred: counts.deferred.get(),
            donations: counts.donations.get(),
            stalls: self.stalls.count(cpu),
            lane: self.lane_metrics(cpu, isolated),
            lateness: Histogram { counts: counts.lateness() },
            lateness_sum: Nanos(counts.late_sum.get()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Machine;

    /// Goal: each figure of a snapshot is the word of its own name. Method: words of a CPU of a machine whose
    /// threads count next to nothing, each with another number of millions; what comes of them in millions.
    #[test]
    fn each_figure_is_its_own_word() {
        let machine = Machine::start().expect("starts");
        let words = &machine.counts[0];
        let all = [
            &words.ran_own,
            &words.ran_for_others,
            &words.turns,
            &words.kicks,
            &words.panics,
            &words.items,
            &words.realtime_polls,
            &words.migrations,
            &words.pulled,
            &words.pushed,
            &words.stolen,
            &words.timer_raises,
            &words.empty_raises,
            &words.raises,
            &words.softirqs,
            &words.ksoftirqd_ran,
            &words.ksoftirqd_wakeups,
            &words.deferred,
            &words.donations,
        ];
        (11..).zip(all).for_each(|(value, word)| word.add(value * 1_000_000));
        words.was_late(3_000_000_000);
        let cpu = machine.metrics().cpus.swap_remove(0);
        machine.shutdown();
        let figures = [
            cpu.ran_own,
            cpu.ran_for_others,
            cpu.turns,
            cpu.kicks,
            cpu.panics,
            cpu.items,
            cpu.realtime_polls,
            cpu.migrations,
            cpu.pulled,
            cpu.pushed,
            cpu.stolen,
            cpu.timer_raises,
            cpu.empty_raises,
            cpu.raises,
            cpu.softirqs,
            cpu.ksoftirqd_ran,
            cpu.ksoftirqd_wakeups,
            cpu.deferred,
            cpu.donations,
        ];
        let millions: Vec<u64> = figures.iter().map(|figure| figure / 1_000_000).collect();
        assert_eq!(millions, (11..30).collect::<Vec<u64>>());
        assert_eq!((cpu.cpu.index(), cpu.lateness.len(), cpu.lateness_sum.0), (0, 1, 3_000_000_000));
    }
}
