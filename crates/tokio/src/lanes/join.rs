//! Waiting for a task on a lane, from anywhere.
//!
//! A task is made on its lane, so tokio's handle of it comes later than ours: ours waits for that handle
//! first. Until then it is *queued*; one that is aborted by then is made and never polled.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;
use tokio::task as real;

/// How far a task has come, as far as aborting is concerned.
#[derive(Debug)]
enum TaskStage {
    Queued,
    Aborted,
    Made(real::AbortHandle),
}

/// The lane's end.
#[derive(Debug)]
pub(super) struct Promise<T> {
    stage: Arc<Mutex<TaskStage>>,
    sender: oneshot::Sender<real::JoinHandle<T>>,
}

impl<T> Promise<T> {
    /// Makes the task. On the lane.
    pub(super) fn keep(self, make: impl FnOnce() -> real::JoinHandle<T>) {
        let mut stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        let task = make();
        let before = core::mem::replace(&mut *stage, TaskStage::Made(task.abort_handle()));
        drop(stage);
        if matches!(before, TaskStage::Aborted) {
            // By tokio, which drops it as a task: whatever its drop does, the lane goes on.
            task.abort();
        }
        // An error: its handle was dropped. The task runs all the same.
        let _ = self.sender.send(task);
    }
}

/// Both ends.
pub(super) fn promise<T>() -> (Promise<T>, LaneJoinHandle<T>) {
    let (sender, receiver) = oneshot::channel();
    let stage = Arc::new(Mutex::new(TaskStage::Queued));
    let handle = LaneJoinHandle { stage: Arc::clone(&stage), task: AwaitedTask::Promised(receiver) };
    (Promise { stage, sender }, handle)
}

#[derive(Debug)]
enum AwaitedTask<T> {
    Promised(oneshot::Receiver<real::JoinHandle<T>>),
    Made(real::JoinHandle<T>),
}

/// Waits for a task on a lane. It can be awaited in any executor; dropping it leaves the task alone.
#[derive(Debug)]
pub struct LaneJoinHandle<T> {
    stage: Arc<Mutex<TaskStage>>,
    task: AwaitedTask<T>,
}

impl<T> LaneJoinHandle<T> {
    /// Ends the task where it waits, or before it begins. A task that is done stays done.
    pub fn abort(&self) {
        let mut stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        match &*stage {
            TaskStage::Queued => *stage = TaskStage::Aborted,
            TaskStage::Aborted => {}
            TaskStage::Made(task) => {
                let task = task.clone();
                drop(stage);
                task.abort();
            }
        }
    }
}

impl<T> Future for LaneJoinHandle<T> {
    type Output = Result<T, LaneJoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            match &mut self.task {
                AwaitedTask::Promised(promise) => match ready!(Pin::new(promise).poll(context)) {
                    Ok(task) => self.task = AwaitedTask::Made(task),
                    // Its lane ended before it was made.
                    Err(_) => return Poll::Ready(Err(LaneJoinError(None))),
                },
                AwaitedTask::Made(task) => {
                    return Pin::new(task).poll(context).map_err(|error| LaneJoinError(Some(error)));
                }
            }
        }
    }
}

/// Why a task has no result.
pub struct LaneJoinError(Option<real::JoinError>);

impl LaneJoinError {
    /// It was aborted, or its lane was shut down.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.as_ref().is_none_or(real::JoinError::is_cancelled)
    }

    /// It panicked.
    #[must_use]
    pub fn is_panic(&self) -> bool {
        self.0.as_ref().is_some_and(real::JoinError::is_panic)
    }

    /// What it panicked with.
    ///
    /// # Errors
    /// The error as it was, when the task did not panic.
    pub fn try_into_panic(self) -> Result<Box<dyn Any + Send + 'static>, Self> {
        match self.0 {
            Some(error) => error.try_into_panic().map_err(|error| Self(Some(error))),
            None => Err(self),
        }
    }
}

impl fmt::Debug for LaneJoinError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(error) => fmt::Debug::fmt(error, out),
            None => out.write_str("LaneJoinError::Cancelled"),
        }
    }
}

impl fmt::Display for LaneJoinError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(error) => fmt::Display::fmt(error, out),
            None => out.write_str("the task was cancelled before it began"),
        }
    }
}

impl core::error::Error for LaneJoinError {}
