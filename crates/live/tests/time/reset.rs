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

/// Goal: a task that waits is woken at the new deadline, without being polled after the reset. Method:
/// earlier and later; the clock stops before and at the new deadline.
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

/// A sleep, and what it should do.
struct Expected {
    sleep: Pin<Box<Sleep>>,
    deadline: Instant,
    /// It was polled, and no thread was woken since.
    is_waiting: bool,
    wakes: u32,
}

impl Expected {
    fn new(dice: &mut Dice, number: usize) -> Self {
        let deadline = random_deadline(dice);
        let sleep =
            Box::pin(sleep_until(deadline).with_precision([Precision::Tick, Precision::Exact][number % 2]));
        Self { sleep, deadline, is_waiting: false, wakes: 0 }
    }

    fn is_due(&self) -> bool {
        Instant::now() >= self.deadline
    }

    /// Who waits and is due is woken.
    fn pass_time(&mut self) {
        if self.is_waiting && self.is_due() {
            self.is_waiting = false;
            self.wakes += 1;
        }
    }
}

/// Goal: any order of polls, resets and jumps of the clock. Method: random steps on 20 sleeps beside what
/// each should do; after every step those that wait and are due, and only those, were woken. Several seeds.
#[test]
fn random_steps() {
    for seed in 0..20 {
        let scene = Stopped::new();
        let mut dice = Dice::new(seed);
        let mut naps: Vec<_> =
            (0..20).map(|number| (Expected::new(&mut dice, number), Woken::new())).collect();
        for step in 0..400 {
            if dice.below(4) == 0 {
                scene.advance(MILLI * dice.below(12) as u32);
                naps.iter_mut().for_each(|(nap, _)| nap.pass_time());
            }
            let chosen = dice.below(20) as usize;
            let (nap, (_, waker)) = &mut naps[chosen];
            if dice.below(2) == 0 {
                let is_due = nap.is_due();
                let found = poll(nap.sleep.as_mut(), waker);
                assert_eq!(found.is_ready(), is_due, "seed {seed} step {step} sleep {chosen}");
                nap.is_waiting = !is_due;
            } else {
                nap.deadline = random_deadline(&mut dice);
                nap.sleep.as_mut().reset(nap.deadline);
                nap.pass_time();
            }
            for (number, (nap, (woken, _))) in naps.iter().enumerate() {
                let at = format!("seed {seed} step {step} sleep {number}, chosen {chosen}: {:?}", nap.sleep);
                assert_eq!(woken.count(), nap.wakes, "{at}");
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
