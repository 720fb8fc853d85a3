//! Timers whose run is over when they are handed out: nothing waits for the end of it.

use super::super::{Cancelled, TimerName};
use super::{BaseId, CpuId, Nanos, RunnerToken, TICK, TestBases, TimerId, TimerOptions, TimerRef};
use super::{add, at, bases, global, local, start_all};
use alloc::vec::Vec;
use quietcore_wheel::{Expiry, Tick};

fn add_detached(bases: &mut TestBases, payload: u32) -> (TimerId, TimerRef<u32>) {
    let id = bases.add_timer(TimerOptions::new().detached(), payload);
    (id, bases.timer(id).expect("just made"))
}

fn running(bases: &TestBases, id: BaseId) -> usize {
    bases.lock(id, None).running()
}

/// Goal: a detached timer may be armed anywhere and run again while an earlier run goes on, and never counts
/// as running; an ordinary one beside it does. Method: both are handed out, armed on another CPU, and run
/// there before the first runs end.
#[test]
fn a_detached_timer_runs_again_before_its_run_has_ended() {
    let mut bases = bases(2);
    let ((_, ordinary), (id, detached)) = (add(&mut bases, 1), add_detached(&mut bases, 2));
    for timer in [ordinary, detached] {
        let _ = bases.arm_tick(timer, Tick(1), global(0), at(0));
    }
    let (_, first) = start_all(&bases, global(0), at(2));
    assert_eq!(first.len(), 2);
    assert_eq!((running(&bases, global(0)), bases.lock(global(0), None).counters.ran), (1, 2));
    assert!(bases.is_running(ordinary, at(2)) && !bases.is_running(detached, at(2)));
    let armed_on = |timer| bases.arm_tick(timer, Tick(3), local(1), at(2)).base;
    assert_eq!((armed_on(ordinary), armed_on(detached)), (global(0), local(1)), "only one of them runs");
    let (_, second) = start_all(&bases, local(1), at(5));
    let names: Vec<_> = second.iter().map(|expired| (expired.timer(), expired.is_detached())).collect();
    assert_eq!(names, [(TimerName::Id(id), true)]);
    assert_eq!(bases.cancel_unless_running(ordinary, at(5)), Cancelled::Running);
    assert_eq!(bases.cancel_unless_running(detached, at(5)), Cancelled::Idle);
    bases.check();
    for expired in first.into_iter().chain(second) {
        let _ = bases.finish(expired, at(6));
    }
    assert!(!detached.is_pending());
    bases.check();
}

/// Goal: the end of a detached run takes no lock, of an ordinary one its base's. Method: it ends while the
/// lock is held; this lock panics when it is taken twice.
#[test]
fn the_end_of_a_detached_run_takes_no_lock() {
    let mut bases = bases(1);
    let (_, timer) = add_detached(&mut bases, 1);
    let _ = bases.arm_tick(timer, Tick(1), local(0), at(0));
    let (_, mut runs) = start_all(&bases, local(0), at(2));
    let guard = bases.lock(local(0), None);
    let finished = bases.finish(runs.pop().expect("it ran"), at(3));
    drop(guard);
    assert!(finished.token.is_none() && !finished.change.is_first && finished.base == local(0));
}

/// Goal: what is taken of a timer is taken while it is still pending, with its name and payload; nothing is
/// taken when nothing is handed out. Method: both calls that hand out, two timers, and one call too many.
#[test]
fn something_is_taken_of_each_timer_while_it_is_pending() {
    let mut bases = bases(1);
    let timers = [add_detached(&mut bases, 10), add(&mut bases, 11)];
    for (_, timer) in timers {
        let _ = bases.arm_tick(timer, Tick(1), local(0), at(0));
    }
    let token = bases.collect_and_take(local(0), CpuId(0), at(2)).expect("due");
    let mut seen = Vec::new();
    let mut take = |payload: u32, name| {
        let (id, timer) = timers[payload as usize - 10];
        assert_eq!(name, TimerName::Id(id));
        assert!(timer.is_pending(), "{payload} was idle already");
        seen.push(payload);
        payload + 100
    };
    let (first, taken) = bases.pop_with(&token, at(2), &mut take).expired.expect("due");
    assert_eq!(taken, first.payload() + 100);
    let next = bases.finish_and_pop_with(first, &token, at(2), &mut take).expect("the token is held");
    let (second, taken) = next.expired.expect("due");
    assert_eq!(taken, second.payload() + 100);
    let next = bases.finish_and_pop_with(second, &token, at(2), &mut take).expect("the token is held");
    assert!(next.expired.is_none());
    seen.sort_unstable();
    assert_eq!(seen, [10, 11]);
}

/// Goal: a detached run that ends after its runner lost the token gets nothing and needs no second try; the
/// rest is run by the holder of the token. Method: two timers, revoked in between.
#[test]
fn a_detached_run_that_lost_its_token() {
    let mut bases = bases(2);
    for payload in 0..2 {
        let (_, timer) = add_detached(&mut bases, payload);
        let _ = bases.arm_tick(timer, Tick(1), global(0), at(0));
    }
    let stuck = bases.collect_and_take(global(0), CpuId(0), at(2)).expect("due");
    let first = bases.pop(&stuck, at(2)).expired.expect("due");
    let _ = bases.lock(global(0), None).revoke();
    let token = bases.collect_and_take(global(0), CpuId(1), at(3)).expect("overdue");
    let popped = bases.finish_and_pop(first, &stuck, at(3)).expect("there is nothing to end");
    assert!(popped.expired.is_none(), "it has no token");
    assert!(bases.pop(&token, at(3)).expired.is_some());
    bases.check();
}

/// Goal: a detached timer that its own run arms again goes with the others when its CPU leaves, and to the
/// adopter after that. Method: adopted during the run, armed before and after.
#[test]
fn an_adoption_does_not_wait_for_a_detached_run() {
    for is_armed_before in [true, false] {
        let mut bases = bases(2);
        let (_, timer) = add_detached(&mut bases, 1);
        let _ = bases.arm_tick(timer, Tick(1), global(1), at(0));
        let (_, mut runs) = start_all(&bases, global(1), at(2));
        let arm = || bases.arm_tick(timer, Tick(50), global(1), at(2)).base;
        if is_armed_before {
            assert_eq!(arm(), global(1));
        }
        let adopted = bases.adopt(CpuId(1), CpuId(0), at(2));
        assert_eq!((adopted.moved, adopted.still_running), (usize::from(is_armed_before), 0));
        if !is_armed_before {
            assert_eq!(arm(), global(0));
        }
        let _ = bases.finish(runs.pop().expect("it ran"), at(3));
        assert_eq!(timer.base(), Some(global(0)));
        bases.check();
    }
}

/// Goal: an exact timer can be detached, too. Method: handed out, armed while it runs, handed out again.
#[test]
fn an_exact_timer_can_be_detached() {
    let mut bases = bases(1);
    let id = bases.add_exact(TimerOptions::new().detached(), 1);
    let timer = bases.timer(id).expect("just made");
    let mut runs = Vec::new();
    for tick in [2, 4] {
        let _ = bases.arm(timer, Expiry::at(tick * TICK - 1), local(0), at(0));
        runs.extend(start_all(&bases, local(0), at(tick)).1);
    }
    let expiries: Vec<_> = runs.iter().map(|expired| expired.expires()).collect();
    assert_eq!(expiries, [Nanos(2 * TICK - 1), Nanos(4 * TICK - 1)]);
    assert!(runs.iter().all(|expired| expired.is_detached()));
    assert_eq!(running(&bases, local(0)), 0);
    bases.check();
}

/// Takes further detached timers in one lock hold; their payloads.
fn take_more(bases: &TestBases, token: &RunnerToken, now: u64) -> Vec<u32> {
    let mut taken = Vec::new();
    let (count, _) = bases.pop_detached_with(token, 9, at(now), |payload, _, _| taken.push(payload));
    assert_eq!(count as usize, taken.len());
    taken
}

/// Goal: detached timers that are taken together overtake none that is to run before them. Method: an exact
/// timer is due with one; then one that has waited for the end of its run.
#[test]
fn detached_timers_that_are_taken_together_overtake_none() {
    let mut bases = bases(2);
    let ((_, ordinary), (_, detached)) = (add(&mut bases, 1), add_detached(&mut bases, 2));
    let id = bases.add_exact(TimerOptions::new(), 3);
    let exact = bases.timer(id).expect("just made");
    let _ = bases.arm_tick(ordinary, Tick(1), global(0), at(0));
    let (_, mut runs) = start_all(&bases, global(0), at(2));
    let _ = bases.arm_tick(ordinary, Tick(3), global(0), at(2));
    assert!(start_all(&bases, global(0), at(5)).1.is_empty(), "it still runs");
    let _ = bases.arm_tick(detached, Tick(6), global(0), at(5));
    let _ = bases.arm(exact, Expiry::at(6 * TICK), global(0), at(5));
    let token = bases.collect_and_take(global(0), CpuId(1), at(8)).expect("due");
    assert_eq!(take_more(&bases, &token, 8), [], "the exact one is first");
    let expired = bases.pop(&token, at(8)).expired.expect("due");
    assert_eq!(expired.payload(), 3);
    let _ = bases.finish(runs.pop().expect("it ran"), at(8));
    assert_eq!(take_more(&bases, &token, 8), [], "what has waited for its run is first");
    let waited = bases.pop(&token, at(8)).expired.expect("due");
    assert_eq!(waited.payload(), 1);
    assert_eq!(take_more(&bases, &token, 8), [2]);
    let _ = (bases.finish(expired, at(8)), bases.finish(waited, at(8)));
    bases.check();
}

/// Goal: a CPU whose token was taken away takes no further detached timers. Method: two are due; the token is
/// given to another CPU.
#[test]
fn who_lost_the_token_takes_no_more_detached_timers() {
    let mut bases = bases(2);
    for payload in 0..2 {
        let (_, timer) = add_detached(&mut bases, payload);
        let _ = bases.arm_tick(timer, Tick(1), global(0), at(0));
    }
    let stale = bases.collect_and_take(global(0), CpuId(0), at(2)).expect("due");
    let _ = bases.lock(global(0), None).revoke();
    let token = bases.collect_and_take(global(0), CpuId(1), at(3)).expect("overdue");
    assert_eq!(take_more(&bases, &stale, 3), []);
    assert_eq!(take_more(&bases, &token, 3).len(), 2);
}
