//! Adoption and evacuation, with timers in every state.

use super::super::Cancelled;
use super::super::transfer::Evacuated;
use super::{BaseKind, CpuId, Nanos, TICK, TimerOptions};
use super::{add, at, base, bases, global, local, run_all, start_all};
use alloc::vec::Vec;
use quietcore_wheel::{Expiry, Precision, Tick};

/// Goal: an adopter gets every timer of every kind, for the tick that it was armed for, and pinned ones too.
/// Method: one timer per kind and delay, some collected, one exact; adopted in the middle.
#[test]
fn an_adopter_gets_everything() {
    let mut bases = bases(2);
    for (number, kind) in BaseKind::ALL.into_iter().enumerate() {
        for (word, delay) in [1, 70, 1000].into_iter().enumerate() {
            let precision = if word == 0 { Precision::Coarse } else { Precision::Tick };
            let options = TimerOptions::new().pinned().precision(precision);
            let id = bases.add_timer(options, (number * 10 + word) as u32);
            let timer = bases.timer(id).expect("just made");
            let _ = bases.arm_tick(timer, Tick(delay), base(1, kind), at(0));
        }
    }
    let id = bases.add_exact(TimerOptions::new(), 99);
    let _ = bases.arm(bases.timer(id).expect("just made"), Expiry::at(2500), local(1), at(0));
    let token = bases.collect_and_take(local(1), CpuId(1), at(4)).expect("due");
    let adopted = bases.adopt(CpuId(1), CpuId(0), at(4));
    assert_eq!((adopted.moved, adopted.still_running), (13, 0));
    assert!(adopted.change.is_first && !adopted.change.was_idle);
    assert!(bases.pop(&token, at(4)).expired.is_none(), "the token is gone");
    bases.check();
    for (number, kind) in BaseKind::ALL.into_iter().enumerate() {
        let number = number as u32 * 10;
        let early: Vec<_> = if kind == BaseKind::Local { [99].into() } else { Vec::new() };
        assert_eq!(run_all(&bases, base(0, kind), at(5)), [early, [number].into()].concat(), "{kind:?}");
        for (delay, payload) in [(70, number + 1), (1000, number + 2)] {
            assert!(run_all(&bases, base(0, kind), at(delay)).is_empty(), "{payload} is early");
            assert_eq!(run_all(&bases, base(0, kind), at(delay + 1)), [payload]);
        }
        assert_eq!(bases.lock(base(1, kind), None).pending(), 0);
    }
}

/// Goal: a dead CPU's bases take nothing; arms go to the adopter, also through two of them, until the CPU is
/// back. Method: arms before and after, of new timers and of one that was there.
#[test]
fn an_arm_for_a_dead_cpu_goes_to_its_adopter() {
    let mut bases = bases(3);
    let ((_, old), (_, new)) = (add(&mut bases, 1), add(&mut bases, 2));
    let _ = bases.arm_tick(old, Tick(1), global(2), at(0));
    assert_eq!(run_all(&bases, global(2), at(2)), [1]);
    let _ = bases.adopt(CpuId(2), CpuId(1), at(2));
    let _ = bases.adopt(CpuId(1), CpuId(0), at(2));
    for timer in [old, new] {
        assert_eq!(bases.arm_tick(timer, Tick(9), global(2), at(2)).base, global(0));
    }
    bases.prepare(CpuId(2), at(3));
    assert_eq!(bases.arm_tick(old, Tick(20), global(2), at(3)).base, global(2));
    assert_eq!(bases.arm_tick(old, Tick(30), global(1), at(3)).base, global(0));
    assert_eq!(bases.lock(global(2), None).pending(), 0);
    bases.check();
}

/// Goal: a timer that runs when its CPU is adopted is neither lost nor run twice at a time. Method: re-armed
/// before or after the adoption, for now or later, or due; then the run ends, or it is cancelled first.
#[test]
fn a_running_timer_is_adopted_when_its_run_ends() {
    for (is_before, expires, is_cancelled) in
        [(true, 2, false), (true, 90, false), (false, 2, false), (false, 90, false), (true, 90, true)]
    {
        let mut bases = bases(2);
        let (_, timer) = add(&mut bases, 7);
        let _ = bases.arm_tick(timer, Tick(1), local(1), at(0));
        let (_, mut runs) = start_all(&bases, local(1), at(2));
        if is_before {
            let _ = bases.arm_tick(timer, Tick(expires), local(1), at(2));
            assert!(start_all(&bases, local(1), at(5)).1.is_empty());
        }
        let adopted = bases.adopt(CpuId(1), CpuId(0), at(5));
        assert_eq!((adopted.moved, adopted.still_running), (0, 1));
        if !is_before {
            assert_eq!(bases.arm_tick(timer, Tick(expires), local(1), at(5)).base, local(1));
        }
        bases.check();
        assert!(timer.is_pending());
        if is_cancelled {
            assert_eq!(bases.cancel(timer, at(5)), Cancelled::WasPending);
        }
        let finished = bases.finish(runs.pop().expect("it ran"), at(6));
        assert!(finished.token.is_none());
        assert_eq!((finished.base, finished.change.is_first), (local(0), !is_cancelled));
        assert_eq!(timer.is_pending(), !is_cancelled);
        bases.check();
        let due = (expires + 1).max(7) + 7;
        let expected: &[u32] = if is_cancelled { &[] } else { &[7] };
        assert_eq!(run_all(&bases, local(0), at(due)), expected, "{is_before} {expires}");
    }
}

/// Goal: an isolated CPU's timers that others may run go elsewhere, with its limit and its report, and pinned
/// ones stay. Method: 200 timers on each kind of base, one of them running and armed again.
#[test]
fn an_isolated_cpu_is_evacuated() {
    let mut bases = bases(2);
    for kind in BaseKind::ALL {
        for number in 0..200 {
            let (_, timer) = add(&mut bases, number);
            let _ = bases.arm_tick(timer, Tick(u64::from(number) + 10), base(1, kind), at(0));
        }
    }
    let (_, timer) = add(&mut bases, 1000);
    let _ = bases.arm_tick(timer, Tick(1), global(1), at(0));
    let (_, mut runs) = start_all(&bases, global(1), at(2));
    let _ = bases.arm_tick(timer, Tick(50), global(1), at(2));
    bases.lock(global(0), None).is_idle = true;
    let first = bases.evacuate(CpuId(1), CpuId(0), 150, at(3)).expect("it is online");
    assert_eq!((first.moved, first.remaining, first.still_running), (150, 251, 1));
    assert!(first.change.must_publish());
    bases.check();
    let Evacuated { moved, remaining, still_running, .. } =
        bases.evacuate(CpuId(1), CpuId(0), usize::MAX, at(3)).expect("it is online");
    assert_eq!((moved, remaining, still_running), (250, 1, 1));
    assert_eq!(bases.lock(local(1), None).pending(), 200, "pinned ones stay");
    assert_eq!(bases.lock(base(1, BaseKind::Deferrable), None).pending(), 200);
    bases.check();
    let finished = bases.finish(runs.pop().expect("it ran"), at(4));
    assert!(finished.token.is_none() && finished.base == global(1) && finished.change.is_first);
    assert_eq!(bases.lock(global(1), None).next_expiry(), Some(Nanos(51 * TICK)));
    let last = bases.evacuate(CpuId(1), CpuId(0), 1, at(4)).expect("it is online");
    assert_eq!(last.remaining, 0);
    let mut ran = run_all(&bases, global(0), at(300));
    ran.sort_unstable();
    assert_eq!(ran, (0..200).chain([1000]).collect::<Vec<_>>());
    bases.check();
}

/// Goal: a timer that was due while it ran is due at once when the run ends, also when an evacuation came
/// between. Method: wheel and exact; one tick is not waited for, and the exact one is due just then.
#[test]
fn an_evacuation_does_not_delay_what_is_due() {
    let mut bases = bases(2);
    let (_, timer) = add(&mut bases, 1);
    let id = bases.add_exact(TimerOptions::new(), 2);
    let exact = bases.timer(id).expect("just made");
    let arm_both = |tick: u64| {
        let _ = bases.arm_tick(timer, Tick(tick), global(1), at(tick));
        let _ = bases.arm(exact, Expiry::at(tick * TICK), global(1), at(tick));
    };
    arm_both(0);
    let (_, runs) = start_all(&bases, global(1), at(2));
    arm_both(2);
    let _ = bases.arm(exact, Expiry::at(5 * TICK), global(1), at(2));
    bases.lock(global(1), None).collect(Nanos(5 * TICK));
    let evacuated = bases.evacuate(CpuId(1), CpuId(0), 9, at(5)).expect("it is online");
    assert_eq!(evacuated.moved, 0);
    bases.check();
    let mut ran = Vec::new();
    for run in runs {
        let token = bases.finish(run, at(5)).token.expect("due at once");
        let expired = bases.pop(&token, at(5)).expired.expect("due at once");
        ran.push(expired.payload());
        let _ = bases.finish(expired, at(5));
        assert!(bases.pop(&token, at(5)).expired.is_none());
    }
    assert_eq!(ran, [2, 1]);
    bases.check();
}

/// Goal: timers that change their CPU are as little late as if they were armed there: the clock of the base
/// that gets them is taken to the present first. Method: 100,000 ticks after anything happened on CPU 0 a
/// timer of CPU 1 goes there, three ticks ahead: with an adoption, an evacuation, or the end of its run on a
/// base that was adopted long before.
#[test]
fn a_base_that_gets_timers_takes_its_clock_to_the_present() {
    const NOW: u64 = 100_000;
    for way in 0..3 {
        let mut bases = bases(2);
        let (_, timer) = add(&mut bases, 1);
        let _ = bases.arm_tick(timer, Tick(1), global(1), at(0));
        let (_, mut runs) = start_all(&bases, global(1), at(2));
        let run = runs.pop().expect("it ran");
        let arm = || assert_eq!(bases.arm_tick(timer, Tick(NOW + 3), global(1), at(NOW)).base, global(1));
        if way == 2 {
            let _ = bases.adopt(CpuId(1), CpuId(0), at(2));
            arm();
            assert_eq!(bases.finish(run, at(NOW)).base, global(0));
        } else {
            let _ = bases.finish(run, at(2));
            arm();
            let moved = match way {
                0 => bases.adopt(CpuId(1), CpuId(0), at(NOW)).moved,
                _ => bases.evacuate(CpuId(1), CpuId(0), 9, at(NOW)).expect("it is online").moved,
            };
            assert_eq!(moved, 1);
        }
        assert_eq!(bases.next_expiry(global(0)), Some(Nanos((NOW + 4) * TICK)), "{way}");
        bases.check();
    }
}

/// Goal: what a run leaves on a base that was adopted goes to a CPU that is there, however many have left.
/// Method: CPU 2 is adopted by CPU 1 during the run, and that by CPU 0.
#[test]
fn the_end_of_a_run_follows_two_adoptions() {
    let mut bases = bases(3);
    let (_, timer) = add(&mut bases, 1);
    let _ = bases.arm_tick(timer, Tick(1), global(2), at(0));
    let (_, mut runs) = start_all(&bases, global(2), at(2));
    let _ = bases.arm_tick(timer, Tick(9), global(2), at(2));
    let _ = bases.adopt(CpuId(2), CpuId(1), at(3));
    let _ = bases.adopt(CpuId(1), CpuId(0), at(3));
    assert_eq!(bases.finish(runs.pop().expect("it ran"), at(4)).base, global(0));
    assert_eq!(run_all(&bases, global(0), at(10)), [1]);
    bases.check();
}

/// Goal: a CPU that comes back is not taken for one that sleeps: an arm on it asks for no wake-up. Method: it
/// slept when it was adopted.
#[test]
fn a_cpu_that_comes_back_is_awake() {
    let mut bases = bases(2);
    let (_, timer) = add(&mut bases, 1);
    for kind in BaseKind::ALL {
        bases.lock(base(1, kind), None).is_idle = true;
    }
    let _ = bases.adopt(CpuId(1), CpuId(0), at(1));
    bases.prepare(CpuId(1), at(2));
    for kind in BaseKind::ALL {
        let armed = bases.arm_tick(timer, Tick(9), base(1, kind), at(2));
        assert!(armed.change.is_first && !armed.change.must_publish(), "{kind:?}");
        let _ = bases.cancel(timer, at(2));
    }
}
