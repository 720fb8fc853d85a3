//! What must be true of the tree whenever no walk is under way in it (T1 to T6 of the README).

use core::ops::RangeInclusive;

use super::hierarchy::Hierarchy;
use super::record::{CpuRecord, Presence};
use super::state::ChildMask;
use crate::time::{NEVER, from_word, to_word};
use crate::{CpuId, Nanos, RawLock};

impl<L: RawLock> Hierarchy<L> {
    /// Asserts the invariants. `alarm` is when the world was asked to wake a CPU, if it was; where no CPU
    /// could be woken, or what is due was not to be got at, it is tried again by the end of `retry`, which
    /// begins now, if that is known.
    ///
    /// Only while no other call is under way, and no event of a call is left to be carried out. Cost: one
    /// look at every CPU and group. Also asserts a debt towards T3: that every event is known where a CPU
    /// looks. While a publication has to be made again, events and wake-ups are not looked at: the caller
    /// that could not make it sees to its CPU.
    ///
    /// # Panics
    /// When one does not hold.
    pub fn check(&self, alarm: Option<Nanos>, retry: Option<&RangeInclusive<Nanos>>) {
        let tree = self.tree();
        tree.check();
        let mut wakeup = to_word(alarm);
        for index in 0..self.cpus.len() {
            wakeup = wakeup.min(self.check_cpu(CpuId(index as u16)));
        }
        let is_published = !self.cpus.iter().any(|cpu| cpu.record.lock_remote().is_half_published);
        for index in 0..tree.groups().len() {
            self.check_group(index, is_published);
        }
        if !is_published {
            return;
        }
        if let Some(first) = self.first_of_idle() {
            // When everybody is absent an alarm is tried again every tick, so it may be a later one.
            let is_soon = |alarm| retry.is_none_or(|retry| alarm <= *retry.end());
            let is_due = retry.is_some_and(|retry| first <= *retry.start());
            let may_retry = is_due || !self.is_anybody_parked();
            let is_retried = may_retry && alarm.is_some_and(is_soon);
            assert!(
                wakeup <= first.0 || is_retried,
                "T3: all idle, first event at {}, first wake-up at {wakeup}",
                first.0
            );
        }
    }

    /// The first event of a tree in which no CPU is awake.
    pub(crate) fn first_of_idle(&self) -> Option<Nanos> {
        let root = &self.groups[self.tree().root()?.index()];
        let is_idle = !root.word.load().is_active();
        root.refresh(&root.events.lock_remote()).filter(|_| is_idle).map(|event| event.expires)
    }

    fn is_anybody_parked(&self) -> bool {
        let is_parked = |record: &CpuRecord| record.is_available && record.presence == Presence::Parked;
        self.cpus.iter().any(|cpu| is_parked(&cpu.record.lock_remote()))
    }

    /// Asserts T1 and T4 for a CPU; returns when it wakes up for the tree.
    fn check_cpu(&self, cpu: CpuId) -> u64 {
        let this = self.cpu(cpu);
        let record = this.record.lock_remote();
        let Some((leaf, mask)) = this.leaf() else {
            assert!(!record.is_available, "T4: CPU {cpu} never joined but is available");
            return NEVER;
        };
        let group = &self.groups[leaf];
        let is_active = group.word.load().active() & mask.bits() != 0;
        let should = record.is_available && record.presence == Presence::Awake;
        assert!(is_active == should, "T1, T4: CPU {cpu} active {is_active} in its group, {:?}", *record);
        let event = group.events.lock_remote().get(mask).filter(|_| group.ignored() & mask.bits() == 0);
        let published = record.published.filter(|_| record.is_available && !should);
        assert!(
            event.map(|event| event.expires) == published || record.is_half_published,
            "CPU {cpu} published {published:?}, queued {event:?}"
        );
        let wakeup = this.wakeup();
        let may_wake = record.is_available && record.presence == Presence::Parked;
        assert!(wakeup.is_none() || may_wake, "CPU {cpu} is to wake up at {wakeup:?}, {:?}", *record);
        to_word(wakeup)
    }

    /// Asserts T1, T2, T5 for a group, and that its first event is known one level up.
    fn check_group(&self, index: usize, is_published: bool) {
        let group = &self.groups[index];
        let word = group.word.load();
        word.check();
        let events = group.events.lock_remote();
        let polled = to_word(group.next_expiry());
        let first = events.first(group.ignored()).map(|(_, event)| event);
        let known = (0..8).filter_map(ChildMask::new).filter_map(|child| events.get(child));
        assert!(polled <= to_word(first.map(|event| event.expires)), "T5: group {index} polls too late");
        let mut known = known.map(|event| event.expires);
        assert!(
            from_word(polled).is_none_or(|polled| known.any(|expires| expires == polled)),
            "T5: group {index}"
        );
        let Some((parent, mask)) = group.parent() else { return };
        let above = &self.groups[parent];
        let is_active = above.word.load().active() & mask.bits() != 0;
        assert!(is_active == word.is_active(), "T1: group {index} is {word}, {is_active} in its parent");
        if !word.is_active() && is_published {
            let queued = above.events.lock_remote().get(mask).filter(|_| above.ignored() & mask.bits() == 0);
            assert!(queued == first, "group {index} is idle with {first:?}, its parent knows {queued:?}");
        }
    }
}
