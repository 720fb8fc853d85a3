//! Answers and errors: fixed numbers, and the guard that every function of this interface runs in.
//!
//! Errors have the numbers of Linux's errno, negated, where one fits, so that they can be handed on.
#![allow(unsafe_code, reason = "functions with names of their own, for C")]
#![allow(non_camel_case_types, reason = "names of the C interface")]

use core::ffi::{CStr, c_char};
use core::ptr::NonNull;
use quietcore_live::{ArmError, StartError, isolation::IsolateError, lane::ClaimError};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a function answers: 0 or more is an answer, less than 0 is an error.
pub type qc_result = i32;

/// It is done.
pub const QC_OK: qc_result = 0;
/// An argument makes no sense: NULL, an address that is not aligned, a number out of range, a timer that was
/// not initialised where it is.
pub const QC_ERROR_INVALID: qc_result = -22;
/// The timer is pending or a run of it is under way, or another thread has the CPU.
pub const QC_ERROR_BUSY: qc_result = -16;
/// The caller must not wait here: it would be inside of a callback, or on a lane.
pub const QC_ERROR_WOULD_BLOCK: qc_result = -35;
/// The machine or the timer was shut down.
pub const QC_ERROR_SHUT_DOWN: qc_result = -108;
/// The machine belongs to the parent of this process: a fork copied its memory and not its threads.
pub const QC_ERROR_FORKED: qc_result = -10;
/// No lane drives that CPU, or it is none of the machine's.
pub const QC_ERROR_NO_LANE: qc_result = -19;
/// This thread has not claimed the CPU, or has released it.
pub const QC_ERROR_WRONG_THREAD: qc_result = -1;
/// The system refused a thread, a descriptor or memory.
pub const QC_ERROR_SYSTEM: qc_result = -11;
/// A bug of quietcore; its message is on stderr. What was asked for may be done or not. A machine whose own
/// thread died of one answers this to every arm, until it is shut down.
pub const QC_ERROR_PANIC: qc_result = -131;

/// A place that the caller gives: neither NULL nor where nothing of its type can be.
pub(crate) fn place<T>(pointer: *mut T) -> Result<NonNull<T>, qc_result> {
    NonNull::new(pointer).filter(|place| place.is_aligned()).ok_or(QC_ERROR_INVALID)
}

/// The same where NULL means that nothing is asked for.
pub(crate) fn optional_place<T>(pointer: *mut T) -> Result<Option<NonNull<T>>, qc_result> {
    if pointer.is_null() { Ok(None) } else { place(pointer).map(Some) }
}

/// Runs a function of this interface.
pub(crate) fn guard(body: impl FnOnce() -> Result<qc_result, qc_result>) -> qc_result {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(answer) | Err(answer)) => answer,
        Err(_) => QC_ERROR_PANIC,
    }
}

/// A yes is 1.
pub(crate) fn answer(is_so: bool) -> qc_result {
    qc_result::from(is_so)
}

/// An error of ours in the numbers of C.
pub(crate) trait Number {
    fn number(self) -> qc_result;
}

impl Number for ArmError {
    fn number(self) -> qc_result {
        match self {
            Self::Forked => QC_ERROR_FORKED,
            Self::NoLane { .. } => QC_ERROR_NO_LANE,
            Self::Broken => QC_ERROR_PANIC,
            // `ShutDown`, and whatever refuses in versions to come.
            _ => QC_ERROR_SHUT_DOWN,
        }
    }
}

impl Number for ClaimError {
    fn number(self) -> qc_result {
        match self {
            Self::NotALane { .. } => QC_ERROR_NO_LANE,
            Self::Taken { .. } | Self::ThreadHasCpu { .. } => QC_ERROR_BUSY,
            Self::NotRunning => QC_ERROR_SHUT_DOWN,
            _ => QC_ERROR_SYSTEM,
        }
    }
}

impl Number for IsolateError {
    fn number(self) -> qc_result {
        match self {
            Self::NotRunning => QC_ERROR_SHUT_DOWN,
            // CPUs that make no sense.
            _ => QC_ERROR_INVALID,
        }
    }
}

impl Number for StartError {
    fn number(self) -> qc_result {
        match self {
            Self::System { .. } => QC_ERROR_SYSTEM,
            // A setting that makes no sense.
            _ => QC_ERROR_INVALID,
        }
    }
}

const TEXTS: [(qc_result, &CStr); 10] = [
    (QC_OK, c"done"),
    (QC_ERROR_INVALID, c"an argument makes no sense"),
    (QC_ERROR_BUSY, c"it is pending or running, or another thread has it"),
    (QC_ERROR_WOULD_BLOCK, c"this thread must not wait here"),
    (QC_ERROR_SHUT_DOWN, c"the machine or the timer was shut down"),
    (QC_ERROR_FORKED, c"the machine belongs to the parent process"),
    (QC_ERROR_NO_LANE, c"no lane drives that CPU"),
    (QC_ERROR_WRONG_THREAD, c"this thread has not claimed the CPU"),
    (QC_ERROR_SYSTEM, c"the system refused a thread, a descriptor or memory"),
    (QC_ERROR_PANIC, c"a bug of quietcore; see stderr"),
];

/// What a result means, in a few English words. Never NULL; the text is static. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn qc_strerror(result: qc_result) -> *const c_char {
    let known = TEXTS.iter().find(|(number, _)| *number == result);
    known.map_or(if result > 0 { c"yes" } else { c"unknown error" }, |(_, text)| text).as_ptr()
}

#[cfg(test)]
mod tests {
    use super::{
        ArmError, Number, QC_ERROR_FORKED, QC_ERROR_PANIC, QC_ERROR_SHUT_DOWN, QC_OK, TEXTS, guard,
        qc_strerror,
    };
    use core::ffi::CStr;

    fn text(number: i32) -> &'static str {
        // SAFETY: the function returns static texts.
        unsafe { CStr::from_ptr(qc_strerror(number)) }.to_str().expect("English")
    }

    /// Goal: every number has its text, and others have one, too. Method: all of them, written down by
    /// Linux's number.
    #[test]
    fn every_number_has_a_text() {
        let expected = [
            (0, "done"),
            (-22, "an argument makes no sense"),
            (-16, "it is pending or running, or another thread has it"),
            (-35, "this thread must not wait here"),
            (-108, "the machine or the timer was shut down"),
            (-10, "the machine belongs to the parent process"),
            (-19, "no lane drives that CPU"),
            (-1, "this thread has not claimed the CPU"),
            (-11, "the system refused a thread, a descriptor or memory"),
            (-131, "a bug of quietcore; see stderr"),
        ];
        assert_eq!(TEXTS.map(|(number, _)| (number, text(number))), expected);
        assert_eq!((text(1), text(-9_999)), ("yes", "unknown error"));
    }

    /// Goal: a machine that broke down is told as what it is. Method: each reason not to arm.
    #[test]
    fn a_broken_machine_has_its_number() {
        assert_eq!(ArmError::Broken.number(), QC_ERROR_PANIC);
        assert_eq!(ArmError::ShutDown.number(), QC_ERROR_SHUT_DOWN);
        assert_eq!(ArmError::Forked.number(), QC_ERROR_FORKED);
    }

    /// Goal: no panic gets out. Method: one inside of the guard.
    #[test]
    fn panics_become_a_number() {
        assert_eq!(guard(|| panic!("this message belongs to a test")), QC_ERROR_PANIC);
        assert_eq!((guard(|| Ok(QC_OK)), guard(|| Err(-3))), (QC_OK, -3));
    }
}
