//! Bases that were closed: nothing comes to them, and what is pending ends without a run.

use super::super::{Arm, ArmMode};
use super::{CpuId, Nanos, TICK, TestBases, TimerOptions, TimerRef};
use super::{add, at, bases, every_base, global, local, start_all};
use alloc::vec::Vec;
use quietcore_wheel::{Expiry, Tick};

fn close(bases: &TestBases) {
    every_base(2).for_each(|id| bases.lock(id, None).close());
}

/// The payloads of all that ended, in order.
fn end_all(bases: &TestBases) -> Vec<u32> {
    let mut ended = Vec::new();
    for id in every_base(2) {
        while let Some(payload) = bases.end_pending(id, |payload, _| payload) {
            ended.push(payload);
        }
    }
    ended.sort_unstable();
    ended
}

/// The payloads of all that is pending, in order.
fn pending(bases: &TestBases) -> Vec<u32> {
    let mut pending = Vec::new();
    for id in every_base(2) {
        bases.for_each_pending(id, |payload, _, _| pending.push(payload));
    }
    pending.sort_unstable();
    pending
}

/// Goal: whatever a timer waits in, it is seen, it ends, once, and is idle then. Method: timers in the wheel,
/// collected, and due or armed again while they run, of ticks and exact, also on a base that was adopted and
/// by a run that ends after the close; then all runs end.
#[test]
fn everything_that_is_pending_ends() {
    let mut bases = bases(2);
    let timers: Vec<TimerRef<u32>> = (0..7).map(|payload| add(&mut bases, payload).1).collect();
    let exact = [7, 8].map(|payload| {
        let id = bases.add_exact(TimerOptions::new(), payload);
        bases.timer(id).expect("just made")
    });
    // 0 to 3 run on CPU 0, 4 on CPU 1.
    for timer in &timers[..4] {
        let _ = bases.arm_tick(*timer, Tick(1), global(0), at(0));
    }
    let _ = bases.arm_tick(timers[4], Tick(1), local(1), at(0));
    let (token, mut runs) = start_all(&bases, global(0), at(2));
    assert!(token.is_some() && runs.len() == 4);
    runs.extend(start_all(&bases, local(1), at(2)).1);
    // 0 was due again, and 1 too, and its run has ended; 2 is armed again, 3 is not.
    for timer in &timers[..2] {
        let _ = bases.arm_tick(*timer, Tick(3), global(0), at(2));
    }
    assert!(start_all(&bases, global(0), at(5)).1.is_empty(), "they run");
    bases.set_absent(CpuId(0), true);
    let ends = runs.iter().position(|run| run.payload() == 1).expect("it runs");
    assert!(bases.finish(runs.remove(ends), at(5)).token.is_none(), "its runner is absent");
    let _ = bases.arm_tick(timers[2], Tick(90), global(0), at(5));
    // 4 waits for the end of its run, on a base that was adopted.
    let _ = bases.adopt(CpuId(1), CpuId(0), at(5));
    assert_eq!(bases.arm_tick(timers[4], Tick(9), local(1), at(5)).base, local(1));
    // 5 and 7 are collected, 6 and 8 are not.
    let _ = bases.arm_tick(timers[5], Tick(6), global(0), at(5));
    let _ = bases.arm_tick(timers[6], Tick(700), global(0), at(5));
    let _ = bases.arm(exact[0], Expiry::at(6 * TICK), global(0), at(5));
    let _ = bases.arm(exact[1], Expiry::at(900 * TICK), global(0), at(5));
    assert!(bases.lock(global(0), None).collect(Nanos(8 * TICK)));
    bases.check();

    assert_eq!(pending(&bases), [0, 1, 2, 4, 5, 6, 7, 8]);
    close(&bases);
    assert_eq!(end_all(&bases), [0, 1, 2, 4, 5, 6, 7, 8]);
    assert_eq!(pending(&bases), []);
    assert!(timers.iter().all(|timer| !timer.is_pending()) && exact.iter().all(|timer| !timer.is_pending()));
    for run in runs {
        assert!(bases.finish(run, at(9)).token.is_none());
    }
    bases.check();
    for id in every_base(2) {
        assert_eq!((bases.lock(id, None).pending(), bases.next_expiry(id)), (0, None), "{id}");
    }
    assert!(end_all(&bases).is_empty(), "once");
    let ended = bases.lock(global(0), None).counters;
    assert_eq!(ended.armed, ended.ran + ended.superseded + ended.cancelled, "{ended:?}");
}

/// Goal: a closed base takes no arm, whatever is known of the timer. Method: timers that are new, idle there,
/// pending there, running there, and pending on a base that is open; of every mode.
#[test]
fn a_closed_base_takes_no_arm() {
    let mut bases = bases(2);
    let [new, idle, pending, running, elsewhere] = [0, 1, 2, 3, 4].map(|payload| add(&mut bases, payload).1);
    for timer in [idle, running] {
        let _ = bases.arm_tick(timer, Tick(1), global(0), at(0));
    }
    let (_, mut runs) = start_all(&bases, global(0), at(2));
    let over = runs.iter().position(|run| run.payload() == 1).expect("it ran");
    let _ = bases.finish(runs.remove(over), at(2));
    let _ = bases.arm_tick(pending, Tick(50), global(0), at(2));
    let _ = bases.arm_tick(elsewhere, Tick(50), global(1), at(2));
    bases.lock(global(0), None).close();
    for (name, timer) in [(0, new), (1, idle), (2, pending), (3, running), (4, elsewhere)] {
        let was_pending = timer.is_pending();
        assert!(bases.arm_fast(timer, Nanos(9 * TICK), global(0), at(3)).is_none(), "timer {name}");
        for mode in [ArmMode::Always, ArmMode::Reduce, ArmMode::ModPending] {
            let arm = Arm { mode, ..Arm::at(Nanos(9 * TICK)) };
            let armed = bases.arm(timer, arm, global(0), at(3));
            assert!(armed.is_refused || mode == ArmMode::ModPending && name == 0, "timer {name} {mode:?}");
            assert!(!armed.change.is_first && timer.is_pending() == was_pending, "timer {name} {mode:?}");
        }
    }
    // What is open takes a timer of a closed one as little.
    assert!(bases.arm_tick(pending, Tick(9), global(1), at(3)).is_refused);
    assert_eq!(bases.end_pending(global(0), |payload, _| payload), Some(2));
    assert_eq!(bases.end_pending(global(0), |payload, _| payload), None);
    bases.check();
}

/// Goal: closed bases keep their timers where they are, and stay closed: what takes them out base by base
/// leaves none behind. Method: adopted, evacuated, and back online after the close.
#[test]
fn closed_bases_exchange_nothing() {
    let mut bases = bases(2);
    for (payload, id) in [(0, global(1)), (1, local(1))] {
        let (_, timer) = add(&mut bases, payload);
        let _ = bases.arm_tick(timer, Tick(9), id, at(0));
    }
    let (_, new) = add(&mut bases, 2);
    close(&bases);
    let evacuated = bases.evacuate(CpuId(1), CpuId(0), usize::MAX, at(1)).expect("the other is online");
    assert_eq!((evacuated.moved, evacuated.remaining), (0, 0));
    assert_eq!(bases.adopt(CpuId(1), CpuId(0), at(1)).moved, 0);
    let pending = |id| bases.lock(id, None).pending();
    assert_eq!([global(1), local(1)].map(pending), [1, 1]);
    bases.prepare(CpuId(1), at(2));
    assert!(bases.arm_tick(new, Tick(9), global(1), at(2)).is_refused);
    assert_eq!(end_all(&bases), [0, 1]);
    bases.check();
}

/// Goal: what a runner had taken is due again when its base is closed: a base says at each moment when it is
/// due. Method: a base whose token is out, with two timers left.
#[test]
fn a_base_says_when_it_is_due_after_the_close() {
    let mut bases = bases(2);
    for payload in 0..3 {
        let (_, timer) = add(&mut bases, payload);
        let _ = bases.arm_tick(timer, Tick(1), global(0), at(0));
    }
    let token = bases.collect_and_take(global(0), CpuId(0), at(2)).expect("they are due");
    let run = bases.pop(&token, at(2)).expired.expect("the first");
    assert_eq!(bases.next_expiry(global(0)), None, "the rest is the runner's");
    close(&bases);
    bases.check();
    assert!(bases.next_expiry(global(0)).is_some_and(|due| due <= Nanos(2 * TICK)));
    assert!(bases.finish(run, at(2)).token.is_none());
    assert_eq!(end_all(&bases).len(), 2);
    bases.check();
}
