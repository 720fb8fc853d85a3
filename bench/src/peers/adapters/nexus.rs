//! `nexus-timer`: a wheel of 64 slots in 7 levels, of which each is 8 times coarser than the one before.
//!
//! Driven as its documentation says for a known number of timers and steady polling: `BoundedWheel`, whose
//! slab is allocated up front; `schedule` and `cancel` with the handle; `reschedule`;
//! `poll_and_rebalance`; `free` of the handle of a timer that expired, which it asks for. Timers without
//! a handle cannot be cancelled: they are a row of their own in `expire`.

use crate::peers::peer::{Answer, Peer, Role};
use crate::peers::plan::Workload;
use nexus_timer::{BoundedWheel, TimerHandle};
use std::mem::ManuallyDrop;
use std::time::{Duration, Instant};

/// Adapter of `nexus_timer::BoundedWheel`.
pub struct Nexus {
    wheel: BoundedWheel<u32>,
    start: Instant,
}

/// All instants lie in the middle of a tick: version 1.5.0 converts an instant of a whole number of ticks
/// into the tick before, since it multiplies by an inverse that is rounded down.
const HALF_A_TICK: Duration = Duration::from_micros(500);

impl Peer for Nexus {
    const NAME: &'static str = "nexus-timer";
    const PACKAGE: Option<&'static str> = Some("nexus-timer");
    const NOTE: &'static str = "BoundedWheel, defaults (1 ms ticks); instants are made beforehand; \
        poll_and_rebalance; handles of expired timers are freed; next_deadline is \
        cached, and a lower bound by its documentation";
    const ANSWER: Answer = Answer::LowerBound;

    type When = Instant;
    type Now = Instant;
    /// Every call consumes the handle, so it is kept where it can be taken out; and it objects to being
    /// dropped.
    type Handle = ManuallyDrop<Option<TimerHandle<u32>>>;

    fn new(capacity: usize) -> Self {
        let start = Instant::now();
        Self { wheel: BoundedWheel::bounded(capacity.max(1), start), start }
    }

    fn when(&self, now: u64, delay: u64) -> Instant {
        self.now(now + delay)
    }

    fn now(&self, tick: u64) -> Instant {
        self.start + Duration::from_millis(tick) + HALF_A_TICK
    }

    fn tick(&self, now: Instant) -> u64 {
        // Answers are whole ticks, not in the middle of one.
        (now - self.start).as_millis() as u64
    }

    #[inline]
    fn arm(&mut self, id: u32, when: Instant) -> Self::Handle {
        ManuallyDrop::new(Some(self.wheel.schedule(when, id)))
    }

    #[inline]
    fn cancel(&mut self, _id: u32, handle: &mut Self::Handle) -> bool {
        handle.take().and_then(|handle| self.wheel.cancel(handle)).is_some()
    }

    #[inline]
    fn rearm(&mut self, _id: u32, handle: &mut Self::Handle, when: Instant) {
        if let Some(taken) = handle.take() {
            *handle = ManuallyDrop::new(Some(self.wheel.reschedule(taken, when)));
        }
    }

    #[inline]
    fn release(&mut self, _id: u32, handle: &mut Self::Handle) {
        if let Some(taken) = handle.take() {
            self.wheel.free(taken);
        }
    }

    #[inline]
    fn advance(&mut self, now: Instant, expired: &mut Vec<u32>) {
        self.wheel.poll_and_rebalance(now, expired);
    }

    #[inline]
    fn next_expiry(&mut self) -> Option<Instant> {
        self.wheel.next_deadline()
    }

    fn pending(&self) -> usize {
        self.wheel.len()
    }
}

/// The same with `schedule_forget`: timers that cannot be cancelled.
pub struct Forgetful(Nexus);

impl Peer for Forgetful {
    const NAME: &'static str = "nexus-timer forgetful";
    const PACKAGE: Option<&'static str> = Nexus::PACKAGE;
    const NOTE: &'static str =
        "as above, with schedule_forget: no handles, so nobody could cancel these timers";
    const ROLE: Role = Role::Variant;
    const ANSWER: Answer = Nexus::ANSWER;

    type When = Instant;
    type Now = Instant;
    type Handle = ();

    fn absent(workload: Workload) -> Option<&'static str> {
        (workload != Workload::Expire).then_some("its timers cannot be cancelled")
    }

    fn new(capacity: usize) -> Self {
        Self(Nexus::new(capacity))
    }

    fn when(&self, now: u64, delay: u64) -> Instant {
        self.0.when(now, delay)
    }

    fn now(&self, tick: u64) -> Instant {
        self.0.now(tick)
    }

    fn tick(&self, now: Instant) -> u64 {
        self.0.tick(now)
    }

    #[inline]
    fn arm(&mut self, id: u32, when: Instant) {
        self.0.wheel.schedule_forget(when, id);
    }

    fn cancel(&mut self, _id: u32, _handle: &mut ()) -> bool {
        false
    }

    #[inline]
    fn advance(&mut self, now: Instant, expired: &mut Vec<u32>) {
        self.0.advance(now, expired);
    }

    fn next_expiry(&mut self) -> Option<Instant> {
        self.0.next_expiry()
    }

    fn pending(&self) -> usize {
        self.0.pending()
    }
}
