//! The processor's cycle counter, where the kernel itself keeps time by it.
//!
//! Linux on x86-64 uses the time stamp counter only while it runs at one rate in every state of the processor
//! and agrees on all CPUs; elsewhere, and where the kernel says it uses another clock, there is none.
#![allow(unsafe_code, reason = "the counter is read by an instruction")]

use std::fs;

/// Where Linux says by which counter it keeps time.
const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// Whether the counter may be read. Cost: a file.
pub(super) fn are_trusted() -> bool {
    // Miri has no such instruction, and asks its clock each time.
    cfg!(all(target_arch = "x86_64", not(miri)))
        && fs::read_to_string(SOURCE).is_ok_and(|name| name.trim() == "tsc")
}

/// The counter, no later than what the thread does after this that reads the kernel's clock. Cost: about 8
/// ns.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(super) fn read() -> u64 {
    // SAFETY: every processor of this architecture has the instruction, and Linux lets programs use it unless
    // they ask to be killed for it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// There is none.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub(super) fn read() -> u64 {
    0
}
