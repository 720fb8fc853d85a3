//! The root moves up: a walk sees the link, or growth sees what the walk wrote.

use crate::ends::{Call, Model, Tree, check, explore, id, join, park, root_active, wake};

const GROW_BY_ONE: Call = |tree| {
    assert!(tree.connect(id(2)), "CPU 2 joins once");
    None
};

/// CPU 0 in a group of its own; CPU 2 is of another node and brings a root.
fn before_growth(is_asleep: bool) -> Tree {
    let tree = Tree::new(&[0, 0, 1]);
    join(&tree, 0);
    if is_asleep {
        park(&tree, 0, 10);
    }
    tree
}

/// Goal (18): CPU 0 wakes up below the old root; the new one is active in the end. Method: against growth.
#[test]
fn waking_up_below_a_new_root() {
    let end = |tree: &_, _: &[_]| {
        check(tree, None);
        assert_eq!(root_active(tree), 1, "CPU 0 is awake");
        String::new()
    };
    explore(Model { make: || before_growth(true), calls: &[GROW_BY_ONE, |tree| wake(tree, 0)], end }, &[""]);
}

/// Goal (8): CPU 0 goes idle below the old root; the new one is idle in the end and CPU 0 was told. Method:
/// against growth.
#[test]
fn going_idle_below_a_new_root() {
    let end = |tree: &_, returned: &[_]| {
        check(tree, None);
        assert_eq!(root_active(tree), 0, "nobody is awake");
        format!("{returned:?}")
    };
    let calls: &[Call] = &[GROW_BY_ONE, |tree| park(tree, 0, 10)];
    explore(Model { make: || before_growth(false), calls, end }, &["[None, Some(10)]"]);
}

/// Goal (12): growth by two levels; who sees the link to the group between sees that group's link, too.
/// Method: CPU 0 wakes up against it.
#[test]
fn group_init_visibility() {
    let make = || {
        let nodes: Vec<u16> = (0..17).map(|cpu| u16::from(cpu >= 9)).collect();
        let tree = Tree::new(&nodes);
        join(&tree, 0);
        park(&tree, 0, 10);
        tree
    };
    let end = |tree: &_, _: &[_]| {
        check(tree, None);
        assert_eq!(root_active(tree), 1, "CPU 0 is awake");
        String::new()
    };
    explore(Model { make, calls: &[|tree| wake(tree, 0), GROW_BY_TWO], end }, &[""]);
}

const GROW_BY_TWO: Call = |tree| {
    assert!(tree.connect(id(9)), "CPU 9 joins once");
    None
};
