//! How many forks this process descends from.

use core::sync::atomic::{AtomicU32, Ordering};

/// Counted in children only, before the child's only thread goes on.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// Counts a fork; in the child.
pub(super) extern "C" fn count_fork() {
    // Relaxed: the child has one thread.
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Forks so far.
#[inline]
pub(crate) fn count() -> u32 {
    // Relaxed: see `count_fork`.
    FORKS.load(Ordering::Relaxed)
}
