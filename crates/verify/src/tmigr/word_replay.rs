//! A recording that begins later than the hierarchy: only the groups' words are compared.
//!
//! Neither the tree nor the queues are known, so no walk can be followed. What a group's word becomes when a
//! child changes it is known from the word before, and that is in the line before of the same group: with
//! [`Snapshot::with`] and [`Snapshot::without`] of the project's own hierarchy.
//!
//! What the lines leave open: two lines of one group in the wrong order, if the CPU of the later one wrote
//! nothing in between; and the bits of children that never write a line of the group (the walks of a CPU
//! whose idle loop is not recorded), which may change at any moment.

use super::counts::StepCounts;
use super::line::{HierarchyLine, LineContent, NO_MIGRATOR, WordLine};
use super::state::CHILDREN;
use super::walks::Difference;
use quietcore_core::tmigr::{ChildMask, Snapshot};
use quietcore_trace::MigrationStep;
use std::collections::{BTreeMap, BTreeSet};

/// Groups that are followed; real machines have a few hundred.
const GROUPS_MAX: usize = 4_096;
/// Lines of one group that may wait for another one of it.
const WAIT_MAX: usize = 6;
/// Lines of all groups that a line waits for another one.
const WAIT_LINES: u64 = 160;

/// A line of a group, and the line before it of its CPU.
#[derive(Clone, Copy, Debug)]
struct WordChange {
    line: HierarchyLine,
    word: WordLine,
    before: u64,
    /// How many lines were compared before it.
    since: u64,
}

#[derive(Debug)]
struct WordGroup {
    /// `None` until a line shows it.
    known: Option<Snapshot>,
    /// Children that wrote no line so far.
    unseen: u8,
    waiting: Vec<WordChange>,
}

#[derive(Debug)]
pub(super) struct WordReplay {
    /// Children that a group can have at all.
    children: u8,
    groups: BTreeMap<u64, WordGroup>,
    last: BTreeMap<u16, u64>,
    /// CPUs that take part, and those that wrote their walks.
    parts: BTreeSet<u16>,
    walkers: BTreeSet<u16>,
    compared: u64,
}

impl WordReplay {
    /// Of a machine with so many CPUs, if that is known.
    pub(super) fn new(cpu_count: Option<u16>) -> Self {
        let children =
            cpu_count.filter(|&cpus| usize::from(cpus) < CHILDREN).map_or(u8::MAX, |cpus| (1 << cpus) - 1);
        Self {
            children,
            groups: BTreeMap::new(),
            last: BTreeMap::new(),
            parts: BTreeSet::new(),
            walkers: BTreeSet::new(),
            compared: 0,
        }
    }

    /// Takes the next line of the input; `line` is `None` when it is of no group.
    pub(super) fn take(
        &mut self,
        cpu: u16,
        number: u64,
        line: Option<HierarchyLine>,
        counts: &mut StepCounts,
    ) {
        let before = self.last.insert(cpu, number).unwrap_or(0);
        let Some(line) = line else { return };
        let word = match line.what {
            LineContent::Word(word) => word,
            LineContent::Cpu(line) => {
                let walks = matches!(line.step, MigrationStep::Active | MigrationStep::Idle);
                let _ = if walks { self.walkers.insert(line.cpu) } else { self.parts.insert(line.cpu) };
                return;
            }
            _ => return,
        };
        if self.groups.len() >= GROUPS_MAX && !self.groups.contains_key(&word.group) {
            return;
        }
        counts.events += 1;
        self.compared += 1;
        let change = WordChange { line, word, before, since: self.compared };
        let group = self.groups.entry(word.group).or_insert_with(|| WordGroup::new(self.children));
        group.take(change, counts);
        let compared = self.compared;
        if compared.is_multiple_of(64) {
            for group in self.groups.values_mut() {
                while group.waiting.first().is_some_and(|first| compared - first.since > WAIT_LINES) {
                    group.give_up(counts);
                }
            }
        }
    }

    pub(super) fn groups(&self) -> u64 {
        self.groups.len() as u64
    }

    /// CPUs that take part and whose walks are not in the input.
    pub(super) fn silent(&self) -> impl Iterator<Item = u16> {
        self.parts.difference(&self.walkers).copied()
    }

    /// Lines are missing: no word is known.
    pub(super) fn forget(&mut self) {
        for group in self.groups.values_mut() {
            group.known = None;
            group.waiting.clear();
        }
    }

    /// The end of the input: what waits may have been explained by a line that did not come.
    pub(super) fn finish(&mut self, counts: &mut StepCounts) {
        for group in self.groups.values_mut() {
            counts.order_open += group.waiting.len() as u64;
        }
    }
}

impl WordGroup {
    fn new(children: u8) -> Self {
        Self { known: None, unseen: children, waiting: Vec::new() }
    }

    fn take(&mut self, change: WordChange, counts: &mut StepCounts) {
        self.unseen &= !(change.word.child_mask as u8);
        if self.waiting.is_empty() && self.apply(&change) {
            return;
        }
        self.waiting.push(change);
        let mut left = self.waiting.clone();
        let known = self.known;
        if self.arrange(&mut left) {
            counts.order_open += 1;
            counts.waited_max = counts.waited_max.max(self.waiting.len() as u64);
            self.waiting.clear();
            return;
        }
        self.known = known;
        if self.waiting.len() > WAIT_MAX {
            self.give_up(counts);
        }
    }

    /// Applies all of `left` in an order in which each agrees.
    fn arrange(&mut self, left: &mut Vec<WordChange>) -> bool {
        if left.is_empty() {
            return true;
        }
        for place in 0..left.len() {
            let change = left[place];
            // What another CPU wrote before this CPU's last line is earlier than that.
            let may_go = left
                .iter()
                .all(|other| other.line.number == change.line.number || other.line.number > change.before);
            let known = self.known;
            if may_go && self.apply(&change) {
                left.remove(place);
                if self.arrange(left) {
                    return true;
                }
                left.insert(place, change);
            }
            self.known = known;
        }
        false
    }

    /// The word becomes that of the line, if it can.
    fn apply(&mut self, change: &WordChange) -> bool {
        let Some(child) = u8::try_from(change.word.child_mask).ok().and_then(ChildMask::from_bits) else {
            return false;
        };
        let Some(known) = self.known else {
            let shown = from_text(change.word).filter(|shown| {
                let is_set = shown.active() & child.bits() != 0;
                is_set == change.word.is_active || change.word.level > 0
            });
            self.known = shown;
            return shown.is_some();
        };
        let is_shown = |word: &Snapshot| shows(change.word, *word);
        let bits = change.word.active as u8 | known.active();
        let after = self.possible(known, bits).into_iter().find_map(|word| {
            let next = if change.word.is_active { word.with(child) } else { word.without(child) };
            // A group that became active again before its bit was cleared keeps it.
            let stays = !change.word.is_active && change.word.level > 0 && is_shown(&word);
            if is_shown(&next) { Some(next) } else { stays.then_some(word) }
        });
        if let Some(after) = after {
            self.known = Some(after);
        }
        after.is_some()
    }

    /// The word, and what those of `children` that never wrote may have made of it, the nearest first.
    fn possible(&self, known: Snapshot, children: u8) -> Vec<Snapshot> {
        let mut found = vec![known];
        let mut next = 0;
        while let Some(&word) = found.get(next) {
            next += 1;
            for child in (0..CHILDREN as u8).filter_map(ChildMask::new) {
                if self.unseen & children & child.bits() == 0 {
                    continue;
                }
                for other in [word.with(child), word.without(child)] {
                    let is_new = !found.iter().any(|known| {
                        (known.active(), known.migrator()) == (other.active(), other.migrator())
                    });
                    if is_new {
                        found.push(other);
                    }
                }
            }
        }
        found
    }

    /// The first line that waits has no explanation: the word becomes what it was to become.
    fn give_up(&mut self, counts: &mut StepCounts) {
        let WordChange { line, word, .. } = self.waiting.remove(0);
        let child = u8::try_from(word.child_mask).ok().and_then(ChildMask::from_bits);
        let known = self.known.unwrap_or_default();
        let Some(child) = child else {
            counts.unexplained(&line, Some(Difference::Why("childmask is no child")));
            return;
        };
        let next = if word.is_active { known.with(child) } else { known.without(child) };
        self.known = Some(next);
        let expected = WordLine {
            active: u32::from(next.active()),
            migrator: next.migrator().map_or(NO_MIGRATOR, |mask| u32::from(mask.bits())),
            ..word
        };
        counts.unexplained(&line, Some(Difference::Expected(LineContent::Word(expected))));
    }
}

fn shows(line: WordLine, word: Snapshot) -> bool {
    let migrator = word.migrator().map_or(NO_MIGRATOR, |mask| u32::from(mask.bits()));
    (line.active, line.migrator) == (u32::from(word.active()), migrator)
}

/// The word of a line, if it is one that a group can have.
fn from_text(line: WordLine) -> Option<Snapshot> {
    let active = u8::try_from(line.active).ok()?;
    let children = (0..CHILDREN as u8).filter_map(ChildMask::new).filter(|child| active & child.bits() != 0);
    let migrator = u8::try_from(line.migrator).ok().and_then(ChildMask::from_bits);
    let first = migrator.map_or(Snapshot::default(), |migrator| Snapshot::default().with(migrator));
    let word = children.fold(first, Snapshot::with);
    shows(line, word).then_some(word)
}
