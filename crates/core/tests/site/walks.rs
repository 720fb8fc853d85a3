//! Every order of a few calls with a few preemptions: at rest the invariants hold and no timer is forgotten.
//!
//! CPUs 0 and 1 are in one group, 8 and 9 (or 9 and 10) in another. A CPU that is not named sleeps.

use crate::play::{Part, Scenario, all, explore};
use crate::world::{World, two_groups};

fn three_levels(asleep: &[usize]) -> World {
    let world = World::three_levels();
    for cpu in [0, 1, 9, 10] {
        world.arm(cpu, 10 + cpu as u64);
    }
    asleep.iter().for_each(|&cpu| world.park(cpu));
    world
}

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
    assert!(found.runs > 300, "{} runs", found.runs);
    found.expect_outcomes(&["0:5 1:5 alarm None", "0:5 1:7 alarm None", "0:5 alarm None", "1:5 alarm None"]);
}

/// Goal: the same one level further up, where the second one has to carry what the first one wrote late.
/// Method: all orders, three preemptions, all others asleep.
#[test]
fn two_go_idle_in_one_group_of_two() {
    let found = all(|| two_groups(&[8, 9]), &[|world| world.park(0), |world| world.park(1)], 3);
    assert!(found.runs > 500, "{} runs", found.runs);
}

/// Goal: the last CPUs of two groups go idle at the same time. Method: all orders, three preemptions.
#[test]
fn the_last_of_two_groups_go_idle() {
    let found = all(|| two_groups(&[1, 9]), &[|world| world.park(0), |world| world.park(8)], 3);
    assert!(found.runs > 500, "{} runs", found.runs);
}

/// Goal: race S in all its forms: one goes idle while the other of its group wakes up. Method: all orders,
/// three preemptions, with the other group asleep and awake.
#[test]
fn one_goes_idle_while_another_wakes() {
    let parts: [Part; 2] = [|world| world.park(0), |world| world.wake(1)];
    let asleep = all(|| two_groups(&[1, 8, 9]), &parts, 3);
    let awake = all(|| two_groups(&[1, 9]), &parts, 3);
    assert!(asleep.runs > 500 && awake.runs > 500, "{} and {} runs", asleep.runs, awake.runs);
}

/// Goal: a CPU that goes idle for good after others went back and forth above it. Method: three CPUs of three
/// levels, two preemptions.
#[test]
fn idle_and_awake_on_three_levels() {
    let parts: [Part; 3] = [
        |world| world.park(0),
        |world| {
            world.wake(1);
            world.park(1);
        },
        |world| world.park(9),
    ];
    let found = all(|| three_levels(&[1, 10]), &parts, 2);
    assert!(found.runs > 500, "{} runs", found.runs);
}

/// Goal: race L in all its forms: the last one goes idle while a timer is armed for a sleeping CPU of its
/// group, and of another. Method: all orders, three preemptions.
#[test]
fn the_last_goes_idle_while_a_timer_is_armed() {
    let near = all(|| two_groups(&[1, 8, 9]), &[|world| world.park(0), |world| world.arm(1, 3)], 3);
    let far = all(|| two_groups(&[1, 8, 9]), &[|world| world.park(0), |world| world.arm(9, 3)], 3);
    assert!(near.runs > 500 && far.runs > 500, "{} and {} runs", near.runs, far.runs);
}

/// Goal: two timers for sleeping CPUs, and no CPU awake: the one that is told has the first. Method: all
/// orders, three preemptions.
#[test]
fn two_timers_while_all_sleep() {
    let make = || two_groups(&[0, 1, 8, 9]);
    let found = all(make, &[|world| world.arm(1, 3), |world| world.arm(8, 4)], 3);
    assert!(found.runs > 500, "{} runs", found.runs);
}

/// Goal: a CPU wakes up while a timer is armed for it. Method: all orders, three preemptions; the CPU goes
/// idle again, so the timer has to be found.
#[test]
fn a_timer_for_a_cpu_that_wakes_up() {
    let back_and_forth: Part = |world| {
        world.wake(1);
        world.park(1);
    };
    let found = all(|| two_groups(&[0, 1, 8, 9]), &[back_and_forth, |world| world.arm(1, 3)], 3);
    assert!(found.runs > 500, "{} runs", found.runs);
}

/// Goal: a migrator pulls while the pulled CPU wakes up, runs its own and sleeps again. Method: all orders,
/// three preemptions.
#[test]
fn pulled_while_waking_up() {
    let parts: [Part; 2] = [
        |world| {
            world.look(0, 20);
        },
        |world| {
            world.wake(9);
            world.run_own(9, 20);
            world.park(9);
        },
    ];
    let found = all(|| two_groups(&[1, 8, 9]), &parts, 3);
    assert!(found.runs > 500, "{} runs", found.runs);
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
    let found = explore(&Scenario { make, parts: &parts, preemptions: 2, outcome });
    assert!(found.runs > 500, "{} runs", found.runs);
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
    let found = all(make, &parts, 3);
    assert!(found.runs > 300, "{} runs", found.runs);
}
