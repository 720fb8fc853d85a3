//! A CPU wakes up, goes idle or stalls, and what it publishes while it is not awake.
//!
//! Each of these but waking up writes events of groups, inside whose locks another thread may be stopped. So
//! each exists twice: one that waits, and one (`try_*`) that says [`Busy`] then, as it does when the CPU's
//! record is not to be had. After that the CPU is what it was before; what it has published may be known to
//! some of the groups above it and not to all, until it is published again.

use super::event::{AtBusyGroup, TreeChild, TreeEvent};
use super::hierarchy::Hierarchy;
use super::record::{CpuRecord, MigrationCpu, Presence};
use super::walk::Walker;
use crate::lock::{Busy, LockedGuard};
use crate::sync::interleave;
use crate::{CpuId, Nanos, RawLock};

impl<L: RawLock> Hierarchy<L> {
    /// `cpu` leaves idle. By the CPU itself. Does nothing if it was awake.
    pub fn activate(&self, cpu: CpuId) {
        interleave!(BeforeCpuLock);
        let this = self.cpu(cpu);
        let mut record = this.record.lock_owner();
        self.activate_locked(this, &mut record);
    }

    /// The same if the record can be had within the lock's bound; says whether it happened. For a CPU that
    /// comes back from being absent, which must not wait.
    #[must_use = "a CPU whose record was not to be had is still absent"]
    pub fn try_activate(&self, cpu: CpuId) -> bool {
        interleave!(BeforeCpuLock);
        let this = self.cpu(cpu);
        let Some(mut record) = this.record.try_lock_remote() else { return false };
        self.activate_locked(this, &mut record);
        true
    }

    fn activate_locked(&self, this: &MigrationCpu<L>, record: &mut CpuRecord) {
        let was = core::mem::replace(&mut record.presence, Presence::Awake);
        if was == Presence::Awake || !record.is_available {
            return;
        }
        (record.published, record.is_half_published) = (None, false);
        this.set_wakeup(None);
        self.set_active(this);
    }

    /// Every group above `this`, which is awake, becomes active. Writes no events: above an awake CPU all are
    /// active as long as its record is held.
    fn set_active(&self, this: &MigrationCpu<L>) {
        let child = TreeChild::Cpu { is_active: true, event: None };
        let walk = self.walk_up(child, this.leaf(), Walker::Awake, AtBusyGroup::Ends);
        debug_assert!(walk.is_ok(), "a CPU that wakes up writes no event");
    }

    /// `cpu` goes idle with `next` as its first global expiry, or none to publish. By the CPU itself.
    ///
    /// Returns when it must wake up for others: `None` unless it was the last one awake. A CPU that is not
    /// available gets `next` back: it looks after its own.
    pub fn deactivate(&self, cpu: CpuId, next: Option<Nanos>) -> Option<Nanos> {
        interleave!(BeforeCpuLock);
        let mut record = self.cpu(cpu).record.lock_owner();
        waited(self.deactivate_locked(cpu, &mut record, next, AtBusyGroup::Waits))
    }

    /// The same without waiting. `Err`: it is as awake or as idle as before, and must not sleep for long.
    pub(crate) fn try_deactivate(&self, cpu: CpuId, next: Option<Nanos>) -> Result<Option<Nanos>, Busy> {
        let mut record = self.try_record(cpu)?;
        self.deactivate_locked(cpu, &mut record, next, AtBusyGroup::Ends)
    }

    fn deactivate_locked(
        &self,
        cpu: CpuId,
        record: &mut CpuRecord,
        next: Option<Nanos>,
        at_busy: AtBusyGroup,
    ) -> Result<Option<Nanos>, Busy> {
        if !record.is_available {
            record.presence = Presence::Parked;
            return Ok(next);
        }
        let first = self.leave(cpu, record, Leaving { to: Presence::Parked, next }, at_busy)?;
        self.cpu(cpu).set_wakeup(first);
        Ok(first)
    }

    /// [`deactivate`](Self::deactivate) of a CPU that wakes up for no other, without waiting: the caller must
    /// see to it that another one does for what is returned.
    pub(crate) fn try_stand_down(&self, cpu: CpuId, next: Option<Nanos>) -> Result<Option<Nanos>, Busy> {
        let mut record = self.try_record(cpu)?;
        if !record.is_available {
            record.presence = Presence::Parked;
            return Ok(next);
        }
        let first =
            self.leave(cpu, &mut record, Leaving { to: Presence::Parked, next }, AtBusyGroup::Ends)?;
        self.cpu(cpu).set_wakeup(None);
        Ok(first)
    }

    /// `cpu` stalls: it publishes `next`, even if that is overdue, and nothing is expected of it. By the CPU
    /// itself before it blocks, or by a CPU that watches it. Returns the first expiry of a tree in which no
    /// CPU is awake: the caller must see to it, since an absent CPU cannot.
    #[must_use = "nobody else wakes up for what is returned"]
    pub fn go_absent(&self, cpu: CpuId, next: Option<Nanos>) -> Option<Nanos> {
        interleave!(BeforeCpuLock);
        let mut record = self.cpu(cpu).record.lock_remote();
        waited(self.go_absent_locked(cpu, &mut record, next, AtBusyGroup::Waits))
    }

    /// The same without waiting.
    pub(crate) fn try_go_absent(&self, cpu: CpuId, next: Option<Nanos>) -> Result<Option<Nanos>, Busy> {
        let mut record = self.try_record(cpu)?;
        self.go_absent_locked(cpu, &mut record, next, AtBusyGroup::Ends)
    }

    /// The same of a CPU that is awake. `Err` also when it is not.
    pub(crate) fn try_go_absent_from_awake(
        &self,
        cpu: CpuId,
        next: Option<Nanos>,
    ) -> Result<Option<Nanos>, Busy> {
        let mut record = self.try_record(cpu)?;
        if record.presence != Presence::Awake {
            return Err(Busy);
        }
        self.go_absent_locked(cpu, &mut record, next, AtBusyGroup::Ends)
    }

    fn go_absent_locked(
        &self,
        cpu: CpuId,
        record: &mut CpuRecord,
        next: Option<Nanos>,
        at_busy: AtBusyGroup,
    ) -> Result<Option<Nanos>, Busy> {
        if !record.is_available {
            record.presence = Presence::Absent;
            return Ok(None);
        }
        let first = self.leave(cpu, record, Leaving { to: Presence::Absent, next }, at_busy)?;
        self.cpu(cpu).set_wakeup(None);
        Ok(first)
    }

    fn try_record(&self, cpu: CpuId) -> Result<LockedGuard<'_, L, CpuRecord>, Busy> {
        interleave!(BeforeCpuLock);
        self.cpu(cpu).record.try_lock_remote().ok_or(Busy)
    }

    /// An available CPU leaves the active ones, or stays away from them. After `Err` it is what it was.
    fn leave(
        &self,
        cpu: CpuId,
        record: &mut CpuRecord,
        leaving: Leaving,
        at_busy: AtBusyGroup,
    ) -> Result<Option<Nanos>, Busy> {
        if record.presence != Presence::Awake {
            let first = self.publish_event(cpu, record, leaving.next, at_busy)?;
            record.presence = leaving.to;
            return Ok(first);
        }
        let event = leaving.next.map(|expires| TreeEvent { expires, cpu });
        let this = self.cpu(cpu);
        let child = TreeChild::Cpu { is_active: false, event };
        match self.walk_up(child, this.leaf(), Walker::Other, at_busy) {
            Ok(first) => {
                record.presence = leaving.to;
                (record.published, record.is_half_published) = (leaving.next, false);
                Ok(first)
            }
            Err(Busy) => {
                self.set_active(this);
                Err(Busy)
            }
        }
    }

    /// `cpu` is taken out of the tree, whatever it was. Waits.
    pub(super) fn exclude(&self, cpu: CpuId, record: &mut CpuRecord) -> Option<Nanos> {
        let leaving = Leaving { to: record.presence, next: None };
        waited(self.leave(cpu, record, leaving, AtBusyGroup::Waits))
    }

    /// The first global expiry of an idle or absent CPU is `next` now. From any thread.
    ///
    /// Returns the first expiry of a tree in which no CPU is awake, if that is news: one must wake up for it.
    /// If `cpu` is parked, its [`wakeup`](Self::wakeup) says so too.
    #[must_use = "nobody else wakes up for what is returned"]
    pub fn publish(&self, cpu: CpuId, next: Option<Nanos>) -> Option<Nanos> {
        interleave!(BeforeCpuLock);
        let mut record = self.cpu(cpu).record.lock_remote();
        waited(self.publish_locked(cpu, &mut record, next, AtBusyGroup::Waits))
    }

    /// The same without waiting. `Err`: it must be published again, and until then no CPU may know of it.
    pub(crate) fn try_publish(&self, cpu: CpuId, next: Option<Nanos>) -> Result<Option<Nanos>, Busy> {
        let mut record = self.try_record(cpu)?;
        self.publish_locked(cpu, &mut record, next, AtBusyGroup::Ends)
    }

    fn publish_locked(
        &self,
        cpu: CpuId,
        record: &mut CpuRecord,
        next: Option<Nanos>,
        at_busy: AtBusyGroup,
    ) -> Result<Option<Nanos>, Busy> {
        let is_known = record.published == next && !record.is_half_published;
        if !record.is_available || record.presence == Presence::Awake || is_known {
            return Ok(None);
        }
        let first = self.publish_event(cpu, record, next, at_busy)?;
        if record.presence == Presence::Parked {
            self.cpu(cpu).set_wakeup(first);
        }
        Ok(first)
    }

    /// Of a CPU that is available and not awake.
    pub(super) fn publish_event(
        &self,
        cpu: CpuId,
        record: &mut CpuRecord,
        next: Option<Nanos>,
        at_busy: AtBusyGroup,
    ) -> Result<Option<Nanos>, Busy> {
        // What follows may end below the top.
        (record.published, record.is_half_published) = (next, true);
        let event = next.map(|expires| TreeEvent { expires, cpu });
        let first = self.publish_up(event, self.cpu(cpu).leaf(), at_busy)?;
        record.is_half_published = false;
        Ok(first)
    }
}

/// What becomes of a CPU, and its first global expiry.
#[derive(Clone, Copy, Debug)]
struct Leaving {
    to: Presence,
    next: Option<Nanos>,
}

/// A walk that waits ends at no lock.
pub(super) fn waited(walk: Result<Option<Nanos>, Busy>) -> Option<Nanos> {
    walk.expect("a walk that waits for locks gets them")
}
