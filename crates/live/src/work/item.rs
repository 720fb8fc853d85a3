//! Work as a program has it, and as a queue has it.

use super::queued::{Queued, WorkInner};
use crate::machine::Machine;
use crate::run_queue::Item;
use crate::stall::Callback;
use crate::task::{LastCpu, SpawnError};
use crate::timer::{RunScope, WouldBlock};
use crate::words::work::{QueueDuty, WorkState};
use core::fmt;
use quietcore_core::CpuId;
use std::sync::Arc;

/// Where work may run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkOptions {
    bound: Option<CpuId>,
}

impl WorkOptions {
    /// Unbound: on any lane that is not isolated.
    #[must_use]
    pub const fn new() -> Self {
        Self { bound: None }
    }

    /// On this lane only, whether that is isolated or not.
    #[must_use]
    pub const fn bound(self, cpu: CpuId) -> Self {
        Self { bound: Some(cpu) }
    }
}

/// A closure that lanes run whenever it is queued. Clones are the same work.
///
/// ```
/// use quietcore::{LaneThreads, Machine, task::WorkOptions};
/// use std::sync::mpsc;
///
/// let machine = Machine::builder().lanes("0".parse()?).lane_threads(LaneThreads::new()).start()?;
/// let (sender, receiver) = mpsc::channel();
/// let work = machine.work(WorkOptions::new(), move || {
///     sender.send("done").expect("a thread waits");
/// })?;
/// work.queue()?;
/// assert_eq!(receiver.recv()?, "done");
/// # machine.shutdown();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Work(Arc<WorkInner>);

impl fmt::Debug for Work {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, out)
    }
}

impl Machine {
    /// Makes work of `run`; nothing runs before it is queued. A panic in it is caught and counted, or ends
    /// the process ([`OnPanic`](crate::OnPanic)).
    ///
    /// # Errors
    /// When the machine has no lanes, or not the one that it is to be bound to, or does not run.
    pub fn work(
        &'static self,
        options: WorkOptions,
        run: impl Fn() + Send + Sync + 'static,
    ) -> Result<Work, SpawnError> {
        let first = self.check_spawn(options.bound)?;
        let (last, state, callback) = (LastCpu::new(first), WorkState::new(), Callback::work(&run));
        let inner = WorkInner {
            machine: self.reference(),
            bound: options.bound,
            last,
            state,
            callback,
            run: Box::new(run),
        };
        Ok(Work(Arc::new(inner)))
    }
}

impl Work {
    /// It is to run soon; says whether it did not wait already. If it runs now it runs once more. Any thread.
    /// Cost: a read-modify-write and a queue's lock; 7 us more if a lane has to be woken.
    ///
    /// # Errors
    /// When the machine does not run.
    pub fn queue(&self) -> Result<bool, SpawnError> {
        if !self.machine().is_running() {
            return Err(SpawnError::NotRunning);
        }
        let queue = self.0.state.queue();
        if queue == QueueDuty::Enqueue {
            self.machine().queues().enqueue(Item::Work(Queued(Arc::clone(&self.0))));
        }
        Ok(queue != QueueDuty::Known)
    }

    /// It is not to run; says whether it waited. A run that is under way goes on.
    #[must_use = "a run may be under way whatever it says"]
    pub fn cancel(&self) -> bool {
        let waited = self.0.state.cancel();
        if waited {
            // A thread may wait for what will not come.
            self.machine().tell_of_end();
        }
        waited
    }

    /// The same, and waits for the end of a run that is under way. Says whether it waited to run.
    ///
    /// # Errors
    /// [`WouldBlock`] when a run is under way and this thread is a lane, or runs something itself: then it
    /// was cancelled, and the run goes on.
    pub fn cancel_sync(&self) -> Result<bool, WouldBlock> {
        let waited = self.cancel();
        // A run goes on when the machine has ended, on a thread that is not the machine's.
        self.wait_while(WorkState::is_running).map(|()| waited)
    }

    /// Waits until it neither waits nor runs, or will not run any more as the machine has ended.
    ///
    /// # Errors
    /// [`WouldBlock`] when it does and this thread is a lane, or runs something itself.
    pub fn flush(&self) -> Result<(), WouldBlock> {
        let machine = self.machine();
        self.wait_while(|state| state.is_running() || machine.is_running() && state.is_pending())
    }

    fn machine(&self) -> &'static Machine {
        Machine::of(self.0.machine)
    }

    fn wait_while(&self, is_wanted: impl Fn(&WorkState) -> bool) -> Result<(), WouldBlock> {
        let machine = self.machine();
        // What runs in a forked child is this thread at most.
        if machine.is_forked() || !is_wanted(&self.0.state) {
            return Ok(());
        }
        if RunScope::is_here() || machine.current_cpu().is_some() {
            return Err(WouldBlock);
        }
        machine.run_ends.wait_while(|| is_wanted(&self.0.state));
        Ok(())
    }

    /// Whether it waits to run; out of date when it is used.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.0.state.is_pending()
    }
}

/// Runs `work` on `cpu`, unless it was cancelled; says whether it did. The caller counts panics, and tells
/// those who wait for the end.
pub(crate) fn run(work: Queued, cpu: CpuId, call: impl FnOnce(&dyn Fn())) -> bool {
    let inner = &work.0;
    if !inner.state.begin() {
        return false;
    }
    let _ = inner.last.replace(cpu);
    call(&*inner.run);
    if inner.state.end() {
        Machine::of(inner.machine).queues().enqueue(Item::Work(Queued(Arc::clone(inner))));
    }
    true
}
