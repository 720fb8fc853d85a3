//! Letting go of sleeps at awkward moments.

use crate::scene::{MILLI, Stopped, Woken, check_books, poll};
use core::pin::Pin;
use core::task::{Poll, Waker};
use quietcore_live::time::{Duration, Instant, Precision, Sleep, sleep, sleep_until};
use quietcore_live::{Machine, OnPanic};
use std::sync::{Arc, Mutex};
use std::task::Wake;

const ALL: [Precision; 3] = [Precision::Coarse, Precision::Tick, Precision::Exact];

type Naps = Mutex<Vec<Pin<Box<Sleep>>>>;

/// A waker that drops sleeps when it is woken, and when it is dropped itself.
struct Dropper {
    naps: Arc<Naps>,
    last: Option<Pin<Box<Sleep>>>,
}

impl Wake for Dropper {
    fn wake(self: Arc<Self>) {
        let naps = core::mem::take(&mut *self.naps.lock().expect("no panic"));
        drop(naps);
    }
}

/// Goal: a sleep that is dropped wakes no thread and leaves no timer. Method: in every state: new, waiting,
/// due, over.
#[test]
fn in_every_state() {
    let scene = Stopped::new();
    for precision in ALL {
        for polls_and_steps in [(0, 0), (1, 0), (2, 1), (1, 9)] {
            let (woken, waker) = Woken::new();
            let mut nap = Box::pin(sleep(MILLI * 5).with_precision(precision));
            for _ in 0..polls_and_steps.0 {
                assert_eq!(poll(nap.as_mut(), &waker), Poll::Pending);
            }
            scene.advance(MILLI * polls_and_steps.1);
            let before = woken.count();
            drop(nap);
            scene.advance(MILLI * 20);
            assert_eq!(woken.count(), before, "{precision:?} {polls_and_steps:?}");
            assert_eq!(Arc::strong_count(&woken), 2, "its clone of the waker is gone");
        }
    }
    check_books(scene.machine);
}

/// Goal: a wake may drop sleeps, itself among them, that are due at the same moment or later. Method: the
/// first wake of 300 drops all.
#[test]
fn inside_a_wake() {
    let scene = Stopped::new();
    let naps = Arc::new(Naps::default());
    let waker = Waker::from(Arc::new(Dropper { naps: naps.clone(), last: None }));
    for number in 0..300_usize {
        let mut nap = Box::pin(sleep(MILLI * (1 + number as u32 / 200)).with_precision(ALL[number % 3]));
        assert_eq!(poll(nap.as_mut(), &waker), Poll::Pending);
        naps.lock().expect("no panic").push(nap);
    }
    scene.advance(MILLI);
    assert!(naps.lock().expect("no panic").is_empty());
    scene.advance(MILLI * 20);
    check_books(scene.machine);
}

/// Goal: dropping a sleep may drop, with its waker, another one. Method: a waker that owns a sleep, dropped
/// last by the drop, by a wake, by a reset, and by another poll.
#[test]
fn inside_the_drop_of_a_waker() {
    let scene = Stopped::new();
    for way in 0..4 {
        for precision in ALL {
            let (woken, counting) = Woken::new();
            let mut last = Box::pin(sleep(MILLI * 2).with_precision(precision));
            assert_eq!(poll(last.as_mut(), &counting), Poll::Pending);
            let dropper = Dropper { naps: Arc::new(Naps::default()), last: Some(last) };
            assert!(dropper.last.is_some());
            let waker = Waker::from(Arc::new(dropper));
            let mut first = Box::pin(sleep(MILLI * 2).with_precision(precision));
            assert_eq!(poll(first.as_mut(), &waker), Poll::Pending);
            drop(waker);
            match way {
                0 => drop(first),
                1 => scene.advance(MILLI * 2),
                2 => first.as_mut().reset(quietcore_live::time::Instant::now()),
                _ => assert_eq!(poll(first.as_mut(), Waker::noop()), Poll::Pending),
            }
            scene.advance(MILLI * 20);
            // In a wake the order of two that are due is open: the second may have been woken before.
            assert!(woken.count() <= u32::from(way == 1), "way {way}, {precision:?}");
        }
    }
    check_books(scene.machine);
}

/// Goal: a sleep may be dropped on any thread, whichever armed it. Method: armed here, dropped on another
/// thread while others stay.
#[test]
fn on_another_thread() {
    let scene = Stopped::new();
    let mut naps: Vec<_> = (0..200).map(|number| Box::pin(sleep(MILLI * (1 + number % 5)))).collect();
    for nap in &mut naps {
        assert_eq!(poll(nap.as_mut(), Waker::noop()), Poll::Pending);
    }
    let rest = naps.split_off(100);
    std::thread::spawn(move || drop(naps)).join().expect("no panic");
    scene.advance(MILLI * 5);
    assert!(rest.iter().all(|nap| nap.is_elapsed()));
    check_books(scene.machine);
}

/// A waker that panics, without a message, when it wakes for the first time.
struct PanicsOnce;

impl Wake for PanicsOnce {
    fn wake(self: Arc<Self>) {
        std::panic::resume_unwind(Box::new("without a message"));
    }
}

/// Goal: a waker that panics costs no other future its wake. Method: eight sleeps that are due at one moment,
/// each in turn with such a waker.
#[test]
fn beside_a_wake_that_panics() {
    for panics in 0..8 {
        let machine = Machine::builder().on_panic(OnPanic::Continue).start().expect("starts");
        let _entered = machine.enter();
        let until = Instant::now() + MILLI * 5;
        let (woken, waker) = Woken::new();
        let bad = Waker::from(Arc::new(PanicsOnce));
        let mut naps: Vec<_> = (0..8).map(|_| Box::pin(sleep_until(until))).collect();
        for (number, nap) in naps.iter_mut().enumerate() {
            assert_eq!(poll(nap.as_mut(), if number == panics { &bad } else { &waker }), Poll::Pending);
        }
        let end = std::time::Instant::now() + Duration::from_secs(20);
        while woken.count() < 7 {
            assert!(std::time::Instant::now() < end, "waker {panics} panics: {} woken", woken.count());
            std::thread::sleep(MILLI);
        }
        drop(naps);
        machine.shutdown();
    }
}
