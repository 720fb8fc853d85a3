//! What a queue knows of a task, and one poll of it.

use super::error::{JoinError, Panic};
use super::live::Listed;
use super::sync::{Aborted, LastCpu};
use crate::machine::Machine;
use crate::run_queue::Item;
use crate::stall::{Callback, RunningCode};
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};
use pin_project_lite::pin_project;
use quietcore_core::CpuId;
use quietcore_core::realtime::Priority;
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
    pub(crate) fn running(&self) -> RunningCode {
        let Origin { callback, site } = self.origin;
        RunningCode::of(callback, self.priority.map_or(0, |priority| priority.get().into()), site)
    }
}

/// What a task that was woken does: it goes into a queue.
pub(super) fn schedule(task: Runnable) {
    let machine = task.metadata().machine;
    machine.enqueue(Item::Task(task));
}

/// Polls `task` on `cpu`. Says where it ran before, if it moved.
pub(crate) fn run(task: Runnable, cpu: CpuId) -> Option<CpuId> {
    let before = task.metadata().cpu.replace(cpu);
    task.run();
    (before != cpu).then_some(before)
}

pin_project! {
    /// The future of a task: it ends when it is aborted or its machine has ended, and a panic, also of its
    /// destructor, is its result.
    pub(super) struct Contained<F> {
        #[pin]
        future: Option<F>,
        state: Arc<TaskState>,
        // After the future: the list says that there is one.
        listed: Option<Listed>,
    }

    impl<F> PinnedDrop for Contained<F> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            // Nobody is left who would hear of a panic.
            let _ = drop_future(this.future.as_mut(), this.state);
        }
    }
}

/// Drops what is left of a future; a panic of its destructor is counted.
fn drop_future<F>(mut future: Pin<&mut Option<F>>, state: &TaskState) -> Result<(), Panic> {
    let dropped = catch_unwind(AssertUnwindSafe(|| future.set(None)));
    if dropped.is_err() {
        state.machine.count_task_panic();
    }
    dropped
}

impl<F> Contained<F> {
    pub(super) const fn new(future: F, state: Arc<TaskState>, listed: Option<Listed>) -> Self {
        Self { future: Some(future), state, listed }
    }
}

impl<F: Future> Future for Contained<F> {
    type Output = Result<F::Output, JoinError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let state: &TaskState = this.state;
        // RequestedAlarm here, where the task counts as running: whoever aborts it or ends the machine after this
        // wakes it, and it is polled, or dropped by its queue, once more. Before this it is seen.
        if state.aborted.is_set() || !state.machine.is_running() {
            let dropped = drop_future(this.future.as_mut(), state);
            return Poll::Ready(Err(dropped.map_or_else(JoinError::Panicked, |()| JoinError::Cancelled)));
        }
        let future = this.future.as_mut().as_pin_mut().expect("it is not polled after its end");
        // It is not polled again after a panic, so nobody sees what it left broken.
        let result = match catch_unwind(AssertUnwindSafe(|| future.poll(context))) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(result)) => Ok(result),
            Err(panic) => {
                state.machine.count_task_panic();
                Err(panic)
            }
        };
        let dropped = drop_future(this.future.as_mut(), state);
        Poll::Ready(result.and_then(|result| dropped.map(|()| result)).map_err(JoinError::Panicked))
    }
}
