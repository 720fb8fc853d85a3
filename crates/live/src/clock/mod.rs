//! The one clock of a machine: CLOCK_MONOTONIC in nanoseconds, or a virtual one that stands still.
//!
//! CLOCK_MONOTONIC does not count the time a machine is suspended: a timer of one hour that was armed before
//! an hour of suspend is due an hour after the resume. Invariant: [`Clock::coarse`] is never ahead of
//! [`Clock::now`]. Not here: waiting, and who moves a virtual clock.

mod sync;

use quietcore_core::Nanos;
use rustix::time::{ClockId, Timespec, clock_gettime};
use sync::Warp;

/// Reads real or virtual time. Any thread.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    warp: Warp,
}

impl Clock {
    /// The moment. Cost: a vDSO call (about 22 ns), or two loads when time stands still.
    #[inline]
    pub(crate) fn now(&self) -> Nanos {
        self.warp.apply(|| read(ClockId::Monotonic))
    }

    /// The moment, up to a tick of the kernel ago: enough for a base to forward its wheel. Cost: about 6 ns.
    #[inline]
    pub(crate) fn coarse(&self) -> Nanos {
        self.warp.apply(|| read(ClockId::MonotonicCoarse))
    }

    /// Whether it is a virtual clock now.
    #[inline]
    pub(crate) fn is_paused(&self) -> bool {
        self.warp.is_frozen()
    }

    /// Stops the clock at `at`, or moves a stopped one there. For who holds the role that moves time.
    pub(crate) fn freeze(&self, at: Nanos) {
        self.warp.freeze(at);
    }

    /// Lets time go on from where it stood.
    pub(crate) fn thaw(&self) {
        self.warp.thaw(read(ClockId::Monotonic));
    }

    /// The moment of CLOCK_MONOTONIC at which this clock will show `moment`; for timers of the kernel.
    pub(crate) fn to_kernel(&self, moment: Nanos) -> Nanos {
        self.warp.undo(moment)
    }
}

#[inline]
fn read(clock: ClockId) -> Nanos {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(clock);
    Nanos(tv_sec as u64 * 1_000_000_000 + tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::Clock;
    use quietcore_core::Nanos;

    /// Goal: time goes on from where it stood, and the coarse clock is never ahead. Method: freeze ahead of
    /// the present, thaw, compare.
    #[test]
    fn time_goes_on_from_where_it_stood() {
        let clock = Clock::default();
        let started = clock.now();
        assert!(clock.coarse() <= clock.now());
        let frozen = Nanos(started.0 + 3_600_000_000_000);
        clock.freeze(frozen);
        assert!(clock.is_paused());
        assert_eq!((clock.now(), clock.coarse()), (frozen, frozen));
        clock.thaw();
        let now = clock.now();
        assert!(now >= frozen && now.since(frozen).0 < 60_000_000_000, "{now:?} after {frozen:?}");
        assert!(clock.to_kernel(now) <= Clock::default().now());
    }
}
