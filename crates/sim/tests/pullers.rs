//! The rule that seed 001's machine follows: without exclusion, who pulls is the lowest awake CPU of each
//! group with a sleeping housekeeping CPU; with exclusion, no isolated CPU.

use quietcore_core::tmigr::{Levels, Tree};
use quietcore_core::{CpuId, CpuSet};
use quietcore_sim::{Scenario, SimOptions, SimOutcome, SimRandom};

const TOPOLOGIES: u64 = 20;

fn cpu(number: u64) -> CpuId {
    CpuId::new(number).expect("below the limit")
}

fn run(text: &str) -> SimOutcome {
    let scenario = Scenario::parse("pullers.toml".as_ref(), text, &|_| unreachable!("names no file"));
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}\n{text}"));
    scenario
        .run(SimOptions::default(), &mut |_| true, &mut |_| Ok(None))
        .expect("no output")
        .expect("not stopped")
}

/// The lowest isolated CPU of each group of the lowest level that has both a housekeeping and an isolated
/// CPU. CPUs join in ascending order; node n has the CPUs from n * cpus / nodes on.
fn predicted(cpus: u64, nodes: u64, housekeeping: &CpuSet) -> CpuSet {
    let mut tree = Tree::new(Levels::new(cpus as u16, nodes as u16));
    let leaves: Vec<usize> =
        (0..cpus).map(|number| tree.join((number * nodes / cpus) as u16).leaf.0.index()).collect();
    let mut pullers = CpuSet::new();
    let groups: std::collections::BTreeSet<usize> = leaves.iter().copied().collect();
    for group in groups {
        let members: Vec<CpuId> = (0..cpus).filter(|at| leaves[*at as usize] == group).map(cpu).collect();
        let lowest = members.iter().find(|member| !housekeeping.contains(**member));
        if let Some(lowest) = lowest.filter(|_| members.iter().any(|member| housekeeping.contains(*member))) {
            pullers.insert(*lowest);
        }
    }
    pullers
}

/// Goal: the rule, on random machines. Method: 20 random ones (CPUs, nodes, housekeeping CPUs), busy
/// loops on all isolated CPUs, devices on the others; pullers as predicted from the shape of the tree alone.
#[test]
fn pullers_are_the_lowest_awake_cpus() {
    let mut random = SimRandom::new(1, 5);
    let mut several = 0;
    for round in 0..TOPOLOGIES {
        // Groups are whole nodes' or the machine's, so that the prediction needs the tree and nothing else.
        let nodes = 1 + random.below(4);
        let cpus = nodes * (3 + random.below(30));
        let count = 1 + random.below(1 + cpus / 8);
        let mut housekeeping: CpuSet = (0..count).map(|_| cpu(random.below(cpus))).collect();
        housekeeping.insert(cpu(0));
        let all: CpuSet = (0..cpus).map(cpu).collect();
        let isolated = all.difference(&housekeeping);
        let text = format!(
            "seed = {round}\nduration = \"400ms\"\n[machine]\ncpus = {cpus}\nnodes = {nodes}\nisolated = \"{isolated}\"\n\
             [variants]\nexclusion = [\"off\", \"v2\", \"merged\"]\n[[load.measure]]\ncpus = \"isolated\"\n\
             [[load.driver]]\ncpus = \"housekeeping\"\nperiod = \"25ms\"\njitter = \"10ms\"\ndelay = \"10ms\"\n\
             work = \"10us\"\n"
        );
        let outcome = run(&text);
        let found = |variant: usize| &outcome.variants[variant].figures;
        let expected = predicted(cpus, nodes, &housekeeping);
        several += usize::from(expected.len() > 1);
        assert_eq!(found(0).pullers.to_string(), expected.to_string(), "round {round}\n{text}");
        assert!(found(0).foreign > 0, "round {round}: nothing was pulled\n{text}");
        for variant in [1, 2] {
            assert_eq!(found(variant).foreign, 0, "round {round}, variant {variant}\n{text}");
        }
    }
    assert!(several > TOPOLOGIES as usize / 3, "only {several} topologies with several pullers");
}
