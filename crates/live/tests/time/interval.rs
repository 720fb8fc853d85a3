//! Periods: phase, missed ticks, resets.

use crate::scene::{MICRO, MILLI, Stopped, Woken, poll};
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use quietcore_live::time::MissedTickBehavior::{Burst, Delay, Skip};
use quietcore_live::time::{Duration, Instant, Interval, Precision, interval, interval_at};

type Reset = fn(&mut Interval);
type Act = fn(&mut Interval) -> Option<Instant>;

fn next(ticks: &mut Interval) -> Option<Instant> {
    match ticks.poll_tick(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(due) => Some(due),
        Poll::Pending => None,
    }
}

/// Goal: ticks are multiples of the period, however late each is taken. Method: a thousand ticks, each taken
/// up to a period late.
#[test]
fn the_phase_is_kept() {
    let scene = Stopped::new();
    let start = Instant::now();
    let mut ticks = interval(MILLI * 10);
    for number in 0..1_000_u32 {
        let due = start + MILLI * 10 * number;
        scene.advance_to(due + MICRO * (number * 7 % 10_000));
        assert_eq!(next(&mut ticks), Some(due), "tick {number}");
        assert_eq!(next(&mut ticks), None, "tick {number}");
    }
    assert_eq!(ticks.overruns(), 0);
}

/// Goal: what comes after missed ticks, by behaviour. Method: the tick of 10 ms is taken at 47.
#[test]
fn ticks_that_were_missed() {
    for (behavior, expected, overruns) in
        [(Skip, [50, 60, 70], 3), (Burst, [20, 30, 40], 0), (Delay, [57, 67, 77], 3)]
    {
        let scene = Stopped::new();
        let start = Instant::now();
        let mut ticks = interval_at(start + MILLI * 10, MILLI * 10);
        ticks.set_missed_tick_behavior(behavior);
        scene.advance(MILLI * 47);
        assert_eq!(next(&mut ticks), Some(start + MILLI * 10));
        for millis in expected {
            scene.advance_to((start + MILLI * millis).max(Instant::now()));
            assert_eq!(next(&mut ticks), Some(start + MILLI * millis), "{behavior:?}");
        }
        assert_eq!(ticks.overruns(), overruns, "{behavior:?}");
    }
}

/// Goal: a tick wakes its task once, and taking it arms nothing. Method: wakes over ten periods; and no
/// thread polls after the last.
#[test]
fn a_tick_that_was_taken_wakes_nobody() {
    let scene = Stopped::new();
    let (woken, waker) = Woken::new();
    let mut ticks = interval(MILLI * 3);
    for number in 0..10 {
        assert_eq!(woken.count(), number);
        assert!(poll(pin!(ticks.tick()), &waker).is_ready());
        if number == 9 {
            break;
        }
        assert!(poll(pin!(ticks.tick()), &waker).is_pending());
        scene.advance(MILLI * 3);
    }
    scene.advance(MILLI * 100);
    assert_eq!(woken.count(), 9);
}

/// Goal: every way to set the next tick; the period counts from there. Method: each, on an interval that
/// waits.
#[test]
fn resets() {
    let scene = Stopped::new();
    let ways: [(Reset, u32); 4] = [
        (Interval::reset, 10),
        (Interval::reset_immediately, 0),
        (|ticks| ticks.reset_after(MILLI * 4), 4),
        (|ticks| ticks.reset_at(Instant::now() + MILLI * 70), 70),
    ];
    for (reset, millis) in ways {
        for precision in [Precision::Tick, Precision::Exact] {
            let mut ticks = interval(MILLI * 10).with_precision(precision);
            assert!(next(&mut ticks).is_some() && next(&mut ticks).is_none());
            scene.advance(MILLI * 6);
            let expected = Instant::now() + MILLI * millis;
            reset(&mut ticks);
            for due in [expected, expected + MILLI * 10, expected + MILLI * 20] {
                if due > Instant::now() {
                    scene.advance_to(due - MICRO);
                    assert_eq!(next(&mut ticks), None, "{precision:?} {millis} ms");
                    scene.advance_to(due);
                }
                assert_eq!(next(&mut ticks), Some(due), "{precision:?} {millis} ms");
            }
        }
    }
}

/// Goal: the longest period is no trouble. Method: a tick, and every reset.
#[test]
fn the_longest_period() {
    let _scene = Stopped::new();
    let mut ticks = interval(Duration::MAX);
    assert!(next(&mut ticks).is_some());
    assert_eq!(next(&mut ticks), None);
    ticks.reset();
    ticks.reset_after(Duration::MAX);
    assert_eq!((next(&mut ticks), ticks.period()), (None, Duration::MAX));
}

/// Goal: a period of zero is refused before anything else. Method: on a thread without a machine.
#[test]
fn a_period_of_zero() {
    for make in [|| interval(Duration::ZERO), || interval_at(Instant::now(), Duration::ZERO)] {
        let panic = std::panic::catch_unwind(make).expect_err("it panics");
        let text = panic.downcast_ref::<&str>().copied().unwrap_or_default();
        assert!(text.contains("must not be zero"), "{text}");
    }
}

/// Goal: an interval goes by the clock of its own machine, whichever thread polls it. Method: on a machine
/// whose time is moved, the tick of 10 s is taken at 47 s by a thread without a machine, and reset there.
#[test]
fn the_clock_is_its_machines() {
    let scene = Stopped::new();
    let start = Instant::now();
    let mut ticks = interval(MILLI * 10_000);
    assert_eq!(next(&mut ticks), Some(start));
    scene.advance_to(start + MILLI * 47_000);
    let elsewhere = |ticks: &mut Interval, act: Act| {
        std::thread::scope(|scope| scope.spawn(|| act(ticks)).join().expect("no panic"))
    };
    assert_eq!(elsewhere(&mut ticks, next), Some(start + MILLI * 10_000));
    assert_eq!(ticks.overruns(), 3);
    scene.advance_to(start + MILLI * 50_000);
    assert_eq!(next(&mut ticks), Some(start + MILLI * 50_000));
    let resets: [(Act, u32); 2] = [
        (
            |ticks| {
                ticks.reset_immediately();
                None
            },
            50_000,
        ),
        (
            |ticks| {
                ticks.reset_after(MILLI * 2_000);
                None
            },
            52_000,
        ),
    ];
    for (reset, due) in resets {
        let _ = elsewhere(&mut ticks, reset);
        scene.advance_to(start + MILLI * due);
        assert_eq!(next(&mut ticks), Some(start + MILLI * due));
    }
}
