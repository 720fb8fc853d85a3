//! Fallback: which housekeeping CPU stands in for a CPU.
//!
//! Decides who adopts the timers of a CPU that goes offline, and which CPU serves a thread that runs on an
//! isolated one: the nearest (core, cache, node, machine), of those the one with the lowest number.
//! Not here: load. The answer depends on the masks alone, so that it is the same at every call.

use crate::topology::Topology;
use crate::{CpuId, CpuSet};

/// The member of `housekeeping` that is nearest to `cpu`: itself, if it is one. `None` if no CPU of the
/// machine is a member.
///
/// For adoption leave the dying CPU out of `housekeeping`; for a foreign thread pass
/// [`Housekeeping::work`](super::Housekeeping::work), which has no isolated CPU.
/// Cost: linear in the CPUs of the smallest span that has a member.
#[must_use]
pub fn nearest_housekeeping(topology: &Topology, cpu: CpuId, housekeeping: &CpuSet) -> Option<CpuId> {
    if topology.possible().contains(cpu) && housekeeping.contains(cpu) {
        return Some(cpu);
    }
    let within = |cpus: &[CpuId]| cpus.iter().copied().find(|&near| housekeeping.contains(near));
    let near = topology.domains(cpu).find_map(|domain| within(domain.cpus));
    // A CPU that the machine cannot have is near to no other; its thread still needs a CPU.
    near.or_else(|| housekeeping.iter_common(topology.possible()).next())
}

#[cfg(test)]
mod tests {
    use super::nearest_housekeeping;
    use crate::topology::{Layout, Topology};
    use crate::{CpuId, CpuSet};

    /// Goal: each level is preferred to the next, and the lowest number within one. Method: CPU 5 of two
    /// nodes with two caches of two cores of two threads each; its sibling is 13.
    #[test]
    fn nearer_levels_come_first() {
        let builder = Topology::builder(16).threads_per_core(2, Layout::Interleaved);
        let machine = builder.nodes(2, Layout::Blocks).cores_per_cache(2).build().unwrap();
        for (housekeeping, expected) in [
            ("0-15", Some(5)),
            ("0-4,6-15", Some(13)),
            ("0-3,6-12,14-15", Some(12)),
            ("0-4,6-11", Some(4)),
            ("0-3,6-11,14-15", Some(6)),
            ("1,9,14-15", Some(14)),
            ("1,9", Some(1)),
            ("16-20", None),
            ("", None),
        ] {
            let mask: CpuSet = housekeeping.parse().unwrap();
            let found = nearest_housekeeping(&machine, CpuId::new(5).unwrap(), &mask);
            assert_eq!(found.map(CpuId::index), expected, "housekeeping {housekeeping:?}");
        }
    }

    /// Goal: a CPU that the machine cannot have still gets another CPU, never itself. Method: CPU 9 of four,
    /// in the mask.
    #[test]
    fn an_unknown_cpu_gets_the_lowest() {
        let machine = Topology::builder(4).build().unwrap();
        let mask: CpuSet = "2-3,9".parse().unwrap();
        let found = nearest_housekeeping(&machine, CpuId::new(9).unwrap(), &mask);
        assert_eq!(found, CpuId::new(2).ok());
    }
}
