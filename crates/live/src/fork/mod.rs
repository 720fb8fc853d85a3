//! Forks: a child gets the machine's memory and none of its threads, so it must not use it.
//!
//! The C library calls back in the child. What the child may do with the machine's timers is to drop them.
#![allow(unsafe_code, reason = "the C library is told of a function to call")]

mod sync;

pub(crate) use sync::count;

/// From now on forks are counted in children.
pub(crate) fn count_in_children() {
    // SAFETY: the function only changes one atomic word, which is allowed in a child of any process.
    let result = unsafe { libc::pthread_atfork(None, None, Some(sync::count_fork)) };
    assert_eq!(result, 0, "pthread_atfork fails only without memory");
}
