//! The root moves up while others go idle, wake up and publish below it.

use crate::play::{Part, Scenario, all, explore};
use crate::search::Search;
use crate::world::World;

/// CPUs 0 and 1 in one group, a timer on each. Nodes of 8 CPUs: one of the other node brings a group of its
/// own and a root; of 9: a root two levels up, with a group between the old root and the new one.
fn before_growth(cpus: u16, asleep: &[usize]) -> World {
    World::two_nodes(cpus, &[0, 1]).with_timers(&[0, 1], asleep)
}

const JOIN_8: Part = |world| {
    world.join(8);
    world.park(8);
};

const JOIN_9: Part = |world| {
    world.join(9);
    world.park(9);
};

/// Goal: one goes idle, wakes up (and goes back), or gets a timer while the root moves up. Method: all
/// orders, three preemptions; by one level and by two.
#[test]
fn growth_against_one_call() {
    let cases: [(&[usize], Part, usize); 4] = [
        (&[1], |world| world.park(0), 500),
        (&[0, 1], |world| world.wake(1), 500),
        (&[0, 1], |world| world.wake_and_park(1), 500),
        (&[0, 1], |world| world.arm(1, 3), 300),
    ];
    for (number, (asleep, call, least)) in cases.into_iter().enumerate() {
        println!("case {number}, {asleep:?} asleep");
        all(|| before_growth(8, asleep), &[call, JOIN_8], 3).assert_more_than(least);
        all(|| before_growth(9, asleep), &[call, JOIN_9], 3).assert_more_than(least);
    }
}

/// Goal: one goes idle late, one wakes up late, and the root moves up between them. Method: three CPUs, two
/// preemptions.
#[test]
fn growth_against_both() {
    let parts: [Part; 3] = [|world| world.park(0), |world| world.wake(1), JOIN_8];
    let outcome = |world: &World| format!("{:?} {:?}", world.cpu_state(0), world.told(8));
    explore(&Scenario { make: &|| before_growth(8, &[1]), parts: &parts, outcome }, Search::new(2))
        .assert_more_than(5000);
}
