//! Whose token is valid, what waits on a record, and what is known of it without the lock.

use super::super::{Arm, Cancelled};
use super::{CpuId, Nanos, TICK, TimerOptions};
use super::{TestBases, add, at, bases, global, start_all};
use alloc::vec::Vec;
use quietcore_wheel::{Expiry, Tick};

/// Timers 0 and 1, due in GLOBAL of CPU 0 from tick 2 on.
fn two_due() -> TestBases {
    let mut bases = bases(2);
    for payload in 0..2 {
        let (_, timer) = add(&mut bases, payload);
        let _ = bases.arm_tick(timer, Tick(1), global(0), at(0));
    }
    bases
}

/// Goal: a token that was taken back stays invalid when its CPU gets another one: of two turns of one CPU, as
/// after a hang, one hands out. Method: taken, taken back and taken again by the same CPU; both pop.
#[test]
fn a_token_that_was_revoked_is_no_copy_of_the_next_one() {
    let bases = two_due();
    let stale = bases.collect_and_take(global(0), CpuId(0), at(2)).expect("due");
    let _ = bases.lock(global(0), None).revoke();
    let token = bases.collect_and_take(global(0), CpuId(0), at(3)).expect("overdue");
    assert!(bases.pop(&stale, at(3)).expired.is_none(), "it was taken back");
    assert!(bases.pop(&token, at(3)).expired.is_some());
}

/// Goal: a CPU that gives a token back after it was taken away does not end the turn of the CPU that has the
/// next one. Method: taken from CPU 0, given to CPU 1, and then given back by CPU 0.
#[test]
fn who_lost_the_token_cannot_give_it_back() {
    let bases = two_due();
    let stale = bases.collect_and_take(global(0), CpuId(0), at(2)).expect("due");
    let _ = bases.lock(global(0), None).revoke();
    let token = bases.collect_and_take(global(0), CpuId(1), at(3)).expect("overdue");
    let _ = bases.release(stale, at(3));
    assert_eq!(bases.lock(global(0), None).runner(), Some(CpuId(1)));
    assert!(bases.pop(&token, at(3)).expired.is_some());
}

/// Goal: a base that was closed hands out nothing, neither to the holder of its token nor to a CPU that comes
/// later; what is pending may be cancelled. Method: two timers are due; closed before or after a CPU took the
/// token.
#[test]
fn a_closed_base_hands_out_nothing() {
    for is_taken in [false, true] {
        let mut bases = two_due();
        let (_, timer) = add(&mut bases, 2);
        let _ = bases.arm_tick(timer, Tick(1), global(0), at(0));
        let token = is_taken.then(|| bases.collect_and_take(global(0), CpuId(0), at(2)).expect("due"));
        bases.lock(global(0), None).close();
        assert!(token.is_none_or(|token| bases.pop(&token, at(3)).expired.is_none()));
        for cpu in [0, 1] {
            assert_eq!(bases.collect_and_take(global(0), CpuId(cpu), at(3)), None, "CPU {cpu}");
        }
        assert_eq!(bases.cancel(timer, at(3)), Cancelled::WasPending);
        assert_eq!(bases.lock(global(0), None).pending(), 2);
    }
}

/// Goal: every run is known, however many there are. Method: four on one CPU, and then one on another.
#[test]
fn the_fifth_run_is_known() {
    let mut bases = bases(2);
    for payload in 0..5 {
        let (_, timer) = add(&mut bases, payload);
        let _ = bases.arm_tick(timer, Tick(1), global(0), at(0));
    }
    let first = bases.collect_and_take(global(0), CpuId(0), at(2)).expect("due");
    let mut runs: Vec<_> = (0..4).filter_map(|_| bases.pop(&first, at(2)).expired).collect();
    let _ = bases.release(first, at(2));
    let second = bases.collect_and_take(global(0), CpuId(1), at(2)).expect("one is left");
    assert!(!bases.lock(global(0), None).runs_on(CpuId(1)));
    runs.extend(bases.pop(&second, at(2)).expired);
    assert_eq!((runs.len(), bases.lock(global(0), None).runs_on(CpuId(1))), (5, true));
}

/// Goal: only what runs counts as a run: else a shutdown would wait for what no CPU runs any more. Method: a
/// timer is due again while it runs; the base is closed before that run ends.
#[test]
fn what_waits_for_a_runner_does_not_run() {
    let mut bases = bases(1);
    let (_, timer) = add(&mut bases, 1);
    let _ = bases.arm_tick(timer, Tick(1), global(0), at(0));
    let (_, mut runs) = start_all(&bases, global(0), at(2));
    let _ = bases.arm_tick(timer, Tick(3), global(0), at(2));
    assert!(start_all(&bases, global(0), at(5)).1.is_empty(), "it runs");
    bases.lock(global(0), None).close();
    let running = || bases.lock(global(0), None).running();
    assert_eq!(running(), 1);
    let _ = bases.finish(runs.pop().expect("it was due"), at(5));
    assert_eq!((running(), timer.is_pending()), (0, true));
}

/// Goal: what is collected and has no runner counts as due since the first of it was, whatever is collected
/// after that, and no earlier than what is left. Method: one timer for tick 5, one for tick 15, collected one
/// after the other; the first is cancelled between, or not. Then an exact one for a moment before both.
#[test]
fn what_was_collected_is_overdue_since_the_first_of_it() {
    for is_cancelled in [false, true] {
        let mut bases = bases(1);
        let ((_, first), (_, second)) = (add(&mut bases, 1), add(&mut bases, 2));
        let _ = bases.arm_tick(first, Tick(5), global(0), at(0));
        let _ = bases.arm_tick(second, Tick(15), global(0), at(0));
        assert!(bases.lock(global(0), None).collect(Nanos(10 * TICK)));
        if is_cancelled {
            assert_eq!(bases.cancel(first, at(10)), Cancelled::WasPending);
        }
        assert!(bases.lock(global(0), None).collect(Nanos(20 * TICK)));
        let since = if is_cancelled { 16 } else { 6 };
        assert_eq!(bases.next_expiry(global(0)), Some(Nanos(since * TICK)));
        let exact = bases.add_exact(TimerOptions::new(), 3);
        let exact = bases.timer(exact).expect("just made");
        let _ = bases.arm(exact, Expiry::at(3 * TICK), global(0), at(20));
        assert!(bases.lock(global(0), None).collect(Nanos(20 * TICK)));
        assert_eq!(bases.next_expiry(global(0)), Some(Nanos(3 * TICK)));
    }
}

/// Goal: the same for a timer that was due while it ran, and whose runner may not take the token at the end.
/// Method: an exact timer is overdue since tick 5, one that ran since tick 9; the runner was marked absent.
/// Then the same where the exact one was cancelled.
#[test]
fn what_waited_for_a_run_makes_nothing_else_later() {
    for is_cancelled in [false, true] {
        let mut bases = bases(2);
        let (_, timer) = add(&mut bases, 1);
        let exact = bases.add_exact(TimerOptions::new(), 2);
        let exact = bases.timer(exact).expect("just made");
        let _ = bases.arm_tick(timer, Tick(1), global(0), at(0));
        let (_, mut runs) = start_all(&bases, global(0), at(2));
        let _ = bases.arm_tick(timer, Tick(9), global(0), at(2));
        assert!(start_all(&bases, global(0), at(11)).1.is_empty(), "it still runs");
        let _ = bases.arm(exact, Expiry::at(5 * TICK), global(0), at(11));
        assert!(bases.lock(global(0), None).collect(Nanos(11 * TICK)));
        if is_cancelled {
            assert_eq!(bases.cancel(exact, at(11)), Cancelled::WasPending);
        }
        bases.set_absent(CpuId(0), true);
        let finished = bases.finish(runs.pop().expect("it ran"), at(11));
        assert!(finished.token.is_none(), "its runner is absent");
        let since = if is_cancelled { 9 } else { 5 };
        assert_eq!(bases.next_expiry(global(0)), Some(Nanos(since * TICK)));
        bases.check();
    }
}

/// Goal: an arm that may only make a timer earlier leaves one alone that was due while it runs: it runs at
/// once when the run ends. Method: a timer of ticks and an exact one run, are armed again and collected, and
/// then armed for later in that way.
#[test]
fn a_timer_that_waits_for_its_run_is_not_made_later() {
    let mut bases = bases(1);
    let (_, timer) = add(&mut bases, 1);
    let exact = bases.add_exact(TimerOptions::new(), 2);
    let exact = bases.timer(exact).expect("just made");
    let arm_both = |tick: u64| {
        let _ = bases.arm_tick(timer, Tick(tick), global(0), at(tick));
        let _ = bases.arm(exact, Expiry::at(tick * TICK), global(0), at(tick));
    };
    arm_both(1);
    let (_, runs) = start_all(&bases, global(0), at(2));
    arm_both(3);
    assert!(start_all(&bases, global(0), at(5)).1.is_empty(), "both still run");
    assert!(bases.arm(timer, Arm::reduce(Nanos(90 * TICK)), global(0), at(5)).was_pending);
    assert!(bases.arm(exact, Arm::reduce(Expiry::at(90 * TICK)), global(0), at(5)).was_pending);
    for run in runs {
        let payload = run.payload();
        let token = bases.finish(run, at(6)).token.expect("due at once");
        let expired = bases.pop(&token, at(6)).expired.expect("due at once");
        assert_eq!((expired.payload(), expired.expires() <= Nanos(3 * TICK)), (payload, true));
        let _ = bases.finish(expired, at(6));
        let _ = bases.release(token, at(6));
    }
}

/// Goal: the end of a run ends that run and no other, also beyond the records that are inline. Method: ten
/// timers run at once; the last that began ends first.
#[test]
fn the_end_of_a_run_is_that_timers_own() {
    let mut bases = bases(1);
    let timers: Vec<_> = (0..10).map(|payload| add(&mut bases, payload).1).collect();
    for timer in &timers {
        let _ = bases.arm_tick(*timer, Tick(1), global(0), at(0));
    }
    let (_, mut runs) = start_all(&bases, global(0), at(2));
    while let Some(run) = runs.pop() {
        let _ = bases.finish(run, at(3));
        let mut left: Vec<_> = runs.iter().map(super::ExpiredTimer::payload).collect();
        left.sort_unstable();
        let is_running = |payload: &u32| bases.is_running(timers[*payload as usize], at(3));
        assert_eq!((0..10).filter(is_running).collect::<Vec<_>>(), left);
        bases.check();
    }
}
