//! Simulated machines: a few numbers become a topology.
//!
//! Cores are formed from CPU numbers, nodes from cores, caches within a node; every number of CPUs works,
//! and what does not divide evenly differs by at most one core. More nodes than cores leave nodes without
//! CPUs, as memory-only nodes are.
//! Invariant: the same calls build the same topology, whatever their order.

use super::{CpuLocation, NODE_LIMIT, NodeId, Topology};
use crate::{CPU_LIMIT, CpuId, CpuSet};
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

/// How numbers are dealt out to groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// Neighbours together: 0 and 1 in the first group.
    #[default]
    Blocks,
    /// Round robin: 0 in the first group, 1 in the second.
    Interleaved,
}

/// Builds a [`Topology`]; see [`Topology::builder`].
#[derive(Clone, Debug)]
#[must_use]
pub struct TopologyBuilder {
    cpu_count: u16,
    threads: (u16, Layout),
    nodes: Nodes,
    cores_per_cache: Option<u16>,
}

#[derive(Clone, Debug)]
enum Nodes {
    Dealt(u16, Layout),
    Listed(Vec<CpuSet>),
}

impl TopologyBuilder {
    pub(super) fn new(cpu_count: u16) -> Self {
        let nodes = Nodes::Dealt(1, Layout::Blocks);
        Self { cpu_count, threads: (1, Layout::Blocks), nodes, cores_per_cache: None }
    }

    /// Each core has `count` hardware threads: neighbours with [`Layout::Blocks`], as in many virtual
    /// machines; `n` and `n` + number of cores with [`Layout::Interleaved`], as on most real ones.
    pub fn threads_per_core(mut self, count: u16, layout: Layout) -> Self {
        self.threads = (count, layout);
        self
    }

    /// `count` nodes; cores are dealt out to them. Replaces [`TopologyBuilder::node_lists`].
    pub fn nodes(mut self, count: u16, layout: Layout) -> Self {
        self.nodes = Nodes::Dealt(count, layout);
        self
    }

    /// The CPUs of node 0, node 1 and so on, in any pattern; a CPU in no list is on node 0. Replaces
    /// [`TopologyBuilder::nodes`].
    pub fn node_lists(mut self, lists: &[CpuSet]) -> Self {
        self.nodes = Nodes::Listed(lists.to_vec());
        self
    }

    /// `count` neighbouring cores of a node share a last-level cache; without this call the node does.
    pub fn cores_per_cache(mut self, count: u16) -> Self {
        self.cores_per_cache = Some(count);
        self
    }

    /// The topology. Cost: linear in the CPUs, times the logarithm of the groups.
    ///
    /// # Errors
    /// [`BuildError`] says which number is out of range, or which CPU a list must not name.
    pub fn build(self) -> Result<Topology, BuildError> {
        let (threads, layout) = self.threads;
        if !(1..=CPU_LIMIT).contains(&self.cpu_count) {
            return Err(BuildError::CpuCount { count: self.cpu_count });
        }
        let caches = (self.cores_per_cache.unwrap_or(1), Each::CoresPerCache);
        for (count, of) in [(threads, Each::ThreadsPerCore), caches] {
            if count == 0 {
                return Err(BuildError::Zero { of });
            }
        }
        let cores = self.cpu_count.div_ceil(threads);
        let core = |cpu: u16| match layout {
            Layout::Blocks => cpu / threads,
            Layout::Interleaved => cpu % cores,
        };
        let (node_count, node) = self.nodes.deal(self.cpu_count, cores, core)?;
        let mut places = Vec::with_capacity(usize::from(self.cpu_count));
        // Position of a core among the cores of its node; a core that spans nodes has one in each.
        let mut positions: BTreeMap<(u16, u16), u16> = BTreeMap::new();
        let mut sizes = vec![0; usize::from(node_count)];
        for cpu in 0..self.cpu_count {
            let (core, node) = (core(cpu), node[usize::from(cpu)]);
            let size = &mut sizes[usize::from(node)];
            let position = *positions.entry((node, core)).or_insert_with(|| {
                *size += 1;
                *size - 1
            });
            let cache = position / self.cores_per_cache.unwrap_or(CPU_LIMIT);
            places.push(CpuLocation { node: NodeId(node), cache: Some(cache), core });
        }
        let possible = CpuSet::range(CpuId::default(), self.cpu_count)
            .map_err(|_| BuildError::CpuCount { count: self.cpu_count })?;
        Ok(Topology::assemble(possible, node_count, |cpu| places[cpu.index()]))
    }
}

impl Nodes {
    /// How many nodes there are, and the node of each CPU.
    fn deal(
        &self,
        cpu_count: u16,
        cores: u16,
        core: impl Fn(u16) -> u16,
    ) -> Result<(u16, Vec<u16>), BuildError> {
        let count = match self {
            Self::Dealt(count, _) => usize::from(*count),
            Self::Listed(lists) => lists.len(),
        };
        let Some(count) = u16::try_from(count).ok().filter(|count| (1..=NODE_LIMIT).contains(count)) else {
            return Err(BuildError::NodeCount { count });
        };
        let lists = match self {
            Self::Listed(lists) => lists,
            Self::Dealt(_, layout) => {
                let node = |core: u16| match layout {
                    // Fits: the quotient is below `count`.
                    Layout::Blocks => (u32::from(core) * u32::from(count) / u32::from(cores)) as u16,
                    Layout::Interleaved => core % count,
                };
                return Ok((count, (0..cpu_count).map(|cpu| node(core(cpu))).collect()));
            }
        };
        let mut dealt = vec![None; usize::from(cpu_count)];
        for (node, list) in (0..count).zip(lists) {
            for cpu in list.iter() {
                let Some(place) = dealt.get_mut(cpu.index()) else {
                    return Err(BuildError::UnknownCpu { cpu, node: NodeId(node), cpu_count });
                };
                if let Some(first) = place.replace(node) {
                    return Err(BuildError::TwoNodes { cpu, nodes: [NodeId(first), NodeId(node)] });
                }
            }
        }
        Ok((count, dealt.into_iter().map(|node| node.unwrap_or(0)).collect()))
    }
}

/// Which number of a [`TopologyBuilder`] was zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Each {
    /// [`TopologyBuilder::threads_per_core`].
    ThreadsPerCore,
    /// [`TopologyBuilder::cores_per_cache`].
    CoresPerCache,
}

/// Why [`TopologyBuilder::build`] refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// No CPU, or more than [`CPU_LIMIT`].
    CpuCount {
        /// How many were asked for.
        count: u16,
    },
    /// No node, or more than [`NODE_LIMIT`].
    NodeCount {
        /// How many were asked for.
        count: usize,
    },
    /// A group that must have members has size 0.
    Zero {
        /// Which group.
        of: Each,
    },
    /// A node list names a CPU that the machine does not have.
    UnknownCpu {
        /// The CPU.
        cpu: CpuId,
        /// The node whose list names it.
        node: NodeId,
        /// The machine has the CPUs below this number.
        cpu_count: u16,
    },
    /// Two node lists name the same CPU.
    TwoNodes {
        /// The CPU.
        cpu: CpuId,
        /// The nodes.
        nodes: [NodeId; 2],
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CpuCount { count } => write!(out, "{count} CPUs (expected 1..={CPU_LIMIT})"),
            Self::NodeCount { count } => write!(out, "{count} NUMA nodes (expected 1..={NODE_LIMIT})"),
            Self::Zero { of } => {
                let what = match of {
                    Each::ThreadsPerCore => "threads per core",
                    Each::CoresPerCache => "cores per cache",
                };
                write!(out, "0 {what} (expected at least 1)")
            }
            Self::UnknownCpu { cpu, node, cpu_count } => {
                write!(out, "the list of node {node} names CPU {cpu} (expected CPUs below {cpu_count})")
            }
            Self::TwoNodes { cpu, nodes: [first, second] } => {
                write!(
                    out,
                    "CPU {cpu} is in the lists of nodes {first} and {second} (expected in one at most)"
                )
            }
        }
    }
}

impl core::error::Error for BuildError {}
