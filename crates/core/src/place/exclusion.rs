//! Exclusion: which online CPUs are kept out of the timer migration hierarchy because they are isolated.
//!
//! Decides by one of two rules that the kernel's developers wrote:
//!
//! | isolated by                     | `V2` (mail of April 2025) | `Merged` (6.19)           |
//! | ------------------------------- | ------------------------- | ------------------------- |
//! | `isolcpus=domain`, cpuset       | out                       | out                       |
//! | the same, and `nohz_full`       | out                       | stays                     |
//! | `nohz_full` only                | out                       | stays                     |
//! | the tick CPU under `nohz_full`  | as the others             | stays, however isolated   |
//!
//! `Merged` keeps `nohz_full` CPUs because their tick is stopped: they look idle, and the tick CPU, which
//! never stops its own tick as long as `nohz_full` is in use, runs their global timers. So this CPU must stay
//! as well. Without `nohz_full` there is no such CPU: the CPU that keeps time may be unplugged. Invariant:
//! excluded CPUs are online and isolated. Not here: that an offline CPU is unavailable, too, and joining
//! before leaving (the hierarchy's). Source: Linux 6.19 kernel/time/timer_migration.c
//! (`tmigr_isolated_exclude_cpumask`); seed 001. Deviation: the rules are functions of sets; the kernel
//! applies them when a set changes.

use super::Isolation;
use crate::{CpuId, CpuSet};

/// Which isolated CPUs neither pull nor are pulled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Exclusion {
    /// None: isolated CPUs pull and are pulled (Linux 6.9 to 6.18).
    Off,
    /// All of them, however isolated; may leave no CPU in the hierarchy.
    V2,
    /// Those that are isolated from scheduling but not `nohz_full`, and never the tick CPU (Linux from 6.19
    /// on).
    #[default]
    Merged,
}

impl Exclusion {
    /// All of them, for tables and command lines.
    pub const ALL: [Self; 3] = [Self::Off, Self::V2, Self::Merged];

    /// The name on command lines and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::V2 => "v2",
            Self::Merged => "merged",
        }
    }

    /// The CPUs of `online` that the rule keeps out of the hierarchy. `tick` is the CPU that keeps time
    /// (`tick_do_timer_cpu`), if one is known.
    #[must_use]
    pub fn excluded(self, isolation: &Isolation, online: &CpuSet, tick: Option<CpuId>) -> CpuSet {
        match self {
            Self::Off => CpuSet::new(),
            Self::V2 => isolation.any().intersection(online),
            Self::Merged => {
                let isolated = isolation.from_tasks().difference(&isolation.nohz_full);
                let mut excluded = isolated.intersection(online);
                if let Some(tick) = tick.filter(|_| !isolation.nohz_full.is_empty()) {
                    excluded.remove(tick);
                }
                excluded
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Exclusion, Isolation};
    use crate::{CpuId, CpuSet};
    use alloc::string::ToString;

    fn set(list: &str) -> CpuSet {
        list.parse().unwrap()
    }

    /// Goal: every row of the table above, for both rules. Method: domain 1-3,6, nohz_full 3-4, cpuset 5,
    /// CPU 6 offline, each possible tick CPU.
    #[test]
    fn the_two_rules_differ_in_nohz_full_and_in_the_tick_cpu() {
        let isolation = Isolation { domain: set("1-3,6"), nohz_full: set("3-4"), runtime: set("5") };
        let online = set("0-5,7");
        for (tick, v2, merged) in [
            (None, "1-5", "1-2,5"),
            (Some(0), "1-5", "1-2,5"),
            (Some(1), "1-5", "2,5"),
            (Some(3), "1-5", "1-2,5"),
            (Some(5), "1-5", "1-2"),
        ] {
            let tick = tick.map(|cpu| CpuId::new(cpu).unwrap());
            assert_eq!(Exclusion::V2.excluded(&isolation, &online, tick), set(v2), "V2, tick {tick:?}");
            let found = Exclusion::Merged.excluded(&isolation, &online, tick);
            assert_eq!(found.to_string(), merged, "Merged, tick {tick:?}");
            assert!(Exclusion::Off.excluded(&isolation, &online, tick).is_empty());
        }
    }

    /// Goal: without nohz_full the tick CPU is a CPU as any other. Method: the same isolation, with and
    /// without a nohz_full CPU elsewhere.
    #[test]
    fn the_exception_needs_nohz_full() {
        let tick = Some(CpuId::new(1).unwrap());
        for (nohz_full, expected) in [("", "1-2"), ("7", "2")] {
            let isolation =
                Isolation { domain: set("1-2"), nohz_full: set(nohz_full), ..Isolation::default() };
            let found = Exclusion::Merged.excluded(&isolation, &set("0-7"), tick).to_string();
            assert_eq!(found, expected, "nohz_full {nohz_full:?}");
        }
    }

    /// Goal: seed 001's machine: only 0, 32, 64 and 96 stay, by both rules. Method: its lists.
    #[test]
    fn the_128_cpus_of_the_mail() {
        let isolated = set("1-31,33-63,65-95,97-127");
        let isolation = Isolation { domain: isolated, ..Isolation::default() };
        let online = set("0-127");
        for rule in [Exclusion::V2, Exclusion::Merged] {
            let excluded = rule.excluded(&isolation, &online, None);
            assert_eq!(online.difference(&excluded).to_string(), "0,32,64,96", "{rule:?}");
        }
    }

    /// Goal: V2 has no protection against isolating everybody. Method: all CPUs isolated, in two
    /// ways.
    #[test]
    fn v2_may_leave_nobody() {
        let isolation = Isolation { domain: set("0-1"), nohz_full: set("2-3"), ..Isolation::default() };
        let (online, tick) = (set("0-3"), Some(CpuId::new(0).unwrap()));
        assert_eq!(Exclusion::V2.excluded(&isolation, &online, tick), online);
        assert_eq!(Exclusion::Merged.excluded(&isolation, &online, tick).to_string(), "1");
    }
}
