//! Stalled CPUs: marked by others, coming back by themselves (PROTOCOL: mark and return).
//!
//! CPU 0 stalls, CPU 8 watches. A mark that finds a lock taken is not made; a CPU that finds one taken goes
//! on as absent. Either way its timers are seen by a CPU.

use crate::play::{Part, Scenario, all, explore};
use crate::world::{World, two_groups};

/// Goal: a CPU that is marked while it comes back is absent or awake, and never half of it. Method: all
/// orders, three preemptions; both ends are reached.
#[test]
fn mark_against_return() {
    let make = || {
        let world = two_groups(&[1, 9]);
        assert!(world.mark_absent(0), "nobody holds its locks");
        world
    };
    let parts: [Part; 2] = [
        |world| {
            world.try_return(0);
        },
        |world| {
            world.mark_absent(0);
        },
    ];
    let outcome = |world: &World| format!("{:?}", world.cpu_state(0));
    let found = explore(&Scenario { make, parts: &parts, preemptions: 3, outcome });
    assert!(found.runs > 50, "{} runs", found.runs);
    found.expect_outcomes(&["Absent", "Awake"]);
}

/// Goal: the watcher marks and goes idle; the stalled CPU comes back meanwhile. A CPU is awake or was told.
/// Method: all orders, three preemptions.
#[test]
fn the_watcher_goes_idle_after_the_mark() {
    let parts: [Part; 2] = [
        |world| {
            world.mark_absent(0);
            world.park(8);
        },
        |world| {
            if !world.try_return(0) {
                world.try_return(0);
            }
        },
    ];
    let found = all(|| two_groups(&[1, 9]), &parts, 3);
    assert!(found.runs > 1000, "{} runs", found.runs);
}

/// Goal: a CPU goes idle by itself while it is marked. Method: all orders, three preemptions, with the last
/// watcher going idle, too.
#[test]
fn mark_against_going_idle() {
    let parts: [Part; 2] = [
        |world| {
            world.mark_absent(0);
            world.park(8);
        },
        |world| world.park(0),
    ];
    let found = all(|| two_groups(&[1, 9]), &parts, 3);
    assert!(found.runs > 1000, "{} runs", found.runs);
}

/// Goal: a timer armed on a CPU that is being marked is published by the mark or by the CPU that arms it.
/// Method: three CPUs, two preemptions.
#[test]
fn mark_against_a_new_timer() {
    let parts: [Part; 3] = [
        |world| {
            world.mark_absent(0);
            world.park(8);
        },
        |world| world.arm(0, 3),
        |world| {
            world.try_return(0);
        },
    ];
    let found = all(|| two_groups(&[1, 9]), &parts, 2);
    assert!(found.runs > 1000, "{} runs", found.runs);
}

/// Goal: a CPU that was told to wake up for all is marked as absent: its duty is handed to the caller.
/// Method: all orders with another that goes idle, three preemptions.
#[test]
fn mark_of_the_one_who_was_told() {
    let parts: [Part; 2] = [
        |world| {
            world.mark_absent(0);
        },
        |world| {
            world.wake(8);
            world.park(8);
        },
    ];
    let found = all(|| two_groups(&[1, 8, 9, 0]), &parts, 3);
    assert!(found.runs > 1000, "{} runs", found.runs);
}
