//! Threads that play CPUs: lanes, spares, and the sentinel that notices when none of them turns.
//!
//! ```text
//! cpu.rs       what a thread gets that claims a CPU       lane.rs    what every player does: turn, idle, park
//! rest.rs      doze or sleep                              switch.rs  the dead man's switch, the tree's alarm
//! spare.rs     threads without a CPU of their own         thread.rs  ready-made lane threads
//! sentinel.rs  the helper thread of a machine with lanes  isolate.rs isolation while the machine runs
//! slot.rs      where a player waits and how it is woken   here.rs    which CPU this thread plays
//! sync.rs      the words                                  limits.rs  (machine/) how many lanes make sense
//! ```
//!
//! A lane is awake, parked or absent in the core's books. While it waits for a tick at most it *dozes* and
//! stays awake there: nobody has to be told of anything, and it goes on looking after others. Source: PROTOCOL
//! sections 3, 4, 6 and 9.

mod claim;
mod cpu;
mod here;
mod isolate;
mod lane;
mod realtime;
mod rest;
mod sentinel;
mod slot;
mod spare;
mod switch;
mod sync;
mod thread;

pub use claim::{ClaimError, WaitBy};
pub use cpu::{Cpu, Idle, Turned, Unparker};
pub(crate) use here::here;
pub use isolate::IsolateError;
pub use thread::{LaneThreads, Note, Pinning};

use crate::machine::Machine;
use quietcore_core::place::Policy;
use quietcore_core::{BaseId, CpuId, CpuSet, Nanos, Settings};
use rustix::thread::Pid;
use slot::Slot;
use std::sync::{Mutex, MutexGuard, PoisonError};
use sync::Asked;

/// The lanes of a machine; without any, all of it is empty.
#[derive(Debug)]
pub(crate) struct Lanes {
    /// By CPU; `None` for those that nobody can claim.
    slots: Box<[Option<Slot>]>,
    spares: CpuSet,
    asked: Asked,
    /// How long a tick is, and for how long a lane may be silent; `None` when nobody looks.
    tick: Nanos,
    stall_after: Option<Nanos>,
    /// Held while CPUs come, go, or are isolated.
    control: Mutex<()>,
    /// The helper and the spares, which keep off isolated CPUs. Locked after `control`.
    own_threads: Mutex<Vec<Pid>>,
    /// Their real-time priority.
    own_priority: Option<u8>,
    notes: Mutex<Vec<Note>>,
}

impl Lanes {
    pub(crate) fn new(
        claimable: &CpuSet,
        spares: &CpuSet,
        settings: &Settings,
        own_priority: Option<u8>,
    ) -> Self {
        let spares = if claimable.is_empty() { CpuSet::new() } else { spares.clone() };
        let all = claimable.union(&spares);
        let count = all.last().map_or(0, |last| last.index() + 1);
        let slot = |index| CpuId::new(index as u64).ok().filter(|cpu| all.contains(*cpu)).map(Slot::new);
        Self {
            slots: (0..count).map(slot).collect(),
            spares,
            asked: Asked::new(),
            tick: settings.tick.nanos(),
            stall_after: Some(settings.stall_after).filter(|_| looks_for_stalls(settings)),
            control: Mutex::new(()),
            own_threads: Mutex::new(Vec::new()),
            own_priority,
            notes: Mutex::new(Vec::new()),
        }
    }

    /// Whether this machine has lanes.
    #[inline]
    pub(crate) fn exist(&self) -> bool {
        !self.slots.is_empty()
    }

    pub(crate) fn asked(&self) -> &Asked {
        &self.asked
    }

    fn own_threads(&self) -> MutexGuard<'_, Vec<Pid>> {
        self.own_threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn notes(&self) -> MutexGuard<'_, Vec<Note>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slot(&self, cpu: CpuId) -> Option<&Slot> {
        self.slots.get(cpu.index())?.as_ref()
    }

    fn all(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().flatten()
    }

    /// `cpu` has to look at once. If nobody plays it, somebody else looks: a lane that sleeps, or a spare.
    pub(crate) fn kick(&self, cpu: CpuId) {
        if self.slot(cpu).and_then(Slot::kick).is_none() {
            self.wake_one();
        }
    }

    /// Wakes the first player that sleeps.
    fn wake_one(&self) {
        let _ = self.all().find(|slot| slot.kick() == Some(crate::park::Notify::Woke));
    }

    /// Wakes every player that sleeps.
    pub(crate) fn wake_all(&self) {
        self.all().for_each(|slot| _ = slot.kick());
    }
}

/// Where nobody pulls, nobody can take over; and a quarter of all time is what the builder makes of "never".
fn looks_for_stalls(settings: &Settings) -> bool {
    settings.policy == Policy::Pull && settings.stall_after.0 < u64::MAX / 4
}

impl Machine {
    /// A pinned or an exact timer was put on `base`, to run at `at`: its CPU's lane is woken if it is awake in
    /// the books, so that no action asks for it, but dozes beyond `at`. After the arm; by any thread. Cost: a
    /// fence and a load; nothing without lanes.
    #[inline]
    pub(crate) fn interrupt_doze(&self, base: BaseId, at: Nanos) {
        if let Some(slot) = self.lanes.slot(base.cpu) {
            slot.interrupt_doze(at);
        }
    }
}
