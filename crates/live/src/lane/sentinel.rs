//! The thread behind all lanes, which looks when none of them turns: the core's sentinel. It runs no user
//! code.

use crate::machine::Machine;
use quietcore_core::lane::{Sentinel, SentinelCall, SentinelLook};

impl Machine {
    pub(crate) fn stand_sentinel(&self) {
        // Behind a thread of the same CPU that has such a priority it would stand in the queue for as long as
        // the lanes that it is to look after. The lowest will do: it is moved to another CPU then.
        self.raise_priority(Some(self.lanes.own_priority.unwrap_or(1)));
        let (mut sentinel, lanes) = (Sentinel::default(), self.lanes.table());
        loop {
            self.alarm.wait();
            // First: a pull for the end may have found the same moment there, and programmed nothing.
            let deadline = lanes.deadline().take();
            if self.is_over() {
                return;
            }
            let now = self.clock.now();
            let call = SentinelCall { deadline, now };
            let handle = |actions: &mut _| sentinel.handle_timer(&self.core, lanes, call, actions);
            let look = self.act(handle);
            if look != SentinelLook::Quiet {
                self.report_stalls(now);
            }
            if look == SentinelLook::MarkedBesideAwake {
                self.queues().handle_silence();
            }
        }
    }
}
