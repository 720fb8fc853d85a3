//! The contract of a timer under every policy and rule, on random machines.

use crate::world::{Kind, TICK, World};
use proptest::prelude::*;
use quietcore_core::place::{Exclusion, Isolation, Policy};
use quietcore_core::topology::{Layout, Topology};
use quietcore_core::{CpuSet, Settings};

#[derive(Clone, Debug)]
enum Step {
    Online(usize),
    Offline(usize),
    Isolate(Vec<usize>),
    Arm { timer: usize, on: usize, is_cpu: bool, delay: u64 },
    Cancel { timer: usize, on: usize },
    Sleep(usize),
    Wake(usize),
    Stick(usize),
    Mark(usize),
    Unstick(usize),
    Ticks(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let cpu = || prop_oneof![2 => 0_usize..3, 1 => 0_usize..64];
    let delay = prop_oneof![4 => 0..20 * TICK, 3 => 0..600 * TICK, 1 => 0..5000 * TICK];
    prop_oneof![
        2 => cpu().prop_map(Step::Online),
        1 => cpu().prop_map(Step::Offline),
        1 => proptest::collection::vec(cpu(), 0..6).prop_map(Step::Isolate),
        8 => (0_usize..24, cpu(), any::<bool>(), delay)
            .prop_map(|(timer, on, is_cpu, delay)| Step::Arm { timer, on, is_cpu, delay }),
        2 => (0_usize..24, cpu()).prop_map(|(timer, on)| Step::Cancel { timer, on }),
        6 => cpu().prop_map(Step::Sleep),
        3 => cpu().prop_map(Step::Wake),
        1 => cpu().prop_map(Step::Stick),
        1 => cpu().prop_map(Step::Mark),
        1 => cpu().prop_map(Step::Unstick),
        8 => (1_u64..40).prop_map(Step::Ticks),
    ]
}

fn settings() -> impl Strategy<Value = Settings> {
    let policy = prop_oneof![4 => Just(Policy::Pull), 1 => Just(Policy::Push), 1 => Just(Policy::Stay)];
    let exclusion = prop_oneof![Just(Exclusion::Off), Just(Exclusion::V2), Just(Exclusion::Merged)];
    (policy, exclusion, any::<bool>()).prop_map(|(policy, exclusion, has_nohz)| {
        let nohz_full: CpuSet = if has_nohz { "2".parse().expect("a list") } else { CpuSet::new() };
        Settings {
            policy,
            exclusion,
            isolation: Isolation { nohz_full, ..Isolation::default() },
            ..Settings::default()
        }
    })
}

fn play(world: &mut World, script: &[Step]) {
    for index in 0..24 {
        let kind = [Kind::Floating, Kind::Floating, Kind::Pinned, Kind::Deferrable][index % 4];
        world.add(kind);
    }
    let count = world.states.len();
    for step in script {
        match step {
            Step::Online(cpu) => world.online(cpu % count),
            Step::Offline(cpu) => world.offline(cpu % count),
            Step::Isolate(cpus) => {
                let set = cpus.iter().map(|cpu| crate::world::cpu(cpu % count)).collect();
                world.isolate(&set);
            }
            Step::Arm { timer, on, is_cpu, delay } => world.arm(*timer, on % count, *is_cpu, *delay),
            Step::Cancel { timer, on } => world.cancel(*timer, on % count),
            Step::Sleep(cpu) => world.sleep(cpu % count),
            Step::Wake(cpu) => world.wake(cpu % count),
            Step::Stick(cpu) => world.stick(cpu % count),
            Step::Mark(cpu) => world.mark(cpu % count),
            Step::Unstick(cpu) => world.unstick(cpu % count),
            Step::Ticks(ticks) => (0..*ticks).for_each(|_| world.tick()),
        }
        world.machine.check();
    }
    world.drain();
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    /// Goal: never early, twice or lost, late by no more than allowed, and no invariant broken between any
    /// two steps. Method: random machines, policies and scripts with sleep, stalls, isolation and hotplug; at
    /// the end everything that is pending must run.
    #[test]
    fn the_contract_holds(
        (cpus, nodes) in (1_u16..=24, 1_u16..=4),
        settings in settings(),
        script in proptest::collection::vec(step(), 1..120),
    ) {
        let nodes = nodes.min(cpus);
        let topology = Topology::builder(cpus).nodes(nodes, Layout::Blocks).build().expect("a machine");
        let possible = topology.possible().clone();
        prop_assume!(possible.len() > 3 || settings.isolation.nohz_full.is_empty());
        let mut world = World::new(topology, settings);
        play(&mut world, &script);
        prop_assert!(world.ran <= script.len());
    }
}
