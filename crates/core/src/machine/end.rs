//! The end of a machine: nothing is handed out any more, and nothing that was runs.
//!
//! Closing goes through the bases one lock after the other, and takes every token. A pop that came before it
//! on its base has left a record there; one that comes after it finds nothing. So a thread that sees no
//! record on any base after it has closed all of them knows that no callback runs, and that none will.
//! Detached timers leave no record. Not here: waiting.

use super::Machine;
use crate::RawLock;

impl<L: RawLock, T: Copy> Machine<L, T> {
    /// Hands out nothing from now on, on no CPU; what is pending stays so, and may be cancelled. From any
    /// thread, any number of times. Cost: all locks, one after the other.
    ///
    /// ```
    /// # use quietcore_core::{Actions, Context, CpuId, Machine, Nanos, SequentialLock, Settings};
    /// # use quietcore_core::{TimerOptions, Turn, topology::Topology};
    /// # let mut machine: Machine<SequentialLock, u32> =
    /// #     Machine::new(Topology::builder(1).build()?, Settings::default())?;
    /// # let (cpu, mut actions) = (CpuId::default(), Actions::new(1));
    /// # machine.online(cpu, Nanos(0), &mut actions)?;
    /// for number in 0..2 {
    ///     let timer = machine.add_timer(TimerOptions::new(), number);
    ///     machine.arm(timer, Nanos(5), Context::on(cpu, Nanos(0)), &mut actions)?;
    /// }
    /// let (now, mut turn) = (Nanos(9_000_000), Turn::new(cpu));
    /// machine.begin_turn(&mut turn, now);
    /// let first = machine.next_expired(&mut turn, now, &mut actions).expect("two are due");
    /// machine.close();
    /// assert!(machine.has_runs(), "the first one's has not ended");
    /// assert!(machine.finish_and_next(&mut turn, first, now, &mut actions).is_none());
    /// assert!(!machine.has_runs());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn close(&self) {
        self.base_ids().for_each(|id| self.bases.lock(id, None).close());
    }

    /// Whether a timer was handed out whose run has not ended; of [detached](crate::TimerOptions::detached)
    /// ones there is no record. From any thread. Cost: all locks, one after the other.
    #[must_use]
    pub fn has_runs(&self) -> bool {
        let mut ids = self.base_ids();
        ids.any(|id| self.bases.lock(id, None).running() != 0)
    }
}
