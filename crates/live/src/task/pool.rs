//! The closures of a machine that block, and the threads that run them.

use super::state::{Runnable, run};
use quietcore_core::CpuId;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The most threads of a machine.
const LIMIT: usize = 512;

/// How long a thread waits for another closure.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
struct PoolState {
    waiting: VecDeque<Runnable>,
    threads: usize,
    idle: usize,
    is_over: bool,
}

/// The closures of a machine that block, and who runs them.
#[derive(Debug, Default)]
pub(crate) struct BlockingPool {
    state: Mutex<PoolState>,
    changed: Condvar,
}

impl BlockingPool {
    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves `task`; says whether another thread is needed.
    pub(super) fn push(&self, task: Runnable) -> bool {
        let mut state = self.lock();
        if state.is_over {
            // The lock is given back before `task` is dropped, which is user code.
            return false;
        }
        state.waiting.push_back(task);
        let is_needed = state.waiting.len() > state.idle && state.threads < LIMIT;
        if is_needed {
            state.threads += 1;
        }
        drop(state);
        self.changed.notify_one();
        is_needed
    }

    /// The thread that was needed is not to be had: others will come to what waits; without any it is
    /// dropped. Says whether it was.
    pub(super) fn lose_thread(&self) -> bool {
        let mut state = self.lock();
        state.threads -= 1;
        let is_last = state.threads == 0;
        if is_last {
            drop(take_waiting(state));
        }
        is_last
    }

    /// The calling thread runs closures until it has had none for a while, or is that of a child which one of
    /// them has forked: what else waits is the parent's, and the lock may be held for ever.
    pub(super) fn work(&self, is_forked: impl Fn() -> bool) {
        self.work_with(PATIENCE, is_forked);
    }

    fn work_with(&self, patience: Duration, is_forked: impl Fn() -> bool) {
        let mut state = self.lock();
        loop {
            if let Some(task) = state.waiting.pop_front() {
                drop(state);
                // Its panic is its result.
                let _ = run(task, CpuId::default());
                if is_forked() {
                    return;
                }
                state = self.lock();
                continue;
            }
            if state.is_over {
                break;
            }
            state.idle += 1;
            let (after, timeout) =
                self.changed.wait_timeout(state, patience).unwrap_or_else(PoisonError::into_inner);
            state = after;
            state.idle -= 1;
            // A closure may have been left for this thread since its time was over.
            if timeout.timed_out() && state.waiting.is_empty() {
                break;
            }
        }
        state.threads -= 1;
    }

    /// Nothing is begun any more: what waits is dropped, threads end when they are done.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.is_over = true;
        self.changed.notify_all();
        drop(take_waiting(state));
    }
}

/// What waits; to be dropped, which is user code, now that the lock was given back.
fn take_waiting(mut state: MutexGuard<'_, PoolState>) -> VecDeque<Runnable> {
    core::mem::take(&mut state.waiting)
}

#[cfg(test)]
mod tests {
    use super::super::state::{Origin, Runnable, TaskPlace, TaskState};
    use super::LIMIT;
    use crate::Machine;
    use quietcore_core::CpuId;
    use std::sync::Arc;
    use std::sync::mpsc::{Sender, channel};
    use std::thread;
    use std::time::{Duration, Instant};

    /// A closure that does nothing, has `kept`, and is not in the pool yet.
    fn closure<T: Send + 'static>(
        machine: &'static Machine,
        kept: T,
    ) -> (Runnable, async_task::Task<(), Arc<TaskState>>) {
        let origin = Origin::of::<()>(None);
        let state = TaskState::new(machine.reference(), TaskPlace::Anywhere, None, CpuId::default(), origin);
        let make = |_: &_| async move { drop(kept) };
        async_task::Builder::new().metadata(state).spawn(make, drop)
    }

    /// Waits until `is_so`.
    fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
        let end = Instant::now() + Duration::from_secs(20);
        while !is_so() {
            assert!(Instant::now() < end, "{what}");
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Goal: a thread of a pool that is over ends at once. Method: one with much patience, which comes after
    /// the end.
    #[test]
    fn a_pool_that_is_over_keeps_no_thread() {
        let machine = Machine::start().expect("it starts");
        machine.blocking.end();
        machine.blocking.lock().threads += 1;
        let worker = thread::spawn(|| machine.blocking.work_with(Duration::from_secs(3600), || false));
        eventually("it waits", || worker.is_finished());
        assert_eq!(machine.blocking.lock().threads, 0);
        machine.shutdown();
    }

    /// Goal: the end of a pool ends the threads that wait for a closure, and they are counted no more.
    /// Method: one with much patience, which waits.
    #[test]
    fn the_end_wakes_the_threads_that_wait() {
        let machine = Machine::start().expect("it starts");
        machine.blocking.lock().threads += 1;
        let worker = thread::spawn(|| machine.blocking.work_with(Duration::from_secs(3600), || false));
        eventually("it does not wait", || machine.blocking.lock().idle == 1);
        machine.blocking.end();
        eventually("it waits still", || worker.is_finished());
        assert_eq!(machine.blocking.lock().threads, 0);
        machine.shutdown();
    }

    /// Goal: in a child that a closure has forked its thread touches nothing more. Method: two closures wait;
    /// a fork is said to have come in the first.
    #[test]
    fn a_child_runs_no_other_closure() {
        let machine = Machine::start().expect("it starts");
        let tasks = [(); 2].map(|()| {
            let (closure, task) = closure(machine, ());
            machine.blocking.lock().waiting.push_back(closure);
            task
        });
        machine.blocking.lock().threads += 1;
        machine.blocking.work_with(Duration::from_secs(3600), || true);
        assert_eq!(tasks.each_ref().map(|task| task.is_finished()), [true, false]);
        let state = machine.blocking.lock();
        assert_eq!((state.threads, state.waiting.len()), (1, 1), "they are the parent's");
        drop(state);
        machine.shutdown();
    }

    /// Goal: a thread that has ended does not count as one that waits: else the next closure would wait for
    /// it for ever. Method: one with little patience.
    #[test]
    fn a_thread_that_has_ended_does_not_wait() {
        let machine = Machine::start().expect("it starts");
        machine.blocking.lock().threads += 1;
        machine.blocking.work_with(Duration::from_millis(1), || false);
        let state = machine.blocking.lock();
        assert_eq!((state.threads, state.idle), (0, 0));
        drop(state);
        machine.shutdown();
    }

    /// Goal: a closure that is left for a thread whose patience has just ended is run by it. Method: the
    /// pool's lock is held until that is so.
    #[test]
    fn a_thread_looks_once_more_before_it_ends() {
        let machine = Machine::start().expect("it starts");
        let (closure, task) = closure(machine, ());
        machine.blocking.lock().threads += 1;
        let patience = Duration::from_millis(400);
        let worker = thread::spawn(move || machine.blocking.work_with(patience, || false));
        let end = Instant::now() + Duration::from_secs(20);
        let mut state = machine.blocking.lock();
        while state.idle == 0 {
            assert!(Instant::now() < end, "it does not wait");
            drop(state);
            thread::yield_now();
            state = machine.blocking.lock();
        }
        state.waiting.push_back(closure);
        thread::sleep(2 * patience);
        drop(state);
        worker.join().expect("it does not panic");
        assert!(task.is_finished() && machine.blocking.lock().waiting.is_empty(), "it was left there");
        machine.shutdown();
    }

    /// Goal: a thread is asked for, and counted, when more closures wait than threads do, up to the limit.
    /// Method: the counts are set by hand; closures are left one after the other.
    #[test]
    fn a_thread_is_asked_for_when_it_is_needed() {
        let machine = Machine::start().expect("it starts");
        let push = || {
            let (closure, task) = closure(machine, ());
            task.detach();
            let is_needed = machine.blocking.push(closure);
            (is_needed, machine.blocking.lock().threads)
        };
        (machine.blocking.lock().idle, machine.blocking.lock().threads) = (1, 1);
        assert_eq!(push(), (false, 1), "for a thread that waits");
        assert_eq!(push(), (true, 2));
        machine.blocking.lock().threads = LIMIT;
        assert_eq!(push(), (false, LIMIT));
        machine.shutdown();
    }

    /// Goal: where the system refuses a thread, closures are left to the threads that there are, and dropped
    /// if there is none. Method: two threads are counted, and both are lost.
    #[test]
    fn without_any_thread_nothing_waits() {
        let machine = Machine::start().expect("it starts");
        machine.blocking.lock().threads = 1;
        let (closure, task) = closure(machine, ());
        assert!(machine.blocking.push(closure));
        for (is_last, left) in [(false, 1), (true, 0)] {
            assert_eq!(machine.blocking.lose_thread(), is_last);
            let state = machine.blocking.lock();
            assert_eq!((state.threads, state.waiting.len()), (left, left));
        }
        assert!(task.is_finished());
        machine.shutdown();
    }

    /// Tells, when it is dropped, whether the pool's lock can be had.
    struct Looks(&'static Machine, Sender<bool>);

    impl Drop for Looks {
        fn drop(&mut self) {
            self.1.send(self.0.blocking.state.try_lock().is_ok()).expect("the test waits");
        }
    }

    /// Goal: a closure that is not begun is dropped at once and not under the pool's lock: its destructor may
    /// come back here. Method: one is dropped for want of a thread, one by the end, one comes after that.
    #[test]
    fn what_is_not_begun_is_dropped_without_the_lock() {
        let machine = Machine::start().expect("it starts");
        let (sender, looked) = channel();
        let push = || {
            let (closure, task) = closure(machine, Looks(machine, sender.clone()));
            task.detach();
            machine.blocking.push(closure)
        };
        assert!(push() && machine.blocking.lose_thread());
        assert_eq!(looked.try_recv(), Ok(true));
        assert!(push());
        machine.blocking.end();
        assert_eq!(looked.try_recv(), Ok(true));
        assert!(!push(), "it is over");
        assert_eq!(looked.try_recv(), Ok(true));
        machine.shutdown();
    }
}
