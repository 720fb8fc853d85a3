//! What the replay knows of the hierarchy: groups with their words and queues, CPUs with the walk they are
//! on.
//!
//! Decides nothing; the rules are in `queue.rs`, `walks.rs` and `remote.rs`. The words are the project's own
//! ([`Snapshot`]). Every change is undone by [`HierarchyState::undo_to`], because the order in which CPUs
//! changed a group is sometimes known only from later lines (`search.rs`).
//!
//! Invariants: `order` of a group holds exactly the slots whose event is queued, by expiry, equal ones in the
//! order in which they were queued. A group's child in slot n has the mask 1 << n.

use super::line::NEVER;
use quietcore_core::tmigr::{ChildMask, Snapshot};
use std::collections::HashMap;

pub(super) const CHILDREN: usize = 8;

#[derive(Clone, Copy, Debug)]
pub(super) struct QueuedEvent {
    pub(super) expires: u64,
    /// Whose timers are to be expired.
    pub(super) cpu: u16,
    pub(super) is_ignored: bool,
    pub(super) is_queued: bool,
}

/// A group's number, in the order in which they were made.
pub(super) type GroupIndex = u16;

#[derive(Clone, Copy, Debug)]
pub(super) struct GroupModel {
    /// As in the text.
    pub(super) identity: u64,
    pub(super) level: u64,
    pub(super) node: i64,
    /// The group above, and this group's mask there.
    pub(super) parent: Option<(GroupIndex, ChildMask)>,
    pub(super) word: Snapshot,
    pub(super) events: [QueuedEvent; CHILDREN],
    pub(super) order: [u8; CHILDREN],
    pub(super) queued: u8,
    pub(super) next_expiry: u64,
}

impl GroupModel {
    pub(super) fn new(identity: u64, level: u64, node: i64) -> Self {
        let event = QueuedEvent { expires: NEVER, cpu: 0, is_ignored: true, is_queued: false };
        Self {
            identity,
            level,
            node,
            parent: None,
            word: Snapshot::default(),
            events: [event; CHILDREN],
            order: [0; CHILDREN],
            queued: 0,
            next_expiry: NEVER,
        }
    }
}

/// A child of a group, as a walk sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GroupChild {
    /// The CPU that walks, or on whose behalf.
    Cpu(u16),
    Group(GroupIndex),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct GroupPlace {
    pub(super) group: GroupIndex,
    pub(super) child: GroupChild,
}

/// What a CPU's walk carries upwards: the CPU's next event, and what the hierarchy must be woken for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carried {
    pub(super) next: u64,
    pub(super) first: u64,
}

/// Where a CPU looks for due events of others: `mask` is its child's mask in `group`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Visit {
    pub(super) group: GroupIndex,
    pub(super) mask: ChildMask,
    pub(super) now: u64,
}

/// What a CPU does in the hierarchy: which line it writes next.
#[derive(Clone, Copy, Debug)]
pub(super) enum Walk {
    /// Nothing: any line may begin something.
    None,
    /// Leaving idle: the child with this mask becomes active in the group.
    Up {
        group: GroupIndex,
        mask: ChildMask,
    },
    /// Going idle: the child becomes inactive in the group ...
    Down {
        group: GroupIndex,
        child: GroupChild,
        carried: Carried,
    },
    /// ... then its event is looked at there; `is_idle`: the group has no active child left.
    DownUpdate {
        group: GroupIndex,
        child: GroupChild,
        carried: Carried,
        is_idle: bool,
    },
    /// The end of the way.
    DownEnd(Carried),
    /// A new first timer of an idle CPU.
    NewTimer {
        group: GroupIndex,
        child: GroupChild,
        carried: Carried,
    },
    NewTimerEnd(Carried),
    /// Looks for a due event in the group.
    Remote(Visit),
    /// It took the event of this CPU out.
    RemoteTaken(Visit, u16),
    /// It expires the global timers of this CPU.
    RemoteRun(Visit, u16),
    /// It puts that CPU's next event back.
    RemoteUpdate {
        visit: Visit,
        of: u16,
        group: GroupIndex,
        child: GroupChild,
    },
    /// The group of the visit is the next one, one level up.
    RemoteNext(Visit),
    /// No group is left, or none is its own.
    RemoteEnd,
}

/// What a CPU does right after a line, without another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Late {
    Nothing,
    /// `tmigr_cpu_active`: it is not idle any more.
    Activates,
    /// `tmigr_group_set_cpu_active`: the group's event in its parent does not count any more.
    Ignores(GroupIndex),
    /// `tmigr_handle_remote_cpu`: that CPU's timers are being expired.
    Claims(u16),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct CpuModel {
    pub(super) group: GroupIndex,
    pub(super) mask: ChildMask,
    pub(super) is_available: bool,
    pub(super) is_idle: bool,
    /// Another CPU expires its timers.
    pub(super) is_remote: bool,
    pub(super) wakeup: u64,
    pub(super) walk: Walk,
    pub(super) late: Late,
    /// What it must wake for when it is done with the timers of others.
    pub(super) first: u64,
    /// The next event of the CPU whose timers it expires, where no line says it.
    pub(super) hidden: u64,
}

impl CpuModel {
    pub(super) fn new(group: GroupIndex, mask: ChildMask) -> Self {
        Self {
            group,
            mask,
            is_available: false,
            is_idle: true,
            is_remote: false,
            wakeup: NEVER,
            walk: Walk::None,
            late: Late::Nothing,
            first: NEVER,
            hidden: NEVER,
        }
    }
}

#[derive(Clone, Debug)]
enum Undo {
    Group(GroupIndex, Box<GroupModel>),
    Cpu(u16, Box<CpuModel>),
    Growth(Option<(GroupIndex, GroupIndex)>),
}

#[derive(Debug, Default)]
pub(super) struct HierarchyState {
    groups: Vec<GroupModel>,
    /// The groups by identity; never iterated.
    numbers: HashMap<u64, GroupIndex>,
    cpus: Vec<Option<CpuModel>>,
    journal: Vec<Undo>,
    /// A new root and the old one, which becomes active there if it is active.
    growth: Option<(GroupIndex, GroupIndex)>,
}

impl HierarchyState {
    pub(super) fn group(&self, group: GroupIndex) -> &GroupModel {
        &self.groups[usize::from(group)]
    }

    /// To change it; what it was is kept.
    pub(super) fn group_mut(&mut self, group: GroupIndex) -> &mut GroupModel {
        let current = &mut self.groups[usize::from(group)];
        self.journal.push(Undo::Group(group, Box::new(*current)));
        current
    }

    pub(super) fn group_count(&self) -> usize {
        self.groups.len()
    }

    pub(super) fn number_of(&self, identity: u64) -> Option<GroupIndex> {
        self.numbers.get(&identity).copied()
    }

    /// A new group. Not undone: see [`HierarchyState::forget_history`].
    pub(super) fn add_group(&mut self, group: GroupModel) {
        self.numbers.insert(group.identity, self.groups.len() as GroupIndex);
        self.groups.push(group);
    }

    /// `None` while it is not connected.
    pub(super) fn cpu(&self, cpu: u16) -> Option<&CpuModel> {
        self.cpus.get(usize::from(cpu))?.as_ref()
    }

    /// To change it; what it was is kept.
    pub(super) fn cpu_mut(&mut self, cpu: u16) -> Option<&mut CpuModel> {
        let current = self.cpus.get_mut(usize::from(cpu))?.as_mut()?;
        self.journal.push(Undo::Cpu(cpu, Box::new(*current)));
        Some(current)
    }

    /// A CPU is connected. Not undone.
    pub(super) fn add_cpu(&mut self, number: u16, cpu: CpuModel) {
        let index = usize::from(number);
        if self.cpus.len() <= index {
            self.cpus.resize(index + 1, None);
        }
        self.cpus[index] = Some(cpu);
        let event = &mut self.groups[usize::from(cpu.group)].events[usize::from(cpu.mask.slot())];
        event.cpu = number;
    }

    pub(super) fn growth(&self) -> Option<(GroupIndex, GroupIndex)> {
        self.growth
    }

    pub(super) fn set_growth(&mut self, growth: Option<(GroupIndex, GroupIndex)>) {
        self.journal.push(Undo::Growth(self.growth));
        self.growth = growth;
    }

    /// Changes so far.
    pub(super) fn mark(&self) -> usize {
        self.journal.len()
    }

    /// Takes back what was changed after `mark`.
    pub(super) fn undo_to(&mut self, mark: usize) {
        while self.journal.len() > mark {
            match self.journal.pop() {
                Some(Undo::Group(group, was)) => self.groups[usize::from(group)] = *was,
                Some(Undo::Cpu(cpu, was)) => self.cpus[usize::from(cpu)] = Some(*was),
                Some(Undo::Growth(was)) => self.growth = was,
                None => return,
            }
        }
    }

    /// The first `marks` changes will not be taken back any more.
    pub(super) fn forget_history(&mut self, marks: usize) {
        self.journal.drain(..marks.min(self.journal.len()));
    }

    pub(super) fn mask_of(&self, child: GroupChild) -> Option<ChildMask> {
        match child {
            GroupChild::Cpu(cpu) => self.cpu(cpu).map(|cpu| cpu.mask),
            GroupChild::Group(group) => self.group(group).parent.map(|(_, mask)| mask),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CpuModel, GroupModel, HierarchyState};
    use quietcore_core::tmigr::ChildMask;

    /// Goal: everything that a change touches comes back. Method: one change of each kind, undone in two
    /// steps.
    #[test]
    fn changes_are_taken_back() {
        let mut state = HierarchyState::default();
        state.add_group(GroupModel::new(1, 0, 0));
        let mask = ChildMask::new(3).expect("below 8");
        state.add_cpu(5, CpuModel::new(0, mask));
        assert_eq!(state.group(0).events[3].cpu, 5);
        state.group_mut(0).next_expiry = 7;
        let middle = state.mark();
        state.cpu_mut(5).expect("connected").wakeup = 9;
        state.set_growth(Some((1, 0)));
        state.undo_to(middle);
        assert_eq!((state.cpu(5).expect("connected").wakeup, state.growth()), (u64::MAX, None));
        assert_eq!(state.group(0).next_expiry, 7);
        state.undo_to(0);
        assert_eq!(state.group(0).next_expiry, u64::MAX);
        assert!(state.cpu(4).is_none() && state.cpu_mut(6).is_none());
    }
}
