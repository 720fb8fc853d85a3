//! Every order of a few calls with a few preemptions: at rest the invariants hold and no timer is forgotten.
//!
//! CPUs 0 and 1 are in one group, 8 and 9 (or 9 and 10) in another. A CPU that is not named sleeps.

use crate::play::{Part, Scenario, all, explore};
use crate::search::Search;
use crate::world::{World, two_groups};

/// Goal: two CPUs of one group that go idle at the same time leave one of them to wake up for both. Method:
/// all orders, three preemptions.
#[test]
fn two_go_idle_in_one_group() {
    let make = || {
        let world = World::one_group(2);
        world.arm(0, 5);
        world.arm(1, 7);
        world
    };
    let found = all(make, &[|world| world.park(0), |world| world.park(1)], 3);
    found.assert_more_than(300).assert_outcomes(&[
        "0:5 1:5 alarm None",
        "0:5 1:7 alarm None",
        "0:5 alarm None",
        "1:5 alarm None",
    ]);
}

/// Goal: the same one level further up, where the second one has to carry what the first one wrote late.
/// Method: all orders, three preemptions, all others asleep.
#[test]
fn two_go_idle_in_one_group_of_two() {
    all(|| two_groups(&[8, 9]), &[|world| world.park(0), |world| world.park(1)], 3).assert_more_than(500);
}

/// Goal: whichever two calls meet, no timer is forgotten. Method: all orders, three preemptions; a row per
/// race: who sleeps, and the calls.
#[test]
fn two_calls_meet() {
    let wakes_runs_and_parks: Part = |world| {
        world.wake(9);
        world.run_own(9, 20);
        world.park(9);
    };
    let looks: Part = |world| {
        world.look(0, 20);
    };
    let cases: [(&str, &[usize], [Part; 2]); 8] = [
        ("the last of two groups go idle", &[1, 9], [|world| world.park(0), |world| world.park(8)]),
        ("race S, the other group asleep", &[1, 8, 9], [|world| world.park(0), |world| world.wake(1)]),
        ("race S, the other group awake", &[1, 9], [|world| world.park(0), |world| world.wake(1)]),
        ("isolated beside going idle", &[8, 9], [|world| world.set_unavailable(0), |world| world.park(1)]),
        ("the same in two groups", &[1, 9], [|world| world.set_unavailable(0), |world| world.park(8)]),
        ("two timers, all asleep", &[0, 1, 8, 9], [|world| world.arm(1, 3), |world| world.arm(8, 4)]),
        (
            "a timer for a CPU that is awake for a moment",
            &[0, 1, 8, 9],
            [|world| world.wake_and_park(1), |world| world.arm(1, 3)],
        ),
        ("pulled while it is awake for a moment", &[1, 8, 9], [looks, wakes_runs_and_parks]),
    ];
    for (what, asleep, parts) in cases {
        println!("{what}");
        all(|| two_groups(asleep), &parts, 3).assert_more_than(500);
    }
}

/// Goal: a CPU that goes idle for good after others went back and forth above it. Method: three CPUs of three
/// levels, two preemptions.
#[test]
fn idle_and_awake_on_three_levels() {
    let parts: [Part; 3] = [|world| world.park(0), |world| world.wake_and_park(1), |world| world.park(9)];
    all(|| World::three_levels().with_timers(&[0, 1, 9, 10], &[1, 10]), &parts, 2).assert_more_than(500);
}

/// Goal: race L in all its forms: the last one goes idle while a timer is armed for a sleeping CPU of its
/// group, and of another. Method: all orders, three preemptions.
#[test]
fn the_last_goes_idle_while_a_timer_is_armed() {
    let arms: [Part; 2] = [|world| world.arm(1, 3), |world| world.arm(9, 3)];
    for arm in arms {
        all(|| two_groups(&[1, 8, 9]), &[|world| world.park(0), arm], 3).assert_more_than(500);
    }
}

/// Goal: two that were told pull at the same time, and no timer runs twice or is left. Method: all orders,
/// two preemptions; each timer is counted.
#[test]
fn two_pull_at_the_same_time() {
    let make = || {
        let world = two_groups(&[0, 1, 8]);
        world.park(9);
        world.arm(0, 3);
        world.wake(8);
        world
    };
    let parts: [Part; 2] = [
        |world| {
            world.look(8, 20);
        },
        |world| {
            world.wake(0);
            world.look(0, 20);
            world.park(0);
        },
    ];
    let outcome = |world: &World| {
        let mut ran: Vec<_> = (0..16).flat_map(|cpu| world.ran(cpu)).map(|(expires, _)| expires).collect();
        ran.sort_unstable();
        ran.dedup();
        let count: usize = (0..16).map(|cpu| world.ran(cpu).len()).sum();
        assert_eq!(count, ran.len(), "a timer ran twice");
        format!("{} ran", ran.len())
    };
    explore(&Scenario { make: &make, parts: &parts, outcome }, Search::new(2)).assert_more_than(500);
}

/// Goal: a parked CPU that pulls for the tree while a timer is armed for itself: what it is told is not lost
/// when it writes down what is left. Method: all orders, three preemptions.
#[test]
fn a_timer_for_a_parked_puller() {
    let make = || {
        let world = World::one_group(2);
        world.arm(1, 5);
        world.arm(0, 50);
        world.park(1);
        world.park(0);
        world
    };
    let parts: [Part; 2] = [
        |world| {
            world.look(0, 5);
        },
        |world| world.arm(0, 20),
    ];
    all(make, &parts, 3).assert_more_than(300);
}
