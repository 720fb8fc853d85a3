//! Exact timers: on which CPU one is queued when it is started.
//!
//! Decides by the kernel's rule for hrtimers ([`ExactPolicy::Kernel`]) or as for wheel timers under `Pull`.
//! The kernel's rule still pushes: an unpinned timer goes to a busy CPU nearby, but never becomes a remote
//! CPU's first event, because no CPU can program another CPU's clock event device.
//!
//! Invariants: a timer whose callback runs stays where it runs, so it is never concurrent with itself; an
//! online CPU's pinned timer is queued on that CPU; an online CPU's timer is never a remote CPU's first.
//! Not here: queues, slack, programming the device; pulling.
//! Source: Linux 6.12 kernel/time/hrtimer.c (`get_target_base`, `switch_hrtimer_base`), by behaviour.

use crate::{CpuId, Nanos};

/// Where an unpinned exact timer goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ExactPolicy {
    /// Pushed when it is started, if it does not become the other CPU's first event (every Linux).
    Kernel,
    /// It stays where it is started, and is pulled as wheel timers are.
    #[default]
    Pull,
}

impl ExactPolicy {
    /// Both of them, for tables and command lines.
    pub const ALL: [Self; 2] = [Self::Kernel, Self::Pull];

    /// The name on command lines and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Pull => "pull",
        }
    }
}

/// Whether a start fixes the CPU. Only the start counts; what an earlier start said is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExactMode {
    /// On the CPU that starts it. With `kernel.timer_migration` off every timer is.
    Pinned,
    /// Where the policy says.
    Floating,
}

/// Where the timer is when it is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExactOrigin {
    /// Neither queued nor running.
    Inactive,
    /// Pending on `cpu`.
    Queued {
        /// Whose queue it is in.
        cpu: CpuId,
        /// It is that CPU's next event.
        first: bool,
    },
    /// Its callback runs on `cpu`; it may start itself from there, or another CPU may start it.
    Running {
        /// Whose queue it belongs to.
        cpu: CpuId,
    },
}

/// Whether the starting CPU can have timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// It can.
    Online,
    /// It is going offline.
    Offline {
        /// An online housekeeping CPU, [`nearest_housekeeping`](super::nearest_housekeeping); it must be
        /// kicked if the timer becomes its first.
        stand_in: CpuId,
    },
}

/// One start of an exact timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExactStart {
    /// The CPU that starts it.
    pub cpu: CpuId,
    /// Whether this CPU is online.
    pub caller: Caller,
    /// Whether it must stay on this CPU.
    pub mode: ExactMode,
    /// When it is due at the latest (its hard expiry), a moment.
    pub expires: Nanos,
    /// Where it is now.
    pub origin: ExactOrigin,
}

/// The CPU in whose queue the timer belongs.
///
/// `push` is asked at most once, for a floating timer under [`ExactPolicy::Kernel`]: the answer of
/// [`push_target`](super::push_target). `first_event` is asked at most once, for that CPU if it is another
/// one: its earliest event as it is programmed, `None` if there is none.
#[must_use]
pub fn exact_target(
    policy: ExactPolicy,
    start: &ExactStart,
    push: impl FnOnce() -> CpuId,
    first_event: impl FnOnce(CpuId) -> Option<Nanos>,
) -> CpuId {
    match (start.origin, start.caller) {
        (ExactOrigin::Running { cpu }, _) => return cpu,
        (_, Caller::Offline { stand_in }) => return stand_in,
        // Moving it away would program this CPU's device twice.
        (ExactOrigin::Queued { cpu, first: true }, Caller::Online) if cpu == start.cpu => return cpu,
        (ExactOrigin::Queued { .. } | ExactOrigin::Inactive, Caller::Online) => {}
    }
    let target = match (policy, start.mode) {
        (ExactPolicy::Kernel, ExactMode::Floating) => push(),
        (ExactPolicy::Kernel | ExactPolicy::Pull, _) => start.cpu,
    };
    let in_time = |cpu| first_event(cpu).is_some_and(|first| start.expires >= first);
    if target == start.cpu || in_time(target) { target } else { start.cpu }
}

#[cfg(test)]
mod tests {
    use super::{Caller, ExactMode, ExactOrigin, ExactPolicy, ExactStart, exact_target};
    use crate::{CpuId, Nanos};

    fn cpu(number: u64) -> CpuId {
        CpuId::new(number).unwrap()
    }

    fn start(origin: ExactOrigin) -> ExactStart {
        let expires = Nanos(100);
        ExactStart { cpu: cpu(0), caller: Caller::Online, mode: ExactMode::Floating, expires, origin }
    }

    /// Goal: a remote CPU's first event is never made. Method: its first event before, at and after the
    /// expiry, and none.
    #[test]
    fn a_remote_cpu_keeps_its_first_event() {
        for (first, expected) in [(Some(99), 7), (Some(100), 7), (Some(101), 0), (None, 0)] {
            for origin in [ExactOrigin::Inactive, ExactOrigin::Queued { cpu: cpu(7), first: true }] {
                let found =
                    exact_target(ExactPolicy::Kernel, &start(origin), || cpu(7), |_| first.map(Nanos));
                assert_eq!(found, cpu(expected), "first event {first:?}, {origin:?}");
            }
        }
    }

    /// Goal: who decides first: a running callback, an offline caller, the own first event, pinning. Method:
    /// a push target that would accept everything, and must not be asked.
    #[test]
    fn what_forbids_the_push() {
        let here = ExactOrigin::Queued { cpu: cpu(0), first: true };
        let offline = Caller::Offline { stand_in: cpu(4) };
        for (what, expected) in [
            (start(ExactOrigin::Running { cpu: cpu(3) }), 3),
            (ExactStart { caller: offline, ..start(ExactOrigin::Running { cpu: cpu(3) }) }, 3),
            (ExactStart { mode: ExactMode::Pinned, ..start(ExactOrigin::Running { cpu: cpu(3) }) }, 3),
            (ExactStart { caller: offline, ..start(here) }, 4),
            (ExactStart { caller: offline, mode: ExactMode::Pinned, ..start(ExactOrigin::Inactive) }, 4),
            (start(here), 0),
            (ExactStart { mode: ExactMode::Pinned, ..start(ExactOrigin::Inactive) }, 0),
            (
                ExactStart {
                    mode: ExactMode::Pinned,
                    ..start(ExactOrigin::Queued { cpu: cpu(5), first: true })
                },
                0,
            ),
        ] {
            for policy in ExactPolicy::ALL {
                let found = exact_target(policy, &what, || unreachable!("pushed"), |_| Some(Nanos(0)));
                assert_eq!(found, cpu(expected), "{policy:?}, {what:?}");
            }
        }
    }

    /// Goal: the own queue's timer is pushed unless it is the first there. Method: both policies.
    #[test]
    fn the_first_event_of_the_own_queue_stays() {
        for (first, kernel) in [(true, 0), (false, 7)] {
            let what = start(ExactOrigin::Queued { cpu: cpu(0), first });
            for (policy, expected) in [(ExactPolicy::Kernel, kernel), (ExactPolicy::Pull, 0)] {
                let found = exact_target(policy, &what, || cpu(7), |_| Some(Nanos(0)));
                assert_eq!(found, cpu(expected), "{policy:?}, first there: {first}");
            }
        }
    }
}
