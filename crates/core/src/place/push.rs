//! Push: which CPU gets an unpinned timer when it is armed (Linux before 6.9; exact timers still today).
//!
//! Decides by a guess: a CPU that is busy now will be busy when the timer expires, so no CPU has to wake up.
//! The arming CPU, if it is a busy timer housekeeper; else the first busy one in the smallest of its domains;
//! else the arming CPU, if it may keep timers; else its nearest housekeeper. The guess is asked at every arm
//! though most timers are cancelled, which is why `Pull` replaced it.
//!
//! Invariant: no timer goes to another CPU that is isolated in any way, and none to a `nohz_full` CPU. Not
//! here: pinned timers, which stay where they are armed. Source: Linux 6.1 kernel/sched/core.c
//! (`get_nohz_timer_target`), by behaviour. A CPU that is isolated from scheduling has no scheduling domain:
//! it is not found, and finds none. Deviation: the kernel's last resort is any housekeeper of the node; here
//! it is the nearest one.

use super::Housekeeping;
use crate::CpuId;
use crate::topology::Domain;

/// The CPU that arms a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arming {
    /// Its number.
    pub cpu: CpuId,
    /// Nothing runs there but the idle task; a softirq on top of it does not count, ksoftirqd does.
    pub is_idle: bool,
}

/// The CPU that gets an unpinned timer under [`Policy::Push`](super::Policy::Push).
///
/// `housekeeping` is made of the online CPUs; `domains` are those of the arming CPU,
/// [`Topology::domains`](crate::topology::Topology::domains). `is_idle` is asked for other CPUs only, nearest
/// domain first, in each by ascending number, and again in the next larger one.
/// Cost: O(1) when the arming CPU is a busy timer housekeeper (`domains` and `is_idle` are not looked at);
/// else up to the members of all domains.
#[must_use]
pub fn push_target<'a>(
    arming: Arming,
    housekeeping: &Housekeeping,
    domains: impl IntoIterator<Item = Domain<'a>>,
    mut is_idle: impl FnMut(CpuId) -> bool,
) -> CpuId {
    let has_domains = housekeeping.tasks().contains(arming.cpu);
    let keeps_timers = housekeeping.timers().contains(arming.cpu);
    if keeps_timers && !(arming.is_idle && has_domains) {
        return arming.cpu;
    }
    let mut nearest = None;
    for domain in domains {
        for &cpu in domain.cpus {
            // `work` is exactly who is in a domain and takes timers.
            if cpu == arming.cpu || !housekeeping.work().contains(cpu) {
                continue;
            }
            if !has_domains || !is_idle(cpu) {
                return cpu;
            }
            nearest = nearest.or(Some(cpu));
        }
    }
    if keeps_timers {
        return arming.cpu;
    }
    nearest.or_else(|| housekeeping.work().first()).expect("Housekeeping::new refuses an empty mask")
}

#[cfg(test)]
mod tests {
    use super::{Arming, Housekeeping, push_target};
    use crate::place::Isolation;
    use crate::topology::{Layout, Topology};
    use crate::{CpuId, CpuSet};
    use alloc::vec::Vec;

    /// Two nodes of two caches of two CPUs: 0-1 2-3 | 4-5 6-7.
    fn machine() -> Topology {
        Topology::builder(8).nodes(2, Layout::Blocks).cores_per_cache(2).build().unwrap()
    }

    /// The target, and the CPUs whose state was asked for.
    fn push(isolation: &Isolation, cpu: u64, busy: &str) -> (usize, Vec<usize>) {
        let machine = machine();
        let busy: CpuSet = busy.parse().unwrap();
        let housekeeping = Housekeeping::new(machine.possible(), isolation).unwrap();
        let cpu = CpuId::new(cpu).unwrap();
        let mut asked = Vec::new();
        let arming = Arming { cpu, is_idle: !busy.contains(cpu) };
        let target = push_target(arming, &housekeeping, machine.domains(cpu), |other| {
            asked.push(other.index());
            !busy.contains(other)
        });
        (target.index(), asked)
    }

    /// Goal: the walk goes from near to far and by number; none busy: the arming CPU. Method: one busy set
    /// per outcome, all seen from CPU 5.
    #[test]
    fn the_nearest_busy_cpu_gets_it() {
        for (busy, expected) in
            [("5", 5), ("0-7", 5), ("0-4,6", 4), ("0-3,6-7", 6), ("7", 7), ("1-3", 1), ("", 5)]
        {
            assert_eq!(push(&Isolation::default(), 5, busy).0, expected, "busy {busy:?}");
        }
    }

    /// Goal: a busy arming CPU asks no other; an idle one stops at the first busy CPU. Method: count the
    /// questions, and look what is left of the domains.
    #[test]
    fn the_walk_is_as_short_as_it_can_be() {
        for (busy, asked) in [("5", 0), ("4", 1), ("6", 3), ("0", 5)] {
            assert_eq!(push(&Isolation::default(), 5, busy).1.len(), asked, "busy {busy:?}");
        }
        let machine = machine();
        let housekeeping = Housekeeping::new(machine.possible(), &Isolation::default()).unwrap();
        let arming = Arming { cpu: CpuId::new(5).unwrap(), is_idle: false };
        let mut domains = machine.domains(arming.cpu);
        let _: CpuId = push_target(arming, &housekeeping, &mut domains, |_| unreachable!("asked"));
        assert_eq!(domains.next().map(|domain| domain.cpus.len()), Some(2), "a domain was looked at");
    }

    /// Goal: a nohz_full CPU gives its timers away even when it is busy, and gets none. Method: 4-7
    /// nohz_full, armed on 5.
    #[test]
    fn a_nohz_full_cpu_pushes_and_is_not_pushed_to() {
        let isolation = Isolation { nohz_full: "4-7".parse().unwrap(), ..Isolation::default() };
        for (busy, expected) in [("5", 0), ("4-7", 0), ("2,4-7", 2), ("3,5", 3)] {
            assert_eq!(push(&isolation, 5, busy).0, expected, "busy {busy:?}");
        }
    }

    /// Goal: a CPU without scheduling domains keeps its own timers and is never found. Method: 1-3 and 5
    /// isolated from scheduling, armed on 5 and on 0.
    #[test]
    fn a_domain_isolated_cpu_keeps_its_own() {
        for at_boot in [true, false] {
            let cpus: CpuSet = "1-3,5".parse().unwrap();
            let isolation = if at_boot {
                Isolation { domain: cpus, ..Isolation::default() }
            } else {
                Isolation { runtime: cpus, ..Isolation::default() }
            };
            for (cpu, busy, expected) in
                [(5, "4", 5), (5, "5", 5), (0, "1-3,5", 0), (0, "1-3,6", 6), (4, "5", 4)]
            {
                assert_eq!(push(&isolation, cpu, busy).0, expected, "{isolation:?}, {cpu}, busy {busy:?}");
            }
        }
    }

    /// Goal: isolated in both ways: no walk, the nearest housekeeper at once. Method: a CPU of each
    /// cache arms while only CPU 0 is busy.
    #[test]
    fn a_fully_isolated_cpu_gives_to_the_nearest() {
        let both: CpuSet = "1-6".parse().unwrap();
        let isolation = Isolation { domain: both.clone(), nohz_full: both, ..Isolation::default() };
        for (cpu, expected) in [(1, 0), (3, 0), (4, 7), (6, 7)] {
            assert_eq!(push(&isolation, cpu, "0"), (expected, Vec::new()), "armed on {cpu}");
        }
    }
}
