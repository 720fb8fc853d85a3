//! What the wall clock was at a time of a recording.

use crate::field::unsigned;
use quietcore_core::Nanos;
use std::fmt;

/// One moment on both clocks. Between it and others of the recording the wall clock may have been set or
/// slewed, which nothing says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WallClock {
    /// On the recording's clock.
    pub at: Nanos,
    /// On the wall clock: since 1970, UTC.
    pub since_1970: Nanos,
}

impl WallClock {
    /// The wall clock, since 1970, at a time of the recording.
    #[must_use]
    pub const fn of(&self, at: Nanos) -> Nanos {
        Nanos(self.since_1970.0.saturating_add(at.0).saturating_sub(self.at.0))
    }

    /// The time of the recording at a time since 1970; `None` if its clock did not run yet.
    #[must_use]
    pub fn recorded(&self, since_1970: Nanos) -> Option<Nanos> {
        self.at.0.checked_add(since_1970.0)?.checked_sub(self.since_1970.0).map(Nanos)
    }

    /// As it is displayed: `1795817949.123456789 at 12345.678901234`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (since_1970, at) = text.split_once(" at ")?;
        Some(Self { at: seconds(at)?, since_1970: seconds(since_1970)? })
    }
}

impl fmt::Display for WallClock {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} at {}", Seconds(self.since_1970), Seconds(self.at))
    }
}

/// A time in seconds with nine decimals.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seconds(pub(crate) Nanos);

impl fmt::Display for Seconds {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{:09}", self.0.0 / 1_000_000_000, self.0.0 % 1_000_000_000)
    }
}

/// As [`Seconds`] are displayed.
pub(crate) fn seconds(text: &str) -> Option<Nanos> {
    let (seconds, nanos) = text.split_once('.').filter(|(_, nanos)| nanos.len() == 9)?;
    let nanos = unsigned(nanos.as_bytes())?;
    unsigned(seconds.as_bytes())?.checked_mul(1_000_000_000)?.checked_add(nanos).map(Nanos)
}

#[cfg(test)]
mod tests {
    use super::WallClock;
    use quietcore_core::Nanos;

    /// Goal: a moment on one clock is found on the other. Method: before, at and after the one that is known,
    /// and one before the recording's clock began.
    #[test]
    fn both_clocks_say_the_same() {
        let clock = WallClock { at: Nanos(5_000_000_007), since_1970: Nanos(1_795_817_949_123_456_789) };
        for (at, since_1970) in [
            (5_000_000_007, 1_795_817_949_123_456_789),
            (4_000_000_007, 1_795_817_948_123_456_789),
            (6_000_000_000, 1_795_817_950_123_456_782),
            (0, 1_795_817_944_123_456_782),
        ] {
            assert_eq!(clock.of(Nanos(at)), Nanos(since_1970));
            assert_eq!(clock.recorded(Nanos(since_1970)), Some(Nanos(at)));
        }
        assert_eq!(clock.recorded(Nanos(1_795_817_944_123_456_781)), None);
    }

    /// Goal: what is written is read back, and nothing else is. Method: one with few digits; texts that lack
    /// something.
    #[test]
    fn what_is_written_is_read_back() {
        let clock = WallClock { at: Nanos(7), since_1970: Nanos(1_795_817_949_000_000_070) };
        assert_eq!(clock.to_string(), "1795817949.000000070 at 0.000000007");
        assert_eq!(WallClock::parse(&clock.to_string()), Some(clock));
        for text in ["", "1.000000001", "1.000000001 at ", "1.1 at 2.2", "1.000000001 at x.000000001"] {
            assert_eq!(WallClock::parse(text), None, "{text}");
        }
    }
}
