//! Topology: which CPUs a machine can have, and which of them are near each other.
//!
//! Decides what "near" means: hardware threads of one core, then CPUs behind one last-level cache, then
//! one NUMA node, then the machine. [`Topology::builder`] makes simulated machines, [`Topology::read`]
//! real ones from the text of sysfs.
//!
//! Invariants: each level is a partition of the possible CPUs, and the levels nest: a core that spans two
//! caches, or a cache that spans two nodes (sub-NUMA clustering), is cut at the border. Memory is linear in
//! the number of CPUs.
//! Not here: which CPUs are online or isolated (they change; a topology does not), clusters, dies, and the
//! distances between nodes. Files are not opened; the caller has the text.

mod builder;
mod partition;
mod sysfs;

pub use builder::{BuildError, Each, Layout, TopologyBuilder};
pub use sysfs::{Expected, SysfsError, SysfsText};

use crate::{CpuId, CpuSet};
use alloc::vec::Vec;
use core::fmt;
use partition::CpuPartition;

/// One more than the highest NUMA node number: the largest `MAX_NUMNODES` that Linux can be built with.
pub const NODE_LIMIT: u16 = 1024;

/// The number of a NUMA node, as in `/sys/devices/system/node/nodeN`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(
    /// The kernel's number; nodes need not be numbered without gaps.
    pub u16,
);

impl fmt::Display for NodeId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, out)
    }
}

/// What the CPUs of a [`Domain`] share; from near to far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Share {
    /// One core: hardware threads of each other (SMT siblings).
    Core,
    /// One last-level cache.
    Cache,
    /// One NUMA node.
    Node,
    /// Nothing but the machine.
    Machine,
}

/// A scheduling domain of one CPU: the CPUs that share something with it, itself among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Domain<'a> {
    /// What they share.
    pub share: Share,
    /// The span, in ascending order.
    pub cpus: &'a [CpuId],
}

/// The possible CPUs of a machine, and which of them are near each other. Never changes; queries are
/// O(1) and allocate nothing.
///
/// ```
/// use quietcore_core::{CpuId, topology::{Layout, NodeId, Topology}};
///
/// let machine = Topology::builder(16).threads_per_core(2, Layout::Interleaved).nodes(2, Layout::Blocks).build()?;
/// let cpu = CpuId::new(4)?;
/// assert_eq!(machine.node_of(cpu), Some(NodeId(1)));
/// assert_eq!(machine.core(cpu), [cpu, CpuId::new(12)?]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    possible: CpuSet,
    all: Vec<CpuId>,
    cores: CpuPartition,
    caches: CpuPartition,
    nodes: CpuPartition,
    /// By group of `nodes`: its number.
    node_ids: Vec<NodeId>,
    node_count: u16,
}

/// What is known of one CPU before borders are cut. Equal numbers belong together.
#[derive(Clone, Copy, Debug, Default)]
struct CpuLocation {
    node: NodeId,
    /// `None`: no cache is known, so its core is all it shares one with.
    cache: Option<u16>,
    core: u16,
}

impl Topology {
    /// A simulated machine with the CPUs `0..cpu_count`: one node, one cache, one thread per core,
    /// until the builder is told otherwise.
    pub fn builder(cpu_count: u16) -> TopologyBuilder {
        TopologyBuilder::new(cpu_count)
    }

    /// Cuts the levels so that they nest. `possible` is not empty; `place` knows each of its CPUs.
    fn assemble(possible: CpuSet, node_count: u16, place: impl Fn(CpuId) -> CpuLocation) -> Self {
        let cache_key = |place: CpuLocation| (place.node, place.cache, place.cache.map_or(place.core, |_| 0));
        let nodes = CpuPartition::by_key(&possible, |cpu| place(cpu).node);
        Self {
            all: possible.iter().collect(),
            cores: CpuPartition::by_key(&possible, |cpu| (cache_key(place(cpu)), place(cpu).core)),
            caches: CpuPartition::by_key(&possible, |cpu| cache_key(place(cpu))),
            node_ids: nodes.groups().map(|cpus| place(cpus[0]).node).collect(),
            nodes,
            node_count,
            possible,
        }
    }

    /// The CPUs that this machine can have, online or not; never empty.
    #[must_use]
    pub fn possible(&self) -> &CpuSet {
        &self.possible
    }

    /// How many CPUs are possible; at least 1.
    #[must_use]
    pub fn cpu_count(&self) -> usize {
        self.all.len()
    }

    /// How many NUMA nodes are possible, those without CPUs included; at least 1.
    #[must_use]
    pub fn node_count(&self) -> u16 {
        self.node_count
    }

    /// The NUMA node of `cpu`; `None` if the machine cannot have this CPU.
    #[must_use]
    pub fn node_of(&self, cpu: CpuId) -> Option<NodeId> {
        self.nodes.group(cpu).map(|group| self.node_ids[usize::from(group)])
    }

    /// The nodes that have CPUs, by their lowest CPU.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, &[CpuId])> {
        self.node_ids.iter().copied().zip(self.nodes.groups())
    }

    /// The hardware threads of the core of `cpu`, itself among them, ascending; none for a CPU that the
    /// machine cannot have.
    #[must_use]
    pub fn core(&self, cpu: CpuId) -> &[CpuId] {
        self.cores.members(cpu)
    }

    /// The CPUs behind the last-level cache of `cpu`, as [`Topology::core`].
    #[must_use]
    pub fn cache(&self, cpu: CpuId) -> &[CpuId] {
        self.caches.members(cpu)
    }

    /// The CPUs of the NUMA node of `cpu`, as [`Topology::core`].
    #[must_use]
    pub fn node(&self, cpu: CpuId) -> &[CpuId] {
        self.nodes.members(cpu)
    }

    /// The scheduling domains of `cpu`, from the smallest to the largest. A level that adds no CPU to the one
    /// before is left out, so spans grow strictly; the last one is the machine. None for the only CPU of a
    /// machine, and for a CPU that the machine cannot have. Making one is O(1).
    pub fn domains(&self, cpu: CpuId) -> impl Iterator<Item = Domain<'_>> + Clone {
        let machine = if self.possible.contains(cpu) { self.all.as_slice() } else { &[] };
        let spans = [
            Domain { share: Share::Core, cpus: self.core(cpu) },
            Domain { share: Share::Cache, cpus: self.cache(cpu) },
            Domain { share: Share::Node, cpus: self.node(cpu) },
            Domain { share: Share::Machine, cpus: machine },
        ];
        // The levels nest, so an equal count is the same span.
        let mut covered = 1;
        spans.into_iter().filter(move |domain| {
            let grows = domain.cpus.len() > covered;
            covered = covered.max(domain.cpus.len());
            grows
        })
    }
}
