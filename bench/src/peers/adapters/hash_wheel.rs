//! `hierarchical_hash_wheel_timer`: four wheels of 256 slots, and a hash map of what is still valid.
//!
//! Driven through `wheels::cancellable::QuadWheelWithOverflow`, the interface of the crate that can cancel.
//! A timer is allocated when it is armed; cancelling removes it from the hash map, and the wheel forgets
//! it when its slot comes up. There are no capacity hints.

use crate::peers::peer::{Answer, Peer};
use hierarchical_hash_wheel_timer::IdOnlyTimerEntry;
use hierarchical_hash_wheel_timer::wheels::Skip;
use hierarchical_hash_wheel_timer::wheels::cancellable::{CancellableTimerEntry, QuadWheelWithOverflow};
use std::time::Duration;

/// Adapter of `wheels::cancellable::QuadWheelWithOverflow`.
pub struct HashWheel {
    wheel: QuadWheelWithOverflow<IdOnlyTimerEntry<u64>>,
    elapsed: u64,
    /// The wheel itself does not say.
    pending: usize,
}

impl Peer for HashWheel {
    const NAME: &'static str = "hierarchical_hash_wheel";
    const PACKAGE: Option<&'static str> = Some("hierarchical_hash_wheel_timer");
    const NOTE: &'static str = "wheels::cancellable with the default hasher; no re-arm (cancel and insert); \
        a cancelled timer stays allocated until its slot comes up, which only `timeouts` includes; \
        can_skip stands in for the next expiry: it counts ticks that are certain to be empty";
    const ANSWER: Answer = Answer::LowerBound;

    type When = Duration;
    type Now = u64;
    type Handle = ();

    fn new(_capacity: usize) -> Self {
        Self { wheel: QuadWheelWithOverflow::new(), elapsed: 0, pending: 0 }
    }

    /// Relative to the tick at which it is armed.
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
    fn arm(&mut self, id: u32, when: Duration) {
        let armed = self.wheel.insert(IdOnlyTimerEntry { id: u64::from(id), delay: when });
        assert!(armed.is_ok(), "delays are at least one tick");
        self.pending += 1;
    }

    #[inline]
    fn cancel(&mut self, id: u32, _handle: &mut ()) -> bool {
        let was_pending = self.wheel.cancel(&u64::from(id)).is_ok();
        self.pending -= usize::from(was_pending);
        was_pending
    }

    #[inline]
    fn advance(&mut self, now: u64, expired: &mut Vec<u32>) {
        self.elapsed = now;
        let before = expired.len();
        expired.extend(self.wheel.tick().iter().map(|entry| *entry.id() as u32));
        self.pending -= expired.len() - before;
    }

    #[inline]
    fn next_expiry(&mut self) -> Option<u64> {
        match self.wheel.can_skip() {
            Skip::Empty => None,
            Skip::Millis(empty) => Some(self.elapsed + u64::from(empty) + 1),
            Skip::None => Some(self.elapsed + 1),
        }
    }

    fn pending(&self) -> usize {
        self.pending
    }
}
