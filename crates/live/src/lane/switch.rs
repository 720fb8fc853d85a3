//! When the sentinel must look: the dead man's switch and the tree's alarm, in one deadline word.
//!
//! While a lane is awake and turns, it pushes the word ahead of itself, once per tick machine-wide; when all of
//! them are stuck, nobody does, and the sentinel's timer goes off (`sentinel.rs`). The last lane that goes idle
//! leaves the word at the moment at which it must be awake by itself, and a bit; or at none.
//! While nobody is awake, whoever arms the first timer of the whole tree *asks*: first in a word of its own,
//! then by pulling the deadline. A lane that wakes up makes that void: it looks after everything.
//!
//! The last one that goes idle (I) against somebody who asks (A) for a moment that I did not see:
//!   1. I: reads the deadline, walks: nobody is awake;    2. A: arms, publishes: asks for `a`, pulls;
//!   3. I: moves the deadline from what it read to its own, later moment.
//! If 2's pull changed the deadline, 3 fails and the earlier moment stays. If it did not (the deadline was
//! earlier than `a`), 3 succeeds and `a` would be lost; so I looks at what was asked after 3, with a fence
//! between, and A asks before it pulls, with a fence between. Model: `models.rs`, `the_last_one_goes_idle`.

use super::Lanes;
use crate::alarm::Alarm;
use crate::machine::Machine;
use quietcore_core::Nanos;

impl Machine {
    /// A lane that takes part has woken up: from now on it must turn. Cost: a load; half a microsecond if it
    /// woke up earlier than anybody expected.
    pub(super) fn arm_switch(&self, now: Nanos) {
        let Some(stall_after) = self.lanes.stall_after else { return };
        let latest = self.lanes.fires_at(self.clock.to_kernel(now), stall_after);
        if self.alarm.load().is_none_or(|at| at > latest) {
            self.alarm.pull(latest);
        }
    }

    /// The same lane still turns: the sentinel need not look. Once per tick. Cost: a load; once per tick
    /// machine-wide half a microsecond.
    pub(super) fn hold_switch(&self, now: Nanos) {
        let Some(stall_after) = self.lanes.stall_after else { return };
        let now = self.clock.to_kernel(now);
        let (seen, latest) = (self.alarm.load(), self.lanes.fires_at(now, stall_after));
        match seen {
            // Whoever changed it meanwhile holds it, or wants the sentinel sooner.
            Some(at) if at.0 < now.0 + stall_after.0 => _ = self.alarm.push(seen, Some(latest)),
            Some(at) if at <= latest => {}
            _ => self.alarm.pull(latest),
        }
    }

    /// The calling lane was the last one awake, and wakes up at `until` by itself; before it walked, the
    /// deadline was `seen`.
    pub(super) fn leave_switch(&self, seen: Option<Nanos>, until: Option<Nanos>) {
        let until = until.map(|until| self.clock.to_kernel(until));
        self.lanes.leave(&self.alarm, seen, until);
    }
}

impl Lanes {
    /// When the sentinel looks if nobody turns from `now` on.
    pub(super) fn fires_at(&self, now: Nanos, stall_after: Nanos) -> Nanos {
        Nanos(now.0.saturating_add(stall_after.0).saturating_add(self.tick.0))
    }

    fn leave(&self, alarm: &Alarm, seen: Option<Nanos>, until: Option<Nanos>) {
        let Some(stall_after) = self.stall_after else { return };
        let _ = alarm.push(seen, until.map(|until| Nanos(until.0.saturating_add(stall_after.0))));
        if let Some(asked) = self.asked.before(until) {
            alarm.pull(asked);
        }
    }
}
