//! What a turn did.

/// What a turn did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TurnStats {
    /// Timers that were run: callbacks and wakers.
    pub ran: u32,
    /// Tasks that were polled, and work that was run.
    pub items: u32,
    /// Handlers of softirqs that were run.
    pub softirqs: u32,
    /// Whether there is more: the turn's budget (256 timers, 64 items, 2 ms for either) was used up. Take
    /// another turn soon.
    pub has_more: bool,
}

/// What a turn ran besides timers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TurnWork {
    /// Polls of tasks, and work.
    pub(super) items: u32,
    /// Handlers of softirqs.
    pub(super) softirqs: u32,
    /// Timers that were due in between.
    pub(super) timers: u32,
}
