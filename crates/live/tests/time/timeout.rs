//! Futures with a deadline.

use crate::scene::{MILLI, NANO, Stopped, Woken, check_books, poll};
use core::future::{pending, poll_fn, ready};
use core::pin::pin;
use core::task::{Poll, Waker};
use quietcore_live::time::error::Elapsed;
use quietcore_live::time::{Duration, Instant, Precision, timeout, timeout_at};
use std::io;

/// Goal: a future that is ready costs no timer, even if its deadline is over. Method: the count of arms.
#[test]
fn a_future_that_is_ready_arms_nothing() {
    let scene = Stopped::new();
    let now = Instant::now();
    for deadline in [now - MILLI, now, now + MILLI] {
        assert_eq!(poll(pin!(timeout_at(deadline, ready(7))), Waker::noop()), Poll::Ready(Ok(7)));
    }
    assert_eq!(poll(pin!(timeout(MILLI, ready(7))), Waker::noop()), Poll::Ready(Ok(7)));
    assert_eq!(scene.machine.metrics().sum(|cpu| cpu.bases.armed), 0);
}

/// Goal: at the deadline, and not before, a future that is not ready is given up. Method: the clock stops
/// before it and at it.
#[test]
fn a_future_that_takes_too_long() {
    let scene = Stopped::new();
    for precision in [Precision::Tick, Precision::Exact] {
        let (woken, waker) = Woken::new();
        let mut limited = pin!(timeout(MILLI * 300, pending::<()>()).with_precision(precision));
        assert_eq!(poll(limited.as_mut(), &waker), Poll::Pending);
        scene.advance(MILLI * 300 - NANO);
        assert_eq!((poll(limited.as_mut(), &waker), woken.count()), (Poll::Pending, 0), "{precision:?}");
        scene.advance(NANO);
        assert_eq!(woken.count(), 1, "{precision:?}");
        let Poll::Ready(Err(elapsed)) = poll(limited, &waker) else { panic!("{precision:?}: late") };
        assert_eq!(io::Error::from(elapsed).kind(), io::ErrorKind::TimedOut);
    }
}

/// Goal: a future that becomes ready first wins, also when both are, and its timer goes. Method: ready at the
/// third poll, with the deadline before that poll and after it.
#[test]
fn the_future_comes_first() {
    let scene = Stopped::new();
    for millis in [1, 9] {
        let mut polls = 0;
        let slow = poll_fn(|_| {
            polls += 1;
            if polls == 3 { Poll::Ready(polls) } else { Poll::Pending }
        });
        let mut limited = pin!(timeout(MILLI * 5, slow));
        assert_eq!(poll(limited.as_mut(), Waker::noop()), Poll::Pending);
        assert_eq!(poll(limited.as_mut(), Waker::noop()), Poll::Pending);
        scene.advance(MILLI * millis);
        assert_eq!(poll(limited, Waker::noop()), Poll::Ready(Ok(3)), "after {millis} ms");
    }
    check_books(scene.machine);
}

/// Goal: a duration that does not fit is no limit. Method: the longest, over forty years.
#[test]
fn a_limit_that_does_not_fit() {
    let scene = Stopped::new();
    let mut limited = pin!(timeout(Duration::MAX, pending::<()>()));
    assert_eq!(poll(limited.as_mut(), Waker::noop()), Poll::Pending);
    scene.advance(Duration::from_secs(40 * 365 * 24 * 60 * 60));
    assert_eq!(poll(limited, Waker::noop()), Poll::<Result<(), Elapsed>>::Pending);
}

/// Goal: without a machine there is a panic that says what to do. Method: a thread that has none.
#[test]
fn without_a_machine() {
    let thread = std::thread::spawn(|| drop(timeout(MILLI, ready(()))));
    let panic = thread.join().expect_err("it panics");
    let text = panic.downcast_ref::<String>().map_or("", String::as_str);
    let text = panic.downcast_ref::<&str>().copied().unwrap_or(text);
    assert!(text.contains("no current quietcore machine"), "{text}");
}
