//! Where a virtual lane waits, and the timer behind the deadline word.

use super::holders::{self, Holder};
use super::schedule::Host;
use super::switch::ThreadId;
use quietcore_core::Nanos;
use quietcore_core::lane::{Deadline, Kick, LaneSlot, Sleeper};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Longest step of a fence or a system call, in ns.
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

/// What a lane runs besides timers and softirqs.
#[derive(Clone, Copy, Debug)]
pub(super) struct VirtualItem {
    /// In ns.
    pub(super) takes: u64,
    /// It goes before the others, and long softirqs wait for it.
    pub(super) is_realtime: bool,
}

/// A lane's place: the park word of a virtual thread.
pub(super) struct VirtualPlace {
    host: Rc<Host>,
    state: Cell<ParkState>,
    owner: Cell<Option<ThreadId>>,
    /// Something was left for the lane.
    pub(super) doorbell: Cell<bool>,
    /// What waits for the lane.
    pub(super) items: RefCell<Vec<VirtualItem>>,
    /// Kicks that woke it.
    pub(super) wakes: Cell<u64>,
}

impl VirtualPlace {
    pub(super) fn new(host: &Rc<Host>) -> Self {
        Self {
            host: Rc::clone(host),
            state: Cell::new(ParkState::Vacant),
            owner: Cell::new(None),
            doorbell: Cell::new(false),
            items: RefCell::new(Vec::new()),
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

    /// Whether a real-time item waits for the lane.
    pub(super) fn has_realtime(&self) -> bool {
        self.items.borrow().iter().any(|item| item.is_realtime)
    }

    /// What the lane runs next.
    pub(super) fn next_item(&self) -> Option<VirtualItem> {
        let mut items = self.items.borrow_mut();
        let first = items.iter().rposition(|item| item.is_realtime);
        let first = first.or(items.len().checked_sub(1))?;
        Some(items.remove(first))
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

impl Sleeper for VirtualPlace {
    fn prepare(&self) {
        self.host.touch("where a lane waits");
        assert_eq!(self.state.get(), ParkState::Running, "a lane parks once");
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
