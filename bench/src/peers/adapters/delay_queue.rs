//! `tokio-util`: `DelayQueue`, six levels of 64 slots over a slab, with a `Sleep` for the first expiry.
//!
//! It needs a runtime: arming and cancelling enter the context of one, and every change of the first expiry
//! resets a `Sleep` there. Time is tokio's, paused; a tick is `advance` by 1 ms within `block_on`, followed
//! by `poll_expired` until it is pending. What a tick costs without any timer is the row `tokio clock`.

use crate::peers::peer::{Answer, Peer};
use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::runtime::{Builder, EnterGuard, Runtime};
use tokio::task::coop::unconstrained;
use tokio::time::{Instant, advance};
use tokio_util::time::DelayQueue;
use tokio_util::time::delay_queue::Key;

const TICK: Duration = Duration::from_millis(1);

/// One runtime per thread, its clock paused; never dropped, because the guard in [`Queue`] borrows it.
pub(super) fn runtime() -> &'static Runtime {
    thread_local! {
        static RUNTIME: &'static Runtime = Box::leak(Box::new(
            Builder::new_current_thread()
                .enable_time()
                .start_paused(true)
                .build()
                .expect("a runtime without input and output needs nothing that could be missing"),
        ));
    }
    RUNTIME.with(|&runtime| runtime)
}

/// One tick of the runtime's clock, then `expire`; without tokio's budget, which would end it after 128.
pub(super) fn tick(mut expire: impl FnMut(&mut Context<'_>)) {
    runtime().block_on(unconstrained(async {
        advance(TICK).await;
        poll_fn(|context| {
            expire(context);
            Poll::Ready(())
        })
        .await;
    }));
}

/// Adapter of `tokio_util::time::DelayQueue`.
pub struct Queue {
    queue: DelayQueue<u32>,
    start: Instant,
    /// Entered once, not in every call, as a task that owns a queue would be.
    _context: EnterGuard<'static>,
}

impl Peer for Queue {
    const NAME: &'static str = "tokio-util DelayQueue";
    const PACKAGE: Option<&'static str> = Some("tokio-util");
    const NOTE: &'static str = "with_capacity; insert_at, remove and reset_at with instants made beforehand, \
        in the context of a current-thread runtime whose clock is paused; a tick is advance(1 ms) in \
        block_on, see `tokio clock` for its cost; next expiry: peek, which \
        walks the whole slot of the first timer, and deadline";
    const ANSWER: Answer = Answer::Exact;

    type When = Instant;
    type Now = Instant;
    type Handle = Key;

    fn new(capacity: usize) -> Self {
        let context = runtime().enter();
        Self { queue: DelayQueue::with_capacity(capacity), start: Instant::now(), _context: context }
    }

    fn when(&self, now: u64, delay: u64) -> Instant {
        self.now(now + delay)
    }

    fn now(&self, tick: u64) -> Instant {
        self.start + Duration::from_millis(tick)
    }

    fn tick(&self, now: Instant) -> u64 {
        (now - self.start).as_millis() as u64
    }

    #[inline]
    fn arm(&mut self, id: u32, when: Instant) -> Key {
        self.queue.insert_at(id, when)
    }

    #[inline]
    fn cancel(&mut self, _id: u32, handle: &mut Key) -> bool {
        self.queue.try_remove(handle).is_some()
    }

    #[inline]
    fn rearm(&mut self, _id: u32, handle: &mut Key, when: Instant) {
        self.queue.reset_at(handle, when);
    }

    #[inline]
    fn advance(&mut self, _now: Instant, expired: &mut Vec<u32>) {
        tick(|context| {
            while let Poll::Ready(Some(entry)) = self.queue.poll_expired(context) {
                expired.push(entry.into_inner());
            }
        });
    }

    #[inline]
    fn next_expiry(&mut self) -> Option<Instant> {
        self.queue.peek().map(|key| self.queue.deadline(&key))
    }

    fn pending(&self) -> usize {
        self.queue.len()
    }
}
