//! The tree: what the kernel builds is what the project's own [`Tree`] builds for the same CPUs.
//!
//! Decides whether `tmigr_group_set`, `tmigr_connect_cpu_parent` and `tmigr_connect_child_parent` are right:
//! number of levels, groups in the order in which they are made, which group a CPU or a group joins, its
//! mask, the number of children. A CPU joins in several lines; the tree says which, for the node of its first
//! group. One thing is left open: whether the old root is linked before the CPU (up to 6.18) or after it
//! (6.19 on).

use super::state::{CpuModel, GroupIndex, GroupModel, HierarchyState};
use quietcore_core::tmigr::{ChildMask, GroupId, Levels, Tree};
use quietcore_core::{CpuId, CpuSet};
use quietcore_trace::{Header, Migration, counted};

/// So many CPUs can join.
const JOINS_MAX: usize = quietcore_core::CPU_LIMIT as usize;

/// A line of the tree that is not what the tree says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TreeDifference {
    pub(super) expected: String,
    pub(super) recorded: String,
    pub(super) why: &'static str,
}

/// What a line says of a child's place.
#[derive(Clone, Copy, Debug)]
struct RecordedLink {
    mask: u32,
    parent: u64,
    child_count: Option<u64>,
}

/// What the tree says of it.
#[derive(Clone, Copy, Debug)]
struct TreeLink {
    parent: GroupIndex,
    mask: ChildMask,
    count: u64,
}

/// The lines of one CPU's joining that are still to come.
#[derive(Debug)]
struct Joining {
    node: u16,
    new_groups: Vec<GroupId>,
    links: Vec<(GroupId, GroupId)>,
    leaf: Option<(GroupId, ChildMask)>,
    old_root: Option<GroupId>,
}

#[derive(Debug)]
pub(super) struct TreeBuilder {
    tree: Tree,
    levels: Levels,
    /// The CPUs of each node, as far as the header says.
    nodes: Vec<CpuSet>,
    joining: Option<Joining>,
    joins: usize,
}

impl TreeBuilder {
    /// `None` when the header does not say how many CPUs there are.
    pub(super) fn new(header: &Header) -> Option<Self> {
        let levels = Levels::new(header.cpu_count?, header.nodes.len().max(1) as u16);
        Some(Self { tree: Tree::new(levels), levels, nodes: header.nodes.clone(), joining: None, joins: 0 })
    }

    /// The number of levels against what the kernel wrote into its log.
    pub(super) fn check_levels(&self, header: &Header) -> Result<(), TreeDifference> {
        let Levels { count, crossing } = self.levels;
        match header.hierarchy_levels {
            Some(logged) if logged != (u64::from(count), u64::from(crossing)) => Err(TreeDifference {
                expected: levels(u64::from(count), u64::from(crossing)),
                recorded: levels(logged.0, logged.1),
                why: "the kernel's log has other levels",
            }),
            _ => Ok(()),
        }
    }

    /// Whether more CPUs joined than there can be.
    pub(super) fn is_full(&self) -> bool {
        self.joins >= JOINS_MAX
    }

    /// Takes a line of the tree; the state gets what the tree says.
    pub(super) fn take(
        &mut self,
        migration: &Migration,
        state: &mut HierarchyState,
    ) -> Result<(), TreeDifference> {
        match *migration {
            Migration::GroupSet { group, level, node } => self.group_set(state, group, level, node),
            Migration::ConnectCpu { cpu, mask, parent, child_count } => {
                self.connect_cpu(state, cpu, RecordedLink { mask, parent, child_count })
            }
            Migration::ConnectGroup { group, mask, parent, level, child_count } => {
                self.connect_group(state, group, RecordedLink { mask, parent, child_count }, level)
            }
            _ => Ok(()),
        }
    }

    fn group_set(
        &mut self,
        state: &mut HierarchyState,
        identity: u64,
        level: u64,
        node: i64,
    ) -> Result<(), TreeDifference> {
        if self.joining.as_ref().is_some_and(|joining| joining.new_groups.is_empty()) {
            self.joining = None; // what is missing shows where it is used
        }
        let recorded = format!("level {level}, node {node}");
        if self.joining.is_none() {
            let Ok(first) = u16::try_from(node) else {
                return Err(difference("a group of a node", recorded, "a CPU's own group is of its node"));
            };
            self.begin(first);
        }
        let Some(joining) = self.joining.as_mut().filter(|joining| !joining.new_groups.is_empty()) else {
            return Err(difference("no new group", recorded, "a group of this node has room"));
        };
        let made = joining.new_groups.remove(0);
        let shape = self.tree.group(made);
        let expected = (u64::from(shape.level), shape.node.map_or(-1, i64::from));
        let (index, count) = (made.index(), state.group_count());
        if index == count {
            state.add_group(GroupModel::new(identity, expected.0, expected.1));
        }
        if joining.new_groups.is_empty() && joining.links.is_empty() && joining.leaf.is_none() {
            self.joining = None;
        }
        if expected == (level, node) && index == count {
            return Ok(());
        }
        let expected = format!("level {}, node {}", expected.0, expected.1);
        Err(difference(&expected, recorded, "the tree makes another group here"))
    }

    /// A CPU of `node` begins to join; one that needs no new group is connected by its first line.
    fn begin(&mut self, node: u16) {
        let join = self.tree.join(node);
        self.joins += 1;
        let (new_groups, links) = (join.new_groups, join.new_links);
        let joining = Joining { node, new_groups, links, leaf: Some(join.leaf), old_root: join.old_root };
        self.joining = Some(joining);
    }

    fn node_of(&self, cpu: CpuId) -> u16 {
        self.nodes.iter().position(|cpus| cpus.contains(cpu)).unwrap_or(0) as u16
    }

    fn connect_cpu(
        &mut self,
        state: &mut HierarchyState,
        cpu: CpuId,
        link: RecordedLink,
    ) -> Result<(), TreeDifference> {
        let number = cpu.index() as u16;
        let recorded = format!("CPU {cpu} as child {:x} of {:016x}", link.mask, link.parent);
        if state.cpu(number).is_some() {
            return Err(difference("nothing", recorded, "the CPU has a group already"));
        }
        let node = self.node_of(cpu);
        // The old root's link is the only line that may come later.
        if self.joining.as_ref().is_none_or(|joining| joining.leaf.is_none()) {
            self.begin(node);
        }
        let Some(joining) = &mut self.joining else { return Ok(()) };
        let (made, joined) = (joining.new_groups.is_empty(), joining.node);
        let Some((group, mask)) = joining.leaf.take() else { return Ok(()) };
        if joining.links.is_empty() {
            self.joining = None;
        }
        let index = group.index() as GroupIndex;
        if state.group_count() <= group.index() {
            return Err(difference("its new group first", recorded, "the tree makes a group for the CPU"));
        }
        state.add_cpu(number, CpuModel::new(index, mask));
        let count = u64::from(mask.slot()) + 1;
        self.compare_link(state, TreeLink { parent: index, mask, count }, link, recorded)?;
        if made && joined == node {
            return Ok(());
        }
        let expected = format!("a CPU of node {joined}");
        Err(difference(&expected, format!("CPU {cpu} of node {node}"), "its group is of its node"))
    }

    fn connect_group(
        &mut self,
        state: &mut HierarchyState,
        child: u64,
        link: RecordedLink,
        level: u64,
    ) -> Result<(), TreeDifference> {
        let recorded = format!("group {child:016x} as child {:x} of {:016x}", link.mask, link.parent);
        let why = "the tree links no such group here";
        let known = state.number_of(child);
        let joining = self.joining.as_mut();
        let found = joining.zip(known).and_then(|(joining, known)| {
            let place = joining.links.iter().position(|(child, _)| child.index() == usize::from(known))?;
            let (child, parent) = joining.links.remove(place);
            Some((child, parent, joining.old_root == Some(child), joining.links.is_empty(), joining.leaf))
        });
        let Some((child, parent, is_old_root, is_last, leaf)) = found else {
            return Err(difference("nothing", recorded, why));
        };
        if is_last && leaf.is_none() {
            self.joining = None;
        }
        let (index, above) = (child.index() as GroupIndex, parent.index() as GroupIndex);
        let Some((_, mask)) = self.tree.group(child).parent else { return Ok(()) };
        if state.group_count() <= parent.index() {
            return Err(difference("its parent first", recorded, "the tree makes the group above"));
        }
        state.group_mut(index).parent = Some((above, mask));
        let shape = self.tree.group(parent);
        if is_old_root {
            state.set_growth(Some((above, index)));
        }
        // The old root of a new top was counted when the top was made.
        let is_counted = mask.slot() == 0 && shape.parent.is_none();
        let count = if is_counted { u64::from(shape.child_count) } else { u64::from(mask.slot()) + 1 };
        self.compare_link(state, TreeLink { parent: above, mask, count }, link, recorded.clone())?;
        if u64::from(shape.level) == level {
            return Ok(());
        }
        Err(difference(&format!("level {}", shape.level), format!("level {level}"), "the parent's level"))
    }

    fn compare_link(
        &self,
        state: &HierarchyState,
        expected: TreeLink,
        found: RecordedLink,
        recorded: String,
    ) -> Result<(), TreeDifference> {
        let TreeLink { parent, mask, count } = expected;
        let identity = state.group(parent).identity;
        let is_count = found.child_count.is_none_or(|found| found == count);
        if found.mask == u32::from(mask.bits()) && found.parent == identity && is_count {
            return Ok(());
        }
        let children = |count| counted(count, "child", "children");
        let expected = format!("child {mask} of {identity:016x}, {}", children(count));
        let count = found.child_count.map_or("unknown children".to_owned(), children);
        Err(difference(&expected, format!("{recorded}, {count}"), "the tree gives another place"))
    }
}

fn levels(count: u64, crossing: u64) -> String {
    format!("{}, nodes meet at level {crossing}", counted(count, "level", "levels"))
}

fn difference(expected: &str, recorded: String, why: &'static str) -> TreeDifference {
    TreeDifference { expected: expected.to_owned(), recorded, why }
}
