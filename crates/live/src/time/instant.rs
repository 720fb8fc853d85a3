//! Moments of a machine's clock.
//!
//! A moment is a count of nanoseconds, of CLOCK_MONOTONIC unless time was paused. Arithmetic saturates at
//! both ends of its range (584 years), so no duration makes it panic. Conversions to and from the standard
//! library's instants are each other's inverse; neither makes a deadline earlier. Source: tokio 1.54,
//! `tokio::time::Instant` (names). Deviation: it saturates where tokio panics.

use crate::Machine;
use crate::clock;
use core::fmt;
use core::ops::{Add, AddAssign, Sub, SubAssign};
use core::time::Duration;
use quietcore_core::Nanos;
use std::sync::OnceLock;
use std::time::Instant as StdInstant;

/// What stands for a delay that does not fit: about 30 years.
const FAR: u64 = 30 * 365 * 24 * 60 * 60 * 1_000_000_000;

/// A moment on the clock of the current machine.
///
/// Moments of one machine, and of all machines whose time was never paused, can be compared. 8 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(Nanos);

impl Instant {
    /// The present moment on the clock of the current machine, or of CLOCK_MONOTONIC where there is none.
    /// Cost: a clock read (about 25 ns).
    #[inline]
    #[must_use]
    pub fn now() -> Self {
        Self(Machine::try_current().map_or_else(clock::monotonic, Machine::now))
    }

    /// The moment at which the standard library's clock shows `std`; up to some tens of nanoseconds later,
    /// never earlier. What does not fit saturates.
    #[must_use]
    pub fn from_std(std: StdInstant) -> Self {
        let (std_anchor, anchor) = anchors();
        match std.checked_duration_since(std_anchor) {
            Some(after) => anchor + after,
            None => anchor - std_anchor.duration_since(std),
        }
    }

    /// The same moment for the standard library's clock. The inverse of [`from_std`](Self::from_std).
    ///
    /// # Panics
    /// When the standard library cannot show that moment, which on Linux it can.
    #[must_use]
    pub fn into_std(self) -> StdInstant {
        let (std_anchor, anchor) = anchors();
        if self >= anchor { std_anchor + (self - anchor) } else { std_anchor - (anchor - self) }
    }

    /// The span from `earlier` to this moment; zero when `earlier` is the later one.
    #[inline]
    #[must_use]
    pub const fn duration_since(&self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.since(earlier.0).0)
    }

    /// The span from `earlier` to this moment; `None` when `earlier` is the later one.
    #[inline]
    #[must_use]
    pub const fn checked_duration_since(&self, earlier: Self) -> Option<Duration> {
        match self.0.0.checked_sub(earlier.0.0) {
            Some(nanos) => Some(Duration::from_nanos(nanos)),
            None => None,
        }
    }

    /// The same as [`duration_since`](Self::duration_since).
    #[inline]
    #[must_use]
    pub const fn saturating_duration_since(&self, earlier: Self) -> Duration {
        self.duration_since(earlier)
    }

    /// How much time has passed since, on the clock of the current machine.
    #[inline]
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        Self::now().duration_since(*self)
    }

    /// The moment `duration` later; `None` when that is out of range.
    #[inline]
    #[must_use]
    pub fn checked_add(&self, duration: Duration) -> Option<Self> {
        let nanos = u64::try_from(duration.as_nanos()).ok()?;
        self.0.0.checked_add(nanos).map(|nanos| Self(Nanos(nanos)))
    }

    /// The moment `duration` earlier; `None` when that is before the clock's beginning.
    #[inline]
    #[must_use]
    pub fn checked_sub(&self, duration: Duration) -> Option<Self> {
        let nanos = u64::try_from(duration.as_nanos()).ok()?;
        self.0.0.checked_sub(nanos).map(|nanos| Self(Nanos(nanos)))
    }

    /// The deadline of a delay that begins now: one that does not fit ends in about 30 years.
    pub(super) fn after(self, delay: Duration) -> Self {
        self.checked_add(delay).unwrap_or(self + Duration::from_nanos(FAR))
    }
}

/// One moment on both clocks. Ours is read last, so it is the later one by some tens of nanoseconds; what is
/// converted to ours is late by that, and what is converted back is not.
fn anchors() -> (StdInstant, Instant) {
    static ANCHORS: OnceLock<(StdInstant, Instant)> = OnceLock::new();
    *ANCHORS.get_or_init(|| {
        // The thread may lose its CPU between two reads: the narrowest of some tries counts.
        let tries = (0..16).map(|_| {
            let before = clock::monotonic();
            let std = StdInstant::now();
            let after = clock::monotonic();
            (after.since(before), std, after)
        });
        let (_, std, after) = tries.min_by_key(|(width, ..)| *width).expect("there were some tries");
        (std, Instant(after))
    })
}

/// Saturates at the end of the range.
impl Add<Duration> for Instant {
    type Output = Self;

    #[inline]
    fn add(self, duration: Duration) -> Self {
        self.checked_add(duration).unwrap_or(Self(Nanos(u64::MAX)))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

/// Saturates at the clock's beginning.
impl Sub<Duration> for Instant {
    type Output = Self;

    #[inline]
    fn sub(self, duration: Duration) -> Self {
        self.checked_sub(duration).unwrap_or(Self(Nanos(0)))
    }
}

impl SubAssign<Duration> for Instant {
    fn sub_assign(&mut self, duration: Duration) {
        *self = *self - duration;
    }
}

/// Zero when the subtracted one is later.
impl Sub for Instant {
    type Output = Duration;

    #[inline]
    fn sub(self, earlier: Self) -> Duration {
        self.duration_since(earlier)
    }
}

impl From<StdInstant> for Instant {
    fn from(std: StdInstant) -> Self {
        Self::from_std(std)
    }
}

impl From<Instant> for StdInstant {
    fn from(instant: Instant) -> Self {
        instant.into_std()
    }
}

/// A moment of the machine's clock as its other functions show it.
impl From<Nanos> for Instant {
    #[inline]
    fn from(nanos: Nanos) -> Self {
        Self(nanos)
    }
}

impl From<Instant> for Nanos {
    #[inline]
    fn from(instant: Instant) -> Self {
        instant.0
    }
}

/// As seconds since the clock's beginning.
impl fmt::Debug for Instant {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Instant").field(&Duration::from_nanos(self.0.0)).finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{FAR, Instant};
    use core::time::Duration;
    use quietcore_core::Nanos;

    /// Goal: arithmetic saturates at both ends and the checked kind says so. Method: the ends and one beside.
    #[test]
    fn arithmetic_saturates() {
        let (first, last) = (Instant(Nanos(0)), Instant(Nanos(u64::MAX)));
        let nano = Duration::from_nanos(1);
        for duration in [nano, Duration::from_secs(u64::MAX), Duration::MAX] {
            assert_eq!((last + duration, last.checked_add(duration)), (last, None), "{duration:?}");
            assert_eq!((first - duration, first.checked_sub(duration)), (first, None), "{duration:?}");
        }
        assert_eq!((first + nano) - first, nano);
        assert_eq!(first - last, Duration::ZERO);
        assert_eq!(first.checked_duration_since(last), None);
        assert_eq!(last.duration_since(first), Duration::from_nanos(u64::MAX));
        let mut moving = first;
        moving += nano + nano;
        moving -= nano;
        assert_eq!(moving, first + nano);
        moving -= nano + nano;
        assert_eq!(moving, first);
        assert_eq!(format!("{:?}", first + Duration::from_millis(1_500)), "Instant(1.5s)");
    }

    /// Goal: a delay that does not fit is far, not over. Method: delays around what fits.
    #[test]
    fn delays_that_do_not_fit_are_far() {
        let now = Instant(Nanos(5));
        assert_eq!(now.after(Duration::from_nanos(u64::MAX - 5)), Instant(Nanos(u64::MAX)));
        for delay in [Duration::from_nanos(u64::MAX), Duration::MAX] {
            assert_eq!(now.after(delay), Instant(Nanos(FAR + 5)), "{delay:?}");
        }
    }

    /// Goal: conversions are inverse and never make a moment earlier. Method: moments around now, both ways.
    #[test]
    fn conversions_are_inverse_and_never_early() {
        let std = std::time::Instant::now();
        for offset in [Duration::ZERO, Duration::from_nanos(1), Duration::from_secs(3_000)] {
            for std in [std + offset, std - offset.min(Duration::from_millis(1))] {
                assert_eq!(Instant::from_std(std).into_std(), std, "{offset:?}");
            }
        }
        for _ in 0..1_000 {
            let before = Instant::from(std::time::Instant::now());
            let now = Instant::now();
            // Later by the width of the anchors, which is the time of two clock reads.
            assert!(before <= now + Duration::from_millis(1), "{before:?} {now:?}");
            let shown = now.into_std();
            assert!(shown <= std::time::Instant::now(), "{now:?} is shown later than it was");
        }
    }
}
