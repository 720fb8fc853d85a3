//! What a machine does about a lane that dozes.

use crate::machine::Machine;
use quietcore_core::{BaseId, Nanos};

impl Machine {
    /// A timer was put on `base`, to run at `at`, by this thread. Cost: that of [`LaneTable::after_arm`].
    ///
    /// [`LaneTable::after_arm`]: quietcore_core::lane::LaneTable::after_arm
    #[inline]
    pub(crate) fn after_arm(&self, base: BaseId, is_exact: bool, at: Nanos) {
        let is_own = || self.current_cpu().is_some_and(|(cpu, _)| cpu == base.cpu);
        let Some(slot) = self.lanes.table().after_arm(base, is_exact, at, is_own) else { return };
        if self.timer_raise.calls() && slot.is_standalone() && !is_own() {
            slot.world.call();
        }
    }
}
