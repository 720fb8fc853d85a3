//! All bases of a machine, each behind its lock, and when each is due without the lock.
//!
//! Locks nest by CPU, then by kind ([`BaseId`]'s order); [`Bases::lock_pair`] keeps to it. A guard publishes
//! the base's next expiry before it unlocks, so that a thread that sees the lock free sees the word that goes
//! with it.

use super::store::{ExactId, RemoveError, Stored, TimerId, TimerStore};
use super::sync::{CpuHints, NextExpiry};
#[cfg(test)]
use super::timer::TimerRef;
use super::word::TimerWord;
use super::{Base, BaseId, BaseKind, TickLength, TimerOptions};
use crate::lock::{Locked, LockedGuard, RawLock};
use crate::sync::interleave;
use crate::time::{NEVER, from_word};
use crate::{Context, CpuId, Nanos};
use alloc::boxed::Box;
use core::fmt;
use core::ops::{Deref, DerefMut};

/// A base and its lock, in cache lines of its own.
#[repr(align(128))]
struct LockedBase<L, T>(Locked<L, Base<T>>);

/// What belongs to one CPU, in a cache line of its own: a turn that finds nothing due reads no other.
#[repr(align(128))]
struct OneCpu<L, T> {
    /// When each base is due, without its lock; by kind.
    next_expiry: [NextExpiry; KINDS],
    hints: CpuHints,
    /// By kind. Elsewhere: they are large, and would be made on the stack.
    bases: Box<[LockedBase<L, T>; KINDS]>,
}

const KINDS: usize = BaseKind::ALL.len();

/// The bases of CPUs 0 to `cpu_count` - 1, and the timers that the machine itself owns.
pub(crate) struct Bases<L, T> {
    cpus: Box<[OneCpu<L, T>]>,
    pub(super) length: TickLength,
    /// Kept here, because references to its timers go to these bases and nowhere else.
    pub(super) store: TimerStore<T>,
}

impl<L: RawLock, T: Copy> Bases<L, T> {
    /// Empty bases at `now`. The only call that allocates, but for more timers of the machine and runs that
    /// hang.
    pub(crate) fn new(cpu_count: u16, length: TickLength, now: Nanos) -> Self {
        let base = |id| LockedBase(Locked::new(Base::new(id, length, now)));
        let cpus = (0..cpu_count).map(CpuId).map(|cpu| {
            let bases: Box<[_]> = BaseKind::ALL.iter().map(|&kind| base(BaseId { cpu, kind })).collect();
            let bases = bases.try_into().unwrap_or_else(|_| unreachable!("one of each kind"));
            OneCpu { next_expiry: Default::default(), hints: CpuHints::default(), bases }
        });
        Self { cpus: cpus.collect(), length, store: TimerStore::new() }
    }

    /// A base by its [index](BaseId::index), and its word.
    #[inline]
    fn base_at(&self, index: usize) -> (&Locked<L, Base<T>>, &NextExpiry) {
        let OneCpu { next_expiry, bases, .. } = &self.cpus[index / KINDS];
        (&bases[index % KINDS].0, &next_expiry[index % KINDS])
    }

    #[inline]
    fn cpu(&self, cpu: CpuId) -> &OneCpu<L, T> {
        &self.cpus[cpu.index()]
    }

    #[inline]
    fn word(&self, id: BaseId) -> &NextExpiry {
        &self.cpu(id.cpu).next_expiry[id.kind.index()]
    }

    /// `cpu` is absent from now on, or not any more. The marking CPU takes back its tokens
    /// afterwards, on all bases.
    pub(crate) fn set_absent(&self, cpu: CpuId, is_absent: bool) {
        self.cpu(cpu).hints.change(CpuHints::ABSENT, is_absent);
    }

    /// `cpu` runs no other CPU's timers from now on, or does again. Tokens are taken back as above.
    pub(crate) fn set_unavailable(&self, cpu: CpuId, is_unavailable: bool) {
        self.cpu(cpu).hints.change(CpuHints::UNAVAILABLE, is_unavailable);
    }

    /// Whether it does not, as far as can be seen without a lock.
    pub(crate) fn is_unavailable(&self, cpu: CpuId) -> bool {
        self.cpu(cpu).hints.has(CpuHints::UNAVAILABLE)
    }

    /// Whether `runner` may take the token of this base; asked under its lock. A CPU that was marked and has
    /// not noticed takes none that others can run, one that was isolated none of another CPU's: it would
    /// not be taken back. Nor does it take its own GUEST base: what others have put there just before or
    /// after they could see that it was isolated is moved by them. Tests:
    /// `site::stall::one_freezes_anywhere`, `isolation::an_isolated_cpu_takes_nothing_over`,
    /// `isolation::a_stranger_that_looked_before`.
    #[inline]
    pub(crate) fn may_take(&self, runner: CpuId, id: BaseId) -> bool {
        let hints = &self.cpu(runner).hints;
        let may_run = !(id.kind.is_pullable() && hints.has(CpuHints::ABSENT));
        may_run && (runner == id.cpu && id.kind != BaseKind::Guest || !hints.has(CpuHints::UNAVAILABLE))
    }

    /// How many CPUs have bases.
    pub(crate) fn cpu_count(&self) -> u16 {
        self.cpus.len() as u16
    }

    /// Locks a base, for the thread of `cpu`.
    #[inline]
    pub(crate) fn lock(&self, id: BaseId, cpu: Option<CpuId>) -> BaseGuard<'_, L, T> {
        self.lock_at(id.index(), cpu)
    }

    /// The same by the base's [index](BaseId::index).
    #[inline(always)]
    pub(super) fn lock_at(&self, index: usize, cpu: Option<CpuId>) -> BaseGuard<'_, L, T> {
        interleave!(BeforeBaseLock);
        let (locked, next_expiry) = self.base_at(index);
        let is_owner = cpu.is_some_and(|cpu| cpu.index() == index / KINDS);
        let base = if is_owner { locked.lock_owner() } else { locked.lock_remote() };
        BaseGuard { base, next_expiry }
    }

    /// Locks a base if that is to be had within the bound of the world's lock.
    pub(crate) fn try_lock(&self, id: BaseId) -> Option<BaseGuard<'_, L, T>> {
        interleave!(BeforeBaseLock);
        let (locked, next_expiry) = self.base_at(id.index());
        let base = locked.try_lock_remote()?;
        Some(BaseGuard { base, next_expiry })
    }

    /// Locks two bases, in locking order; returns them in the order asked for.
    ///
    /// # Panics
    /// When they are the same.
    pub(crate) fn lock_pair(
        &self,
        one: BaseId,
        two: BaseId,
        cpu: Option<CpuId>,
    ) -> (BaseGuard<'_, L, T>, BaseGuard<'_, L, T>) {
        assert_ne!(one, two, "a base is locked once");
        if one < two {
            let first = self.lock(one, cpu);
            (first, self.lock(two, cpu))
        } else {
            let first = self.lock(two, cpu);
            (self.lock(one, cpu), first)
        }
    }

    /// When a base is due, without its lock: never later than the truth.
    #[inline]
    pub(crate) fn next_expiry(&self, id: BaseId) -> Option<Nanos> {
        self.word(id).load()
    }

    /// Whether it is due by `now`, without a lock.
    #[inline]
    pub(crate) fn is_due(&self, id: BaseId, now: Nanos) -> bool {
        self.word(id).is_by(now)
    }

    /// Whether any base of `cpu` is due by `now`, without a lock. Cost: four loads from one cache line.
    #[inline]
    pub(crate) fn is_any_due(&self, cpu: CpuId, now: Nanos) -> bool {
        self.cpu(cpu).next_expiry.iter().fold(false, |is_due, word| is_due | word.is_by(now))
    }

    /// When the first base of `cpu` is due, without a lock. Cost: as [`is_any_due`](Self::is_any_due).
    #[inline]
    pub(crate) fn soonest(&self, cpu: CpuId) -> Option<Nanos> {
        from_word(self.cpu(cpu).next_expiry.iter().fold(NEVER, |soonest, word| soonest.min(word.word())))
    }

    /// When `cpu` is due for timers that only it runs, without a lock.
    #[inline]
    pub(crate) fn next_local(&self, cpu: CpuId) -> Option<Nanos> {
        self.next_expiry(BaseId { cpu, kind: BaseKind::Local })
    }

    /// When `cpu` is due for timers that others may run, without a lock.
    #[inline]
    pub(crate) fn next_global(&self, cpu: CpuId) -> Option<Nanos> {
        let global = self.next_expiry(BaseId { cpu, kind: BaseKind::Global });
        let guest = self.next_expiry(BaseId { cpu, kind: BaseKind::Guest });
        earliest(global, guest)
    }

    /// Makes an idle timer that the machine owns.
    pub(crate) fn add_timer(&mut self, options: TimerOptions, payload: T) -> TimerId {
        self.store.add(options, payload)
    }

    /// Makes an idle exact timer that the machine owns.
    pub(crate) fn add_exact(&mut self, options: TimerOptions, payload: T) -> ExactId {
        self.store.add_exact(options, payload)
    }

    /// Frees a timer that is idle.
    pub(crate) fn remove_timer<K: Stored>(&mut self, id: TimerId<K>) -> Result<(), RemoveError> {
        let timer = self.store.timer(id).ok_or(RemoveError::Unknown)?;
        let context = Context::near(CpuId(0), Nanos(0));
        if self.is_running(timer, context) {
            return Err(RemoveError::Running);
        }
        if timer.shared().word.load_idle().has(TimerWord::PENDING) {
            return Err(RemoveError::Pending);
        }
        self.store.remove(id);
        Ok(())
    }

    /// A timer that the machine owns.
    #[cfg(test)]
    pub(crate) fn timer<K: Stored>(&self, id: TimerId<K>) -> Option<TimerRef<T, K>> {
        self.store.timer(id)
    }

    /// The timers that the machine owns.
    #[inline]
    pub(crate) fn store(&self) -> &TimerStore<T> {
        &self.store
    }
}

/// The earlier of two moments, where `None` is never.
#[inline]
pub(crate) fn earliest(one: Option<Nanos>, two: Option<Nanos>) -> Option<Nanos> {
    match (one, two) {
        (Some(one), Some(two)) => Some(one.min(two)),
        (one, two) => one.or(two),
    }
}

impl<L, T> fmt::Debug for Bases<L, T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Bases").field("cpus", &self.cpus.len()).finish_non_exhaustive()
    }
}

/// A base whose lock is held; unlocks, and publishes when the base is due, when it is dropped.
pub(crate) struct BaseGuard<'a, L: RawLock, T> {
    base: LockedGuard<'a, L, Base<T>>,
    next_expiry: &'a NextExpiry,
}

impl<L: RawLock, T> Deref for BaseGuard<'_, L, T> {
    type Target = Base<T>;

    #[inline]
    fn deref(&self) -> &Base<T> {
        &self.base
    }
}

impl<L: RawLock, T> DerefMut for BaseGuard<'_, L, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Base<T> {
        &mut self.base
    }
}

impl<L: RawLock, T> Drop for BaseGuard<'_, L, T> {
    #[inline]
    fn drop(&mut self) {
        self.next_expiry.store(self.base.published);
    }
}
