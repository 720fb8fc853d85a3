//! Where a machine and its lanes meet the reports.

use super::locations::RecordLocations;
use super::log::Marked;
use super::report::StallReport;
use crate::machine::Machine;
use crate::{CpuId, MachineBuilder, Nanos};

impl MachineBuilder {
    /// Timers of [`Machine::timer`] keep where in the program they were armed last, and tasks where they were
    /// started, for [stall reports](Machine::stalls). An arm then stores an address in the timer's memory.
    /// Default: no. Raw timers have no room for it; wakers of futures have no such place.
    #[must_use]
    pub const fn arm_locations(mut self) -> Self {
        self.arm_locations = RecordLocations::Yes;
        self
    }
}

impl Machine {
    /// Which lanes did not turn for longer than is allowed, the newest last: 64 at most, as
    /// [`stalls_dropped`](Self::stalls_dropped) tells. Also after the machine was shut down. Empty on a
    /// machine without lanes, and in a forked child.
    ///
    /// A lane is reported when another one, or the sentinel, has noticed that it does not turn: at the latest
    /// some ticks after [`stall_after`](MachineBuilder::stall_after). While nothing waits for it, no thread
    /// need notice.
    #[must_use]
    pub fn stalls(&self) -> Vec<StallReport> {
        if self.is_forked() {
            return Vec::new();
        }
        self.report_stalls(self.now());
        self.stalls.kept()
    }

    /// How many reports are not kept any more.
    #[must_use]
    pub fn stalls_dropped(&self) -> u64 {
        if self.is_forked() { 0 } else { self.stalls.dropped() }
    }

    /// A thread was marked, or may have been: writes what is not written yet. Without any lock of the core.
    /// Cost: one look at each CPU.
    #[cold]
    pub(crate) fn report_stalls(&self, now: Nanos) {
        let marked = |cpu: CpuId| {
            let silence = self.core.silence(cpu);
            let (marks, is_back) = (self.core.marks(cpu), !self.core.is_marked(cpu));
            Marked { cpu, marks, since: silence.since, missed_wakeup: silence.missed_wakeup, is_back }
        };
        let possible = self.core.topology().possible();
        for report in self.stalls.report(now, possible.iter().map(marked)) {
            crate::probe::lane_stall(report.cpu);
            self.events.stalled(report);
        }
    }

    /// `cpu` is driven by the calling thread from now on.
    pub(crate) fn thread_came(&self, cpu: CpuId) {
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        self.stalls.record(cpu).set_thread(thread.cast_unsigned());
    }

    /// `cpu` is driven by no thread any more.
    pub(crate) fn thread_left(&self, cpu: CpuId) {
        self.report_stalls(self.now());
        self.stalls.leave(cpu);
        self.stalls.record(cpu).set_thread(0);
    }

    /// `cpu` turns, at `now`. Cost: a load.
    #[inline]
    pub(crate) fn turns_again(&self, cpu: CpuId, now: Nanos) {
        if self.stalls.record(cpu).is_reported() {
            self.stalls.end(cpu, now);
        }
    }
}
