//! Ready-made lanes: threads that claim a CPU each and do nothing but turn and wait.
//!
//! For programs whose own threads have no loop to put turns into. Whether a thread is pinned to its CPU
//! follows from how the CPU is shared: a pinned thread on a shared CPU waits for others where a free one
//! would have moved. A real-time priority is tried and, when refused, noted.

use super::cpu::Cpu;
use super::options::{LaneThreads, Pinning, StartNote};
use super::realtime;
use crate::machine::{Limits, Machine, StartError};
use quietcore_core::CpuId;
use std::sync::mpsc::{Sender, channel};

impl Cpu {
    /// Keeps the calling thread on its CPU of the host if `pinning` says so, as it would a ready-made lane
    /// thread; says whether it is. Where that is not allowed it runs free, and [`Machine::notes`] says so.
    /// Threads that it starts afterwards inherit it. Cost: some files of the system are read.
    pub fn pin_thread(&self, pinning: Pinning) -> bool {
        pinning.is_wanted(|| Limits::of_this_process().is_exclusive) && self.machine().pin(self.cpu())
    }
}

impl Machine {
    /// What could not be done as the [`MachineBuilder`](crate::MachineBuilder) asked, each once. Empty in a
    /// forked child.
    #[must_use]
    pub fn notes(&self) -> Vec<StartNote> {
        // There the lock may be held for ever.
        if self.is_forked() { Vec::new() } else { self.lanes.notes().clone() }
    }

    fn note(&self, note: StartNote) {
        let mut notes = self.lanes.notes();
        if !notes.contains(&note) {
            notes.push(note);
        }
    }

    /// A thread for each lane; returns when all of them have claimed their CPU.
    pub(crate) fn start_lane_threads(
        &'static self,
        threads: LaneThreads,
        is_exclusive: bool,
    ) -> Result<(), StartError> {
        let is_pinned = threads.pinning.is_wanted(|| is_exclusive);
        let (sender, receiver) = channel();
        for cpu in self.lane_set.iter() {
            let sender = sender.clone();
            self.start_thread(format!("quietcore-{cpu}"), move || {
                if is_pinned {
                    let _ = self.pin(cpu);
                }
                self.raise_priority(threads.fifo);
                self.run_lane(cpu, sender);
            })?;
        }
        drop(sender);
        // Each sends once, or has ended.
        receiver.iter().for_each(drop);
        Ok(())
    }

    fn run_lane(&'static self, cpu: CpuId, claimed: Sender<()>) {
        let claim = Cpu::claim(self, cpu);
        drop(claimed);
        // Refused only when the machine was shut down already.
        let Ok(mut cpu) = claim else { return };
        while self.is_running() {
            if !cpu.turn().has_more {
                cpu.park();
            }
        }
    }

    /// Says whether the calling thread is pinned now.
    pub(super) fn pin(&self, cpu: CpuId) -> bool {
        let mut set = rustix::thread::CpuSet::new();
        set.set(cpu.index());
        let result = rustix::thread::sched_setaffinity(None, &set);
        if let Err(errno) = result {
            self.note(StartNote::NotPinned { cpu, error: errno.raw_os_error() });
        }
        result.is_ok()
    }

    /// Of the calling thread.
    pub(super) fn raise_priority(&self, priority: Option<u8>) {
        let Some(priority) = priority else { return };
        if let Err(error) = realtime::run_first_in_first_out(priority) {
            self.note(StartNote::NoPriority { priority, error: error.raw_os_error().unwrap_or_default() });
        }
    }
}
