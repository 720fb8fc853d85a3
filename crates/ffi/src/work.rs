//! Work: functions that lanes run, each soon after it was queued.
#![allow(unsafe_code, reason = "functions with names of their own, for C, which get pointers")]
#![allow(non_camel_case_types, reason = "names of the C interface")]
#![allow(clippy::missing_safety_doc, reason = "the comments become the header's, and speak to C programmers")]

use crate::machine::{machine_at, qc_machine};
use crate::result::{
    CallFailure, QC_ERROR_ADDRESS, QC_ERROR_NO_LANE, QC_ERROR_WOULD_BLOCK, QC_OK, answer, guard, place,
    qc_result,
};
use core::ffi::c_void;
use quietcore_live::CpuId;
use quietcore_live::task::{Work, WorkOptions};
use quietcore_live::timer::WouldBlock;

/// For qc_work_new(): any CPU that a lane drives and that is not isolated.
pub const QC_CPU_ANY: u32 = u32::MAX;

/// What work does. It runs on a lane's thread, between its timers, and must not unwind.
pub type qc_work_fn = Option<unsafe extern "C" fn(argument: *mut c_void)>;

/// A function that a lane runs whenever it was queued. Opaque; all threads may use it until qc_work_free().
#[derive(Debug)]
pub struct qc_work {
    work: Work,
}

/// What is called.
struct WorkTarget {
    function: unsafe extern "C" fn(*mut c_void),
    argument: *mut c_void,
}

// SAFETY: `qc_work_new` says that the function is called on other threads, with this argument.
unsafe impl Send for WorkTarget {}
// SAFETY: as above; runs of one work never overlap.
unsafe impl Sync for WorkTarget {}

impl WorkTarget {
    fn call(&self) {
        // SAFETY: the caller of `qc_work_new` promised that the function takes its argument.
        unsafe { (self.function)(self.argument) };
    }
}

fn work_at<'a>(work: *const qc_work) -> Result<&'a Work, CallFailure> {
    let place = place(work.cast_mut(), "work")?;
    // SAFETY: `qc_work_new` made it, and the caller has not freed it.
    Ok(unsafe { &place.as_ref().work })
}

fn would_block(_: WouldBlock) -> CallFailure {
    let text = c"the work runs, and this thread is a lane or in a callback: it must not wait here";
    CallFailure::new(QC_ERROR_WOULD_BLOCK, text)
}

/// Makes work of `function`, which gets `argument`, and writes its address to `work`; nothing runs before it
/// is queued. It runs on the lane of CPU `number`, isolated or not, or with QC_CPU_ANY on any that is not
/// isolated, on one thread at a time. NULL for `machine` is the default one. End it with qc_work_free().
///
/// Errors: QC_ERROR_NO_LANE when the machine has no lanes, or no lane has that CPU; QC_ERROR_SHUT_DOWN.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_work_new(
    machine: *mut qc_machine,
    number: u32,
    function: qc_work_fn,
    argument: *mut c_void,
    work: *mut *mut qc_work,
) -> qc_result {
    guard(|| {
        let place = place(work, "work")?;
        let function = function.ok_or(CallFailure::new(QC_ERROR_ADDRESS, c"`function` is NULL"))?;
        let options = if number == QC_CPU_ANY {
            WorkOptions::new()
        } else {
            let cpu = CpuId::new(u64::from(number));
            WorkOptions::new().bound(cpu.map_err(|error| CallFailure::told(QC_ERROR_NO_LANE, error))?)
        };
        let target = WorkTarget { function, argument };
        let made = machine_at(machine)?.work(options, move || target.call())?;
        // SAFETY: the caller passes a place for a pointer.
        unsafe { place.write(Box::into_raw(Box::new(qc_work { work: made }))) };
        Ok(QC_OK)
    })
}

/// The work is to run soon: 1 when it did not wait to run already, 0 when it did. Queued while it runs it
/// runs once more. Any thread, also in a callback and in the work itself. Cost: an atomic word and a queue's
/// lock; some us if a lane has to be woken.
///
/// Errors: QC_ERROR_SHUT_DOWN.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_work_queue(work: *mut qc_work) -> qc_result {
    guard(|| Ok(answer(work_at(work)?.queue()?)))
}

/// The work is not to run: 1 when it waited to, 0 when not. A run that is under way goes on. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_work_cancel(work: *mut qc_work) -> qc_result {
    guard(|| Ok(answer(work_at(work)?.cancel())))
}

/// The same, and waits for the end of a run that is under way.
///
/// Errors: QC_ERROR_WOULD_BLOCK when one is and this thread is a lane or in a callback: it was cancelled, and
/// the run goes on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_work_cancel_sync(work: *mut qc_work) -> qc_result {
    guard(|| Ok(answer(work_at(work)?.cancel_sync().map_err(would_block)?)))
}

/// Waits until the work neither waits to run nor runs.
///
/// Errors: QC_ERROR_WOULD_BLOCK when it does and this thread is a lane or in a callback.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_work_flush(work: *mut qc_work) -> qc_result {
    guard(|| work_at(work)?.flush().map(|()| QC_OK).map_err(would_block))
}

/// 1 when the work waits to run, 0 when not; out of date when it is used. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_work_is_pending(work: *const qc_work) -> qc_result {
    guard(|| Ok(answer(work_at(work)?.is_pending())))
}

/// Cancels the work, waits for the end of a run that is under way, and frees it: no other thread may use it
/// any more. NULL does nothing.
///
/// Errors: QC_ERROR_WOULD_BLOCK when a run is under way and this thread is a lane or in a callback: it was
/// cancelled, and is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_work_free(work: *mut qc_work) -> qc_result {
    guard(|| {
        if work.is_null() {
            return Ok(QC_OK);
        }
        work_at(work)?.cancel_sync().map_err(would_block)?;
        // SAFETY: `qc_work_new` made it with a box, and the caller uses it no more.
        drop(unsafe { Box::from_raw(work) });
        Ok(QC_OK)
    })
}
