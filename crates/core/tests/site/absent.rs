//! Stalled CPUs: marked by others, coming back by themselves (PROTOCOL: mark and return).
//!
//! CPU 0 stalls, CPU 8 watches. A mark that finds a lock taken is not made; a CPU that finds one taken goes
//! on as absent. Either way its timers are seen by a CPU.

use crate::play::{Part, Scenario, all, explore};
use crate::search::Search;
use crate::world::{World, two_groups};

const MARK: Part = |world| {
    world.mark_absent(0);
};

/// The watcher marks and goes idle.
const MARK_AND_PARK: Part = |world| {
    world.mark_absent(0);
    world.park(8);
};

const TRY_RETURN: Part = |world| {
    world.try_return(0);
};

/// Goal: a CPU that is marked while it comes back is absent or awake, and never half of it. Method: all
/// orders, three preemptions; both ends are reached.
#[test]
fn mark_against_return() {
    let make = || {
        let world = two_groups(&[1, 9]);
        assert!(world.mark_absent(0), "nobody holds its locks");
        world
    };
    let outcome = |world: &World| format!("{:?}", world.cpu_state(0));
    explore(&Scenario { make: &make, parts: &[TRY_RETURN, MARK], outcome }, Search::new(3))
        .assert_more_than(50)
        .assert_outcomes(&["Absent", "Awake"]);
}

/// Goal: the watcher marks and goes idle; the stalled CPU comes back meanwhile, and is awake or was told.
/// Method: all orders, three preemptions; it tries twice.
#[test]
fn the_watcher_goes_idle_after_the_mark() {
    let try_twice: Part = |world| {
        let _ = world.try_return(0) || world.try_return(0);
    };
    all(|| two_groups(&[1, 9]), &[MARK_AND_PARK, try_twice], 3).assert_more_than(1000);
}

/// Goal: a CPU goes idle by itself while it is marked. Method: all orders, three preemptions, with the last
/// watcher going idle, too.
#[test]
fn mark_against_going_idle() {
    all(|| two_groups(&[1, 9]), &[MARK_AND_PARK, |world| world.park(0)], 3).assert_more_than(1000);
}

/// Goal: a timer armed on a CPU that is being marked is published by the mark or by the CPU that arms it.
/// Method: three CPUs, two preemptions.
#[test]
fn mark_against_a_new_timer() {
    let parts = [MARK_AND_PARK, |world| world.arm(0, 3), TRY_RETURN];
    all(|| two_groups(&[1, 9]), &parts, 2).assert_more_than(1000);
}

/// Goal: a CPU that was told to wake up for all is marked as absent: its duty is handed to the caller.
/// Method: all orders with another that goes idle, three preemptions.
#[test]
fn mark_of_the_one_who_was_told() {
    all(|| two_groups(&[1, 8, 9, 0]), &[MARK, |world| world.wake_and_park(8)], 3).assert_more_than(1000);
}
