//! The softirqs of a virtual lane, and what the world knows of them without asking the core.

use super::place::VirtualParker;
use super::schedule::Host;
use super::switch::ThreadId;
use quietcore_core::softirq::{Runner, Vector};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Those that are raised: one that stays with its lane, two long ones, and one of the program.
pub(super) const RAISED: [Vector; 4] = match Vector::user(0) {
    Some(user) => [Vector::TASKLET, Vector::NET_RX, Vector::BLOCK, user],
    None => panic!("there are vectors of programs"),
};

/// What the world knows of a vector of a CPU without asking the core.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct VectorSigns {
    /// Who is in its handler.
    pub(super) runs: Option<Runner>,
    /// Raised, and not seen by a handler yet.
    pub(super) is_left: bool,
    /// Since when the lane knows of that.
    pub(super) told_at: Option<u64>,
    /// Raises that found it not pending.
    pub(super) news: u64,
    pub(super) ran: u64,
}

/// The softirqs of a lane.
pub(super) struct VirtualSoftirqs {
    /// Where its ksoftirqd waits; the doorbell says that it was asked.
    pub(super) bell: VirtualParker,
    pub(super) ksoftirqd: Cell<Option<ThreadId>>,
    pub(super) signs: RefCell<[VectorSigns; RAISED.len()]>,
}

impl VirtualSoftirqs {
    pub(super) fn new(host: &Rc<Host>) -> Self {
        Self { bell: VirtualParker::new(host), ksoftirqd: Cell::new(None), signs: RefCell::default() }
    }
}
