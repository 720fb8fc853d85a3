//! Work that is queued when a moment has come.

use super::{Work, WorkOptions};
use crate::machine::{ArmError, Machine};
use crate::task::SpawnError;
use crate::timer::{TimerHandle, TimerOptions, WouldBlock};
use core::time::Duration;

/// A closure that lanes run some time after it was queued: work, and a timer that queues it.
///
/// ```
/// use core::time::Duration;
/// use quietcore::{LaneThreads, Machine, task::WorkOptions};
/// use std::sync::mpsc;
///
/// let machine = Machine::builder().lanes("0".parse()?).lane_threads(LaneThreads::new()).start()?;
/// let (sender, receiver) = mpsc::channel();
/// let work = machine.delayed_work(WorkOptions::new(), move || {
///     sender.send(()).expect("a thread waits");
/// })?;
/// work.queue_after(Duration::from_millis(2))?;
/// receiver.recv()?;
/// # machine.shutdown();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct DelayedWork {
    work: Work,
    timer: TimerHandle,
}

impl Machine {
    /// Makes delayed work of `run`. The timer is an ordinary one: where it runs is not where the work does.
    ///
    /// # Errors
    /// As [`work`](Self::work).
    pub fn delayed_work(
        &'static self,
        options: WorkOptions,
        run: impl Fn() + Send + Sync + 'static,
    ) -> Result<DelayedWork, SpawnError> {
        let work = self.work(options, run)?;
        let queued = work.clone();
        let timer = self.timer(TimerOptions::new(), move |_| {
            // A machine that was shut down runs nothing.
            let _ = queued.queue();
        });
        Ok(DelayedWork { work, timer })
    }
}

impl DelayedWork {
    /// It is queued in `delay`; a delay that runs already is replaced. Says whether one did.
    ///
    /// # Errors
    /// When the machine does not run.
    pub fn queue_after(&self, delay: Duration) -> Result<bool, ArmError> {
        self.timer.arm_after(delay)
    }

    /// It is not to run; says whether it waited, for its moment or for a lane. A moment that comes during
    /// this call may still queue it, for one run more; [`cancel_sync`](Self::cancel_sync) takes that back,
    /// too.
    #[must_use = "a run may be under way whatever it says"]
    pub fn cancel(&self) -> bool {
        // The timer first: it may queue the work between the two otherwise.
        let had_time = self.timer.cancel();
        self.work.cancel() || had_time
    }

    /// The same, and waits for the end of a run that is under way.
    ///
    /// # Errors
    /// [`WouldBlock`] when something is under way and this thread must not wait; it was cancelled then as by
    /// [`cancel`](Self::cancel).
    pub fn cancel_sync(&self) -> Result<bool, WouldBlock> {
        let had_time = self.timer.cancel_sync();
        // Also when the timer cannot be waited for.
        let waited = self.work.cancel_sync();
        Ok(had_time? | waited?)
    }

    /// The work itself, to be queued at once or waited for.
    #[must_use]
    pub const fn work(&self) -> &Work {
        &self.work
    }
}
