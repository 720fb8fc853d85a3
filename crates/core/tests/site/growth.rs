//! The root moves up while others go idle, wake up and publish below it.

use crate::play::{Part, Scenario, all, explore};
use crate::world::World;

/// CPUs 0 and 1 in one group, a timer on each; CPU 8 has not joined: it brings a group of its own and a root.
fn before_growth(asleep: &[usize]) -> World {
    let nodes: Vec<u16> = (0..16).map(|cpu| cpu / 8).collect();
    grown(World::new(&nodes, &[0, 1]), asleep)
}

/// The same where CPU 9 brings a root two levels up, with a group between the old root and the new one.
fn before_growth_by_two(asleep: &[usize]) -> World {
    let nodes: Vec<u16> = (0..18).map(|cpu| cpu / 9).collect();
    grown(World::new(&nodes, &[0, 1]), asleep)
}

fn grown(world: World, asleep: &[usize]) -> World {
    world.arm(0, 10);
    world.arm(1, 11);
    asleep.iter().for_each(|&cpu| world.park(cpu));
    world
}

const JOIN_8: Part = |world| {
    world.join(8);
    world.park(8);
};

const JOIN_9: Part = |world| {
    world.join(9);
    world.park(9);
};

/// Goal: the last one goes idle while the root moves up. Method: all orders, three preemptions; by one level
/// and by two.
#[test]
fn growth_against_going_idle() {
    let one = all(|| before_growth(&[1]), &[|world| world.park(0), JOIN_8], 3);
    let two = all(|| before_growth_by_two(&[1]), &[|world| world.park(0), JOIN_9], 3);
    assert!(one.runs > 500 && two.runs > 500, "{} and {} runs", one.runs, two.runs);
}

/// Goal: one wakes up while the root moves up. Method: all orders, three preemptions; by one level and by
/// two; it stays awake, or goes idle again.
#[test]
fn growth_against_waking_up() {
    let back_and_forth: Part = |world| {
        world.wake(1);
        world.park(1);
    };
    let one = all(|| before_growth(&[0, 1]), &[|world| world.wake(1), JOIN_8], 3);
    let two = all(|| before_growth_by_two(&[0, 1]), &[|world| world.wake(1), JOIN_9], 3);
    let back = all(|| before_growth(&[0, 1]), &[back_and_forth, JOIN_8], 3);
    for found in [one, two, back] {
        assert!(found.runs > 500, "{} runs", found.runs);
    }
}

/// Goal: a timer is armed on a sleeping CPU while the root moves up. Method: all orders, three preemptions.
#[test]
fn growth_against_a_new_timer() {
    let one = all(|| before_growth(&[0, 1]), &[|world| world.arm(1, 3), JOIN_8], 3);
    let two = all(|| before_growth_by_two(&[0, 1]), &[|world| world.arm(1, 3), JOIN_9], 3);
    assert!(one.runs > 300 && two.runs > 300, "{} and {} runs", one.runs, two.runs);
}

/// Goal: one goes idle late, one wakes up late, and the root moves up between them. Method: three CPUs, two
/// preemptions.
#[test]
fn growth_against_both() {
    let parts: [Part; 3] = [|world| world.park(0), |world| world.wake(1), JOIN_8];
    let outcome = |world: &World| format!("{:?} {:?}", world.cpu_state(0), world.told(8));
    let found = explore(&Scenario { make: || before_growth(&[1]), parts: &parts, preemptions: 2, outcome });
    assert!(found.runs > 5000, "{} runs", found.runs);
}
