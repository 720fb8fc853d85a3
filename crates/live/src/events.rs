//! Events for programs that follow themselves with `tracing`, by the feature of that name. Without it nothing
//! here does anything.
//!
//! What the program asked for itself (a machine starts or ends, a lane comes or goes, isolation changes) is
//! told on its own thread, before the call returns. What a lane finds while it turns (a stall, a panic) waits
//! in a bounded queue for a thread that has nothing else to do: a subscriber may block, and a lane must not.
//!
//! Invariants: no subscriber is called while a lock of the machine is held, on an arm, on a cancel or in a
//! turn. What does not fit into the queue is counted, and told with the next. Target: `quietcore`.

#[cfg(feature = "tracing")]
mod queue;

use crate::machine::{Machine, StartError};
use crate::stall::StallReport;
use crate::{CpuId, CpuSet, IsolateError, IsolationChange, IsolationReport};

/// What waits to be told.
#[derive(Debug, Default)]
pub(crate) struct Events {
    #[cfg(feature = "tracing")]
    queue: queue::Queue,
}

/// Something that a lane found.
#[derive(Debug)]
#[cfg_attr(not(feature = "tracing"), expect(dead_code, reason = "told by the feature `tracing` only"))]
enum Found {
    Stall(StallReport),
    Panic(CpuId),
}

impl Events {
    /// From a turn.
    pub(crate) fn stalled(&self, report: StallReport) {
        self.find(Found::Stall(report));
    }

    /// From a turn: a callback or a waker panicked on `cpu`.
    pub(crate) fn panicked(&self, cpu: CpuId) {
        self.find(Found::Panic(cpu));
    }

    #[cfg(feature = "tracing")]
    fn find(&self, found: Found) {
        self.queue.push(found);
    }

    #[cfg(not(feature = "tracing"))]
    #[expect(clippy::unused_self, reason = "the feature `tracing` has a queue")]
    fn find(&self, _found: Found) {}

    /// The machine ends: what waits is told, and the thread ends.
    pub(crate) fn end(&self) {
        #[cfg(feature = "tracing")]
        self.queue.end();
    }
}

/// Tells, if there is somebody to tell.
macro_rules! tell {
    ($level:ident, $($event:tt)*) => {
        #[cfg(feature = "tracing")]
        ::tracing::$level!(target: "quietcore", $($event)*);
    };
}

impl Machine {
    /// Starts the thread that tells.
    ///
    /// # Errors
    /// When there is none to be had.
    #[cfg(feature = "tracing")]
    pub(crate) fn start_events(&'static self) -> Result<(), StartError> {
        self.start_thread("quietcore-tell".to_owned(), move || {
            self.join_own_threads();
            // It is the machine's own thread: a subscriber that ends the machine must not wait for it.
            let _in_run = crate::timer::InRun::begin();
            while let Some((found, lost)) = self.events.queue.next() {
                tell_found(&found);
                if lost > 0 {
                    tell!(warn, lost, "events were lost");
                }
            }
            tell!(info, cpus = %self.cpus, "machine shut down");
        })
    }

    #[cfg(not(feature = "tracing"))]
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "the feature `tracing` has a thread")]
    pub(crate) fn start_events(&'static self) -> Result<(), StartError> {
        Ok(())
    }

    pub(crate) fn tell_of_start(&self) {
        tell!(info, cpus = %self.cpus, lanes = %self.lane_set, "machine started");
    }

    /// The calling thread has claimed `cpu`.
    pub(crate) fn lane_claimed(&self, cpu: CpuId) {
        self.played_here(cpu);
        tell!(debug, cpu = cpu.index(), "lane claimed");
    }

    /// The calling thread plays `cpu` no more.
    pub(crate) fn lane_left(&self, cpu: CpuId) {
        if !self.is_forked() {
            self.played_by_nobody(cpu);
            tell!(debug, cpu = cpu.index(), "lane left");
        }
    }

    pub(crate) fn tell_of_isolation(&self, wanted: &CpuSet, outcome: &Result<IsolationReport, IsolateError>) {
        match outcome {
            Ok(report) => {
                crate::probe::isolate(wanted);
                tell!(
                    info,
                    isolated = %wanted,
                    left = %report.left,
                    joined = %report.joined,
                    evacuated = report.evacuated,
                    pinned_left = report.pinned_left,
                    still_running = %report.still_running,
                    "isolation changed"
                );
                let _ = report;
            }
            Err(error) => {
                tell!(warn, isolated = %wanted, %error, "isolation refused");
                let _ = error;
            }
        }
    }
}

/// The host's isolation changed.
pub(crate) fn host_isolation_changed(change: &IsolationChange) {
    tell!(info, host = %change.host.from_tasks(), "host isolation changed: {change}");
    let _ = change;
}

#[cfg(feature = "tracing")]
fn tell_found(found: &Found) {
    match found {
        Found::Stall(report) => {
            tell!(
                warn,
                cpu = report.cpu.index(),
                thread = report.thread,
                number = report.number,
                "stall: {report}"
            );
        }
        Found::Panic(cpu) => {
            tell!(error, cpu = cpu.index(), "a callback panicked");
        }
    }
}
