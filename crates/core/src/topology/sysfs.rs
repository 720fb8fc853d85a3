//! Real machines: the text of sysfs becomes a topology.
//!
//! Decides which files count, what a missing one means (listed at [`Topology::read`]) and when text is
//! refused. A list must name the CPU whose file it is, and files of one group must agree; the first one
//! that does not is named. White space at the ends is ignored. Work is bounded by the CPUs, nodes and
//! members that lists may name, whatever the text.
//! Not here: opening files, and telling a missing one from one that cannot be read: that is the caller's.
//! Source: Linux Documentation/ABI/testing/sysfs-devices-system-cpu and ABI/stable/sysfs-devices-node.

use super::{CpuLocation, NODE_LIMIT, NodeId, Topology};
use crate::{CPU_LIMIT, CpuError, CpuId, CpuSet};
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

/// The text of files, if they are there. Every `FnMut(&str) -> Option<String>` is one.
pub trait SysfsText {
    /// What is in `file`, an absolute path below `/sys/devices/system`; `None` if it is not there.
    fn text(&mut self, file: &str) -> Option<String>;
}

impl<F: FnMut(&str) -> Option<String>> SysfsText for F {
    fn text(&mut self, file: &str) -> Option<String> {
        self(file)
    }
}

const CPU_DIR: &str = "/sys/devices/system/cpu";
const NODE_DIR: &str = "/sys/devices/system/node";

/// Caches of one CPU that are looked at; real machines have four or five.
const CACHE_LIMIT: u8 = 16;

impl Topology {
    /// A real machine, from the text of its files below `/sys/devices/system`.
    ///
    /// Asked for, and what a missing file means:
    /// - `cpu/possible`: the only one that must be there.
    /// - `node/possible`: missing (a kernel without NUMA) is one node 0 with every CPU.
    /// - `node/nodeN/cpulist`: missing is a node without CPUs. A CPU that no node lists, as one that is
    ///   offline, belongs to the node with the lowest number.
    /// - `cpu/cpuN/topology/thread_siblings_list`: missing (the CPU is offline) is a core of its own.
    /// - `cpu/cpuN/cache/indexI/{level,type,shared_cpu_list}`, I from 0 until `level` is missing: the
    ///   unified cache of the highest level counts. None, as in many virtual machines: it shares a cache
    ///   with its core only.
    ///
    /// CPUs that a list names but the machine cannot have are ignored.
    ///
    /// # Errors
    /// [`SysfsError`] names the file that is missing, malformed, or contradicts another one, and what was
    /// expected there.
    pub fn read(mut files: impl SysfsText) -> Result<Self, SysfsError> {
        read(&mut files)
    }
}

fn read(files: &mut impl SysfsText) -> Result<Topology, SysfsError> {
    let file = format!("{CPU_DIR}/possible");
    let possible = cpu_list(files, &file)?.ok_or_else(|| refuse(&file, Expected::Possible))?;
    let places = match possible.last() {
        Some(last) => vec![CpuLocation::default(); last.index() + 1],
        None => return Err(refuse(&file, Expected::Possible)),
    };
    let mut reader = Reader { files, possible, places };
    let node_count = reader.nodes()?;
    let cores = reader.groups(|files, cpu| {
        let file = format!("{CPU_DIR}/cpu{cpu}/topology/thread_siblings_list");
        Ok(cpu_list(files, &file)?.map(|list| (file, list)))
    })?;
    let caches = reader.groups(last_level_cache)?;
    let Reader { possible, mut places, .. } = reader;
    for cpu in possible.iter() {
        let own = cpu.index();
        places[own].core = cores[own].unwrap_or(own as u16);
        places[own].cache = caches[own];
    }
    Ok(Topology::assemble(possible, node_count, |cpu| places[cpu.index()]))
}

struct Reader<'a, T> {
    files: &'a mut T,
    possible: CpuSet,
    /// By CPU number.
    places: Vec<CpuLocation>,
}

impl<T: SysfsText> Reader<'_, T> {
    /// Fills in the node of each CPU; returns how many nodes are possible.
    fn nodes(&mut self) -> Result<u16, SysfsError> {
        let file = format!("{NODE_DIR}/possible");
        let Some(numbers) = number_list(self.files, &file)? else { return Ok(1) };
        let lowest = numbers.first().ok_or_else(|| refuse(&file, Expected::Nodes))?;
        let mut seen: Vec<Option<NodeId>> = vec![None; self.places.len()];
        for number in numbers.iter() {
            // Fits: `number_list` took numbers below the limit only.
            let node = NodeId(number.index() as u16);
            let file = format!("{NODE_DIR}/node{node}/cpulist");
            let list = cpu_list(self.files, &file)?.unwrap_or_default();
            for cpu in list.iter_common(&self.possible) {
                if let Some(other) = seen[cpu.index()].replace(node) {
                    return Err(refuse(&file, Expected::OneNode { cpu, other }));
                }
            }
        }
        for (place, node) in self.places.iter_mut().zip(seen) {
            place.node = node.unwrap_or(NodeId(lowest.index() as u16));
        }
        Ok(numbers.len() as u16)
    }

    /// The group of each CPU by the lists that `list_of` finds; a group has the number of the first CPU
    /// whose list names it. `None` where neither the CPU has a list nor a list has the CPU.
    fn groups(
        &mut self,
        list_of: impl Fn(&mut T, CpuId) -> Result<Option<(String, CpuSet)>, SysfsError>,
    ) -> Result<Vec<Option<u16>>, SysfsError> {
        let mut groups: Vec<Option<u16>> = vec![None; self.places.len()];
        let mut sizes = vec![0; self.places.len()];
        for cpu in self.possible.iter() {
            let Some((file, list)) = list_of(self.files, cpu)? else { continue };
            if !list.contains(cpu) {
                return Err(refuse(&file, Expected::Itself { cpu }));
            }
            let known = groups[cpu.index()];
            let mut size = 0;
            for other in list.iter_common(&self.possible) {
                if groups[other.index()] != known {
                    return Err(refuse(&file, Expected::Agreement { cpu, other }));
                }
                groups[other.index()] = known.or(Some(cpu.index() as u16));
                size += 1;
            }
            if let Some(group) = known.filter(|&group| sizes[usize::from(group)] != size) {
                // It fits: a group's number is that of a CPU.
                let other = CpuId::new(u64::from(group)).map_err(|error| not_a_list(&file, error))?;
                return Err(refuse(&file, Expected::Agreement { cpu, other }));
            }
            sizes[usize::from(known.unwrap_or(cpu.index() as u16))] = size;
        }
        Ok(groups)
    }
}

/// The CPUs that share the unified cache of the highest level with `cpu`, and the file that says so.
fn last_level_cache(files: &mut impl SysfsText, cpu: CpuId) -> Result<Option<(String, CpuSet)>, SysfsError> {
    let mut best: Option<(u8, String, CpuSet)> = None;
    for index in 0..CACHE_LIMIT {
        let folder = format!("{CPU_DIR}/cpu{cpu}/cache/index{index}");
        let file = format!("{folder}/level");
        let Some(text) = files.text(&file) else { break };
        let level: u8 = text.trim().parse().map_err(|_| refuse(&file, Expected::CacheLevel))?;
        let file = format!("{folder}/type");
        let unified = match files.text(&file).as_deref().map(str::trim) {
            Some("Unified") => true,
            Some("Data" | "Instruction") | None => false,
            Some(_) => return Err(refuse(&file, Expected::CacheType)),
        };
        if !unified || best.as_ref().is_some_and(|(highest, ..)| *highest >= level) {
            continue;
        }
        let file = format!("{folder}/shared_cpu_list");
        if let Some(list) = cpu_list(files, &file)? {
            best = Some((level, file, list));
        }
    }
    Ok(best.map(|(_, file, list)| (file, list)))
}

fn cpu_list(files: &mut impl SysfsText, file: &str) -> Result<Option<CpuSet>, SysfsError> {
    let Some(text) = files.text(file) else { return Ok(None) };
    text.parse().map(Some).map_err(|error| not_a_list(file, error))
}

/// Node numbers have the text form of CPU lists, and a lower limit.
fn number_list(files: &mut impl SysfsText, file: &str) -> Result<Option<CpuSet>, SysfsError> {
    let list = cpu_list(files, file).map_err(|error| refuse(&error.file, Expected::Nodes))?;
    let above = |last: CpuId| last.index() >= usize::from(NODE_LIMIT);
    match list.as_ref().and_then(CpuSet::last) {
        Some(last) if above(last) => Err(refuse(file, Expected::Nodes)),
        _ => Ok(list),
    }
}

fn not_a_list(file: &str, error: CpuError) -> SysfsError {
    refuse(file, Expected::List { error })
}

fn refuse(file: &str, expected: Expected) -> SysfsError {
    SysfsError { file: String::from(file), expected }
}

/// Why [`Topology::read`] refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SysfsError {
    /// The file that is missing, malformed, or contradicts another one.
    pub file: String,
    /// What should have been there.
    pub expected: Expected,
}

/// What should have been in a file of sysfs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Expected {
    /// A list with at least one CPU; a missing file is refused, too.
    Possible,
    /// A list of CPUs.
    List {
        /// What is wrong with it.
        error: CpuError,
    },
    /// A list with at least one node, all below [`NODE_LIMIT`].
    Nodes,
    /// `cpu` in this list only.
    OneNode {
        /// The CPU that two nodes list.
        cpu: CpuId,
        /// The other node.
        other: NodeId,
    },
    /// A list with the CPU in it whose file it is.
    Itself {
        /// The CPU.
        cpu: CpuId,
    },
    /// A list that fits those of other CPUs: every CPU in it has the same list.
    Agreement {
        /// The CPU whose file it is.
        cpu: CpuId,
        /// A CPU that a lower one's list puts into another group than this list does.
        other: CpuId,
    },
    /// A cache level, 0..=255.
    CacheLevel,
    /// `Unified`, `Data` or `Instruction`.
    CacheType,
}

impl fmt::Display for SysfsError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: ", self.file)?;
        match &self.expected {
            Expected::Possible => {
                write!(out, "missing or empty (expected a list of the CPUs below {CPU_LIMIT}, as 0-7)")
            }
            Expected::List { error } => write!(out, "{error}"),
            Expected::Nodes => {
                write!(out, "not a list of nodes (expected numbers below {NODE_LIMIT}, at least one, as 0-1)")
            }
            Expected::OneNode { cpu, other } => {
                write!(out, "lists CPU {cpu}, and so does node {other} (expected each CPU on one node)")
            }
            Expected::Itself { cpu } => write!(out, "does not list CPU {cpu} (expected a list with it)"),
            Expected::Agreement { cpu, other } => {
                write!(
                    out,
                    "CPU {cpu} is with other CPUs than the lists of lower ones say, see CPU {other} (expected \
                     that CPUs of one group list each other)"
                )
            }
            Expected::CacheLevel => write!(out, "not a cache level (expected a number, as 3)"),
            Expected::CacheType => {
                write!(out, "not a type of cache (expected Unified, Data or Instruction)")
            }
        }
    }
}

impl core::error::Error for SysfsError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match &self.expected {
            Expected::List { error } => Some(error),
            _ => None,
        }
    }
}
