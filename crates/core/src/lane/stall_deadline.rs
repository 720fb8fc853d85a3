//! When the sentinel must look: the stall deadline and the requested alarm, in one deadline word.
//!
//! While a lane is awake and turns, it pushes the word ahead of itself, once per tick machine-wide; when all
//! are stuck, the word stays and the sentinel's timer goes off. The last lane that goes idle leaves the word
//! behind the moment at which a lane must be awake by itself, or at none. While no lane is awake, the thread
//! that arms the first timer of the whole tree requests an alarm: first in a word of its own, then by pulling
//! the deadline. A lane that wakes up makes that void: it looks after everything.
//!
//! Races 5 to 7 of [README.md](README.md); models: `models.rs`.

use super::deadline::{Deadline, PushOutcome};
use super::slot_words::RequestedAlarm;
use crate::{Actions, Nanos, StallPolicy};

/// When lanes that sleep are up again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LaneWakeups {
    /// When the first of them should be. Not all may know: the hierarchy wants one awake for what was armed
    /// after it went to sleep, and an alarm was asked for.
    pub(super) first: Option<Nanos>,
    /// When the first of them is, by itself.
    pub(super) told: Option<Nanos>,
}

/// What is known of a machine's lanes as a whole.
#[derive(Debug)]
pub(super) struct StallDeadline {
    pub(super) word: Deadline,
    asked: RequestedAlarm,
    tick: Nanos,
    policy: StallPolicy,
}

impl StallDeadline {
    pub(super) fn new(tick: Nanos, policy: StallPolicy) -> Self {
        Self { word: Deadline::new(), asked: RequestedAlarm::new(), tick, policy }
    }

    pub(super) const fn policy(&self) -> StallPolicy {
        self.policy
    }

    /// When the sentinel looks if no lane turns from `now` on.
    pub(super) fn fires_at(&self, now: Nanos) -> Option<Nanos> {
        self.policy.sentinel_deadline(now, self.tick)
    }

    /// The sentinel looks at `at` at the latest.
    pub(super) fn pull(&self, at: Nanos, actions: &mut Actions) {
        if self.word.pull(at) {
            actions.program_timer();
        }
    }

    fn push(&self, seen: Option<Nanos>, at: Option<Nanos>, actions: &mut Actions) {
        // The thread that changed it meanwhile answers for more, or wants the sentinel sooner.
        if self.word.push(seen, at) == PushOutcome::Done {
            actions.program_timer();
        }
    }

    /// A lane has to be awake at `at`, and none will be. From any thread. Cost: two compare-and-swaps.
    pub(super) fn ask(&self, at: Nanos, actions: &mut Actions) {
        self.asked.ask(at);
        self.pull(at, actions);
    }

    /// A lane that takes part is awake in the tree from now on, and must turn. `is_in_tree` is asked again,
    /// under the lock of its record: one that was isolated meanwhile wakes up for no other, and what was
    /// asked for stays. Cost: two compare-and-swaps.
    pub(super) fn arm(&self, now: Nanos, is_in_tree: impl FnOnce() -> bool, actions: &mut Actions) {
        if let Some(asked) = self.asked.forget()
            && !is_in_tree()
        {
            self.ask(asked, actions);
        }
        self.expect_turn(now, actions);
    }

    /// A lane must turn from `now` on: the sentinel looks no later than is allowed after that.
    pub(super) fn expect_turn(&self, now: Nanos, actions: &mut Actions) {
        if let Some(latest) = self.fires_at(now) {
            self.pull(latest, actions);
        }
    }

    /// The same lane still turns: the sentinel need not look. Once per tick. `is_in_tree` as for
    /// [`arm`](Self::arm). Cost: a load; once per tick machine-wide a compare-and-swap.
    pub(super) fn hold(&self, now: Nanos, is_in_tree: impl FnOnce() -> bool, actions: &mut Actions) {
        let Some(deadline) = self.policy.deadline(now) else { return };
        let seen = self.word.load();
        if seen.is_some_and(|at| at < deadline) {
            self.push(seen, self.fires_at(now), actions);
            if let Some(asked) = self.asked.before(None)
                && !is_in_tree()
            {
                self.pull(asked, actions);
            }
        } else {
            self.expect_turn(now, actions);
        }
    }

    /// The calling lane is not awake from `now` on, and `is_any_awake` asks whether any is. If it was the
    /// last one, `wakeups` tells when others should be up. One that wakes up meanwhile may have armed before
    /// this takes that back, so the question comes again. Cost: a compare-and-swap.
    pub(super) fn leave(
        &self,
        now: Nanos,
        wakeups: impl FnOnce() -> LaneWakeups,
        is_any_awake: impl Fn() -> bool,
        actions: &mut Actions,
    ) {
        if is_any_awake() || self.policy.is_never() {
            return;
        }
        let wakeups = wakeups();
        let silent_from = wakeups.first.and_then(|first| self.policy.deadline(first));
        self.push(self.word.load(), silent_from, actions);
        if let Some(asked) = self.asked.before(wakeups.told) {
            self.pull(asked, actions);
        }
        if is_any_awake() {
            self.expect_turn(now, actions);
        }
    }

    /// For the sentinel, after it took the deadline: forgets what was asked for by `now`, and says whether
    /// there was something.
    pub(super) fn take_due(&self, now: Nanos) -> bool {
        self.asked.take_due(now)
    }

    /// For the sentinel, at the end of a look: what is asked for still is.
    pub(super) fn resume(&self, actions: &mut Actions) {
        if let Some(asked) = self.asked.before(None) {
            self.pull(asked, actions);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{LaneWakeups, StallDeadline};
    use crate::{Actions, Nanos, StallPolicy};
    use core::cell::Cell;

    /// Goal: the last lane that is awake leaves no deadline behind, unless another one wakes up meanwhile.
    /// Method: what it is told at its two looks.
    #[test]
    fn the_last_lane_looks_twice() {
        let now = Nanos(5_000_000);
        for (looks, is_left) in [([false, false], true), ([false, true], false), ([true, true], false)] {
            let deadline = StallDeadline::new(Nanos(1_000_000), StallPolicy::default());
            let mut actions = Actions::new(2);
            deadline.expect_turn(now, &mut actions);
            let look = Cell::new(0);
            let is_any_awake = || looks[look.replace(look.get() + 1)];
            deadline.leave(now, || LaneWakeups { first: None, told: None }, is_any_awake, &mut actions);
            let expected = deadline.fires_at(now).filter(|_| !is_left);
            assert_eq!(deadline.word.load(), expected, "{looks:?}");
        }
    }
}

#[cfg(all(test, loom))]
mod models;
