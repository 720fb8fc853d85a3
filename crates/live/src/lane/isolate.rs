//! Isolation while the machine runs: the core decides and moves timers; here threads are told.
//!
//! All of it runs on the caller, and is complete when it returns: hierarchy, the table of where foreign
//! threads arm, run queues, and on which CPUs the machine's own threads may run. User code that an isolated
//! CPU runs for others at that moment is waited for, up to a deadline, and then reported. Without lanes it is
//! about where threads arm, and where the helper may run. Source: docs/design/PROTOCOL.md, section 9.

use crate::machine::Machine;
use crate::run_queue::Item;
use core::marker::PhantomData;
use quietcore_core::run_queue::Unsettled;
use quietcore_core::{CpuId, CpuSet, IsolationReport};
use std::thread;
use std::time::{Duration, Instant};

/// How long a call waits for callbacks that isolated CPUs still run for others.
const PATIENCE: Duration = Duration::from_millis(100);

/// Between two looks at them: a callback is short.
const PAUSE: Duration = Duration::from_micros(200);

/// Why isolation was not changed. Nothing was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IsolateError {
    /// The machine has no such CPU.
    #[error("CPU {cpu} is not one of this machine's")]
    UnknownCpu {
        /// The lowest of those.
        cpu: CpuId,
    },
    /// Every CPU would be isolated.
    #[error("every CPU would be isolated")]
    NoHousekeeping,
    /// The machine was shut down, or is a forked parent's.
    #[error("the machine does not run in this process")]
    NotRunning,
}

impl Machine {
    /// From now on the CPUs of `isolated` are isolated at run time, and no others (those that the machine was
    /// [started](crate::MachineBuilder::isolated) with remain). When it returns, none of them starts a timer
    /// that was armed elsewhere; timers that others armed there were moved; foreign threads arm elsewhere;
    /// the machine's own threads run on the other CPUs. A callback that an isolated CPU was running for
    /// others is waited for, 100 ms at most
    /// ([`IsolationReport::still_running`](crate::isolation::IsolationReport)); one of the calling thread's
    /// own is not.
    ///
    /// From any thread, also from callbacks. Cost: locks of all bases, one at a time.
    ///
    /// # Errors
    /// See [`IsolateError`].
    pub fn set_isolated(&'static self, isolated: &CpuSet) -> Result<IsolationReport, IsolateError> {
        if !self.is_running() {
            return Err(IsolateError::NotRunning);
        }
        if let Some(cpu) = isolated.difference(&self.cpus).first() {
            return Err(IsolateError::UnknownCpu { cpu });
        }
        let outcome = self.isolate(isolated).map(|(report, unsettled)| {
            self.queues().settle(unsettled);
            report
        });
        self.tell_of_isolation(isolated, &outcome);
        let mut report = outcome?;
        let end = Instant::now() + PATIENCE;
        let own = self.current_cpu().map(|(cpu, _)| cpu);
        loop {
            let running = report.still_running.iter().filter(|cpu| self.runs_foreign(*cpu));
            report.still_running = running.collect();
            let is_over = report.still_running.iter().all(|cpu| Some(cpu) == own);
            if is_over || Instant::now() >= end {
                return Ok(report);
            }
            thread::sleep(PAUSE);
        }
    }

    /// The CPUs that are isolated now, for whatever reason: the kernel's, the builder's, and those that
    /// [`set_isolated`](Self::set_isolated) named. Any thread; cost: a lock and a copy of the sets. Empty in
    /// a forked child.
    #[must_use]
    pub fn isolated(&self) -> CpuSet {
        // There the lock may be held for ever.
        if self.is_forked() { CpuSet::new() } else { self.core.isolation().any() }
    }

    fn isolate(&self, isolated: &CpuSet) -> Result<(IsolationReport, Unsettled<Item>), IsolateError> {
        let _control = self.lanes.control();
        let all = self.core.isolation();
        let for_good = all.domain.union(&all.nohz_full);
        if self.cpus.difference(&for_good.union(isolated)).is_empty() {
            return Err(IsolateError::NoHousekeeping);
        }
        let now = self.clock.now();
        let report = self.act(|actions| self.core.set_isolated(isolated, now, actions));
        let report = report.map_err(|_| IsolateError::NoHousekeeping)?;
        self.choose_hosts();
        self.act(|actions| self.lanes.table().handle_isolation(&self.core, &report, now, actions));
        self.move_own_threads();
        let unsettled = self.queues().handle_isolation();
        let isolated = self.lane_set.intersection(&self.core.isolation().any());
        let busy = isolated.iter().filter(|cpu| self.runs_foreign(*cpu)).collect();
        let still_running = report.still_running.union(&busy);
        Ok((IsolationReport { still_running, ..report }, unsettled))
    }

    /// Whether `cpu` is in the middle of something that is not its own.
    fn runs_foreign(&self, cpu: CpuId) -> bool {
        let runs_item = self.lanes.queue(cpu).is_some_and(|queue| queue.current.is_movable());
        runs_item || self.core.runs_for_others(cpu)
    }

    /// The calling thread, which a lane may have started, runs on all CPUs that are not isolated.
    pub(crate) fn keep_off_isolated(&self) {
        let housekeeping = self.cpus.difference(&self.core.isolation().any());
        let mut set = rustix::thread::CpuSet::new();
        housekeeping.iter().for_each(|cpu| set.set(cpu.index()));
        // The process may not run there any more: then it stays where it is.
        let _ = rustix::thread::sched_setaffinity(None, &set);
    }

    /// The calling thread is one of the machine's own, which keep off isolated CPUs, until it drops this.
    pub(crate) fn join_own_threads(&self) -> OwnThread<'_> {
        let _control = self.lanes.control();
        self.lanes.own_threads().push(rustix::thread::gettid());
        if !self.core.isolation().any().is_empty() {
            self.move_own_threads();
        }
        OwnThread { machine: self, thread: PhantomData }
    }

    /// By the holder of the control lock.
    fn move_own_threads(&self) {
        let housekeeping = self.cpus.difference(&self.core.isolation().any());
        let mut set = rustix::thread::CpuSet::new();
        housekeeping.iter().for_each(|cpu| set.set(cpu.index()));
        for thread in self.lanes.own_threads().iter() {
            // The process may not run there any more: then it stays where it is.
            let _ = rustix::thread::sched_setaffinity(Some(*thread), &set);
        }
    }
}

/// While it lives, its thread is one of the machine's own: the system may give the number of one that has
/// ended to a foreign thread.
#[derive(Debug)]
#[must_use = "the thread is the machine's own only while this lives"]
pub(crate) struct OwnThread<'a> {
    machine: &'a Machine,
    /// It stays on its thread.
    thread: PhantomData<*const ()>,
}

impl Drop for OwnThread<'_> {
    fn drop(&mut self) {
        // In a forked child the lock may be taken for ever.
        if self.machine.is_forked() {
            return;
        }
        let own = rustix::thread::gettid();
        self.machine.lanes.own_threads().retain(|thread| *thread != own);
    }
}

#[cfg(test)]
mod tests {
    use crate::{CpuSet, Machine};
    use futures_executor::block_on;
    use std::thread;
    use std::time::{Duration, Instant};

    /// Goal: no thread that has ended is taken for one of the machine's own. Method: a helper, a spare and a
    /// closure that blocks; all are among them, and none is in the end.
    #[test]
    fn who_ends_is_no_own_thread() {
        let list: CpuSet = "0-1".parse().expect("a list");
        let machine = Machine::builder().lanes(list).start().expect("it starts");
        let closure = machine.spawn_blocking(|| machine.lanes.own_threads().len()).expect("it starts");
        assert!(block_on(closure).expect("it ends") >= 1, "it is one itself");
        machine.shutdown();
        let end = Instant::now() + Duration::from_secs(20);
        while !machine.lanes.own_threads().is_empty() {
            assert!(Instant::now() < end, "{:?}", machine.lanes.own_threads());
            thread::yield_now();
        }
    }
}
