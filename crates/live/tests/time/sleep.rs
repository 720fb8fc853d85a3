//! When a sleep is ready.

use crate::scene::{MICRO, MILLI, NANO, Stopped, Woken, check_books, poll};
use core::future::Future;
use core::pin::pin;
use core::task::{Poll, Waker};
use quietcore_live::time::{Duration, Instant, Precision, Sleep, sleep, sleep_until};
use quietcore_live::{Machine, OnPanic};
use std::panic::{AssertUnwindSafe, catch_unwind};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Durations around the levels of a wheel, and beside edges of ticks.
fn durations() -> impl Iterator<Item = Duration> {
    let ticks = [1_u32, 2, 3, 62, 63, 64, 65, 503, 504, 512, 4_031, 4_032, 32_255, 32_256, 100_000, 300_000];
    ticks.into_iter().flat_map(|ticks| {
        let whole = MILLI * ticks;
        [whole - NANO, whole, whole + NANO, whole + 250 * MICRO, whole - 250 * MICRO]
    })
}

/// The first edge of a tick that is not before `moment`, of a machine whose clock showed an edge at `start`.
fn edge(moment: Instant, start: Instant) -> Instant {
    let ticks = (moment - start).as_nanos().div_ceil(MILLI.as_nanos());
    start + MILLI * u32::try_from(ticks).expect("a few minutes")
}

/// Goal: no sleep is early, and each is as late as its precision says; one wake; coarse ones are not
/// moved, so some of them are later than precise ones. Method: durations around the
/// levels of the wheel; the clock jumps to the nanosecond before each moment that matters, and to it.
#[test]
fn never_early_and_no_later_than_promised() {
    let scene = Stopped::new();
    let mut later = 0;
    for precision in [Precision::Coarse, Precision::Tick, Precision::Exact] {
        for duration in durations() {
            let start = edge(Instant::now(), Instant::from(quietcore_live::Nanos(0)));
            scene.advance_to(start);
            let (woken, waker) = Woken::new();
            let mut nap = pin!(sleep(duration).with_precision(precision));
            let deadline = nap.deadline();
            assert_eq!(deadline - start, duration);
            let latest = match precision {
                Precision::Coarse => edge(deadline + duration / 7, start) + MILLI,
                Precision::Tick => edge(deadline, start),
                _ => deadline,
            };
            let at = format!("{precision:?} {duration:?}");
            assert_eq!(poll(nap.as_mut(), &waker), Poll::Pending, "{at}");
            scene.advance_to(deadline - NANO);
            assert_eq!((poll(nap.as_mut(), &waker), woken.count()), (Poll::Pending, 0), "{at}: early");
            if precision == Precision::Tick && latest > deadline {
                scene.advance_to(latest - NANO);
                assert_eq!(woken.count(), 0, "{at}: between ticks");
            }
            assert!(!nap.is_elapsed(), "{at}");
            if precision == Precision::Coarse {
                scene.advance_to(edge(deadline, start));
                later += u32::from(!nap.is_elapsed());
            }
            scene.advance_to(latest);
            assert_eq!((nap.is_elapsed(), woken.count()), (true, 1), "{at}: late");
            assert_eq!(poll(nap.as_mut(), &waker), Poll::Ready(()), "{at}");
            assert_eq!(poll(nap.as_mut(), &waker), Poll::Ready(()), "{at}: stays ready");
            assert_eq!(woken.count(), 1, "{at}");
        }
    }
    assert!(later > 10, "{later} of the coarse ones were later than a precise one would be");
    check_books(scene.machine);
}

/// Goal: a deadline that is over is found at the first poll, without a timer. Method: deadlines up to now.
#[test]
fn deadlines_that_are_over() {
    let scene = Stopped::new();
    let now = Instant::now();
    for deadline in [now, now - NANO, now - DAY] {
        for precision in [Precision::Coarse, Precision::Tick, Precision::Exact] {
            let mut nap = pin!(sleep_until(deadline).with_precision(precision));
            assert!(!nap.is_elapsed(), "it was not polled");
            assert_eq!(poll(nap.as_mut(), Waker::noop()), Poll::Ready(()), "{deadline:?} {precision:?}");
            assert!(nap.is_elapsed());
        }
    }
    assert_eq!(poll(pin!(sleep(Duration::ZERO)), Waker::noop()), Poll::Ready(()));
    assert_eq!(scene.machine.metrics().sum(|cpu| cpu.bases.armed), 0);
}

/// Goal: the first poll is not early either. Method: it comes a nanosecond before the deadline.
#[test]
fn a_deadline_a_nanosecond_away_is_not_over() {
    let _scene = Stopped::new();
    for precision in [Precision::Coarse, Precision::Tick, Precision::Exact] {
        let mut nap = pin!(sleep_until(Instant::now() + NANO).with_precision(precision));
        assert_eq!(poll(nap.as_mut(), Waker::noop()), Poll::Pending, "{precision:?}");
    }
}

/// Goal: a task whose sleeps are all over gives way once in 129. Method: one that waits, so that the count
/// begins again, and 300 that are over.
#[test]
fn the_129th_in_a_row_gives_way() {
    let _scene = Stopped::new();
    assert!(poll(pin!(sleep(MILLI)), Waker::noop()).is_pending());
    let (woken, waker) = Woken::new();
    let gave_way: Vec<u32> =
        (1..=300).filter(|_| poll(pin!(sleep(Duration::ZERO)), &waker).is_pending()).collect();
    assert_eq!((gave_way, woken.count()), (vec![129, 258], 2));
}

/// Goal: a coarse sleep whose timer ran at its very deadline is over. Method: a delay that no bucket rounds.
#[test]
fn at_its_deadline_a_coarse_sleep_is_over() {
    let scene = Stopped::new();
    let (woken, waker) = Woken::new();
    let mut nap = pin!(sleep(MILLI * 3).with_precision(Precision::Coarse));
    assert_eq!(poll(nap.as_mut(), &waker), Poll::Pending);
    scene.advance(MILLI * 3);
    assert_eq!((woken.count(), nap.is_elapsed()), (1, true));
}

/// Goal: deadlines beyond the wheel's longest delay, 12 days, are kept, and woken for as often as a task
/// polls. Method: 100 days in steps of five, polling after each.
#[test]
fn deadlines_beyond_the_wheel() {
    for precision in [Precision::Coarse, Precision::Tick, Precision::Exact] {
        let scene = Stopped::new();
        let (woken, waker) = Woken::new();
        let mut nap = pin!(sleep(DAY * 100).with_precision(precision));
        for day in (0..100).step_by(5) {
            assert_eq!(poll(nap.as_mut(), &waker), Poll::Pending, "{precision:?}, day {day}");
            scene.advance(DAY * 5);
            assert_eq!(
                nap.is_elapsed(),
                day == 95 && precision != Precision::Coarse,
                "{precision:?}, day {day}"
            );
        }
        scene.advance(if precision == Precision::Coarse { DAY * 13 } else { Duration::ZERO });
        assert!(nap.is_elapsed() && woken.count() > 0, "{precision:?}");
        assert_eq!(poll(nap.as_mut(), &waker), Poll::Ready(()), "{precision:?}");
    }
}

/// Goal: the end of time is a deadline like others. Method: the last moments, polled and dropped.
#[test]
fn the_end_of_time() {
    let scene = Stopped::new();
    let last = Instant::from(quietcore_live::Nanos(u64::MAX));
    for precision in [Precision::Coarse, Precision::Tick, Precision::Exact] {
        for deadline in [last, last - NANO, last - MILLI] {
            let mut nap = pin!(sleep_until(deadline).with_precision(precision));
            assert_eq!(poll(nap.as_mut(), Waker::noop()), Poll::Pending, "{precision:?} {deadline:?}");
        }
    }
    assert!(sleep(Duration::MAX).deadline() > Instant::now() + DAY * 365 * 29);
    check_books(scene.machine);
}

/// Goal: the waker of the last poll is woken, and no other. Method: three polls with three wakers.
#[test]
fn the_last_waker_counts() {
    let scene = Stopped::new();
    let mut nap = pin!(sleep(MILLI * 5));
    let wakers = [Woken::new(), Woken::new(), Woken::new()];
    for (_, waker) in &wakers {
        assert_eq!(poll(nap.as_mut(), waker), Poll::Pending);
    }
    scene.advance(MILLI * 5);
    assert_eq!(wakers.map(|(woken, _)| woken.count()), [0, 0, 1]);
    assert_eq!(scene.machine.metrics().sum(|cpu| cpu.bases.armed), 1, "a poll that waits again arms nothing");
}

/// Goal: who waits is told when no thread will wake it, and may drop what it has. Method: polls after a
/// shutdown, of sleeps in every state.
#[test]
fn a_machine_that_was_shut_down() {
    let machine =
        Machine::builder().on_panic(OnPanic::Continue).start().expect("threads and timers can be had");
    let entered = machine.enter();
    let mut waiting = pin!(sleep(DAY));
    assert_eq!(poll(waiting.as_mut(), Waker::noop()), Poll::Pending);
    let mut over = pin!(sleep(Duration::ZERO));
    assert_eq!(poll(over.as_mut(), Waker::noop()), Poll::Ready(()));
    let (woken, waker) = Woken::new();
    let mut expired = pin!(sleep(MILLI));
    assert_eq!(poll(expired.as_mut(), &waker), Poll::Pending);
    while woken.count() == 0 {
        std::thread::yield_now();
    }
    machine.shutdown();
    assert_eq!(poll(expired, Waker::noop()), Poll::Ready(()), "its time had come");
    let fresh = pin!(sleep(DAY));
    assert_eq!(poll(over, Waker::noop()), Poll::Ready(()), "what is over is over");
    for nap in [waiting, fresh] {
        let mut nap = nap;
        let text = message(|| _ = poll(nap.as_mut(), Waker::noop()));
        assert!(text.contains("shut down"), "{text}");
        nap.as_mut().reset(Instant::now() + DAY);
        assert!(message(|| _ = poll(nap.as_mut(), Waker::noop())).contains("shut down"));
    }
    drop(entered);
}

/// Goal: a task that waits is woken by the end of its machine, once: no thread will wake it any more. Method:
/// a sleep that waits, and after the end another deadline.
#[test]
fn the_end_wakes() {
    for precision in [Precision::Coarse, Precision::Tick, Precision::Exact] {
        let machine = Machine::start().expect("threads and timers can be had");
        let entered = machine.enter();
        let (woken, waker) = Woken::new();
        let mut nap = pin!(sleep(DAY).with_precision(precision));
        assert_eq!(poll(nap.as_mut(), &waker), Poll::Pending);
        drop(entered);
        machine.shutdown();
        assert_eq!((woken.count(), nap.is_elapsed()), (1, false), "{precision:?}");
        nap.as_mut().reset(Instant::now() + DAY * 2);
        assert_eq!(woken.count(), 1, "{precision:?}");
        assert!(message(|| _ = poll(nap.as_mut(), &waker)).contains("shut down"), "{precision:?}");
    }
}

/// What it panics with.
fn message(act: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(act)).expect_err("it panics");
    panic.downcast_ref::<String>().expect("a text with values").clone()
}

/// Goal: what tokio's sleeps are, these are, too. Method: the compiler; a sleep in a task that moves.
#[test]
fn sleeps_are_send_and_sync() {
    fn takes<T: Future<Output = ()> + Send + Sync + 'static>(_: fn(Duration) -> T) {}
    takes::<Sleep>(sleep);
    let scene = Stopped::new();
    let mut nap = Box::pin(sleep(MILLI));
    assert_eq!(poll(nap.as_mut(), Waker::noop()), Poll::Pending);
    let elsewhere = std::thread::spawn(move || {
        let (woken, waker) = Woken::new();
        assert_eq!(poll(nap.as_mut(), &waker), Poll::Pending);
        (nap, woken)
    });
    let (nap, woken) = elsewhere.join().expect("no panic");
    scene.advance(MILLI);
    assert_eq!((woken.count(), nap.is_elapsed()), (1, true));
    assert!(format!("{nap:?}").contains("is_elapsed: true"), "{nap:?}");
}
