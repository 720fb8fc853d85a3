//! What a verification comes to: counts, the classes, and the lines that contradict the wheel.
//!
//! The fields are the JSON of `quietcore verify --json`; `docs/verify.md` defines each. Invariant, whatever
//! the input: `timer_starts` = `exact` + the sum of `classes` + `mismatches`.

use crate::class::Classes;
use crate::replay::Replay;
use crate::tmigr::HierarchyCounts;
use quietcore_trace::{Header, Tally};
use serde::Serialize;

/// Mismatches that are kept; all are counted.
const LISTED_MAX: usize = 20;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Check {
    /// Where a `timer_start` says that the timer was put.
    TimerStart,
    /// A `timer_cancel` is of a pending timer, and a pending timer that is started again has one.
    TimerCancel,
    /// The bucket, the moment and the place in the order of a `timer_expire_entry`.
    TimerExpireEntry,
    /// A bucket is run completely, and no due bucket is left.
    Run,
    /// A line of the timer migration hierarchy: masks, migrator, events, wake-up.
    Hierarchy,
    /// A line that builds the hierarchy's tree.
    Tree,
}

impl Check {
    /// As in the JSON.
    ///
    /// ```
    /// assert_eq!(quietcore_verify::Check::Run.name(), "run");
    /// ```
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TimerStart => "timer_start",
            Self::TimerCancel => "timer_cancel",
            Self::TimerExpireEntry => "timer_expire_entry",
            Self::Run => "run",
            Self::Hierarchy => "hierarchy",
            Self::Tree => "tree",
        }
    }
}

/// A line that contradicts the wheel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Mismatch {
    /// Its number in the input, from 1.
    pub line: u64,
    /// What was compared.
    pub kind: Check,
    /// The event in words: the timer, its base, its numbers.
    pub event: String,
    /// What the replay arrives at.
    pub expected: String,
    /// What the line says.
    pub recorded: String,
    /// What does not agree.
    pub why: String,
}

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
pub struct Notes {
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
    /// Starts that do not say which bucket; they are not in `timer_starts`.
    pub without_bucket: u64,
    /// Pending timers that were forgotten where lines were missing or the memory's limit was reached.
    pub forgotten: u64,
}

/// The result of a verification.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Verification {
    /// 1.
    pub schema: u32,
    /// Whether nothing contradicts the wheel or the hierarchy.
    pub ok: bool,
    /// The release of the kernel that wrote the input.
    pub kernel: Option<String>,
    /// Its ticks per second, if the input says.
    pub hz: Option<u32>,
    /// Levels of the wheel.
    pub levels: usize,
    /// Bases of each CPU: 2 up to 6.8, 3 from 6.9; `None` before the first start.
    pub bases_per_cpu: Option<u32>,
    /// Whether the first start is of the first seconds after boot; `None` before the first start.
    pub begins_at_boot: Option<bool>,
    /// Event lines read.
    pub events: u64,
    /// Events that the input says were lost.
    pub lost_events: u64,
    /// Lines that look like events and are not readable.
    pub malformed: u64,
    /// `timer_start` lines that say which bucket.
    pub timer_starts: u64,
    /// `exact` and all `classes` together.
    pub explained: u64,
    /// Those that agree with clock = jiffies.
    pub exact: u64,
    /// Those that agree with another clock that the replay arrives at.
    pub classes: Classes,
    /// Those that agree with none.
    pub mismatches: u64,
    /// `timer_cancel` lines.
    pub cancels: CancelCounts,
    /// `timer_expire_entry` lines.
    pub expiries: ExpiryCounts,
    /// Runs of a bucket; `None` where the text does not say what the CPU was doing.
    pub runs: Option<RunCounts>,
    /// Counts of what is no mismatch.
    pub notes: Notes,
    /// The timer migration hierarchy (6.9 on).
    pub tmigr: HierarchyCounts,
    /// Events and fields that the input does not have, so that something could not be compared.
    pub not_recorded: Vec<&'static str>,
    /// Why less than everything was compared.
    pub incomplete: Vec<String>,
    /// The mismatch with the lowest line number, of any kind.
    pub first_mismatch: Option<Mismatch>,
    /// The first twenty, by line number.
    pub mismatch_list: Vec<Mismatch>,
}

impl Verification {
    /// Lines of all kinds that contradict the wheel or the hierarchy.
    ///
    /// ```
    /// use quietcore_trace::TraceReader;
    /// use quietcore_verify::Verify;
    /// let mut reader = TraceReader::new(&b"# trace: x\n"[..]);
    /// let mut verify = Verify::new(reader.header());
    /// verify.read(&mut reader, u64::MAX)?;
    /// assert_eq!(verify.finish(&reader).mismatches_of_all_kinds(), 0);
    /// # Ok::<(), quietcore_trace::ReadError>(())
    /// ```
    #[must_use]
    pub fn mismatches_of_all_kinds(&self) -> u64 {
        let runs = self.runs.map_or(0, |runs| runs.mismatches);
        let hierarchy = self.tmigr.unexplained + self.tmigr.tree_mismatches;
        self.mismatches + self.cancels.mismatches + self.expiries.mismatches + runs + hierarchy
    }
}

/// What the replay counts as it goes.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) starts: u64,
    pub(crate) exact: u64,
    pub(crate) classes: Classes,
    pub(crate) start_mismatches: u64,
    pub(crate) cancels: CancelCounts,
    pub(crate) expiries: ExpiryCounts,
    pub(crate) runs: RunCounts,
    pub(crate) notes: Notes,
    /// In order of lines.
    pub(crate) listed: Vec<Mismatch>,
}

impl Counts {
    /// Counts a mismatch, and keeps it if it is one of the first: only then it is put into words, so that a
    /// hostile input of nothing else is no slower.
    pub(crate) fn mismatch(&mut self, line: u64, kind: Check, words: impl FnOnce() -> Words) {
        *match kind {
            Check::TimerStart => &mut self.start_mismatches,
            Check::TimerCancel => &mut self.cancels.mismatches,
            Check::TimerExpireEntry => &mut self.expiries.mismatches,
            Check::Run => &mut self.runs.mismatches,
            Check::Hierarchy | Check::Tree => return, // counted by `tmigr`
        } += 1;
        if self.place(line) < LISTED_MAX {
            let Words { event, expected, recorded, why } = words();
            let why = why.to_owned();
            self.list(Mismatch { line, kind, event, expected, recorded, why });
        }
    }

    /// A line that owes another one is found late, so lines do not come in order.
    fn place(&self, line: u64) -> usize {
        self.listed.partition_point(|listed| listed.line <= line)
    }

    fn list(&mut self, mismatch: Mismatch) {
        let place = self.place(mismatch.line);
        if place < LISTED_MAX {
            self.listed.truncate(LISTED_MAX - 1);
            self.listed.insert(place, mismatch);
        }
    }
}

/// A mismatch in words; see [`Mismatch`].
#[derive(Debug, Default)]
pub(crate) struct Words {
    pub(crate) event: String,
    pub(crate) expected: String,
    pub(crate) recorded: String,
    pub(crate) why: &'static str,
}

/// The result of `replay` on everything that `tally` counts.
pub(crate) fn verification(replay: Replay, header: &Header, tally: &Tally) -> Verification {
    let not_recorded = not_recorded(&replay);
    let mut incomplete = incomplete(&replay, tally);
    let Replay { mut counts, levels, swapped, due, hierarchy, .. } = replay;
    let (tmigr, contradictions, reasons) = hierarchy.finish();
    incomplete.extend(reasons);
    contradictions.into_iter().for_each(|mismatch| counts.list(mismatch));
    let runs = due.is_none().then_some(counts.runs);
    let mut verification = Verification {
        schema: 1,
        ok: false,
        kernel: header.kernel.as_ref().map(|kernel| kernel.text.clone()),
        hz: header.hz,
        levels: levels.count(),
        bases_per_cpu: replay.bases_per_cpu,
        begins_at_boot: replay.begins_at_boot,
        events: tally.events,
        lost_events: tally.lost_events,
        malformed: tally.malformed,
        timer_starts: counts.starts,
        explained: counts.exact + counts.classes.total(),
        exact: counts.exact,
        classes: counts.classes,
        mismatches: counts.start_mismatches,
        cancels: counts.cancels,
        expiries: counts.expiries,
        runs,
        notes: Notes { swapped: swapped.pairs, ..counts.notes },
        tmigr,
        not_recorded,
        incomplete,
        first_mismatch: counts.listed.first().cloned(),
        mismatch_list: counts.listed,
    };
    verification.ok = verification.mismatches_of_all_kinds() == 0;
    verification
}

fn not_recorded(replay: &Replay) -> Vec<&'static str> {
    let Replay { seen, counts, due, .. } = replay;
    let has_starts = counts.starts > 0;
    let mut missing = Vec::new();
    for (is_missing, name) in [
        (!has_starts, "timer_start"),
        (!seen.cancel, "timer_cancel"),
        (!seen.expiry, "timer_expire_entry"),
        (has_starts && !seen.bucket_expiry, "bucket_expiry"),
        (seen.expiry && !seen.baseclk, "baseclk"),
        (due.is_some(), "runs"),
    ] {
        if is_missing {
            missing.push(name);
        }
    }
    missing
}

fn incomplete(replay: &Replay, tally: &Tally) -> Vec<String> {
    let Replay { seen, counts, due, timers_max, .. } = replay;
    let mut reasons = Vec::new();
    let mut add = |is_so: bool, reason: String| {
        if is_so {
            reasons.push(reason);
        }
    };
    let least = if tally.lost_unknown { "at least " } else { "" };
    add(
        tally.lost_events > 0,
        format!(
            "{least}{} events were lost: the state of every base is unknown from there on",
            tally.lost_events
        ),
    );
    add(
        tally.malformed > 0,
        format!("{} lines are unreadable: the state of every base is unknown from there on", tally.malformed),
    );
    add(
        due.is_some(),
        "the text has no flags (as trace-cmd report writes it): places are compared with clock = jiffies, \
         nothing is replayed"
            .to_owned(),
    );
    add(
        counts.starts > 0 && due.is_none() && !(seen.cancel && seen.expiry),
        "without timer_cancel and timer_expire_entry the state of a base is not known".to_owned(),
    );
    add(
        counts.notes.without_bucket > 0,
        format!("{} timer_start lines do not say which bucket", counts.notes.without_bucket),
    );
    add(
        replay.is_full,
        format!("more than {timers_max} timers were pending at once: everything was forgotten then"),
    );
    reasons
}

#[cfg(test)]
mod tests {
    use super::{Check, Counts, LISTED_MAX, Words};

    /// Goal: the list holds the first lines, whatever order they are found in, and all are counted.
    #[test]
    fn the_list_holds_the_first_lines() {
        let mut counts = Counts::default();
        for line in (1..=100).rev() {
            counts.mismatch(line, Check::Run, Words::default);
            assert!(counts.listed.len() <= LISTED_MAX);
        }
        let lines: Vec<_> = counts.listed.iter().map(|mismatch| mismatch.line).collect();
        assert_eq!(lines, (1..=20).collect::<Vec<_>>());
        assert_eq!(counts.runs.mismatches, 100);
    }
}
