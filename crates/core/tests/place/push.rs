//! The push heuristic against its definition in plain loops.

use crate::machines::{isolation, machine, set};
use proptest::prelude::*;
use quietcore_core::place::{Arming, Housekeeping, Isolation, nearest_housekeeping, push_target};
use quietcore_core::topology::Topology;
use quietcore_core::{CpuId, CpuSet};

fn push(machine: &Topology, masks: &Housekeeping, own: CpuId, busy: &CpuSet) -> (CpuId, Vec<CpuId>) {
    let mut asked = Vec::new();
    let arming = Arming { cpu: own, is_idle: !busy.contains(own) };
    let target = push_target(arming, masks, machine.domains(own), |other| {
        asked.push(other);
        !busy.contains(other)
    });
    (target, asked)
}

/// The same by sorting: all others that are busy, take timers and are balanced, by distance and number.
fn definition(machine: &Topology, isolation: &Isolation, own: CpuId, busy: &CpuSet) -> Option<CpuId> {
    let balanced = |cpu| !isolation.domain.contains(cpu) && !isolation.runtime.contains(cpu);
    let keeps = |cpu| !isolation.nohz_full.contains(cpu);
    if keeps(own) && (busy.contains(own) || !balanced(own)) {
        return Some(own);
    }
    let distance = |other: CpuId| {
        let spans = [machine.core(own), machine.cache(own), machine.node(own)];
        (spans.iter().position(|span| span.contains(&other)).unwrap_or(3), other)
    };
    let others = machine.possible().iter().filter(|&cpu| cpu != own && keeps(cpu) && balanced(cpu));
    let busy_one =
        others.clone().filter(|&cpu| busy.contains(cpu) && balanced(own)).min_by_key(|&cpu| distance(cpu));
    busy_one.or_else(|| if keeps(own) { Some(own) } else { others.min_by_key(|&cpu| distance(cpu)) })
}

proptest! {
    /// Goal: the walk finds what its definition says. Method: every CPU of random machines arms.
    #[test]
    fn the_walk_is_its_definition(machine in machine(), isolation in isolation(80), busy in set(80)) {
        if let Ok(masks) = Housekeeping::new(machine.possible(), &isolation) {
            for own in machine.possible().iter() {
                let (target, asked) = push(&machine, &masks, own, &busy);
                prop_assert_eq!(Some(target), definition(&machine, &isolation, own, &busy), "CPU {}", own);
                prop_assert!(asked.len() <= 4 * machine.cpu_count() && !asked.contains(&own));
                let is_busy_keeper = busy.contains(own) && masks.timers().contains(own);
                prop_assert!(!is_busy_keeper || asked.is_empty(), "CPU {} asked {:?}", own, asked);
            }
        }
    }

    /// Goal: no isolated CPU gets a timer from another one, and a target that is not busy is the arming CPU
    /// or the last resort. Method: every CPU of random machines arms.
    #[test]
    fn isolated_cpus_get_nothing_foreign(machine in machine(), isolation in isolation(80), busy in set(80)) {
        if let Ok(masks) = Housekeeping::new(machine.possible(), &isolation) {
            for own in machine.possible().iter() {
                let (target, _) = push(&machine, &masks, own, &busy);
                prop_assert!(target == own || !isolation.any().contains(target), "{} -> {}", own, target);
                if target != own && !busy.contains(target) {
                    prop_assert!(isolation.nohz_full.contains(own));
                    prop_assert_eq!(nearest_housekeeping(&machine, own, masks.work()), Some(target));
                }
            }
        }
    }
}
