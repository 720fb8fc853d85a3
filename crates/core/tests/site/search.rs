//! A policy that tries everything: every order of the marked steps with at most so many preemptions.
//!
//! Depth first, without memory of states. A switch away from a CPU that could go on is a preemption; one from
//! a CPU that is done or waits is not. A CPU that may freeze stops for ever at any of its marks where it
//! holds no lock, too.

use crate::stage::{Mover, Point, Policy, ready};

/// One decision: which of how many.
#[derive(Clone, Copy, Debug)]
struct Choice {
    taken: usize,
    count: usize,
}

#[derive(Default)]
pub(crate) struct Search {
    trail: Vec<Choice>,
    depth: usize,
    preemptions: usize,
    preemptions_max: usize,
    /// Virtual CPUs below this number may stop for ever.
    may_freeze: usize,
    has_frozen: usize,
    freeze_max: usize,
}

impl Search {
    pub(crate) fn new(preemptions_max: usize) -> Self {
        Self { preemptions_max, ..Self::default() }
    }

    /// The first `cpus` virtual CPUs may stop for ever, `freeze_max` of them in one run.
    pub(crate) fn freezing(self, cpus: usize, freeze_max: usize) -> Self {
        Self { may_freeze: cpus, freeze_max, ..self }
    }

    /// The next order to try; `None` when all were.
    pub(crate) fn advance(mut self) -> Option<Self> {
        self.trail.truncate(self.depth);
        while let Some(last) = self.trail.last_mut() {
            if last.taken + 1 < last.count {
                last.taken += 1;
                self.depth = 0;
                self.preemptions = 0;
                self.has_frozen = 0;
                return Some(self);
            }
            self.trail.pop();
        }
        None
    }

    fn choose(&mut self, count: usize) -> usize {
        if self.depth == self.trail.len() {
            self.trail.push(Choice { taken: 0, count });
        }
        let choice = self.trail[self.depth];
        assert_eq!(choice.count, count, "the run is not the same again at step {}", self.depth);
        self.depth += 1;
        choice.taken
    }
}

impl Policy for Search {
    fn next(&mut self, points: &mut [Point], mover: Mover) -> Result<Option<usize>, String> {
        let can_go_on = ready(points).any(|cpu| cpu == mover.cpu);
        let mut options: Vec<usize> = ready(points).filter(|&cpu| cpu != mover.cpu).collect();
        if can_go_on && self.preemptions == self.preemptions_max {
            options.clear();
        }
        if can_go_on {
            options.insert(0, mover.cpu);
        }
        // One option more: the mover stops for ever, and any that is ready goes on. Not with a lock: a
        // section is short, and a thread that is stopped inside one comes back to end it.
        let may_freeze = can_go_on && !mover.holds_locks && mover.cpu < self.may_freeze;
        let may_freeze = may_freeze && self.has_frozen < self.freeze_max;
        let count = options.len() + usize::from(may_freeze);
        if count == 0 {
            return Ok(None);
        }
        let taken = if count == 1 { 0 } else { self.choose(count) };
        if taken == options.len() {
            self.has_frozen += 1;
            points[mover.cpu] = Point::Frozen;
            return self.next(points, mover);
        }
        self.preemptions += usize::from(can_go_on && options[taken] != mover.cpu);
        Ok(Some(options[taken]))
    }

    fn into_search(self: Box<Self>) -> Option<Search> {
        Some(*self)
    }
}
