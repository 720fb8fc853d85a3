//! CPUs that leave (isolation, offline) and join again, while others go idle, wake up and pull.

use crate::play::{Part, Scenario, all, explore, script};
use crate::script::Mover;
use crate::search::Search;
use crate::world::{World, two_groups};
use quietcore_core::script::Site;
use quietcore_core::tmigr::CpuState;

/// Goal: the last one awake is made unavailable while it goes idle by itself: others' timers are looked
/// after. Method: all orders, three preemptions.
#[test]
fn leaving_against_going_idle() {
    let parts: [Part; 2] = [|world| world.set_unavailable(0), |world| world.park(0)];
    all(|| two_groups(&[1, 8, 9]), &parts, 3).assert_more_than(100);
}

/// Goal: a CPU wakes up while it is made unavailable: it is in no mask at the end. Method: all orders, three
/// preemptions; `check` asserts T4.
#[test]
fn leaving_against_waking_up() {
    let parts: [Part; 2] = [|world| world.set_unavailable(1), |world| world.wake(1)];
    let outcome = |world: &World| format!("{:?}", world.cpu_state(1));
    let found =
        explore(&Scenario { make: &|| two_groups(&[1, 8, 9]), parts: &parts, outcome }, Search::new(3));
    found.assert_more_than(30).assert_outcomes(&["Unavailable"]);
}

/// Goal: a sleeping CPU with a timer joins while the last one goes idle. Method: all orders, three
/// preemptions.
#[test]
fn joining_against_going_idle() {
    let make = || {
        let world = two_groups(&[1, 8, 9]);
        world.set_unavailable(9);
        world
    };
    let parts: [Part; 2] = [|world| world.set_available(9), |world| world.park(0)];
    all(make, &parts, 3).assert_more_than(500);
}

/// Goal: joining and leaving from two sides at once end in one of the two. Method: all orders, three
/// preemptions, with a third that goes idle.
#[test]
fn joining_against_leaving() {
    let parts: [Part; 3] =
        [|world| world.set_available(1), |world| world.set_unavailable(1), |world| world.park(0)];
    let outcome = |world: &World| format!("{:?}", world.cpu_state(1));
    let make = || two_groups(&[8, 9]);
    explore(&Scenario { make: &make, parts: &parts, outcome }, Search::new(2))
        .assert_more_than(1000)
        .assert_outcomes(&["Awake", "Unavailable"]);
}

/// Goal: a CPU that leaves while it pulls finishes the pull it is in, at most, and begins no other (T4).
/// Method: a script: three timers are due; it leaves before the first.
#[test]
fn a_puller_that_leaves_pulls_no_more() {
    let make = || {
        let world = two_groups(&[1, 8, 9, 0]);
        assert_eq!(world.told(0), Some(10), "CPU 0 went idle last");
        world
    };
    let alone = make();
    assert_eq!(alone.look(0, 30), [0, 1, 8, 9], "all four are due, its own too");
    let parts: [Part; 2] = [
        |world| {
            let pulled = world.look(0, 30);
            assert!(pulled.len() <= 1, "pulled from {pulled:?}");
        },
        |world| world.set_unavailable(0),
    ];
    let (puller, world) = (Mover(0), Mover(1));
    let lines = [puller.until(Site::BeforePull), world.to_end(), puller.to_end()];
    assert_eq!(script(make(), &parts, &lines).cpu_state(0), CpuState::Unavailable);
}
