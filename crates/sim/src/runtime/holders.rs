//! Which virtual threads hold locks.

use super::switch::ThreadId;
use std::cell::RefCell;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    Thread(ThreadId),
    /// The making of a run, before its threads.
    Setup,
}

thread_local! {
    /// Once for each lock that is held.
    static HOLDERS: RefCell<Vec<Holder>> = const { RefCell::new(Vec::new()) };
}

/// A run begins.
pub(super) fn forget() {
    HOLDERS.with_borrow_mut(Vec::clear);
}

/// `holder` has taken a lock.
pub(super) fn add(holder: Holder) {
    HOLDERS.with_borrow_mut(|holders| holders.push(holder));
}

/// It has given one back.
pub(super) fn remove(holder: Holder) {
    HOLDERS.with_borrow_mut(|holders| {
        let at = holders.iter().rposition(|other| *other == holder);
        at.map(|at| holders.swap_remove(at))
    });
}

/// Whether no lock is held: then what they guard can be looked at from outside.
pub(super) fn none_is_held() -> bool {
    HOLDERS.with_borrow(Vec::is_empty)
}

/// Whether `thread` holds one: then others wait for it.
pub(super) fn holds_lock(thread: ThreadId) -> bool {
    HOLDERS.with_borrow(|holders| holders.contains(&Holder::Thread(thread)))
}
