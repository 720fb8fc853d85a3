//! The shape of the tree: how many levels, which group a CPU or a group joins, when the tree grows.
//!
//! Built one CPU at a time, in the order in which CPUs first come online, as in the kernel: a group is looked
//! up before one is made, and the root moves up only when it has to. Pure and sequential; a caller that
//! shares a tree brings the lock, and learns from [`Join`] what to publish in which order.
//!
//! Invariants ([`Tree::check`], T6): the children of a group have distinct masks, at most eight; there is one
//! root; below the crossing level a group's CPUs are of one node. Groups are never taken away.
//!
//! Source: Linux 6.12 and 6.18, kernel/time/timer_migration.c (`tmigr_init`, `tmigr_setup_groups`), compared
//! with recordings. Deviation: the kernel counts levels from averages and warns when an uneven machine needs
//! one more; here the tree goes up until one group is left.

use super::state::{CHILDREN, ChildMask};
use alloc::vec::Vec;

/// A group's number: groups are numbered in the order in which they were made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub(crate) u16);

impl GroupId {
    /// For indexing.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A group as the tree knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupShape {
    /// 0 is the level of the CPUs' own groups.
    pub level: u8,
    /// NUMA node of all CPUs below; `None` from the crossing level on.
    pub node: Option<u16>,
    /// The group above and this group's mask there.
    pub parent: Option<(GroupId, ChildMask)>,
    /// Masks given out; one may be kept back for the old root.
    pub child_count: u8,
}

/// How many levels, and from which on a group may have children of several nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels {
    /// Levels of a machine that is evenly filled.
    pub count: u8,
    /// The first level whose groups may cross nodes.
    pub crossing: u8,
}

impl Levels {
    /// For `cpus` possible CPUs on `nodes` nodes. Zero counts as one.
    #[must_use]
    pub fn new(cpus: u16, nodes: u16) -> Self {
        let nodes = nodes.max(1);
        let crossing = levels_for(cpus.max(1).div_ceil(nodes));
        Self { count: crossing + levels_for(nodes), crossing }
    }
}

/// Levels of eight children each that `count` leaves need.
fn levels_for(count: u16) -> u8 {
    let bits = u16::BITS - (count - 1).leading_zeros();
    bits.div_ceil(CHILDREN.trailing_zeros()) as u8
}

/// What joining a CPU changed, in the order in which it must be published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Join {
    /// The CPU's group and its mask there.
    pub leaf: (GroupId, ChildMask),
    /// Groups that are new, from below to above.
    pub new_groups: Vec<GroupId>,
    /// Groups that got a parent, with it, from above to below; the old root, if it did, and groups made
    /// above it come last.
    pub new_links: Vec<(GroupId, GroupId)>,
    /// The root until now, if there is a new one.
    pub old_root: Option<GroupId>,
}

/// The groups of a machine and how they hang together.
#[derive(Clone, Debug)]
pub struct Tree {
    levels: Levels,
    groups: Vec<GroupShape>,
    root: Option<GroupId>,
}

impl Tree {
    /// No groups.
    #[must_use]
    pub const fn new(levels: Levels) -> Self {
        Self { levels, groups: Vec::new(), root: None }
    }

    /// All groups, in the order in which they were made.
    #[must_use]
    pub fn groups(&self) -> &[GroupShape] {
        &self.groups
    }

    /// One of them.
    ///
    /// # Panics
    /// When `group` is of another tree.
    #[must_use]
    pub fn group(&self, group: GroupId) -> GroupShape {
        self.groups[group.index()]
    }

    /// The top; `None` while there is no group.
    #[must_use]
    pub const fn root(&self) -> Option<GroupId> {
        self.root
    }

    /// The most groups that `cpus` CPUs, so many on each node, can ever need.
    pub(crate) fn capacity(cpus_per_node: &[u16], levels: Levels) -> usize {
        let mut total = 0;
        let mut counts: Vec<usize> = cpus_per_node.iter().map(|&cpus| usize::from(cpus)).collect();
        for level in 0.. {
            if level >= levels.crossing && counts.len() > 1 {
                counts = alloc::vec![counts.iter().sum()];
            }
            // A new root keeps one mask back, so one more than the children need may be made.
            counts.iter_mut().for_each(|count| *count = count.div_ceil(CHILDREN) + usize::from(*count > 1));
            total += counts.iter().sum::<usize>();
            if level >= levels.count && counts.iter().sum::<usize>() <= 2 {
                break;
            }
        }
        total
    }

    /// A CPU of `node` joins, for the first time. Groups are made as needed.
    pub fn join(&mut self, node: u16) -> Join {
        let first_new = self.groups.len();
        let path = self.path(node, 0);
        let (leaf, top) = (path[0], *path.last().unwrap_or(&path[0]));
        let old_root = self.root;
        let is_new_root = self.group(top).parent.is_none() && old_root != Some(top);
        if is_new_root {
            self.root = Some(top);
            // The old root becomes child 0: its mask is given away before any other.
            self.groups[top.index()].child_count += u8::from(old_root.is_some());
        }
        let mut new_links = self.connect(&path);
        let leaf = (leaf, self.take_mask(leaf));
        let old_root = old_root.filter(|_| is_new_root);
        if let Some(old) = old_root {
            let shape = self.group(old);
            let mut path = alloc::vec![old];
            path.extend(self.path(shape.node.unwrap_or(node), shape.level + 1));
            let below_top = path.len() - 2;
            let mask = ChildMask::new(0).expect("0 is below 8");
            self.groups[path[below_top].index()].parent = Some((top, mask));
            new_links.push((path[below_top], top));
            new_links.extend(self.connect(&path[..=below_top]));
        }
        let new_groups = (first_new..self.groups.len()).map(|index| GroupId(index as u16)).collect();
        Join { leaf, new_groups, new_links, old_root }
    }

    /// The groups from `level` up to the first that has a parent, or to the one that has no company.
    fn path(&mut self, node: u16, level: u8) -> Vec<GroupId> {
        let mut path = Vec::new();
        for level in level.. {
            let group = self.find_or_make(level, node);
            path.push(group);
            if self.group(group).parent.is_some() || self.is_top(level, node) {
                break;
            }
        }
        path
    }

    /// Whether `level` may be the last: it holds one group, and the root there is no stranger to `node`.
    fn is_top(&self, level: u8, node: u16) -> bool {
        let is_single = self.groups.iter().filter(|group| group.level == level).count() == 1;
        let root = self.root.map(|root| self.group(root));
        let is_mismatch = root.is_some_and(|root| root.node.is_some_and(|other| other != node));
        is_single && (level >= self.levels.crossing || !is_mismatch)
    }

    fn find_or_make(&mut self, level: u8, node: u16) -> GroupId {
        let node = (level < self.levels.crossing).then_some(node);
        let fits = |group: &GroupShape| {
            group.level == level && group.node == node && usize::from(group.child_count) < CHILDREN
        };
        let index = self.groups.iter().position(fits).unwrap_or_else(|| {
            self.groups.push(GroupShape { level, node, parent: None, child_count: 0 });
            self.groups.len() - 1
        });
        GroupId(index as u16)
    }

    /// Gives every group of `path` that has no parent the next one as its parent, from above to below.
    fn connect(&mut self, path: &[GroupId]) -> Vec<(GroupId, GroupId)> {
        let mut links = Vec::new();
        for pair in path.windows(2).rev() {
            if self.group(pair[0]).parent.is_none() {
                let mask = self.take_mask(pair[1]);
                self.groups[pair[0].index()].parent = Some((pair[1], mask));
                links.push((pair[0], pair[1]));
            }
        }
        links
    }

    fn take_mask(&mut self, group: GroupId) -> ChildMask {
        let group = &mut self.groups[group.index()];
        let mask = ChildMask::new(group.child_count).expect("a group with room was looked up");
        group.child_count += 1;
        mask
    }

    /// Asserts T6.
    ///
    /// # Panics
    /// When the shape is broken.
    pub fn check(&self) {
        let roots = self.groups.iter().filter(|group| group.parent.is_none()).count();
        assert!(roots <= 1, "T6: {roots} roots");
        let mut masks = alloc::vec![0_u8; self.groups.len()];
        for (index, group) in self.groups.iter().enumerate() {
            let Some((parent, mask)) = group.parent else {
                assert!(self.root == Some(GroupId(index as u16)), "T6: group {index} has no parent");
                continue;
            };
            assert!(masks[parent.index()] & mask.bits() == 0, "T6: mask {mask} twice in {parent:?}");
            masks[parent.index()] |= mask.bits();
            let above = self.group(parent);
            assert!(above.level == group.level + 1, "T6: group {index} skips a level");
            assert!(above.node.is_none() || above.node == group.node, "T6: group {index} in another node");
        }
        for (group, masks) in self.groups.iter().zip(masks).filter(|(group, _)| group.level > 0) {
            assert!(masks.count_ones() == u32::from(group.child_count), "T6: a mask of nobody in {group:?}");
        }
    }
}
