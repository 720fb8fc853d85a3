//! Timers of one thread against a list, and what callbacks may do.

use crate::timer::{LocalRun, LocalTimer, LocalTimers, Precision};
use crate::{Machine, Nanos};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

const MS: u64 = 1_000_000;

/// A machine whose clock stands still at a whole second, and its timers.
fn still() -> (&'static Machine, LocalTimers, u64) {
    let machine = Machine::start().expect("it starts");
    let start = (machine.now().0 / (1000 * MS) + 2) * 1000 * MS;
    machine.clock.freeze(Nanos(start));
    (machine, LocalTimers::new(machine), start)
}

/// Goal: a timer runs at the first tick that is not before its moment, and `next_expiry` is never later.
/// Method: random arms, re-arms and cancels against a list, played tick by tick.
#[test]
fn they_run_when_a_list_says() {
    let (machine, timers, start) = still();
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let ran = Rc::new(RefCell::new(vec![]));
    let made: Vec<LocalTimer> = (0..50)
        .map(|number| {
            let ran = Rc::clone(&ran);
            let seen = move |run: &LocalRun<'_>| ran.borrow_mut().push((number, run.scheduled()));
            timers.timer(Precision::Tick, seen)
        })
        .collect();
    let mut list = [None; 50];
    for tick in 1..3000_u64 {
        for _ in 0..random.next_u32() % 4 {
            let at = random.next_u32() as usize % made.len();
            if random.next_u32() % 4 == 0 {
                assert_eq!(made[at].cancel(), list[at].take().is_some());
            } else {
                let moment = Nanos(machine.now().0 + u64::from(random.next_u32() % 900) * MS / 3);
                assert_eq!(made[at].arm_at(moment), list[at].replace(moment).is_some());
            }
        }
        let now = Nanos(start + tick * MS);
        machine.clock.freeze(now);
        let due = list.iter().enumerate().filter_map(|(at, due)| due.map(|due| (at, due)));
        let mut due: Vec<_> = due.filter(|(_, due)| *due <= now).collect();
        let first = list.iter().flatten().min();
        let edge = first.map(|first| Nanos(first.0.div_ceil(MS) * MS));
        assert!(timers.next_expiry().is_none_or(|next| edge.is_none_or(|edge| next <= edge)), "tick {tick}");
        assert!(timers.next_expiry().is_some() || edge.is_none(), "tick {tick}");
        assert_eq!(timers.run(now) as usize, due.len(), "tick {tick}");
        ran.borrow_mut().sort_unstable();
        due.sort_unstable();
        assert_eq!(ran.take(), due, "tick {tick}");
        for (at, _) in due {
            list[at] = None;
            assert!(!made[at].is_pending());
        }
    }
    drop(made);
    assert!(timers.is_empty());
    machine.shutdown();
}

/// Goal: callbacks may do everything to all timers. Method: one that arms itself, cancels another, drops
/// a third, runs the timers, and panics at last.
#[test]
fn callbacks_may_do_everything() {
    let (machine, timers, start) = still();
    let count = Rc::new(Cell::new(0));
    let other = Rc::new(timers.timer(Precision::Coarse, |_| unreachable!("it is cancelled")));
    let third = Rc::new(RefCell::new(Some(timers.timer(Precision::Tick, |_| unreachable!("it is dropped")))));
    other.arm_at(Nanos(start + 3 * MS));
    third.borrow().as_ref().expect("made").arm_at(Nanos(start + 3 * MS));
    let (mine, gone, seen, own) = (Rc::clone(&other), Rc::clone(&third), Rc::clone(&count), timers.clone());
    let timer = timers.timer(Precision::Exact, move |run| {
        seen.set(seen.get() + 1);
        assert!(!run.arm_at(Nanos(run.scheduled().0 + MS)));
        mine.cancel();
        drop(gone.take());
        assert_eq!(own.run(run.now()), 0, "it runs already");
        assert_ne!(seen.get(), 4, "this one panics");
    });
    timer.arm_at(Nanos(start + MS));
    for tick in 1..4 {
        timers.run(Nanos(start + tick * MS));
    }
    assert_eq!(count.get(), 3);
    assert!(catch_unwind(AssertUnwindSafe(|| timers.run(Nanos(start + 4 * MS)))).is_err());
    assert!(timer.is_pending());
    drop(timer);
    assert_eq!((timers.run(Nanos(start + 9 * MS)), timers.is_empty()), (0, true));
    machine.shutdown();
}

/// Goal: a timer beyond the wheel's reach is not early, and one pass runs 256 at most. Method: 40 days in
/// days; 300 timers that are due at once.
#[test]
fn far_ahead_and_many_at_once() {
    const DAY: u64 = 86_400_000 * MS;
    let (machine, timers, start) = still();
    let ran = Rc::new(Cell::new(0));
    let make = |precision| {
        let ran = Rc::clone(&ran);
        timers.timer(precision, move |_| ran.set(ran.get() + 1))
    };
    for precision in [Precision::Coarse, Precision::Tick] {
        let timer = make(precision);
        timer.arm_at(Nanos(machine.now().0 + 40 * DAY));
        for day in 0..45 {
            let now = Nanos(machine.now().0 + DAY);
            machine.clock.freeze(now);
            while timers.run(now) > 0 {}
            assert!(ran.get() == 0 || day >= 39, "{precision:?} ran on day {day}");
        }
        assert_eq!(ran.replace(0), 1, "{precision:?}");
    }
    let many: Vec<_> = (0..300).map(|_| make(Precision::Tick)).collect();
    let _: Vec<_> = many.iter().map(|timer| timer.arm_at(Nanos(start))).collect();
    let now = Nanos(machine.now().0 + MS);
    assert_eq!(timers.run(now), 256);
    assert!(timers.next_expiry() <= Some(now), "44 are left");
    assert!(!many[299].arm_at(Nanos(now.0 + MS)), "it has run");
    assert!(timers.next_expiry() <= Some(now), "44 are left: {:?}", timers.next_expiry());
    assert_eq!((timers.run(now), timers.run(now)), (44, 0));
    machine.shutdown();
}
