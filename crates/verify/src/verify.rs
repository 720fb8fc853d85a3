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
}

impl Verify {
    /// A replay of nothing yet; `header` says which kernel wrote the input.
    #[must_use]
    pub fn new(header: &Header) -> Self {
        Self { replay: TimerReplay::new(header, PENDING_MAX), malformed: 0 }
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
        self.replay.take(record);
    }

    /// What it came to. `reader` says what was read and what was lost.
    #[must_use]
    pub fn finish<R: Read>(self, reader: &TraceReader<R>) -> Verification {
        verification(self.replay, reader.header(), reader.tally())
    }
}
