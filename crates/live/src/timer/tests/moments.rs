//! What each verb leaves behind: the moment that the run is told, what follows it, and who may ask.

use super::{DAY, MS, Still, TICK, taken};
use crate::timer::{Precision, TimerHandle, TimerOptions};
use crate::{Machine, Nanos};
use core::time::Duration;
use quietcore_core::Cancelled;
use quietcore_core::tmigr::CpuState;
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};

/// Goal: a run knows its moment to the nanosecond, whichever verb set it, and a verb that does not move the
/// timer does not change that. Method: moments between ticks; near and far ones that come too late.
#[test]
fn a_run_knows_its_moment_after_any_verb() {
    type Verbs = fn(&TimerHandle, &dyn Fn(u64) -> Nanos);
    let cases: [(&str, Verbs); 6] = [
        ("reduce of an idle timer", |timer, at| {
            assert_eq!(timer.reduce(at(5 * MS)), Ok(false));
        }),
        ("reduce to before", |timer, at| {
            assert_eq!((timer.arm_at(at(9 * MS)), timer.reduce(at(5 * MS))), (Ok(false), Ok(true)));
        }),
        ("reduce to behind", |timer, at| {
            assert_eq!((timer.arm_at(at(5 * MS)), timer.reduce(at(9 * MS))), (Ok(false), Ok(true)));
        }),
        ("reduce to far behind", |timer, at| {
            assert_eq!((timer.arm_at(at(5 * MS)), timer.reduce(at(100 * DAY))), (Ok(false), Ok(true)));
        }),
        ("moved to before", |timer, at| {
            assert_eq!((timer.arm_at(at(9 * MS)), timer.mod_pending(at(5 * MS))), (Ok(false), Ok(true)));
        }),
        ("moved to behind", |timer, at| {
            assert_eq!((timer.arm_at(at(2 * MS)), timer.mod_pending(at(5 * MS))), (Ok(false), Ok(true)));
        }),
    ];
    let still = Still::new();
    let (timer, log) = still.logging(TICK);
    for (number, (what, verbs)) in cases.into_iter().enumerate() {
        let begin = number as u64 * 20 * MS + 1;
        verbs(&timer, &|after| Nanos(still.start + begin + after));
        assert_eq!(timer.deadline(), Some(Nanos(still.start + begin + 5 * MS)), "{what}");
        still.go(begin / MS + 15);
        assert_eq!(taken(&log), [(begin + 6 * MS - 1, begin + 5 * MS, 0)], "{what}");
        assert!(!timer.is_pending(), "{what}");
    }
    still.machine.shutdown();
}

/// Goal: a timer says what it is armed for, how long that is off and what its periods are, whatever its
/// precision. Method: idle, armed once, far, periodic before and after a run, while it runs, cancelled.
#[test]
fn a_timer_says_what_it_is_armed_for() {
    let still = Still::new();
    for precision in [Precision::Coarse, Precision::Tick, Precision::Exact] {
        let (sender, seen) = channel();
        let timer = still.machine.timer(TimerOptions::new().precision(precision), move |run| {
            let armed = run.timer().arm_at(Nanos(run.now().0 + 7)).is_ok();
            sender.send((armed, run.timer().deadline() == Some(Nanos(run.now().0 + 7)))).expect("it is read");
        });
        let now = still.machine.now();
        let after = |nanos: u64| Nanos(now.0 + nanos);
        assert_eq!((timer.deadline(), timer.due_in(), timer.period()), (None, None, None));
        for nanos in [5 * MS + 3, 100 * DAY + 3] {
            timer.arm_at(after(nanos)).expect("it is running");
            assert_eq!(timer.deadline(), Some(after(nanos)), "{precision:?}");
            assert_eq!((timer.due_in(), timer.period()), (Some(Duration::from_nanos(nanos)), None));
        }
        timer.arm_periodic(after(MS + 1), Duration::from_nanos(10 * MS)).expect("it is running");
        assert_eq!(timer.deadline(), Some(after(MS + 1)));
        assert_eq!(timer.period(), Some(Duration::from_nanos(10 * MS)));
        assert!(format!("{timer:?}").contains("period: Some(10ms)"), "{timer:?}");
        assert!(timer.cancel());
        assert_eq!((timer.deadline(), timer.due_in(), timer.period()), (None, None, None));
        timer.arm_at(after(0)).expect("it is running");
        assert_eq!(timer.due_in(), Some(Duration::ZERO));
        still.jump(after(2 * MS));
        assert_eq!(seen.recv(), Ok((true, true)), "{precision:?}");
        timer.cancel();
    }
    let (timer, _log) = still.logging(TICK);
    let first = Nanos(still.machine.now().0 + 3 * MS + 5);
    timer.arm_periodic(first, Duration::from_nanos(10 * MS)).expect("it is running");
    still.jump(Nanos(first.0 + MS));
    assert_eq!(timer.deadline(), Some(Nanos(first.0 + 10 * MS)), "the next one");
    still.machine.shutdown();
    assert_eq!(timer.deadline(), None);
}

/// Goal: no verb runs a coarse timer early that was idle, and a period that was moved beyond the wheel's
/// reach is one still. Method: 100 days; the machine is played at every day.
#[test]
fn far_moves_are_kept() {
    let still = Still::new();
    let at = |day: u64| Nanos(still.start + day * DAY);
    let (idle, idle_log) = still.logging(TimerOptions::new());
    let (period, period_log) = still.logging(TimerOptions::new());
    assert_eq!(idle.reduce(at(100)), Ok(false));
    period.arm_periodic(at(1), Duration::from_nanos(10 * DAY)).expect("it is running");
    assert_eq!(period.mod_pending(at(100)), Ok(true));
    for day in 1..100 {
        still.jump(at(day));
        assert!(taken(&idle_log).is_empty() && taken(&period_log).is_empty(), "day {day}");
    }
    (100..135).for_each(|day| still.jump(at(day)));
    let days = |log| taken(log).iter().map(|run| run.1 / DAY).collect::<Vec<_>>();
    assert_eq!(days(&idle_log), [100]);
    assert_eq!(days(&period_log), [100, 111, 121, 131], "the multiples of the first day go on");
    still.machine.shutdown();
}

/// Goal: a period of no length is one of a tick. Method: three ticks.
#[test]
fn a_period_of_nothing_is_one_run_per_tick() {
    let still = Still::new();
    let (timer, log) = still.logging(TICK);
    timer.arm_periodic(still.at(1), Duration::ZERO).expect("it is running");
    still.go(3);
    let runs: Vec<_> = taken(&log).iter().map(|run| run.0 / MS).collect();
    assert_eq!(runs, [1, 2, 3]);
    timer.cancel();
    still.machine.shutdown();
}

/// Goal: whatever takes a period out ends the periods, too. Method: each such verb, then an arm that leaves
/// periods as they are.
#[test]
fn whatever_cancels_ends_the_periods() {
    type Cancel = fn(&TimerHandle);
    let cancel: Cancel = |timer| assert!(timer.cancel());
    let try_cancel: Cancel = |timer| assert_eq!(timer.try_cancel(), Cancelled::WasPending);
    let cancel_sync: Cancel = |timer| assert_eq!(timer.cancel_sync(), Ok(true));
    let verbs = [("cancel", cancel), ("try_cancel", try_cancel), ("cancel_sync", cancel_sync)];
    let still = Still::new();
    let (timer, log) = still.logging(TICK);
    for (number, (what, cancel)) in verbs.into_iter().enumerate() {
        let begin = number as u64 * 50;
        timer.arm_periodic(still.at(begin + 5), Duration::from_millis(5)).expect("it is running");
        cancel(&timer);
        assert_eq!(timer.reduce(still.at(begin + 10)), Ok(false), "{what}");
        still.go(begin + 40);
        assert_eq!(taken(&log), [((begin + 10) * MS, (begin + 10) * MS, 0)], "{what}");
    }
    still.machine.shutdown();
}

/// Goal: a callback that releases its timer ends the periods. Method: of a handle, in its second run.
#[test]
fn a_release_ends_the_periods() {
    let still = Still::new();
    let (sender, ran) = channel();
    let mut runs = 0;
    let timer = still.machine.timer(TICK, move |run| {
        runs += 1;
        if runs == 2 {
            assert_eq!(run.timer().arm_at(Nanos(run.now().0 + MS)), Ok(false));
            run.release();
        }
        sender.send(()).expect("the test waits");
    });
    timer.arm_periodic(still.at(1), Duration::from_millis(1)).expect("it is running");
    still.go(10);
    assert_eq!((ran.try_iter().count(), timer.is_pending()), (2, false));
    still.machine.shutdown();
}

/// Goal: shutting a timer down says whether it was pending. Method: one that is.
#[test]
fn a_shutdown_says_what_was_pending() {
    let still = Still::new();
    let (timer, log) = still.logging(TICK);
    timer.arm_at(still.at(5)).expect("it is running");
    assert_eq!((timer.shutdown(), timer.shutdown()), (true, false));
    still.go(10);
    assert_eq!(taken(&log), []);
    still.machine.shutdown();
}

/// Goal: after the end of its machine no period is armed. Method: the callback of a period ends the machine.
#[test]
fn no_period_follows_the_end_of_the_machine() {
    let still = Still::new();
    let machine = still.machine;
    let timer = machine.timer(TICK, move |_| machine.shutdown());
    timer.arm_periodic(still.at(1), Duration::from_millis(1)).expect("it is running");
    still.go(2);
    assert!(!timer.is_pending());
    machine.shutdown();
}

/// Goal: in a callback, too, a timer without a run can be cancelled, and the answer is the same as elsewhere.
/// Method: one timer's callback cancels another one, twice.
#[test]
fn a_callback_cancels_what_does_not_run() {
    let still = Still::new();
    let (other, log) = still.logging(TICK);
    let (sender, cancelled) = channel();
    let same = other.clone();
    let timer = still.machine.timer(TICK, move |_| {
        sender.send([(); 2].map(|()| same.cancel_sync())).expect("the test waits");
    });
    other.arm_at(still.at(5)).expect("it is running");
    timer.arm_at(still.at(1)).expect("it is running");
    still.go(10);
    assert_eq!((cancelled.try_recv(), taken(&log)), (Ok([Ok(true), Ok(false)]), vec![]));
    still.machine.shutdown();
}

/// Goal: a run's moment is that at which it begins, and what a slow callback skips is counted. Method: a
/// callback that takes three and a half periods; another one of the same base is due after
/// it, in the same turn.
#[test]
fn a_slow_callback_is_seen_by_what_follows() {
    let still = Still::new();
    let machine = still.machine;
    let (sender, ran) = channel();
    let slow = machine.timer(TICK.deferrable(), move |run| {
        sender.send(run.overruns()).expect("the test waits");
        machine.clock.freeze(Nanos(run.now().0 + 35 * MS));
    });
    let (other, log) = still.logging(TICK.deferrable());
    slow.arm_periodic(still.at(10), Duration::from_millis(10)).expect("it is running");
    other.arm_at(still.at(11)).expect("it is running");
    machine.clock.freeze(still.at(11));
    machine.drive_spare(still.at(11));
    assert_eq!(taken(&log), [(46 * MS, 11 * MS, 0)]);
    machine.clock.freeze(still.at(50));
    machine.drive_spare(still.at(50));
    assert_eq!(ran.try_iter().collect::<Vec<_>>(), [0, 3]);
    slow.cancel();
    machine.shutdown();
}

/// Goal: without lanes threads arm where they are, so that those on other CPUs need not wait for them; what
/// is deferrable waits where the helper looks anyway; exact ones are never deferred. Method: on whose account
/// a run of each is.
#[test]
fn without_lanes_threads_arm_where_they_are() {
    let exact = TimerOptions::new().precision(Precision::Exact);
    for (options, account) in [(TICK, (0, 1)), (TICK.deferrable(), (1, 0)), (exact.deferrable(), (0, 1))] {
        let still = Still::new();
        let (timer, _log) = still.logging(options);
        timer.arm_at(still.at(5)).expect("it is running");
        still.go(10);
        let metrics = still.machine.metrics();
        let ran = (metrics.sum(|cpu| cpu.ran_own), metrics.sum(|cpu| cpu.ran_for_others));
        assert_eq!(ran, account, "{options:?}");
        still.machine.shutdown();
    }
}

/// Goal: the destructor of a closure is user code: when it panics, that is counted, and the thread goes on.
/// Method: a run drops the last handle of its own timer; then another timer.
#[test]
fn a_closure_that_panics_when_it_is_dropped_is_counted() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("this message belongs to a test");
        }
    }
    let still = Still::new();
    let own = Arc::new(OnceLock::<std::sync::Mutex<Option<TimerHandle>>>::new());
    let (inside, bomb) = (Arc::clone(&own), Bomb);
    let timer = still.machine.timer(TICK, move |_| {
        let _bomb = &bomb;
        drop(inside.get().expect("it was set").lock().expect("no panic").take());
    });
    timer.arm_at(still.at(1)).expect("it is running");
    assert!(own.set(std::sync::Mutex::new(Some(timer))).is_ok());
    still.go(3);
    assert_eq!(still.panics(), 1);
    let (other, log) = still.logging(TICK);
    other.arm_at(still.at(5)).expect("it is running");
    still.go(6);
    assert_eq!(taken(&log).len(), 1);
    still.machine.shutdown();
}

/// Goal: a helper with nothing to do sleeps. Method: its turns, while this thread waits for a timer.
#[test]
fn the_helper_sleeps_until_something_is_due() {
    let machine = Machine::start().expect("it starts");
    let (sender, ran) = channel();
    let options = TimerOptions::new().precision(Precision::Exact);
    let timer = machine.timer(options, move |_| sender.send(()).expect("the test waits"));
    timer.arm_after(Duration::from_millis(200)).expect("it is running");
    ran.recv_timeout(Duration::from_secs(20)).expect("it runs");
    let turns = machine.metrics().sum(|cpu| cpu.turns);
    assert!(turns < 100, "{turns} turns for one timer");
    machine.shutdown();
}

/// Goal: while the helper runs callbacks its CPU counts as awake, so that what others arm meanwhile asks for
/// no alarm; else it sleeps. Method: what the hierarchy has, before, in and after a callback.
#[test]
fn the_helper_is_awake_in_callbacks() {
    let still = Still::new();
    let machine = still.machine;
    let state = move || machine.core.hierarchy().cpu_state(machine.spare);
    let (sender, seen) = channel();
    let timer = machine.timer(TICK, move |_| sender.send(state()).expect("the test waits"));
    timer.arm_at(still.at(50)).expect("it is running");
    still.go(48);
    assert_eq!(state(), CpuState::Parked);
    still.go(52);
    assert_eq!((seen.try_recv(), state()), (Ok(CpuState::Awake), CpuState::Parked));
    machine.shutdown();
}
