//! How a runtime of tokio takes part in paused time.
//!
//! A worker has a *slot*, its part in paused time. It is busy except between the two hooks that tokio calls
//! before a worker waits and after. The future of `block_on` takes part by itself. A task that was woken from
//! outside waits in the runtime's queue, which counts as work ([`Participate::has_backlog`]).
//!
//! With `current_thread`, tasks that are woken on the worker's own thread are in a queue that cannot be seen,
//! and a socket may have become ready since I/O was last polled. So before time moves the runtime goes round
//! once more, which polls I/O, and the *idle probe*, a task of this module's own, finds out whether a task
//! ran:
//!
//! 1. The hook wakes the root future: tokio polls I/O without waiting, then the root.
//! 2. The root's poll wakes the probe, which goes to the end of the queue, and itself.
//! 3. With an event interval of 1 the root is polled again after every task. If the probe is polled before
//!    that, no task was ahead of it: the runtime is quiet. If not, a task ran, and the hook starts anew.
//!
//! So that the root does not come before all tasks whenever it yields, its waker wakes the probe, which wakes
//! the root: the root waits for its turn like a task.
//!
//! Invariant: time moves only right after I/O was polled and no task ran since. With `multi_thread`, I/O that
//! has not been reported yet does not keep time from moving.

use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use quietcore_live::Machine;
use quietcore_live::virtual_time::{IdleOutcome, Participant, Participate};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Wake;
use tokio::runtime as real;

/// Kind of a runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flavor {
    CurrentThread,
    MultiThread,
}

/// Whether I/O was polled and no task ran since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Quiet {
    #[default]
    Unknown,
    /// The root's next poll sends the probe.
    Asked,
    /// The probe is in the queue.
    Sent,
    Yes,
}

/// The workers of one runtime.
#[derive(Debug)]
pub(super) struct Workers {
    machine: &'static Machine,
    flavor: Flavor,
    state: Mutex<WorkersState>,
}

#[derive(Debug, Default)]
struct WorkersState {
    /// By number of the worker. A `current_thread` runtime has one while a thread is in `block_on`.
    slots: Vec<Arc<Participant>>,
    /// Threads in `block_on`.
    blocked_threads: usize,
    /// To look into its queue; not before it is built.
    runtime: Option<real::Handle>,
    quiet: Quiet,
    /// Makes tokio poll the root.
    root: Option<Waker>,
    /// The future in it was woken; the probe wakes the root.
    root_is_woken: bool,
    idle_probe: Option<Waker>,
}

impl Workers {
    /// For a runtime that is about to be built with `count` workers. Those of a `multi_thread` runtime start
    /// at once, and are busy until they first wait.
    pub(super) fn new(machine: &'static Machine, flavor: Flavor, count: usize) -> Arc<Self> {
        let workers = Arc::new(Self { machine, flavor, state: Mutex::default() });
        if flavor == Flavor::MultiThread {
            let slots: Vec<_> = (0..count).map(|_| workers.slot()).collect();
            for slot in &slots {
                let _ = slot.begin();
            }
            workers.lock().slots = slots;
        }
        workers
    }

    fn slot(self: &Arc<Self>) -> Arc<Participant> {
        Arc::new(self.machine.participate(Arc::new(WorkerSlot(Arc::downgrade(self)))))
    }

    fn lock(&self) -> MutexGuard<'_, WorkersState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn hook(self: &Arc<Self>, builder: &mut real::Builder) {
        let (before, after) = (Arc::clone(self), Arc::clone(self));
        let _ =
            builder.on_thread_park(move || before.before_wait()).on_thread_unpark(move || after.after_wait());
        if self.flavor == Flavor::CurrentThread {
            let _ = builder.event_interval(1);
        }
    }

    /// The runtime was built.
    pub(super) fn attach(self: &Arc<Self>, runtime: &real::Runtime) {
        self.lock().runtime = Some(runtime.handle().clone());
        let workers = Arc::clone(self);
        drop(runtime.spawn(poll_fn(move |context| {
            let root = workers.lock().run_idle_probe(context.waker());
            if let Some(root) = root {
                root.wake();
            }
            Poll::<()>::Pending
        })));
    }

    /// The runtime is about to be dropped. Also ends the circle in which its hooks own what they work on.
    pub(super) fn detach(&self) {
        let state = core::mem::take(&mut *self.lock());
        drop(state);
    }

    /// The slot of the worker that this thread is.
    fn my_slot(&self) -> Option<Arc<Participant>> {
        self.lock().slots.get(real::worker_index()?).cloned()
    }

    fn before_wait(&self) {
        let Some(slot) = self.my_slot() else { return };
        if self.flavor == Flavor::MultiThread {
            while slot.idle() == IdleOutcome::Moved {}
            return;
        }
        let is_paused = self.machine.is_paused();
        let ask = self.lock().ask(is_paused);
        match ask {
            Some(root) => root.wake(),
            None if slot.idle() == IdleOutcome::Moved => self.look_again(),
            None => {}
        }
    }

    fn after_wait(&self) {
        if let Some(slot) = self.my_slot() {
            let _ = slot.begin();
        }
    }

    /// Makes a worker call its hook again.
    fn look_again(&self) {
        let state = self.lock();
        let waker = match self.flavor {
            Flavor::CurrentThread => state.root.clone(),
            Flavor::MultiThread => state.idle_probe.clone(),
        };
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// `future`, whose every poll is something that happened.
    pub(super) async fn note<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        poll_fn(|context| {
            self.lock().quiet = Quiet::Unknown;
            future.as_mut().poll(context)
        })
        .await
    }

    /// `future` as the root of `block_on`.
    pub(super) async fn drive<F: Future>(self: &Arc<Self>, future: F) -> F::Output {
        if self.flavor == Flavor::MultiThread {
            return future.await;
        }
        let _blocked = BlockedThread::new(self);
        let woken = Waker::from(Arc::new(Woken(Arc::downgrade(self))));
        let mut future = pin!(future);
        poll_fn(|context| {
            // A second thread that blocks on the runtime drives nothing: its future is polled as it is.
            let Some(slot) = self.my_slot() else { return future.as_mut().poll(context) };
            let _ = slot.begin();
            self.lock().begin_root(context.waker());
            let result = future.as_mut().poll(&mut Context::from_waker(&woken));
            let probe = self.lock().end_root();
            if let Some(probe) = probe {
                probe.wake();
                context.waker().wake_by_ref();
            }
            result
        })
        .await
    }
}

/// Wakes the root in its turn.
struct Woken(Weak<Workers>);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        if let Some(workers) = self.0.upgrade() {
            let mut state = workers.lock();
            state.root_is_woken = true;
            // Before its first poll the probe is in the queue anyway.
            let probe = state.idle_probe.clone();
            drop(state);
            if let Some(probe) = probe {
                probe.wake();
            }
        }
    }
}

impl WorkersState {
    /// The worker is about to wait: the root, if it has to go round once more before time may move.
    fn ask(&mut self, is_paused: bool) -> Option<Waker> {
        if is_paused && self.quiet != Quiet::Yes {
            self.quiet = Quiet::Asked;
            return self.root.clone();
        }
        self.quiet = Quiet::Unknown;
        None
    }

    fn begin_root(&mut self, waker: &Waker) {
        if !self.root.as_ref().is_some_and(|root| root.will_wake(waker)) {
            self.root = Some(waker.clone());
        }
        if self.quiet == Quiet::Sent {
            // A task was ahead of the probe.
            self.quiet = Quiet::Unknown;
        }
    }

    /// The probe, if the hook asked for it.
    fn end_root(&mut self) -> Option<Waker> {
        if self.quiet != Quiet::Asked {
            return None;
        }
        self.quiet = Quiet::Sent;
        self.idle_probe.clone()
    }

    /// The root, if it was woken.
    fn run_idle_probe(&mut self, waker: &Waker) -> Option<Waker> {
        if !self.idle_probe.as_ref().is_some_and(|probe| probe.will_wake(waker)) {
            self.idle_probe = Some(waker.clone());
        }
        if core::mem::take(&mut self.root_is_woken) {
            return self.root.clone();
        }
        if self.quiet == Quiet::Sent {
            self.quiet = Quiet::Yes;
        }
        None
    }
}

/// What the machine asks about a worker.
struct WorkerSlot(Weak<Workers>);

impl Participate for WorkerSlot {
    fn has_backlog(&self) -> bool {
        let depth = |workers: Arc<Workers>| {
            workers.lock().runtime.as_ref().map_or(0, |runtime| runtime.metrics().global_queue_depth())
        };
        self.0.upgrade().map_or(0, depth) > 0
    }

    fn look_again(&self) {
        if let Some(workers) = self.0.upgrade() {
            workers.look_again();
        }
    }
}

/// A thread in `block_on` of a `current_thread` runtime: the runtime has a worker while there is one.
struct BlockedThread<'a>(&'a Workers);

impl<'a> BlockedThread<'a> {
    fn new(workers: &'a Arc<Workers>) -> Self {
        let slot = workers.slot();
        let mut state = workers.lock();
        state.blocked_threads += 1;
        if state.blocked_threads == 1 {
            state.slots.push(slot);
        }
        Self(workers)
    }
}

impl Drop for BlockedThread<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.blocked_threads = state.blocked_threads.saturating_sub(1);
        let left = if state.blocked_threads == 0 { core::mem::take(&mut state.slots) } else { Vec::new() };
        drop(state);
        drop(left);
    }
}

#[cfg(test)]
mod tests {
    use super::{BlockedThread, Flavor, Machine, Workers};

    /// Goal: a `current_thread` runtime has one worker as long as a thread is in `block_on`, and none after
    /// the last. Method: two threads come and go, then one more; its workers after each step.
    #[test]
    fn one_worker_for_all_blocked_threads() {
        let machine = Machine::start().expect("starts");
        let workers = Workers::new(machine, Flavor::CurrentThread, 1);
        let seen = || {
            let state = workers.lock();
            (state.blocked_threads, state.slots.len())
        };
        assert_eq!(seen(), (0, 0));
        let first = BlockedThread::new(&workers);
        assert_eq!(seen(), (1, 1));
        let second = BlockedThread::new(&workers);
        assert_eq!(seen(), (2, 1));
        drop(first);
        assert_eq!(seen(), (1, 1));
        drop(second);
        assert_eq!(seen(), (0, 0));
        let third = BlockedThread::new(&workers);
        assert_eq!(seen(), (1, 1));
        drop(third);
        assert_eq!(seen(), (0, 0));
        machine.shutdown();
    }
}
