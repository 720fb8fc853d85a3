//! A group's queue of its children's events, with the kernel's habits.
//!
//! Decides what `tmigr_update_events` does and when it writes a line. The habits show in `next_expiry=`: an
//! ignored event stays queued until it is the first; taking an event out refreshes `next_expiry` only when
//! the queue becomes empty; an event that is put in changes it only when it is the first.
//!
//! No line is written, and the queue may still change, when: the child is active again (nothing changes); the
//! ignored event is the CPU's own, on its own behalf, and there is a group above (nothing changes); a CPU
//! that expires the timers of another comes to an idle top.
//!
//! Source: the recordings, which this reproduces line by line, and the rules in docs/reference/verify.md.

use super::line::{NEVER, UpdateLine};
use super::state::{CHILDREN, GroupChild, GroupIndex, GroupModel, HierarchyState, QueuedEvent};

#[derive(Clone, Copy, Debug)]
pub(super) struct Updated {
    pub(super) line: Option<UpdateLine>,
    /// The walk ends here.
    pub(super) is_done: bool,
    /// What the idle hierarchy must be woken for.
    pub(super) first: Option<u64>,
}

impl Updated {
    const SILENT: Self = Self { line: None, is_done: true, first: None };
}

/// On whose behalf an event is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Behalf {
    /// The CPU's own.
    Own,
    /// Of a CPU whose timers were expired.
    Remote,
}

impl GroupModel {
    fn insert(&mut self, slot: usize) -> bool {
        let expires = self.events[slot].expires;
        let queued = usize::from(self.queued);
        let place = (0..queued)
            .find(|&place| self.events[usize::from(self.order[place])].expires > expires)
            .unwrap_or(queued);
        self.order.copy_within(place..queued.min(CHILDREN - 1), place + 1);
        self.order[place] = slot as u8;
        self.queued += 1;
        self.events[slot].is_queued = true;
        place == 0
    }

    fn remove(&mut self, slot: usize) {
        let queued = usize::from(self.queued);
        if let Some(place) = self.order[..queued].iter().position(|&other| usize::from(other) == slot) {
            self.order.copy_within(place + 1..queued, place);
            self.queued -= 1;
        }
        self.events[slot].is_queued = false;
    }

    /// The first event that counts; those before it are taken out, and `next_expiry` is refreshed.
    pub(super) fn first(&mut self) -> Option<QueuedEvent> {
        self.next_expiry = NEVER;
        while self.queued > 0 {
            let slot = usize::from(self.order[0]);
            let event = self.events[slot];
            if !event.is_ignored {
                self.next_expiry = event.expires;
                return Some(event);
            }
            self.remove(slot);
        }
        None
    }

    /// Takes the first event out if it is due, and refreshes `next_expiry`.
    pub(super) fn pop_due(&mut self, now: u64) -> Option<QueuedEvent> {
        let event = self.first().filter(|event| event.expires <= now)?;
        self.remove(usize::from(self.order[0]));
        self.first();
        Some(event)
    }
}

impl HierarchyState {
    /// The event of `child` in `group` is looked at; `next` is the next event of a child that is a CPU.
    pub(super) fn update(
        &mut self,
        group: GroupIndex,
        child: GroupChild,
        next: u64,
        behalf: Behalf,
    ) -> Updated {
        let Some(mask) = self.mask_of(child) else { return Updated::SILENT };
        let slot = usize::from(mask.slot());
        let is_top = self.group(group).parent.is_none();
        let (next, cpu) = match child {
            GroupChild::Cpu(_) if self.is_shortcut(group, slot, behalf) => return Updated::SILENT,
            GroupChild::Cpu(cpu) => (next, cpu),
            GroupChild::Group(below) if self.group(below).word.is_active() => return Updated::SILENT,
            GroupChild::Group(below) => {
                let first = self.group_mut(below).first();
                let next = first.map_or(NEVER, |event| event.expires);
                self.group_mut(group).events[slot].is_ignored = next == NEVER;
                (next, first.map_or(0, |event| event.cpu))
            }
        };
        let change = self.group_mut(group);
        let mut is_done = false;
        let event = change.events[slot];
        if event.is_queued && event.expires == next && !event.is_ignored {
            change.events[slot].cpu = cpu;
        } else {
            if event.is_queued {
                change.remove(slot);
                if change.queued == 0 {
                    change.next_expiry = NEVER;
                }
            }
            if event.is_ignored {
                is_done = behalf == Behalf::Own || change.word.is_active();
            } else {
                (change.events[slot].expires, change.events[slot].cpu) = (next, cpu);
                if change.insert(slot) {
                    change.next_expiry = next;
                }
            }
        }
        let mut first = None;
        if is_top && !change.word.is_active() {
            if behalf == Behalf::Remote {
                return Updated::SILENT;
            }
            is_done = true;
            first = Some(change.first().map_or(NEVER, |event| event.expires));
        }
        Updated { line: Some(self.update_line(group, child, next)), is_done, first }
    }

    fn is_shortcut(&self, group: GroupIndex, slot: usize, behalf: Behalf) -> bool {
        let group = self.group(group);
        group.events[slot].is_ignored && behalf == Behalf::Own && group.parent.is_some()
    }

    fn update_line(&self, group: GroupIndex, child: GroupChild, next: u64) -> UpdateLine {
        let GroupModel { identity, level, word, next_expiry, events, .. } = self.group(group);
        let (child, event) = match child {
            GroupChild::Cpu(_) => (0, None),
            GroupChild::Group(below) => {
                let slot = self.group(below).parent.map(|(_, mask)| usize::from(mask.slot()));
                (self.group(below).identity, slot.map(|slot| events[slot]))
            }
        };
        UpdateLine {
            child,
            group: *identity,
            level: *level,
            child_active: 0,
            group_active: u32::from(word.active()),
            next,
            next_expiry: *next_expiry,
            child_expiry: event.map_or(0, |event| event.expires),
            child_cpu: event.map_or(0, |event| u64::from(event.cpu)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Behalf, GroupChild, GroupModel, HierarchyState, NEVER};
    use crate::tmigr::state::CpuModel;
    use quietcore_core::tmigr::ChildMask;

    /// One group, a top, with two CPUs that publish what is given.
    fn two_cpus(first: u64, second: u64) -> HierarchyState {
        let mut state = HierarchyState::default();
        state.add_group(GroupModel::new(7, 0, 0));
        for (cpu, expires) in [(0, first), (1, second)] {
            state.add_cpu(cpu, CpuModel::new(0, ChildMask::new(cpu as u8).expect("below 8")));
            state.group_mut(0).events[usize::from(cpu)].is_ignored = false;
            assert!(state.update(0, GroupChild::Cpu(cpu), expires, Behalf::Own).is_done, "an idle top");
        }
        state
    }

    /// Goal: the kernel's lazy `next_expiry`. Method: ignored, removed and empty queues.
    #[test]
    fn next_expiry_is_refreshed_as_lazily_as_the_kernels() {
        let mut state = two_cpus(50, 80);
        let active = state.group(0).word.with(ChildMask::new(7).expect("below 8"));
        state.group_mut(0).word = active;
        state.group_mut(0).events[0].is_ignored = true;
        let own = state.update(0, GroupChild::Cpu(0), NEVER, Behalf::Own).line.expect("a top writes a line");
        assert_eq!((own.next_expiry, own.group_active), (50, 0x80), "removed, but not refreshed");
        assert_eq!(state.group_mut(0).first().map(|event| event.cpu), Some(1));
        assert_eq!(state.group(0).next_expiry, 80);
        assert_eq!(state.group_mut(0).pop_due(79).map(|event| event.cpu), None);
        assert_eq!(state.group_mut(0).pop_due(80).map(|event| event.cpu), Some(1));
        assert_eq!((state.group(0).queued, state.group(0).next_expiry), (0, NEVER));
    }

    /// Goal: at an idle top another CPU's update is silent, but done; "never" is queued then.
    #[test]
    fn a_remote_update_of_an_idle_top_is_silent() {
        let mut state = two_cpus(50, 80);
        let updated = state.update(0, GroupChild::Cpu(0), NEVER, Behalf::Remote);
        assert!(updated.line.is_none() && updated.is_done);
        assert_eq!(state.group(0).queued, 2, "queued with an expiry of never");
        assert_eq!(state.group_mut(0).first().map(|event| event.expires), Some(80));
        assert_eq!(state.update(0, GroupChild::Cpu(1), 80, Behalf::Own).first, Some(80));
    }

    /// Goal: equal expiries keep their order, and the slots are those of their children.
    #[test]
    fn equal_expiries_keep_their_order() {
        let mut state = two_cpus(80, 80);
        assert_eq!(state.group_mut(0).pop_due(80).map(|event| event.cpu), Some(0));
        assert_eq!(state.group_mut(0).pop_due(80).map(|event| event.cpu), Some(1));
        assert!(state.group_mut(0).pop_due(NEVER).is_none());
    }
}
