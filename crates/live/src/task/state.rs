//! What a queue knows of a task, and one poll of it.

use super::sync::{Aborted, LastCpu};
use crate::machine::Machine;
use crate::run_queue::Item;
use crate::stall::{Callback, Running};
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};
use pin_project_lite::pin_project;
use quietcore_core::CpuId;
use quietcore_core::realtime::Priority;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
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
    /// On the thread that plays this lane now, and on no other.
    Thread(CpuId),
}

/// What is known of a task besides its future.
#[derive(Debug)]
pub(crate) struct TaskState {
    pub(super) machine: &'static Machine,
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
    site: Option<&'static Location<'static>>,
}

impl Origin {
    /// Of a future of the type `F` that was started at `site`.
    pub(super) fn of<F>(machine: &Machine, site: &'static Location<'static>) -> Self {
        // It runs, so if it does not take plain arms it keeps sites.
        let site = Some(site).filter(|_| !machine.takes_plain_arms());
        Self { callback: const { &Callback::task::<F>() }, site }
    }
}

impl TaskState {
    pub(super) fn new(
        machine: &'static Machine,
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
    pub(crate) fn running(&self) -> Running {
        let Origin { callback, site } = self.origin;
        Running::of(callback, self.priority.map_or(0, |priority| priority.get().into()), site)
    }
}

/// What a task that was woken does: it goes into a queue.
pub(super) fn schedule(task: Runnable) {
    let machine = task.metadata().machine;
    machine.enqueue(Item::Task(task));
}

/// Polls `task` on `cpu`, or drops it if it was to end. Says where it ran before, if it moved.
pub(crate) fn run(task: Runnable, cpu: CpuId) -> Option<CpuId> {
    let state = task.metadata();
    let before = state.cpu.replace(cpu);
    if state.aborted.is_set() {
        drop(task);
    } else {
        task.run();
    }
    (before != cpu).then_some(before)
}

/// What a panic left.
pub(super) type Panic = Box<dyn Any + Send>;

pin_project! {
    /// A future whose panics are its result.
    pub(super) struct Caught<F> {
        #[pin]
        future: F,
        machine: &'static Machine,
    }
}

impl<F> Caught<F> {
    pub(super) const fn new(future: F, machine: &'static Machine) -> Self {
        Self { future, machine }
    }
}

impl<F: Future> Future for Caught<F> {
    type Output = Result<F::Output, Panic>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        // The future is not polled again after a panic, so nobody sees what it left broken.
        match catch_unwind(AssertUnwindSafe(|| this.future.poll(context))) {
            Ok(poll) => poll.map(Ok),
            Err(panic) => {
                this.machine.count_task_panic();
                Poll::Ready(Err(panic))
            }
        }
    }
}
