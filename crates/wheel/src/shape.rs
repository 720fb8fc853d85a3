//! Where a timer goes: levels, granularities and the bucket of an expiry. Pure arithmetic.
//!
//! Level `n` has [`BUCKETS`](Shape) buckets of [`granularity`](Shape::granularity)`(n)` ticks each. It
//! takes the timers that are due in [`level_start`](Shape::level_start)`(n)` ticks and more. A bucket
//! lies at the first multiple of the granularity *after* the timer's own tick, so a timer is late by
//! 1 tick to one granule and never early.
//!
//! A level gives up its last bucket: it ends one bucket before it is full round. The granule that is
//! always added can therefore never reach the bucket that is being served.
//!
//! Source: Linux 6.12, kernel/time/timer.c, `calc_index` and `calc_wheel_index`. Deviations: the shape
//! is a parameter; a level is found by bit length instead of a chain of comparisons; [`Precision::Tick`].

use crate::Tick;

/// How exactly a timer is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Precision {
    /// The kernel's placement: late by 1 tick to one granule of the timer's level, which is at most 8/63 of
    /// its delay, counted from the wheel's clock (from level 1 on, with 64 buckets). Nothing ever moves. For
    /// timeouts, which are nearly always cancelled.
    #[default]
    Coarse,
    /// Late by one tick at most. The timer waits in the last bucket that is not too late for it, and moves
    /// to a finer level when that comes: at most one move per level, each O(1), and beyond the capacity one
    /// more for each [`LONGEST`](Shape::LONGEST). For sleeps and periods.
    Tick,
}

/// A place in the wheel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The bucket: `level * BUCKETS + position`.
    pub bucket: u16,
    /// When the bucket is due.
    pub expiry: Tick,
}

/// The measures of a wheel of `LEVELS` levels of `BUCKETS` buckets.
///
/// `BUCKETS` is a power of two from 4 to 64; the granularity grows by its square root from level to
/// level, rounded down to a power of two: 8 for 64 buckets, 2 for 4. Anything else does not compile.
#[derive(Clone, Copy, Debug)]
pub struct Shape<const LEVELS: usize, const BUCKETS: usize>;

impl<const LEVELS: usize, const BUCKETS: usize> Shape<LEVELS, BUCKETS> {
    /// log2 of the number of buckets of a level.
    pub(crate) const BITS: u32 = {
        assert!(BUCKETS.is_power_of_two() && BUCKETS >= 4 && BUCKETS <= 64, "BUCKETS: 4, 8, 16, 32 or 64");
        BUCKETS.ilog2()
    };

    /// log2 of how much coarser each level is than the one before.
    pub(crate) const SHIFT: u32 = {
        assert!(LEVELS >= 1, "a wheel has at least one level");
        // So that the longest delay is far from half of the counter's range.
        assert!(LEVELS as u32 * (Self::BITS / 2) + Self::BITS <= 48, "that many levels exceed the range");
        Self::BITS / 2
    };

    const POSITIONS: u64 = BUCKETS as u64 - 1;

    /// Delays of this many ticks and more do not fit: such a timer is clipped to [`LONGEST`](Self::LONGEST).
    /// 1,056,964,608 ticks for 9 levels of 64 buckets, which is 12.2 days at 1 ms.
    pub const CUTOFF: u64 = Self::POSITIONS << (Self::SHIFT * (LEVELS as u32 - 1));

    /// The delay that a clipped timer gets. With [`Precision::Coarse`] this is the one way for a timer to
    /// run early; with [`Precision::Tick`] it is placed again until its own tick comes.
    pub const LONGEST: u64 = Self::CUTOFF - Self::granularity(LEVELS - 1);

    /// Ticks per bucket of `level`.
    #[inline]
    #[must_use]
    pub const fn granularity(level: usize) -> u64 {
        1 << (Self::SHIFT * level as u32)
    }

    /// The shortest delay, in ticks, that goes to `level`.
    #[inline]
    #[must_use]
    pub const fn level_start(level: usize) -> u64 {
        match level {
            0 => 0,
            _ => Self::POSITIONS << (Self::SHIFT * (level as u32 - 1)),
        }
    }

    /// For the highest bit of a delay: the highest level it can be on, as a number above bit 56, less the
    /// first delay of that level.
    const CANDIDATES: [u64; 64] = {
        let mut candidates = [0; 64];
        let mut bit = 0;
        while bit < 64 {
            let level = (bit + 1 + Self::SHIFT).saturating_sub(Self::BITS) / Self::SHIFT;
            if level < LEVELS as u32 {
                candidates[bit as usize] =
                    ((level as u64) << 56).wrapping_sub(Self::level_start(level as usize));
            } else {
                candidates[bit as usize] = ((LEVELS as u64) << 56).wrapping_sub(Self::CUTOFF);
            }
            bit += 1;
        }
        candidates
    };

    /// The level of a delay below [`CUTOFF`](Self::CUTOFF).
    ///
    /// `level_start` of a level is all ones in its first `BITS` bits, so the highest bit of a delay leaves
    /// two levels; which of them, the sum decides by its carry.
    #[inline]
    const fn level_of(delay: u64) -> u32 {
        (delay.wrapping_add(Self::CANDIDATES[(delay | 1).ilog2() as usize]) >> 56) as u32
    }

    /// The place of a timer for `expires` in a wheel whose clock shows `clock`.
    ///
    /// An expiry before the clock is due at once: it gets the bucket of the clock itself.
    #[inline]
    #[must_use]
    pub const fn place(clock: Tick, expires: Tick, precision: Precision) -> Placement {
        let delay = expires.0.wrapping_sub(clock.0);
        if delay < Self::CUTOFF {
            return Self::place_at(expires.0, Self::level_of(delay), precision);
        }
        if expires.is_before(clock) {
            return Placement { bucket: (clock.0 & Self::POSITIONS) as u16, expiry: clock };
        }
        Self::place_at(clock.plus(Self::LONGEST).0, LEVELS as u32 - 1, precision)
    }

    #[inline]
    const fn place_at(expires: u64, level: u32, precision: Precision) -> Placement {
        let shift = Self::SHIFT * level;
        let granule = match precision {
            // The first edge after `expires`.
            Precision::Coarse => (expires >> shift).wrapping_add(1),
            // The last edge not after `expires + 1`.
            Precision::Tick => expires.wrapping_add(1) >> shift,
        };
        let bucket = level as u64 * BUCKETS as u64 + (granule & Self::POSITIONS);
        Placement { bucket: bucket as u16, expiry: Tick(granule << shift) }
    }

    /// The first tick, not before `clock`, at which the bucket at `position` of `level` is due.
    #[inline]
    pub(crate) const fn due(clock: Tick, level: usize, position: usize) -> Tick {
        let shift = Self::SHIFT * level as u32;
        let first = clock.0.wrapping_add(Self::granularity(level) - 1) >> shift;
        let distance = (position as u64).wrapping_sub(first) & Self::POSITIONS;
        Tick(first.wrapping_add(distance) << shift)
    }
}
