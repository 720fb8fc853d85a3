//! What is pending, to look at: of each timer what it carries and what it is armed for. One base after the
//! other, so not of one moment: a timer that moves meanwhile may be seen twice, or not at all.

use super::Machine;
use crate::{CpuId, Nanos, RawLock, TimerName};

impl<L: RawLock, T: Copy> Machine<L, T> {
    /// How many timers are pending on the bases of each CPU, in their order. From any thread. Cost: all
    /// locks, one after the other.
    pub fn count_pending(&self) -> impl Iterator<Item = (CpuId, usize)> {
        self.base_ids().map(|id| (id.cpu, self.bases.lock(id, None).pending()))
    }

    /// Calls `each` for every timer that is pending on the bases of `cpu`, with the moment that it is armed
    /// for (of a timer of ticks the start of its tick), under the lock of its base: so it arms nothing, and
    /// does not allocate. From any thread, any number of times. Cost: the lock of each base for as long as
    /// its timers take.
    pub fn for_each_pending(&self, cpu: CpuId, mut each: impl FnMut(T, TimerName<T>, Nanos)) {
        for id in self.base_ids().filter(|id| id.cpu == cpu) {
            self.bases.for_each_pending(id, &mut each);
        }
    }
}
