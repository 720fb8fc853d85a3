//! One poll of a task, and what a task that was woken does.

use super::error::JoinError;
use super::live::Listed;
use super::state::{Runnable, TaskState};
use crate::machine::Machine;
use crate::panic::{Panic, contain, discard};
use crate::run_queue::Item;
use core::pin::Pin;
use core::task::{Context, Poll};
use pin_project_lite::pin_project;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// What a task that was woken does: it goes into a queue.
pub(super) fn schedule(task: Runnable) {
    let machine = Machine::of(task.metadata().machine);
    machine.queues().enqueue(Item::Task(task));
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
            if Machine::of(this.state.machine).is_forked() {
                // Another thread may have been in the list at the moment of the fork.
                core::mem::forget(this.listed.take());
            }
            // No thread is left who would hear of a panic.
            if let Err(panic) = drop_future(this.future.as_mut(), this.state) {
                discard(panic);
            }
        }
    }
}

/// What a task has ended with. The last one who knows the task drops it, on whatever thread: that is user
/// code, and no panic of it goes further.
pub(super) struct Ended<T>(Option<Result<T, JoinError>>);

impl<T> Ended<T> {
    const fn new(result: Result<T, JoinError>) -> Self {
        Self(Some(result))
    }

    pub(super) fn into_result(mut self) -> Result<T, JoinError> {
        self.0.take().expect("it is taken once")
    }
}

impl<T> Drop for Ended<T> {
    fn drop(&mut self) {
        if let Some(result) = self.0.take() {
            let _ = contain(|| drop(result));
        }
    }
}

/// Drops what is left of a future; a panic of its destructor is counted.
fn drop_future<F>(mut future: Pin<&mut Option<F>>, state: &TaskState) -> Result<(), Panic> {
    let dropped = catch_unwind(AssertUnwindSafe(|| future.set(None)));
    if dropped.is_err() {
        Machine::of(state.machine).count_task_panic();
    }
    dropped
}

impl<F> Contained<F> {
    pub(super) const fn new(future: F, state: Arc<TaskState>, listed: Option<Listed>) -> Self {
        Self { future: Some(future), state, listed }
    }
}

impl<F: Future> Future for Contained<F> {
    type Output = Ended<F::Output>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let state: &TaskState = this.state;
        // Asked here, where the task counts as running: the thread that aborts it or ends the machine after
        // this wakes it, and it is polled, or dropped by its queue, once more. Before this it is seen.
        if state.aborted.is_set() || !Machine::of(state.machine).is_running() {
            let dropped = drop_future(this.future.as_mut(), state);
            let why = dropped.map_or_else(JoinError::panicked, |()| JoinError::CANCELLED);
            return Poll::Ready(Ended::new(Err(why)));
        }
        let future = this.future.as_mut().as_pin_mut().expect("it is not polled after its end");
        // It is not polled again after a panic, so no thread sees what it left broken.
        let ended = match catch_unwind(AssertUnwindSafe(|| future.poll(context))) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(result)) => Ended::new(Ok(result)),
            Err(panic) => {
                Machine::of(state.machine).count_task_panic();
                Ended::new(Err(JoinError::panicked(panic)))
            }
        };
        Poll::Ready(match (drop_future(this.future.as_mut(), state), &ended.0) {
            (Err(panic), Some(Ok(_))) => Ended::new(Err(JoinError::panicked(panic))),
            (Err(panic), _) => {
                discard(panic);
                ended
            }
            (Ok(()), _) => ended,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Contained, JoinError};
    use crate::Machine;
    use crate::task::state::{Origin, Runnable, TaskPlace, TaskState, run};
    use core::future::poll_fn;
    use core::task::{Context, Poll, Waker};
    use quietcore_core::CpuId;
    use std::panic::panic_any;
    use std::pin::pin;

    /// Goal: a task that was taken out of its queue just before the machine ended is dropped, not polled.
    /// Method: it is polled after the end.
    #[test]
    fn no_task_is_polled_after_the_end() {
        let machine = Machine::start().expect("it starts");
        let origin = Origin::of::<()>(None);
        let state = TaskState::new(machine.reference(), TaskPlace::Anywhere, None, CpuId::default(), origin);
        machine.shutdown();
        let mut task = pin!(Contained::new(async { unreachable!("it is over") }, state, None));
        let polled = Future::poll(task.as_mut(), &mut Context::from_waker(Waker::noop()));
        let Poll::Ready(ended) = polled else { panic!("it waits") };
        let result: Result<(), JoinError> = ended.into_result();
        assert!(result.is_err_and(|error| error.is_cancelled()));
    }

    /// Panics when it is dropped, with what panics when it is dropped.
    struct Bomb(bool);

    impl Drop for Bomb {
        fn drop(&mut self) {
            if self.0 {
                panic_any(Bomb(false));
            }
            panic!("on purpose");
        }
    }

    /// Goal: the first panic of a task is its result; what its destructor panics with goes no further, even
    /// if that panics, too. Method: a future whose poll panics, whose destructor does, and so on.
    #[test]
    fn the_first_panic_is_the_result() {
        let machine = Machine::start().expect("it starts");
        let origin = Origin::of::<()>(None);
        let state = TaskState::new(machine.reference(), TaskPlace::Anywhere, None, CpuId::default(), origin);
        let bomb = Bomb(true);
        let future = poll_fn(move |_| {
            let _kept = &bomb;
            panic!("the first")
        });
        let mut task = pin!(Contained::new(future, state, None));
        let polled = Future::poll(task.as_mut(), &mut Context::from_waker(Waker::noop()));
        let Poll::Ready(ended) = polled else { panic!("it waits") };
        let result: Result<(), JoinError> = ended.into_result();
        assert_eq!(result.expect_err("it panicked").to_string(), "the task panicked: the first");
        machine.shutdown();
    }

    /// Goal: a poll on another CPU than the last one is a move, from there. Method: one task is polled three
    /// times, the last time where it was.
    #[test]
    fn a_poll_elsewhere_is_a_move() {
        let machine = Machine::start().expect("it starts");
        let [first, second] = [0, 1].map(|index| CpuId::new(index).expect("below the limit"));
        let state =
            TaskState::new(machine.reference(), TaskPlace::Anywhere, None, first, Origin::of::<()>(None));
        let (sender, woken) = std::sync::mpsc::channel();
        let future = |_: &_| {
            core::future::poll_fn(|context| {
                context.waker().wake_by_ref();
                core::task::Poll::<()>::Pending
            })
        };
        let schedule = move |task: Runnable| sender.send(task).expect("the test waits");
        let (task, handle) = async_task::Builder::new().metadata(state).spawn(future, schedule);
        task.schedule();
        let mut poll_on = |cpu| run(woken.try_recv().expect("it was woken"), cpu);
        assert_eq!([first, second, second].map(&mut poll_on), [None, Some(first), None]);
        drop(handle);
        machine.shutdown();
    }
}
