//! The timer migration hierarchy of a recording (6.9 on), replayed on the project's own.
//!
//! The tree is built by [`quietcore_core::tmigr::Tree`], each group's word changes by
//! [`quietcore_core::tmigr::Snapshot`], and every `tmigr_*` line must be what that gives: masks, migrator,
//! first event, wake-up. The queues keep the kernel's habits (`queue.rs`), which ours does not imitate.
//! Nothing is taken over from a line but what only the kernel can know: that a CPU goes idle, and its next
//! timer.
//!
//! [`HierarchyReplay`] chooses: a recording that has the first group is compared completely
//! (`full_replay.rs`), a later one as far as words go (`word_replay.rs`).
//! Where lines are missing, the second takes over. Memory is bounded.

mod build;
mod clock;
mod counts;
mod full_replay;
mod line;
mod order;
mod queue;
mod remote;
mod search;
mod state;
mod walks;
mod word_replay;

pub use counts::HierarchyCounts;

pub(crate) use clock::Wheels;

use crate::mismatch::Mismatch;
use counts::StepCounts;
use full_replay::FullReplay;
use line::HierarchyLine;
use quietcore_trace::{Event, Header, Migration, Record};
use word_replay::WordReplay;

/// How much of the input can be compared.
#[derive(Debug)]
enum ReplayMode {
    /// No line of the hierarchy came yet.
    Nothing,
    FullReplay(Box<FullReplay>),
    WordReplay(WordReplay),
}

#[derive(Debug)]
pub(super) struct HierarchyReplay {
    header: Header,
    tick: u64,
    mode: ReplayMode,
    counts: StepCounts,
    /// Groups that were known when lines got lost.
    groups: u64,
    /// `nextevt=` that were compared with the wheel until then, and those that agree.
    next_events: (u64, u64),
    has_tree: bool,
    is_lossy: bool,
}

impl HierarchyReplay {
    pub(super) fn new(header: &Header, tick: u64) -> Self {
        Self {
            header: header.clone(),
            tick,
            mode: ReplayMode::Nothing,
            counts: StepCounts::default(),
            groups: 0,
            next_events: (0, 0),
            has_tree: false,
            is_lossy: header.lost_events > 0,
        }
    }

    /// Takes the next line, before the timers' replay does.
    pub(super) fn take(&mut self, record: &Record<'_>, wheels: &mut Wheels<'_>) {
        if self.counts.is_over() {
            return;
        }
        if let (ReplayMode::Nothing, Event::Migration(migration)) = (&self.mode, &record.event) {
            let begins = matches!(migration, Migration::GroupSet { .. }) && !self.is_lossy;
            let whole = begins.then(|| FullReplay::new(&self.header, self.tick)).flatten();
            self.has_tree = whole.is_some();
            self.mode = match whole {
                Some(whole) => ReplayMode::FullReplay(Box::new(whole)),
                None => ReplayMode::WordReplay(WordReplay::new(self.header.cpu_count)),
            };
        }
        match &mut self.mode {
            ReplayMode::Nothing => {}
            ReplayMode::FullReplay(whole) => {
                whole.take(record, wheels, &mut self.counts);
                if whole.is_lost() {
                    self.forget();
                }
            }
            ReplayMode::WordReplay(words) => {
                let cpu = record.cpu.index() as u16;
                words.take(cpu, record.line, HierarchyLine::of(record), &mut self.counts);
            }
        }
    }

    /// Lines are missing: walks and queues are not known any more.
    pub(super) fn forget(&mut self) {
        self.is_lossy = true;
        match &mut self.mode {
            ReplayMode::Nothing => {}
            ReplayMode::FullReplay(whole) => {
                whole.finish(&mut self.counts);
                self.groups = whole.groups();
                self.next_events = (whole.clock.compared, whole.clock.agreed);
                self.mode = ReplayMode::WordReplay(WordReplay::new(self.header.cpu_count));
            }
            ReplayMode::WordReplay(words) => words.forget(),
        }
    }

    /// What it came to, and every contradiction.
    pub(super) fn finish(mut self) -> (HierarchyCounts, Vec<Mismatch>, Vec<String>) {
        let mut not_recorded = Vec::new();
        let mut groups = self.groups;
        match &mut self.mode {
            ReplayMode::Nothing => not_recorded.push("timer_migration".to_owned()),
            ReplayMode::FullReplay(whole) => {
                whole.finish(&mut self.counts);
                groups = whole.groups();
                self.next_events = (whole.clock.compared, whole.clock.agreed);
            }
            ReplayMode::WordReplay(words) => {
                words.finish(&mut self.counts);
                groups = groups.max(words.groups());
                let missing: [&str; 3] = match self.has_tree {
                    true => [
                        "tree, from some line on",
                        "walks, from some line on",
                        "event queues, from some line on",
                    ],
                    false => ["tmigr_group_set", "walks", "event queues"],
                };
                not_recorded.extend(missing.map(str::to_owned));
                let silent = words.silent().take(8).map(|cpu| format!("idle loop of CPU {cpu}"));
                not_recorded.extend(silent);
            }
        }
        let incomplete = self.incomplete();
        let (next_events, next_events_as_wheel) = self.next_events;
        let result = HierarchyCounts {
            groups,
            next_events,
            next_events_as_wheel,
            not_recorded,
            ..self.counts.result()
        };
        (result, self.counts.found, incomplete)
    }

    fn incomplete(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        let mut add = |is_so: bool, reason: &str| {
            if is_so {
                reasons.push(reason.to_owned());
            }
        };
        add(self.counts.is_over(), "hierarchy: too many contradictions, the rest of it was not compared");
        add(self.counts.is_exhausted, "hierarchy: looking for an order of the CPUs' steps took too long");
        reasons
    }
}
