//! Where a virtual lane waits, and the timer behind the deadline word.

use super::holders::{self, Holder};
use super::queue::VirtualQueue;
use super::schedule::Host;
use super::switch::ThreadId;
use quietcore_core::lane::{Deadline, Kick, LaneSlot, Sleeper};
use quietcore_core::{CpuId, Nanos};
use std::cell::Cell;
use std::rc::Rc;

/// Longest step of a fence or a system call, in ns.
const WORD: u64 = 25;
const FENCE: u64 = 60;
const SYSTEM_CALL: u64 = 900;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ParkState {
    Vacant,
    Running,
    Parking,
    Notified,
}

/// What a lane of a run has.
pub(super) type Place = LaneSlot<VirtualPlace>;

/// Where a lane waits, and what waits for it.
pub(super) struct VirtualPlace {
    pub(super) parker: VirtualParker,
    pub(super) queue: VirtualQueue,
}

impl VirtualPlace {
    pub(super) fn new(host: &Rc<Host>, cpu: CpuId) -> Self {
        Self { parker: VirtualParker::new(host), queue: VirtualQueue::new(host, cpu) }
    }
}

impl Sleeper for VirtualPlace {
    fn prepare(&self) {
        self.parker.prepare();
    }

    fn finish(&self) {
        self.parker.finish();
    }

    fn kick(&self) -> Kick {
        self.parker.kick()
    }

    fn kick_to_help(&self) -> Kick {
        self.parker.kick_to_help()
    }

    fn is_waiting(&self) -> bool {
        self.parker.is_waiting()
    }
}

/// The park word of a virtual thread.
pub(super) struct VirtualParker {
    host: Rc<Host>,
    state: Cell<ParkState>,
    owner: Cell<Option<ThreadId>>,
    /// Something was left for the lane.
    pub(super) doorbell: Cell<bool>,
    /// Kicks that woke it.
    pub(super) wakes: Cell<u64>,
}

impl VirtualParker {
    pub(super) fn new(host: &Rc<Host>) -> Self {
        Self {
            host: Rc::clone(host),
            state: Cell::new(ParkState::Vacant),
            owner: Cell::new(None),
            doorbell: Cell::new(false),
            wakes: Cell::new(0),
        }
    }

    /// The calling thread drives the CPU from now on; says whether none did.
    pub(super) fn claim(&self) -> bool {
        if self.state.get() != ParkState::Vacant {
            return false;
        }
        self.state.set(ParkState::Running);
        self.owner.set(self.host.current());
        true
    }

    pub(super) fn release(&self) {
        self.state.set(ParkState::Vacant);
        self.owner.set(None);
    }

    /// Whether no thread drives the CPU.
    pub(super) fn is_vacant(&self) -> bool {
        self.state.get() == ParkState::Vacant
    }

    /// Whether a kick is on its way to the owner.
    pub(super) fn is_kicked(&self) -> bool {
        self.state.get() == ParkState::Notified
    }

    /// Whether a thread drives the CPU and neither waits nor is about to.
    pub(super) fn is_up(&self) -> bool {
        self.state.get() == ParkState::Running
    }

    /// Sleeps until a kick or `until`.
    pub(super) fn sleep(&self, until: Option<Nanos>) {
        self.host.step(SYSTEM_CALL);
        while self.state.get() == ParkState::Parking {
            if self.host.wait(until.map(|until| until.0)) {
                break;
            }
        }
    }
}

impl Sleeper for VirtualParker {
    fn prepare(&self) {
        self.host.touch("where a lane waits");
        assert_eq!(self.state.get(), ParkState::Running, "a lane parks once");
        // A kick that comes before the word is set has no effect: what it was for is looked for after.
        self.host.step(WORD);
        self.state.set(ParkState::Parking);
        self.host.step(FENCE);
    }

    fn finish(&self) {
        self.host.touch("where a lane waits");
        self.state.set(ParkState::Running);
        self.host.step(FENCE);
    }

    fn kick(&self) -> Kick {
        self.host.touch("where a lane waits");
        self.host.step(FENCE);
        match self.state.get() {
            ParkState::Vacant => Kick::Vacant,
            ParkState::Running | ParkState::Notified => Kick::NotNeeded,
            ParkState::Parking => {
                self.state.set(ParkState::Notified);
                self.wakes.set(self.wakes.get() + 1);
                self.host.note_wake();
                // Until the owner is woken it waits for this thread as for the holder of a lock.
                let by = self.host.current().map(Holder::Thread);
                by.into_iter().for_each(holders::add);
                self.host.step(SYSTEM_CALL);
                by.into_iter().for_each(holders::remove);
                if let Some(owner) = self.owner.get() {
                    self.host.wake(owner);
                }
                Kick::Woke
            }
        }
    }

    fn kick_to_help(&self) -> Kick {
        self.doorbell.set(true);
        self.kick()
    }

    fn is_waiting(&self) -> bool {
        self.state.get() == ParkState::Parking
    }
}

/// The kernel's timer that follows the deadline word.
pub(super) struct VirtualTimer {
    host: Rc<Host>,
    /// When it goes off.
    pub(super) at: Cell<Option<u64>>,
    waiter: Cell<Option<ThreadId>>,
}

impl VirtualTimer {
    pub(super) fn new(host: &Rc<Host>) -> Self {
        Self { host: Rc::clone(host), at: Cell::new(None), waiter: Cell::new(None) }
    }

    pub(super) fn follow(&self, deadline: &Deadline) {
        self.host.touch("the kernel's timer");
        deadline.program(|moment| {
            self.host.step(SYSTEM_CALL);
            self.at.set(moment.map(|moment| moment.0));
            // The waiter looks at the new moment.
            if let Some(waiter) = self.waiter.get() {
                self.host.wake(waiter);
            }
        });
    }

    /// Returns when it has gone off, once for each time that it was programmed.
    pub(super) fn wait(&self) {
        self.host.touch("the kernel's timer");
        self.waiter.set(self.host.current());
        loop {
            self.host.step(SYSTEM_CALL);
            let at = self.at.get();
            if at.is_some_and(|at| at <= self.host.moment()) {
                self.at.set(None);
                return;
            }
            let _ = self.host.wait(at);
        }
    }
}
