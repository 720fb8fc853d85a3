//! Time passes: the clock goes on, buckets become due, timers are handed out.
//!
//! Source: Linux 6.12, kernel/time/timer.c, `forward_timer_base`, `timer_recalc_next_expiry`,
//! `collect_expired_timers`, `__run_timers`. Deviation: collecting and running are two calls, so that
//! their runner decides when, and several ticks may be collected before the first timer runs;
//! a tick whose timers were all cancelled neither holds the clock back nor is collected.

use super::Wheel;
use crate::list::TOGETHER;
use crate::node::WheelNodes;
use crate::{Precision, Shape, Tick};

impl<N: WheelNodes, const LEVELS: usize, const BUCKETS: usize> Wheel<N, LEVELS, BUCKETS> {
    /// Takes the clock to `now`, but never past the next expiry, and never back.
    ///
    /// Call it once per turn, before the turn's arms: a delay counts from the clock, so a clock that
    /// lags makes timers later than need be (they are never early). Jumps must be shorter than 2^62
    /// ticks. Cost: O(1).
    #[inline]
    pub fn forward(&mut self, now: Tick) {
        if !self.clock.is_before(now) {
            return;
        }
        if !self.is_pending {
            self.clock = now;
            self.next_expiry = Self::far(now);
        } else if now.is_before(self.next_expiry) {
            self.clock = now;
        } else if self.is_stale {
            // A bucket whose timers were all cancelled is not waited for.
            self.renew_next_expiry();
            self.forward(now);
        } else {
            self.clock = self.next_expiry;
        }
    }

    /// When the next bucket is due; `None` when there is none. Collected timers are not counted.
    ///
    /// Cost: a load, or after a cancel that emptied a bucket one look at each level.
    #[inline]
    pub fn next_expiry(&mut self) -> Option<Tick> {
        if self.is_stale {
            self.renew_next_expiry();
        }
        self.is_pending.then_some(self.next_expiry)
    }

    fn renew_next_expiry(&mut self) {
        let next = self.first_due();
        self.is_stale = false;
        self.is_pending = next.is_some();
        self.next_expiry = next.unwrap_or(Self::far(self.clock));
    }

    /// The first tick, from the clock on, at which a bucket in use is due.
    ///
    /// `granule` is the clock in granules of the level. A level's bucket at the clock itself is still to be
    /// served only if the clock is on that level's edge; otherwise it was, and the search begins at the next
    /// one. That is why the granule is rounded up from level to level.
    pub(super) fn first_due(&self) -> Option<Tick> {
        let mut best: Option<Tick> = None;
        let mut granule = self.clock.0;
        let shift = Shape::<LEVELS, BUCKETS>::SHIFT;
        let below_edge = (1 << shift) - 1;
        for level in 0..LEVELS {
            if let Some(distance) = Self::distance(self.occupied[level], granule) {
                let due = Tick(granule.wrapping_add(distance) << (shift * level as u32));
                if best.is_none_or(|best| due.is_before(best)) {
                    best = Some(due);
                }
                // It is due before the next level's next edge: no coarser bucket comes first.
                if distance <= granule.wrapping_neg() & below_edge {
                    break;
                }
            }
            granule = (granule >> shift).wrapping_add(u64::from(granule & below_edge != 0));
        }
        best
    }

    /// How many buckets from `granule` on, going round, to the first in use.
    #[inline]
    fn distance(occupied: u64, granule: u64) -> Option<u64> {
        let from = (granule & (BUCKETS as u64 - 1)) as u32;
        let round = if BUCKETS == 64 {
            occupied.rotate_right(from)
        } else {
            (occupied >> from) | (occupied << (BUCKETS as u32 - from))
        };
        (occupied != 0).then(|| u64::from(round.trailing_zeros()))
    }

    /// Collects the buckets of the next tick that is due by `now`; returns whether there was such a tick.
    ///
    /// Their timers move, untouched, to the end of the timers to hand out: from the coarsest level to
    /// the finest, and in a bucket the last armed first, as the kernel runs them. They stay pending
    /// until [`next_expired`](Self::next_expired) hands them out. The clock is then one past that tick.
    /// Cost: one step per level and bucket, however many timers.
    pub fn collect(&mut self, now: Tick) -> bool {
        let Some(due) = self.next_expiry().filter(|due| !now.is_before(*due)) else { return false };
        self.clock = due;
        // A level's bucket is due when the clock is on an edge of that level.
        let shift = Shape::<LEVELS, BUCKETS>::SHIFT;
        let coarsest = (self.clock.0.trailing_zeros() / shift).min(LEVELS as u32 - 1);
        for level in (0..=coarsest).rev() {
            let position = (self.clock.0 >> (shift * level)) as usize % BUCKETS;
            let bucket = &mut self.buckets[level as usize][position];
            self.expired.append(&self.nodes, bucket);
            self.occupied[level as usize] &= !(1 << position);
        }
        self.clock = self.clock.plus(1);
        self.renew_next_expiry();
        true
    }
    /// Takes the next collected timer out: it is idle then, and may be armed again or freed.
    ///
    /// `None` when no timer is left of those that were collected. Cost: O(1) per timer; a timer of
    /// [`Precision::Tick`] may move to a finer level here, at most once per level, and can be the
    /// wheel's new [`next_expiry`](Self::next_expiry) after that.
    #[inline]
    pub fn pop_collected(&mut self) -> Option<N::Ref> {
        self.pop_collected_if(|_| true)
    }

    /// The same, unless `is_wanted` says no of the next one, which stays collected then.
    #[inline]
    pub fn pop_collected_if(&mut self, is_wanted: impl Fn(N::Ref) -> bool) -> Option<N::Ref> {
        loop {
            let node = self.expired.first.filter(|node| is_wanted(*node))?;
            let _ = self.expired.pop_front(&self.nodes);
            self.popped = self.popped.wrapping_add(1);
            if self.popped.is_multiple_of(TOGETHER) {
                self.expired.prefetch(&self.nodes);
            }
            let links = self.nodes.links(node);
            let expires = links.expires();
            // The clock is at most one ahead of the present, so this timer's tick has passed.
            if links.precision() == Precision::Coarse || expires.plus(1).is_before(self.clock) {
                links.set_idle();
                return Some(node);
            }
            let place = self.place(expires, Precision::Tick);
            self.insert(node, expires, place);
        }
    }

    /// Whether a timer was collected and neither handed out nor cancelled since. Cost: O(1).
    #[inline]
    #[must_use]
    pub fn has_collected(&self) -> bool {
        self.expired.first.is_some()
    }

    /// Takes any pending timer out, due or not, so that it can be armed on another wheel: collected ones
    /// first, then finer levels before coarser ones. `None` when the wheel is empty. The clock stays.
    /// Cost: one step per level.
    pub fn pop_pending(&mut self) -> Option<N::Ref> {
        let node = self.expired.first.or_else(|| {
            let level = self.occupied.iter().position(|occupied| *occupied != 0)?;
            self.buckets[level][self.occupied[level].trailing_zeros() as usize].first
        })?;
        self.cancel(node);
        Some(node)
    }

    /// The next timer that is due by `now`, collecting as needed; `None` when there is none left.
    ///
    /// The usual loop of a plain program: run what this returns until it returns `None`, then sleep
    /// until [`next_expiry`](Self::next_expiry). A timer that is armed meanwhile for the past is due one
    /// tick later, so the loop ends, after a stall once for each of its ticks: arm for the future, after
    /// [`forward`](Self::forward).
    #[inline]
    pub fn next_expired(&mut self, now: Tick) -> Option<N::Ref> {
        loop {
            if let Some(node) = self.pop_collected() {
                return Some(node);
            }
            if !self.collect(now) {
                return None;
            }
        }
    }
}
