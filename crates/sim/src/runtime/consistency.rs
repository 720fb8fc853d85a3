//! What lanes show of themselves between their calls of the core: signs of life, marks, dozes, and the stall
//! deadline that they hold. Looked at after every step of any thread.

use super::holders::none_is_held;
use super::oracle::HELPER;
use super::schedule::HELD;
use super::world::RuntimeWorld;
use quietcore_core::{CpuId, Nanos};

impl RuntimeWorld {
    /// The lane of `cpu` has told the core that it lives at `now`.
    pub(super) fn lives(&self, cpu: CpuId, now: Nanos) {
        self.signs[cpu.index()].lived.set(now.0);
    }

    /// What is wrong with what lanes show, after a step.
    pub(super) fn is_inconsistent(&self) -> Option<String> {
        let what =
            self.is_marked_in_vain().or_else(|| self.is_dozing_awake()).or_else(|| self.is_unwatched());
        let what = what.or_else(|| self.is_open_in_vain()).or_else(|| self.is_item_late());
        what.or_else(|| self.is_waiting_beyond())
    }

    /// A lane waits beyond a timer that it alone keeps in time: an exact one, as others look with their
    /// ticks, or a pinned one. Nothing is on its way to it. What was due when the wait began may have been
    /// with a lane that was stopped.
    fn is_waiting_beyond(&self) -> Option<String> {
        if self.acting.get() > 0 || !none_is_held() || self.is_over.get() {
            return None;
        }
        self.lanes.all().find_map(|slot| {
            let (cpu, parker) = (slot.cpu(), &slot.world.parker);
            let wait = self.signs[cpu.index()].waits.get()?;
            let is_beyond = |next: &Nanos| wait.since < *next && wait.until.is_none_or(|until| *next < until);
            let next = self.machine.next_event(cpu).filter(is_beyond)?;
            // Else it is about to be up.
            let is_down = wait.until.is_none_or(|until| self.host.moment() < until.0) && !parker.is_kicked();
            if !is_down || self.machine.is_marked(cpu) {
                return None;
            }
            let timers = self.timers.borrow();
            let what = timers.iter().position(|timer| timer.needs_lane(cpu, next, wait.until, &self.plan))?;
            Some(format!("CPU {cpu} waits {wait:?}, and its timer {what} is due at {}", next.0))
        })
    }

    /// A lane that was marked though it had said in time that it turns.
    fn is_marked_in_vain(&self) -> Option<String> {
        let now = self.host.moment();
        self.lanes.all().find_map(|slot| {
            let signs = &self.signs[slot.cpu().index()];
            let is_marked = self.machine.is_marked(slot.cpu());
            let is_new = is_marked && !signs.was_marked.replace(is_marked);
            if is_marked {
                slot.world.queue.idle_since.set(None);
            }
            let silent = now.saturating_sub(signs.lived.get());
            // A turn that finds nothing due says so once per tick. And a watcher that is stopped between its
            // look and its mark does not see what came between.
            let is_short = silent > HELD && silent + self.plan.tick < self.plan.stall_after;
            let is_in_vain = is_new && slot.world.parker.is_up() && !signs.blocks.get() && is_short;
            let is_in_vain = is_in_vain && self.host.held_since(signs.lived.get()).is_empty();
            is_in_vain.then(|| format!("CPU {} is marked; it was silent for {silent} ns", slot.cpu()))
        })
    }

    /// A lane that is up, and whose doze word asks for kicks all the same.
    fn is_dozing_awake(&self) -> Option<String> {
        let mut up = self.lanes.all().filter(|slot| slot.world.parker.is_up());
        up.find(|slot| slot.dozes()).map(|slot| format!("CPU {} is up and asks for kicks", slot.cpu()))
    }

    /// A CPU is awake in the tree, and the sentinel would not notice if it were the last to turn.
    fn is_unwatched(&self) -> Option<String> {
        let first = self.lanes.spares().first()?;
        // The sentinel takes the word before it looks.
        let is_resting = self.host.is_waiting(HELPER);
        let is_quiet = self.acting.get() == 0 && none_is_held() && is_resting && !self.is_over.get();
        if !is_quiet || !self.machine.hierarchy().is_active(first) {
            return None;
        }
        let word = self.lanes.deadline().load();
        let latest = Nanos(self.host.moment() + self.plan.stall_after + 2 * self.plan.tick);
        let is_watched = word.is_some_and(|word| word <= latest);
        (!is_watched).then(|| format!("a CPU is awake, and the sentinel looks at {word:?} only"))
    }

    /// The sentinel looked more often than anything asked it to.
    pub(super) fn is_restless(&self) -> Option<String> {
        let counts = self.counts.borrow();
        let ticks = self.host.moment() / self.plan.tick;
        let most = 2 * ticks + counts.arms + 100;
        let looks = counts.sentinel_looks;
        (looks > most).then(|| format!("the sentinel looked {looks} times in {ticks} ticks"))
    }
}
