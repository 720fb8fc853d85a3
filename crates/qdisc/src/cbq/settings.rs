//! What a [`Cbq`](super::Cbq) and its classes are told, and what follows for the idle-time estimate.
//!
//! Source of the estimate's limits: S. Floyd, "Notes on Class-Based Queueing: Setting Parameters" (1995).

use crate::{ClassId, Rate, Statistics};
use core::fmt;
use quietcore_core::Nanos;

/// What a whole [`Cbq`](super::Cbq) is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CbqSettings {
    /// The major number of all its classes; the minor number 0 is the link itself.
    pub major: u16,
    /// What the link carries. All else follows from it, so it must be true.
    pub bandwidth: Rate,
    /// Bytes of a typical packet.
    pub average_packet: u32,
    /// The minor number of the class of packets that name none; 0 for the link itself.
    pub default_class: u16,
}

impl CbqSettings {
    /// A link of that rate, with packets of 1,000 bytes.
    #[must_use]
    pub const fn new(bandwidth: Rate) -> Self {
        Self { major: 1, bandwidth, average_packet: 1_000, default_class: 0 }
    }
}

/// What is done with a class that is above its rate and may not borrow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CbqOverlimit {
    /// It waits in its round until it is under its rate again, and `offtime` more; the watchdog is for that.
    #[default]
    Classic,
    /// It leaves its round until the delay timer, a second one, brings it back.
    Delay,
}

/// What a class is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CbqClass {
    /// What it has for itself.
    pub rate: Rate,
    /// Bytes that it sends in its turn, before they are weighed.
    pub allot: u32,
    /// How its turns compare to those of others of its priority; its rate by default.
    pub weight: Option<u64>,
    /// The lowest is served first, from 1; 0 is 1, and above 8 is 8.
    pub prio: u8,
    /// Packets that it may send at once after a pause.
    pub max_burst: u32,
    /// Packets that it sends at once when it may again, after being above its rate for long.
    pub min_burst: u32,
    /// How far below 0 the estimate may go; without limit by default.
    pub min_idle: Option<Nanos>,
    /// The estimate's weight of the last packet is 2 to the minus this; at most 20.
    pub ewma_log: u8,
    /// It never borrows.
    pub bounded: bool,
    /// It does not lend: what it sends is not counted as the classes' above it.
    pub isolated: bool,
    /// What is done when it is above its rate.
    pub overlimit: CbqOverlimit,
}

impl CbqClass {
    /// A class that may borrow, with `tc`'s defaults.
    #[must_use]
    pub const fn new(rate: Rate) -> Self {
        Self {
            rate,
            allot: 1_600,
            weight: None,
            prio: 8,
            max_burst: 20,
            min_burst: 0,
            min_idle: None,
            ewma_log: 5,
            bounded: false,
            isolated: false,
            overlimit: CbqOverlimit::Classic,
        }
    }

    /// How much idle time it may save, scaled as the estimate is: so much that `max_burst` packets one right
    /// after the other use it up.
    pub(super) fn max_idle(&self, settings: &CbqSettings) -> i64 {
        let (kept, own, link) = self.times(settings);
        let scale = (1_u32 << self.shift()) as f64;
        let least = link * (1.0 - kept);
        let burst = (own - link) * (libm::pow(kept, -f64::from(self.max_burst)) - 1.0);
        (least.max(burst) * scale) as i64
    }

    /// How much longer it waits than until it is under its rate, so that `min_burst` packets may follow.
    pub(super) fn off_time(&self, settings: &CbqSettings) -> i64 {
        if self.min_burst == 0 {
            return 0;
        }
        let (kept, own, link) = self.times(settings);
        let more = libm::pow(kept, -f64::from(self.min_burst - 1)) - 1.0;
        ((own - link).max(0.0) * (1.0 + more / (1.0 - kept))) as i64
    }

    pub(super) fn shift(&self) -> u32 {
        u32::from(self.ewma_log.clamp(1, 20))
    }

    /// What the estimate keeps of itself at a packet, and what a typical one takes at the class's rate and
    /// on the link, in nanoseconds.
    fn times(&self, settings: &CbqSettings) -> (f64, f64, f64) {
        let kept = 1.0 - 1.0 / (1_u32 << self.shift()) as f64;
        let bytes = settings.average_packet;
        (kept, self.rate.time(bytes).0 as f64, settings.bandwidth.time(bytes).0 as f64)
    }
}

/// Why a [`Cbq`](super::Cbq) refused to change its classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CbqError {
    /// No class has that name.
    Unknown(ClassId),
    /// The class that was to be the parent does not exist.
    UnknownParent(ClassId),
    /// There is one already.
    Exists(ClassId),
    /// It has another major number than the discipline.
    Foreign(ClassId),
    /// It has classes below it, or is the link itself: it cannot be removed.
    InUse(ClassId),
    /// It would be too far below the link.
    TooDeep(ClassId),
}

impl fmt::Display for CbqError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(id) => write!(out, "there is no class {id}"),
            Self::UnknownParent(id) => write!(out, "there is no class {id} to be the parent"),
            Self::Exists(id) => write!(out, "there is a class {id} already"),
            Self::Foreign(id) => write!(out, "{id} cannot name a class of this discipline"),
            Self::InUse(id) => write!(out, "class {id} is in use"),
            Self::TooDeep(id) => write!(out, "class {id} would be too far below the link"),
        }
    }
}

impl core::error::Error for CbqError {}

/// What a class has done, and where it stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CbqClassStatistics {
    /// What left from it or, unless they are isolated, from below it, and what its own queue dropped and
    /// holds; `overlimits` is how often it was its turn and it was above its rate, with no class to borrow
    /// from.
    pub queue: Statistics,
    /// How often something was done about that: once each time it goes above.
    pub overactions: u64,
    /// Packets that it borrowed for, or that were borrowed from it.
    pub borrows: u64,
    /// The estimate of its idle time, in nanoseconds times `2^ewma_log`; 0 or below is above its rate.
    pub average_idle: i64,
}

#[cfg(test)]
mod tests {
    use super::{CbqClass, CbqSettings};
    use crate::Rate;

    /// Goal: the limits are those of the paper. Method: a class of a tenth of a link of 1 us per byte, whose
    /// packets take 1 ms and 10 ms; half of the estimate is kept, so that powers are powers of 2.
    #[test]
    fn limits_of_the_estimate() {
        let rate = |bytes| Rate::bytes_per_second(bytes).expect("not 0");
        let settings = CbqSettings::new(rate(1_000_000));
        let class = |max_burst, min_burst| CbqClass {
            max_burst,
            min_burst,
            ewma_log: 1,
            ..CbqClass::new(rate(100_000))
        };
        // Not scaled: half of 1 ms; 9 ms times (2^n - 1).
        assert_eq!(class(0, 0).max_idle(&settings), 1_000_000);
        assert_eq!(class(3, 0).max_idle(&settings), 2 * 63_000_000);
        // With three quarters kept: a quarter of 1 ms; 9 ms times 16/9 - 1, cut off; and both times 4.
        let three_quarters = |max_burst| CbqClass { ewma_log: 2, ..class(max_burst, 1) };
        assert_eq!([0, 2].map(|burst| three_quarters(burst).max_idle(&settings)), [1_000_000, 27_999_999]);
        // 9 ms times 1 + (2^(n - 1) - 1) / (1 / 2).
        let off = [0, 1, 2, 3].map(|burst| class(0, burst).off_time(&settings));
        assert_eq!(off, [0, 9_000_000, 27_000_000, 63_000_000]);
    }
}
