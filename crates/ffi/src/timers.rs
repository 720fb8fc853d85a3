//! All timers of a machine, or of some of its CPUs, at once.
#![allow(unsafe_code, reason = "functions with names of their own, for C, which get pointers")]
#![allow(non_camel_case_types, reason = "names of the C interface")]
#![allow(clippy::missing_safety_doc, reason = "the comments become the header's, and speak to C programmers")]

use crate::machine::{cpu_list, machine_at, qc_machine};
use crate::result::{guard, qc_result};
use crate::timer::{is_timer, qc_timer};
use core::ffi::{c_char, c_void};

/// What qc_machine_cancel_timers() tells of a timer that it has taken out. No lock of the library is held;
/// all functions of this header may be called in it. It must not unwind.
pub type qc_cancelled_fn = Option<unsafe extern "C" fn(argument: *mut c_void, timer: *mut qc_timer)>;

/// Cancels every timer that is pending on the CPUs of `list` ("2-3"; NULL for all), and ends its periods;
/// then calls `told` with `argument` and each of them, on this thread, unless it is NULL. Returns how many
/// there were. A list names CPUs that timers wait on: of a timer that a lane has armed that is the lane's
/// CPU.
///
/// A run that has begun goes on and is not waited for. Its timer is not pending: it has its next period, if
/// it has periods, and what it arms stays armed; qc_timer_cancel() ends these, too. What other threads arm
/// during this call may be cancelled or stay; what `told` arms stays. Timers that a Rust part of the program
/// has are counted and cancelled, too, and not told; its futures are left. Timers that are told are idle: no
/// other thread may free one during this call.
///
/// Any thread, also in a callback. NULL for `machine` is the default one. Cost: some 10 to 100 ns per timer
/// that is pending, with the lock of its CPU's timers held; memory by their number.
///
/// Errors: QC_ERROR_CPUS when the list cannot be read. In a forked child it does nothing, and returns 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_machine_cancel_timers(
    machine: *mut qc_machine,
    list: *const c_char,
    told: qc_cancelled_fn,
    argument: *mut c_void,
) -> qc_result {
    guard(|| {
        // SAFETY: the caller passes NULL or a string.
        let cpus = unsafe { cpu_list(list, "list") }?;
        let count = machine_at(machine)?.cancel_all(cpus.as_ref(), |cancelled| {
            let (Some(told), Some((function, timer))) = (told, cancelled.raw()) else { return };
            if is_timer(function) {
                // SAFETY: the caller passes a function that takes this argument and a timer.
                unsafe { told(argument, timer.cast()) };
            }
        });
        Ok(qc_result::try_from(count).unwrap_or(qc_result::MAX))
    })
}
