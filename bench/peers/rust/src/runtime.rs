//! What a runtime must offer to be measured, and how measures reach its threads.

use crate::load::{Load, Place};
use crate::sync::Count;
use std::future::Future;
use std::ops::Range;
use std::pin::{Pin, pin};
use std::sync::{Arc, mpsc};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

/// How many workers every runtime has.
pub const WORKERS: usize = 2;

/// A runtime with [`WORKERS`] workers that serves until the process ends.
pub trait Runtime: Sized + Send + Sync + 'static {
    /// A timer as a future. It is armed when it is first polled and cancelled when it is dropped.
    type Sleep: Future + Send + 'static;

    /// A moment as this runtime wants it.
    type Moment: Copy + Send + Sync + 'static;

    /// Why `load` cannot be asked of this runtime; `None` if it can.
    fn absent(load: &Load) -> Option<&'static str> {
        let _ = load;
        None
    }

    /// Starts it.
    ///
    /// # Errors
    /// Why it does not start here.
    fn start(load: &Load) -> Result<Self, String>;

    /// A sleep of `delay` from now.
    fn sleep(&self, delay: Duration) -> Self::Sleep;

    /// The moment `at`.
    fn moment(&self, at: Instant) -> Self::Moment;

    /// A sleep until `at`.
    fn sleep_until(&self, at: Self::Moment) -> Self::Sleep;

    /// Moves an armed sleep to `delay` from now; it is armed when this returns.
    fn rearm(&self, sleep: Pin<&mut Self::Sleep>, delay: Duration);

    /// What arms a timer for a delay and cancels it, on the present thread. The default is a sleep on the
    /// stack.
    fn pair_after(&'static self) -> impl FnMut(Duration) {
        |delay| poll_once(pin!(self.sleep(delay)))
    }

    /// The same for a moment.
    fn pair_at(&'static self) -> impl FnMut(Self::Moment) {
        |at| poll_once(pin!(self.sleep_until(at)))
    }

    /// What a job of this runtime that goes on for long does every now and then on its worker; not measured.
    /// The default is nothing.
    fn between_stretches(&self) {}

    /// Arms a timer for `at` that counts in `expired` when it expires, and is there until what this returns
    /// is dropped. `waker` counts there, too: the default is a boxed sleep that was polled with it.
    fn count_at(&'static self, at: Self::Moment, waker: &Waker, expired: &Arc<Count>) -> impl Send {
        let _ = expired;
        boxed(self.sleep_until(at), waker)
    }

    /// Calls `beat` with each moment after it is due: `period` apart, in `when`. The default is a task that
    /// sleeps.
    fn repeat(
        &'static self,
        worker: usize,
        period: Duration,
        when: Range<Instant>,
        beat: impl FnMut(Instant) + Send + 'static,
    ) {
        self.spawn(worker, in_task(self, period, when, beat));
    }

    /// Runs `task` on a worker, on the one called `worker` if tasks stay where they are.
    fn spawn(&self, worker: usize, task: impl Future<Output = ()> + Send + 'static);

    /// Runs `job`, which uses its thread for long, on a worker.
    fn run(&self, worker: usize, job: impl FnOnce() + Send + 'static) {
        self.spawn(worker, async move { job() });
    }

    /// Runs `job` on the present thread, which is not one of the workers.
    fn enter(&self, job: impl FnOnce()) {
        job();
    }
}

/// The task of [`Runtime::repeat`].
pub async fn in_task<R: Runtime>(
    runtime: &'static R,
    period: Duration,
    when: Range<Instant>,
    mut beat: impl FnMut(Instant),
) {
    let mut due = when.start;
    while due < when.end {
        runtime.sleep_until(runtime.moment(due)).await;
        beat(due);
        due += period;
    }
}

/// Polls `sleep` with `waker`, and keeps it; dropping it in place does not free its memory.
pub fn boxed<S: Future>(sleep: S, waker: &Waker) -> Pin<Box<Option<S>>> {
    let mut kept = Box::pin(Some(sleep));
    poll_with(kept.as_mut().as_pin_mut().expect("just made"), waker);
    kept
}

/// Polls `sleep`, which arms it and wakes no thread when it expires.
///
/// # Panics
/// If it is over.
pub fn poll_once<S: Future>(sleep: Pin<&mut S>) {
    poll_with(sleep, Waker::noop());
}

/// Polls `sleep`, which arms it; it wakes `waker`.
///
/// # Panics
/// If it is over.
pub fn poll_with<S: Future>(sleep: Pin<&mut S>, waker: &Waker) {
    assert!(sleep.poll(&mut Context::from_waker(waker)).is_pending(), "a timer has expired too early");
}

/// Runs `work` on as many threads as `load` says, at once, and waits for what they return. The argument of
/// `work` is the number of the thread.
///
/// # Panics
/// If one of them panics.
pub fn on_threads<R, T, W>(runtime: &'static R, load: &Load, work: W) -> Vec<T>
where
    R: Runtime,
    T: Send + 'static,
    W: Fn(usize) -> T + Send + Sync + 'static,
{
    let (done, results) = mpsc::channel();
    let work = Arc::new(work);
    for thread in 0..load.threads {
        let (work, done) = (Arc::clone(&work), done.clone());
        let job = move || done.send(work(thread)).expect("whoever waits for it is there");
        match load.place {
            Place::Home => runtime.run(thread, job),
            Place::Foreign => drop(std::thread::spawn(move || runtime.enter(job))),
        }
    }
    drop(done);
    let results: Vec<T> = results.iter().collect();
    assert_eq!(results.len(), load.threads, "a thread gave up");
    results
}
