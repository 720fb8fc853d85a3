//! Random machines, sets and isolations.

use proptest::prelude::*;
use quietcore_core::place::Isolation;
use quietcore_core::topology::{Layout, Topology, TopologyBuilder};
use quietcore_core::{CpuId, CpuSet};

pub(crate) fn cpu(number: usize) -> CpuId {
    CpuId::new(number as u64).expect("tests use small numbers")
}

pub(crate) fn layout() -> impl Strategy<Value = Layout> {
    prop_oneof![Just(Layout::Blocks), Just(Layout::Interleaved)]
}

/// Any shape: also more nodes, threads or cores per cache than CPUs.
pub(crate) fn builder(cpus: impl Strategy<Value = u16>) -> impl Strategy<Value = TopologyBuilder> {
    let nodes = (1_u16..6, layout());
    let threads = (1_u16..5, layout());
    (cpus, nodes, threads, prop::option::of(1_u16..7)).prop_map(|(cpus, nodes, threads, cores_per_cache)| {
        let builder = Topology::builder(cpus);
        let builder = builder.nodes(nodes.0, nodes.1).threads_per_core(threads.0, threads.1);
        match cores_per_cache {
            Some(count) => builder.cores_per_cache(count),
            None => builder,
        }
    })
}

pub(crate) fn machine() -> impl Strategy<Value = Topology> {
    builder(1_u16..80).prop_map(|builder| builder.build().expect("every count is in range"))
}

/// A set below `limit`: sparse, dense, all or nothing.
pub(crate) fn set(limit: usize) -> impl Strategy<Value = CpuSet> {
    let of = move |percent: u32| {
        prop::collection::vec(0_u32..100, limit)
            .prop_map(move |dice| (0..limit).filter(|&at| dice[at] < percent).map(cpu).collect())
    };
    prop_oneof![Just(0_u32), Just(5), Just(50), Just(90), Just(100)].prop_flat_map(of)
}

pub(crate) fn isolation(limit: usize) -> impl Strategy<Value = Isolation> {
    (set(limit), set(limit), set(limit)).prop_map(|(domain, nohz_full, runtime)| Isolation {
        domain,
        nohz_full,
        runtime,
    })
}
