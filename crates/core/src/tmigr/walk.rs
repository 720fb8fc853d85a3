//! Ways up the tree: a CPU's state changed, or its event did.
//!
//! One walk serves waking up, going idle, leaving and growing: at each level it makes the child's bit say
//! what the child's state is, and goes on as long as that changed whether the group is active. So no walk can
//! write a state that it only assumed. The kernel has two walks, and lost timers where one of them assumed
//! (8a, 9, 11 and 18 in README.md).
//!
//! The walker that makes a group idle writes its event one level up before it goes on, so the events of idle
//! CPUs are always known at the lowest active group above them, or at the root. Locks: a CPU's record is held
//! by the caller; groups' words need none, their events one or two at a time. A walk that does not wait ends
//! with [`Busy`] at events that another thread holds: the bits below say what the child was then, and the
//! caller takes that back with a walk of its own or sees to it that the walk is made again.

use super::event::{AtBusyGroup, EventUpdate, Link, TreeChild, TreeEvent};
use super::hierarchy::Hierarchy;
use crate::lock::Busy;
use crate::sync::interleave;
use crate::{Nanos, RawLock};

/// Whether the walker is a CPU that stays awake during its walk: only then may it ignore events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Walker {
    /// The CPU below woke up; the caller holds its record.
    Awake,
    /// Any other caller.
    Other,
}

impl<L: RawLock> Hierarchy<L> {
    /// Brings the bits above `child` up to date. Returns what the caller must see to: the first expiry of a
    /// tree in which no CPU is awake.
    pub(super) fn walk_up(
        &self,
        child: TreeChild<'_, L>,
        link: Option<Link>,
        walker: Walker,
        at_busy: AtBusyGroup,
    ) -> Result<Option<Nanos>, Busy> {
        let (mut child, mut link) = (child, link);
        while let Some((parent, mask)) = link {
            let group = &self.groups[parent];
            let transition = group.word.transition(mask, || child.is_active());
            let mut first = None;
            if transition.after.active() & mask.bits() != 0 {
                if walker == Walker::Awake {
                    group.ignore(mask);
                }
                if !transition.is_change() {
                    return Ok(None);
                }
            } else {
                // Interleaving E: this child leaves a group in which another is active, and is delayed before
                // it writes its event; the other leaves, too, and carries up what it finds. So the group's
                // state under the lock decides, not the one that the transition left: the last writer goes
                // on. Test: `site::walks::two_go_idle_in_one_group`.
                match group.update_event(mask, &child, at_busy)? {
                    EventUpdate::GroupIsIdle(event) => first = event.map(|event| event.expires),
                    EventUpdate::ChildIsActive | EventUpdate::GroupIsActive
                        if transition.after.is_active() =>
                    {
                        return Ok(None);
                    }
                    EventUpdate::ChildIsActive | EventUpdate::GroupIsActive => {}
                }
            }
            interleave!(BeforeParent);
            link = group.parent();
            if link.is_none() {
                return Ok(first);
            }
            child = TreeChild::Group(group);
        }
        Ok(None)
    }

    /// Writes an idle CPU's event and carries it up to where a CPU is awake. Returns the first expiry of a
    /// tree in which none is.
    ///
    /// It goes on upwards without an event, too: others may be waiting in the same group for their turn.
    /// Test: `site::deactivate_ignored_own_event_hides_sibling`.
    pub(super) fn publish_up(
        &self,
        event: Option<TreeEvent>,
        link: Option<Link>,
        at_busy: AtBusyGroup,
    ) -> Result<Option<Nanos>, Busy> {
        let mut child = TreeChild::Cpu { is_active: false, event };
        let mut link = link;
        while let Some((parent, mask)) = link {
            let group = &self.groups[parent];
            let EventUpdate::GroupIsIdle(first) = group.update_event(mask, &child, at_busy)? else {
                return Ok(None);
            };
            interleave!(BeforeParent);
            link = group.parent();
            if link.is_none() {
                return Ok(first.map(|event| event.expires));
            }
            child = TreeChild::Group(group);
        }
        Ok(None)
    }
}
