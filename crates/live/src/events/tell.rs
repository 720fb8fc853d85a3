//! Telling subscribers what the machine did and what its lanes found.

#[cfg(feature = "tracing")]
use super::found::Found;
use crate::isolation::IsolationChange;
use crate::lane::IsolateError;
use crate::machine::{Machine, StartError};
use quietcore_core::{CpuId, CpuSet, IsolationReport};

/// Tells subscribers, if there can be any.
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
            let _own = self.join_own_threads();
            // It is the machine's own thread: a subscriber that ends the machine must not wait for it.
            let _in_run = crate::timer::RunScope::begin(crate::timer::RunKind::Item);
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
        self.thread_came(cpu);
        tell!(debug, cpu = cpu.index(), "lane claimed");
    }

    /// The calling thread drives `cpu` no more.
    pub(crate) fn lane_left(&self, cpu: CpuId) {
        if !self.is_forked() {
            self.thread_left(cpu);
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
