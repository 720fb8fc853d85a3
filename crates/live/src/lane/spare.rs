//! Spares: threads with a CPU that no host has, asleep until no lane can run what is due.
//!
//! A spare sleeps in the hierarchy like any idle CPU, so it is kicked by the same rules; its number is above
//! all lanes', so that a lane that sleeps is kicked first. It leaves the rest to a lane that sleeps, if there
//! is one (`Lane::stand_down`). What its callbacks arm it arms as a foreign thread does.

use super::turn::LaneDriver;
use crate::machine::{Machine, StartError};
use crate::words::slot_owner::Waits;
use quietcore_core::CpuId;

impl Machine {
    /// A thread for each spare.
    pub(crate) fn start_spares(&'static self) -> Result<(), StartError> {
        for spare in self.lanes.table().spares().iter() {
            self.start_thread(format!("quietcore-s{spare}"), move || self.run_spare(spare))?;
        }
        Ok(())
    }

    fn run_spare(&'static self, spare: CpuId) {
        // It was shut down before this thread began.
        let Ok(slot) = self.occupy(spare, Waits::Futex) else { return };
        self.thread_came(spare);
        let _entered = self.enter();
        let _own = self.join_own_threads();
        self.raise_priority(self.lanes.own_priority);
        let mut lane = LaneDriver::spare(self, slot);
        while self.is_running() {
            let _ = lane.turn();
            if !lane.has_more() {
                lane.park(|| false);
            }
        }
        if !self.is_forked() {
            self.thread_left(spare);
        }
    }
}
