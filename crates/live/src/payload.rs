//! What a timer of this world carries, and what becomes of it when it is handed out.
//!
//! A base hands a timer out under its lock; from the moment it unlocks, the timer may be freed by its owner.
//! So whatever a run needs is taken out of the timer under the lock ([`Payload::take`]): the waker of a
//! future, or a count of the owners of a callback. Source: PROTOCOL section 8.
#![allow(unsafe_code, reason = "an expired timer is the first field of what its payload says")]

use crate::Machine;
use crate::timer::Call;
use crate::words::waker_cell::WakerCell;
use core::ptr::NonNull;
use core::task::Waker;
use quietcore_core::{Timer, TimerKind, TimerName, TimerRef};

/// What a timer carries: whose it is, and what it is the first field of. 16 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Payload {
    machine: &'static Machine,
    kind: Kind,
}

/// What a timer is the first field of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A [`WakeEntry`].
    Wake,
    /// A [`RawTimer`](crate::timer::RawTimer) that its owner keeps until no run of it is left.
    Raw,
    /// The same in memory that is counted: a run holds a count.
    Held,
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

/// What to run, taken out of a timer.
#[derive(Debug)]
pub(crate) enum Job {
    /// Nobody, if the future was dropped or is just being polled.
    Wake(Option<Waker>),
    Call(Call),
}

impl Payload {
    /// For the timer of a [`WakeEntry`].
    pub(crate) const fn wake(machine: &'static Machine) -> Self {
        Self::new(machine, Kind::Wake)
    }

    pub(crate) const fn new(machine: &'static Machine, kind: Kind) -> Self {
        Self { machine, kind }
    }

    /// Whose timer it is.
    #[inline]
    pub(crate) const fn machine(self) -> &'static Machine {
        self.machine
    }

    /// What it is the first field of.
    pub(crate) const fn kind(self) -> Kind {
        self.kind
    }

    /// Under the lock of the timer's base, before anybody can see that it is idle.
    #[inline]
    pub(crate) fn take(self, name: TimerName<Self>) -> Job {
        match self.kind {
            Kind::Wake => Job::Wake(take_waker(name)),
            kind => {
                let timer = match name {
                    TimerName::Timer(timer) => timer.as_ptr().cast(),
                    TimerName::Exact(timer) => timer.as_ptr().cast(),
                    TimerName::Id(_) | TimerName::ExactId(_) => unreachable!("{NO_STORE}"),
                };
                // SAFETY: a timer with this payload is the first field of a `RawTimer`, and its reference was
                // made from a pointer to all that it says. It is pending, so it is valid, and this
                // is called under the lock of its base.
                Job::Call(unsafe { Call::begin(timer, kind) })
            }
        }
    }
}

const NO_STORE: &str = "this world keeps no timers in the machine's store";

#[inline]
fn take_waker(name: TimerName<Payload>) -> Option<Waker> {
    match name {
        TimerName::Timer(timer) => take_waker_of(timer),
        TimerName::Exact(timer) => take_waker_of(timer),
        TimerName::Id(_) | TimerName::ExactId(_) => unreachable!("{NO_STORE}"),
    }
}

#[inline]
fn take_waker_of<K: TimerKind>(timer: TimerRef<Payload, K>) -> Option<Waker> {
    // SAFETY: a timer with this payload is the first field of a `WakeEntry`, and its reference was made from a
    // pointer to the whole entry (`WakeEntry::address`). The entry is valid: its owner frees it only after it
    // saw the timer idle, which is stored after this.
    let entry = unsafe { timer.as_ptr().cast::<WakeEntry<K>>().as_ref() };
    entry.cell.take()
}

impl<K: TimerKind> WakeEntry<K> {
    /// The address from which a reference to the timer is made: it reaches the whole entry.
    pub(crate) fn address(&self) -> NonNull<Timer<Payload, K>> {
        NonNull::from(self).cast()
    }
}
