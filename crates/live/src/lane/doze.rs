//! What a machine does about a lane that dozes.

use crate::machine::Machine;
use quietcore_core::{BaseId, Nanos};

impl Machine {
    /// A pinned or an exact timer was put on `base`, to run at `at`: its CPU's lane is woken if it is awake
    /// in the hierarchy, so that no action asks for it, but dozes beyond `at`. After the arm; by any thread.
    /// Cost: a fence and a load; nothing without lanes.
    #[inline]
    pub(crate) fn interrupt_doze(&self, base: BaseId, at: Nanos) {
        let Some(slot) = self.lanes.slot(base.cpu) else { return };
        slot.interrupt_doze(at);
        if self.timer_raise.calls()
            && slot.is_standalone()
            && self.current_cpu().is_none_or(|(cpu, _)| cpu != base.cpu)
        {
            slot.world.call();
        }
    }
}
