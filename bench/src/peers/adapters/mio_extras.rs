//! `mio-extras`: `timer::Timer`, one wheel whose slots hold timers of every turn.
//!
//! It reads the system's clock in every call, so it cannot be told what time it is: `set_timeout` takes a
//! duration from now. For `expire` the adapter waits, outside of the stopwatch, until everything is due, and
//! then polls until nothing is left; the timer itself steps through all the ticks it slept through.

use crate::peers::peer::{Answer, Clock, Peer};
use crate::peers::plan::Workload;
use mio_extras::timer::{Builder, Timeout, Timer};
use std::time::Duration;

/// Slots, at most: beyond a minute's worth a longer table costs more than a second turn.
const SLOTS_MAX: usize = 1 << 16;

/// Adapter of `mio_extras::timer::Timer`.
pub struct MioExtras {
    timer: Timer<u32>,
    /// The timer itself does not say.
    pending: usize,
}

impl Peer for MioExtras {
    const NAME: &'static str = "mio-extras";
    const PACKAGE: Option<&'static str> = Some("mio-extras");
    const NOTE: &'static str = "timer::Timer without a Poll, 1 ms ticks, a slot per timer (256 to 65536), \
        capacity given; reads the system's clock in every set_timeout and poll; no re-arm (cancel and set); \
        expire: everything is due when it is polled, not tick by tick";
    const CLOCK: Clock = Clock::System;
    const ANSWER: Answer = Answer::Absent;

    type When = Duration;
    type Now = u64;
    type Handle = Timeout;

    fn absent(workload: Workload) -> Option<&'static str> {
        (workload == Workload::Timeouts).then_some("goes by the system's clock: a tick lasts a millisecond")
    }

    fn new(capacity: usize) -> Self {
        let slots = capacity.next_power_of_two().clamp(256, SLOTS_MAX);
        let builder = Builder::default().tick_duration(Duration::from_millis(1)).num_slots(slots);
        Self { timer: builder.capacity(capacity).build(), pending: 0 }
    }

    /// Relative to the moment at which it is armed.
    fn when(&self, _now: u64, delay: u64) -> Duration {
        Duration::from_millis(delay)
    }

    fn now(&self, tick: u64) -> u64 {
        tick
    }

    fn tick(&self, now: u64) -> u64 {
        now
    }

    #[inline]
    fn arm(&mut self, id: u32, when: Duration) -> Timeout {
        self.pending += 1;
        self.timer.set_timeout(when, id)
    }

    #[inline]
    fn cancel(&mut self, _id: u32, handle: &mut Timeout) -> bool {
        let was_pending = self.timer.cancel_timeout(handle).is_some();
        self.pending -= usize::from(was_pending);
        was_pending
    }

    fn wait(&self, delay: u64) {
        // Two ticks more, since expiries are rounded to whole ticks.
        std::thread::sleep(Duration::from_millis(delay + 2));
    }

    #[inline]
    fn advance(&mut self, _now: u64, expired: &mut Vec<u32>) {
        let before = expired.len();
        while let Some(id) = self.timer.poll() {
            expired.push(id);
        }
        self.pending -= expired.len() - before;
    }

    fn next_expiry(&mut self) -> Option<u64> {
        None
    }

    fn pending(&self) -> usize {
        self.pending
    }
}
