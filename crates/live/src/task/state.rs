//! What a queue knows of a task.

use super::sync::{Aborted, LastCpu};
use crate::machine_ref::MachineRef;
use crate::stall::{Callback, RunningCode};
use core::panic::Location;
use quietcore_core::CpuId;
use quietcore_core::realtime::Priority;
use std::sync::Arc;

/// A task that was woken.
pub(crate) type Runnable = async_task::Runnable<Arc<TaskState>>;

/// Where a task may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskPlace {
    /// On every lane that is not isolated.
    Anywhere,
    /// On this lane.
    Lane(CpuId),
    /// On the thread that drives this lane now, and on no other.
    Thread(CpuId),
}

/// What is known of a task besides its future.
#[derive(Debug)]
pub(crate) struct TaskState {
    pub(super) machine: MachineRef,
    pub(crate) place: TaskPlace,
    pub(crate) priority: Option<Priority>,
    pub(crate) cpu: LastCpu,
    pub(super) aborted: Aborted,
    origin: Origin,
}

/// What a stall report says of a task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    callback: &'static Callback,
    /// Where it was started, if the machine keeps that.
    location: Option<&'static Location<'static>>,
}

impl Origin {
    /// Of a future of the type `F` that was started at `location`, if the machine keeps that.
    pub(super) fn of<F>(location: Option<&'static Location<'static>>) -> Self {
        Self { callback: const { &Callback::task::<F>() }, location }
    }
}

impl TaskState {
    pub(super) fn new(
        machine: MachineRef,
        place: TaskPlace,
        priority: Option<Priority>,
        cpu: CpuId,
        origin: Origin,
    ) -> Arc<Self> {
        let (cpu, aborted) = (LastCpu::new(cpu), Aborted::new());
        Arc::new(Self { machine, place, priority, cpu, aborted, origin })
    }

    /// What a lane says that it runs.
    #[inline]
    pub(crate) fn running(&self) -> RunningCode {
        let Origin { callback, location } = self.origin;
        RunningCode::of(callback, self.priority.map_or(0, |priority| priority.get().into()), location)
    }
}

/// Polls `task` on `cpu`. Says where it ran before, if it moved.
pub(crate) fn run(task: Runnable, cpu: CpuId) -> Option<CpuId> {
    let before = task.metadata().cpu.replace(cpu);
    task.run();
    (before != cpu).then_some(before)
}
