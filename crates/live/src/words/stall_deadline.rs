//! When the sentinel must look: the stall deadline and the requested alarm, in one deadline word.
//!
//! While a lane is awake and turns, it pushes the word ahead of itself, once per tick machine-wide; when all
//! are stuck, the word stays and the sentinel's timer goes off. The last lane that goes idle leaves the word
//! behind the moment at which a lane must be awake by itself, or at none. While no lane is awake, the thread
//! that arms the first timer of the whole tree requests an alarm: first in a word of its own, then by pulling
//! the deadline. A lane that wakes up makes that void: it looks after everything.
//!
//! Races 5 to 7 of [lane/README.md](../lane/README.md); models: `models.rs`. All moments are the kernel's.

use super::lane::RequestedAlarm;
use crate::words::alarm::Alarm;
use quietcore_core::{Nanos, StallPolicy};

/// What is known of a machine's lanes as a whole.
#[derive(Debug)]
pub(crate) struct StallDeadline {
    asked: RequestedAlarm,
    tick: Nanos,
    policy: StallPolicy,
}

impl StallDeadline {
    pub(crate) fn new(tick: Nanos, policy: StallPolicy) -> Self {
        Self { asked: RequestedAlarm::new(), tick, policy }
    }

    pub(crate) const fn policy(&self) -> StallPolicy {
        self.policy
    }

    /// When the sentinel looks if no lane turns from `now` on.
    pub(crate) fn fires_at(&self, now: Nanos) -> Option<Nanos> {
        self.policy.sentinel_deadline(now, self.tick)
    }

    /// A lane has to be awake at `at`, and none will be. From any thread. Cost: two
    /// compare-and-swaps; half a microsecond if it is news.
    pub(crate) fn ask(&self, alarm: &Alarm, at: Nanos) {
        self.asked.ask(at);
        alarm.pull(at);
    }

    /// A lane that takes part is awake in the tree from now on, and must turn. Cost: two compare-and-swaps;
    /// half a microsecond more if it woke up earlier than any thread expected.
    pub(crate) fn arm(&self, alarm: &Alarm, now: Nanos) {
        self.asked.forget();
        self.expect_turn(alarm, now);
    }

    /// A lane must turn from `now` on: the sentinel looks no later than is allowed after that.
    pub(crate) fn expect_turn(&self, alarm: &Alarm, now: Nanos) {
        if let Some(latest) = self.fires_at(now) {
            alarm.pull(latest);
        }
    }

    /// The same lane still turns: the sentinel need not look. Once per tick. Cost: a load; once per tick
    /// machine-wide half a microsecond.
    pub(crate) fn hold(&self, alarm: &Alarm, now: Nanos) {
        let Some(deadline) = self.policy.deadline(now) else { return };
        let seen = alarm.load();
        if seen.is_some_and(|at| at < deadline) {
            // The thread that changed it meanwhile holds it, or wants the sentinel sooner.
            let _ = alarm.push(seen, self.fires_at(now));
        } else {
            self.expect_turn(alarm, now);
        }
    }

    /// The calling lane was the last one awake at `now`, and is up by itself at `until`. `is_any_awake`
    /// is asked again. Cost: half a microsecond.
    pub(crate) fn leave(
        &self,
        alarm: &Alarm,
        now: Nanos,
        until: Option<Nanos>,
        is_any_awake: impl FnOnce() -> bool,
    ) {
        if self.policy.is_never() {
            return;
        }
        // The thread that changes it meanwhile wants the sentinel sooner, or answers for more.
        let _ = alarm.push(alarm.load(), until.and_then(|until| self.policy.deadline(until)));
        if let Some(asked) = self.asked.before(until) {
            alarm.pull(asked);
        }
        if is_any_awake() {
            self.expect_turn(alarm, now);
        }
    }

    /// For the sentinel, after it took the deadline: forgets what was asked for by `now`, and says whether
    /// there was something.
    pub(crate) fn take_due(&self, now: Nanos) -> bool {
        self.asked.take_due(now)
    }

    /// For the sentinel, at the end of a look: what is asked for still is.
    pub(crate) fn resume(&self, alarm: &Alarm) {
        if let Some(asked) = self.asked.before(None) {
            alarm.pull(asked);
        }
    }
}

#[cfg(all(test, loom))]
mod models;
