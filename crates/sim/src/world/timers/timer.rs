//! A timer of a load: what it is for, and what the simulator knows of it beside the machine.

use quietcore_core::{ExactId, TimerId, TimerOptions};

#[derive(Clone, Copy, Debug)]
pub(crate) enum TimerRole {
    /// The periodic load with this number in the plan.
    Periodic(u32),
    /// Wakes this task.
    Wake(u32),
    /// Hands so much work to the worker of the CPU where it runs.
    Work(u64),
    /// Guards a request; nearly always cancelled.
    Guard,
    /// Armed from elsewhere; does nothing.
    Remote,
    /// The timer of a script with this number.
    Scripted(u32),
    /// The watchdog of this transmit queue.
    Watchdog(u16),
}

/// What the machine calls a timer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TimerKey {
    Wheel(TimerId),
    Exact(ExactId),
}

impl TimerKey {
    /// Of a timer that is not exact: only watchdogs are, and they are armed by those who run queues.
    pub(crate) fn wheel(self) -> TimerId {
        match self {
            Self::Wheel(id) => id,
            Self::Exact(_) => unreachable!("watchdogs are armed by those who run queues"),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct SimTimer {
    pub(crate) key: TimerKey,
    pub(crate) role: TimerRole,
    /// The moment it was last armed for, and how far ahead that was.
    pub(crate) expires: u64,
    pub(crate) delay: u64,
    pub(crate) armed_on: u16,
    /// The CPU of the base that it was put on.
    pub(crate) base: u16,
    pub(crate) is_pending: bool,
    pub(crate) is_pinned: bool,
    pub(crate) is_deferrable: bool,
    /// Since when others see that it is armed.
    pub(crate) seen_at: u64,
    /// It last ran on another CPU than that of its base, which is this one.
    pub(crate) pulled_from: Option<u16>,
}

impl SimTimer {
    /// A timer that is not armed.
    pub(crate) const fn new(key: TimerKey, role: TimerRole, options: TimerOptions) -> Self {
        Self {
            key,
            role,
            expires: 0,
            delay: 0,
            armed_on: 0,
            base: 0,
            is_pending: false,
            is_pinned: options.is_pinned(),
            is_deferrable: options.is_deferrable(),
            seen_at: 0,
            pulled_from: None,
        }
    }
}

impl TimerRole {
    /// What recordings call the callback.
    pub(crate) const fn callback_name(self) -> &'static [u8] {
        match self {
            Self::Wake(_) => b"process_timeout",
            Self::Guard => b"request_timeout",
            Self::Work(_) => b"delayed_work_timer_fn",
            Self::Periodic(_) => b"periodic",
            Self::Remote => b"armed_elsewhere",
            Self::Scripted(_) => b"scripted",
            Self::Watchdog(_) => b"qdisc_watchdog",
        }
    }
}
