//! When an isolated lane that turns all the time takes a timer turn.
//!
//! As the machine's [`TimerRaise`] says: *unconditional* takes a turn in every tick, with all its locks, as
//! kernels did until 2019; *bitmap* does so if any timer waits, and a thread that arms one here calls; *next
//! expiry* looks at every turn whether one is due, in a few loads (ours: a kernel looks once per tick).
//!
//! A call is under way from the first arm until the lane has taken it up, and it takes it up before it takes
//! the turn. So an arm that finds one under way is followed by a turn that begins after the arm. Model:
//! `quietcore-core`, `softirq::call`. Deviation: no interrupt goes out; the lane finds the call in its next
//! turn, or is kicked if it waits.

use super::outcome::TurnWork;
use super::slot::LanePlace;
use super::turn::LaneDriver;
use quietcore_core::lane::Sleeper;
use quietcore_core::softirq::TimerRaise;

impl LanePlace {
    /// A thread that does not drive this CPU has put a timer on its own base, and its lane may not look until
    /// something calls it.
    #[cold]
    pub(super) fn call(&self) {
        if self.timer_call.begin() {
            let _ = self.called.ring_then(|| self.kick());
        }
    }
}

impl LaneDriver {
    /// The turn of an isolated lane that does not go by the next expiry; `None` when it does nothing now.
    /// Cost: a look at the clock.
    #[cold]
    pub(super) fn turn_by_tick(&mut self, when: TimerRaise) -> Option<TurnWork> {
        let (machine, slot) = (self.machine, self.slot());
        let now = machine.clock.now();
        let is_called = slot.world.called.answer();
        if is_called {
            // Before the turn: who arms after this calls again.
            slot.world.timer_call.arrive();
        }
        let is_tick = self.state.is_new_tick(now);
        let next = machine.core.first_timer(slot.cpu());
        let is_raised = is_called || is_tick && when.raises(next, next.is_some(), now);
        if !is_raised {
            return None;
        }
        let timers = self.take_raised_turn();
        let counts = &machine.counts[slot.cpu().index()];
        counts.timer_raises.add(1);
        counts.empty_raises.add(u64::from(timers == 0));
        Some(TurnWork { timers, ..TurnWork::default() })
    }
}
