//! Starting tasks.
//!
//! Any thread may start one. It is put into a queue at once, so it may have ended when this returns. Without
//! lanes there is no thread to run tasks: that is an error, as is a lane that the machine does not have.

use super::error::SpawnError;
use super::join::JoinHandle;
use super::poll::{Contained, schedule};
use super::state::{Origin, TaskPlace, TaskState};
use crate::lane::Cpu;
use crate::machine::Machine;
use core::panic::Location;
use quietcore_core::CpuId;
use quietcore_core::realtime::Priority;
use std::sync::Arc;

/// How a task is to be run.
///
/// ```
/// use quietcore::{LaneThreads, Machine, task::{Priority, TaskOptions}};
///
/// let machine = Machine::builder().lanes("0".parse()?).lane_threads(LaneThreads::new()).start()?;
/// let options = TaskOptions::new().realtime(Priority::LOWEST).lane(quietcore::CpuId::new(0)?);
/// let task = machine.spawn_with(options, async { "ran" })?;
/// assert_eq!(futures_executor::block_on(task)?, "ran");
/// # machine.shutdown();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskOptions {
    priority: Option<Priority>,
    lane: Option<CpuId>,
}

impl TaskOptions {
    /// A normal task that may run on any lane that is not isolated.
    #[must_use]
    pub const fn new() -> Self {
        Self { priority: None, lane: None }
    }

    /// A real-time task: whenever a lane chooses what to run, those go first, the highest priority before
    /// others, and within one in the order in which they were woken. One that is always ready starves
    /// everything below it.
    #[must_use]
    pub const fn realtime(self, priority: Priority) -> Self {
        Self { priority: Some(priority), ..self }
    }

    /// Only on this lane, whether that is isolated or not. While no thread drives the lane the task waits.
    #[must_use]
    pub const fn lane(self, cpu: CpuId) -> Self {
        Self { lane: Some(cpu), ..self }
    }
}

impl Machine {
    /// Starts a normal task; any lane that is not isolated may run it, and take it from another that is busy.
    /// Any thread. Cost: an allocation for the future and one for what the queues know of it, and a queue's
    /// lock; 7 us more if a lane has to be woken.
    ///
    /// # Errors
    /// See [`SpawnError`].
    #[track_caller]
    pub fn spawn<F>(&'static self, future: F) -> Result<JoinHandle<F::Output>, SpawnError>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.spawn_with(TaskOptions::new(), future)
    }

    /// Starts a normal task that runs on `cpu` only, also if that is isolated.
    ///
    /// # Errors
    /// See [`SpawnError`].
    #[track_caller]
    pub fn spawn_on<F>(&'static self, cpu: CpuId, future: F) -> Result<JoinHandle<F::Output>, SpawnError>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.spawn_with(TaskOptions::new().lane(cpu), future)
    }

    /// Starts a real-time task; see [`TaskOptions::realtime`]. It goes to a lane where it outranks
    /// everything, if there is one, and moves when it would wait.
    ///
    /// # Errors
    /// See [`SpawnError`].
    #[track_caller]
    pub fn spawn_rt<F>(
        &'static self,
        priority: Priority,
        future: F,
    ) -> Result<JoinHandle<F::Output>, SpawnError>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.spawn_with(TaskOptions::new().realtime(priority), future)
    }

    /// Starts a task.
    ///
    /// # Errors
    /// See [`SpawnError`].
    #[track_caller]
    pub fn spawn_with<F>(
        &'static self,
        options: TaskOptions,
        future: F,
    ) -> Result<JoinHandle<F::Output>, SpawnError>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let place = options.lane.map_or(TaskPlace::Anywhere, TaskPlace::Lane);
        let first = self.check_spawn(options.lane)?;
        let origin = Origin::of::<F>(self.spawn_location(Location::caller()));
        let state = TaskState::new(self.reference(), place, options.priority, first, origin);
        let turn = self.lanes.rotation.next();
        let (runnable, handle) = self.tasks.list(turn, |listed| {
            let make = move |state: &Arc<TaskState>| Contained::new(future, Arc::clone(state), Some(listed));
            let (runnable, task) = async_task::Builder::new().metadata(state).spawn(make, schedule);
            let (waker, for_handle) = (runnable.waker(), runnable.waker());
            ((runnable, JoinHandle::new(task, for_handle)), waker)
        });
        runnable.schedule();
        Ok(handle)
    }

    /// `location`, if this machine keeps where tasks are started.
    pub(super) fn spawn_location(
        &self,
        location: &'static Location<'static>,
    ) -> Option<&'static Location<'static>> {
        // It runs, so if it does not take plain arms it keeps them.
        (!self.takes_plain_arms()).then_some(location)
    }

    /// Where a task that this thread starts counts as having run last.
    pub(crate) fn check_spawn(&self, lane: Option<CpuId>) -> Result<CpuId, SpawnError> {
        if !self.is_running() {
            return Err(SpawnError::NotRunning);
        }
        if let Some(cpu) = lane.filter(|cpu| !self.lane_set.contains(*cpu)) {
            return Err(SpawnError::NotALane { cpu });
        }
        let here = self.current_cpu().map(|(cpu, _)| cpu);
        lane.or(here).or(self.lane_set.first()).ok_or(SpawnError::NoLanes)
    }
}

impl Cpu {
    /// Starts a normal task that never leaves this thread, so it may hold what other threads must not touch.
    /// When this CPU is dropped the task ends with it.
    ///
    /// # Errors
    /// When the machine does not run.
    ///
    /// ```
    /// use quietcore::{Cpu, Machine};
    /// use std::{cell::Cell, rc::Rc};
    ///
    /// let machine = Machine::builder().lanes("0".parse()?).start()?;
    /// let mut cpu = Cpu::claim(machine, quietcore::CpuId::new(0)?)?;
    /// let count = Rc::new(Cell::new(0));
    /// let counted = Rc::clone(&count);
    /// let task = cpu.spawn_local(async move { counted.set(counted.get() + 1) })?;
    /// while !task.is_finished() {
    ///     cpu.turn();
    /// }
    /// assert_eq!(count.get(), 1);
    /// # drop(cpu);
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn spawn_local<F>(&self, future: F) -> Result<JoinHandle<F::Output>, SpawnError>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        let machine = self.machine();
        machine.check_spawn(None)?;
        let origin = Origin::of::<F>(machine.spawn_location(Location::caller()));
        let place = TaskPlace::Thread(self.cpu());
        let state = TaskState::new(machine.reference(), place, None, self.cpu(), origin);
        let (runnable, handle) = self.local_tasks().list(0, |listed| {
            let make = move |state: &Arc<TaskState>| Contained::new(future, Arc::clone(state), Some(listed));
            let (runnable, task) = async_task::Builder::new().metadata(state).spawn_local(make, schedule);
            let (waker, for_handle) = (runnable.waker(), runnable.waker());
            ((runnable, JoinHandle::new(task, for_handle)), waker)
        });
        runnable.schedule();
        Ok(handle)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::SpawnError;
    use crate::{Cpu, CpuId, Machine};

    /// Goal: a lane starts no task of its own when the machine has ended, as no turn would run it. Method: it
    /// is claimed before that.
    #[test]
    fn a_lane_spawns_nothing_after_the_end() {
        let machine = Machine::builder().lanes("0".parse().expect("a list")).start().expect("it starts");
        let cpu = Cpu::claim(machine, CpuId::default()).expect("no thread has it");
        machine.shutdown();
        assert!(matches!(cpu.spawn_local(async {}), Err(SpawnError::NotRunning)));
    }
}
