//! Random machines, random scripts. Moments are close together, so that equal ones are common.

use crate::model::{Both, Step};
use proptest::prelude::*;
use proptest::strategy::ValueTree;

/// Nodes of the CPUs: each CPU draws its own, so nodes are uneven and may be empty; small machines are
/// likely.
fn machine() -> impl Strategy<Value = Vec<u16>> {
    let cpus = prop_oneof![3 => 1_usize..=4, 4 => 5_usize..=20, 2 => 21_usize..=80, 1 => 81_usize..=256];
    (cpus, 1_u16..=8).prop_flat_map(|(cpus, nodes)| {
        let blocks = (0..cpus).map(|cpu| (cpu * usize::from(nodes) / cpus) as u16).collect::<Vec<_>>();
        prop_oneof![Just(blocks), proptest::collection::vec(0..nodes, cpus)]
    })
}

/// A machine, and the CPUs that join before the script, in their order.
fn machine_and_order() -> impl Strategy<Value = (Vec<u16>, Vec<usize>)> {
    machine().prop_flat_map(|nodes| {
        let all: Vec<usize> = (0..nodes.len()).collect();
        let some = proptest::sample::subsequence(all, 0..=nodes.len()).prop_shuffle();
        (Just(nodes), some)
    })
}

fn next() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![1 => Just(None), 4 => (0_u64..12).prop_map(Some)]
}

/// The CPU numbers are drawn small often, so that a script does several things to one CPU.
fn step() -> impl Strategy<Value = Step> {
    let cpu = || prop_oneof![3 => 0_usize..4, 3 => 0_usize..20, 2 => 0_usize..256];
    prop_oneof![
        2 => cpu().prop_map(Step::Connect),
        2 => cpu().prop_map(Step::SetAvailable),
        1 => cpu().prop_map(Step::SetUnavailable),
        3 => cpu().prop_map(Step::Activate),
        1 => cpu().prop_map(Step::TryActivate),
        5 => (cpu(), next()).prop_map(|(cpu, next)| Step::Deactivate(cpu, next)),
        3 => (cpu(), next()).prop_map(|(cpu, next)| Step::Publish(cpu, next)),
        1 => (cpu(), next()).prop_map(|(cpu, next)| Step::GoAbsent(cpu, next)),
        2 => (0_u64..16, next()).prop_map(|(ticks, next)| Step::Look(ticks, next)),
    ]
}

/// How many CPUs are there before the script starts, and in which order they joined.
fn play(nodes: &[u16], order: &[usize], script: &[Step]) -> usize {
    let mut both = Both::new(nodes);
    for &cpu in order {
        both.play(Step::Connect(cpu));
        both.play(Step::SetAvailable(cpu));
    }
    for &step in script {
        both.play(step);
    }
    both.pulls
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

    /// Goal: no published expiry is ever without a CPU that will see it, and every call returns exactly what
    /// a list says. Method: random machines whose CPUs joined before the script, all or in part, in any
    /// order.
    #[test]
    fn the_tree_is_the_list(
        (nodes, order) in machine_and_order(),
        script in proptest::collection::vec(step(), 1..80),
    ) {
        let pulls = play(&nodes, &order, &script);
        prop_assert!(pulls <= script.len() * nodes.len(), "a call pulls each CPU once at most");
    }
}

/// Goal: the scripts reach what they are about. Method: one generator run by hand; enough pulls happened.
#[test]
fn the_scripts_pull() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut pulls = 0;
    for _ in 0..50 {
        let script = proptest::collection::vec(step(), 80).new_tree(&mut runner).expect("a script").current();
        pulls += play(&[0; 12], &(0..12).collect::<Vec<_>>(), &script);
    }
    assert!(pulls > 50, "{pulls} pulls in 50 scripts");
}
