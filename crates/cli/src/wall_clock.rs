//! The wall clock: read, shown and typed in the time zone of this machine.

use crate::error::CliError;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use quietcore_core::Nanos;
use quietcore_trace::{Header, WallClock, visible_path};
use rustix::time::{ClockId, clock_gettime};
use std::path::Path;

/// A moment as it is typed: by a recording's clock, or by the wall clock, since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TypedMoment {
    Recorded(Nanos),
    SinceEpoch(Nanos),
}

/// What the wall clock is now, on the clock of recordings of ours.
pub(crate) fn now() -> WallClock {
    let nanos = |clock| {
        let now = clock_gettime(clock);
        Nanos((now.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(now.tv_nsec as u64))
    };
    // Where this thread is interrupted between the two, they are of different moments: the closest of some.
    let read = || {
        let before = nanos(ClockId::Monotonic);
        let since_1970 = nanos(ClockId::Realtime);
        (nanos(ClockId::Monotonic).since(before), WallClock { at: before, since_1970 })
    };
    let (mut took, mut clock) = read();
    for _ in 0..8 {
        let (again, other) = read();
        if again < took {
            (took, clock) = (again, other);
        }
    }
    clock
}

/// `4750.304123`, seconds on a recording's clock to the nanosecond; or a date and a time of the wall clock,
/// as `2026-11-27T22:19:09.5`, of this machine's time zone unless it ends with `Z` or an offset.
pub(crate) fn moment(text: &str) -> Result<TypedMoment, String> {
    moment_in(text, &TimeZone::system())
}

fn moment_in(text: &str, zone: &TimeZone) -> Result<TypedMoment, String> {
    let refused = || {
        format!(
            "{text:?} is no time of a recording; give it in seconds, as 4750.304123, or by the wall clock, as \
             2026-11-27T22:19:09.5"
        )
    };
    if let Some(at) = seconds(text) {
        return Ok(TypedMoment::Recorded(at));
    }
    let with_offset = text.parse::<Timestamp>().ok();
    let local = || text.parse::<DateTime>().ok()?.to_zoned(zone.clone()).ok().map(|zoned| zoned.timestamp());
    // A date alone is no moment.
    let is_whole = text.contains(':');
    let timestamp = with_offset.or_else(local).filter(|_| is_whole).ok_or_else(refused)?;
    let nanos = u64::try_from(timestamp.as_nanosecond()).map_err(|_| refused())?;
    Ok(TypedMoment::SinceEpoch(Nanos(nanos)))
}

/// Digits with at most nine decimals.
fn seconds(text: &str) -> Option<Nanos> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if seconds.is_empty() || !is_number(seconds) || !is_number(fraction) || fraction.len() > 9 {
        return None;
    }
    let nanos: u64 = format!("{fraction:0<9}").parse().ok()?;
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(nanos).map(Nanos)
}

impl TypedMoment {
    /// The moment on the clock of the recording at `path`.
    pub(crate) fn recorded(self, path: &Path, header: &Header) -> Result<Nanos, CliError> {
        let since_1970 = match self {
            Self::Recorded(at) => return Ok(at),
            Self::SinceEpoch(since_1970) => since_1970,
        };
        let path = visible_path(path);
        let Some(clock) = header.wall_clock else {
            return Err(CliError::Usage(format!(
                "{path} does not say what the wall clock was (`quietcore record` does): give --at in seconds"
            )));
        };
        clock
            .recorded(since_1970)
            .ok_or_else(|| CliError::Usage(format!("--at is from before the machine of {path} was started")))
    }
}

/// `2026-11-27 22:19:09 +00:00`, for a time since 1970.
pub(crate) fn date(since_1970: Nanos) -> String {
    shown(since_1970, &TimeZone::system(), "%Y-%m-%d %H:%M:%S %:z")
}

/// `22:19:09.123456`, for a time since 1970.
pub(crate) fn time_of_day(since_1970: Nanos) -> String {
    shown(since_1970, &TimeZone::system(), "%H:%M:%S.%6f")
}

fn shown(since_1970: Nanos, zone: &TimeZone, format: &str) -> String {
    let timestamp = Timestamp::from_nanosecond(i128::from(since_1970.0)).unwrap_or(Timestamp::MAX);
    Zoned::new(timestamp, zone.clone()).strftime(format).to_string()
}

#[cfg(test)]
mod tests {
    use super::{TypedMoment, date, moment_in, now, shown, time_of_day};
    use jiff::tz::{TimeZone, offset};
    use quietcore_core::Nanos;
    use quietcore_trace::{Header, WallClock};

    const WALL: u64 = 1_795_817_949_500_000_000;

    fn zone() -> TimeZone {
        TimeZone::fixed(offset(2))
    }

    /// Goal: a moment is typed on either clock, and nothing else is one. Method: both, with and without
    /// decimals, date, zone; the edges of each.
    #[test]
    fn a_moment_is_of_either_clock() {
        let moment = |text: &str| moment_in(text, &zone());
        for (text, nanos) in [
            ("0", 0),
            ("4750.304123", 4_750_304_123_000),
            ("1.000000001", 1_000_000_001),
            ("7.", 7_000_000_000),
            ("18446744073.709551615", u64::MAX),
        ] {
            assert_eq!(moment(text), Ok(TypedMoment::Recorded(Nanos(nanos))), "{text}");
        }
        for text in [
            "2026-11-27T22:19:09.5Z",
            "2026-11-27 22:19:09.5Z",
            "2026-11-27T23:19:09.5+01:00",
            "2026-11-28T00:19:09.5",
            "2026-11-28 00:19:09.5",
        ] {
            assert_eq!(moment(text), Ok(TypedMoment::SinceEpoch(Nanos(WALL))), "{text}");
        }
        for text in [
            "",
            "x",
            ".5",
            "1s",
            "1e3",
            "-1",
            "1.0000000001",
            "18446744073.709551616",
            "18446744074",
            "99999999999999999999",
            "2026-11-27",
            "22:19:09",
            "1969-01-01T00:00:00Z",
        ] {
            let refused = moment(text).expect_err(text);
            assert!(refused.contains("is no time of a recording"), "{refused}");
        }
    }

    /// Goal: a moment of the wall clock is found in a recording that knows it, and what cannot be is said.
    #[test]
    fn the_wall_clock_is_found_in_a_recording() {
        let mut header = Header::default();
        let find = |header: &Header, moment: TypedMoment| moment.recorded("a file".as_ref(), header);
        let typed = TypedMoment::SinceEpoch(Nanos(WALL));
        assert_eq!(find(&header, TypedMoment::Recorded(Nanos(3))).expect("it is one"), Nanos(3));
        let refused = find(&header, typed).expect_err("not known").to_string();
        assert!(refused.contains("a file does not say what the wall clock was"), "{refused}");
        header.wall_clock = Some(WallClock { at: Nanos(500), since_1970: Nanos(WALL - 100) });
        assert_eq!(find(&header, typed).expect("it is known"), Nanos(600));
        let early =
            find(&header, TypedMoment::SinceEpoch(Nanos(WALL - 601))).expect_err("before").to_string();
        assert!(early.contains("before the machine of a file was started"), "{early}");
    }

    /// Goal: times are shown as people read them, in a time zone. Method: one time in a zone of two hours;
    /// the largest number.
    #[test]
    fn times_are_shown_in_a_zone() {
        let shown = |format| shown(Nanos(WALL + 123_456), &zone(), format);
        assert_eq!(shown("%Y-%m-%d %H:%M:%S %:z"), "2026-11-28 00:19:09 +02:00");
        assert_eq!(shown("%H:%M:%S.%6f"), "00:19:09.500123");
        assert!(date(Nanos(u64::MAX)).starts_with("2554-07-2"), "{}", date(Nanos(u64::MAX)));
        assert_eq!(time_of_day(Nanos(WALL)).len(), "22:19:09.123456".len());
    }

    /// Goal: both clocks are of one moment. Method: what lies between two looks at them is the same on both,
    /// to a second, as clocks are not set meanwhile.
    #[test]
    fn both_clocks_are_of_one_moment() {
        let (one, two) = (now(), now());
        assert!(one.at < two.at);
        let apart = |clock: WallClock| i128::from(clock.since_1970.0) - i128::from(clock.at.0);
        assert!((apart(two) - apart(one)).abs() < 1_000_000_000);
    }
}
