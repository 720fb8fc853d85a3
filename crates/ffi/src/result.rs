//! Answers and errors: fixed numbers, what was wrong in words, and the guard that every function of this
//! interface runs in.
//!
//! Errors have the numbers of Linux's errno, negated, where one fits, so that they can be handed on. The
//! words stay with the thread until its next error.
#![allow(unsafe_code, reason = "functions with names of their own, for C")]
#![allow(non_camel_case_types, reason = "names of the C interface")]

use core::cell::RefCell;
use core::ffi::{CStr, c_char};
use core::fmt;
use core::ptr::NonNull;
use quietcore_live::{ArmError, StartError, isolation::IsolateError, lane::ClaimError, task::SpawnError};
use std::borrow::Cow;
use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a function answers: 0 or more is an answer, less than 0 is an error.
pub type qc_result = i32;

/// It is done.
pub const QC_OK: qc_result = 0;
/// An argument or a setting is out of range, or is a flag that there is not.
pub const QC_ERROR_INVALID: qc_result = -22;
/// An address is NULL, or nothing of its type can be there.
pub const QC_ERROR_ADDRESS: qc_result = -14;
/// The size of a structure makes no sense, or it says something that this version does not know.
pub const QC_ERROR_SIZE: qc_result = -7;
/// A timer was not initialised where it is or never had periods, or a CPU was not claimed, or does not block,
/// as the call asks for.
pub const QC_ERROR_STATE: qc_result = -77;
/// A list of CPUs cannot be read, or the machine cannot be made with it.
pub const QC_ERROR_CPUS: qc_result = -33;
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

/// Why a function of this interface has failed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CallFailure {
    number: qc_result,
    /// What was wrong, for a person.
    text: Cow<'static, CStr>,
}

impl CallFailure {
    pub(crate) const fn new(number: qc_result, text: &'static CStr) -> Self {
        Self { number, text: Cow::Borrowed(text) }
    }

    #[cold]
    pub(crate) fn told(number: qc_result, text: impl fmt::Display) -> Self {
        // No text of ours has a zero in it, but a name of the caller's may be repeated.
        let text = text.to_string().replace('\0', "?");
        Self { number, text: Cow::Owned(CString::new(text).unwrap_or_default()) }
    }
}

impl<E: Number + fmt::Display> From<E> for CallFailure {
    fn from(error: E) -> Self {
        Self::told(error.number(), error)
    }
}

/// A place that the caller gives as its argument `name`: neither NULL nor where nothing of its type can be.
pub(crate) fn place<T>(pointer: *mut T, name: &str) -> Result<NonNull<T>, CallFailure> {
    let place = NonNull::new(pointer)
        .ok_or_else(|| CallFailure::told(QC_ERROR_ADDRESS, format_args!("`{name}` is NULL")))?;
    if place.is_aligned() {
        return Ok(place);
    }
    let text = format!("`{name}` is {place:p}: not a multiple of {}", align_of::<T>());
    Err(CallFailure::told(QC_ERROR_ADDRESS, text))
}

/// The same where NULL means that nothing is asked for.
pub(crate) fn optional_place<T>(pointer: *mut T, name: &str) -> Result<Option<NonNull<T>>, CallFailure> {
    if pointer.is_null() { Ok(None) } else { place(pointer, name).map(Some) }
}

thread_local! {
    /// Of this thread's last error.
    static LAST: RefCell<Cow<'static, CStr>> = const { RefCell::new(Cow::Borrowed(c"")) };
}

/// Runs a function of this interface.
pub(crate) fn guard(body: impl FnOnce() -> Result<qc_result, CallFailure>) -> qc_result {
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(answer)) => return answer,
        Ok(Err(failure)) => failure,
        Err(_) => CallFailure::new(QC_ERROR_PANIC, c"a bug of quietcore; its message is on stderr"),
    };
    // A thread that ends may have lost the place.
    let _ = LAST.try_with(|last| last.replace(failure.text));
    failure.number
}

/// A yes is 1.
pub(crate) fn answer(is_so: bool) -> qc_result {
    qc_result::from(is_so)
}

/// An error of ours in the numbers of C.
pub(crate) trait Number {
    fn number(&self) -> qc_result;
}

impl Number for ArmError {
    fn number(&self) -> qc_result {
        match self {
            Self::Forked => QC_ERROR_FORKED,
            Self::NoLane { .. } => QC_ERROR_NO_LANE,
            Self::Broken => QC_ERROR_PANIC,
            Self::NoPeriod => QC_ERROR_STATE,
            // `ShutDown`, and whatever refuses in versions to come.
            _ => QC_ERROR_SHUT_DOWN,
        }
    }
}

impl Number for ClaimError {
    fn number(&self) -> qc_result {
        match self {
            Self::NotALane { .. } => QC_ERROR_NO_LANE,
            Self::Taken { .. } | Self::ThreadHasCpu { .. } => QC_ERROR_BUSY,
            Self::NotRunning => QC_ERROR_SHUT_DOWN,
            _ => QC_ERROR_SYSTEM,
        }
    }
}

impl Number for IsolateError {
    fn number(&self) -> qc_result {
        match self {
            Self::NotRunning => QC_ERROR_SHUT_DOWN,
            _ => QC_ERROR_CPUS,
        }
    }
}

impl Number for SpawnError {
    fn number(&self) -> qc_result {
        match self {
            Self::NoLanes | Self::NotALane { .. } => QC_ERROR_NO_LANE,
            Self::NotRunning => QC_ERROR_SHUT_DOWN,
            _ => QC_ERROR_SYSTEM,
        }
    }
}

impl Number for StartError {
    fn number(&self) -> qc_result {
        match self {
            Self::System { .. } => QC_ERROR_SYSTEM,
            Self::NoCpu | Self::Housekeeping(_) => QC_ERROR_CPUS,
            // A setting that makes no sense.
            _ => QC_ERROR_INVALID,
        }
    }
}

const TEXTS: [(qc_result, &CStr); 14] = [
    (QC_OK, c"done"),
    (QC_ERROR_INVALID, c"an argument is out of range"),
    (QC_ERROR_ADDRESS, c"an address is NULL or not aligned"),
    (QC_ERROR_SIZE, c"the size of a structure makes no sense"),
    (QC_ERROR_STATE, c"it was not initialised, claimed or begun as this asks for"),
    (QC_ERROR_CPUS, c"a list of CPUs cannot be used"),
    (QC_ERROR_BUSY, c"it is pending or running, or another thread has it"),
    (QC_ERROR_WOULD_BLOCK, c"this thread must not wait here"),
    (QC_ERROR_SHUT_DOWN, c"the machine or the timer was shut down"),
    (QC_ERROR_FORKED, c"the machine belongs to the parent process"),
    (QC_ERROR_NO_LANE, c"no lane drives that CPU"),
    (QC_ERROR_WRONG_THREAD, c"this thread has not claimed the CPU"),
    (QC_ERROR_SYSTEM, c"the system refused a thread, a descriptor or memory"),
    (QC_ERROR_PANIC, c"a bug of quietcore; see stderr"),
];

/// What was wrong when a function of this library last failed on the calling thread: which argument, and what
/// to do. Never NULL; "" if none has failed. The text is the library's, until the next one fails on this
/// thread.
#[unsafe(no_mangle)]
pub extern "C" fn qc_last_error() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// The version of the library, "MAJOR.MINOR.PATCH". QC_VERSION_MAJOR and its like are those of the header.
/// Never NULL; the text is static. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn qc_version() -> *const c_char {
    VERSION.as_ptr()
}

const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(version) => version,
    Err(_) => panic!("a version has no zeros"),
};

/// What a result means in general, in a few English words; qc_last_error() says more of the last error. Never
/// NULL; the text is static. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn qc_strerror(result: qc_result) -> *const c_char {
    let known = TEXTS.iter().find(|(number, _)| *number == result);
    known.map_or(if result > 0 { c"yes" } else { c"unknown error" }, |(_, text)| text).as_ptr()
}

#[cfg(test)]
mod tests {
    use super::{
        ArmError, CallFailure, Number, QC_ERROR_ADDRESS, QC_ERROR_FORKED, QC_ERROR_PANIC, QC_ERROR_SHUT_DOWN,
        QC_OK, TEXTS, guard, place, qc_last_error, qc_strerror, qc_version,
    };
    use core::ffi::CStr;

    fn text(number: i32) -> &'static str {
        // SAFETY: the function returns static texts.
        unsafe { CStr::from_ptr(qc_strerror(number)) }.to_str().expect("English")
    }

    fn last() -> String {
        // SAFETY: the text is this thread's until its next error.
        unsafe { CStr::from_ptr(qc_last_error()) }.to_str().expect("English").to_owned()
    }

    /// Goal: each thread has the words of its own last error, whatever succeeds after it. Method: errors of
    /// every kind, on two threads.
    #[test]
    fn the_last_error_is_the_threads_own() {
        std::thread::spawn(|| assert_eq!(last(), "")).join().expect("no panic");
        let fails = |pointer: *mut u64| guard(|| place(pointer, "timer").map(|_| QC_OK));
        assert_eq!((fails(core::ptr::null_mut()), last()), (QC_ERROR_ADDRESS, "`timer` is NULL".to_owned()));
        assert_eq!(fails(core::ptr::without_provenance_mut(3)), QC_ERROR_ADDRESS);
        assert_eq!(last(), "`timer` is 0x3: not a multiple of 8");
        std::thread::spawn(|| assert_eq!(last(), "")).join().expect("no panic");
        assert_eq!((guard(|| Ok(1)), last().len()), (1, "`timer` is 0x3: not a multiple of 8".len()));
        assert_eq!(guard(|| Err(CallFailure::from(ArmError::ShutDown))), QC_ERROR_SHUT_DOWN);
        assert_eq!(last(), "the machine or the timer was shut down");
        assert_eq!(guard(|| panic!("this message belongs to a test")), QC_ERROR_PANIC);
        assert_eq!(last(), "a bug of quietcore; its message is on stderr");
        assert_eq!(guard(|| Err(CallFailure::told(-3, "a\0b"))), -3);
        assert_eq!(last(), "a?b");
    }

    /// Goal: the library says its version. Method: that of the package.
    #[test]
    fn the_version_is_the_packages() {
        // SAFETY: the function returns a static text.
        let version = unsafe { CStr::from_ptr(qc_version()) };
        assert_eq!(version.to_str(), Ok(env!("CARGO_PKG_VERSION")));
    }

    /// Goal: every number has its text, and others have one, too. Method: all of them, written down by
    /// Linux's number.
    #[test]
    fn every_number_has_a_text() {
        let expected = [
            (0, "done"),
            (-22, "an argument is out of range"),
            (-14, "an address is NULL or not aligned"),
            (-7, "the size of a structure makes no sense"),
            (-77, "it was not initialised, claimed or begun as this asks for"),
            (-33, "a list of CPUs cannot be used"),
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
        assert_eq!(guard(|| Ok(QC_OK)), QC_OK);
    }
}
