//! Which CPUs there are, and which of them the kernel holds apart.
//!
//! Decides how `/sys/devices/system/cpu` is read: `isolated` is the kernel's answer to `isolcpus=`
//! (from 7.0 on also to isolated cpuset partitions), `nohz_full` its answer to `nohz_full=`.
//! Invariant: `nohz_full` is `None` only if the file is missing (a kernel built without
//! `CONFIG_NO_HZ_FULL`) or unreadable; `(null)`, which kernels print while the feature is built in
//! but not used, is the empty set.
//! Source: Linux v6.12 drivers/base/cpu.c (`print_cpus_isolated`, `print_cpus_nohz_full`).

use super::files::{Fact, Reader};
use quietcore_core::{CpuId, CpuSet};
use std::str::FromStr;

const CPU_DIR: &str = "/sys/devices/system/cpu";

/// How many CPUs share a group of the lowest level of the timer migration hierarchy.
const GROUP_CPUS: usize = 8;

#[derive(Debug, Default)]
pub(crate) struct Cpus {
    pub(crate) possible: Option<Fact<CpuSet>>,
    pub(crate) online: Option<Fact<CpuSet>>,
    pub(crate) isolated: Option<Fact<CpuSet>>,
    pub(crate) nohz_full: Option<Fact<CpuSet>>,
    /// The hardware threads of each CPU's core; cores with one thread are left out.
    pub(crate) siblings: Vec<Fact<CpuSet>>,
    /// CPUs of each NUMA node that has any.
    pub(crate) nodes: Vec<Fact<CpuSet>>,
    /// CPUs this process may use (`Cpus_allowed_list`).
    pub(crate) allowed: Option<Fact<CpuSet>>,
}

impl Cpus {
    pub(crate) fn read(reader: &mut Reader) -> Self {
        let online = reader.list(&format!("{CPU_DIR}/online"));
        let siblings = online.as_ref().map(|online| read_siblings(reader, &online.value)).unwrap_or_default();
        Self {
            possible: reader.list(&format!("{CPU_DIR}/possible")),
            online,
            isolated: reader.list(&format!("{CPU_DIR}/isolated")),
            nohz_full: reader.fact(&format!("{CPU_DIR}/nohz_full"), |text| match text {
                "(null)" => Ok(CpuSet::new()),
                list => CpuSet::from_str(list),
            }),
            siblings,
            nodes: read_nodes(reader),
            allowed: read_allowed(reader),
        }
    }

    /// The groups of eight of the timer migration hierarchy: per node, in ascending order.
    ///
    /// Deviation: the kernel fills groups in the order in which CPUs first come online, which is
    /// ascending unless the firmware or the command line says otherwise.
    pub(crate) fn groups(&self) -> Vec<CpuSet> {
        let Some(online) = self.online.as_ref().map(|fact| &fact.value) else { return Vec::new() };
        let mut rest = online.clone();
        let mut groups = Vec::new();
        for node in self.nodes.iter().map(|node| &node.value).chain([online]) {
            let mine: Vec<CpuId> = rest.intersection(node).iter().collect();
            rest = rest.difference(node);
            groups.extend(mine.chunks(GROUP_CPUS).map(|group| group.iter().copied().collect::<CpuSet>()));
        }
        groups
    }
}

fn read_siblings(reader: &mut Reader, online: &CpuSet) -> Vec<Fact<CpuSet>> {
    let path = |cpu| format!("{CPU_DIR}/cpu{cpu}/topology/thread_siblings_list");
    let cores = online.iter().filter_map(|cpu| reader.list(&path(cpu)));
    cores.filter(|fact| fact.value.len() > 1).collect()
}

fn read_nodes(reader: &mut Reader) -> Vec<Fact<CpuSet>> {
    let dir = "/sys/devices/system/node";
    let is_node = |name: &String| name.strip_prefix("node").is_some_and(|rest| rest.parse::<u32>().is_ok());
    let mut names: Vec<String> = reader.dirs(dir).into_iter().filter(is_node).collect();
    names.sort_by_key(|name| name["node".len()..].parse::<u32>().unwrap_or(u32::MAX));
    let lists = names.iter().filter_map(|name| reader.list(&format!("{dir}/{name}/cpulist")));
    lists.filter(|fact| !fact.value.is_empty()).collect()
}

fn read_allowed(reader: &mut Reader) -> Option<Fact<CpuSet>> {
    let path = "/proc/self/status";
    let is_list = |line: &&str| line.starts_with("Cpus_allowed_list:");
    let status = reader.part(path, |text| text.lines().find(is_list).unwrap_or_default().to_owned())?;
    let line = status.lines().find(is_list)?;
    let list = line.split_once(':').map_or("", |(_, list)| list);
    match CpuSet::from_str(list) {
        Ok(value) => Some(Fact::new(path, line, value)),
        Err(error) => {
            reader.refuse(path, error.to_string());
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Cpus, Fact};

    fn fact(list: &str) -> Fact<quietcore_core::CpuSet> {
        Fact::new("/x", list, list.parse().unwrap())
    }

    /// Goal: groups of eight never cross a node, and CPUs of no node still get one.
    #[test]
    fn groups_of_eight_stay_within_a_node() {
        let cpus =
            Cpus { online: Some(fact("0-20")), nodes: vec![fact("0-9"), fact("10-18")], ..Cpus::default() };
        let groups: Vec<String> = cpus.groups().iter().map(ToString::to_string).collect();
        assert_eq!(groups, ["0-7", "8-9", "10-17", "18", "19-20"]);
    }
}
