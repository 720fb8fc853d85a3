//! The waker cell, one thread and many.

use super::{Register, WakerCell};
use crate::words::sync::{AtomicU32, Ordering};
use core::task::{RawWaker, RawWakerVTable, Waker};
use std::sync::Arc;
use std::task::Wake;
use std::thread;

#[derive(Default)]
struct Count(AtomicU32);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn counted() -> (Arc<Count>, Waker) {
    let count = Arc::new(Count::default());
    (Arc::clone(&count), Waker::from(count))
}

/// Whether it is the same waker: `will_wake` may say no of it, and does where an interpreter runs the tests.
fn is_same(one: &Waker, other: &Waker) -> bool {
    one.data() == other.data()
}

/// Goal: a take finds the last waker, once; after it registrations are refused until a reset. Method: one
/// thread.
#[test]
fn register_take_reset() {
    let cell = WakerCell::new();
    let ((_, first), (count, second)) = (counted(), counted());
    assert_eq!(cell.register(&first), Register::Registered);
    assert_eq!(cell.register(&second), Register::Registered);
    assert!(!cell.is_taken());
    let taken = cell.take().expect("it was registered");
    assert!(is_same(&taken, &second));
    assert_eq!(count.0.load(Ordering::Relaxed), 0, "a take wakes nobody");
    assert!(cell.take().is_none() && cell.is_taken());
    assert_eq!(cell.register(&first), Register::Taken);
    cell.reset();
    assert!(!cell.is_taken());
    assert!(cell.take().is_none(), "the refused one was not kept");
}

/// Goal: an owner that takes a timer for idle which is being handed out is told so; the cell is the runner's.
/// Method: in the middle of a take, and of one that came during a registration.
#[test]
fn no_reset_during_a_take() {
    let cell = WakerCell::new();
    assert!(cell.owner.begin_take());
    assert!(!cell.owner.reset());
    assert_eq!(cell.register(Waker::noop()), Register::Taken);
    cell.owner.end_take();
    assert!(cell.owner.reset() && cell.owner.reset(), "a second one has nothing to forget");
    assert_eq!(cell.owner.begin_register(), Register::Registered);
    assert!(cell.take().is_none() && cell.is_taken());
    assert!(!cell.owner.reset());
    assert_eq!(cell.owner.end_register(), Register::Taken);
}

/// Goal: wakers are neither leaked nor cloned in vain. Method: references to one, after each call.
#[test]
fn references() {
    let cell = WakerCell::new();
    let ((count, waker), (other_count, other)) = (counted(), counted());
    let held = |expected: [usize; 2]| {
        assert_eq!([Arc::strong_count(&count), Arc::strong_count(&other_count)], expected);
    };
    held([2, 2]);
    for _ in 0..3 {
        assert_eq!(cell.register(&waker), Register::Registered);
        held([3, 2]);
    }
    assert_eq!(cell.register(&other), Register::Registered);
    held([2, 3]);
    drop(cell.take());
    held([2, 2]);
    assert_eq!(cell.register(&waker), Register::Taken);
    held([2, 2]);
    cell.reset();
    assert_eq!(cell.register(&waker), Register::Registered);
    cell.reset();
    held([3, 2]);
    for (left, expected) in [(&waker, [3, 2]), (&waker, [3, 2]), (&other, [2, 3])] {
        // SAFETY: there is no timer, and no other thread.
        unsafe { cell.register_alone(left) };
        held(expected);
    }
    assert!(is_same(&cell.take().expect("it was left"), &other));
    drop(cell);
    held([2, 2]);
}

/// Goal: a waker whose code panics leaves the cell as it was, in no thread's hands. Method: its clone panics.
#[test]
fn a_clone_that_panics() {
    const PANICS: RawWakerVTable = RawWakerVTable::new(|_| panic!("clone"), |_| (), |_| (), |_| ());
    // SAFETY: the functions use no data; one that panics returns nothing wrong.
    let panics = unsafe { Waker::from_raw(RawWaker::new(core::ptr::null(), &PANICS)) };
    let cell = WakerCell::new();
    let (_, waker) = counted();
    assert_eq!(cell.register(&waker), Register::Registered);
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| cell.register(&panics)));
    assert!(result.is_err());
    // SAFETY: there is no timer, and no other thread.
    let alone = || unsafe { cell.register_alone(&panics) };
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(alone)).is_err());
    assert!(is_same(&cell.take().expect("it stayed"), &waker));
}

/// Goal: a take that comes during a registration is over when the registration has returned: the timer can be
/// armed again. Method: the timer is handed out while the waker is cloned.
#[test]
fn a_take_during_a_registration_ends_with_it() {
    static CELL: WakerCell = WakerCell::new();
    const TAKES: RawWakerVTable = RawWakerVTable::new(take, |_| (), |_| (), |_| ());
    fn take(_: *const ()) -> RawWaker {
        assert!(CELL.take().is_none(), "the cell is the registration's");
        RawWaker::new(core::ptr::null(), &TAKES)
    }
    // SAFETY: the functions use no data.
    let takes = unsafe { Waker::from_raw(RawWaker::new(core::ptr::null(), &TAKES)) };
    assert_eq!(CELL.register(&takes), Register::Taken);
    assert!(CELL.is_taken());
    CELL.reset();
    let (_, waker) = counted();
    assert_eq!(CELL.register(&waker), Register::Registered);
    assert!(is_same(&CELL.take().expect("it was registered"), &waker));
}

/// Goal: a future that polls, sleeps and polls again always hears of its timer. Method: many timers, handed
/// out by another thread while the future registers; a lost one hangs.
#[test]
fn every_take_is_heard() {
    const ROUNDS: u32 = if cfg!(miri) { 30 } else { 20_000 };
    let cell = WakerCell::new();
    let round = AtomicU32::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            for current in 1..=ROUNDS {
                // Acquire: pairs with Release below: the timer was armed.
                while round.load(Ordering::Acquire) != current {
                    core::hint::spin_loop();
                    thread::yield_now();
                }
                if let Some(waker) = cell.take() {
                    waker.wake();
                }
            }
        });
        struct Unpark(thread::Thread);
        impl Wake for Unpark {
            fn wake(self: Arc<Self>) {
                self.0.unpark();
            }
        }
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        for current in 1..=ROUNDS {
            // Release: pairs with Acquire above.
            round.store(current, Ordering::Release);
            while cell.register(&waker) == Register::Registered {
                thread::park();
            }
            while !cell.is_taken() {}
            reset_after_take(&cell);
        }
        assert_eq!(round.load(Ordering::Relaxed), ROUNDS);
    });
}

/// As an owner does that waits for its timer to be idle.
fn reset_after_take(cell: &WakerCell) {
    while !cell.owner.reset() {
        core::hint::spin_loop();
    }
}
