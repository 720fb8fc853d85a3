//! Service curves: how much service a class is to have within how much time.

use core::fmt;
use quietcore_core::Nanos;

/// Parts of a byte that amounts are counted in: a byte per second is one of them per nanosecond.
pub(super) const BYTE: u128 = 1_000_000_000;

/// How many bytes within how much time: so many bytes per second for `d`, then `m2`.
///
/// With `m1 > m2` the curve is concave and gives a burst early, so a short delay to a class of a low rate;
/// with `m1 < m2` it is convex and gives service late. A rate of 0 is possible in one of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceCurve {
    /// Bytes per second at first.
    pub m1: u64,
    /// For how long.
    pub d: Nanos,
    /// Bytes per second after that.
    pub m2: u64,
}

impl ServiceCurve {
    /// One rate, in bytes per second.
    #[must_use]
    pub const fn linear(rate: u64) -> Self {
        Self { m1: rate, d: Nanos(0), m2: rate }
    }

    /// `m1` bytes per second for `d`, then `m2`.
    #[must_use]
    pub const fn two_piece(m1: u64, d: Nanos, m2: u64) -> Self {
        Self { m1, d, m2 }
    }

    /// `umax` bytes, the longest unit of work, within `dmax`, and `rate` bytes per second in the long run.
    ///
    /// # Errors
    /// Without a rate or a time, or if the burst is steeper than a `u64` of bytes per second.
    pub const fn from_delay(umax: u32, dmax: Nanos, rate: u64) -> Result<Self, CurveError> {
        if rate == 0 {
            return Err(CurveError::NoRate);
        }
        if dmax.0 == 0 {
            return Err(CurveError::NoTime);
        }
        let work = umax as u128 * BYTE;
        let burst = work.div_ceil(dmax.0 as u128);
        if burst > u64::MAX as u128 {
            return Err(CurveError::TooSteep);
        }
        if burst > rate as u128 {
            return Ok(Self { m1: burst as u64, d: dmax, m2: rate });
        }
        // No more than `dmax`, as the rate is at least the burst.
        let needed = work.div_ceil(rate as u128);
        Ok(Self { m1: 0, d: Nanos(dmax.0 - needed as u64), m2: rate })
    }

    /// Whether it gives less later, or the same.
    pub(super) const fn is_concave(&self) -> bool {
        self.m1 >= self.m2
    }

    /// Whether its two pieces are one line.
    pub(super) const fn is_one_line(&self) -> bool {
        self.m1 == self.m2 && self.d.0 == 0
    }

    /// Whether it ever gives anything.
    pub(super) const fn is_zero(&self) -> bool {
        self.m2 == 0 && (self.m1 == 0 || self.d.0 == 0)
    }
}

/// Why there is no such curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CurveError {
    /// A rate of 0.
    NoRate,
    /// No time for what is to be done within it.
    NoTime,
    /// More bytes per second than a `u64` holds.
    TooSteep,
}

impl fmt::Display for CurveError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::NoRate => "no rate",
            Self::NoTime => "no time for the longest unit of work",
            Self::TooSteep => "more bytes per second than can be counted",
        })
    }
}

impl core::error::Error for CurveError {}
