//! What becomes of a timer that is handed out.
//!
//! A base hands a timer out under its lock; from the moment it unlocks, the timer may be freed by its owner.
//! So what a run needs is taken out of the timer under the lock ([`Job::take`]): the waker of a future, or a
//! count of the owners of a callback. Source: docs/design/PROTOCOL.md, section 8.
#![allow(unsafe_code, reason = "an expired timer is the first field of what its payload says")]

use crate::payload::{Payload, PayloadKind, WakeEntry};
use crate::stall::RunningCode;
use crate::timer::{DueCallback, EndedPeriods, RawTimer};
use core::ptr::NonNull;
use core::task::Waker;
use quietcore_core::{TimerKind, TimerName, TimerRef};

/// What to run, taken out of a timer.
#[derive(Debug)]
pub(crate) enum Job {
    /// Nothing, if the future was dropped or is just being polled.
    Wake(Option<Waker>),
    Call(DueCallback),
}

impl Job {
    /// Under the lock of the timer's base, before any thread can see that the timer is idle.
    #[inline]
    pub(crate) fn take(payload: Payload, name: TimerName<Payload>) -> Self {
        match name {
            TimerName::Timer(timer) => Self::of(payload, timer),
            TimerName::Exact(timer) => Self::of(payload, timer),
            TimerName::Id(_) | TimerName::ExactId(_) => {
                unreachable!("this world keeps no timers in the machine's store")
            }
        }
    }

    /// What a timer that is pending will run; of futures only that they are. Under the lock of its base.
    pub(crate) fn of_pending(payload: Payload, name: TimerName<Payload>) -> RunningCode {
        match Self::callback(payload, name) {
            // SAFETY: as in `of`.
            Some(address) => unsafe { DueCallback::pending(address, payload.kind()) },
            None => RunningCode::WAKERS,
        }
    }

    /// Ends the periods of a callback that is pending, to take it out; `None` of what is no callback. Under
    /// the lock of its base.
    pub(crate) fn end_periods(payload: Payload, name: TimerName<Payload>) -> Option<EndedPeriods> {
        let address = Self::callback(payload, name)?;
        // SAFETY: as in `of`.
        Some(unsafe { DueCallback::end_periods(address, payload.kind()) })
    }

    /// Where the timer is, if a callback is called when it expires.
    fn callback(payload: Payload, name: TimerName<Payload>) -> Option<NonNull<RawTimer>> {
        match (payload.kind(), name) {
            (PayloadKind::Wake, _) => None,
            (_, TimerName::Timer(timer)) => Some(timer.as_ptr().cast()),
            (_, TimerName::Exact(timer)) => Some(timer.as_ptr().cast()),
            (_, TimerName::Id(_) | TimerName::ExactId(_)) => unreachable!("see `take`"),
        }
    }

    #[inline]
    fn of<K: TimerKind>(payload: Payload, timer: TimerRef<Payload, K>) -> Self {
        match payload.kind() {
            PayloadKind::Wake => {
                // SAFETY: a timer with this payload is the first field of a `WakeEntry`, and its reference
                // was made from a pointer to the whole entry (`WakeEntry::address`). The entry is valid:
                // its owner frees it only after it saw the timer idle, which is stored after this.
                let entry = unsafe { timer.as_ptr().cast::<WakeEntry<K>>().as_ref() };
                Self::Wake(entry.cell.take())
            }
            kind => {
                // SAFETY: a timer with this payload is the first field of a `RawTimer`, and its reference was
                // made from a pointer to all that it says. It is pending, so it is valid, and this is called
                // under the lock of its base.
                Self::Call(unsafe { DueCallback::begin(timer.as_ptr().cast(), kind) })
            }
        }
    }
}
