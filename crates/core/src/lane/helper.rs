//! The helper of a machine without lanes: one thread that drives the first spare and runs every timer.
//!
//! It waits on the deadline word's timer. While nothing is due soon its CPU is idle in the hierarchy, and the
//! thread that arms the first timer of the whole tree pulls the word; all other arms cost their base's lock.
//! When the next expiry is at most a tick away it dozes: its CPU stays active, and only exact timers are told
//! to it. What waits behind the first timer relies on the thread that armed that one: as long as it is
//! stopped before it pulls the word, all of them wait. Source: docs/design/PROTOCOL.md, sections 4 and 6.

use crate::{CpuId, IdleDecision, Machine, Nanos, RawLock, Turn};

/// Drives the first spare. One thread at a time.
#[derive(Debug)]
pub struct Helper {
    /// The spare's turn, for the world's loop over what is due.
    pub turn: Turn,
    /// What the hierarchy says.
    is_awake: bool,
}

impl Helper {
    /// For `spare`, which is online and idle.
    #[must_use]
    pub const fn new(spare: CpuId) -> Self {
        Self { turn: Turn::new(spare), is_awake: false }
    }

    /// The thread is awake: it takes turns until one has no more.
    pub fn handle_wake<L: RawLock, T: Copy>(&mut self, machine: &Machine<L, T>, now: Nanos) {
        if !self.is_awake {
            machine.exit_idle(self.turn.cpu(), now);
            self.is_awake = true;
        }
    }

    /// It has nothing to run: says when it must look again, for which the deadline word is pulled; `None`
    /// until a thread pulls it.
    #[must_use = "a helper that oversleeps is late for every timer"]
    pub fn handle_idle<L: RawLock, T: Copy>(&mut self, machine: &Machine<L, T>, now: Nanos) -> Option<Nanos> {
        match machine.enter_idle(self.turn.cpu(), now) {
            IdleDecision::Stay { next } => Some(next),
            IdleDecision::Sleep { until } => {
                self.is_awake = false;
                until
            }
        }
    }
}
