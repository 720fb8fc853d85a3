//! A group's word and its parent's: the walker that writes the parent last has read the newest child.

use crate::ends::{Call, Model, Tree, asleep, assert_told, check, explore, park, root_active, wake};

/// Goal: race S: CPU 0 goes idle while CPU 1 of its group wakes up; the root ends with the group active.
/// Method: the other group sleeps, so nothing else holds the root's bit.
#[test]
fn going_idle_against_waking_up() {
    let make = || asleep(&[(1, 11), (2, 12)]);
    let end = |tree: &_, returned: &[_]| {
        check(tree, None);
        assert_eq!(root_active(tree), 1, "CPU 1 is awake");
        format!("{returned:?}")
    };
    explore(
        Model { make, calls: &[|tree| park(tree, 0, 10), |tree| wake(tree, 1)], end },
        &["[None, None]", "[Some(10), None]", "[Some(12), None]"],
    );
}

/// Goal: two CPUs of one group go idle at the same time; one of them carries both timers up. Method: the
/// other group sleeps; a CPU is told the first of all.
#[test]
fn two_go_idle() {
    let calls: &[Call] = &[|tree| park(tree, 0, 10), |tree| park(tree, 1, 11)];
    explore(
        Model { make: || asleep(&[(2, 12)]), calls, end: |tree, returned| assert_told(tree, returned, 10) },
        &["[None, Some(10)]", "[Some(10), None]", "[Some(10), Some(10)]", "[Some(10), Some(11)]"],
    );
}

fn wake_and_park(tree: &Tree, cpu: usize, next: u64) -> Option<u64> {
    wake(tree, cpu);
    park(tree, cpu, next)
}

/// Goal: a CPU that wakes up and goes idle again ignores its group's event and counts it again, in that
/// order, also where another makes the group idle. Method: CPU 1 wakes up and CPU 0 goes idle last, or the
/// other way round; `check` compares every event with what was published.
#[test]
fn ignored_events_count_again() {
    let calls: &[Call] = &[|tree| wake_and_park(tree, 0, 10), |tree| wake_and_park(tree, 1, 11)];
    let make = || asleep(&[(0, 10), (1, 11), (2, 12)]);
    explore(
        Model { make, calls, end: |tree, returned| assert_told(tree, returned, 10) },
        &[
            "[None, Some(10)]",
            "[Some(10), None]",
            "[Some(10), Some(10)]",
            "[Some(10), Some(11)]",
            "[Some(10), Some(12)]",
            "[Some(12), Some(10)]",
        ],
    );
}
