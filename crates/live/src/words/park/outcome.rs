//! What a wait and a wake-up came to.

/// Why a thread is awake again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[must_use]
pub(crate) enum Woken {
    /// A thread called `unpark`.
    Notified,
    /// The moment came; for an owner that waits by itself: no thread called `unpark`.
    TimedOut,
}

/// What a call of `unpark` came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[must_use]
pub(crate) enum Notify {
    /// The owner was on its way to sleep, and this call woke it.
    Woke,
    /// The owner is awake, or another thread wakes it.
    NotNeeded,
}
