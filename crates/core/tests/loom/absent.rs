//! A mark against the return: the record decides, and neither waits for the other for long.

use crate::ends::{Call, Model, Tree, asleep, assert_told, check, explore, id, park, root_active};
use quietcore_core::Nanos;
use quietcore_core::tmigr::CpuState;

fn mark(tree: &Tree, cpu: usize, next: u64) -> Option<u64> {
    tree.go_absent(id(cpu), Some(Nanos(next))).map(Nanos::as_u64)
}

const MARK_AND_PARK: Call = |tree| {
    mark(tree, 0, 10);
    park(tree, 2, 12)
};

/// Whether it came back.
fn try_return(tree: &Tree, cpu: usize) -> Option<u64> {
    tree.try_activate(id(cpu)).then_some(1)
}

/// Goal: CPU 0 is absent or awake, and the masks say the same; a return that found the record taken did not
/// happen. Method: CPU 0 is absent and is marked again while it comes back; no other CPU is awake.
#[test]
fn mark_against_return() {
    let make = || {
        let tree = asleep(&[(1, 11), (2, 12)]);
        mark(&tree, 0, 10);
        tree
    };
    let end = |tree: &Tree, returned: &[Option<u64>]| {
        check(tree, returned[0].or(Some(10)));
        let state = tree.cpu_state(id(0));
        assert_eq!(root_active(tree), u8::from(state == CpuState::Awake), "CPU 0 is {state:?}");
        assert!(returned[1].is_some() || state == CpuState::Absent, "it came back without the record");
        format!("{state:?} {returned:?}")
    };
    explore(
        Model { make, calls: &[|tree| mark(tree, 0, 9), |tree| try_return(tree, 0)], end },
        &["Absent [Some(9), None]", "Absent [Some(9), Some(1)]", "Awake [Some(9), Some(1)]"],
    );
}

/// Goal: a watcher marks CPU 0 and goes idle while CPU 0 goes idle by itself: a CPU is told of the first
/// timer. Method: the other group is the watcher's.
#[test]
fn mark_against_going_idle() {
    let end = |tree: &Tree, returned: &[Option<u64>]| {
        let returned = assert_told(tree, returned, 10);
        format!("{:?} {returned}", tree.cpu_state(id(0)))
    };
    explore(
        Model { make: || asleep(&[(1, 11)]), calls: &[MARK_AND_PARK, |tree| park(tree, 0, 10)], end },
        &["Absent [Some(10), None]", "Parked [Some(10), None]", "Parked [Some(10), Some(10)]"],
    );
}
