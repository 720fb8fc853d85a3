//! Interrupts that one CPU sends to another: their kinds, and what they are for.
//!
//! Kernels name them in three ways: by the functions that send and answer them, by an event of the processor
//! for each kind (x86), in words. Decided here: which of these mean the same.

use crate::event::{IpiPurpose, SystemInterrupt};

/// What the kernel names where a function of another queue is to be called.
const CALLS_A_QUEUE: &[u8] = b"generic_smp_call_function_single_interrupt";

/// The kinds of interrupts that one CPU sends to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpiKind {
    /// The scheduler has something for it.
    Reschedule,
    /// It is to call a function.
    CallOne,
    /// Several are to call a function.
    CallSeveral,
    /// From a CPU to itself.
    Work,
}

impl IpiKind {
    /// How many kinds there are.
    pub const COUNT: usize = 4;

    /// What another CPU sends, or this one to itself.
    #[must_use]
    pub fn of(interrupt: SystemInterrupt) -> Option<Self> {
        Some(match interrupt {
            SystemInterrupt::Reschedule => Self::Reschedule,
            SystemInterrupt::CallFunction => Self::CallSeveral,
            SystemInterrupt::CallFunctionSingle => Self::CallOne,
            SystemInterrupt::IrqWork => Self::Work,
            _ => return None,
        })
    }

    /// The same in the words of kernels whose processors have no events of their own for each.
    #[must_use]
    pub fn of_reason(reason: &[u8]) -> Option<&'static [Self]> {
        Some(match reason {
            b"Rescheduling interrupts" => &[Self::Reschedule],
            b"Function call interrupts" => &[Self::CallSeveral, Self::CallOne],
            b"IRQ work interrupts" => &[Self::Work],
            _ => return None,
        })
    }

    /// What is sent to one CPU: what names no function to call is for the scheduler.
    #[must_use]
    pub fn sent_to_one(purpose: &IpiPurpose<'_>) -> Self {
        if purpose.has_callback() { Self::CallOne } else { Self::Reschedule }
    }
}

impl<'a> IpiPurpose<'a> {
    fn has_callback(&self) -> bool {
        !matches!(self.callback, b"" | b"0x0")
    }

    /// Whether the receiver is to call what was queued for it ([`CallQueued`](crate::Event::CallQueued)).
    #[must_use]
    pub fn calls_a_queue(&self) -> bool {
        self.callback == CALLS_A_QUEUE
    }

    /// The function that tells most: the one that the receiver is to run, or else the one that sends the
    /// interrupt. Empty where the text names neither.
    #[must_use]
    pub fn function(&self) -> &'a [u8] {
        if self.has_callback() && !self.calls_a_queue() { self.callback } else { self.callsite }
    }
}

#[cfg(test)]
mod tests {
    use super::IpiKind;
    use crate::event::IpiPurpose;

    /// Goal: what an interrupt is called after says most about it. Method: a callback, none in both forms
    /// that kernels print, the callback of the queue.
    #[test]
    fn the_function_that_tells_most_is_named() {
        for (callback, function, kind) in [
            (&b"do_sync_core"[..], &b"do_sync_core"[..], IpiKind::CallOne),
            (b"", b"send", IpiKind::Reschedule),
            (b"0x0", b"send", IpiKind::Reschedule),
            (b"generic_smp_call_function_single_interrupt", b"send", IpiKind::CallOne),
        ] {
            let purpose = IpiPurpose { callsite: b"send", callback, reason: b"" };
            assert_eq!((purpose.function(), IpiKind::sent_to_one(&purpose)), (function, kind));
            assert_eq!(purpose.calls_a_queue(), callback.starts_with(b"generic"));
        }
    }
}
