//! What a CPU and its watchers say of it in one word, read without a lock.
//!
//! | bit | written by | under |
//! | --- | --- | --- |
//! | `IDLE` | the CPU itself | nothing |
//! | `MARKED` | the marker and the CPU itself; `MARK_INCOMPLETE` with it | the bases' locks, or none |
//! | `MARKED_BY_OTHER` | the same: `MARKED` was not the CPU's own doing | the same |
//! | `TAKES_TIMERS`, `ONLINE` | hotplug and isolation | the lock of control |
//! | `MARK_INCOMPLETE`, `REVOKE`, `PUBLISH`, `STUCK`: *repairs* that the next watcher makes | any CPU | see below |
//!
//! Invariants (model `models.rs`): an incomplete mark is a mark; the sum over all CPUs of their repairs is
//! the machine's count of pending ones, once every caller has followed its [`FlagsChange`].
//!
//! Every access is Relaxed: the word orders nothing. A CPU that acts on a flag takes the lock that decides
//! and looks again; the partner of each access is that lock. A flag that is read too late costs a tick, or a
//! timer that is placed as if it had been armed a moment earlier.

use crate::sync::{AtomicU32, Ordering};

/// The CPU has nothing to run but timers.
const IDLE: u32 = 1;
/// It was marked absent, by itself or by another CPU.
const MARKED: u32 = 1 << 1;
/// Timers that others arm may be put here.
const TAKES_TIMERS: u32 = 1 << 2;
/// It is online.
const ONLINE: u32 = 1 << 3;
/// It was marked, and may have tokens that were not taken back yet.
const REVOKE: u32 = 1 << 4;
/// Its first global expiry has to be published anew: the lock was not to be had.
const PUBLISH: u32 = 1 << 5;
/// It was marked by another CPU.
const MARKED_BY_OTHER: u32 = 1 << 6;
/// Its duties were handed over, but its bases could not be locked to complete the mark.
const MARK_INCOMPLETE: u32 = 1 << 7;

/// It is stalled, active in the hierarchy, and could not be marked: a lock that this needs was not to be had.
const STUCK: u32 = 1 << 8;

/// What the next watcher has to finish.
const REPAIRS: u32 = REVOKE | PUBLISH | MARK_INCOMPLETE | STUCK;

/// A value of the word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FlagsSnapshot(u32);

impl FlagsSnapshot {
    #[inline]
    const fn has(self, flag: u32) -> bool {
        self.0 & flag != 0
    }

    #[inline]
    pub(super) const fn is_idle(self) -> bool {
        self.has(IDLE)
    }

    #[inline]
    pub(super) const fn is_marked(self) -> bool {
        self.has(MARKED)
    }

    #[inline]
    pub(super) const fn takes_timers(self) -> bool {
        self.has(TAKES_TIMERS)
    }

    #[inline]
    pub(super) const fn is_online(self) -> bool {
        self.has(ONLINE)
    }

    pub(super) const fn may_have_tokens(self) -> bool {
        self.has(REVOKE)
    }

    pub(super) const fn is_unpublished(self) -> bool {
        self.has(PUBLISH)
    }

    pub(super) const fn is_stuck(self) -> bool {
        self.has(STUCK)
    }

    pub(super) const fn is_marked_by_other(self) -> bool {
        self.has(MARKED_BY_OTHER)
    }

    pub(super) const fn is_mark_incomplete(self) -> bool {
        self.has(MARK_INCOMPLETE)
    }

    /// Without these bits, and then with those.
    const fn replaced(self, cleared: u32, set: u32) -> Self {
        Self(self.0 & !cleared | set)
    }

    const fn repairs(self) -> u32 {
        (self.0 & REPAIRS).count_ones()
    }
}

/// One transition. The machine's count of pending repairs has to follow it.
#[derive(Clone, Copy, Debug)]
#[must_use = "the count of pending repairs follows every change"]
pub(super) struct FlagsChange {
    pub(super) before: FlagsSnapshot,
    after: FlagsSnapshot,
}

impl FlagsChange {
    /// By how much the repairs became more, or fewer.
    pub(super) const fn repairs_added(self) -> i32 {
        self.after.repairs() as i32 - self.before.repairs() as i32
    }
}

/// The word of one CPU.
#[derive(Debug, Default)]
pub(super) struct CpuFlags(AtomicU32);

impl CpuFlags {
    #[inline]
    pub(super) fn load(&self) -> FlagsSnapshot {
        // Relaxed, as every access below: see the head of this file.
        FlagsSnapshot(self.0.load(Ordering::Relaxed))
    }

    /// By the CPU itself, before it looks at its bases: an arm that comes after that look sees it.
    #[inline]
    pub(super) fn transition_to_idle(&self) {
        self.0.fetch_or(IDLE, Ordering::Relaxed);
    }

    /// By the CPU itself.
    #[inline]
    pub(super) fn transition_to_busy(&self) {
        self.0.fetch_and(!IDLE, Ordering::Relaxed);
    }

    /// The CPU marks itself before it blocks. Under its bases' locks.
    pub(super) fn transition_to_marked(&self) -> FlagsChange {
        self.change(0, MARKED | REVOKE)
    }

    /// Another CPU marks it. Under its bases' locks.
    pub(super) fn transition_to_marked_by_other(&self) -> FlagsChange {
        self.change(0, MARKED | MARKED_BY_OTHER | REVOKE)
    }

    /// Another CPU marks it without its bases' locks.
    pub(super) fn transition_to_mark_incomplete(&self) -> FlagsChange {
        self.change(0, MARKED | MARKED_BY_OTHER | MARK_INCOMPLETE)
    }

    /// The rest of such a mark was made. Under its bases' locks.
    pub(super) fn transition_to_mark_complete(&self) -> FlagsChange {
        self.change(MARK_INCOMPLETE, REVOKE)
    }

    /// The mark ends. Under its bases' locks. `REVOKE` stays: its tokens may not all be back yet.
    pub(super) fn transition_to_unmarked(&self) -> FlagsChange {
        self.change(MARKED | MARKED_BY_OTHER | MARK_INCOMPLETE, 0)
    }

    /// All tokens that it had are taken back.
    pub(super) fn transition_to_revoked(&self) -> FlagsChange {
        self.change(REVOKE, 0)
    }

    /// Its first global expiry changed and was not published yet. Under the lock of the base.
    pub(super) fn transition_to_unpublished(&self) -> FlagsChange {
        self.change(0, PUBLISH)
    }

    /// It was published.
    pub(super) fn transition_to_published(&self) -> FlagsChange {
        self.change(PUBLISH, 0)
    }

    /// It could not be marked; what it has collected is taken back all the same. No lock.
    pub(super) fn transition_to_stuck(&self) -> FlagsChange {
        self.change(0, STUCK | REVOKE)
    }

    /// It turns again, or was marked. By a watcher; no lock.
    pub(super) fn transition_to_not_stuck(&self) -> FlagsChange {
        self.change(STUCK, 0)
    }

    /// It comes online, awake. Tokens of its earlier life and what is unpublished stay noted.
    pub(super) fn transition_to_awake(&self) -> FlagsChange {
        self.change(MARKED | MARKED_BY_OTHER | MARK_INCOMPLETE | STUCK | IDLE, 0)
    }

    /// Hotplug or isolation changed what it takes. Under the lock of control.
    pub(super) fn transition_to_role(&self, role: CpuRole) {
        let set = if role.is_online { ONLINE } else { 0 } | if role.takes_timers { TAKES_TIMERS } else { 0 };
        let _ = self.change((ONLINE | TAKES_TIMERS) & !set, set);
    }

    #[allow(deprecated, reason = "the new name, `try_update`, is younger than our oldest Rust")]
    fn change(&self, cleared: u32, set: u32) -> FlagsChange {
        let next = |bits| Some(FlagsSnapshot(bits).replaced(cleared, set).0);
        let before = match self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next) {
            Ok(before) | Err(before) => FlagsSnapshot(before),
        };
        FlagsChange { before, after: before.replaced(cleared, set) }
    }
}

/// What hotplug and isolation make of a CPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct CpuRole {
    pub(super) is_online: bool,
    /// It is a housekeeping CPU.
    pub(super) takes_timers: bool,
}

#[cfg(all(test, loom))]
mod models;
