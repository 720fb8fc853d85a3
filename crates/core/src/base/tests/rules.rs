//! One rule at a time: placement, running timers, tokens, what is published.

use super::super::arm::ArmOutcome;
use super::super::expire::Finished;
use super::super::{Arm, Cancelled, ExpiryChange, TimerName};
use super::{BaseKind, Context, CpuId, Nanos, SequentialLock, TICK, TimerOptions};
use super::{TestBases, add, at, base, bases, global, local, run_all, start_all};
use crate::base::ExpiredTimer;
use alloc::vec::Vec;
use quietcore_wheel::{Expiry, Precision, Tick};

fn payloads(runs: &[ExpiredTimer<u32>]) -> Vec<u32> {
    runs.iter().map(ExpiredTimer::payload).collect()
}

/// Goal: never early, one tick late at most for `Tick`, and expiries are floored. Method: every nanosecond
/// around two edges, both precisions on the finest level.
#[test]
fn a_timer_runs_at_the_first_edge_after_its_nanosecond() {
    for precision in [Precision::Coarse, Precision::Tick] {
        for expires in [4 * TICK - 1, 4 * TICK, 4 * TICK + 1, 5 * TICK - 1] {
            let mut bases = bases(1);
            let id = bases.add_timer(TimerOptions::new().precision(precision), 7);
            let timer = bases.timer(id).expect("just made");
            let armed = bases.arm(timer, Nanos(expires), global(0), at(0));
            assert!(armed.change.is_first && !armed.was_pending && !armed.is_refused);
            let due = (expires / TICK + 1) * TICK;
            assert_eq!(bases.next_global(CpuId(0)), Some(Nanos(due)), "{expires}");
            let context = Context::on(CpuId(0), Nanos(due - 1));
            assert!(run_all(&bases, global(0), context).is_empty(), "{expires} is early at {}", due - 1);
            let context = Context::on(CpuId(0), Nanos(due));
            assert_eq!(run_all(&bases, global(0), context), [7], "{expires} at {due}");
            assert_eq!(bases.next_global(CpuId(0)), None);
        }
    }
}

/// Goal: a timer far ahead with `Tick` precision is on time, and a pop that puts it back says that the base
/// is due earlier. Method: 1000 ticks ahead, which begins on a level of 64 ticks; the base is idle and
/// published.
#[test]
fn a_pop_says_when_a_timer_went_back_to_the_wheel() {
    let mut bases = bases(2);
    let id = bases.add_timer(TimerOptions::new().precision(Precision::Tick), 7);
    let timer = bases.timer(id).expect("just made");
    let _ = bases.arm_tick(timer, Tick(1000), global(1), at(0));
    bases.lock(global(1), None).is_idle = true;
    assert_eq!(bases.next_global(CpuId(1)), Some(Nanos(960 * TICK)));
    let token = bases.collect_and_take(global(1), CpuId(0), at(960)).expect("collected");
    assert_eq!(bases.next_global(CpuId(1)), None, "it is the runner's business");
    let popped = bases.pop(&token, at(960));
    assert!(popped.expired.is_none() && popped.change.must_publish(), "{:?}", popped.change);
    assert!(bases.next_global(CpuId(1)).is_some_and(|next| next <= Nanos(1001 * TICK)));
    let mut now = 961;
    while run_all(&bases, global(1), at(now)).is_empty() {
        now += 1;
    }
    assert_eq!(now, 1001);
}

/// Goal: what is published is exact after arms, early after a cancel until the next look. Method: two
/// timers, each cancelled first.
#[test]
fn next_expiry_without_the_lock() {
    let mut bases = bases(1);
    let ((_, one), (_, two)) = (add(&mut bases, 1), add(&mut bases, 2));
    let _ = bases.arm_tick(two, Tick(20), local(0), at(0));
    let _ = bases.arm_tick(one, Tick(10), local(0), at(0));
    assert_eq!(bases.next_local(CpuId(0)), Some(Nanos(11 * TICK)));
    assert_eq!(bases.next_global(CpuId(0)), None);
    assert_eq!(bases.cancel(one, at(1)), Cancelled::WasPending);
    assert_eq!(bases.next_local(CpuId(0)), Some(Nanos(11 * TICK)), "nobody looked");
    assert_eq!(bases.lock(local(0), None).next_expiry(), Some(Nanos(21 * TICK)));
    assert_eq!(bases.next_local(CpuId(0)), Some(Nanos(21 * TICK)));
    bases.check();
}

/// Goal: a clock that stood still for long is taken to the present before a timer is placed by it, else the
/// timer is in a coarse bucket and late. Method: a first arm, another one on the same base and one on another
/// base, each after 100,000 ticks, for three ticks ahead; by the call for all cases, and by that for the
/// usual one.
#[test]
fn an_arm_takes_an_old_clock_to_the_present() {
    for is_usual in [false, true] {
        let mut bases = bases(2);
        let (_, timer) = add(&mut bases, 1);
        for (turn, onto) in [(1, local(0)), (2, local(0)), (3, local(1))] {
            let now = turn * 100_000;
            let expires = Nanos((now + 3) * TICK);
            let arm = if is_usual { TestBases::arm_as_machines_do } else { TestBases::arm };
            let armed = arm(&bases, timer, expires, onto, at(now));
            assert_eq!((armed.base, armed.change.is_first), (onto, true));
            assert_eq!(bases.next_expiry(onto), Some(Nanos((now + 4) * TICK)), "arm {turn}");
            assert_eq!(bases.cancel(timer, at(now)), Cancelled::WasPending);
            bases.lock(onto, None).next_expiry();
        }
    }
}

/// Goal: what the usual case is, and that it does what any arm does. Method: a timer that was never armed,
/// one that is idle or pending in the base asked for or in another one, pinned, deferrable, shut down.
#[test]
fn the_usual_arm() {
    let mut bases = bases(2);
    let (_, timer) = add(&mut bases, 1);
    let deferrable = bases.add_timer(TimerOptions::new().deferrable(), 2);
    let pinned = bases.add_timer(TimerOptions::new().pinned(), 3);
    let (pinned, (_, dead)) = (bases.timer(pinned).expect("just made"), add(&mut bases, 4));
    let when = |tick: u64| Nanos(tick * TICK);
    let again = |timer, tick, onto| {
        let done = bases.arm_fast(timer, when(tick), onto, at(1));
        done.map(|again| (again.was_pending, again.change.is_first))
    };
    assert_eq!(again(timer, 50, global(0)), Some((false, true)), "its first base");
    assert!(timer.is_pending());
    assert_eq!(again(timer, 5, global(1)), None, "it belongs to another one");
    assert_eq!(again(timer, 40, global(0)), Some((true, true)));
    assert_eq!(again(timer, 45, global(0)), Some((true, false)));
    assert_eq!(bases.cancel(timer, at(1)), Cancelled::WasPending);
    assert_eq!(again(timer, 60, global(0)), Some((false, false)), "it looks later than it is");
    assert_eq!(bases.lock(global(0), None).next_expiry(), Some(when(61)));
    let counters = bases.lock(global(0), None).counters;
    assert_eq!((counters.armed, counters.superseded, counters.cancelled), (4, 2, 1));
    let _ = bases.arm(timer, Arm::at(when(60)).on(CpuId(0)), global(0), at(1));
    assert_eq!(again(timer, 9, global(0)), None, "it is pinned");
    assert_eq!(again(pinned, 9, global(0)), None, "it was always pinned");
    assert_eq!(bases.shutdown(dead, at(1)), Cancelled::Idle);
    assert_eq!(again(dead, 9, global(0)), None, "it was shut down before its first arm");
    let _ = bases.arm(timer, Arm::at(when(60)).floating(), global(0), at(1));
    let _ = bases.adopt(CpuId(0), CpuId(1), at(1));
    assert_eq!(again(timer, 9, global(0)), None, "its CPU is gone");
    assert_eq!(again(timer, 9, global(1)), Some((true, true)));
    assert_eq!(bases.shutdown(timer, at(1)), Cancelled::WasPending);
    assert_eq!(again(timer, 9, global(1)), None, "it was shut down");
    let onto = base(1, BaseKind::Deferrable);
    let deferrable = bases.timer(deferrable).expect("just made");
    let _ = bases.arm(deferrable, when(5), onto, at(1));
    assert_eq!(again(deferrable, 6, onto), None, "it is deferrable");
    bases.check();
}

/// Goal: the contract of arm's results. Method: arm, re-arm, reduce, mod_pending, cancel in turn.
#[test]
fn arm_reduce_modify_cancel() {
    let mut bases = bases(1);
    let (_, timer) = add(&mut bases, 1);
    let when = |tick: u64| Nanos(tick * TICK);
    let idle = bases.arm(timer, Arm::mod_pending(when(5)), local(0), at(0));
    assert!(!idle.was_pending && !timer.is_pending() && timer.base().is_none());
    assert_eq!(bases.cancel(timer, at(0)), Cancelled::Idle);
    assert!(!bases.arm(timer, Arm::reduce(when(30)), local(0), at(0)).was_pending);
    assert!(bases.arm(timer, Arm::reduce(when(40)), local(0), at(0)).was_pending);
    assert_eq!(bases.next_local(CpuId(0)), Some(when(31)));
    assert!(bases.arm(timer, Arm::reduce(when(20)), local(0), at(0)).change.is_first);
    assert!(bases.arm(timer, Arm::mod_pending(when(25)), local(0), at(0)).was_pending);
    assert_eq!(bases.lock(local(0), None).next_expiry(), Some(when(26)));
    assert_eq!(bases.cancel(timer, at(0)), Cancelled::WasPending);
    assert_eq!(bases.cancel(timer, at(0)), Cancelled::Idle);
    assert!(run_all(&bases, local(0), at(100)).is_empty());
    bases.check();
}

/// Goal: W6. Method: shut down before the first arm, while pending, and while running; arm in every way.
#[test]
fn a_timer_that_was_shut_down_refuses_every_arm() {
    let mut bases = bases(2);
    let timers: Vec<_> = (0..3).map(|payload| add(&mut bases, payload).1).collect();
    let _ = bases.arm_tick(timers[1], Tick(5), local(0), at(0));
    let _ = bases.arm_tick(timers[2], Tick(1), local(0), at(0));
    let (_, runs) = start_all(&bases, local(0), at(2));
    assert_eq!(bases.shutdown(timers[0], at(2)), Cancelled::Idle);
    assert_eq!(bases.shutdown(timers[1], at(2)), Cancelled::WasPending);
    assert_eq!(bases.shutdown(timers[2], at(2)), Cancelled::Idle);
    assert_eq!(payloads(&runs), [2]);
    for timer in timers {
        for onto in [local(0), local(1)] {
            let armed = [
                bases.arm_tick(timer, Tick(9), onto, at(3)),
                bases.arm(timer, Arm::reduce(Nanos(9 * TICK)), onto, at(3)),
                bases.arm(timer, Arm::mod_pending(Nanos(9 * TICK)), onto, at(3)),
            ];
            assert!(armed.iter().all(|armed| armed.is_refused && !armed.was_pending), "{armed:?}");
            assert!(!timer.is_pending());
        }
    }
    for expired in runs {
        assert!(bases.finish(expired, at(4)).token.is_none());
    }
    bases.check();
}

/// Goal: a re-arm follows the CPU that arms, but not while the timer runs, and not when it would stay in its
/// bucket. Method: one timer, two CPUs.
#[test]
fn a_timer_changes_its_base_unless_it_runs_or_stays_in_its_bucket() {
    let mut bases = bases(2);
    let (_, timer) = add(&mut bases, 1);
    let armed_on = |armed: ArmOutcome| armed.base;
    assert_eq!(armed_on(bases.arm_tick(timer, Tick(100), global(0), at(0))), global(0));
    assert_eq!(armed_on(bases.arm_tick(timer, Tick(101), global(1), at(0))), global(0), "same bucket");
    assert_eq!(armed_on(bases.arm_tick(timer, Tick(200), global(1), at(0))), global(1));
    assert_eq!(armed_on(bases.arm_tick(timer, Tick(200), local(0), at(0))), local(0), "pinned");
    assert_eq!(armed_on(bases.arm_tick(timer, Tick(3), global(0), at(0))), global(0));
    let (_, mut runs) = start_all(&bases, global(0), at(4));
    assert!(bases.is_running(timer, at(4)));
    assert_eq!(armed_on(bases.arm_tick(timer, Tick(9), global(1), at(4))), global(0), "it runs");
    assert_eq!(armed_on(bases.arm_tick(timer, Tick(9), local(1), at(4))), global(0), "it runs");
    assert_eq!(bases.cancel_unless_running(timer, at(4)), Cancelled::Running);
    let finished = bases.finish(runs.pop().expect("it ran"), at(5));
    assert!(finished.token.is_none() && !finished.change.is_first);
    assert!(!bases.is_running(timer, at(5)));
    assert_eq!(bases.cancel_unless_running(timer, at(5)), Cancelled::WasPending);
    bases.check();
}

/// Goal: whether a timer stays in its bucket is judged by the present, not by a clock that stood still: one
/// whose bucket has become too coarse goes to the CPU that arms it. Method: armed 1000 ticks ahead, and again
/// when ten are left, for another tick of the same bucket.
#[test]
fn a_bucket_is_judged_by_the_present() {
    let mut bases = bases(2);
    let (_, timer) = add(&mut bases, 1);
    let armed_on = |tick, onto, now| bases.arm_tick(timer, Tick(tick), onto, at(now)).base;
    assert_eq!(armed_on(1000, global(0), 0), global(0));
    assert_eq!(armed_on(1001, global(1), 0), global(0), "same bucket");
    assert_eq!(armed_on(1000, global(1), 990), global(1), "there is a finer one by now");
    assert_eq!(bases.next_expiry(global(1)), Some(Nanos(1001 * TICK)));
}

/// Goal: a timer is never concurrent with itself, and one that was due meanwhile runs at once when the run
/// ends (interleaving I4). Method: re-armed while it runs, collected by another CPU, with and without a
/// cancel.
#[test]
fn a_timer_that_is_due_while_it_runs_waits_for_the_end() {
    for is_cancelled in [false, true] {
        let mut bases = bases(2);
        let (id, timer) = add(&mut bases, 1);
        let _ = bases.arm_tick(timer, Tick(1), global(0), at(0));
        let (_, mut runs) = start_all(&bases, global(0), at(2));
        let _ = bases.arm_tick(timer, Tick(2), global(0), at(2));
        // The other CPU gets the token, but no timer.
        let token = bases.collect_and_take(global(0), CpuId(1), at(5)).expect("collected");
        assert!(bases.pop(&token, at(5)).expired.is_none());
        assert!(timer.is_pending(), "it waits");
        assert_eq!(bases.next_global(CpuId(0)), None, "nobody else can do anything about it");
        bases.check();
        if is_cancelled {
            assert_eq!(bases.cancel(timer, at(5)), Cancelled::WasPending);
        }
        let Finished { token, .. } = bases.finish(runs.pop().expect("it ran"), at(6));
        assert_eq!(token.is_some(), !is_cancelled);
        if let Some(token) = token {
            let expired = bases.pop(&token, at(6)).expired.expect("due at once");
            assert_eq!((expired.timer(), expired.expires()), (TimerName::Id(id), Nanos(2 * TICK)));
            let _ = bases.finish(expired, at(6));
            assert!(bases.pop(&token, at(6)).expired.is_none());
        }
        assert!(!timer.is_pending());
        bases.check();
    }
}

/// Goal: one runner per base, until it is taken from it; what is left is overdue for everybody then, and the
/// first runner notices (interleavings I3, I6). Method: three due timers, revoked in the first run.
#[test]
fn a_token_that_was_revoked_hands_out_nothing() {
    let mut bases = bases(2);
    for payload in 0..3 {
        let (_, timer) = add(&mut bases, payload);
        let _ = bases.arm_tick(timer, Tick(payload.into()), global(0), at(0));
    }
    let stuck = bases.collect_and_take(global(0), CpuId(0), at(5)).expect("due");
    let first = bases.pop(&stuck, at(5)).expired.expect("due");
    assert!(bases.collect_and_take(global(0), CpuId(1), at(6)).is_none(), "somebody runs it");
    assert_eq!(bases.next_global(CpuId(0)), None);
    let mut guard = bases.lock(global(0), None);
    guard.is_idle = true;
    assert_eq!((guard.runner(), guard.running()), (Some(CpuId(0)), 1));
    assert!(guard.revoke().must_publish());
    drop(guard);
    assert!(bases.next_global(CpuId(0)).is_some_and(|next| next <= Nanos(5 * TICK)), "overdue");
    let token = bases.collect_and_take(global(0), CpuId(1), at(7)).expect("overdue");
    let second = bases.pop(&token, at(7)).expired.expect("left");
    // The first one comes back: it ends its run and gets nothing.
    let back = bases.finish_and_pop(first, &stuck, at(8)).expect_err("the token was taken back");
    assert!(bases.finish(back, at(8)).token.is_none());
    let third = bases.pop(&token, at(8)).expired.expect("left");
    assert_eq!([second.payload(), third.payload()], [1, 2]);
    let _ = (bases.finish(second, at(8)), bases.finish(third, at(8)));
    assert!(bases.pop(&token, at(8)).expired.is_none());
    assert_eq!(bases.lock(global(0), None).counters.ran_remote, 2);
    bases.check();
}

/// Goal: a runner that stops early leaves the rest to others. Method: release after one of two.
#[test]
fn a_released_token_leaves_the_rest_overdue() {
    let mut bases = bases(1);
    for payload in 0..2 {
        let (_, timer) = add(&mut bases, payload);
        let _ = bases.arm_tick(timer, Tick(1), local(0), at(0));
    }
    let token = bases.collect_and_take(local(0), CpuId(0), at(3)).expect("due");
    let expired = bases.pop(&token, at(3)).expired.expect("due");
    let _ = bases.finish(expired, at(3));
    assert!(bases.release(token, at(3)).is_first);
    assert_eq!(bases.next_local(CpuId(0)), Some(Nanos(2 * TICK)));
    assert_eq!(run_all(&bases, local(0), at(3)), [0], "the last armed ran first");
}

/// Goal: collected timers are pending: they can be cancelled and re-armed until they are handed out. Method:
/// one of each, wheel and exact.
#[test]
fn collected_timers_can_be_cancelled_and_armed_again() {
    let mut bases = bases(1);
    let timers: Vec<_> = (0..3).map(|payload| add(&mut bases, payload).1).collect();
    let exact: Vec<_> = (10..13)
        .map(|payload| {
            let id = bases.add_exact(TimerOptions::new(), payload);
            bases.timer(id).expect("just made")
        })
        .collect();
    for timer in &timers {
        let _ = bases.arm_tick(*timer, Tick(1), global(0), at(0));
    }
    for timer in &exact {
        let _ = bases.arm(*timer, Expiry::at(1500), global(0), at(0));
    }
    let token = bases.collect_and_take(global(0), CpuId(0), at(3)).expect("due");
    assert_eq!(bases.cancel(timers[0], at(3)), Cancelled::WasPending);
    assert_eq!(bases.cancel(exact[0], at(3)), Cancelled::WasPending);
    assert!(bases.arm_tick(timers[1], Tick(7), global(0), at(3)).was_pending);
    assert!(bases.arm(exact[1], Expiry::at(7000), global(0), at(3)).was_pending);
    bases.check();
    let mut ran = Vec::new();
    while let Some(expired) = bases.pop(&token, at(3)).expired {
        ran.push(expired.payload());
        let _ = bases.finish(expired, at(3));
    }
    assert_eq!(ran, [12, 2], "exact ones first");
    assert_eq!(bases.next_global(CpuId(0)), Some(Nanos(7000)));
    assert_eq!(run_all(&bases, global(0), at(8)), [11, 1]);
    bases.check();
}

/// Goal: slack. Method: two exact timers, the second of which may come with the first.
#[test]
fn exact_timers_count_with_their_hard_expiry() {
    let mut bases = bases(1);
    let ids = [Expiry::with_slack(100, 400), Expiry::at(300)].map(|expiry| {
        let id = bases.add_exact(TimerOptions::new(), expiry.soft as u32);
        let timer = bases.timer(id).expect("just made");
        let _ = bases.arm(timer, expiry, local(0), at(0));
        id
    });
    assert_eq!(bases.next_local(CpuId(0)), Some(Nanos(300)));
    let context = Context::on(CpuId(0), Nanos(299));
    assert!(run_all(&bases, local(0), context).is_empty(), "the first in line is not due");
    let context = Context::on(CpuId(0), Nanos(300));
    assert_eq!(run_all(&bases, local(0), context), [300, 100]);
    assert!(ids.iter().all(|id| bases.remove_timer(*id).is_ok()));
}

/// Goal: an arm that became first of an idle base says so, others do not. Method: every kind, two arms.
#[test]
fn an_arm_on_an_idle_base_must_be_published() {
    for kind in BaseKind::ALL {
        let mut bases = bases(2);
        let ((_, one), (_, two)) = (add(&mut bases, 1), add(&mut bases, 2));
        let id = base(1, kind);
        bases.lock(id, None).is_idle = true;
        assert!(bases.arm_tick(one, Tick(10), id, at(0)).change.must_publish());
        let later = bases.arm_tick(two, Tick(11), id, at(0)).change;
        assert_eq!(later, ExpiryChange { was_idle: true, ..ExpiryChange::default() });
        bases.lock(id, None).is_idle = false;
        assert!(!bases.arm_tick(two, Tick(5), id, at(0)).change.must_publish());
    }
}

/// Goal: an arm that says so changes the pinning with the moment, in its one lock hold; an arm that does
/// nothing changes neither. Method: both ways, from the first arm on, within a base and across two.
#[test]
fn pinning_can_be_changed() {
    let mut bases = bases(2);
    let (_, timer) = add(&mut bases, 1);
    let arm = Arm::at(Nanos(5 * TICK));
    for (pinned, floating) in [(local(0), global(0)), (local(1), local(1)), (local(0), global(1))] {
        assert!(!timer.is_pinned());
        assert_eq!(bases.arm(timer, arm.on(pinned.cpu), pinned, at(0)).base, pinned);
        assert!(timer.is_pinned() && !timer.is_deferrable());
        assert_eq!(bases.arm(timer, arm, pinned, at(0)).base, pinned);
        assert!(timer.is_pinned(), "the pinning holds for later arms");
        assert_eq!(bases.arm(timer, arm.floating(), floating, at(0)).base, floating);
    }
    assert!(timer.is_pending() && !timer.is_pinned());
    let later = Arm::reduce(Nanos(9 * TICK)).on(CpuId(1));
    let _ = bases.arm(timer, later, global(1), at(0));
    assert!(!timer.is_pinned(), "the arm did nothing");
}

/// Goal: more stuck runs than records inline. Method: ten timers run at once, all due again, all end.
#[test]
fn many_runs_at_a_time() {
    let mut bases = bases(1);
    let timers: Vec<_> = (0..10).map(|payload| add(&mut bases, payload).1).collect();
    for timer in &timers {
        let _ = bases.arm_tick(*timer, Tick(1), local(0), at(0));
    }
    let (_, runs) = start_all(&bases, local(0), at(2));
    assert_eq!((runs.len(), bases.lock(local(0), None).running()), (10, 10));
    for timer in &timers {
        let _ = bases.arm_tick(*timer, Tick(2), local(0), at(2));
    }
    assert!(start_all(&bases, local(0), at(4)).1.is_empty(), "all of them still run");
    bases.check();
    let mut ran = Vec::new();
    for run in runs {
        let Some(token) = bases.finish(run, at(5)).token else { continue };
        while let Some(expired) = bases.pop(&token, at(5)).expired {
            ran.push(expired.payload());
            assert!(bases.finish(expired, at(5)).token.is_none());
        }
    }
    ran.sort_unstable();
    assert_eq!(ran, Vec::from_iter(0..10));
    assert_eq!(bases.lock(local(0), None).running(), 0);
    bases.check();
}

/// Goal: names of removed timers name nothing; timers in use cannot be removed. Method: remove in every
/// state.
#[test]
fn the_store_keeps_what_is_in_use() {
    use super::super::RemoveError::{Pending, Running, Unknown};
    let mut bases = bases(1);
    let (id, timer) = add(&mut bases, 1);
    let _ = bases.arm_tick(timer, Tick(1), local(0), at(0));
    assert_eq!(bases.remove_timer(id), Err(Pending));
    let (_, mut runs) = start_all(&bases, local(0), at(2));
    assert_eq!(bases.remove_timer(id), Err(Running));
    let _ = bases.finish(runs.pop().expect("due"), at(2));
    assert_eq!(bases.remove_timer(id), Ok(()));
    assert_eq!(bases.remove_timer(id), Err(Unknown));
    let reasons = [Unknown, Pending, Running].map(|error| alloc::format!("{error}"));
    assert_eq!(reasons, ["the timer was removed before", "the timer is pending", "the timer is running"]);
    let (next, _) = add(&mut bases, 2);
    assert_ne!(next, id);
    assert!(bases.timer(id).is_none() && bases.store().payload(id).is_none());
    assert_eq!((bases.store().payload(next), bases.store().len()), (Some(2), 1));
    for payload in 0..1000 {
        add(&mut bases, payload);
    }
    assert_eq!(bases.store().payload(next), Some(2));
}

/// Goal: what tests rely on. Method: the lock of one thread notices a base that is locked twice.
#[test]
#[should_panic(expected = "taken by its holder")]
fn a_base_is_locked_once() {
    let bases = super::Bases::<SequentialLock, u32>::new(1, super::TickLength::default(), Nanos(0));
    let _one = bases.lock(local(0), None);
    let _two = bases.lock(local(0), None);
}
