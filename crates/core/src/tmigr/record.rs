//! What the hierarchy knows of one CPU: its record, behind a lock, and two words that are read without it.

use super::event::{Link, pack_link, unpack_link};
use crate::lock::Locked;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::time::{NEVER, from_word, to_word};
use crate::{Nanos, RawLock};

/// What the hierarchy knows of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuState {
    /// Publishes nothing; may be migrator.
    Awake,
    /// Idle: publishes its first global expiry; may have to wake up for the whole tree; can be kicked.
    Parked,
    /// Stalled: publishes always, even what is overdue; never migrator, never waited for, never kicked.
    Absent,
    /// Isolated or offline: publishes nothing, pulls nothing.
    Unavailable,
}

/// Whether a CPU turns, apart from whether it is available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    Awake,
    Parked,
    Absent,
}

#[derive(Debug)]
pub(super) struct CpuRecord {
    pub(super) presence: Presence,
    pub(super) is_available: bool,
    /// What this CPU's event says, while it is parked or absent.
    pub(super) published: Option<Nanos>,
    /// A group's events were not to be had when that was to be changed: not all groups above know the same.
    pub(super) is_half_published: bool,
}

impl CpuRecord {
    pub(super) fn cpu_state(&self) -> CpuState {
        match self.presence {
            _ if !self.is_available => CpuState::Unavailable,
            Presence::Awake => CpuState::Awake,
            Presence::Parked => CpuState::Parked,
            Presence::Absent => CpuState::Absent,
        }
    }
}

#[derive(Debug)]
pub(super) struct MigrationCpu<L: RawLock> {
    /// Group and mask in one word, as in a group; 0 until the CPU joins.
    leaf: AtomicU32,
    /// When this CPU must wake up for the whole tree. Written under the record's lock, polled without.
    wakeup: AtomicU64,
    pub(super) record: Locked<L, CpuRecord>,
}

impl<L: RawLock> MigrationCpu<L> {
    pub(super) fn new() -> Self {
        Self {
            leaf: AtomicU32::new(0),
            wakeup: AtomicU64::new(NEVER),
            record: Locked::new(CpuRecord {
                presence: Presence::Awake,
                is_available: false,
                published: None,
                is_half_published: false,
            }),
        }
    }

    pub(super) fn leaf(&self) -> Option<Link> {
        // Acquire: pairs with Release in `set_leaf`, so that the group is found initialised.
        unpack_link(self.leaf.load(Ordering::Acquire))
    }

    /// The CPU joins: once.
    pub(super) fn set_leaf(&self, leaf: Link) {
        // Release: pairs with Acquire in `leaf`.
        self.leaf.store(pack_link(leaf), Ordering::Release);
    }

    pub(super) fn wakeup(&self) -> Option<Nanos> {
        // Relaxed: a late look costs one tick.
        from_word(self.wakeup.load(Ordering::Relaxed))
    }

    /// For the holder of the record.
    pub(super) fn set_wakeup(&self, wakeup: Option<Nanos>) {
        // Relaxed: see `wakeup`.
        self.wakeup.store(to_word(wakeup), Ordering::Relaxed);
    }
}
