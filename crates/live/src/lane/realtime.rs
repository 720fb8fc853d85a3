//! Real-time priority for a thread of the machine.
#![allow(unsafe_code, reason = "the safe bindings have no call for a thread's scheduling policy")]

use std::ffi::c_int;
use std::io;

/// The calling thread runs under `SCHED_FIFO` from now on, threads that it starts do not.
///
/// # Errors
/// When the process may not do that (`CAP_SYS_NICE`, `RLIMIT_RTPRIO`).
pub(super) fn run_first_in_first_out(priority: u8) -> io::Result<()> {
    if cfg!(miri) {
        // Miri does not know the call: it is refused, as to a process without the right.
        return Err(io::Error::from_raw_os_error(libc::EPERM));
    }
    // The kernel's `sched_param` is this one number. The C library's call is none in musl.
    let parameters: c_int = priority.into();
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the number outlives the call; 0 is the calling thread.
    let result = unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const parameters) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
