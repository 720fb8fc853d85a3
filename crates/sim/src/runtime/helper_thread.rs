//! The threads behind the lanes: the sentinel, or the helper of a runtime without lanes.

use super::world::RuntimeWorld;
use quietcore_core::CpuId;
use quietcore_core::lane::{Helper, LaneSlot, Sentinel, SentinelCall, SentinelLook};

impl RuntimeWorld {
    /// The sentinel of lanes.
    pub(super) fn stand_sentinel(&self) {
        let mut sentinel = Sentinel::default();
        loop {
            self.timer.wait();
            let deadline = self.lanes.deadline().take();
            if self.is_over.get() {
                return;
            }
            let now = self.clock();
            self.counts.borrow_mut().sentinel_looks += 1;
            let call = SentinelCall { deadline, now };
            let handle = |actions: &mut _| sentinel.handle_timer(&self.machine, &self.lanes, call, actions);
            let look = self.act(handle);
            self.note(|| format!("looked, the word was {deadline:?}: {look:?}"));
            if look == SentinelLook::MarkedBesideAwake {
                self.queues().handle_silence();
            }
        }
    }

    /// The helper that runs every timer.
    pub(super) fn help(&self) {
        let spare = self.lanes.all().next().map_or(CpuId::new(1).expect("few"), LaneSlot::cpu);
        let mut helper = Helper::new(spare);
        loop {
            self.timer.wait();
            let _ = self.lanes.deadline().take();
            if self.is_over.get() {
                return;
            }
            let now = self.clock();
            helper.handle_wake(&self.machine, now);
            loop {
                let _ = self.take_turn(&mut helper.turn, None);
                if self.is_child() {
                    return;
                }
                if !helper.turn.has_more() {
                    break;
                }
            }
            let now = self.clock();
            if let Some(until) = helper.handle_idle(&self.machine, now) {
                self.act(|actions| actions.set_alarm(until));
            }
        }
    }
}
