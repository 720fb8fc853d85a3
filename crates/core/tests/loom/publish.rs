//! Timers of sleeping CPUs: the second to take a group's lock sees the first.

use crate::ends::{Call, Model, Tree, asleep, assert_told, check, explore, id, park, wake};
use quietcore_core::Nanos;

fn publish(tree: &Tree, cpu: usize, next: u64) -> Option<u64> {
    tree.publish(id(cpu), Some(Nanos(next))).map(Nanos::as_u64)
}

/// Goal: race L: the last one goes idle while a timer is published for a sleeping CPU of its group: one of
/// them is told. Method: the root is two locks away.
#[test]
fn the_last_goes_idle() {
    let calls: &[Call] = &[|tree| park(tree, 0, 10), |tree| publish(tree, 1, 3)];
    let make = || asleep(&[(1, 11), (2, 12)]);
    explore(
        Model { make, calls, end: |tree, returned| assert_told(tree, returned, 3) },
        &["[Some(10), Some(3)]", "[Some(3), None]", "[Some(3), Some(3)]"],
    );
}

/// Goal: a CPU wakes up while its timer is published by another one: the event counts or is ignored with the
/// CPU awake. Method: all others sleep.
#[test]
fn its_cpu_wakes_up() {
    let make = || asleep(&[(0, 10), (1, 11), (2, 12)]);
    let end = |tree: &_, returned: &[_]| {
        check(tree, None);
        format!("{returned:?}")
    };
    explore(
        Model { make, calls: &[|tree| wake(tree, 1), |tree| publish(tree, 1, 3)], end },
        &["[None, None]", "[None, Some(3)]"],
    );
}

/// Goal: the same with another CPU of the group, which becomes the migrator of the event. Method: all others
/// sleep; the one that wakes up polls the timer in the end.
#[test]
fn another_wakes_up() {
    let make = || asleep(&[(0, 10), (1, 11), (2, 12)]);
    let end = |tree: &Tree, returned: &[_]| {
        check(tree, None);
        assert!(tree.requires_handle_remote(id(0), Nanos(3)), "CPU 0 is awake and has to look");
        format!("{returned:?}")
    };
    explore(
        Model { make, calls: &[|tree| wake(tree, 0), |tree| publish(tree, 1, 3)], end },
        // 12: it took the root for idle, and CPU 0's group for seen to: both only too early.
        &["[None, None]", "[None, Some(12)]", "[None, Some(3)]"],
    );
}
