//! Looks for an order of steps in which every line is what the model computes.
//!
//! Steps are taken in the order of their lines, and a step that differs is taken back. What may be tried
//! instead costs one each, and the sum is limited, so that an order close to that of the lines is found
//! first: a step comes later than its line, before or after one that touches the same group; a step comes
//! earlier; a CPU that looked for due events took another moment for "now"; a hidden next event is that of a
//! moment before. Each choice must keep to the intervals (`order.rs`).

use super::line::LineContent;
use super::order::{OrderedStep, StepKind, StepOrder};

/// Other moments for "now", in ticks: jiffies are rarely off by more than one.
const TICKS: [i64; 11] = [-1, 1, 0, -2, 2, -3, 3, -4, 4, -5, 5];

#[derive(Clone, Copy, Debug)]
pub(super) struct Effort {
    /// How many of the steps that were taken already may be taken back.
    pub(super) back: usize,
    /// How many choices may differ from the order of the lines.
    pub(super) choices: u8,
    pub(super) steps: u64,
    /// Only steps of this CPU may move.
    pub(super) only: Option<u16>,
    /// Only steps that touch one of these groups may move.
    pub(super) near: u64,
}

struct Search<'a> {
    order: &'a mut StepOrder,
    effort: Effort,
    steps: Vec<OrderedStep>,
    is_taken: Vec<bool>,
    /// Steps that come later than their turn.
    postponed: Vec<usize>,
    /// The earliest end of the steps from each one on.
    ends: Vec<u64>,
    /// Steps taken before the search.
    base: usize,
    limit: u64,
}

impl StepOrder {
    /// Takes `more` after what was taken, in some order; `false` leaves everything as it was.
    pub(super) fn explain(&mut self, more: &[OrderedStep], effort: Effort) -> bool {
        let base = self.len().saturating_sub(effort.back);
        let before = self.undo_to(base);
        let mut steps = before.clone();
        steps.extend_from_slice(more);
        let mut ends: Vec<u64> = steps.iter().map(|step| self.until(step)).collect();
        for index in (1..ends.len()).rev() {
            ends[index - 1] = ends[index - 1].min(ends[index]);
        }
        let (is_taken, postponed) = (vec![false; steps.len()], Vec::new());
        let limit = self.spent + effort.steps;
        let mut search = Search { order: self, effort, steps, is_taken, postponed, ends, base, limit };
        if search.from(0, effort.choices) {
            return true;
        }
        self.drop_to(base);
        for mut step in before {
            let is_same = self.take(&mut step);
            debug_assert!(is_same, "steps that fitted once fit again");
        }
        false
    }
}

impl Search<'_> {
    /// All steps before `first` are taken or postponed: takes the rest, with that many choices left.
    fn from(&mut self, first: usize, choices: u8) -> bool {
        if self.is_over() {
            return false;
        }
        let next = (first..self.steps.len()).find(|&step| !self.is_taken[step]);
        if next.is_none() && self.postponed.is_empty() {
            return true;
        }
        for place in 0..self.postponed.len() {
            let step = self.postponed[place];
            // It matters only after something that it meets.
            let meets = self.steps[step].touches & self.order.touched_last() != 0;
            if next.is_none() || meets || self.order.len() == self.base {
                self.postponed.remove(place);
                if self.attempt(step, first, choices) {
                    return true;
                }
                self.postponed.insert(place, step);
            }
        }
        let Some(next) = next else { return false };
        if self.attempt(next, next + 1, choices) {
            return true;
        }
        choices > 0 && !self.is_over() && self.try_alternatives(next, choices - 1)
    }

    fn is_over(&self) -> bool {
        self.order.spent > self.limit
    }

    /// Takes `step` now and goes on from `first`; takes it back if that leads nowhere.
    fn attempt(&mut self, step: usize, first: usize, choices: u8) -> bool {
        if self.is_over() || !self.may_go(step, first) {
            return false;
        }
        let len = self.order.len();
        if self.order.take(&mut self.steps[step]) {
            self.is_taken[step] = true;
            if self.from(first, choices) {
                return true;
            }
            self.is_taken[step] = false;
            self.order.drop_to(len);
        }
        false
    }

    /// Whether no other step must come before `step`; those before `first` are taken or postponed.
    fn may_go(&self, step: usize, first: usize) -> bool {
        let from = self.steps[step].from;
        let may_precede = |other: usize| other == step || self.order.until(&self.steps[other]) > from;
        if !self.postponed.iter().all(|&other| may_precede(other)) {
            return false;
        }
        // `ends` counts steps of the rest that are taken already, so it only decides what is allowed.
        self.ends.get(first).is_none_or(|&end| end > from)
            || (first..self.steps.len()).all(|other| self.is_taken[other] || may_precede(other))
    }

    fn may_move(&self, step: usize) -> bool {
        let OrderedStep { line, touches, .. } = self.steps[step];
        self.effort.only.is_none_or(|cpu| cpu == line.cpu) && touches & self.effort.near != 0
    }

    /// Anything but taking `next` now as it is.
    fn try_alternatives(&mut self, next: usize, choices: u8) -> bool {
        if self.may_move(next) {
            if self.vary(next, choices) {
                return true;
            }
            self.postponed.push(next);
            if self.from(next + 1, choices) {
                return true;
            }
            self.postponed.pop();
        }
        let mut jumped = self.steps[next].touches;
        for step in next + 1..self.steps.len() {
            if self.is_taken[step] {
                continue;
            }
            let touches = self.steps[step].touches;
            let is_settle = matches!(self.steps[step].kind, StepKind::Settle);
            if !is_settle && touches & jumped != 0 && self.may_move(step) {
                if self.attempt(step, next, choices) {
                    return true;
                }
                if self.is_over() {
                    return false;
                }
            }
            jumped |= touches;
        }
        false
    }

    /// The same step, with another moment or another hidden event.
    fn vary(&mut self, step: usize, choices: u8) -> bool {
        let was = self.steps[step];
        let changed: Vec<OrderedStep> = match (was.kind, was.line.what) {
            (StepKind::Line, LineContent::Remote { level: 0, .. }) => {
                let stalls = self.order.stalls(&was.line).into_iter().filter(|ticks| !TICKS.contains(ticks));
                let others = TICKS.into_iter().chain(stalls).filter(|ticks| *ticks != was.ticks);
                others.map(|ticks| OrderedStep { ticks, ..was }).collect()
            }
            (StepKind::Check { hidden: [one, other] }, _) if one != other => {
                vec![OrderedStep { pick: 1 - was.pick, ..was }]
            }
            _ => return false,
        };
        for other in changed {
            self.steps[step] = other;
            if self.attempt(step, step + 1, choices) {
                return true;
            }
        }
        self.steps[step] = was;
        false
    }
}
