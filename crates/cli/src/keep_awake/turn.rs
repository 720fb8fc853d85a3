//! When a sleeper of a CPU arms its timer, so that one of two timers is always due at the next tick.
//!
//! A CPU leaves the kernel's hierarchy when it goes idle and its next wheel timer is due later than at the
//! next tick (Linux v6.9 to v6.18, kernel/time/timer.c, `__get_next_timer_interrupt`). The shortest wheel
//! timer that a program can arm is due two ticks later. So two sleepers take turns: each arms its timer in
//! a tick in which the other has not, and as each runs two ticks later, they keep that order by themselves.
//! Decided here: what one does that wakes up in the tick in which its partner has armed its own.

/// What a sleeper does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SleeperTurn {
    /// It arms its timer now.
    Arm,
    /// It stays awake until the next tick, and looks again.
    StayAwake,
}

/// What one does that is awake in tick `now`, and whose partner armed its timer last in tick `other`.
pub(super) fn turn(now: u64, other: Option<u64>) -> SleeperTurn {
    match other {
        Some(other) if other == now => SleeperTurn::StayAwake,
        _ => SleeperTurn::Arm,
    }
}

#[cfg(test)]
mod tests {
    use super::{SleeperTurn, turn};
    /// So many ticks after it is armed a timer runs.
    const LATER: u64 = 2;

    #[derive(Clone, Copy, Debug)]
    enum Sleeper {
        /// Its timer was armed in this tick.
        Asleep { armed: u64 },
        /// It stays awake until this tick.
        Awake { until: u64 },
    }

    /// The ticks of `ticks` in which the CPU goes idle without a timer that is due in the next one. Each
    /// timer runs later by what `late` says.
    fn gaps(ticks: u64, mut late: impl FnMut(u64) -> u64) -> Vec<u64> {
        let mut sleepers = [Sleeper::Awake { until: 0 }; 2];
        let mut gaps = Vec::new();
        for now in 0..ticks {
            for this in 0..2 {
                let is_awake = match sleepers[this] {
                    Sleeper::Asleep { armed } => now >= armed + LATER + late(armed),
                    Sleeper::Awake { until } => now >= until,
                };
                let other = match sleepers[1 - this] {
                    Sleeper::Asleep { armed } => Some(armed),
                    Sleeper::Awake { .. } => None,
                };
                if is_awake {
                    sleepers[this] = match turn(now, other) {
                        SleeperTurn::Arm => Sleeper::Asleep { armed: now },
                        SleeperTurn::StayAwake => Sleeper::Awake { until: now + 1 },
                    };
                }
            }
            let is_kept = |sleeper: &Sleeper| match sleeper {
                Sleeper::Asleep { armed } => armed + LATER <= now + 1,
                Sleeper::Awake { .. } => true,
            };
            if !sleepers.iter().any(is_kept) {
                gaps.push(now);
            }
        }
        gaps
    }

    /// Goal: two sleepers leave no gap, however they begin. Method: 1000 ticks in which every timer runs when
    /// it is due.
    #[test]
    fn two_sleepers_leave_no_gap() {
        assert_eq!(gaps(1_000, |_| 0), [0; 0]);
    }

    /// Goal: one that runs late leaves no gap after it has run. Method: one of 50 timers runs up to three
    /// ticks late, drawn; while a timer is late it is due, so it keeps the CPU awake.
    #[test]
    fn one_that_is_late_leaves_no_gap() {
        let mut random = 7_u64;
        let mut draw = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            random >> 33
        };
        let late: Vec<u64> =
            (0..100_000).map(|_| if draw() % 50 == 0 { 1 + draw() % 3 } else { 0 }).collect();
        assert_eq!(gaps(100_000, |armed| late[armed as usize]), [0; 0]);
    }
}
