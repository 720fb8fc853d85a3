//! The wheel of one base: the project's own, in the kernel's two shapes.
//!
//! Decides nothing about timers. `quietcore-wheel` places, collects and orders; the replay only asks it.
//! Invariant: a [`PendingTimer`] that was armed here keeps the place that the wheel gave it.

use quietcore_wheel::{Placement, Precision, Shape, Slot, SlotKey, Tick, Timers};

/// How many levels the kernel's wheel has: 9, or 8 where a second has 100 ticks or fewer.
///
/// Source: Linux 6.12, kernel/time/timer.c, `LVL_DEPTH`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WheelLevels {
    Eight,
    Nine,
}

impl WheelLevels {
    /// Of a kernel with `hz` ticks per second; an unknown one has 9, as all usual settings do.
    pub(crate) fn of(hz: Option<u32>) -> Self {
        if hz.is_some_and(|hz| hz <= 100) { Self::Eight } else { Self::Nine }
    }

    pub(crate) fn count(self) -> usize {
        match self {
            Self::Eight => 8,
            Self::Nine => 9,
        }
    }

    /// Where a timer for `expires` goes in a wheel whose clock shows `clock`.
    pub(crate) fn place(self, clock: Tick, expires: Tick) -> Placement {
        match self {
            Self::Eight => Shape::<8, 64>::place(clock, expires, Precision::Coarse),
            Self::Nine => Shape::<9, 64>::place(clock, expires, Precision::Coarse),
        }
    }

    /// The shortest delay, in ticks, that goes to `level`.
    pub(crate) fn level_start(self, level: usize) -> u64 {
        Shape::<9, 64>::level_start(level)
    }
}

/// A pending timer, as the wheel keeps it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingTimer {
    /// The timer's identity.
    pub(crate) timer: u64,
    pub(crate) place: Placement,
    /// It was armed at boot, before a second CPU wrote a line.
    pub(crate) is_early: bool,
    /// It is run with interrupts off.
    pub(crate) is_irq_safe: bool,
}

type Storage = Vec<Slot<PendingTimer>>;

#[derive(Debug)]
pub(crate) enum BaseWheel {
    Eight(Box<Timers<PendingTimer, Storage, 8>>),
    Nine(Box<Timers<PendingTimer, Storage, 9>>),
}

macro_rules! in_either {
    ($wheel:expr, $timers:ident => $value:expr) => {
        match $wheel {
            BaseWheel::Eight($timers) => $value,
            BaseWheel::Nine($timers) => $value,
        }
    };
}

impl BaseWheel {
    pub(crate) fn new(levels: WheelLevels, clock: Tick) -> Self {
        match levels {
            WheelLevels::Eight => Self::Eight(Box::new(Timers::with_shape(clock, Storage::new()))),
            WheelLevels::Nine => Self::Nine(Box::new(Timers::with_shape(clock, Storage::new()))),
        }
    }

    pub(crate) fn clock(&self) -> Tick {
        in_either!(self, timers => timers.clock())
    }

    /// The first tick at which a bucket is due: always the true one, never one that a cancel left.
    pub(crate) fn next_expiry(&mut self) -> Option<Tick> {
        in_either!(self, timers => timers.next_expiry())
    }

    pub(crate) fn forward(&mut self, clock: Tick) {
        in_either!(self, timers => timers.forward(clock));
    }

    /// Where the wheel would put a timer for `expires` now.
    pub(crate) fn place(&self, expires: Tick) -> Placement {
        in_either!(self, timers => timers.place(expires, Precision::Coarse))
    }

    pub(crate) fn arm(&mut self, expires: Tick, pending: PendingTimer) -> SlotKey {
        in_either!(self, timers => {
            // Most bases hold a handful: growing from 4 keeps a hostile trace of many bases small.
            if timers.len() >= timers.capacity() {
                timers.reserve(timers.capacity().max(4));
            }
            timers.arm_growing(expires, pending)
        })
    }

    pub(crate) fn get(&self, key: SlotKey) -> Option<&PendingTimer> {
        in_either!(self, timers => timers.get(key))
    }

    /// `None` when the key's timer was popped.
    pub(crate) fn cancel(&mut self, key: SlotKey) -> Option<PendingTimer> {
        in_either!(self, timers => timers.cancel(key)).ok()
    }

    /// Collects the first tick that is due by `now`.
    pub(crate) fn collect(&mut self, now: Tick) -> bool {
        in_either!(self, timers => timers.collect(now))
    }

    pub(crate) fn pop_collected(&mut self) -> Option<PendingTimer> {
        in_either!(self, timers => timers.pop_collected()).map(|expired| expired.value)
    }
}

#[cfg(test)]
mod tests {
    use super::WheelLevels;
    use quietcore_wheel::Tick;

    /// Goal: the shape follows HZ. Method: both sides of the edge, and a delay that only 9 levels hold.
    #[test]
    fn slow_ticks_have_eight_levels() {
        for (hz, count) in [(None, 9), (Some(1000), 9), (Some(101), 9), (Some(100), 8), (Some(24), 8)] {
            assert_eq!(WheelLevels::of(hz).count(), count, "HZ={hz:?}");
        }
        let far = Tick(1 << 29);
        assert_eq!(WheelLevels::Nine.place(Tick(0), far).bucket / 64, 8);
        assert_eq!(WheelLevels::Eight.place(Tick(0), far).bucket / 64, 7, "clipped");
        assert!(
            WheelLevels::Eight.place(Tick(0), far).expiry.is_before(far),
            "clipped: the one way to be early"
        );
    }
}
