//! A future that takes part in time, whichever executor polls it.
//!
//! It is busy from the moment its waker is woken until it has been polled and is pending again. So an
//! executor needs to know nothing of paused time: a future that is wrapped here is enough, one for each of
//! its tasks.

use super::participant::Participant;
use super::state::{IdleOutcome, Participate};
use crate::machine::Machine;
use crate::timer::RunScope;
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Wake;
use std::thread::{self, Thread};

/// The waker of the thread that polls the wrapped future. Counted: to clone and to drop it is user code, and
/// happens when the lock is not held.
#[derive(Default)]
pub(super) struct Outside(Mutex<Option<Arc<Waker>>>);

impl Outside {
    fn slot(&self) -> MutexGuard<'_, Option<Arc<Waker>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, waker: &Waker) {
        if self.slot().as_ref().is_some_and(|old| old.will_wake(waker)) {
            return;
        }
        let waker = Arc::new(waker.clone());
        let before = self.slot().replace(waker);
        drop(before);
    }
}

impl Participate for Outside {
    fn look_again(&self) {
        let waker = self.slot().clone();
        if let Some(waker) = waker {
            waker.wake_by_ref();
        }
    }
}

/// What the future that is wrapped is woken through.
struct Inside {
    outside: Arc<Outside>,
    /// Until the future is done or dropped: a waker may outlive it.
    participant: Mutex<Option<Arc<Participant>>>,
}

impl Inside {
    fn slot(&self) -> MutexGuard<'_, Option<Arc<Participant>>> {
        self.participant.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Inside {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(participant) = &*self.slot() {
            participant.wake();
        }
        self.outside.look_again();
    }
}

/// Ends the future's part, also when it panics or is dropped.
struct Leave(Arc<Inside>);

impl Drop for Leave {
    fn drop(&mut self) {
        // Not dropped under the lock of the slot: the thread that is asked to look again then may wake this
        // one.
        let participant = self.0.slot().take();
        drop(participant);
    }
}

/// `future`, taking part in `machine`'s time from its first poll to its end: while it has something to do,
/// paused time stands still, and when it is the last to have nothing to do, its poll moves time.
pub async fn attend<F: Future>(machine: &'static Machine, future: F) -> F::Output {
    let outside = Arc::new(Outside::default());
    let participant = Arc::new(machine.participate(Arc::clone(&outside) as Arc<dyn Participate>));
    participant.wake();
    let slot = Mutex::new(Some(Arc::clone(&participant)));
    let inside = Arc::new(Inside { outside: Arc::clone(&outside), participant: slot });
    let _leave = Leave(Arc::clone(&inside));
    let waker = Waker::from(inside);
    let mut future = pin!(future);
    poll_fn(|context| {
        outside.set(context.waker());
        if participant.begin()
            && let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker))
        {
            return Poll::Ready(output);
        }
        // Who was woken is polled again by the thread that polls this.
        while participant.idle() == IdleOutcome::Moved {}
        Poll::Pending
    })
    .await
}

/// Wakes a thread in [`block_on`].
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs `future` on this thread until it is done. If the current machine's time can be paused, the thread
/// [takes part](attend) in it. Not from inside a future.
///
/// # Panics
/// In a callback, a waker or a handler of softirqs: timers wait for those, and so would `future`.
#[track_caller]
pub fn block_on<F: Future>(future: F) -> F::Output {
    assert!(
        !RunScope::is_callback(),
        "`block_on` in a callback would hold up the timers that it waits for: \
         spawn a task (`Machine::spawn`), or block on a thread of your own"
    );
    match Machine::try_current().filter(|machine| machine.has_virtual_time()) {
        Some(machine) => park_on(attend(machine, future)),
        None => park_on(future),
    }
}

fn park_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        thread::park();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{Outside, Participate, Waker};
    use std::sync::{Arc, Mutex};
    use std::task::Wake;

    /// A waker that looks, when it is woken and dropped, whether the place of the next one is free.
    struct Looks(Arc<Outside>, Arc<Mutex<Vec<bool>>>);

    impl Looks {
        fn look(&self) {
            self.1.lock().expect("no panic").push(self.0.0.try_lock().is_ok());
        }
    }

    impl Wake for Looks {
        fn wake(self: Arc<Self>) {
            self.look();
        }
    }

    impl Drop for Looks {
        fn drop(&mut self) {
            self.look();
        }
    }

    /// Goal: what an executor does when its waker is woken or dropped may ask the wrapped future to look: no
    /// lock is held. Method: a waker that is kept, woken, and replaced.
    #[test]
    fn the_waker_outside_is_dropped_without_the_lock() {
        let (outside, seen) = (Arc::new(Outside::default()), Arc::default());
        let waker = Waker::from(Arc::new(Looks(Arc::clone(&outside), Arc::clone(&seen))));
        outside.set(&waker);
        outside.set(&waker);
        drop(waker);
        assert!(seen.lock().expect("no panic").is_empty(), "it is kept");
        outside.look_again();
        outside.set(Waker::noop());
        assert_eq!(*seen.lock().expect("no panic"), [true, true]);
    }
}
