//! What every topology keeps, and a machine of the largest size.

use crate::machines::{cpu, machine, set};
use proptest::prelude::*;
use quietcore_core::topology::{BuildError, Each, Layout, NodeId, Share, Topology};
use quietcore_core::{CPU_LIMIT, CpuId, CpuSet};

type Level = for<'a> fn(&'a Topology, CpuId) -> &'a [CpuId];

const LEVELS: [Level; 3] = [Topology::core, Topology::cache, Topology::node];

proptest! {
    /// Goal: levels are partitions, ascending, and nest; nodes agree with node_of. Method: all CPUs.
    #[test]
    fn levels_are_nested_partitions(machine in machine()) {
        for own in machine.possible().iter() {
            let spans = LEVELS.map(|level| level(&machine, own));
            for (span, level) in spans.iter().zip(LEVELS) {
                prop_assert!(span.contains(&own) && span.is_sorted());
                prop_assert!(span.iter().all(|&other| level(&machine, other) == *span), "CPU {}", own);
            }
            let inside = |small: &[CpuId], large: &[CpuId]| small.iter().all(|cpu| large.contains(cpu));
            prop_assert!(inside(spans[0], spans[1]) && inside(spans[1], spans[2]), "CPU {}: {:?}", own, spans);
        }
        let mut listed = CpuSet::new();
        for (node, cpus) in machine.nodes() {
            prop_assert!(node.0 < machine.node_count());
            for &cpu in cpus {
                prop_assert_eq!(machine.node_of(cpu), Some(node));
                prop_assert!(listed.insert(cpu));
            }
        }
        prop_assert_eq!(&listed, machine.possible());
        prop_assert_eq!(listed.len(), machine.cpu_count());
    }

    /// Goal: domains grow strictly from the CPU itself to the machine. Method: against the levels.
    #[test]
    fn domains_grow_to_the_machine(machine in machine()) {
        for own in machine.possible().iter() {
            let mut previous = CpuSet::from_iter([own]);
            let mut share = None;
            for domain in machine.domains(own) {
                let span: CpuSet = domain.cpus.iter().copied().collect();
                prop_assert!(previous.is_subset(&span) && previous != span && Some(domain.share) > share);
                let level = match domain.share {
                    Share::Core => machine.core(own).iter().copied().collect(),
                    Share::Cache => machine.cache(own).iter().copied().collect(),
                    Share::Node => machine.node(own).iter().copied().collect(),
                    Share::Machine => machine.possible().clone(),
                };
                prop_assert_eq!(&span, &level);
                (previous, share) = (span, Some(domain.share));
            }
            prop_assert_eq!(&previous, machine.possible());
        }
    }

    /// Goal: dealing out is even, and the two layouts differ as they say. Method: one thread per core.
    #[test]
    fn nodes_are_even(cpus in 1_u16..300, nodes in 1_u16..12, layout in crate::machines::layout()) {
        let machine = Topology::builder(cpus).nodes(nodes, layout).build().expect("in range");
        let sizes: Vec<usize> = machine.nodes().map(|(_, cpus)| cpus.len()).collect();
        let (small, large) = (sizes.iter().min().copied(), sizes.iter().max().copied());
        prop_assert!(large.zip(small).is_some_and(|(large, small)| large - small <= 1), "{:?}", sizes);
        prop_assert_eq!(sizes.len(), usize::from(cpus.min(nodes)));
        for (node, cpus) in machine.nodes() {
            let steps = cpus.windows(2).map(|pair| pair[1].index() - pair[0].index());
            let expected = if layout == Layout::Blocks { 1 } else { usize::from(nodes) };
            prop_assert!(steps.into_iter().all(|step| step == expected), "node {}: {:?}", node, cpus);
        }
    }

    /// Goal: threads, caches and nodes have the asked sizes where numbers divide. Method: whole multiples.
    #[test]
    fn sizes_are_those_asked_for(
        (threads, cores, caches, nodes) in (1_u16..4, 1_u16..5, 1_u16..4, 1_u16..4),
        (siblings, numbering) in (crate::machines::layout(), crate::machines::layout()),
    ) {
        let cpus = threads * cores * caches * nodes;
        let builder = Topology::builder(cpus).threads_per_core(threads, siblings);
        let machine = builder.nodes(nodes, numbering).cores_per_cache(cores).build().expect("in range");
        for own in machine.possible().iter() {
            let sizes = LEVELS.map(|level| level(&machine, own).len());
            prop_assert_eq!(sizes, [threads, threads * cores, threads * cores * caches].map(usize::from));
        }
    }

    /// Goal: node lists are taken as they are. Method: any disjoint lists; the rest is on node 0.
    #[test]
    fn node_lists_are_kept(lists in prop::collection::vec(set(70), 1..5)) {
        let mut taken = CpuSet::new();
        let mut disjoint = Vec::new();
        for list in lists {
            disjoint.push(list.difference(&taken));
            taken = taken.union(&list);
        }
        let machine = Topology::builder(70).node_lists(&disjoint).build().expect("disjoint and in range");
        for own in machine.possible().iter() {
            let listed = disjoint.iter().position(|list| list.contains(own)).unwrap_or(0);
            prop_assert_eq!(machine.node_of(own).map(|node| usize::from(node.0)), Some(listed), "CPU {}", own);
        }
        prop_assert_eq!(usize::from(machine.node_count()), disjoint.len());
    }

    /// Goal: the order of the calls does not matter, and the last one of a kind counts. Method: the same
    /// numbers forwards, and backwards after others.
    #[test]
    fn the_order_of_calls_does_not_matter(
        (cpus, nodes, threads, cache) in (1_u16..80, 1_u16..6, 1_u16..4, 1_u16..6),
        (dealt, siblings) in (crate::machines::layout(), crate::machines::layout()),
    ) {
        let start = || Topology::builder(cpus);
        let forwards = start().nodes(nodes, dealt).threads_per_core(threads, siblings).cores_per_cache(cache);
        let other = start().cores_per_cache(9).node_lists(&[CpuSet::new()]);
        let backwards = other.cores_per_cache(cache).threads_per_core(threads, siblings).nodes(nodes, dealt);
        prop_assert_eq!(forwards.build(), backwards.build());
    }
}

/// Goal: each refusal names its number. Method: one builder per reason.
#[test]
fn what_cannot_be_built_is_refused() {
    let lists = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<CpuSet>>();
    let over = CPU_LIMIT + 1;
    for (builder, error, text) in [
        (Topology::builder(0), BuildError::CpuCount { count: 0 }, "0 CPUs (expected 1..=8192)"),
        (Topology::builder(over), BuildError::CpuCount { count: over }, "8193 CPUs (expected 1..=8192)"),
        (
            Topology::builder(4).nodes(1025, Layout::Blocks),
            BuildError::NodeCount { count: 1025 },
            "1025 NUMA nodes (expected 1..=1024)",
        ),
        (
            Topology::builder(4).node_lists(&[]),
            BuildError::NodeCount { count: 0 },
            "0 NUMA nodes (expected 1..=1024)",
        ),
        (
            Topology::builder(4).threads_per_core(0, Layout::Blocks),
            BuildError::Zero { of: Each::ThreadsPerCore },
            "0 threads per core (expected at least 1)",
        ),
        (
            Topology::builder(4).cores_per_cache(0),
            BuildError::Zero { of: Each::CoresPerCache },
            "0 cores per cache (expected at least 1)",
        ),
        (
            Topology::builder(4).node_lists(&lists(&["0", "1,4"])),
            BuildError::UnknownCpu { cpu: cpu(4), node: NodeId(1), cpu_count: 4 },
            "the list of node 1 names CPU 4 (expected CPUs below 4)",
        ),
        (
            Topology::builder(4).node_lists(&lists(&["0-1", "", "1-2"])),
            BuildError::TwoNodes { cpu: cpu(1), nodes: [NodeId(0), NodeId(2)] },
            "CPU 1 is in the lists of nodes 0 and 2 (expected in one at most)",
        ),
    ] {
        assert_eq!(builder.build(), Err(error));
        assert_eq!(error.to_string(), text);
    }
}

/// Goal: the largest machine works, and a CPU that it cannot have is near to no other. Method: 8192 CPUs,
/// spans of the last one.
#[test]
fn the_largest_machine() {
    let builder = Topology::builder(CPU_LIMIT).threads_per_core(2, Layout::Interleaved);
    let machine = builder.nodes(16, Layout::Blocks).cores_per_cache(8).build().expect("in range");
    let last = cpu(usize::from(CPU_LIMIT) - 1);
    let sizes: Vec<usize> = machine.domains(last).map(|domain| domain.cpus.len()).collect();
    assert_eq!(sizes, [2, 16, 512, 8192]);
    let small = Topology::builder(8).build().expect("in range");
    assert_eq!((small.domains(last).count(), small.core(last).len()), (0, 0));
    let single = Topology::builder(1).build().expect("in range");
    assert_eq!(single.domains(cpu(0)).count(), 0, "the only CPU of a machine has no domain");
}
