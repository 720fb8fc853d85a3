//! Streams on a clock that the test moves.

use crate::scene::{MILLI, NANO, Stopped, Woken};
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use futures_util::stream::{self, Stream};
use quietcore_live::time::{
    Duration, FutureExt, Instant, IntervalStream, StreamExt, error::Elapsed, interval_at,
};
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

fn next<S: Stream>(stream: Pin<&mut S>, waker: &Waker) -> Poll<Option<S::Item>> {
    stream.poll_next(&mut Context::from_waker(waker))
}

/// Hands out what it was given; `None` ends it.
#[derive(Clone, Default)]
struct Given(Arc<Mutex<VecDeque<Option<u32>>>>);

impl Given {
    fn give(&self, item: Option<u32>) {
        self.0.lock().expect("no panic").push_back(item);
    }
}

impl Stream for Given {
    type Item = u32;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<u32>> {
        self.0.lock().expect("no panic").pop_front().map_or(Poll::Pending, Poll::Ready)
    }
}

/// Goal: an interval as a stream ticks as the interval does, and is one again. Method: ticks that are missed.
#[test]
fn ticks_are_a_stream() {
    let scene = Stopped::new();
    let start = Instant::now();
    let mut ticks = IntervalStream::new(interval_at(start, MILLI * 10));
    assert_eq!(ticks.size_hint(), (usize::MAX, None));
    let (woken, waker) = Woken::new();
    assert_eq!(next(Pin::new(&mut ticks), &waker), Poll::Ready(Some(start)));
    assert_eq!(next(Pin::new(&mut ticks), &waker), Poll::Pending);
    scene.advance(MILLI * 35);
    assert_eq!(woken.count(), 1);
    assert_eq!(next(Pin::new(&mut ticks), &waker), Poll::Ready(Some(start + MILLI * 10)));
    assert_eq!((ticks.as_ref().overruns(), ticks.as_mut().period()), (2, MILLI * 10));
    assert_eq!(ticks.into_inner().overruns(), 2);
}

/// Goal: a stream whose next item does not come in time says so once, goes on, and the time counts from its
/// last item. Method: items before the deadline, none, an item after it, the end; the clock stops before
/// each moment and at it.
#[test]
fn a_stream_that_is_slow_says_so() {
    let scene = Stopped::new();
    let given = Given::default();
    let mut limited = pin!(StreamExt::timeout(given.clone(), MILLI * 10));
    let (woken, waker) = Woken::new();
    let mut poll = || next(limited.as_mut(), &waker);
    assert!(poll().is_pending());
    scene.advance(MILLI * 9);
    given.give(Some(1));
    assert!(matches!(poll(), Poll::Ready(Some(Ok(1)))));
    assert!(poll().is_pending());
    scene.advance(MILLI * 10 - NANO);
    assert!(poll().is_pending() && woken.count() == 0);
    scene.advance(NANO);
    assert_eq!(woken.count(), 1);
    assert!(matches!(poll(), Poll::Ready(Some(Err(Elapsed { .. })))));
    assert!(poll().is_pending(), "once");
    scene.advance(MILLI * 100);
    assert!(poll().is_pending());
    given.give(Some(2));
    assert!(matches!(poll(), Poll::Ready(Some(Ok(2)))));
    scene.advance(MILLI * 11);
    assert!(matches!(poll(), Poll::Ready(Some(Err(_)))), "it counts again");
    given.give(None);
    assert!(matches!(poll(), Poll::Ready(None)));
    let hint = |items: usize| StreamExt::timeout(stream::iter(0..items), MILLI).size_hint();
    assert_eq!((hint(0), hint(3)), ((0, Some(1)), (3, Some(7))));
}

/// Goal: items come at most one in the time that was given, the first at once; nothing is polled in between.
/// Method: a stream that is always ready, the clock before each moment and at it; a span of zero; the end.
#[test]
fn a_stream_is_slowed_down() {
    let scene = Stopped::new();
    let mut slow = pin!(stream::iter(0..3).throttle(MILLI * 10));
    assert_eq!(slow.size_hint(), (3, Some(3)));
    for item in 0..3 {
        assert_eq!(next(slow.as_mut(), Waker::noop()), Poll::Ready(Some(item)));
        assert_eq!(next(slow.as_mut(), Waker::noop()), Poll::Pending);
        assert_eq!(slow.get_ref().size_hint().0, 2 - item, "it is not polled");
        scene.advance(MILLI * 10 - NANO);
        assert_eq!(next(slow.as_mut(), Waker::noop()), Poll::Pending);
        scene.advance(NANO);
    }
    assert_eq!(next(slow.as_mut(), Waker::noop()), Poll::Ready(None));
    let mut fast = pin!(stream::iter(0..3).throttle(Duration::ZERO));
    for item in 0..3 {
        assert_eq!(next(fast.as_mut(), Waker::noop()), Poll::Ready(Some(item)));
    }
    let mut taken = stream::iter(0..3).throttle(MILLI);
    assert_eq!(next(Pin::new(taken.get_mut()), Waker::noop()), Poll::Ready(Some(0)));
    assert_eq!(taken.into_inner().size_hint().0, 2);
}

/// Goal: deadlines as methods are those of the functions. Method: one by a span, one by a moment.
#[test]
fn futures_have_deadlines_as_methods() {
    let scene = Stopped::new();
    let end = Instant::now() + MILLI * 5;
    let mut both = [
        Box::pin(core::future::pending::<()>().timeout(MILLI * 5)),
        Box::pin(core::future::pending::<()>().timeout_at(end)),
    ];
    let mut poll = || both.each_mut().map(|limited| crate::scene::poll(limited.as_mut(), Waker::noop()));
    assert!(poll().iter().all(Poll::is_pending));
    scene.advance(MILLI * 5 - NANO);
    assert!(poll().iter().all(Poll::is_pending));
    scene.advance(NANO);
    assert!(poll().iter().all(|polled| matches!(polled, Poll::Ready(Err(_)))));
}
