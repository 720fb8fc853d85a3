//! The waker cell under weak memory, and a timer's way from its base to its future.

use super::{Register, WakerCell};
use crate::words::futex::FutexWord;
use crate::words::sync::models::ends;
use crate::words::sync::{AtomicU32, Ordering};
use loom::cell::UnsafeCell;
use loom::sync::{Arc, Mutex};
use std::collections::BTreeSet;
use std::task::{Wake, Waker};

/// A task: a word that a wake changes, on which it can sleep.
struct Task(FutexWord);

impl Wake for Task {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.value().store(1, Ordering::Release);
        self.0.wake(1);
    }
}

impl Task {
    fn new() -> std::sync::Arc<Self> {
        std::sync::Arc::new(Self(FutexWord::new(0)))
    }

    fn waker(self: &std::sync::Arc<Self>) -> Waker {
        Waker::from(std::sync::Arc::clone(self))
    }

    /// Sleeps until it is woken; for ever, if no thread does.
    fn sleep(&self) {
        while self.0.value().load(Ordering::Acquire) == 0 {
            let _ = self.0.wait(0, None);
        }
    }
}

/// A timer, as one that is handed out under its base's lock: a place word, links that only the lock's holder
/// touches, and a cell.
struct Timer {
    place: AtomicU32,
    /// Watched by loom: the thread that frees the timer writes, the thread that still uses it reads.
    links: UnsafeCell<()>,
    cell: WakerCell,
}

const PENDING: u32 = 1;
const IDLE: u32 = 0;

struct Base {
    lock: Mutex<()>,
    timer: Timer,
    /// What the runner did before it handed the timer out; nothing but the cell orders it.
    expired: AtomicU32,
}

impl Base {
    fn armed() -> Arc<Self> {
        let timer =
            Timer { place: AtomicU32::new(PENDING), links: UnsafeCell::new(()), cell: WakerCell::new() };
        Arc::new(Self { lock: Mutex::new(()), timer, expired: AtomicU32::new(0) })
    }

    /// Hands the timer out, if it is pending: all under the lock, the store to its place last.
    fn run(&self) -> bool {
        let held = self.lock.lock().expect("no thread panicked");
        // Relaxed: written under the lock.
        if self.timer.place.load(Ordering::Relaxed) == IDLE {
            return false;
        }
        self.timer.links.with(|_| ());
        self.expired.fetch_add(1, Ordering::Relaxed);
        let waker = self.timer.cell.take();
        // Release: pairs with Acquire in `drop_timer`.
        self.timer.place.store(IDLE, Ordering::Release);
        drop(held);
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }

    /// What a future's drop does: no lock if the timer is idle. Says whether it was.
    fn drop_timer(&self) -> bool {
        // Acquire: pairs with Release in `run`.
        let is_idle = self.timer.place.load(Ordering::Acquire) == IDLE;
        if !is_idle {
            let held = self.lock.lock().expect("no thread panicked");
            if self.timer.place.load(Ordering::Relaxed) == PENDING {
                self.timer.links.with(|_| ());
                self.timer.place.store(IDLE, Ordering::Release);
            }
            drop(held);
        }
        // Freed: no thread touches it any more, the cell included.
        self.timer.links.with_mut(|_| ());
        self.timer.cell.waker.with_mut(|_| ());
        is_idle
    }
}

/// Goal: a future that sleeps is woken; one that is told not to has its timer. Method: one poll and, if it
/// was registered, a sleep, against the runner.
#[test]
fn a_poll_against_the_runner() {
    let found = ends(|| {
        let base = Base::armed();
        let runner = loom::thread::spawn({
            let base = Arc::clone(&base);
            move || assert!(base.run())
        });
        let task = Task::new();
        let registered = base.timer.cell.register(&task.waker());
        if registered == Register::Registered {
            task.sleep();
            assert_eq!(base.timer.cell.register(&task.waker()), Register::Taken);
        }
        assert_eq!(base.expired.load(Ordering::Relaxed), 1, "it was handed out, and is seen to be");
        runner.join().expect("it ends");
        registered
    });
    assert_eq!(found, BTreeSet::from([Register::Registered, Register::Taken]));
}

/// Goal: a waker that is left before the timer is armed, without the word, is found by the runner. Method: an
/// arm under the base's lock, against a runner that may come before it.
#[test]
fn a_waker_left_before_the_arm() {
    let found = ends(|| {
        let base = Base::armed();
        // Relaxed: the runner does not exist yet.
        base.timer.place.store(IDLE, Ordering::Relaxed);
        let runner = loom::thread::spawn({
            let base = Arc::clone(&base);
            move || base.run()
        });
        let task = Task::new();
        // SAFETY: the timer is idle, and this is the only thread that registers.
        unsafe { base.timer.cell.register_alone(&task.waker()) };
        let held = base.lock.lock().expect("no thread panicked");
        base.timer.place.store(PENDING, Ordering::Release);
        drop(held);
        let has_run = runner.join().expect("it ends");
        assert!(has_run || base.run());
        assert_eq!(task.0.value().load(Ordering::Acquire), 1, "it was woken");
        has_run
    });
    assert_eq!(found, BTreeSet::from([false, true]));
}

/// Goal: who only asks whether a timer was handed out sees what its runner did before. Method: one question.
#[test]
fn a_question_against_the_runner() {
    let found = ends(|| {
        let base = Base::armed();
        let runner = loom::thread::spawn({
            let base = Arc::clone(&base);
            move || assert!(base.run())
        });
        let is_taken = base.timer.cell.is_taken();
        if is_taken {
            assert_eq!(base.expired.load(Ordering::Relaxed), 1, "it was handed out, and is seen to be");
        }
        runner.join().expect("it ends");
        is_taken
    });
    assert_eq!(found, BTreeSet::from([false, true]));
}

/// Goal: a registration after a reset is ordered after the take before it, though the reset orders nothing by
/// itself. Method: all three on threads of their own that nothing else orders.
#[test]
fn a_reset_is_a_link() {
    let found = ends(|| {
        let cell = Arc::new(WakerCell::new());
        let taker = loom::thread::spawn({
            let cell = Arc::clone(&cell);
            move || drop(cell.take())
        });
        let resetter = loom::thread::spawn({
            let cell = Arc::clone(&cell);
            move || cell.owner.reset()
        });
        let registered = cell.register(&Task::new().waker());
        taker.join().expect("it ends");
        let _ = resetter.join().expect("it ends");
        registered
    });
    assert_eq!(found, BTreeSet::from([Register::Registered, Register::Taken]));
}

/// Goal: the waker of the last poll is woken, also if the future was polled before on another thread. Method:
/// one thread polls and passes the future on; the next polls with another waker and sleeps.
#[test]
fn the_future_moves() {
    let found = ends(|| {
        let base = Base::armed();
        let first = loom::thread::spawn({
            let base = Arc::clone(&base);
            move || base.timer.cell.register(&Task::new().waker())
        });
        let runner = loom::thread::spawn({
            let base = Arc::clone(&base);
            move || assert!(base.run())
        });
        let first = first.join().expect("it ends");
        let task = Task::new();
        let second = base.timer.cell.register(&task.waker());
        if second == Register::Registered {
            task.sleep();
        }
        runner.join().expect("it ends");
        (first, second)
    });
    let (registered, taken) = (Register::Registered, Register::Taken);
    assert_eq!(found, BTreeSet::from([(registered, registered), (registered, taken), (taken, taken)]));
}

/// Goal: polls that do not overlap are ordered by the cell itself. Method: two threads, and a relaxed flag
/// that keeps them apart.
#[test]
fn polls_are_ordered() {
    let found = ends(|| {
        let shared = Arc::new((WakerCell::new(), AtomicU32::new(0)));
        let second = loom::thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                let is_over = shared.1.load(Ordering::Relaxed) == 1;
                is_over.then(|| shared.0.register(&Task::new().waker()))
            }
        });
        let first = shared.0.register(&Task::new().waker());
        shared.1.store(1, Ordering::Relaxed);
        (first, second.join().expect("it ends"))
    });
    let registered = Register::Registered;
    assert_eq!(found, BTreeSet::from([(registered, None), (registered, Some(registered))]));
}

/// Goal: a timer that was handed out can be armed again, and the next run finds the next waker. Method: as
/// soon as the future hears of the first run and sees the timer idle, it resets, arms and registers; a second
/// runner comes.
#[test]
fn armed_again() {
    let found = ends(|| {
        let base = Base::armed();
        let runner = loom::thread::spawn({
            let base = Arc::clone(&base);
            move || {
                assert!(base.run());
                base.run()
            }
        });
        let task = Task::new();
        let mut polls = 1;
        while base.timer.cell.register(&task.waker()) == Register::Registered {
            polls += 1;
            task.sleep();
        }
        // An arm takes the lock; that its timer is idle it sees there.
        let held = base.lock.lock().expect("no thread panicked");
        assert_eq!(base.timer.place.load(Ordering::Relaxed), IDLE);
        base.timer.cell.reset();
        base.timer.place.store(PENDING, Ordering::Release);
        drop(held);
        let task = Task::new();
        let registered = base.timer.cell.register(&task.waker());
        let is_run_again = runner.join().expect("it ends");
        if registered == Register::Registered && is_run_again {
            task.sleep();
        }
        assert_eq!(base.timer.cell.is_taken(), is_run_again);
        (polls, registered, is_run_again)
    });
    let expected = [1, 2].into_iter().flat_map(|polls| {
        let registered = Register::Registered;
        [(polls, registered, false), (polls, registered, true), (polls, Register::Taken, true)]
    });
    assert_eq!(found, BTreeSet::from_iter(expected));
}

/// Goal: a future is dropped at any moment of its timer's run, and no thread touches the timer afterwards.
/// Method: it registers and drops at once; freeing is a write to the timer's links and to the cell.
#[test]
fn drop_against_expire() {
    let found = ends(|| {
        let base = Base::armed();
        let runner = loom::thread::spawn({
            let base = Arc::clone(&base);
            move || base.run()
        });
        let registered = base.timer.cell.register(&Task::new().waker());
        let is_idle = base.drop_timer();
        (registered, is_idle, runner.join().expect("it ends"))
    });
    let (registered, taken) = (Register::Registered, Register::Taken);
    assert_eq!(
        found,
        BTreeSet::from([
            (registered, false, false),
            (registered, false, true),
            (registered, true, true),
            (taken, false, true),
            (taken, true, true),
        ])
    );
}
