//! Topologies from text: written from a random machine and read back, files missing, files damaged.

use crate::machines::{builder, cpu};
use proptest::prelude::*;
use quietcore_core::topology::{Expected, NodeId, SysfsError, Topology};
use quietcore_core::{CpuId, CpuSet};
use std::collections::BTreeMap;

type Files = BTreeMap<String, String>;

const CPUS: &str = "/sys/devices/system/cpu";
const NODES: &str = "/sys/devices/system/node";

fn read(files: &Files) -> Result<Topology, SysfsError> {
    Topology::read(|file: &str| files.get(file).cloned())
}

fn list(cpus: &[CpuId]) -> String {
    format!("{}\n", cpus.iter().copied().collect::<CpuSet>())
}

/// The files that a kernel would show for `machine`, with an instruction and a data cache per core below
/// the unified one.
fn write(machine: &Topology) -> Files {
    let mut files = Files::new();
    let mut add = |file: String, text: String| files.insert(file, text);
    add(format!("{CPUS}/possible"), format!("{}\n", machine.possible()));
    add(format!("{NODES}/possible"), format!("0-{}\n", machine.node_count() - 1));
    for (node, cpus) in machine.nodes() {
        add(format!("{NODES}/node{node}/cpulist"), list(cpus));
    }
    for own in machine.possible().iter() {
        add(format!("{CPUS}/cpu{own}/topology/thread_siblings_list"), list(machine.core(own)));
        let core = list(machine.core(own));
        let caches = [
            ("1", "Data", &core),
            ("1", "Instruction", &core),
            ("2", "Unified", &core),
            ("3", "Unified", &list(machine.cache(own))),
        ];
        for (index, (level, kind, shared)) in caches.into_iter().enumerate() {
            let folder = format!("{CPUS}/cpu{own}/cache/index{index}");
            add(format!("{folder}/level"), format!("{level}\n"));
            add(format!("{folder}/type"), format!("{kind}\n"));
            add(format!("{folder}/shared_cpu_list"), shared.clone());
        }
    }
    files
}

/// Two nodes of two cores of two threads; siblings n and n + 4; one cache per node.
fn eight() -> Files {
    use quietcore_core::topology::Layout::{Blocks, Interleaved};
    let builder = Topology::builder(8).threads_per_core(2, Interleaved).nodes(2, Blocks);
    write(&builder.build().expect("in range"))
}

proptest! {
    /// Goal: reading is the inverse of writing. Method: random machines.
    #[test]
    fn a_machine_survives_the_round_trip(builder in builder(1_u16..40)) {
        let machine = builder.build().expect("in range");
        prop_assert_eq!(read(&write(&machine)), Ok(machine));
    }

    /// Goal: whatever is missing or damaged, an answer or an error that names a file; never a panic, and
    /// the answer keeps its invariants. Method: files dropped or replaced at random.
    #[test]
    fn damage_is_an_error_or_harmless(
        builder in builder(1_u16..12),
        damage in prop::collection::vec((any::<prop::sample::Index>(), "[0-9,/:\\- \nUnified]{0,8}", any::<bool>()), 0..6),
    ) {
        let mut files = write(&builder.build().expect("in range"));
        for (at, text, remove) in damage {
            let file = at.get(&files.keys().cloned().collect::<Vec<_>>()).clone();
            if remove {
                files.remove(&file);
            } else {
                files.insert(file, text);
            }
            if files.is_empty() {
                break;
            }
        }
        match read(&files) {
            Ok(machine) => {
                for own in machine.possible().iter() {
                    prop_assert!(machine.core(own).contains(&own));
                    prop_assert!(machine.core(own).iter().all(|cpu| machine.cache(own).contains(cpu)));
                    prop_assert!(machine.cache(own).iter().all(|cpu| machine.node(own).contains(cpu)));
                }
            }
            Err(error) => {
                let missing = error.file == format!("{CPUS}/possible") && !files.contains_key(&error.file);
                prop_assert!(missing || files.contains_key(&error.file), "{}", error);
                prop_assert!(error.to_string().starts_with(&error.file) && error.to_string().contains("expected"));
            }
        }
    }
}

/// Goal: the default of each missing file, as the documentation of `read` has it. Method: remove files by
/// the end of their name.
#[test]
fn missing_files_have_defaults() {
    let without = |ends: &[&str]| {
        let mut files = eight();
        files.retain(|file, _| !ends.iter().any(|end| file.ends_with(end)));
        read(&files).expect("only optional files are missing")
    };
    let sizes = |machine: &Topology| {
        [machine.core(cpu(0)), machine.cache(cpu(0)), machine.node(cpu(0))].map(<[CpuId]>::len)
    };
    assert_eq!(sizes(&without(&[])), [2, 4, 4]);
    assert_eq!(sizes(&without(&["node/possible"])), [2, 4, 8], "no NUMA: one node");
    assert_eq!(without(&["node/possible"]).node_count(), 1);
    assert_eq!(sizes(&without(&["node1/cpulist"])), [2, 4, 8], "unlisted CPUs are on the lowest node");
    assert_eq!(without(&["node1/cpulist"]).node_count(), 2, "a node without CPUs is still possible");
    assert_eq!(sizes(&without(&["siblings_list"])), [1, 4, 4], "a core of its own");
    assert_eq!(sizes(&without(&["level"])), [2, 2, 4], "no cache: with its core");
    assert_eq!(sizes(&without(&["index3/shared_cpu_list"])), [2, 2, 4], "the next lower unified cache");
    assert_eq!(sizes(&without(&["index2/level"])), [2, 2, 4], "indexes end at the first without a level");
    assert_eq!(sizes(&without(&["siblings_list", "type"])), [1, 1, 4], "no type: not unified");
}

/// Goal: an offline CPU, which has no files and is in no list, is possible and alone. Method: take CPU 7
/// out of everything but `possible`.
#[test]
fn an_offline_cpu_is_possible() {
    let mut files = eight();
    files.retain(|file, _| !file.contains("/cpu7/"));
    for text in files.iter_mut().filter(|(file, _)| !file.ends_with("cpu/possible")).map(|(_, text)| text) {
        *text = text.replace("3,7", "3").replace("6-7", "6");
    }
    let machine = read(&files).expect("as a kernel shows it");
    assert_eq!(machine.possible().to_string(), "0-7");
    assert_eq!((machine.core(cpu(7)), machine.cache(cpu(7))), (&[cpu(7)][..], &[cpu(7)][..]));
    assert_eq!(machine.node_of(cpu(7)), Some(NodeId(0)));
    assert_eq!(machine.core(cpu(3)), [cpu(3)]);
}

/// Goal: a cache that spans nodes, and threads that span caches, are cut. Method: one cache for all CPUs;
/// then siblings across the nodes.
#[test]
fn borders_are_cut() {
    let mut files = eight();
    for own in 0..8 {
        files.insert(format!("{CPUS}/cpu{own}/cache/index3/shared_cpu_list"), "0-7".to_owned());
    }
    let machine = read(&files).expect("sub-NUMA clustering");
    assert_eq!(machine.cache(cpu(0)), machine.node(cpu(0)));
    for own in 0..8 {
        let siblings = format!("{},{}", own / 2 * 2, own / 2 * 2 + 1);
        files.insert(format!("{CPUS}/cpu{own}/topology/thread_siblings_list"), siblings.clone());
        files.insert(format!("{CPUS}/cpu{own}/cache/index2/shared_cpu_list"), siblings);
        files.insert(format!("{NODES}/node0/cpulist"), "0,3-5".to_owned());
        files.insert(format!("{NODES}/node1/cpulist"), "1-2,6-7".to_owned());
    }
    let machine = read(&files).expect("levels that do not nest");
    assert_eq!([0, 1, 2, 4, 6].map(|own| machine.core(cpu(own)).len()), [1, 1, 1, 2, 2]);
}

/// Goal: each kind of malformed or contradictory text names its file and what is expected. Method: one file
/// of eight CPUs replaced.
#[test]
fn each_refusal_names_the_file() {
    for (file, text, expected, told) in [
        ("cpu/possible", "", Expected::Possible, "missing or empty (expected a list of the CPUs below 8192"),
        ("cpu/possible", "0-x", Expected::List { error: "0-x".parse::<CpuSet>().unwrap_err() }, "at byte 2"),
        ("node/possible", "", Expected::Nodes, "not a list of nodes (expected numbers below 1024"),
        ("node/possible", "0-1024", Expected::Nodes, "not a list of nodes"),
        ("node/possible", "x", Expected::Nodes, "not a list of nodes"),
        (
            "node/node1/cpulist",
            "1-3",
            Expected::OneNode { cpu: cpu(1), other: NodeId(0) },
            "lists CPU 1, and so does node 0",
        ),
        (
            "cpu/cpu2/topology/thread_siblings_list",
            "6",
            Expected::Itself { cpu: cpu(2) },
            "does not list CPU 2",
        ),
        (
            "cpu/cpu4/topology/thread_siblings_list",
            "4",
            Expected::Agreement { cpu: cpu(4), other: cpu(0) },
            "CPU 4 is with other CPUs than the lists of lower ones say, see CPU 0",
        ),
        (
            "cpu/cpu1/topology/thread_siblings_list",
            "0-1",
            Expected::Agreement { cpu: cpu(1), other: cpu(0) },
            "(expected that CPUs of one group list each other)",
        ),
        ("cpu/cpu7/cache/index0/level", "L3", Expected::CacheLevel, "not a cache level"),
        (
            "cpu/cpu7/cache/index1/type",
            "unified",
            Expected::CacheType,
            "expected Unified, Data or Instruction",
        ),
    ] {
        let mut files = eight();
        let file = format!("/sys/devices/system/{file}");
        assert!(files.insert(file.clone(), text.to_owned()).is_some(), "{file} is a file of the fixture");
        let error = read(&files).expect_err(told);
        assert_eq!(error, SysfsError { file: file.clone(), expected }, "{file} = {text:?}");
        assert!(error.to_string().contains(told), "{error}");
    }
    assert_eq!(read(&Files::new()).map_err(|error| error.expected), Err(Expected::Possible));
}

/// Goal: numbers with gaps, and white space, are what a kernel may print. Method: CPUs and
/// nodes that do not begin at 0.
#[test]
fn gaps_are_allowed() {
    let files: Files = [
        (format!("{CPUS}/possible"), " 2,5,64\n"),
        (format!("{NODES}/possible"), "1,8\n"),
        (format!("{NODES}/node8/cpulist"), "5,64,100\n"),
    ]
    .map(|(file, text)| (file, text.to_owned()))
    .into();
    let machine = read(&files).expect("all of it is allowed");
    let nodes: Vec<(NodeId, usize)> = machine.nodes().map(|(node, cpus)| (node, cpus.len())).collect();
    assert_eq!(nodes, [(NodeId(1), 1), (NodeId(8), 2)]);
}
