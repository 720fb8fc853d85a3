//! What the replay of timers counts as it goes, and the first mismatches that it found.

use crate::class::ClockClasses;
use crate::mismatch::{Check, Mismatch, MismatchText};
use serde::Serialize;

/// Mismatches that are kept; all are counted.
const LISTED_MAX: usize = 20;

/// `timer_cancel` lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CancelCounts {
    /// All of them; every expiry has one, too.
    pub total: u64,
    /// Those that contradict the replay.
    pub mismatches: u64,
}

/// `timer_expire_entry` lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ExpiryCounts {
    /// All of them: `exact`, the classes and `mismatches` together.
    pub total: u64,
    /// In the right bucket, at the right moment, in the right order.
    pub exact: u64,
    /// Those whose bucket the input does not tell.
    pub classes: ExpiryClasses,
    /// Those that contradict the replay.
    pub mismatches: u64,
}

/// Expiries that can only be checked in part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ExpiryClasses {
    /// The timer's start is not in the input: it was before the recording, on a CPU that was not yet
    /// traced, or lost.
    pub start_unseen: u64,
}

/// Runs of a bucket: from its first expiry to the end of the softirq.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RunCounts {
    /// All of them.
    pub total: u64,
    /// Those with two timers and more, in which the order shows.
    pub of_several: u64,
    /// Those that ended too early.
    pub mismatches: u64,
}

/// Counts of what is no mismatch and worth knowing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct VerifyNotes {
    /// Starts for which the replay leaves two buckets possible, because the input does not tell whether
    /// the kernel has looked at a base again.
    pub two_places: u64,
    /// `exact` starts whose replayed clock is not jiffies, but gives the same bucket.
    pub same_place: u64,
    /// Timers that expired at boot while the kernel's events were off for a moment.
    pub boot_gap: u64,
    /// Pairs of lines with equal time stamps in the wrong order.
    pub swapped: u64,
    /// `timer_cancel` lines of timers whose start is not in the input.
    pub cancel_unseen: u64,
    /// Expiries between whose two lines an interrupt's exit wrote `tick_stop`.
    pub interrupt_exit: u64,
    /// Expiries in the thread `ktimers/N` (PREEMPT_RT) before which other tasks had the CPU: after the timer
    /// was taken out, or since the expiry before it in its run.
    pub preempted: u64,
    /// Starts that do not say which bucket; they are not in `timer_starts`.
    pub without_bucket: u64,
    /// Pending timers that were forgotten where lines were missing or the memory's limit was reached.
    pub forgotten: u64,
}

#[derive(Debug, Default)]
pub(crate) struct ReplayCounts {
    pub(crate) starts: u64,
    pub(crate) exact: u64,
    pub(crate) classes: ClockClasses,
    pub(crate) start_mismatches: u64,
    pub(crate) cancels: CancelCounts,
    pub(crate) expiries: ExpiryCounts,
    pub(crate) runs: RunCounts,
    pub(crate) notes: VerifyNotes,
    /// In order of lines.
    pub(crate) listed: Vec<Mismatch>,
}

impl ReplayCounts {
    /// Counts a mismatch, and keeps it if it is one of the first: only then it is put into words, so that a
    /// hostile input of nothing else is no slower.
    pub(crate) fn mismatch(&mut self, line: u64, kind: Check, words: impl FnOnce() -> MismatchText) {
        *match kind {
            Check::TimerStart => &mut self.start_mismatches,
            Check::TimerCancel => &mut self.cancels.mismatches,
            Check::TimerExpireEntry => &mut self.expiries.mismatches,
            Check::Run => &mut self.runs.mismatches,
            Check::Hierarchy | Check::Tree => return, // counted by `tmigr`
        } += 1;
        if self.place(line) < LISTED_MAX {
            let MismatchText { event, expected, recorded, why } = words();
            let why = why.to_owned();
            self.list(Mismatch { line, kind, event, expected, recorded, why });
        }
    }

    /// A line that owes another one is found late, so lines do not come in order.
    fn place(&self, line: u64) -> usize {
        self.listed.partition_point(|listed| listed.line <= line)
    }

    pub(crate) fn list(&mut self, mismatch: Mismatch) {
        let place = self.place(mismatch.line);
        if place < LISTED_MAX {
            self.listed.truncate(LISTED_MAX - 1);
            self.listed.insert(place, mismatch);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Check, LISTED_MAX, MismatchText, ReplayCounts};

    /// Goal: the list holds the first lines, whatever order they are found in, and all are counted.
    #[test]
    fn the_list_holds_the_first_lines() {
        let mut counts = ReplayCounts::default();
        for line in (1..=100).rev() {
            counts.mismatch(line, Check::Run, MismatchText::default);
            assert!(counts.listed.len() <= LISTED_MAX);
        }
        let lines: Vec<_> = counts.listed.iter().map(|mismatch| mismatch.line).collect();
        assert_eq!(lines, (1..=20).collect::<Vec<_>>());
        assert_eq!(counts.runs.mismatches, 100);
    }
}
