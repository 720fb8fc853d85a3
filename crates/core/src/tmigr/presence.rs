//! A CPU wakes up, goes idle or stalls, and what it publishes while it is not awake.

use super::event::{TreeChild, TreeEvent};
use super::hierarchy::Hierarchy;
use super::record::{Busy, CpuRecord, MigrationCpu, Presence};
use super::walk::Walker;
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
    #[must_use = "a CPU whose record were not to be had is still absent"]
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
        record.published = None;
        this.set_wakeup(None);
        let _ = self.walk_up(TreeChild::Cpu { is_active: true, event: None }, this.leaf(), Walker::Awake);
    }

    /// `cpu` goes idle with `next` as its first global expiry, or none to publish. By the CPU itself.
    ///
    /// Returns when it must wake up for others: `None` unless it was the last one awake. A CPU that is not
    /// available gets `next` back: it looks after its own.
    pub fn deactivate(&self, cpu: CpuId, next: Option<Nanos>) -> Option<Nanos> {
        interleave!(BeforeCpuLock);
        let this = self.cpu(cpu);
        let mut record = this.record.lock_owner();
        let was = core::mem::replace(&mut record.presence, Presence::Parked);
        if !record.is_available {
            return next;
        }
        let first = self.leave(cpu, &mut record, was, next);
        this.set_wakeup(first);
        first
    }

    /// [`deactivate`](Self::deactivate) of a CPU that wakes up for no other: the caller must see to it that
    /// another one does for what is returned.
    #[must_use = "nobody wakes up for what is returned"]
    pub(crate) fn stand_down(&self, cpu: CpuId, next: Option<Nanos>) -> Option<Nanos> {
        interleave!(BeforeCpuLock);
        let this = self.cpu(cpu);
        let mut record = this.record.lock_owner();
        let was = core::mem::replace(&mut record.presence, Presence::Parked);
        if !record.is_available {
            return next;
        }
        this.set_wakeup(None);
        self.leave(cpu, &mut record, was, next)
    }

    /// `cpu` stalls: it publishes `next`, even if that is overdue, and nothing is expected of it. By the CPU
    /// itself before it blocks, or by a CPU that watches it. Returns the first expiry of a tree in which no
    /// CPU is awake: the caller must see to it, since an absent CPU cannot.
    #[must_use = "nobody else wakes up for what is returned"]
    pub fn go_absent(&self, cpu: CpuId, next: Option<Nanos>) -> Option<Nanos> {
        interleave!(BeforeCpuLock);
        let this = self.cpu(cpu);
        let mut record = this.record.lock_remote();
        self.go_absent_locked(cpu, &mut record, next)
    }

    /// The same if the record can be had within the lock's bound. `Err` when they cannot.
    pub(crate) fn try_go_absent(&self, cpu: CpuId, next: Option<Nanos>) -> Result<Option<Nanos>, Busy> {
        interleave!(BeforeCpuLock);
        let Some(mut record) = self.cpu(cpu).record.try_lock_remote() else { return Err(Busy) };
        Ok(self.go_absent_locked(cpu, &mut record, next))
    }

    /// The same of a CPU that is awake. `Err` also when it is not.
    pub(crate) fn try_go_absent_from_awake(
        &self,
        cpu: CpuId,
        next: Option<Nanos>,
    ) -> Result<Option<Nanos>, Busy> {
        interleave!(BeforeCpuLock);
        let record = self.cpu(cpu).record.try_lock_remote();
        let Some(mut record) = record.filter(|record| record.presence == Presence::Awake) else {
            return Err(Busy);
        };
        Ok(self.go_absent_locked(cpu, &mut record, next))
    }

    fn go_absent_locked(&self, cpu: CpuId, record: &mut CpuRecord, next: Option<Nanos>) -> Option<Nanos> {
        let was = core::mem::replace(&mut record.presence, Presence::Absent);
        if !record.is_available {
            return None;
        }
        self.cpu(cpu).set_wakeup(None);
        self.leave(cpu, record, was, next)
    }

    /// Takes a CPU that was `was` out of the active ones, with `next` as its event.
    pub(super) fn leave(
        &self,
        cpu: CpuId,
        record: &mut CpuRecord,
        was: Presence,
        next: Option<Nanos>,
    ) -> Option<Nanos> {
        record.published = next;
        let event = next.map(|expires| TreeEvent { expires, cpu });
        let leaf = self.cpu(cpu).leaf();
        if was == Presence::Awake {
            self.walk_up(TreeChild::Cpu { is_active: false, event }, leaf, Walker::Other)
        } else {
            self.publish_up(event, leaf)
        }
    }

    /// The first global expiry of an idle or absent CPU is `next` now. From any thread.
    ///
    /// Returns the first expiry of a tree in which no CPU is awake, if that is news: one must wake up for it.
    /// If `cpu` is parked, its [`wakeup`](Self::wakeup) says so too.
    #[must_use = "nobody else wakes up for what is returned"]
    pub fn publish(&self, cpu: CpuId, next: Option<Nanos>) -> Option<Nanos> {
        interleave!(BeforeCpuLock);
        let mut record = self.cpu(cpu).record.lock_remote();
        self.publish_locked(cpu, &mut record, next)
    }

    /// The same if the record can be had within the lock's bound. `Err` when they cannot.
    pub(crate) fn try_publish(&self, cpu: CpuId, next: Option<Nanos>) -> Result<Option<Nanos>, Busy> {
        interleave!(BeforeCpuLock);
        let Some(mut record) = self.cpu(cpu).record.try_lock_remote() else { return Err(Busy) };
        Ok(self.publish_locked(cpu, &mut record, next))
    }

    fn publish_locked(&self, cpu: CpuId, record: &mut CpuRecord, next: Option<Nanos>) -> Option<Nanos> {
        let this = self.cpu(cpu);
        if !record.is_available || record.presence == Presence::Awake || record.published == next {
            return None;
        }
        record.published = next;
        let first = self.publish_up(next.map(|expires| TreeEvent { expires, cpu }), this.leaf());
        if record.presence == Presence::Parked {
            this.set_wakeup(first);
        }
        first
    }
}
