//! What a spawner keeps of a task: its result to be, and a way to end it early.

use super::error::JoinError;
use super::state::TaskState;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::sync::Arc;

/// The result of a task, as a future. Dropping it leaves the task alone.
///
/// ```
/// use quietcore::{LaneThreads, Machine};
///
/// let machine = Machine::builder().lanes("0".parse()?).lane_threads(LaneThreads::new()).start()?;
/// let task = machine.spawn(async { 6 * 7 })?;
/// assert_eq!(futures_executor::block_on(task)?, 42);
/// # machine.shutdown();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "to leave the task alone, drop the handle on purpose"]
pub struct JoinHandle<T> {
    /// Always there until it is dropped.
    task: Option<async_task::FallibleTask<Result<T, JoinError>, Arc<TaskState>>>,
    abort: AbortHandle,
}

impl<T> JoinHandle<T> {
    pub(super) fn new(task: async_task::Task<Result<T, JoinError>, Arc<TaskState>>, waker: Waker) -> Self {
        let abort = AbortHandle { state: Arc::clone(task.metadata()), waker };
        Self { task: Some(task.fallible()), abort }
    }

    /// Ends the task at its next step: its future is dropped by the lane that would have polled it. A task
    /// that has ended keeps its result. Any thread; cost: a wake-up.
    ///
    /// ```
    /// # use quietcore::{LaneThreads, Machine};
    /// # let machine = Machine::builder().lanes("0".parse()?).lane_threads(LaneThreads::new()).start()?;
    /// let task = machine.spawn(core::future::pending::<()>())?;
    /// task.abort();
    /// assert!(!futures_executor::block_on(task).expect_err("it was aborted").is_panic());
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn abort(&self) {
        self.abort.abort();
    }

    /// For others, to abort the task.
    ///
    /// ```
    /// # use quietcore::{LaneThreads, Machine};
    /// # let machine = Machine::builder().lanes("0".parse()?).lane_threads(LaneThreads::new()).start()?;
    /// let task = machine.spawn(core::future::pending::<()>())?;
    /// let abort = task.abort_handle();
    /// std::thread::spawn(move || abort.abort());
    /// assert!(futures_executor::block_on(task).is_err());
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
        Pin::new(task).poll(context).map(|ended| ended.unwrap_or(Err(JoinError::Cancelled)))
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
///
/// ```
/// # use quietcore::{LaneThreads, Machine};
/// # let machine = Machine::builder().lanes("0".parse()?).lane_threads(LaneThreads::new()).start()?;
/// let task = machine.spawn(core::future::pending::<()>())?;
/// task.abort_handle().abort();
/// assert!(futures_executor::block_on(task).is_err());
/// # machine.shutdown();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct AbortHandle {
    state: Arc<TaskState>,
    waker: Waker,
}

impl AbortHandle {
    /// As [`JoinHandle::abort`].
    ///
    /// ```
    /// # use quietcore::{LaneThreads, Machine};
    /// # let machine = Machine::builder().lanes("0".parse()?).lane_threads(LaneThreads::new()).start()?;
    /// let task = machine.spawn(async { 1 })?;
    /// let abort = task.abort_handle();
    /// assert_eq!(futures_executor::block_on(task)?, 1);
    /// abort.abort(); // too late, and harmless
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn abort(&self) {
        self.state.aborted.set();
        self.waker.wake_by_ref();
    }
}
