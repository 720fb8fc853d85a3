//! What a machine says of itself in words: metrics, stalls, and what is pending.
#![allow(unsafe_code, reason = "functions with names of their own, for C, which get pointers")]
#![allow(clippy::missing_safety_doc, reason = "the comments become the header's, and speak to C programmers")]

use crate::machine::{machine_at, qc_machine};
use crate::result::{CallFailure, QC_ERROR_INVALID, QC_OK, guard, optional_place, qc_result};
use core::ffi::c_char;
use core::fmt::Display;
use core::ptr::NonNull;
use quietcore_live::{ArmError, Machine};

/// Writes all figures of the machine into `text`, as OpenMetrics, for a scraper: at most `size` bytes, the 0
/// at the end among them. `length`, if it is not NULL, gets how many bytes the whole has with its 0: call it
/// with `size` 0 and `text` NULL to learn that. NULL for `machine` is the default one. Any thread. Cost: each
/// base's lock once, and allocations.
///
/// Errors: QC_ERROR_ADDRESS; QC_ERROR_INVALID when the text was cut, which it is at its end; QC_ERROR_FORKED
/// in a forked child.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_machine_openmetrics(
    machine: *const qc_machine,
    text: *mut c_char,
    size: usize,
    length: *mut usize,
) -> qc_result {
    let say = |machine: &Machine| machine.metrics().to_openmetrics();
    // SAFETY: promised by the caller.
    guard(|| unsafe { give(machine, say, Room { text, size, length }) })
}

/// Writes the last stalls of the machine into `text`, a line each, the oldest first: which lane did not turn,
/// for how long, and what it ran. All else is as for qc_machine_openmetrics().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_machine_stalls(
    machine: *const qc_machine,
    text: *mut c_char,
    size: usize,
    length: *mut usize,
) -> qc_result {
    // SAFETY: promised by the caller.
    guard(|| unsafe { give(machine, |machine| lines(machine.stalls()), Room { text, size, length }) })
}

/// Writes what is pending on the machine into `text`, a line for each function, the most frequent first: how
/// many timers there are, the address of the function, and for which moments they are armed. For debugging:
/// each base is locked while its timers are looked at. All else is as for qc_machine_openmetrics().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_machine_pending(
    machine: *const qc_machine,
    text: *mut c_char,
    size: usize,
    length: *mut usize,
) -> qc_result {
    // SAFETY: promised by the caller.
    guard(|| unsafe { give(machine, |machine| lines(machine.pending()), Room { text, size, length }) })
}

fn lines<T: Display>(all: Vec<T>) -> String {
    all.into_iter().map(|one| format!("{one}\n")).collect()
}

/// Where a text goes.
struct Room {
    text: *mut c_char,
    size: usize,
    length: *mut usize,
}

/// # Safety
/// `machine` is NULL or a machine; `text` has `size` bytes; `length` is NULL or a place for a number.
unsafe fn give(
    machine: *const qc_machine,
    say: impl FnOnce(&Machine) -> String,
    room: Room,
) -> Result<qc_result, CallFailure> {
    let into = optional_place(room.text, "text")?;
    let length = optional_place(room.length, "length")?;
    let machine = machine_at(machine)?;
    if machine.check_alive() == Err(ArmError::Forked) {
        return Err(ArmError::Forked.into());
    }
    let said = say(machine);
    // SAFETY: promised by the caller.
    unsafe { write(&said, into, room.size) };
    if let Some(length) = length {
        // SAFETY: promised by the caller.
        unsafe { length.write(said.len() + 1) };
    }
    if room.size > said.len() || into.is_none() {
        return Ok(QC_OK);
    }
    let (size, needed) = (room.size, said.len() + 1);
    let what = format!("`text` has {size} bytes, and {needed} are needed");
    Err(CallFailure::told(QC_ERROR_INVALID, what))
}

/// As much as there is room for, and a 0.
///
/// # Safety
/// There are `size` bytes at `into`.
unsafe fn write(said: &str, into: Option<NonNull<c_char>>, size: usize) {
    let (Some(into), Some(most)) = (into, size.checked_sub(1)) else { return };
    let count = said.len().min(most);
    // SAFETY: the caller's place has a byte more than these.
    unsafe {
        core::ptr::copy_nonoverlapping(said.as_ptr(), into.as_ptr().cast::<u8>(), count);
        into.add(count).write(0);
    }
}

#[cfg(test)]
mod tests {
    use super::{c_char, qc_machine, qc_machine_openmetrics, qc_machine_pending, qc_machine_stalls};
    use crate::result::{QC_ERROR_INVALID, QC_OK, qc_last_error};
    use core::ffi::CStr;
    use core::ptr::null_mut;
    use core::time::Duration;
    use quietcore_live::{Machine, TimerOptions};

    type Tell = unsafe extern "C" fn(*const qc_machine, *mut c_char, usize, *mut usize) -> i32;

    /// Asks how long the text is, then for it, and then with a byte too few.
    fn told(machine: &'static Machine, tell: Tell) -> String {
        let (pointer, mut length) = (core::ptr::from_ref(machine).cast::<qc_machine>(), 0);
        // SAFETY: the places are there, and as large as is said.
        let asked = unsafe { tell(pointer, null_mut(), 0, &raw mut length) };
        assert_eq!(asked, QC_OK);
        let mut bytes = vec![7_u8; length + 1];
        // SAFETY: as above.
        let given = unsafe { tell(pointer, bytes.as_mut_ptr().cast(), length, null_mut()) };
        assert_eq!((given, bytes[length]), (QC_OK, 7), "nothing is written behind it");
        let text = CStr::from_bytes_until_nul(&bytes).expect("it ends").to_str().expect("English").to_owned();
        assert_eq!(text.len() + 1, length);
        let mut short = vec![7_u8; length];
        // SAFETY: as above.
        let cut = unsafe { tell(pointer, short.as_mut_ptr().cast(), length - 1, &raw mut length) };
        let first = CStr::from_bytes_until_nul(&short).map_or(0, |cut| cut.count_bytes());
        assert_eq!((cut, first), (QC_ERROR_INVALID, (length - 1).saturating_sub(1).min(text.len())));
        // SAFETY: the text is this thread's until its next error.
        let words = unsafe { CStr::from_ptr(qc_last_error()) }.to_str().expect("English");
        assert_eq!(words, format!("`text` has {} bytes, and {length} are needed", length - 1));
        text
    }

    /// Goal: each text is whole when there is room, cut when there is not, and its length is known. Method: a
    /// machine with a pending timer.
    #[test]
    fn texts_fit_or_say_so() {
        let machine = Machine::start().expect("starts");
        let timer = machine.timer(TimerOptions::default(), |_| ());
        timer.arm_after(Duration::from_secs(3600)).expect("it runs");
        assert!(told(machine, qc_machine_openmetrics).ends_with("# EOF\n"));
        let pending = told(machine, qc_machine_pending);
        assert!(pending.starts_with("1 of quietcore_ffi::texts::tests::"), "{pending}");
        let mut length = 7;
        let pointer = core::ptr::from_ref(machine).cast::<qc_machine>();
        // SAFETY: the place is there.
        let stalls = unsafe { qc_machine_stalls(pointer, null_mut(), 0, &raw mut length) };
        assert_eq!((stalls, length), (QC_OK, 1), "none");
        machine.shutdown();
    }
}
