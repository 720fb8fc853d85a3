//! What a verification comes to: counts, the classes, and the lines that contradict the wheel.
//!
//! The fields are the JSON of `quietcore verify --json`; `docs/reference/verify.md` defines each.
//! Invariant, whatever the input: `timer_starts` = `exact` + the sum of `classes` + `mismatches`.

use crate::class::ClockClasses;
use crate::counts::{CancelCounts, ExpiryCounts, RunCounts, VerifyNotes};
use crate::mismatch::Mismatch;
use crate::replay::TimerReplay;
use crate::tmigr::HierarchyCounts;
use quietcore_trace::{Header, Tally, counted};
use serde::Serialize;

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
    pub classes: ClockClasses,
    /// Those that agree with none.
    pub mismatches: u64,
    /// `timer_cancel` lines.
    pub cancels: CancelCounts,
    /// `timer_expire_entry` lines.
    pub expiries: ExpiryCounts,
    /// Runs of a bucket; `None` where the text does not say what the CPU was doing.
    pub runs: Option<RunCounts>,
    /// Counts of what is no mismatch.
    pub notes: VerifyNotes,
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
    #[must_use]
    pub fn mismatches_of_all_kinds(&self) -> u64 {
        let runs = self.runs.map_or(0, |runs| runs.mismatches);
        let hierarchy = self.tmigr.unexplained + self.tmigr.tree_mismatches;
        self.mismatches + self.cancels.mismatches + self.expiries.mismatches + runs + hierarchy
    }
}

/// The result of `replay` on everything that `tally` counts.
pub(crate) fn verification(replay: TimerReplay, header: &Header, tally: &Tally) -> Verification {
    let not_recorded = not_recorded(&replay);
    let mut incomplete = incomplete(&replay, tally);
    let TimerReplay { mut counts, levels, swapped, due, hierarchy, .. } = replay;
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
        notes: VerifyNotes { swapped: swapped.pairs, ..counts.notes },
        tmigr,
        not_recorded,
        incomplete,
        first_mismatch: counts.listed.first().cloned(),
        mismatch_list: counts.listed,
    };
    verification.ok = verification.mismatches_of_all_kinds() == 0;
    verification
}

fn not_recorded(replay: &TimerReplay) -> Vec<&'static str> {
    let TimerReplay { seen, counts, due, .. } = replay;
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

fn incomplete(replay: &TimerReplay, tally: &Tally) -> Vec<String> {
    let TimerReplay { seen, counts, due, timers_max, .. } = replay;
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
            "{least}{} lost: the state of every base is unknown from there on",
            counted(tally.lost_events, "event was", "events were")
        ),
    );
    if let Some(ran_back) = tally.time_ran_back {
        add(true, format!("{ran_back}: it begins a second recording, or the lines are not in order"));
    }
    add(
        tally.malformed > 0,
        format!(
            "{} unreadable: the state of every base is unknown from there on",
            counted(tally.malformed, "line is", "lines are")
        ),
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
        format!(
            "{} not say which bucket",
            counted(counts.notes.without_bucket, "timer_start line does", "timer_start lines do")
        ),
    );
    add(
        replay.is_full,
        format!("more than {timers_max} timers were pending at once: everything was forgotten then"),
    );
    reasons
}
