//! Stalls: a CPU that does not turn must not hold back what others could do.
//!
//! Every CPU stores a heartbeat; its neighbours look at it once per tick. Who is late, with something
//! overdue, is *marked absent*: its duties in the hierarchy go to others, its global timers are published,
//! the tokens that it holds are taken back. Pinned timers wait for it. A false mark costs a walk and is
//! forgiven; the second within a second doubles the threshold for a second.
//!
//! Locks decide, heartbeats hint: the mark takes LOCAL, GLOBAL, GUEST and then the books, each within the
//! lock's bound, and so does the way back, so neither ever waits for a CPU that was stopped inside one of
//! them. Interleavings I1 to I8 of PROTOCOL section 5: `tests/site`. Source: ours; the kernel has interrupts
//! instead.

use super::shared::Shared;
use super::{Machine, flag};
use crate::base::{BaseId, BaseKind, earliest};
use crate::tmigr::Book;
use crate::{Actions, CpuId, Nanos, RawLock};

/// For how long a CPU that was marked without need gets twice the time, in ns.
const PATIENCE: Nanos = Nanos(1_000_000_000);

/// What became of an attempt to mark a CPU absent.
///
/// ```
/// assert_ne!(quietcore_core::Mark::Marked, quietcore_core::Mark::Busy);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Mark {
    /// It is absent now.
    Marked,
    /// It was absent, parked or unavailable already, or it has turned since.
    NotAwake,
    /// It was stopped inside one of its locks; try again at the next tick.
    Busy,
}

impl<L: RawLock, T: Copy> Machine<L, T> {
    /// `cpu` is about to block in user code: its global timers become everybody's. By the CPU itself.
    ///
    /// ```
    /// # use quietcore_core::{Actions, CpuId, Machine, Nanos, SequentialLock, Settings, topology::Topology};
    /// # use quietcore_core::tmigr::Book;
    /// # let machine: Machine<SequentialLock, u32> =
    /// #     Machine::new(Topology::builder(1).build()?, Settings::default())?;
    /// # let (cpu, mut actions) = (CpuId::default(), Actions::new(1));
    /// # machine.online(cpu, Nanos(0), &mut actions)?;
    /// machine.go_absent(cpu, Nanos(5), &mut actions);
    /// assert_eq!(machine.hierarchy().book(cpu), Book::Absent);
    /// assert!(machine.return_from_absence(cpu, Nanos(9)));
    /// assert_eq!(machine.hierarchy().book(cpu), Book::Awake);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn go_absent(&self, cpu: CpuId, now: Nanos, actions: &mut Actions) {
        self.beat(cpu, now);
        let mut bases = self.lock_shared(cpu, Some(cpu));
        let next = bases.next_global();
        let first = self.hierarchy.go_absent(cpu, next).filter(|_| self.is_pulling());
        bases.set_idle(true);
        self.watch[cpu.index()].set(flag::MARKED);
        self.bases.set_absent(cpu, true);
        self.owe_revocation(cpu);
        drop(bases);
        self.ask_for_alarm(first, actions);
        self.take_back_tokens(cpu, actions);
    }

    /// Somebody else notices that `cpu` does not turn. Never waits for a lock.
    ///
    /// ```
    /// # use quietcore_core::{Actions, CpuId, Machine, Mark, Nanos, SequentialLock, Settings};
    /// # use quietcore_core::topology::Topology;
    /// # let machine: Machine<SequentialLock, u32> =
    /// #     Machine::new(Topology::builder(2).build()?, Settings::default())?;
    /// # let (cpu, mut actions) = (CpuId::default(), Actions::new(2));
    /// # machine.online(cpu, Nanos(0), &mut actions)?;
    /// assert_eq!(machine.mark_absent(cpu, &mut actions), Mark::Marked);
    /// assert_eq!(machine.mark_absent(cpu, &mut actions), Mark::NotAwake);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn mark_absent(&self, cpu: CpuId, actions: &mut Actions) -> Mark {
        self.mark_if(cpu, actions, || true)
    }

    /// The same, unless `cpu` has turned since it was looked at: it says so under these locks.
    fn mark_if_silent(&self, cpu: CpuId, now: Nanos, actions: &mut Actions) -> Mark {
        self.mark_if(cpu, actions, || self.is_silent(cpu, now))
    }

    fn mark_if(&self, cpu: CpuId, actions: &mut Actions, is_stuck: impl Fn() -> bool) -> Mark {
        let Some(mut bases) = self.try_lock_shared(cpu) else {
            self.watch[cpu.index()].busy_marks.count();
            self.hand_over_duties(cpu, actions);
            return Mark::Busy;
        };
        if bases.is_idle() || !is_stuck() {
            return Mark::NotAwake;
        }
        let next = bases.next_global();
        let Ok(first) = self.hierarchy.try_go_absent(cpu, next) else {
            self.watch[cpu.index()].busy_marks.count();
            return Mark::Busy;
        };
        self.complete_absence(cpu, &mut bases);
        drop(bases);
        self.ask_for_alarm(first, actions);
        self.take_back_tokens(cpu, actions);
        Mark::Marked
    }

    /// What a mark is besides the books, under the bases' locks.
    pub(super) fn complete_absence(&self, cpu: CpuId, bases: &mut Shared<'_, L, T>) {
        bases.set_idle(true);
        let watch = &self.watch[cpu.index()];
        watch.set(flag::MARKED | flag::ACCUSED);
        watch.marks.count();
        self.bases.set_absent(cpu, true);
        self.owe_revocation(cpu);
    }

    /// A CPU that was marked turns again; says whether its locks were to be had. If not it goes on as an
    /// absent one and tries again in its next turn. By the CPU itself.
    ///
    /// ```
    /// # use quietcore_core::{Actions, CpuId, Machine, Nanos, SequentialLock, Settings};
    /// # use quietcore_core::topology::Topology;
    /// # let machine: Machine<SequentialLock, u32> =
    /// #     Machine::new(Topology::builder(2).build()?, Settings::default())?;
    /// # let (cpu, mut actions) = (CpuId::default(), Actions::new(2));
    /// # machine.online(cpu, Nanos(0), &mut actions)?;
    /// machine.go_absent(cpu, Nanos(5), &mut actions);
    /// assert!(machine.return_from_absence(cpu, Nanos(9)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use = "a CPU whose locks were not to be had is still absent"]
    pub fn return_from_absence(&self, cpu: CpuId, now: Nanos) -> bool {
        let watch = &self.watch[cpu.index()];
        let silence = now.since(watch.heartbeat());
        let Some(mut bases) = self.try_lock_shared(cpu) else { return false };
        if !self.hierarchy.try_activate(cpu) {
            return false;
        }
        self.clear_mark(cpu, &mut bases);
        watch.clear(flag::IDLE);
        // It was silent for hardly longer than is allowed, and not for the first time: it is slow, not stuck.
        let is_false =
            watch.clear(flag::ACCUSED) && silence.0 < self.settings.stall_after.0.saturating_mul(2);
        if is_false {
            watch.false_marks.count();
        }
        if is_false && watch.accused_falsely(now).is_some_and(|last| now.since(last) < PATIENCE) {
            watch.be_patient_until(Nanos(now.0.saturating_add(PATIENCE.0)));
        }
        self.beat(cpu, now);
        true
    }

    /// A mark ends, whoever finds it; under the bases' locks, with the books saying that the CPU is awake.
    pub(super) fn clear_mark(&self, cpu: CpuId, bases: &mut Shared<'_, L, T>) {
        bases.set_idle(false);
        self.bases.set_absent(cpu, false);
        self.watch[cpu.index()].clear(flag::MARKED);
        self.settle_hand_over(cpu);
    }

    /// `cpu` was stopped inside a lock of its bases: its duties in the hierarchy go to others at once, with
    /// what is known of its timers without the lock; the mark is completed when that can be had. It counts as
    /// marked, so that it comes back by the same way.
    fn hand_over_duties(&self, cpu: CpuId, actions: &mut Actions) {
        if self.hierarchy.try_book(cpu) != Some(Book::Awake) {
            return;
        }
        let next = self.bases.next_global(cpu);
        self.owe_completion(cpu);
        // It may have gone idle since: then there are no duties to hand over.
        if let Ok(first) = self.hierarchy.try_go_absent_from_awake(cpu, next) {
            self.watch[cpu.index()].marks.count();
            // Again: in between the CPU, or another watcher, may have found the books as they were before,
            // and ended a mark that had not been made.
            self.owe_completion(cpu);
            self.ask_for_alarm(first, actions);
        }
    }

    /// Without the bases' locks: the mark of `cpu` has to be completed, or ended, by whoever comes.
    /// [`watch`](Self::watch) alone would look at active CPUs only. Test: `site::stall::armed_while_it_runs`.
    fn owe_completion(&self, cpu: CpuId) {
        let watch = &self.watch[cpu.index()];
        watch.set(flag::MARKED | flag::ACCUSED);
        if watch.set(flag::HANDED) {
            self.unrevoked.count();
        }
    }

    /// Completes a mark of which only the duties were handed over, if the locks can be had now.
    fn complete_mark(&self, cpu: CpuId, now: Nanos, actions: &mut Actions) {
        let Some(mut bases) = self.try_lock_shared(cpu) else { return };
        match self.hierarchy.try_book(cpu) {
            None => return,
            Some(Book::Absent) => {
                let next = bases.next_global();
                let Ok(first) = self.hierarchy.try_publish(cpu, next) else { return };
                bases.set_idle(true);
                self.bases.set_absent(cpu, true);
                self.owe_revocation(cpu);
                self.ask_for_alarm(first, actions);
            }
            // It went on in the lock that it was stopped in, and its books say something else by now.
            Some(_) => {
                let watch = &self.watch[cpu.index()];
                watch.clear(flag::MARKED);
                // Meanwhile its heartbeats were not stored.
                watch.beat(now);
                self.bases.set_absent(cpu, false);
            }
        }
        self.settle_hand_over(cpu);
        drop(bases);
        self.take_back_the_rest_of(cpu, actions);
    }

    /// Under the bases' locks.
    fn settle_hand_over(&self, cpu: CpuId) {
        if self.watch[cpu.index()].clear(flag::HANDED) {
            self.unrevoked.count_down();
        }
    }

    fn take_back_the_rest_of(&self, cpu: CpuId, actions: &mut Actions) {
        if self.has_flag(cpu, flag::REVOKE) {
            self.take_back_tokens(cpu, actions);
        }
    }

    /// `cpu` may have tokens that must be taken back. Said under its bases' locks: whoever marks it may be
    /// stopped before it has done so, and then any watcher does it. Test: `site::stall::two_freeze_anywhere`.
    fn owe_revocation(&self, cpu: CpuId) {
        if self.watch[cpu.index()].set(flag::REVOKE) {
            self.unrevoked.count();
        }
    }

    /// Takes the tokens that `holder` has on any base, and publishes what waits there. Waits for no lock: a
    /// base whose lock is not to be had keeps its token, and one that could not be published is owed, until
    /// somebody looks again ([`watch`](Self::watch)).
    pub(super) fn take_back_tokens(&self, holder: CpuId, actions: &mut Actions) {
        let mut is_complete = true;
        for id in self.base_ids() {
            let Some(mut base) = self.bases.try_lock(id) else {
                is_complete = false;
                continue;
            };
            if base.runner() != Some(holder) {
                continue;
            }
            let must_publish = base.revoke().must_publish();
            // Owed before the lock is given back: whoever is stopped after it has left that, whoever is
            // stopped before it the token. Test: `site::stall::two_freeze_anywhere`.
            let watch = &self.watch[id.cpu.index()];
            if must_publish && watch.set(flag::PUBLISH) {
                self.unrevoked.count();
            }
            drop(base);
            if must_publish && self.try_tell(id, actions) && watch.clear(flag::PUBLISH) {
                self.unrevoked.count_down();
            }
        }
        if is_complete && self.watch[holder.index()].clear(flag::REVOKE) {
            self.unrevoked.count_down();
        }
    }

    /// Tells of a base that is due earlier, without waiting; says whether it could.
    fn try_tell(&self, id: BaseId, actions: &mut Actions) -> bool {
        let is_published = id.kind.is_pullable() && self.is_pulling();
        match (is_published, self.hierarchy.try_book(id.cpu)) {
            (true, None) => false,
            (true, Some(Book::Parked | Book::Absent)) => self.try_republish(id.cpu, actions),
            (true, Some(Book::Awake)) => true,
            (true, Some(Book::Unavailable)) | (false, _) => {
                self.kick_unless_stuck(id.cpu, actions);
                true
            }
        }
    }

    /// Publishes the first global expiry of `cpu` anew if no lock has to be waited for; says whether it did.
    fn try_republish(&self, cpu: CpuId, actions: &mut Actions) -> bool {
        let Some(mut global) = self.bases.try_lock(BaseId { cpu, kind: BaseKind::Global }) else {
            return false;
        };
        let Some(mut guest) = self.bases.try_lock(BaseId { cpu, kind: BaseKind::Guest }) else {
            return false;
        };
        let next = earliest(global.next_expiry(), guest.next_expiry());
        let Ok(first) = self.hierarchy.try_publish(cpu, next) else { return false };
        drop((guest, global));
        self.ask_for_alarm(first, actions);
        true
    }

    /// A CPU that was marked turns when it can, and a kick does not make it do so sooner; unless it sleeps.
    /// It says that it is idle before it looks at its bases, and who arms after that sees it.
    pub(super) fn kick_unless_stuck(&self, cpu: CpuId, actions: &mut Actions) {
        if !self.has_flag(cpu, flag::MARKED) || self.has_flag(cpu, flag::IDLE) {
            actions.kick(cpu);
        }
    }

    /// Ends what others have left undone: tokens of CPUs that are absent.
    fn take_back_the_rest(&self, now: Nanos, actions: &mut Actions) {
        if self.unrevoked.get() == 0 {
            return;
        }
        for cpu in (0..self.bases.cpu_count()).map(CpuId) {
            if self.has_flag(cpu, flag::HANDED) {
                self.complete_mark(cpu, now, actions);
            }
            self.take_back_the_rest_of(cpu, actions);
            if self.has_flag(cpu, flag::PUBLISH)
                && self.try_republish(cpu, actions)
                && self.watch[cpu.index()].clear(flag::PUBLISH)
            {
                self.unrevoked.count_down();
            }
        }
    }

    /// The same for who may wait; and the tokens that others have on the bases of `cpu`.
    pub(super) fn take_all_tokens(&self, cpu: CpuId, actions: &mut Actions) {
        for id in self.base_ids() {
            let mut base = self.bases.lock(id, None);
            if base.runner().is_some_and(|runner| runner == cpu || id.cpu == cpu) {
                let change = base.revoke();
                drop(base);
                self.tell(id, change, actions);
            }
        }
    }

    pub(super) fn base_ids(&self) -> impl Iterator<Item = BaseId> + use<L, T> {
        let cpus = (0..self.bases.cpu_count()).map(CpuId);
        cpus.flat_map(|cpu| BaseKind::ALL.into_iter().map(move |kind| BaseId { cpu, kind }))
    }

    /// Publishes the first global expiry of `cpu` anew, if it is idle or absent.
    pub(super) fn republish(&self, cpu: CpuId, actions: &mut Actions) {
        if !self.is_pulling() {
            return;
        }
        let mut global = self.bases.lock(BaseId { cpu, kind: BaseKind::Global }, None);
        let mut guest = self.bases.lock(BaseId { cpu, kind: BaseKind::Guest }, None);
        if !global.is_idle {
            return;
        }
        let next = earliest(global.next_expiry(), guest.next_expiry());
        let first = self.hierarchy.publish(cpu, next);
        drop((guest, global));
        self.ask_for_alarm(first, actions);
    }

    /// Looks after the neighbours, once per tick: whoever is stalled with something overdue is marked. By the
    /// CPU itself, awake. Returns how many were marked.
    ///
    /// It judges only if its own last look was recent: when the whole machine was stopped, everybody looks
    /// old.
    ///
    /// ```
    /// # use quietcore_core::{Actions, CpuId, Machine, Nanos, SequentialLock, Settings};
    /// # use quietcore_core::topology::Topology;
    /// # let machine: Machine<SequentialLock, u32> =
    /// #     Machine::new(Topology::builder(2).build()?, Settings::default())?;
    /// # let (cpu, mut actions) = (CpuId::default(), Actions::new(2));
    /// # machine.online(cpu, Nanos(0), &mut actions)?;
    /// assert_eq!(machine.watch(cpu, Nanos(5), &mut actions), 0); // nobody else is there
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn watch(&self, cpu: CpuId, now: Nanos, actions: &mut Actions) -> u32 {
        self.mark_silent(cpu, now, actions, |other| self.has_overdue(other, now))
    }

    /// The same by a CPU that is about to sleep: whoever is stalled is marked, also with nothing overdue.
    /// Asleep it would not see that something is; and a stalled CPU that is the only one awake in the books
    /// answers for all timers.
    ///
    /// ```
    /// # use quietcore_core::{Actions, CpuId, Machine, Nanos, SequentialLock, Settings};
    /// # use quietcore_core::topology::Topology;
    /// # let machine: Machine<SequentialLock, u32> =
    /// #     Machine::new(Topology::builder(2).build()?, Settings::default())?;
    /// # let (cpu, stuck, mut actions) = (CpuId::new(0)?, CpuId::new(1)?, Actions::new(2));
    /// # machine.online(cpu, Nanos(0), &mut actions)?;
    /// # machine.online(stuck, Nanos(0), &mut actions)?;
    /// let (before, now) = (Nanos(8_000_000), Nanos(9_000_000));
    /// machine.watch(cpu, before, &mut actions);
    /// assert!(machine.sees_silence(cpu, now));
    /// assert_eq!(machine.watch_before_sleep(cpu, now, &mut actions), 1);
    /// assert!(!machine.sees_silence(cpu, now));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn watch_before_sleep(&self, cpu: CpuId, now: Nanos, actions: &mut Actions) -> u32 {
        self.mark_silent(cpu, now, actions, |_| true)
    }

    /// Whether the next one that `cpu` watches has not turned for longer than is allowed: a CPU that sees
    /// that should not sleep before it has looked twice. Without a lock.
    ///
    /// ```
    /// # use quietcore_core::{CpuId, Machine, Nanos, SequentialLock, Settings, topology::Topology};
    /// # let machine: Machine<SequentialLock, u32> =
    /// #     Machine::new(Topology::builder(1).build()?, Settings::default())?;
    /// assert!(!machine.sees_silence(CpuId::default(), Nanos(5))); // nobody else is there
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn sees_silence(&self, cpu: CpuId, now: Nanos) -> bool {
        let mut is_silent = false;
        if self.is_pulling() {
            self.hierarchy.watched(cpu, |other| {
                is_silent |= self.is_silent(other, now);
                true
            });
        }
        is_silent
    }

    fn mark_silent(
        &self,
        cpu: CpuId,
        now: Nanos,
        actions: &mut Actions,
        is_to_be_marked: impl Fn(CpuId) -> bool,
    ) -> u32 {
        self.beat(cpu, now);
        let looked = self.watch[cpu.index()].look(now);
        let recent = self.settings.stall_after.0.max(self.settings.tick.nanos().0.saturating_mul(2));
        if !self.is_pulling() || now.since(looked).0 > recent {
            return 0;
        }
        self.take_back_the_rest(now, actions);
        let mut marked = self.mark_overslept_once_per_tick(now, actions);
        self.hierarchy.watched(cpu, |other| {
            // One that turns ends the look at this level: it watches the next itself. Behind one that does
            // not, the next is looked at, also if that one has nothing to be marked for. Test:
            // `site::stall::one_freezes_anywhere`.
            if !self.is_silent(other, now) {
                return true;
            }
            if is_to_be_marked(other) {
                marked += u32::from(self.mark_if_silent(other, now, actions) == Mark::Marked);
            }
            false
        });
        marked
    }

    /// Whether somebody has marked `cpu` absent, or it did so itself, and it is not back: a hint. From any
    /// thread; cost: a load.
    ///
    /// ```
    /// # use quietcore_core::{Actions, CpuId, Machine, Nanos, SequentialLock, Settings, topology::Topology};
    /// # let machine: Machine<SequentialLock, u32> =
    /// #     Machine::new(Topology::builder(2).build()?, Settings::default())?;
    /// # let (cpu, mut actions) = (CpuId::default(), Actions::new(2));
    /// # machine.online(cpu, Nanos(0), &mut actions)?;
    /// let _ = machine.mark_absent(cpu, &mut actions);
    /// assert!(machine.is_marked(cpu));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_marked(&self, cpu: CpuId) -> bool {
        self.has_flag(cpu, flag::MARKED)
    }

    /// For a sentinel: marks every CPU that is awake in the books and has not turned for too long. Says
    /// whether one of them has.
    pub(super) fn mark_all_silent(&self, now: Nanos, actions: &mut Actions) -> bool {
        let mut turns = false;
        for cpu in (0..self.bases.cpu_count()).map(CpuId) {
            if self.hierarchy.try_book(cpu) != Some(Book::Awake) {
                continue;
            }
            if self.is_silent(cpu, now) {
                let _ = self.mark_if_silent(cpu, now, actions);
            } else {
                turns = true;
            }
        }
        turns
    }

    /// Whether `cpu` has not turned for too long.
    fn is_silent(&self, cpu: CpuId, now: Nanos) -> bool {
        let watch = &self.watch[cpu.index()];
        let allowed = self.settings.stall_after.0 << u32::from(watch.is_patient(now));
        now.since(watch.heartbeat()).0 >= allowed
    }

    /// Whether something waits for `cpu` since a tick or more.
    fn has_overdue(&self, cpu: CpuId, now: Nanos) -> bool {
        let tick = self.settings.tick.nanos();
        let overdue = |next: Nanos| now.since(next) >= tick;
        // Its own timers, those of a group that it looks after (it may have become the migrator only when
        // another one was marked), or those that it has collected. Tests: `site::stall`.
        self.bases.next_global(cpu).is_some_and(overdue)
            || self.hierarchy.requires_handle_remote(cpu, now.since(tick))
            || self.holds_tokens(cpu)
    }

    /// Whether `cpu` has collected timers, of its own bases or of others, and not run them all.
    fn holds_tokens(&self, cpu: CpuId) -> bool {
        let mut ids = self.base_ids().filter(|id| id.kind.is_pullable());
        ids.any(|id| self.bases.try_lock(id).is_some_and(|base| base.runner() == Some(cpu)))
    }
}
