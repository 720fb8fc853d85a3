//! Softirqs, and the real-time wake-ups that had to wait behind them.
//!
//! A CPU runs one softirq vector at a time, so its state is: inside TIMER (and whether anything
//! expired since), and which of the long vectors it is inside of. An entry whose exit is not in
//! the input counts as an entry and not as empty. A mark of lost events ends all of that on its CPU, and
//! every wait on any: the task may have gone on there.

use super::count::CountPerCpu;
use super::kernel_threads::{is_kernel_thread, is_of_preempt_rt};
use super::report::{DelayQuantiles, TookSpans};
use super::took::TookCounts;
use quietcore_core::{CpuId, Nanos};
use quietcore_trace::{IdentityTable, Record, SoftirqStep, Task};

const TIMER: u8 = 1;
/// NET_TX, NET_RX, BLOCK, IRQ_POLL: the vectors that may run long.
const LONG_VECTORS: u32 = 1 << 2 | 1 << 3 | 1 << 4 | 1 << 5;
/// Kernel priorities below this are real-time or deadline.
const FIRST_NORMAL_PRIORITY: i32 = 100;
const WAITING_MAX: usize = 65_536;

#[derive(Clone, Copy, Debug, Default)]
struct SoftirqState {
    in_timer: bool,
    /// When it entered that.
    since: Nanos,
    expired_any: bool,
    inside: u32,
}

/// A real-time task was woken towards a CPU inside a long softirq.
#[derive(Debug)]
struct Waiting {
    line: u64,
    since: Nanos,
}

/// See the module.
#[derive(Debug)]
pub(super) struct SoftirqCounts {
    cpus: Vec<SoftirqState>,
    pub(super) timer_entries: u64,
    pub(super) timer_empty: CountPerCpu,
    empty_took: TookCounts,
    waiting: IdentityTable<Waiting>,
    /// Line of the last mark of lost events.
    lost: u64,
    pub(super) rt_wakeups: u64,
    /// Those of the kernel's own threads.
    pub(super) rt_kernel_threads: u64,
    /// A thread was woken that only kernels with PREEMPT_RT have.
    pub(super) is_preempt_rt: bool,
    pub(super) rt_behind: u64,
    delays: TookCounts,
}

impl SoftirqCounts {
    pub(super) fn new() -> Self {
        Self {
            cpus: Vec::new(),
            timer_entries: 0,
            timer_empty: CountPerCpu::default(),
            empty_took: TookCounts::new(),
            waiting: IdentityTable::new(WAITING_MAX),
            lost: 0,
            rt_wakeups: 0,
            rt_kernel_threads: 0,
            is_preempt_rt: false,
            rt_behind: 0,
            delays: TookCounts::new(),
        }
    }

    pub(super) fn evicted(&self) -> u64 {
        self.waiting.evicted()
    }

    fn cpu(&mut self, cpu: CpuId) -> &mut SoftirqState {
        if self.cpus.len() <= cpu.index() {
            self.cpus.resize(cpu.index() + 1, SoftirqState::default());
        }
        &mut self.cpus[cpu.index()]
    }

    pub(super) fn take_softirq(&mut self, at: Nanos, cpu: CpuId, step: SoftirqStep, vector: u8) {
        let bit = 1u32.checked_shl(u32::from(vector)).unwrap_or(0);
        let state = self.cpu(cpu);
        match step {
            SoftirqStep::Raise => {}
            SoftirqStep::Entry => {
                state.inside |= bit;
                if vector == TIMER {
                    *state = SoftirqState { in_timer: true, since: at, expired_any: false, ..*state };
                    self.timer_entries += 1;
                }
            }
            SoftirqStep::Exit => {
                state.inside &= !bit;
                if vector == TIMER && std::mem::take(&mut state.in_timer) && !state.expired_any {
                    let took = at.since(state.since);
                    self.timer_empty.add(cpu);
                    self.empty_took.record(took.as_u64());
                }
            }
        }
    }

    /// Events were lost: whether their CPU is still inside a softirq is not known any more, nor when tasks
    /// went on that waited.
    pub(super) fn forget(&mut self, mark: &Record<'_>) {
        *self.cpu(mark.cpu) = SoftirqState::default();
        self.lost = mark.line;
    }

    /// A wheel timer's callback begins on `cpu`.
    pub(super) fn take_expiry(&mut self, cpu: CpuId) {
        self.cpu(cpu).expired_any = true;
    }

    /// `sched_waking` of `task`.
    pub(super) fn take_waking(&mut self, record: &Record<'_>, task: Task<'_>, priority: i32, target: CpuId) {
        self.is_preempt_rt |= is_of_preempt_rt(task.comm);
        if priority >= FIRST_NORMAL_PRIORITY {
            return;
        }
        self.rt_wakeups += 1;
        if is_kernel_thread(task.comm) {
            self.rt_kernel_threads += 1;
            return;
        }
        if self.cpu(target).inside & LONG_VECTORS != 0 {
            self.rt_behind += 1;
            let waiting = Waiting { line: record.line, since: record.at };
            self.waiting.insert(u64::from(task.pid.unsigned_abs()), waiting);
        }
    }

    /// `sched_switch` from the task `previous` to the task `next`.
    pub(super) fn take_switch(&mut self, at: Nanos, previous: i32, next: i32) {
        if self.rt_behind == 0 {
            return;
        }
        // A task that leaves its CPU did not wait for it: it was woken while it still ran.
        self.waiting.remove(u64::from(previous.unsigned_abs()));
        let waiting = self.waiting.remove(u64::from(next.unsigned_abs()));
        if let Some(Waiting { since, .. }) = waiting.filter(|waiting| waiting.line > self.lost) {
            self.delays.record(at.since(since).as_u64());
        }
    }

    pub(super) fn delays(&self) -> DelayQuantiles {
        let TookSpans { p50, p99, max, .. } = self.delays.report();
        DelayQuantiles { p50, p99, max }
    }

    /// From entry to exit of TIMER softirqs that were empty.
    pub(super) fn empty_took(&self) -> TookSpans {
        self.empty_took.report()
    }
}

#[cfg(test)]
mod tests {
    use super::{DelayQuantiles, SoftirqCounts, TookSpans};
    use quietcore_core::{CpuId, Nanos};
    use quietcore_trace::SoftirqStep::{Entry, Exit};
    use quietcore_trace::{Event, Record, Task};

    fn cpu(number: u64) -> CpuId {
        CpuId::new(number).unwrap()
    }

    /// An event of CPU 0 in the line that has the number of its nanosecond.
    fn at(nanos: u64) -> Record<'static> {
        marked(0, nanos)
    }

    fn task(pid: i32) -> Task<'static> {
        Task { comm: b"rt", pid }
    }

    /// The same of CPU `of`.
    fn marked(of: u64, nanos: u64) -> Record<'static> {
        let (task, event) = (Task { comm: b"", pid: 0 }, Event::Unknown);
        Record { line: nanos, task, cpu: cpu(of), context: None, at: Nanos(nanos), event }
    }

    /// Goal: empty means nothing expired *on that CPU* between entry and exit.
    #[test]
    fn an_empty_timer_softirq_ran_nothing_on_its_own_cpu() {
        let mut interrupts = SoftirqCounts::new();
        interrupts.take_softirq(Nanos(0), cpu(0), Exit, 1); // the entry was before the recording
        interrupts.take_softirq(Nanos(0), cpu(0), Entry, 1);
        interrupts.take_expiry(cpu(1)); // elsewhere
        interrupts.take_softirq(Nanos(0), cpu(0), Exit, 1);
        interrupts.take_softirq(Nanos(0), cpu(0), Entry, 1);
        interrupts.take_expiry(cpu(0));
        interrupts.take_softirq(Nanos(0), cpu(0), Exit, 1);
        interrupts.take_softirq(Nanos(0), cpu(0), Entry, 1); // still inside at the end
        assert_eq!((interrupts.timer_entries, interrupts.timer_empty.total()), (3, 1));
    }

    /// Goal: what an empty TIMER softirq takes is from its entry to its exit, and no other one's. Method: two
    /// that are empty, one that runs a timer, another vector, and one among lost events.
    #[test]
    fn what_empty_timer_softirqs_take_is_told() {
        let mut interrupts = SoftirqCounts::new();
        assert_eq!(interrupts.empty_took(), TookSpans::default());
        let mut softirq = |vector, from, expires, until| {
            interrupts.take_softirq(Nanos(from), cpu(0), Entry, vector);
            if expires {
                interrupts.take_expiry(cpu(0));
            }
            interrupts.take_softirq(Nanos(until), cpu(0), Exit, vector);
        };
        softirq(1, 100, false, 130);
        softirq(1, 200, true, 270);
        softirq(7, 300, false, 390);
        softirq(1, 400, false, 411);
        interrupts.take_softirq(Nanos(500), cpu(0), Entry, 1);
        interrupts.forget(&at(510));
        interrupts.take_softirq(Nanos(600), cpu(0), Exit, 1);
        let some = TookSpans { total: Some(41), p50: Some(11), p99: Some(30), max: Some(30) };
        assert_eq!(interrupts.empty_took(), some);
    }

    /// Goal: only real-time tasks that were woken towards a CPU inside a long softirq wait.
    #[test]
    fn a_wakeup_waits_only_behind_a_long_softirq() {
        let mut interrupts = SoftirqCounts::new();
        interrupts.take_softirq(Nanos(0), cpu(1), Entry, 3);
        interrupts.take_waking(&at(1_000), task(7), 98, cpu(1)); // behind NET_RX
        interrupts.take_waking(&at(1_000), task(8), 120, cpu(1)); // not real-time
        interrupts.take_waking(&at(1_000), task(9), 98, cpu(0)); // another CPU
        interrupts.take_softirq(Nanos(0), cpu(1), Exit, 3);
        interrupts.take_waking(&at(2_000), task(10), 98, cpu(1)); // after it
        for pid in 7..11 {
            interrupts.take_switch(Nanos(5_000), 0, pid);
        }
        assert_eq!((interrupts.rt_wakeups, interrupts.rt_behind), (3, 1));
        // No quantile is above the largest one, though places of the histogram hold 2 ns here.
        let all = Some(4_000);
        assert_eq!(interrupts.delays(), DelayQuantiles { p50: all, p99: all, max: all });
    }

    /// Goal: the kernel's own threads are counted apart and do not wait, and those of PREEMPT_RT tell of it.
    /// Method: a task of its own kind and two of the kernel's, behind a softirq.
    #[test]
    fn threads_of_the_kernel_are_apart() {
        let mut interrupts = SoftirqCounts::new();
        interrupts.take_softirq(Nanos(0), cpu(1), Entry, 3);
        interrupts.take_waking(&at(1_000), task(7), 98, cpu(1));
        interrupts.take_waking(&at(1_000), Task { comm: b"migration/1", pid: 8 }, 0, cpu(1));
        assert!(!interrupts.is_preempt_rt);
        interrupts.take_waking(&at(1_000), Task { comm: b"ktimers/1", pid: 9 }, 98, cpu(1));
        interrupts.take_waking(&at(1_000), Task { comm: b"kworker/1:0", pid: 10 }, 120, cpu(1));
        assert!(interrupts.is_preempt_rt);
        assert_eq!((interrupts.rt_wakeups, interrupts.rt_kernel_threads, interrupts.rt_behind), (3, 2, 1));
    }

    /// Goal: a task that is woken while it still runs does not wait, however long it then sleeps.
    #[test]
    fn a_task_that_still_runs_does_not_wait() {
        let mut interrupts = SoftirqCounts::new();
        interrupts.take_softirq(Nanos(0), cpu(1), Entry, 3);
        interrupts.take_waking(&at(1_000), task(7), 98, cpu(1)); // by the softirq that interrupts it
        interrupts.take_switch(Nanos(2_000), 7, 0);
        interrupts.take_switch(Nanos(9_000_000), 0, 7);
        assert_eq!((interrupts.rt_behind, interrupts.delays().max), (1, None));
    }

    /// Goal: after lost events nothing is assumed about the softirqs of that CPU.
    #[test]
    fn lost_events_end_what_was_known_of_a_cpu() {
        let mut interrupts = SoftirqCounts::new();
        interrupts.take_softirq(Nanos(0), cpu(1), Entry, 3);
        interrupts.take_softirq(Nanos(0), cpu(1), Entry, 1);
        interrupts.forget(&marked(1, 500));
        interrupts.take_softirq(Nanos(0), cpu(1), Exit, 1);
        interrupts.take_waking(&at(1_000), task(7), 98, cpu(1));
        assert_eq!((interrupts.timer_empty.total(), interrupts.rt_behind), (0, 0));
    }

    /// Goal: a wait that may have ended among lost events is none, wherever they were lost; one that begins
    /// afterwards counts. Method: a mark of another CPU between waking and switch, then the same without.
    #[test]
    fn a_wait_does_not_outlast_lost_events() {
        let mut interrupts = SoftirqCounts::new();
        interrupts.take_softirq(Nanos(0), cpu(1), Entry, 3);
        interrupts.take_waking(&at(1_000), task(7), 98, cpu(1));
        interrupts.forget(&marked(2, 2_000));
        interrupts.take_switch(Nanos(5_000_000), 0, 7);
        assert_eq!((interrupts.rt_behind, interrupts.delays().max), (1, None));
        interrupts.take_waking(&at(6_000_000), task(7), 98, cpu(1));
        interrupts.take_switch(Nanos(6_004_000), 0, 7);
        assert_eq!((interrupts.rt_behind, interrupts.delays().max), (2, Some(4_000)));
    }
}
