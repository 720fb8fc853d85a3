//! Growth: a CPU joins the tree, and the root moves up when it has to.

use super::event::{AtBusyGroup, TreeChild};
use super::hierarchy::Hierarchy;
use super::presence::waited;
use super::shape::GroupId;
use super::walk::Walker;
use crate::sync::interleave;
use crate::{CpuId, RawLock};

impl<L: RawLock> Hierarchy<L> {
    /// `cpu` joins, before it comes online for the first time; says whether it was the first time. By an
    /// online CPU, one at a time (a lock sees to that). Returns only when the tree is whole.
    pub fn connect(&self, cpu: CpuId) -> bool {
        let this = self.cpu(cpu);
        let mut tree = self.tree.lock_remote();
        if this.leaf().is_some() {
            return false;
        }
        let join = tree.join(self.nodes[cpu.index()]);
        assert!(tree.groups().len() <= self.groups.len(), "more groups than were allocated for");
        for &(group, parent) in &join.new_links {
            let Some((_, mask)) = tree.group(group).parent else { continue };
            self.groups[parent.index()].set_child(mask, group.index());
            self.groups[group.index()].set_parent((parent.index(), mask));
        }
        let (leaf, mask) = (join.leaf.0.index(), join.leaf.1);
        self.groups[leaf].set_child(mask, cpu.index());
        this.set_leaf((leaf, mask));
        if let Some(old_root) = join.old_root {
            self.carry_up(old_root);
        }
        true
    }

    /// Tells a new root whether the old one is active.
    ///
    /// Interleaving 18 (docs/design/KERNEL.md 3): a CPU makes the old root active and is delayed before it
    /// looks for a parent; it saw none. Or it looks later and sees ours. `load_in_order` stands between the
    /// two: a walk that changed the word before it is seen here, one that changes it after it sees the link.
    /// Then the new root gets what the old one says *now*, never what this CPU believes. Tests:
    /// `site::root_growth_activates_inactive_root`, `site::root_growth_false_active`, model
    /// `tests/loom/growth.rs`.
    fn carry_up(&self, old_root: GroupId) {
        let group = &self.groups[old_root.index()];
        interleave!(AfterLink);
        let _ = group.word.load_in_order();
        let child = TreeChild::Group(group);
        waited(self.walk_up(child, group.parent(), Walker::Other, AtBusyGroup::Waits));
    }
}
