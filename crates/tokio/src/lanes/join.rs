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
enum Stage {
    Queued,
    Aborted,
    Made(real::AbortHandle),
}

/// The lane's end.
#[derive(Debug)]
pub(super) struct Promise<T> {
    stage: Arc<Mutex<Stage>>,
    sender: oneshot::Sender<real::JoinHandle<T>>,
}

impl<T> Promise<T> {
    /// Makes the task. On the lane.
    pub(super) fn keep(self, make: impl FnOnce() -> real::JoinHandle<T>) {
        let mut stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        let task = make();
        let before = core::mem::replace(&mut *stage, Stage::Made(task.abort_handle()));
        drop(stage);
        if matches!(before, Stage::Aborted) {
            // By tokio, which drops it as a task: whatever its drop does, the lane goes on.
            task.abort();
        }
        // Nobody may want to wait for it; then it runs all the same.
        let _ = self.sender.send(task);
    }
}

/// Both ends.
pub(super) fn promise<T>() -> (Promise<T>, JoinHandle<T>) {
    let (sender, receiver) = oneshot::channel();
    let stage = Arc::new(Mutex::new(Stage::Queued));
    let handle = JoinHandle { stage: Arc::clone(&stage), task: Task::Promised(receiver) };
    (Promise { stage, sender }, handle)
}

#[derive(Debug)]
enum Task<T> {
    Promised(oneshot::Receiver<real::JoinHandle<T>>),
    Made(real::JoinHandle<T>),
}

/// Waits for a task on a lane. It can be awaited in any executor; dropping it leaves the task alone.
///
/// ```
/// # use quietcore::Machine;
/// # use quietcore::tokio::lanes::Lanes;
/// # let machine = Machine::builder().lanes("0".parse()?).start()?;
/// let lanes = Lanes::start(machine)?;
/// let task = lanes.spawn(|| async { 7 })?;
/// assert_eq!(quietcore::time::block_on(task)?, 7);
/// # lanes.shutdown();
/// # machine.shutdown();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct JoinHandle<T> {
    stage: Arc<Mutex<Stage>>,
    task: Task<T>,
}

impl<T> JoinHandle<T> {
    /// Ends the task where it waits, or before it begins. A task that is done stays done.
    ///
    /// ```
    /// # use quietcore::Machine;
    /// # use quietcore::tokio::lanes::Lanes;
    /// # let machine = Machine::builder().lanes("0".parse()?).start()?;
    /// let lanes = Lanes::start(machine)?;
    /// let task = lanes.spawn(|| core::future::pending::<()>())?;
    /// task.abort();
    /// assert!(quietcore::time::block_on(task).expect_err("it never ends").is_cancelled());
    /// # lanes.shutdown();
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn abort(&self) {
        let mut stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        match &*stage {
            Stage::Queued => *stage = Stage::Aborted,
            Stage::Aborted => {}
            Stage::Made(task) => {
                let task = task.clone();
                drop(stage);
                task.abort();
            }
        }
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            match &mut self.task {
                Task::Promised(promise) => match ready!(Pin::new(promise).poll(context)) {
                    Ok(task) => self.task = Task::Made(task),
                    // Its lane ended before it was made.
                    Err(_) => return Poll::Ready(Err(JoinError(None))),
                },
                Task::Made(task) => {
                    return Pin::new(task).poll(context).map_err(|error| JoinError(Some(error)));
                }
            }
        }
    }
}

/// Why a task has no result.
///
/// ```
/// # use quietcore::Machine;
/// # use quietcore::tokio::lanes::Lanes;
/// # let machine = Machine::builder().lanes("0".parse()?).start()?;
/// let lanes = Lanes::start(machine)?;
/// let task = lanes.spawn(|| core::future::pending::<()>())?;
/// lanes.shutdown();
/// let error = quietcore::time::block_on(task).expect_err("its lane ended");
/// assert!(error.is_cancelled() && !error.is_panic());
/// # machine.shutdown();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct JoinError(Option<real::JoinError>);

impl JoinError {
    /// It was aborted, or its lane was shut down.
    ///
    /// ```
    /// # use quietcore::tokio::lanes::JoinError;
    /// let is_ours = |error: &JoinError| error.is_cancelled();
    /// # let _ = is_ours;
    /// ```
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.as_ref().is_none_or(real::JoinError::is_cancelled)
    }

    /// It panicked.
    ///
    /// ```
    /// # use quietcore::tokio::lanes::JoinError;
    /// let is_a_bug = |error: &JoinError| error.is_panic();
    /// # let _ = is_a_bug;
    /// ```
    #[must_use]
    pub fn is_panic(&self) -> bool {
        self.0.as_ref().is_some_and(real::JoinError::is_panic)
    }

    /// What it panicked with.
    ///
    /// # Errors
    /// The error as it was, when the task did not panic.
    ///
    /// ```
    /// # use quietcore::tokio::lanes::JoinError;
    /// let go_on_panicking = |error: JoinError| {
    ///     if let Ok(panic) = error.try_into_panic() {
    ///         std::panic::resume_unwind(panic);
    ///     }
    /// };
    /// # let _ = go_on_panicking;
    /// ```
    pub fn try_into_panic(self) -> Result<Box<dyn Any + Send + 'static>, Self> {
        match self.0 {
            Some(error) => error.try_into_panic().map_err(|error| Self(Some(error))),
            None => Err(self),
        }
    }
}

impl fmt::Debug for JoinError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(error) => fmt::Debug::fmt(error, out),
            None => out.write_str("JoinError::Cancelled"),
        }
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(error) => fmt::Display::fmt(error, out),
            None => out.write_str("the task was cancelled before it began"),
        }
    }
}

impl core::error::Error for JoinError {}
