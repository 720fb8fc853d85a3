//! What a stall report says.

use crate::words::stall_record::{CodeKind, RunningCode};
use crate::{CpuId, Nanos};
use core::fmt;
use core::panic::Location;
use core::time::Duration;
use quietcore_core::realtime::Priority;
use quietcore_core::softirq::Vector;

/// A lane that did not turn for longer than [`stall_after`](crate::MachineBuilder::stall_after), so that
/// others took over what they could. Its `Display` is one line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StallReport {
    /// Counts the machine's reports, from 1 on: those that are missing between two were dropped.
    pub number: u64,
    /// The lane's CPU; above the host's it is a spare.
    pub cpu: CpuId,
    /// The kernel's number of its thread.
    pub thread: Option<u32>,
    /// Since when it was silent, on the machine's clock.
    pub since: Nanos,
    /// When that was noticed.
    pub noticed: Nanos,
    /// When it turned again; `None` if it has not yet, or was not driven any more.
    pub ended: Option<Nanos>,
    /// What it was doing.
    pub stall: StallCause,
}

/// What a lane was doing when it was found silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StallCause {
    /// It runs a timer's callback, or wakes tasks.
    Running {
        /// The type of the closure, as the compiler names it; or what else it was.
        name: &'static str,
        /// The address of the timer; 0 for a waker.
        timer: usize,
        /// The address of its function, for a debugger; 0 if that is not known.
        function: usize,
        /// Where it was armed, if the machine [records that](crate::MachineBuilder::arm_locations).
        armed: Option<&'static Location<'static>>,
    },
    /// It polls a task, or drops one that was aborted.
    Task {
        /// The type of its future, as the compiler names it: of an `async` block, where that is.
        name: &'static str,
        /// Of a real-time task.
        priority: Option<Priority>,
        /// Where it was started, if the machine [records that](crate::MachineBuilder::arm_locations).
        spawned: Option<&'static Location<'static>>,
    },
    /// It runs [`Work`](crate::task::Work).
    Work {
        /// The type of the closure, as the compiler names it.
        name: &'static str,
    },
    /// It runs a softirq's handler.
    Softirq {
        /// Which.
        vector: Vector,
    },
    /// It runs nothing of the machine's: the thread is in the program's own code, or did not get its
    /// processor.
    Elsewhere,
    /// It should have woken up by itself, and did not.
    Asleep,
}

impl StallCause {
    /// What a lane's record says.
    pub(super) fn of(running: RunningCode) -> Self {
        let RunningCode { callback, subject, function, location } = running;
        let name = (callback.name)();
        let number = u8::try_from(subject).ok();
        match callback.kind {
            CodeKind::Timer => Self::Running { name, timer: subject, function, armed: location },
            CodeKind::Task => {
                Self::Task { name, priority: number.and_then(Priority::new), spawned: location }
            }
            CodeKind::Work => Self::Work { name },
            // The thread that writes the record has a vector.
            CodeKind::Softirq => {
                number.and_then(Vector::from_index).map_or(Self::Elsewhere, |vector| Self::Softirq { vector })
            }
        }
    }

    fn show(self, verb: &str, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Running { name, timer, function, armed } => {
                write!(out, "it {verb} {name}")?;
                if function != 0 {
                    write!(out, " at {function:#x}")?;
                }
                if timer != 0 {
                    write!(out, " of timer {timer:#x}")?;
                }
                armed.map_or(Ok(()), |location| write!(out, ", armed at {location}"))
            }
            Self::Task { name, priority, spawned } => {
                write!(out, "it {verb} the task {name}")?;
                if let Some(priority) = priority {
                    write!(out, " of priority {}", priority.get())?;
                }
                spawned.map_or(Ok(()), |location| write!(out, ", started at {location}"))
            }
            Self::Work { name } => write!(out, "it {verb} the work {name}"),
            Self::Softirq { vector } => write!(out, "it {verb} the handler of {vector}"),
            Self::Elsewhere => out.write_str("nothing of the machine's"),
            Self::Asleep => out.write_str("it should have woken up"),
        }
    }
}

impl StallReport {
    /// For how long it was silent; until it was noticed, if it still is.
    #[must_use]
    pub fn length(&self) -> Duration {
        Duration::from_nanos(self.ended.unwrap_or(self.noticed).since(self.since).0)
    }
}

impl fmt::Display for StallReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_over = self.ended.is_some();
        write!(out, "lane {}", self.cpu)?;
        if let Some(thread) = self.thread {
            write!(out, " (thread {thread})")?;
        }
        let verb = if is_over { "did not turn for" } else { "has not turned for" };
        write!(out, " {verb} {:.1?}: ", self.length())?;
        self.stall.show(if is_over { "ran" } else { "runs" }, out)
    }
}
