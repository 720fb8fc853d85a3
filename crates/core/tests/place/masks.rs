//! Housekeeping masks and exclusion rules, CPU by CPU.

use crate::machines::{cpu, isolation, machine, set};
use proptest::prelude::*;
use quietcore_core::CpuSet;
use quietcore_core::place::{
    Exclusion, Housekeeping, HousekeepingError, Isolation, Mask, nearest_housekeeping,
};

const LIMIT: usize = 40;

proptest! {
    /// Goal: each CPU is in the masks that its own isolation leaves, and an error means an empty mask.
    /// Method: one CPU at a time, by the table of the module.
    #[test]
    fn masks_follow_cpu_by_cpu(cpus in set(LIMIT), isolation in isolation(LIMIT + 5)) {
        let quiet = |at| isolation.nohz_full.contains(cpu(at));
        let unbalanced = |at| isolation.domain.contains(cpu(at)) || isolation.runtime.contains(cpu(at));
        let among = |keep: &dyn Fn(usize) -> bool| -> CpuSet {
            cpus.iter().filter(|cpu| keep(cpu.index())).collect()
        };
        let timers = among(&|at| !quiet(at));
        let tasks = among(&|at| !unbalanced(at));
        let work = among(&|at| !quiet(at) && !unbalanced(at));
        match Housekeeping::new(&cpus, &isolation) {
            Ok(found) => {
                prop_assert_eq!([found.timers(), found.work(), found.tasks()], [&timers, &work, &tasks]);
                prop_assert!(!work.is_empty(), "nobody left, and no error");
            }
            Err(HousekeepingError::NoCpus) => prop_assert!(cpus.is_empty()),
            Err(HousekeepingError::NoneLeft { mask, .. }) => {
                let named = match mask {
                    Mask::Timers => timers,
                    Mask::Tasks => tasks,
                    _ => work,
                };
                prop_assert!(named.is_empty(), "{:?} has {}", mask, named);
            }
            Err(other) => prop_assert!(false, "{}", other),
        }
    }

    /// Goal: both rules, CPU by CPU, and how they relate. Method: every CPU as the tick CPU, and none.
    #[test]
    fn exclusion_follows_cpu_by_cpu(online in set(LIMIT), isolation in isolation(LIMIT)) {
        for tick in (0..LIMIT).map(|at| Some(cpu(at))).chain([None]) {
            let [off, v2, merged] = Exclusion::ALL.map(|rule| rule.excluded(&isolation, &online, tick));
            prop_assert!(off.is_empty() && merged.is_subset(&v2) && v2.is_subset(&online));
            for own in online.iter() {
                let unbalanced = isolation.domain.contains(own) || isolation.runtime.contains(own);
                let quiet = isolation.nohz_full.contains(own);
                let keeps_time = tick == Some(own) && !isolation.nohz_full.is_empty();
                prop_assert_eq!(v2.contains(own), unbalanced || quiet, "V2, CPU {}", own);
                prop_assert_eq!(merged.contains(own), unbalanced && !quiet && !keeps_time, "Merged, CPU {}", own);
            }
        }
    }

    /// Goal: what the masks accept leaves a CPU in the hierarchy by either rule. Method: no rule takes a CPU
    /// of the work mask, which is never empty.
    #[test]
    fn somebody_stays_in_the_hierarchy(online in set(LIMIT), isolation in isolation(LIMIT)) {
        if let Ok(housekeeping) = Housekeeping::new(&online, &isolation) {
            for rule in Exclusion::ALL {
                let excluded = rule.excluded(&isolation, &online, None);
                prop_assert!(housekeeping.work().intersection(&excluded).is_empty(), "{:?} excludes a housekeeper", rule);
            }
        }
    }

    /// Goal: the stand-in is a member, and no member shares more or has a lower number at the same
    /// distance. Method: distances by comparing spans.
    #[test]
    fn the_stand_in_is_nearest(machine in machine(), mask in set(90)) {
        for own in machine.possible().iter() {
            let distance = |other| {
                let spans = [machine.core(own), machine.cache(own), machine.node(own)];
                let shared = spans.iter().position(|span| span.contains(&other));
                if other == own { (0, other) } else { (1 + shared.unwrap_or(3), other) }
            };
            let members = machine.possible().iter().filter(|&other| mask.contains(other));
            let expected = members.min_by_key(|&other| distance(other));
            prop_assert_eq!(nearest_housekeeping(&machine, own, &mask), expected, "CPU {}", own);
        }
    }
}

/// Goal: the recorded machine of 16 CPUs: 0 and 8 do all chores. Method: its isolation, as two settings.
#[test]
fn sixteen_cpus_with_two_housekeepers() {
    let isolated: CpuSet = "1-7,9-15".parse().unwrap();
    let cpus: CpuSet = "0-15".parse().unwrap();
    for isolation in [
        Isolation { domain: isolated.clone(), ..Isolation::default() },
        Isolation { runtime: isolated.clone(), ..Isolation::default() },
    ] {
        let masks = Housekeeping::new(&cpus, &isolation).unwrap();
        assert_eq!([masks.work(), masks.tasks()].map(CpuSet::to_string), ["0,8", "0,8"]);
        assert_eq!(masks.timers(), &cpus, "a CPU that is only isolated from scheduling keeps its timers");
        assert_eq!(Exclusion::Merged.excluded(&isolation, &cpus, None), isolated);
    }
}
