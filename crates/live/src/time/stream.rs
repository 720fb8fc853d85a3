//! Streams and time: ticks as a stream, items that take too long, items that come too fast.
//!
//! Source: tokio-stream 0.1, `wrappers::IntervalStream`, `StreamExt::{timeout, throttle}` (names, behaviour).
//! Not here: what does not ask for the time; tokio-stream's and futures' own extensions have that.

use super::error::Elapsed;
use super::{Duration, Instant, Interval, Sleep, sleep_until};
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use futures_core::Stream;
use pin_project_lite::pin_project;

/// The ticks of an [`Interval`], without an end.
///
/// ```
/// use futures_util::StreamExt;
/// use quietcore::Machine;
/// use quietcore::time::{Duration, IntervalStream, interval};
///
/// let machine = Machine::start()?;
/// let _entered = machine.enter();
/// let ticks = IntervalStream::new(interval(Duration::from_millis(1)));
/// let three = futures_executor::block_on(ticks.take(3).collect::<Vec<_>>());
/// assert!(three[2] >= three[0] + Duration::from_millis(2));
/// # machine.shutdown();
/// # Ok::<(), quietcore::StartError>(())
/// ```
#[derive(Debug)]
#[must_use = "streams do nothing unless polled"]
pub struct IntervalStream(Interval);

impl IntervalStream {
    /// The ticks of `interval`.
    pub const fn new(interval: Interval) -> Self {
        Self(interval)
    }

    /// The interval.
    #[must_use]
    pub fn into_inner(self) -> Interval {
        self.0
    }
}

impl AsRef<Interval> for IntervalStream {
    fn as_ref(&self) -> &Interval {
        &self.0
    }
}

impl AsMut<Interval> for IntervalStream {
    fn as_mut(&mut self) -> &mut Interval {
        &mut self.0
    }
}

impl Stream for IntervalStream {
    type Item = Instant;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Instant>> {
        self.0.poll_tick(context).map(Some)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::MAX, None)
    }
}

/// What a stream does about time.
pub trait StreamExt: Stream {
    /// The items of this stream, and an error when none has come for `duration`, counted from the item
    /// before, at first from this call. The stream goes on after that; there is no other error before its
    /// next item.
    ///
    /// # Panics
    /// When there is no current machine.
    #[track_caller]
    fn timeout(self, duration: Duration) -> TimeoutStream<Self>
    where
        Self: Sized,
    {
        let delay = sleep_until(Instant::now().after(duration));
        TimeoutStream { stream: self, delay, duration, is_waiting: true }
    }

    /// The items of this stream, at most one in `duration`: it is not polled before that has passed since the
    /// last one. The first comes as it is.
    ///
    /// # Panics
    /// When there is no current machine.
    #[track_caller]
    fn throttle(self, duration: Duration) -> Throttle<Self>
    where
        Self: Sized,
    {
        Throttle { stream: self, delay: sleep_until(Instant::now()), duration, is_waiting: false }
    }
}

impl<S: Stream + ?Sized> StreamExt for S {}

pin_project! {
    /// Made by [`StreamExt::timeout`].
    #[derive(Debug)]
    #[must_use = "streams do nothing unless polled"]
    pub struct TimeoutStream<S> {
        #[pin]
        stream: S,
        #[pin]
        delay: Sleep,
        duration: Duration,
        // Whether the delay counts: it has not ended since the last item.
        is_waiting: bool,
    }
}

impl<S: Stream> Stream for TimeoutStream<S> {
    type Item = Result<S::Item, Elapsed>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut this = self.project();
        if let Poll::Ready(item) = this.stream.poll_next(context) {
            if item.is_some() {
                let next = this.delay.now().after(*this.duration);
                this.delay.as_mut().reset(next);
                *this.is_waiting = true;
            }
            return Poll::Ready(item.map(Ok));
        }
        if !*this.is_waiting {
            return Poll::Pending;
        }
        ready!(this.delay.poll(context));
        *this.is_waiting = false;
        Poll::Ready(Some(Err(Elapsed::new())))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let (least, most) = self.stream.size_hint();
        // An error may come before each item, and before the end.
        (least, most.and_then(|most| most.checked_mul(2)?.checked_add(1)))
    }
}

pin_project! {
    /// Made by [`StreamExt::throttle`].
    #[derive(Debug)]
    #[must_use = "streams do nothing unless polled"]
    pub struct Throttle<S> {
        #[pin]
        stream: S,
        #[pin]
        delay: Sleep,
        duration: Duration,
        // Since the last item, and until the delay has ended.
        is_waiting: bool,
    }
}

impl<S> Throttle<S> {
    /// The stream.
    #[must_use]
    pub const fn get_ref(&self) -> &S {
        &self.stream
    }

    /// The stream, to be changed.
    #[must_use]
    pub const fn get_mut(&mut self) -> &mut S {
        &mut self.stream
    }

    /// The stream, as fast as it is.
    #[must_use]
    pub fn into_inner(self) -> S {
        self.stream
    }
}

impl<S: Stream> Stream for Throttle<S> {
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let mut this = self.project();
        if *this.is_waiting {
            ready!(this.delay.as_mut().poll(context));
            *this.is_waiting = false;
        }
        let item = ready!(this.stream.poll_next(context));
        if item.is_some() && !this.duration.is_zero() {
            let next = this.delay.now().after(*this.duration);
            this.delay.as_mut().reset(next);
            *this.is_waiting = true;
        }
        Poll::Ready(item)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.stream.size_hint()
    }
}
