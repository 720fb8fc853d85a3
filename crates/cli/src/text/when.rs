//! Times of a recording in words.

use crate::wall_clock;
use quietcore_core::Nanos;
use quietcore_explain::Explanation;

/// A time in seconds of the recording's clock, and by the wall clock, if it is known.
pub(crate) fn when(report: &Explanation, at_ns: u64) -> String {
    let seconds = format!("{:.6} s", Nanos(at_ns).as_secs_f64());
    match report.wall_clock_ns {
        None => seconds,
        Some(clock) => format!("{seconds} ({})", wall_clock::time_of_day(Nanos(clock.saturating_add(at_ns)))),
    }
}
