//! The shape that joining leaves: one root, nodes apart below the crossing level. Bugs 14 and 15 of the table
//! in `src/tmigr/README.md`.

use quietcore_core::tmigr::{GroupShape, Levels, Tree};

/// Joins CPUs of these nodes one after the other; asserts T6 each time.
fn grow(nodes: impl Iterator<Item = u16> + Clone) -> Tree {
    let cpus = nodes.clone().count() as u16;
    let node_count = nodes.clone().max().map_or(1, |last| last + 1);
    let mut tree = Tree::new(Levels::new(cpus, node_count));
    for node in nodes {
        let join = tree.join(node);
        tree.check();
        let root = tree.root().expect("somebody joined");
        assert_eq!(tree.group(root).parent, None, "the root after {join:?}");
    }
    tree
}

fn of_level(tree: &Tree, level: u8) -> Vec<&GroupShape> {
    tree.groups().iter().filter(|group| group.level == level).collect()
}

/// Goal (14): each time the root moves up the old one hangs below the new one, and is counted there once.
/// Method: CPUs one by one past 8, 64 and 512; the groups of each level are as few as eight children each
/// allow.
#[test]
fn root_off_by_one() {
    for cpus in [1_usize, 8, 9, 16, 17, 63, 64, 65, 72, 511, 512, 513, 600] {
        let tree = grow((0..cpus).map(|_| 0));
        let leaves = of_level(&tree, 0);
        assert_eq!(leaves.len(), cpus.div_ceil(8), "{cpus} CPUs");
        let members: usize = leaves.iter().map(|group| usize::from(group.child_count)).sum();
        assert_eq!(members, cpus, "each CPU is counted once");
        let roots = tree.groups().iter().filter(|group| group.parent.is_none()).count();
        assert_eq!(roots, 1, "{cpus} CPUs");
        let root = tree.root().map(|root| tree.group(root)).expect("there is one");
        assert_eq!(root.level + 1, Levels::new(cpus as u16, 1).count.max(1), "{cpus} CPUs");
    }
}

/// Goal (15): a CPU of a second node does not hang the first node's groups below its own. Method: nodes that
/// come up one after the other, in turns, and unevenly; below the crossing level a group's parent is of its
/// node.
#[test]
fn numa_imbalance() {
    let shapes: [&dyn Fn(u16) -> u16; 4] =
        [&|cpu| cpu / 24, &|cpu| cpu % 2, &|cpu| u16::from(cpu > 0), &|cpu| u16::from(cpu >= 40)];
    for (number, node_of) in (0..).zip(shapes) {
        let tree = grow((0..48).map(node_of));
        let crossing = Levels::new(48, 2).crossing;
        for group in tree.groups() {
            assert_eq!(group.node.is_none(), group.level >= crossing, "shape {number}: {group:?}");
            let Some((parent, _)) = group.parent else { continue };
            let above = tree.group(parent).node;
            assert!(above.is_none() || above == group.node, "shape {number}: {group:?} below {above:?}");
        }
    }
}
