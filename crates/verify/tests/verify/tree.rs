//! The tree of the timer migration hierarchy, line by line: what differs, and in which words that is told.

use crate::trace::verify;

/// A machine of two nodes: two CPUs of each join.
const TREE: [&str; 9] = [
    "tmigr_group_set: group=0a lvl=0 numa=0",
    "tmigr_connect_cpu_parent: cpu=0 groupmask=1 parent=0a lvl=0 numa=0 num_children=1",
    "tmigr_connect_cpu_parent: cpu=1 groupmask=2 parent=0a lvl=0 numa=0 num_children=2",
    "tmigr_group_set: group=0b lvl=0 numa=1",
    "tmigr_group_set: group=0c lvl=1 numa=-1",
    "tmigr_connect_child_parent: group=0b groupmask=2 parent=0c lvl=1 numa=-1 num_children=2",
    "tmigr_connect_child_parent: group=0a groupmask=1 parent=0c lvl=1 numa=-1 num_children=2",
    "tmigr_connect_cpu_parent: cpu=8 groupmask=1 parent=0b lvl=0 numa=1 num_children=1",
    "tmigr_connect_cpu_parent: cpu=9 groupmask=2 parent=0b lvl=0 numa=1 num_children=2",
];

/// What the tree of these lines differs in: the line, from 1, what was expected, recorded, and why.
fn tree_difference(lines: &[&str]) -> Option<(u64, String)> {
    let nodes = "NUMA node0: CPUs 0-7; node1: CPUs 8-15";
    let mut text = format!("# cpus: possible 0-15, online at the end 0-15; sockets 2; {nodes}\n");
    for (number, line) in lines.iter().enumerate() {
        text += &format!("init-1 [000] ..... 0.{number:06}: {line}\n");
    }
    let first = verify(&text).tmigr.first_unexplained?;
    Some((first.line - 1, format!("{} | {} | {}", first.expected, first.recorded, first.why)))
}

/// Goal: a line of the tree is held against what the tree says, and told in words. Method: one line of
/// [`TREE`] changed.
#[test]
fn what_differs_in_the_tree_is_told() {
    assert_eq!(tree_difference(&TREE), None);
    for (number, from, to, told) in [
        (4, "numa=1", "numa=-1", "a group of a node | level 0, node -1 | a CPU's own group is of its node"),
        (5, "lvl=1", "lvl=2", "level 1, node -1 | level 2, node -1 | the tree makes another group here"),
        (5, "numa=-1", "numa=1", "level 1, node -1 | level 1, node 1 | the tree makes another group here"),
        (
            6,
            "groupmask=2",
            "groupmask=4",
            "child 2 of 000000000000000c, 2 children | group 000000000000000b as child 4 of 000000000000000c, 2 \
             children | the tree gives another place",
        ),
        (6, "lvl=1", "lvl=2", "level 1 | level 2 | the parent's level"),
        (
            7,
            "children=2",
            "children=1",
            "child 1 of 000000000000000c, 2 children | group 000000000000000a as child 1 of 000000000000000c, 1 \
             child | the tree gives another place",
        ),
        (
            8,
            "groupmask=1 parent=0b lvl=0 numa=1 num_children=1",
            "groupmask=8 parent=0b lvl=0 numa=1",
            "child 1 of 000000000000000b, 1 child | CPU 8 as child 8 of 000000000000000b, unknown children | the \
             tree gives another place",
        ),
        (8, "cpu=8", "cpu=2", "a CPU of node 1 | CPU 2 of node 0 | its group is of its node"),
        (3, "cpu=1", "cpu=0", "nothing | CPU 0 as child 2 of 000000000000000a | the CPU has a group already"),
    ] {
        let mut lines = TREE;
        let line = lines[number - 1].replace(from, to);
        lines[number - 1] = &line;
        assert_eq!(tree_difference(&lines), Some((number as u64, told.to_owned())), "{line}");
    }
}

/// Goal: a line of the tree that is missing shows where it is needed, and one too many where it is. Method:
/// some lines of [`TREE`], one of them twice.
#[test]
fn a_line_too_many_or_too_few_is_told() {
    let of = |lines: &[&[&str]]| tree_difference(&lines.concat());
    let told = |line, words: &str| Some((line, words.to_owned()));
    assert_eq!(
        of(&[&TREE[..2], &TREE[..1]]),
        told(3, "no new group | level 0, node 0 | a group of this node has room")
    );
    assert_eq!(
        of(&[&TREE[..6], &TREE[5..6]]),
        told(
            7,
            "nothing | group 000000000000000b as child 2 of 000000000000000c | the tree links no such group here"
        )
    );
    assert_eq!(
        of(&[&TREE[..4], &TREE[5..]]),
        told(
            5,
            "its parent first | group 000000000000000b as child 2 of 000000000000000c | the tree makes the group \
             above"
        )
    );
    assert_eq!(
        of(&[&TREE[..3], &TREE[7..]]),
        told(
            4,
            "its new group first | CPU 8 as child 1 of 000000000000000b | the tree makes a group for the CPU"
        )
    );
}
