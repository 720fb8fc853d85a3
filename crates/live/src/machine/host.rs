//! The machine that this process runs on: which CPUs it may use, how near they are, which are isolated.
//!
//! Spares are CPUs of the model that no host has: their numbers follow the highest of the host.

use super::error::StartError;
use quietcore_core::topology::Topology;
use quietcore_core::{CpuId, CpuSet};
use std::fs;

/// CPUs that the calling thread may run on.
pub(super) fn allowed() -> Result<CpuSet, StartError> {
    let set = rustix::thread::sched_getaffinity(None).map_err(|error| StartError::System {
        what: "read the CPU affinity of this thread",
        error: error.into(),
    })?;
    let cpus = (0..rustix::thread::CpuSet::MAX_CPU).filter(|&number| set.is_set(number));
    Ok(cpus.filter_map(|number| CpuId::new(number as u64).ok()).collect())
}

/// CPUs that the kernel keeps free of unbound work (`isolcpus=domain`, isolated partitions).
pub(super) fn isolated() -> CpuSet {
    let text = fs::read_to_string("/sys/devices/system/cpu/isolated").unwrap_or_default();
    text.trim().parse().unwrap_or_default()
}

/// The topology of `cpus` and of `spares`, which are near no CPU: the host's, unless `nodes` are given.
pub(super) fn topology(cpus: &CpuSet, spares: &CpuSet, nodes: &[CpuSet]) -> Result<Topology, StartError> {
    let count = spares.last().or(cpus.last()).map_or(1, |last| last.index() + 1) as u16;
    if !nodes.is_empty() {
        return Topology::builder(count).node_lists(nodes).build().map_err(StartError::Nodes);
    }
    let possible = cpus.union(spares).to_string();
    // Lists of the host may name CPUs that this process may not use: those are passed over.
    let read = |file: &str| match file {
        "/sys/devices/system/cpu/possible" => Some(possible.clone()),
        file => fs::read_to_string(file).ok(),
    };
    Topology::read(read).or_else(|_| {
        // A container may show the files of another machine; then every CPU is as near as any other.
        Topology::builder(count).build().map_err(|_| StartError::NoCpu)
    })
}
