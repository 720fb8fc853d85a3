//! The proof against the kernel: every timer of a recording, replayed through our wheel.
//!
//! [`Verify`] takes events in the order of the input. For each `timer_start` it derives the clock that the
//! timer's base had, forwards our wheel to it, arms the timer there and compares the bucket with the recorded
//! one; for each `timer_expire_entry` our wheel says which timer is next. What agrees with clock = jiffies is
//! `exact`; what needs another clock is counted under the name of where that clock comes from; anything else
//! is a mismatch. `docs/reference/verify.md` has the rules and what they came to on real kernels.
//!
//! Memory is bounded by the number of bases (3 for each of 8192 CPUs) and of pending timers (a limit, beyond
//! which everything is forgotten and counted as such). No map is iterated.

use crate::replay::TimerReplay;
use crate::verification::{Verification, verification};
use quietcore_core::Nanos;
use quietcore_trace::{Header, Progress, ReadError, Record, TraceReader};
use std::io::Read;

/// How many timers can be pending at once before the replay forgets all of them.
pub const PENDING_MAX: usize = 1 << 19;

/// Replays the timers of a recording through our wheel. One thread; some hundred ns per event.
///
/// ```
/// use quietcore_trace::TraceReader;
/// use quietcore_verify::Verify;
///
/// let text = "\
///     sh-7 [000] d..1. 9.000000: timer_start: timer=01 function=f expires=4295000009 [timeout=9] \
///     bucket_expiry=4295000010 cpu=0 idx=10 flags=
///     sh-7 [000] d.s1. 9.040000: timer_cancel: timer=01
///     sh-7 [000] ..s1. 9.040001: timer_expire_entry: timer=01 function=f now=4295000010 baseclk=4295000010
/// ";
/// let mut reader = TraceReader::new(text.as_bytes());
/// reader.read_header()?;
/// let mut verify = Verify::new(reader.header());
/// verify.read(&mut reader, u64::MAX)?;
/// let verification = verify.finish(&reader);
/// assert!(verification.ok);
/// assert_eq!((verification.timer_starts, verification.exact, verification.expiries.exact), (1, 1, 1));
/// # Ok::<(), quietcore_trace::ReadError>(())
/// ```
#[derive(Debug)]
pub struct Verify {
    replay: TimerReplay,
    malformed: u64,
    /// Before it, some events were not on yet, so what is missing is none.
    whole_from: Nanos,
}

impl Verify {
    /// A replay of nothing yet; `header` says which kernel wrote the input.
    #[must_use]
    pub fn new(header: &Header) -> Self {
        let whole_from = header.whole_from.unwrap_or_default();
        Self { replay: TimerReplay::new(header, PENDING_MAX), malformed: 0, whole_from }
    }

    /// The same with another limit than [`PENDING_MAX`], at least 1.
    #[must_use]
    pub fn with_pending_max(mut self, pending_max: usize) -> Self {
        self.replay.timers_max = pending_max.max(1);
        self
    }

    /// Takes up to `lines_max` lines of `reader`, as [`TraceReader::read`] does. An unreadable line makes the
    /// replay forget what it knew, because it may have been any event.
    ///
    /// # Errors
    /// As [`TraceReader::read`].
    pub fn read<R: Read>(
        &mut self,
        reader: &mut TraceReader<R>,
        lines_max: u64,
    ) -> Result<Progress, ReadError> {
        for _ in 0..lines_max {
            let progress = reader.read(1, &mut |record| self.take(record))?;
            if reader.tally().malformed != self.malformed {
                self.malformed = reader.tally().malformed;
                self.replay.forget();
            }
            if progress != Progress::Paused {
                return Ok(progress);
            }
        }
        Ok(Progress::Paused)
    }

    /// Takes one event. Where there is a reader, [`read`](Self::read) is better: it sees unreadable lines.
    pub fn take(&mut self, record: &Record<'_>) {
        if record.at >= self.whole_from {
            self.replay.take(record);
        }
    }

    /// What it came to. `reader` says what was read and what was lost.
    #[must_use]
    pub fn finish<R: Read>(self, reader: &TraceReader<R>) -> Verification {
        verification(self.replay, reader.header(), reader.tally())
    }
}

#[cfg(test)]
mod tests {
    use super::Verify;
    use quietcore_trace::TraceReader;

    /// Goal: while a recorder switches its events on, none counts as missing. Method: one timer that runs, so
    /// that each event was seen; one that is started twice without a cancel, where all events are on before
    /// that, from the second start on, and after it.
    #[test]
    fn what_comes_before_all_events_are_on_is_not_compared() {
        let verified = |whole_from: &str| {
            let start = "timer_start: timer=01 function=f expires=4295000009 [timeout=9] \
                         bucket_expiry=4295000010 cpu=0 idx=10 flags=";
            let text = format!(
                "# kernel: Linux 6.12.1, HZ=250\n# whole from: {whole_from}\n  \
                 sh-7 [000] d..1. 8.960000: timer_start: timer=02 function=f expires=4294999989 [timeout=9] \
                 bucket_expiry=4294999990 cpu=0 idx=54 flags=\n  \
                 sh-7 [000] d.s1. 8.997000: timer_cancel: timer=02\n  sh-7 [000] ..s1. 8.997001: \
                 timer_expire_entry: timer=02 function=f now=4294999990 baseclk=4294999990\n  \
                 sh-7 [000] d..1. 9.000001: {start}\n  sh-7 [000] d..1. 9.000002: {start}\n  \
                 sh-7 [000] d..1. 9.000003: tick_stop: success=1 dependency=NONE\n"
            );
            let mut reader = TraceReader::new(text.as_bytes());
            reader.read_header().expect("a header");
            let mut verify = Verify::new(reader.header());
            verify.read(&mut reader, u64::MAX).expect("a trace");
            let verification = verify.finish(&reader);
            (verification.mismatches, verification.timer_starts, verification.first_mismatch.is_some())
        };
        let (_, starts, has_mismatch) = verified("8.000000000");
        assert_eq!((starts, has_mismatch), (3, true), "a cancel is missing");
        assert_eq!(verified("9.000002000"), (0, 1, false));
        assert_eq!(verified("9.000002001"), (0, 0, false));
    }
}
