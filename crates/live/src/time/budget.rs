//! How many futures in a row may be over at once on a thread.
//!
//! A task whose futures are always ready never returns to its executor: a loop over an interval whose work
//! takes longer than its period, or a sleep of no length in a loop. All other tasks of the thread would wait
//! for ever. So after [`BUDGET`] ready futures in a row, one is pending and wakes its task at once.
//!
//! Counted per thread, not per task, which no runtime tells a library: at worst another task of the thread
//! gives way. Source: tokio's cooperative scheduling, whose tasks have a budget of 128 per turn.

use core::cell::Cell;

const BUDGET: u8 = 128;

thread_local! {
    static SPENT: Cell<u8> = const { Cell::new(0) };
}

/// Counts a future of this thread that is ready at once; returns whether it may be ready.
pub(super) fn may_be_over() -> bool {
    SPENT.with(|spent| {
        let is_left = spent.get() < BUDGET;
        spent.set(if is_left { spent.get() + 1 } else { 0 });
        is_left
    })
}

/// A future of this thread is pending: the count begins again.
#[inline]
pub(super) fn renew() {
    SPENT.with(|spent| spent.set(0));
}
