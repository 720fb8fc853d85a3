//! What a timer of this world carries: whose it is, and what lies around it.

use crate::machine_ref::MachineRef;
use crate::words::waker_cell::WakerCell;
use core::ptr::NonNull;
use quietcore_core::{Timer, TimerKind};

/// What a timer carries: whose it is, and what it is the first field of. 16 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Payload {
    machine: MachineRef,
    kind: PayloadKind,
}

/// What a timer is the first field of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PayloadKind {
    /// A [`WakeEntry`].
    Wake,
    /// A [`RawTimer`](crate::timer::RawTimer) that its owner keeps until no run of it is left.
    Raw,
    /// The same in counted memory: a run holds a count.
    Counted,
}

/// A timer of a future: when it expires, the waker is woken.
///
/// The timer is detached: after it was handed out no runner reaches the entry through it.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct WakeEntry<K: TimerKind> {
    pub(crate) timer: Timer<Payload, K>,
    pub(crate) cell: WakerCell,
}

impl Payload {
    /// For the timer of a [`WakeEntry`].
    pub(crate) const fn wake(machine: MachineRef) -> Self {
        Self::new(machine, PayloadKind::Wake)
    }

    pub(crate) const fn new(machine: MachineRef, kind: PayloadKind) -> Self {
        Self { machine, kind }
    }

    /// Whose timer it is.
    #[inline]
    pub(crate) const fn machine(self) -> MachineRef {
        self.machine
    }

    /// What it is the first field of.
    pub(crate) const fn kind(self) -> PayloadKind {
        self.kind
    }
}

impl<K: TimerKind> WakeEntry<K> {
    /// The address from which a reference to the timer is made: it reaches the whole entry.
    pub(crate) fn address(&self) -> NonNull<Timer<Payload, K>> {
        NonNull::from(self).cast()
    }
}
