//! Whether a tick raises TIMER on a CPU that should be left alone.
//!
//! Where TIMER runs in a thread of its own, every raise is two switches that an isolated CPU's task has to
//! wait for. So the tick asks first: something pending at all (seed 004), or something due (today's kernel).
//! A tick that looks without a lock can look just before an arm on another CPU becomes visible. Under the
//! bitmap the CPU that arms tells the other ([`Call`](super::Call)), and nothing is late for it; under the
//! next expiry it does not, and the following tick finds it: at most one tick late.
//!
//! Pure functions; reading the words is the world's. Source: seed 004 and its review; Linux 6.12,
//! kernel/time/timer.c (`run_local_timers`), by behaviour (docs/design/KERNEL.md 7.1 to 7.4).

use crate::Nanos;

/// When the tick raises TIMER.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TimerRaise {
    /// Always, as in 2019.
    Unconditional,
    /// When any timer waits on the CPU, whenever it is due; an arm from elsewhere calls.
    Bitmap,
    /// When the first timer of the CPU is due, as today.
    #[default]
    NextExpiry,
}

impl TimerRaise {
    /// All of them, for tables and command lines.
    pub const ALL: [Self; 3] = [Self::Unconditional, Self::Bitmap, Self::NextExpiry];

    /// The name on command lines and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unconditional => "unconditional",
            Self::Bitmap => "bitmap",
            Self::NextExpiry => "next_expiry",
        }
    }

    /// Whether the tick at `now` raises TIMER on a CPU whose first timer is due at `next`, and on which
    /// `is_pending` says whether any waits.
    #[must_use]
    pub fn raises(self, next: Option<Nanos>, is_pending: bool, now: Nanos) -> bool {
        match self {
            Self::Unconditional => true,
            Self::Bitmap => is_pending,
            Self::NextExpiry => next.is_some_and(|next| next <= now),
        }
    }

    /// Whether who arms a timer on such a CPU from elsewhere has to call it, so that it raises at once.
    #[must_use]
    pub const fn calls(self) -> bool {
        matches!(self, Self::Bitmap)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::TimerRaise;
    use crate::Nanos;

    /// Goal: a rule that may look too early and not again in time is the one that is called. Method: each,
    /// asked before an arm is visible and after it, of a timer that is due.
    #[test]
    fn who_may_miss_an_arm_is_called() {
        for when in TimerRaise::ALL {
            let now = Nanos(5);
            let [before, after] = [None, Some(now)].map(|next| when.raises(next, next.is_some(), now));
            assert!(after, "{when:?}");
            // Today's kernel is a tick late.
            assert_eq!(when.calls(), !before && when != TimerRaise::NextExpiry, "{when:?}");
        }
    }
}
