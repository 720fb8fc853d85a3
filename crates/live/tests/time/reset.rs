//! Giving a sleep another deadline, in every state.

use crate::scene::{Dice, MILLI, NANO, Stopped, Woken, check_books, poll};
use core::pin::{Pin, pin};
use core::task::Poll;
use quietcore_live::time::{Instant, Precision, Sleep, sleep, sleep_until};

const ALL: [Precision; 3] = [Precision::Coarse, Precision::Tick, Precision::Exact];

/// Goal: before its first poll a sleep is given another deadline for nothing. Method: later, earlier, over.
#[test]
fn before_the_first_poll() {
    let scene = Stopped::new();
    for precision in ALL {
        let (woken, waker) = Woken::new();
        let mut nap = pin!(sleep(MILLI * 5).with_precision(precision));
        for millis in [9, 3] {
            nap.as_mut().reset(Instant::now() + MILLI * millis);
        }
        assert_eq!(poll(nap.as_mut(), &waker), Poll::Pending);
        scene.advance(MILLI * 4);
        assert_eq!((woken.count(), poll(nap, &waker)), (1, Poll::Ready(())), "{precision:?}");
        let mut over = pin!(sleep(MILLI * 5).with_precision(precision));
        over.as_mut().reset(Instant::now());
        assert_eq!(poll(over, &waker), Poll::Ready(()), "{precision:?}");
    }
    check_books(scene.machine);
}

/// Goal: a task that waits is woken at the new deadline, without being polled after the reset. Method: earlier and
/// later; the clock stops before and at the new deadline.
#[test]
fn while_a_task_waits() {
    let scene = Stopped::new();
    for precision in ALL {
        for millis in [30, 60, 10] {
            let (woken, waker) = Woken::new();
            let mut nap = pin!(sleep(MILLI * 20).with_precision(precision));
            assert_eq!(poll(nap.as_mut(), &waker), Poll::Pending);
            let deadline = Instant::now() + MILLI * millis;
            nap.as_mut().reset(deadline);
            scene.advance_to(deadline - NANO);
            assert_eq!(woken.count(), 0, "{precision:?} {millis} ms: early");
            scene.advance_to(deadline + MILLI * 8);
            assert_eq!((woken.count(), poll(nap, &waker)), (1, Poll::Ready(())), "{precision:?} {millis} ms");
        }
    }
    check_books(scene.machine);
}

/// Goal: a deadline that is over wakes the task that waits, at once. Method: now and earlier.
#[test]
fn to_the_past() {
    let scene = Stopped::new();
    for precision in ALL {
        for millis in [0, 50] {
            let (woken, waker) = Woken::new();
            let mut nap = pin!(sleep(MILLI * 20).with_precision(precision));
            assert_eq!(poll(nap.as_mut(), &waker), Poll::Pending);
            nap.as_mut().reset(Instant::now() - MILLI * millis);
            assert_eq!(woken.count(), 1, "{precision:?} {millis} ms");
            assert_eq!(poll(nap, &waker), Poll::Ready(()), "{precision:?} {millis} ms");
        }
    }
    check_books(scene.machine);
}

/// Goal: a sleep that is over begins again, whether its task has seen that or not. Method: both, twice.
#[test]
fn after_it_was_over() {
    let scene = Stopped::new();
    for precision in ALL {
        for is_polled in [false, true] {
            let (woken, waker) = Woken::new();
            let mut nap = pin!(sleep(MILLI * 2).with_precision(precision));
            for round in 1..=3 {
                assert_eq!(poll(nap.as_mut(), &waker), Poll::Pending, "{precision:?} round {round}");
                scene.advance(MILLI * 3);
                assert_eq!(woken.count(), round, "{precision:?} polled: {is_polled}");
                assert!(nap.is_elapsed());
                if is_polled {
                    assert_eq!(poll(nap.as_mut(), &waker), Poll::Ready(()));
                }
                nap.as_mut().reset(Instant::now() + MILLI * 2);
                assert!(!nap.is_elapsed(), "{precision:?} polled: {is_polled}");
            }
        }
    }
    check_books(scene.machine);
}

/// What a sleep should do: its deadline, and whether somebody waits.
struct Expected {
    nap: Pin<Box<Sleep>>,
    deadline: Instant,
    is_waiting: bool,
    wakes: u32,
}

/// Goal: any order of polls, resets and jumps of the clock. Method: random steps on 20 sleeps beside what each should
/// do; after every step those that wait and are due, and only those, were woken. Several seeds.
#[test]
fn random_steps() {
    for seed in 0..20 {
        let scene = Stopped::new();
        let mut dice = Dice::new(seed);
        let naps: Vec<_> = (0..20).map(|number| random_nap(&mut dice, number)).collect();
        let mut naps: Vec<_> = naps.into_iter().map(|nap| (nap, Woken::new())).collect();
        for step in 0..400 {
            if dice.below(4) == 0 {
                scene.advance(MILLI * dice.below(12) as u32);
            }
            let chosen = dice.below(20) as usize;
            let (nap, (woken, waker)) = &mut naps[chosen];
            let at = format!("seed {seed} step {step} sleep {chosen}");
            if dice.below(2) == 0 {
                let is_due = Instant::now() >= nap.deadline;
                assert_eq!(poll(nap.nap.as_mut(), waker).is_ready(), is_due, "{at}");
                // What was due before has been woken for.
                nap.is_waiting = !is_due;
            } else {
                nap.deadline = random_deadline(&mut dice);
                nap.nap.as_mut().reset(nap.deadline);
            }
            nap.wakes = nap.wakes.max(woken.count());
            for (nap, (woken, _)) in &mut naps {
                let is_due = nap.is_waiting && Instant::now() >= nap.deadline;
                nap.is_waiting &= !is_due;
                nap.wakes += u32::from(is_due && woken.count() > nap.wakes);
                assert_eq!(woken.count(), nap.wakes, "{at}");
                assert!(!is_due || nap.wakes > 0, "{at}: nobody was woken");
            }
        }
        drop(naps);
        check_books(scene.machine);
    }
}

fn random_deadline(dice: &mut Dice) -> Instant {
    // Ten in the past, and whole ticks, so that a sleep is due as soon as its deadline has come.
    Instant::now() - MILLI * 10 + MILLI * dice.below(100) as u32
}

fn random_nap(dice: &mut Dice, number: u64) -> Expected {
    let precision = [Precision::Tick, Precision::Exact][number as usize % 2];
    let deadline = random_deadline(dice);
    let nap = Box::pin(sleep_until(deadline).with_precision(precision));
    Expected { nap, deadline, is_waiting: false, wakes: 0 }
}
