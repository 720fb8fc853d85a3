//! How late the kernel may end a thread's waits: its timer slack, 50 us unless a thread asks for less.
//!
//! Decides nothing. Absent under Miri, whose waits end when they should. Source: prctl(2),
//! `PR_SET_TIMERSLACK`.

use core::num::NonZeroU64;

/// In ns.
pub(crate) type Slack = NonZeroU64;

/// The calling thread's waits are as exact as the kernel's timers from now on; as they were before if that
/// is known.
pub(crate) fn take_away() -> Option<Slack> {
    if cfg!(miri) {
        return None;
    }
    let before = rustix::thread::current_timer_slack().ok().and_then(NonZeroU64::new);
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    before
}

/// The calling thread's waits are as they were.
pub(crate) fn give_back(before: Option<Slack>) {
    if before.is_some() {
        let _ = rustix::thread::set_current_timer_slack(before);
    }
}
