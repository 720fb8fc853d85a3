//! The ends of runs: which thread is inside of a run, and what waits for the end of one.

use crate::words::run_wait::{RunWait, WaitingTasks};
use core::cell::Cell;
use core::marker::PhantomData;
use core::task::Waker;
use std::sync::{Mutex, MutexGuard, PoisonError};

thread_local! {
    static RUNS: Cell<u32> = const { Cell::new(0) };
}

/// What is run, as what it adds to the count of its thread's runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum RunKind {
    /// A task, work, or what subscribers of events do: it holds up its own thread.
    Item = 1,
    /// A callback, a waker, a handler of softirqs: timers wait for it, perhaps the one that it waits for.
    Callback = 0x1_0001,
}

/// While it lives, its thread is inside of a run.
#[derive(Debug)]
pub(crate) struct RunScope(RunKind, PhantomData<*const ()>);

impl RunScope {
    #[inline]
    pub(crate) fn begin(kind: RunKind) -> Self {
        RUNS.with(|runs| runs.set(runs.get() + kind as u32));
        Self(kind, PhantomData)
    }

    /// Whether the calling thread is inside of a run.
    pub(crate) fn is_here() -> bool {
        RUNS.with(Cell::get) != 0
    }

    /// Whether it is inside of one that must not block.
    pub(crate) fn is_callback() -> bool {
        RUNS.with(Cell::get) > 0xffff
    }
}

impl Drop for RunScope {
    #[inline]
    fn drop(&mut self) {
        RUNS.with(|runs| runs.set(runs.get() - self.0 as u32));
    }
}

/// The threads and tasks of one machine that wait for the end of a run.
#[derive(Debug)]
pub(crate) struct RunEnds {
    threads: RunWait,
    tasks: WaitingTasks,
    wakers: Mutex<Wakers>,
}

#[derive(Debug)]
struct Wakers {
    waiting: Vec<(u64, Waker)>,
    last: u64,
}

impl RunEnds {
    pub(crate) fn new() -> Self {
        let wakers = Wakers { waiting: Vec::new(), last: 0 };
        Self { threads: RunWait::new(), tasks: WaitingTasks::new(), wakers: Mutex::new(wakers) }
    }

    fn lock(&self) -> MutexGuard<'_, Wakers> {
        self.wakers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns when `is_running` is false, which is asked again after the end of every run.
    pub(crate) fn wait_while(&self, is_running: impl FnMut() -> bool) {
        self.threads.wait_while(is_running);
    }

    /// A run is over, and the base knows it. The caller wakes what this returns: it is user code. Cost: a
    /// fence and two loads.
    #[inline]
    pub(crate) fn finished(&self) -> Vec<Waker> {
        self.threads.finished();
        if self.tasks.any() { self.waiting_tasks() } else { Vec::new() }
    }

    /// Whether a task waits.
    #[cfg(test)]
    pub(super) fn is_awaited(&self) -> bool {
        self.tasks.any()
    }

    #[cold]
    fn waiting_tasks(&self) -> Vec<Waker> {
        let mut wakers = self.lock();
        let waiting = core::mem::take(&mut wakers.waiting);
        self.tasks.store(0);
        drop(wakers);
        waiting.into_iter().map(|(_, waker)| waker).collect()
    }

    /// From now on the end of any run wakes `waker`, once. `ticket` is what this task's last call returned.
    pub(super) fn register(&self, ticket: Option<u64>, waker: &Waker) -> u64 {
        // Cloned before, and dropped after the lock is held: both are user code.
        let waker = waker.clone();
        let mut wakers = self.lock();
        let known = wakers.waiting.iter_mut().find(|(number, _)| Some(*number) == ticket);
        if let Some((number, known)) = known {
            let (number, before) = (*number, core::mem::replace(known, waker));
            drop(wakers);
            drop(before);
            return number;
        }
        wakers.last += 1;
        let number = wakers.last;
        wakers.waiting.push((number, waker));
        self.tasks.store(wakers.waiting.len());
        number
    }

    pub(super) fn leave(&self, ticket: u64) {
        let mut wakers = self.lock();
        let at = wakers.waiting.iter().position(|(number, _)| *number == ticket);
        let waker = at.map(|at| wakers.waiting.swap_remove(at));
        self.tasks.store(wakers.waiting.len());
        drop(wakers);
        // Dropping it is its owner's code.
        drop(waker);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::RunEnds;
    use core::task::Waker;
    use std::sync::{Arc, Mutex};
    use std::task::Wake;

    fn woken_by(ends: &RunEnds) -> Vec<Waker> {
        let woken = ends.finished();
        assert!(!ends.is_awaited(), "no task waits any more");
        woken
    }

    /// Whether it is the same waker: `will_wake` may say no of it, and does where an interpreter runs the
    /// tests.
    fn is_same(one: &Waker, other: &Waker) -> bool {
        one.data() == other.data()
    }

    struct Nothing;

    impl Wake for Nothing {
        fn wake(self: Arc<Self>) {}
    }

    fn waker() -> Waker {
        Waker::from(Arc::new(Nothing))
    }

    /// Goal: each task is woken once, by its last waker, and the end of a run forgets all of them. Method:
    /// two tasks, of which one comes twice, and one after the end.
    #[test]
    fn each_task_is_woken_by_its_last_waker() {
        let ends = RunEnds::new();
        let [first, second, last] = [waker(), waker(), waker()];
        let ticket = ends.register(None, &first);
        let other = ends.register(None, &second);
        assert_ne!(ticket, other);
        assert_eq!(ends.register(Some(ticket), &last), ticket);
        let woken = woken_by(&ends);
        assert_eq!(woken.len(), 2);
        assert!(woken.iter().any(|waker| is_same(waker, &last)));
        assert!(woken.iter().any(|waker| is_same(waker, &second)));
        assert!(woken_by(&ends).is_empty(), "once");
        ends.register(Some(ticket), &first);
        assert_eq!(woken_by(&ends).len(), 1, "a ticket that was forgotten is as none");
    }

    /// Goal: a task that waits no more is not woken, and no other is forgotten with it. Method: the second of
    /// three leaves, and comes back no more.
    #[test]
    fn a_task_leaves_alone() {
        let ends = RunEnds::new();
        let wakers = [waker(), waker(), waker()];
        let tickets = [0, 1, 2].map(|number| ends.register(None, &wakers[number]));
        ends.leave(tickets[1]);
        ends.leave(tickets[1]);
        let woken = woken_by(&ends);
        let is_woken = |waker: &Waker| woken.iter().any(|woken| is_same(woken, waker));
        assert_eq!(wakers.each_ref().map(is_woken), [true, false, true]);
    }

    /// Goal: the last task that waits is woken, however many have left. Method: two leave, one after the
    /// other; then one of two.
    #[test]
    fn the_last_that_waits_is_woken() {
        let ends = RunEnds::new();
        let [first, second, last] = [waker(), waker(), waker()];
        let tickets = [&first, &second].map(|waker| ends.register(None, waker));
        ends.leave(tickets[0]);
        assert!(ends.is_awaited());
        ends.leave(tickets[1]);
        assert!(!ends.is_awaited(), "the end of a run costs no lock");
        let ticket = ends.register(None, &first);
        ends.register(None, &last);
        ends.leave(ticket);
        let woken = woken_by(&ends);
        assert!(woken.len() == 1 && is_same(&woken[0], &last));
        // One that was woken leaves while another one waits again.
        let ticket = ends.register(None, &first);
        assert_eq!(woken_by(&ends).len(), 1);
        ends.register(None, &last);
        ends.leave(ticket);
        let woken = woken_by(&ends);
        assert!(woken.len() == 1 && is_same(&woken[0], &last));
    }

    /// A waker that looks, when it is dropped, whether others could wait now.
    struct Looks(Arc<RunEnds>, Arc<Mutex<Vec<bool>>>);

    impl Wake for Looks {
        fn wake(self: Arc<Self>) {}
    }

    impl Drop for Looks {
        fn drop(&mut self) {
            self.1.lock().expect("no panic").push(self.0.wakers.try_lock().is_ok());
        }
    }

    /// Goal: what a waker's owner does when the waker is dropped may wait for runs, too: no lock is held.
    /// Method: one that is replaced, and one that leaves.
    #[test]
    fn wakers_are_dropped_without_the_lock() {
        let (ends, seen) = (Arc::new(RunEnds::new()), Arc::default());
        let waker = || Waker::from(Arc::new(Looks(Arc::clone(&ends), Arc::clone(&seen))));
        let ticket = ends.register(None, &waker());
        ends.register(Some(ticket), &waker());
        assert_eq!(*seen.lock().expect("no panic"), [true], "it was replaced");
        ends.leave(ticket);
        assert_eq!(*seen.lock().expect("no panic"), [true, true], "it has left");
    }
}
