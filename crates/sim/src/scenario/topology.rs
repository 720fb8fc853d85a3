//! The machine of a scenario: from a few numbers, or from lists of CPUs that belong together.

use super::error::ScenarioProblem;
use super::names::Siblings;
use super::raw::{RawCpuList, RawMachine};
use super::value::within;
use quietcore_core::topology::{Layout, NODE_LIMIT, Topology};
use quietcore_core::{CPU_LIMIT, CpuId, CpuSet};
use toml::Spanned;

/// CPUs that belong together, by lists: cores and caches.
struct Lists<'a> {
    cores: Option<&'a Spanned<Vec<RawCpuList>>>,
    caches: Option<&'a Spanned<Vec<RawCpuList>>>,
}

/// `cpus` replaces the number of CPUs, if the variants say so.
pub(super) fn build(machine: &RawMachine, cpus: Option<u16>) -> Result<Topology, ScenarioProblem> {
    let count = match cpus {
        Some(count) if (1..=CPU_LIMIT).contains(&count) => count,
        Some(count) => {
            let problem = format!("the variants ask for {count} CPUs; allowed are 1 to {CPU_LIMIT}");
            return Err(ScenarioProblem::at(&machine.cpus, problem));
        }
        None => within(&machine.cpus, 1, CPU_LIMIT)?,
    };
    let all: CpuSet = (0..count).map(|cpu| CpuId::new(u64::from(cpu)).expect("below the limit")).collect();
    for lists in [&machine.node_lists, &machine.core_lists, &machine.cache_lists].into_iter().flatten() {
        check_lists(lists, &all)?;
    }
    let lists = Lists { cores: machine.core_lists.as_ref(), caches: machine.cache_lists.as_ref() };
    if lists.cores.is_some() || lists.caches.is_some() {
        return listed(machine, &all, &lists);
    }
    let mut builder = Topology::builder(count)
        .threads_per_core(count_within(machine.threads_per_core.as_ref(), count)?, layout(machine.siblings));
    builder = match &machine.node_lists {
        Some(lists) => {
            let sets: Vec<CpuSet> = lists.get_ref().iter().map(|list| list.0.clone()).collect();
            builder.node_lists(&sets)
        }
        None => builder.nodes(count_within(machine.nodes.as_ref(), NODE_LIMIT)?, Layout::Blocks),
    };
    if let Some(cores) = &machine.cores_per_cache {
        builder = builder.cores_per_cache(within(cores, 1, count)?);
    }
    builder.build().map_err(|error| ScenarioProblem::at(&machine.cpus, error.to_string()))
}

/// Each CPU in one list at most, all of them existing.
fn check_lists(lists: &Spanned<Vec<RawCpuList>>, all: &CpuSet) -> Result<(), ScenarioProblem> {
    let mut seen = CpuSet::new();
    for RawCpuList(cpus) in lists.get_ref() {
        if let Some(stranger) = cpus.difference(all).first() {
            return Err(ScenarioProblem::at(
                lists,
                format!("CPU {stranger} does not exist; the machine has {all}"),
            ));
        }
        if let Some(twice) = cpus.intersection(&seen).first() {
            return Err(ScenarioProblem::at(lists, format!("CPU {twice} is in two of the lists")));
        }
        seen = seen.union(cpus);
    }
    Ok(())
}

/// By lists: through the reader of real machines, so that lists mean what the kernel's files mean.
fn listed(machine: &RawMachine, all: &CpuSet, lists: &Lists<'_>) -> Result<Topology, ScenarioProblem> {
    let nodes: Vec<CpuSet> = match (&machine.node_lists, &machine.nodes) {
        (Some(lists), _) => lists.get_ref().iter().map(|list| list.0.clone()).collect(),
        (None, Some(count)) if *count.get_ref() > 1 => {
            return Err(ScenarioProblem::at(
                count,
                "cores or caches are listed, so nodes must be: use node_lists",
            ));
        }
        _ => vec![all.clone()],
    };
    let member = |lists: Option<&Spanned<Vec<RawCpuList>>>, cpu: CpuId| {
        let found = lists.and_then(|lists| lists.get_ref().iter().find(|list| list.0.contains(cpu)));
        found.map(|list| list.0.to_string())
    };
    let text = |file: &str| -> Option<String> {
        let file = file.strip_prefix("/sys/devices/system/")?;
        match file {
            "cpu/possible" => return Some(all.to_string()),
            "node/possible" => return Some(format!("0-{}", nodes.len().saturating_sub(1))),
            _ => {}
        }
        if let Some(node) = file.strip_prefix("node/node") {
            let number: usize = node.strip_suffix("/cpulist")?.parse().ok()?;
            return nodes.get(number).map(CpuSet::to_string);
        }
        let (number, rest) = file.strip_prefix("cpu/cpu")?.split_once('/')?;
        let cpu = CpuId::new(number.parse().ok()?).ok()?;
        match rest {
            "topology/thread_siblings_list" => member(lists.cores, cpu),
            "cache/index0/level" => member(lists.caches, cpu).map(|_| "3".to_owned()),
            "cache/index0/type" => Some("Unified".to_owned()),
            "cache/index0/shared_cpu_list" => member(lists.caches, cpu),
            _ => None,
        }
    };
    Topology::read(text).map_err(|error| ScenarioProblem::at(&machine.cpus, error.to_string()))
}

/// Numbers of a machine that stand in several places.
fn count_within(value: Option<&Spanned<u16>>, most: u16) -> Result<u16, ScenarioProblem> {
    value.map_or(Ok(1), |value| within(value, 1, most))
}

const fn layout(siblings: Option<Siblings>) -> Layout {
    match siblings {
        Some(Siblings::Neighbours) => Layout::Blocks,
        _ => Layout::Interleaved,
    }
}

#[cfg(test)]
mod tests {
    use super::build;
    use crate::scenario::raw::RawMachine;
    use quietcore_core::CpuId;

    fn machine(text: &str) -> RawMachine {
        toml::from_str(text).expect("a table of a machine")
    }

    /// Goal: lists mean what they say. Method: cores across the middle, caches of four, two nodes.
    #[test]
    fn lists_are_what_belongs_together() {
        let raw = machine(
            "cpus = 8\nnode_lists = [\"0-3\", \"4-7\"]\ncore_lists = [\"0,2\", \"1,3\", \"4,6\", \"5,7\"]\n\
             cache_lists = [\"0-3\", \"4-7\"]\n",
        );
        let topology = build(&raw, None).unwrap_or_else(|error| panic!("{error:?}"));
        let cpu = CpuId::new(6).unwrap();
        let numbers = |cpus: &[CpuId]| cpus.iter().map(|cpu| cpu.index()).collect::<Vec<_>>();
        assert_eq!(numbers(topology.core(cpu)), [4, 6]);
        assert_eq!(numbers(topology.cache(cpu)), [4, 5, 6, 7]);
        assert_eq!(numbers(topology.node(cpu)), [4, 5, 6, 7]);
    }

    /// Goal: impossible machines are refused. Method: one of each kind.
    #[test]
    fn impossible_machines_are_refused() {
        for (text, why) in [
            ("cpus = 0", "1 to 8192"),
            ("cpus = 9000", "1 to 8192"),
            ("cpus = 4\nnodes = 0", "1 to"),
            ("cpus = 4\nthreads_per_core = 5", "1 to 4"),
            ("cpus = 4\nnode_lists = [\"0-4\"]", "CPU 4 does not exist"),
            ("cpus = 4\ncore_lists = [\"0-1\", \"1-2\"]", "CPU 1 is in two"),
            ("cpus = 4\nnodes = 2\ncore_lists = [\"0-1\"]", "use node_lists"),
        ] {
            let problem = build(&machine(text), None).expect_err(text).problem;
            assert!(problem.contains(why), "{text}: {problem}");
        }
    }
}
