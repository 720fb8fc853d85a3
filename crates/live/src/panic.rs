//! A panic of user code ends where the code was called, and so does one of what it panicked with.
//!
//! The message was printed by the panic hook. Whether a panic ends the process is decided by the callers.

use core::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a panic left.
pub(crate) type Panic = Box<dyn Any + Send>;

/// Runs user code; `None` when it panicked.
#[inline]
pub(crate) fn contain<R>(code: impl FnOnce() -> R) -> Option<R> {
    catch_unwind(AssertUnwindSafe(code)).map_err(discard).ok()
}

/// Drops what a panic left: its destructor is user code, too. What that panics with stays in memory.
#[cold]
pub(crate) fn discard(panic: Panic) {
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        core::mem::forget(again);
    }
}

#[cfg(test)]
mod tests {
    use super::contain;
    use std::panic::panic_any;

    /// Panics when it is dropped, with another one.
    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic_any(Bomb);
        }
    }

    /// Goal: nothing comes out of it, whatever user code panicked with. Method: a payload whose destructor
    /// panics, with a payload of the same kind.
    #[test]
    fn a_payload_that_panics_goes_no_further() {
        let ended: Option<()> = contain(|| panic_any(Bomb));
        assert_eq!(ended, None);
    }
}
