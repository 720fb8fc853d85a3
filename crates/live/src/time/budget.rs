//! How many futures in a row may be over at once on a thread.
//!
//! A task that waits for moments which are all over never lets go of its thread: a loop over an interval
//! whose work takes longer than its period, a sleep of nothing in a loop. Then all other tasks of the thread
//! wait for ever. So after [`BUDGET`] such futures one says that it is pending, and wakes its task at once.
//!
//! Counted per thread, not per task, which no runtime tells a library: at worst another task of the thread
//! gives way. Source: tokio's cooperative scheduling, whose tasks have a budget of 128 per turn.

use core::cell::Cell;

const BUDGET: u8 = 128;

thread_local! {
    static SPENT: Cell<u8> = const { Cell::new(0) };
}

/// A future of this thread is over at once; says whether it may say so.
pub(super) fn may_be_over() -> bool {
    SPENT.with(|spent| {
        let is_left = spent.get() < BUDGET;
        spent.set(if is_left { spent.get() + 1 } else { 0 });
        is_left
    })
}

/// One of them waits.
#[inline]
pub(super) fn renew() {
    SPENT.with(|spent| spent.set(0));
}
