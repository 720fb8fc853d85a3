//! `bitwheel`: gears of 64 slots with room for a fixed number of timers each; no timer moves once inserted.
//!
//! Driven through `BitWheelWithFailover`, which puts what does not fit into a `BTreeMap`: a plain
//! `BitWheel` refuses it, and no preset of the crate has room for a million. Four gears of 1 ms cover the
//! hour that delays go up to. The room per slot is a constant of the type, so there are two types: small
//! populations would only lose from being spread over the memory that a million needs.

use crate::peers::peer::{Answer, Peer};
use crate::peers::plan::Workload;
use bitwheel::timer::{BitWheelWithFailover, Timer, TimerHandle};
use std::time::{Duration, Instant};

type Small = BitWheelWithFailover<Expiring, 4, 1, 1024, 2, 32>;
type Large = BitWheelWithFailover<Expiring, 4, 1, 65_536, 2, 32>;
/// Up to here timers go into the small wheel: its fullest slots then have enough room.
const SMALL_MAX: usize = 20_000;

/// A timer whose number is noted when it fires.
#[derive(Debug)]
pub struct Expiring(u32);

impl Timer for Expiring {
    type Context = Vec<u32>;

    #[inline]
    fn fire(&mut self, expired: &mut Vec<u32>) {
        expired.push(self.0);
    }
}

/// Adapter of `bitwheel::timer::BitWheelWithFailover`.
pub struct Bitwheel {
    wheel: Wheel,
    start: Instant,
}

enum Wheel {
    Small(Box<Small>),
    Large(Box<Large>),
}

/// The same call for either size.
macro_rules! either {
    ($self:expr, $wheel:ident => $call:expr) => {
        match &mut $self.wheel {
            Wheel::Small($wheel) => $call,
            Wheel::Large($wheel) => $call,
        }
    };
}

impl Peer for Bitwheel {
    const NAME: &'static str = "bitwheel";
    const PACKAGE: Option<&'static str> = Some("bitwheel");
    const NOTE: &'static str = "BitWheelWithFailover, 4 gears, 1 ms, 2 probes, 1024 timers per slot (65536 \
        above 20000 timers), the rest in its BTreeMap; no re-arm (cancel and insert); timers may fire long \
        before or after they are due (see the check of `expire`); peek_next_fire is not renewed by a cancel";
    const ANSWER: Answer = Answer::Approximate;

    type When = Instant;
    type Now = Instant;
    /// Cancelling consumes it.
    type Handle = Option<TimerHandle>;

    fn absent(workload: Workload) -> Option<&'static str> {
        (workload == Workload::Timeouts).then_some(
            "0.6.0 may fire a timer before it is due, and to cancel it then is undefined behaviour",
        )
    }

    fn new(capacity: usize) -> Self {
        let start = Instant::now();
        let wheel = if capacity <= SMALL_MAX {
            Wheel::Small(Small::boxed_with_epoch(start))
        } else {
            Wheel::Large(Large::boxed_with_epoch(start))
        };
        Self { wheel, start }
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
    fn arm(&mut self, id: u32, when: Instant) -> Option<TimerHandle> {
        Some(either!(self, wheel => wheel.insert(when, Expiring(id))))
    }

    #[inline]
    fn cancel(&mut self, _id: u32, handle: &mut Option<TimerHandle>) -> bool {
        let Some(handle) = handle.take() else { return false };
        either!(self, wheel => wheel.cancel(handle)).is_some()
    }

    #[inline]
    fn advance(&mut self, now: Instant, expired: &mut Vec<u32>) {
        either!(self, wheel => wheel.poll(now, expired));
    }

    #[inline]
    fn next_expiry(&mut self) -> Option<Instant> {
        either!(self, wheel => wheel.peek_next_fire())
    }

    /// Right as long as nothing expired: version 0.6.0 keeps counting what it has fired.
    fn pending(&self) -> usize {
        match &self.wheel {
            Wheel::Small(wheel) => wheel.len(),
            Wheel::Large(wheel) => wheel.len(),
        }
    }
}
