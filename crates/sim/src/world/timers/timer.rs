//! A timer of a load: what it is for, and what the simulator knows of it beside the machine.

use crate::figures::Lateness;
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

impl SimTimer {
    /// Whether it runs before the moment it was armed for; contract: never.
    pub(crate) const fn is_early(&self, now: u64) -> bool {
        now < self.expires
    }

    /// Whether it is pinned and runs on `cpu`, which is another one; contract: only when its own is offline.
    pub(crate) const fn is_pinned_away(&self, cpu: u16) -> bool {
        self.is_pinned && cpu != self.armed_on
    }

    /// What the wheel may add to its delay.
    const fn granule(&self) -> u64 {
        self.delay / 7
    }

    /// Whether it should have run before `now`, however it is late by up to `bound`.
    pub(crate) const fn is_beyond(&self, bound: u64, now: u64) -> bool {
        !self.is_deferrable && self.expires + self.granule() + bound < now
    }

    /// How late it runs, counted from when others see that it is armed; how late it may; whether it was to
    /// be due before that.
    pub(crate) fn lateness(&self, now: u64, tick: u64) -> Lateness {
        Lateness {
            late: now.saturating_sub(self.expires.max(self.seen_at)),
            allowed: self.granule().max(tick) + tick,
            // The wheel adds a tick to what is to be due now.
            is_overdue: self.seen_at >= self.expires + tick,
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

#[cfg(test)]
mod tests {
    use super::{SimTimer, TimerKey, TimerRole};
    use crate::figures::Lateness;
    use quietcore_core::{Machine, SequentialLock, Settings, TimerOptions, topology::Topology};

    /// Of CPU 3, armed for 7,000 with a delay of 700, which others see from 6,500 on.
    fn timer(options: TimerOptions) -> SimTimer {
        let topology = Topology::builder(4).build().expect("CPUs");
        let machine = Machine::<SequentialLock, u32>::new(topology, Settings::default());
        let key = TimerKey::Wheel(machine.expect("no CPU is isolated").add_timer(options, 7));
        let timer = SimTimer::new(key, TimerRole::Guard, options);
        SimTimer { expires: 7_000, delay: 700, armed_on: 3, seen_at: 6_500, is_pending: true, ..timer }
    }

    /// Goal: what must not be is seen when it is. Method: each promise at its edge, and beyond it.
    #[test]
    fn broken_promises_are_seen() {
        let (plain, pinned) = (timer(TimerOptions::new()), timer(TimerOptions::new().pinned()));
        assert_eq!([6_999, 7_000].map(|now| plain.is_early(now)), [true, false]);
        assert_eq!([2, 3].map(|cpu| pinned.is_pinned_away(cpu)), [true, false]);
        assert!(!plain.is_pinned_away(2), "it may run anywhere");
        // A seventh of its delay and the bound: 7,000 + 100 + 50.
        assert_eq!([7_150, 7_151].map(|now| plain.is_beyond(50, now)), [false, true]);
        let deferrable = timer(TimerOptions::new().deferrable());
        assert!(!deferrable.is_beyond(50, 9_000), "it waits for its CPU to wake up");
    }

    /// Goal: a timer may be late by a tick and by what the wheel adds, a tick at least; one that was armed
    /// for what has passed counts from when it was seen. Method: long and short ticks, three moments.
    #[test]
    fn lateness_is_counted_from_when_it_can_be_seen() {
        let plain = timer(TimerOptions::new());
        let lateness = |late, allowed, is_overdue| Lateness { late, allowed, is_overdue };
        assert_eq!(plain.lateness(7_030, 40), lateness(30, 140, false));
        assert_eq!(plain.lateness(6_990, 400), lateness(0, 800, false));
        let seen_at = |seen_at| SimTimer { seen_at, ..plain }.lateness(7_500, 400);
        assert_eq!([7_399, 7_400].map(seen_at), [lateness(101, 800, false), lateness(100, 800, true)]);
    }
}
