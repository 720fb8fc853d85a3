//! Whether a thread will come in time for all that waits. Asked when every thread waits and no kick is on its
//! way: what will happen then is written in the moments at which waits end.

use super::oracle::{HELPER, Keeper, takeover};
use super::place::Place;
use super::world::RuntimeWorld;
use quietcore_core::lane::Sleeper;

impl RuntimeWorld {
    /// A timer for which no thread will come in time.
    pub(super) fn is_forgotten(&self) -> Option<String> {
        let now = self.host.moment();
        // Whichever comes first looks after all that is not pinned, or sees to it that another one does.
        let lanes = self.lanes.all().filter_map(|slot| self.comes_at(slot));
        let first = lanes.chain(self.timer.at.get()).min();
        let timers = self.timers.borrow();
        let held = self.host.held_since(0);
        // What a lane leaves that is in user code, or was stopped, others take over after some time.
        let is_any_away = held.iter().any(|held| held.until + takeover(&self.plan) >= now);
        let earliest = if is_any_away { now + 2 * takeover(&self.plan) } else { 0 };
        timers.iter().enumerate().find_map(|(number, timer)| {
            let latest = timer.latest(&self.plan)?.max(earliest);
            let comes = match timer.keeper.lane().and_then(|cpu| self.lanes.slot(cpu)) {
                // What blocks or is away comes back some time, and runs its own then.
                Some(slot) if !slot.world.is_waiting() => return None,
                Some(slot) => self.comes_at(slot),
                // Pinned to a CPU that went offline, and now to whichever took it over; or perhaps isolated.
                None if timer.keeper != Keeper::Nobody && is_any_away => return None,
                None => first,
            };
            let is_in_time = comes.is_some_and(|comes| comes <= latest);
            (!is_in_time).then(|| {
                let due = timer.due().unwrap_or_default();
                format!(
                    "timer {number} ({:?}) is due at {due} and may run until {latest}; all threads wait, and \
                     the next comes at {comes:?}",
                    timer.promise
                )
            })
        })
    }

    /// What is due on each CPU, as lines.
    pub(super) fn tell_cpus(&self) {
        for slot in self.lanes.all() {
            let cpu = slot.cpu();
            self.note(|| {
                let (next, told) = (self.machine.renewed_next_event(cpu), self.comes_at(slot));
                let is_online = self.machine.online_cpus().contains(cpu);
                format!("CPU {cpu}: next {next:?}, online {is_online}, comes at {told:?}")
            });
        }
    }

    /// When the lane that waits there looks again, unless it is kicked before.
    pub(super) fn comes_at(&self, slot: &Place) -> Option<u64> {
        let driver = self.drivers.borrow()[slot.cpu().index()]?;
        debug_assert_ne!(driver, HELPER, "each lane has a thread of its own");
        self.host.waits_until(driver).filter(|_| slot.world.is_waiting())
    }
}
