//! Events: when a child of a group must be looked after, and which CPU that is about.
//!
//! Each group queues one event per child. An idle CPU's event is its first global expiry; an idle group's
//! event is the first of its own events. The event of an active child is *ignored*: a CPU that is awake looks
//! after it.
//!
//! Who writes what: slots and `next_expiry` under the group's lock; `ignored` is set without it, by the CPU
//! that wakes up below, and cleared under it. A late `ignored` costs a useless look, never a timer: the CPU
//! that sets it is awake until it has also done so, and its own way down clears it again.
//!
//! Invariant T5: `next_expiry` is the first event that was not ignored when it was written. Equal expiries
//! keep the order in which they were queued. Locks: child before parent, never more than two. Source: Linux
//! 6.12, kernel/time/timer_migration.c, `tmigr_update_events`. Deviation: at most eight events, so a queue is
//! an array; no shortcut for an ignored event of the CPU itself, whose two forms in the kernel each lost
//! timers.

use super::state::{CHILDREN, ChildMask, GroupWord};
use crate::lock::{Busy, Locked, LockedGuard};
use crate::sync::{AtomicU8, AtomicU32, AtomicU64, Ordering, interleave};
use crate::time::{NEVER, from_word, to_word};
use crate::{CpuId, Nanos, RawLock};

/// When, and on whose behalf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TreeEvent {
    pub(crate) expires: Nanos,
    pub(crate) cpu: CpuId,
}

/// The events of a group's children. When they are due lies together: the first is looked for often.
#[derive(Debug)]
pub(crate) struct TreeEvents {
    /// [`NEVER`] where there is none.
    expires: [u64; CHILDREN],
    cpus: [CpuId; CHILDREN],
    /// In which order they were queued.
    places: [u32; CHILDREN],
    /// Events queued so far; breaks ties.
    queued: u32,
}

impl TreeEvents {
    const fn new() -> Self {
        Self { expires: [NEVER; CHILDREN], cpus: [CpuId(0); CHILDREN], places: [0; CHILDREN], queued: 0 }
    }

    /// An event with the same expiry keeps its place but takes the new CPU: it may be another one's turn
    /// now. Test: `site::stale_cpu_on_equal_expiry`.
    fn set(&mut self, child: ChildMask, event: Option<TreeEvent>) {
        let slot = usize::from(child.slot());
        let before = core::mem::replace(&mut self.expires[slot], to_word(event.map(|event| event.expires)));
        let Some(event) = event else { return };
        self.cpus[slot] = event.cpu;
        if event.expires.0 != before {
            self.queued = self.queued.wrapping_add(1);
            self.places[slot] = self.queued;
        }
    }

    /// The first event of a child that is in neither of the masks.
    pub(crate) fn first(&self, ignored: u8) -> Option<(ChildMask, TreeEvent)> {
        // The older of two equal ones: ages, because places wrap.
        let age = |slot: usize| self.queued.wrapping_sub(self.places[slot]);
        let (mut best, mut first) = (0, NEVER);
        for (slot, &expires) in self.expires.iter().enumerate() {
            let expires = if ignored >> slot & 1 == 0 { expires } else { NEVER };
            if expires < first || (expires == first && first != NEVER && age(slot) > age(best)) {
                (best, first) = (slot, expires);
            }
        }
        let event = TreeEvent { expires: from_word(first)?, cpu: self.cpus[best] };
        ChildMask::new(best as u8).map(|child| (child, event))
    }

    pub(crate) fn get(&self, child: ChildMask) -> Option<TreeEvent> {
        let slot = usize::from(child.slot());
        Some(TreeEvent { expires: from_word(self.expires[slot])?, cpu: self.cpus[slot] })
    }
}

/// A child as the walk sees it: a CPU whose record the walker holds, or a group.
#[derive(Debug)]
pub(crate) enum TreeChild<'a, L: RawLock> {
    /// Whether it is active, and its event if it is not.
    Cpu {
        is_active: bool,
        event: Option<TreeEvent>,
    },
    Group(&'a Group<L>),
}

impl<L: RawLock> TreeChild<'_, L> {
    pub(crate) fn is_active(&self) -> bool {
        match self {
            Self::Cpu { is_active, .. } => *is_active,
            Self::Group(group) => group.word.load().is_active(),
        }
    }
}

/// What a walk does at the events of a group, inside whose lock another thread may be stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AtBusyGroup {
    /// Waits: control, and worlds in which no thread is stopped.
    Waits,
    /// Ends there.
    Ends,
}

/// What an update of a child's event came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventUpdate {
    /// The child is active again: its own migrator looks after its events.
    ChildIsActive,
    /// The group is active: its migrator will see the event.
    GroupIsActive,
    /// No CPU in the group is awake; its first event has to be known further up.
    GroupIsIdle(Option<TreeEvent>),
}

/// A group of the tree.
#[derive(Debug)]
pub(crate) struct Group<L: RawLock> {
    pub(crate) word: GroupWord,
    /// Parent and mask there in one word, written once: `(parent + 1) << 8 | mask`; 0 while this is a root.
    link: AtomicU32,
    /// Children whose event does not count, a bit each.
    ignored: AtomicU8,
    /// First event that counted when it was written; for polling without the lock.
    next_expiry: AtomicU64,
    pub(crate) events: Locked<L, TreeEvents>,
    /// Number of the CPU or group behind each mask, plus one; written before the mask is used.
    children: [AtomicU32; CHILDREN],
}

/// A parent's number and the child's mask there.
pub(crate) type Link = (usize, ChildMask);

pub(crate) fn pack_link(link: Link) -> u32 {
    let (parent, mask) = link;
    (parent as u32 + 1) << 8 | u32::from(mask.bits())
}

pub(crate) fn unpack_link(word: u32) -> Option<Link> {
    ChildMask::from_bits(word as u8).map(|mask| ((word >> 8) as usize - 1, mask))
}

impl<L: RawLock> Group<L> {
    pub(crate) fn new() -> Self {
        Self {
            word: GroupWord::new(),
            link: AtomicU32::new(0),
            ignored: AtomicU8::new(0),
            next_expiry: AtomicU64::new(NEVER),
            events: Locked::new(TreeEvents::new()),
            children: core::array::from_fn(|_| AtomicU32::new(0)),
        }
    }

    /// One read gives parent and mask, so they cannot disagree, and neither can be zero.
    pub(crate) fn parent(&self) -> Option<Link> {
        // Acquire: pairs with Release in `set_parent`.
        unpack_link(self.link.load(Ordering::Acquire))
    }

    pub(crate) fn set_parent(&self, link: Link) {
        // Release: a walk that finds the parent finds it initialised. Pairs with Acquire in `parent`.
        self.link.store(pack_link(link), Ordering::Release);
    }

    pub(crate) fn child(&self, mask: ChildMask) -> Option<usize> {
        // Relaxed: a hint for watchers; the number never changes once it is there.
        (self.children[usize::from(mask.slot())].load(Ordering::Relaxed) as usize).checked_sub(1)
    }

    pub(crate) fn set_child(&self, mask: ChildMask, number: usize) {
        // Relaxed: see `child`.
        self.children[usize::from(mask.slot())].store(number as u32 + 1, Ordering::Relaxed);
    }

    /// For polling: early at worst, when the event was ignored meanwhile.
    pub(crate) fn next_expiry(&self) -> Option<Nanos> {
        // Relaxed: a late look costs one tick.
        from_word(self.next_expiry.load(Ordering::Relaxed))
    }

    pub(crate) fn ignore(&self, child: ChildMask) {
        // Relaxed: the same CPU's later clearing comes after it on this word; others may see it late.
        self.ignored.fetch_or(child.bits(), Ordering::Relaxed);
    }

    pub(crate) fn ignored(&self) -> u8 {
        // Relaxed: see `ignore`.
        self.ignored.load(Ordering::Relaxed)
    }

    /// The first event that counts; `next_expiry` says the same afterwards. For the holder of `events`.
    pub(crate) fn refresh(&self, events: &TreeEvents) -> Option<TreeEvent> {
        self.refresh_child(events).map(|(_, event)| event)
    }

    /// The same, and whose it is.
    fn refresh_child(&self, events: &TreeEvents) -> Option<(ChildMask, TreeEvent)> {
        let first = events.first(self.ignored());
        // Relaxed: written under the lock; see `next_expiry`.
        self.next_expiry.store(to_word(first.map(|(_, event)| event.expires)), Ordering::Relaxed);
        first
    }

    /// Writes the event of a child that is not active.
    ///
    /// Interleaving L (KERNEL: "race L"): the last CPU goes idle and finds no event here, while an idle CPU
    /// queues one. Both come through this lock after they changed the word or before they read it: the second
    /// sees the first. Test: `site::race_l_last_idle_against_new_timer`.
    pub(super) fn update_event(
        &self,
        mask: ChildMask,
        child: &TreeChild<'_, L>,
        at_busy: AtBusyGroup,
    ) -> Result<EventUpdate, Busy> {
        interleave!(BeforeGroupLock);
        let below = match child {
            TreeChild::Cpu { .. } => None,
            TreeChild::Group(group) => Some((group, group.lock_events(at_busy)?)),
        };
        let mut events = self.lock_events(at_busy)?;
        // The states are read here, after both locks.
        let event = match (child, &below) {
            (TreeChild::Cpu { is_active: true, .. }, _) => return Ok(EventUpdate::ChildIsActive),
            (TreeChild::Cpu { event, .. }, _) => *event,
            (_, Some((group, _))) if group.word.load().is_active() => return Ok(EventUpdate::ChildIsActive),
            (_, Some((group, below))) => group.refresh(below),
            (_, None) => None,
        };
        events.set(mask, event);
        // Relaxed: see `ignore`.
        self.ignored.fetch_and(!mask.bits(), Ordering::Relaxed);
        let first = self.refresh(&events);
        Ok(if self.word.load().is_active() {
            EventUpdate::GroupIsActive
        } else {
            EventUpdate::GroupIsIdle(first)
        })
    }

    fn lock_events(&self, at_busy: AtBusyGroup) -> Result<LockedGuard<'_, L, TreeEvents>, Busy> {
        match at_busy {
            AtBusyGroup::Waits => Ok(self.events.lock_remote()),
            AtBusyGroup::Ends => self.events.try_lock_remote().ok_or(Busy),
        }
    }

    /// The first event that is due by `now`, of a child that is not in `skipped`. Waits for no lock.
    pub(super) fn try_first_due(
        &self,
        now: Nanos,
        skipped: u8,
    ) -> Result<Option<(ChildMask, TreeEvent)>, Busy> {
        interleave!(BeforeGroupLock);
        let events = self.lock_events(AtBusyGroup::Ends)?;
        let first = self.refresh_child(&events);
        let first = if skipped == 0 { first } else { events.first(self.ignored() | skipped) };
        Ok(first.filter(|(_, event)| event.expires <= now))
    }
}
