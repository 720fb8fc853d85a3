//! Real-time priority for a thread of the machine.
#![allow(unsafe_code, reason = "the safe bindings have no call for a thread's scheduling policy")]

use std::io;

/// The calling thread runs under `SCHED_FIFO` from now on, threads that it starts do not.
///
/// # Errors
/// When the process may not do that (`CAP_SYS_NICE`, `RLIMIT_RTPRIO`).
pub(super) fn run_first_in_first_out(priority: u8) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: priority.into() };
    // SAFETY: the structure is complete and outlives the call; 0 is the calling thread.
    let result =
        unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &parameters) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
