//! What a spawner keeps of a task: its result to be, and a way to end it early.

use super::error::JoinError;
use super::poll::Ended;
use super::state::TaskState;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::sync::Arc;

/// The result of a task, as a future. Dropping it leaves the task alone.
#[derive(Debug)]
#[must_use = "to leave the task alone, drop the handle on purpose"]
pub struct JoinHandle<T> {
    /// Always there until it is dropped.
    task: Option<async_task::FallibleTask<Ended<T>, Arc<TaskState>>>,
    abort: AbortHandle,
}

impl<T> JoinHandle<T> {
    pub(super) fn new(task: async_task::Task<Ended<T>, Arc<TaskState>>, waker: Waker) -> Self {
        let abort = AbortHandle { state: Arc::clone(task.metadata()), waker };
        Self { task: Some(task.fallible()), abort }
    }

    /// Ends the task at its next step: its future is dropped by the lane that would have polled it. A task
    /// that has ended keeps its result. Any thread; cost: a wake-up.
    pub fn abort(&self) {
        self.abort.abort();
    }

    /// For others, to abort the task.
    #[must_use]
    pub fn abort_handle(&self) -> AbortHandle {
        self.abort.clone()
    }

    /// Whether the task has ended: the result is there.
    ///
    /// # Panics
    /// Never: the handle has its task.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.task.as_ref().expect(HAS_TASK).is_finished()
    }
}

const HAS_TASK: &str = "the task is there until the handle is dropped";

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let task = self.task.as_mut().expect(HAS_TASK);
        Pin::new(task).poll(context).map(|ended| ended.map_or(Err(JoinError::CANCELLED), Ended::into_result))
    }
}

impl<T> Drop for JoinHandle<T> {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.detach();
        }
    }
}

/// Ends a task from anywhere. Cheap to clone; keeps the task's memory, not its future.
#[derive(Clone, Debug)]
pub struct AbortHandle {
    state: Arc<TaskState>,
    waker: Waker,
}

impl AbortHandle {
    /// As [`JoinHandle::abort`].
    pub fn abort(&self) {
        self.state.aborted.set();
        self.waker.wake_by_ref();
    }
}
