//! The wheel's unit of time: a counter that wraps.
//!
//! Decides how two ticks compare: by the sign of their difference, as the kernel compares jiffies
//! (Linux 6.12, include/linux/jiffies.h, `time_after`). There is no `Ord`: an order that holds for
//! every pair cannot wrap. Absent: what a tick lasts. That is the caller's setting.

/// A point in time, in ticks since a moment that the caller chose.
///
/// One tick is the granularity of the wheel's finest level: 1 ms is usual, 4 ms is a kernel with
/// `HZ=250`. The counter may start anywhere and wraps at 2^64; two ticks compare right as long as
/// they are less than 2^63 apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Tick(
    /// The counter itself.
    pub u64,
);

impl Tick {
    /// The tick `ticks` later.
    #[inline]
    #[must_use]
    pub const fn plus(self, ticks: u64) -> Self {
        Self(self.0.wrapping_add(ticks))
    }

    /// How many ticks `self` is after `other`; negative when it is before.
    #[inline]
    #[must_use]
    pub const fn since(self, other: Self) -> i64 {
        self.0.wrapping_sub(other.0).cast_signed()
    }

    /// Whether `self` comes before `other`.
    #[inline]
    #[must_use]
    pub const fn is_before(self, other: Self) -> bool {
        self.since(other) < 0
    }
}
