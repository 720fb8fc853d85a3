//! All timers of a base that someone chooses, taken out at once.

use super::{TICK, TestBases, TimerOptions, TimerRef};
use super::{add, at, bases, global, start_all};
use crate::Nanos;
use alloc::vec::Vec;
use quietcore_wheel::{Expiry, Tick};

/// The payloads of what is pending, in order.
fn pending(bases: &TestBases) -> Vec<u32> {
    let mut pending = Vec::new();
    for cpu in 0..2 {
        bases.for_each_pending(global(cpu), |payload, _, _| pending.push(payload));
    }
    pending.sort_unstable();
    pending
}

/// Goal: what is chosen is pending no more, wherever it waits (in the wheel, exact, collected, armed again
/// while it runs), and all others are as before, on this base and on others; a run goes on. Method: two of
/// each kind, of which the even one is chosen.
#[test]
fn what_is_chosen_is_taken_out() {
    let mut bases = bases(2);
    let timers: Vec<TimerRef<u32>> = (0..8).map(|payload| add(&mut bases, payload).1).collect();
    let exact = [8, 9].map(|payload| {
        let id = bases.add_exact(TimerOptions::new(), payload);
        bases.timer(id).expect("just made")
    });
    for timer in &timers[..2] {
        let _ = bases.arm_tick(*timer, Tick(1), global(0), at(0));
    }
    let (_, runs) = start_all(&bases, global(0), at(2));
    assert_eq!(runs.len(), 2);
    for (number, tick) in [(0, 90), (1, 90), (2, 6), (3, 6), (4, 700), (5, 700)] {
        let _ = bases.arm_tick(timers[number], Tick(tick), global(0), at(5));
    }
    for timer in &timers[6..] {
        let _ = bases.arm_tick(*timer, Tick(9), global(1), at(5));
    }
    for timer in exact {
        let _ = bases.arm(timer, Expiry::at(900 * TICK), global(0), at(5));
    }
    assert!(bases.lock(global(0), None).collect(Nanos(8 * TICK)));
    let choose = |payload: u32, _| payload.is_multiple_of(2).then_some(payload);
    let mut taken = Vec::new();
    assert!(bases.cancel_all(global(0), &mut taken, choose));
    taken.sort_unstable();
    assert_eq!((taken.as_slice(), pending(&bases)), ([0, 2, 4, 8].as_slice(), [1, 3, 5, 6, 7, 9].to_vec()));
    assert!([0, 2, 4].iter().all(|&number| !timers[number].is_pending()) && !exact[0].is_pending());
    bases.check();
    // They are idle timers like others: what ran ends, and all can be armed again.
    for run in runs {
        let _ = bases.finish(run, at(9));
    }
    let _ = bases.arm_tick(timers[2], Tick(12), global(0), at(9));
    assert_eq!(pending(&bases), [1, 2, 3, 5, 6, 7, 9]);
    bases.check();
}
