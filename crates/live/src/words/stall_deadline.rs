//! When the sentinel must look: the dead man's switch and the tree's alarm, in one deadline word.
//!
//! While a lane is awake and turns, it pushes the word ahead of itself, once per tick machine-wide; when all
//! of them are stuck, nobody does, and the sentinel's timer goes off (`sentinel.rs`). The last lane that goes
//! idle leaves the word at the moment at which it must be awake by itself, and a bit; or at none. While
//! nobody is awake, whoever arms the first timer of the whole tree *asks*: first in a word of its own, then
//! by pulling the deadline. A lane that wakes up makes that void: it looks after everything.
//!
//! The last one that goes idle (I) against somebody who asks (A) for a moment that I did not see:
//!   1. I: walks: nobody is awake;
//!   2. A: arms, publishes: asks for `a`, pulls the deadline;
//!   3. I: moves the deadline to its own, later moment.
//!
//! `a` would be lost; so I looks at what was asked after 3. A pull writes the word also when it changes
//! nothing, so 3, which comes later, acquires what A did before. The same I against a lane (B) that wakes up
//! meanwhile, and may get stuck at once:
//!   1. I: walks: nobody is awake;
//!   2. B: is awake in the tree; pulls the deadline to the moment at which its silence counts;
//!   3. I: moves the deadline away.
//!
//! So I looks once more whether somebody is awake after 3, and pulls for it. Models: `models.rs`,
//! `the_last_one_goes_idle`, `another_one_wakes_up`.
//!
//! All moments are the kernel's. Absent: who is awake, and what the sentinel makes of it. Source: PROTOCOL
//! section 4.

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

    /// When the sentinel looks if nobody turns from `now` on.
    pub(crate) fn fires_at(&self, now: Nanos) -> Option<Nanos> {
        self.policy.sentinel_deadline(now, self.tick)
    }

    /// Somebody has to be awake at `at`, and nobody is who will be. By anybody. Cost: two compare-and-swaps;
    /// half a microsecond if it is news.
    pub(crate) fn ask(&self, alarm: &Alarm, at: Nanos) {
        self.asked.ask(at);
        alarm.pull(at);
    }

    /// A lane that takes part is awake in the tree from now on, and must turn. Cost: two compare-and-swaps;
    /// half a microsecond more if it woke up earlier than anybody expected.
    pub(crate) fn arm(&self, alarm: &Alarm, now: Nanos) {
        self.asked.forget();
        self.expect_turn(alarm, now);
    }

    /// Somebody must turn from `now` on: the sentinel looks no later than is allowed after that.
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
            // Whoever changed it meanwhile holds it, or wants the sentinel sooner.
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
        // Whoever changes it meanwhile wants the sentinel sooner, or answers for more.
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
