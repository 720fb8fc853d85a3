//! Expiry in two phases: collect what is due, then run it one by one.
//!
//! Collecting needs one lock hold. Running is for the holder of the base's token, and each timer is popped
//! and finished under a lock hold of its own. The token is politeness: it keeps two CPUs from going through
//! the same list. That a timer is not run twice at a time is decided per timer, by its record. So a token
//! may be taken from a CPU that is stuck ([`Base::revoke`]) without asking it: it notices at its next
//! [`Bases::pop_with`], and the run that it is stuck in still ends with [`Bases::finish`]. Runs of detached
//! timers have no record and no end.
//!
//! Source: docs/design/PROTOCOL.md, section 2; Linux 6.12, kernel/time/timer.c, `__run_timers`,
//! `expire_timers`. Model: docs/design/stall_model.py (`P`, `C1`, `C2`, `take`, `revoke`).

use super::bases::Bases;
use super::runs::Wait;
use super::timer::Due;
use super::word::TimerWord;
use super::{Base, BaseId, BaseKind, ExactId, ExactRef, ExpiryChange, Takes, TimerId, TimerRef};
use crate::lock::RawLock;
use crate::sync::interleave;
use crate::{Context, CpuId, Nanos};
use core::num::NonZeroUsize;

/// The right to hand out what a base has collected. Its holder gives it back by popping until there is
/// nothing left, or by [`Bases::release`]; else no CPU runs that base until it is revoked.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a base whose token is dropped is not run"]
pub(crate) struct RunnerToken {
    pub(crate) base: BaseId,
    pub(crate) cpu: CpuId,
    generation: u64,
}

/// Which timer expired: its number if the machine keeps it, else the reference that it was armed by.
#[derive(Debug, PartialEq, Eq)]
pub enum TimerName<T> {
    /// A timer of the machine.
    Id(TimerId),
    /// An exact timer of the machine.
    ExactId(ExactId),
    /// A timer of the caller.
    Timer(TimerRef<T>),
    /// An exact timer of the caller.
    Exact(ExactRef<T>),
}

impl<T> Copy for TimerName<T> {}

impl<T> Clone for TimerName<T> {
    fn clone(&self) -> Self {
        *self
    }
}

/// A timer that was handed out and is to be run. From now on it may be armed and cancelled as any other; it
/// is not handed out again before the machine is told that this run has finished.
#[derive(Debug)]
#[must_use = "a timer that never finishes never runs again"]
pub struct ExpiredTimer<T> {
    /// Only compared: the timer may be gone.
    address: NonZeroUsize,
    payload: T,
    name: TimerName<T>,
    expires: Nanos,
    base: BaseId,
    runner: CpuId,
    is_detached: bool,
}

impl<T: Copy> ExpiredTimer<T> {
    /// What the timer was made with.
    #[inline]
    #[must_use]
    pub const fn payload(&self) -> T {
        self.payload
    }

    /// Which timer it is.
    #[inline]
    #[must_use]
    pub const fn timer(&self) -> TimerName<T> {
        self.name
    }

    /// What it was armed for; of a timer that waits for ticks the start of that tick.
    #[inline]
    #[must_use]
    pub const fn expires(&self) -> Nanos {
        self.expires
    }

    /// The base it was in.
    #[inline]
    #[must_use]
    pub const fn base(&self) -> BaseId {
        self.base
    }

    /// The CPU it was handed out to.
    #[inline]
    #[must_use]
    pub const fn runner(&self) -> CpuId {
        self.runner
    }

    /// Whether the timer is [detached](crate::TimerOptions::detached): this run has no end,
    /// and its owner may have freed the timer already.
    #[inline]
    #[must_use]
    pub const fn is_detached(&self) -> bool {
        self.is_detached
    }
}

/// What a pop did.
#[derive(Debug)]
#[must_use = "a timer that was popped has to be run"]
pub(crate) struct Popped<T, R> {
    /// To be run, and what was taken of it; `None` when the token is gone, because it was revoked or nothing
    /// is left.
    pub(crate) expired: Option<(ExpiredTimer<T>, R)>,
    /// Timers that were collected before their time go back to the wheel, which may make the base due
    /// earlier.
    pub(crate) change: ExpiryChange,
}

/// What the end of a run did.
#[derive(Debug)]
#[must_use = "the token has to be used"]
pub(crate) struct Finished {
    /// The timer was due while it ran, and no token was out: pop with this.
    pub(crate) token: Option<RunnerToken>,
    pub(crate) change: ExpiryChange,
    /// The base that `change` is about: another one when that of the run was adopted meanwhile.
    pub(crate) base: BaseId,
}

impl<T: Copy> Base<T> {
    /// Takes everything that is due by `now` out of the clock's way; returns whether there is anything to
    /// run, from now or before.
    pub(crate) fn collect(&mut self, now: Nanos) -> bool {
        let had_expired = self.has_expired();
        let due = self.queues.collect(now);
        self.overdue = if had_expired { self.overdue.min(due) } else { due };
        self.renew();
        self.has_expired()
    }

    /// Gives the token to `runner` if there is something to run and the token is free.
    pub(crate) fn take(&mut self, runner: CpuId) -> Option<RunnerToken> {
        if self.is_closed() || self.runner.is_some() || !self.has_expired() {
            return None;
        }
        self.generation += 1;
        self.runner = Some((runner, self.generation));
        // What was overdue is the runner's business now.
        self.renew();
        Some(RunnerToken { base: self.id, cpu: runner, generation: self.generation })
    }

    /// Takes the token away from its holder; what is left to run is for any CPU again.
    pub(crate) fn revoke(&mut self) -> ExpiryChange {
        self.counters.revoked += u64::from(self.runner.is_some());
        self.runner = None;
        self.renewed()
    }

    /// Hands out nothing from now on, and takes nothing.
    pub(crate) fn close(&mut self) {
        self.takes = Takes::Nothing;
        self.runner = None;
        // What was its business is due again, for those who look at the base.
        self.renew();
    }

    /// Every timer that is pending, in a queue or on a record.
    pub(super) fn for_each_pending(&self, mut each: impl FnMut(&DueTimer<T>)) {
        let mut told = 0;
        let mut tell = |due: Due<T>| {
            told += 1;
            each(&DueTimer::of(due, due.shared().word.load()));
        };
        self.runs.waiting().for_each(&mut tell);
        self.queues.for_each_pending(&mut tell);
        debug_assert_eq!(told, self.pending, "a pending timer of {} is somewhere", self.id);
    }

    /// Takes out a timer that is still pending, in a queue or on a record, and what `take` made of it.
    fn end_pending<R>(&mut self, take: impl FnOnce(&DueTimer<T>) -> R) -> Option<R> {
        assert!(self.is_closed(), "what ends in {} could be armed again", self.id);
        let Some(due) = self.runs.pop_waiting().or_else(|| self.queues.pop_pending()) else {
            self.renew();
            self.queues.release();
            return None;
        };
        self.is_stale = true;
        self.pending -= 1;
        self.counters.cancelled += 1;
        Some(Self::let_go(due, take))
    }

    /// The timer is pending no more, and in no queue and on no record; what `take` made of it. Its owner may
    /// free it when this returns.
    #[inline]
    fn let_go<R>(due: Due<T>, take: impl FnOnce(&DueTimer<T>) -> R) -> R {
        let word = due.shared().word.load();
        let taken = take(&DueTimer::of(due, word));
        // The last access to the timer: a callback may end it; of a detached one its owner, once it sees
        // this. Model: `base::models::taken_before_it_is_idle`.
        due.shared().word.store(word.without(TimerWord::PENDING).without(TimerWord::COLLECTED));
        taken
    }

    #[inline]
    fn is_held_by(&self, token: &RunnerToken) -> bool {
        debug_assert_eq!(self.id, token.base, "a token is for its base");
        self.runner == Some((token.cpu, token.generation))
    }

    /// Gives the token back; what is left to run is for any CPU again.
    pub(crate) fn release(&mut self, token: &RunnerToken) -> ExpiryChange {
        if self.is_held_by(token) {
            self.runner = None;
        }
        self.renewed()
    }

    /// The next timer to run, and what `take` made of it. Without one the token is gone.
    fn pop<R>(
        &mut self,
        token: &RunnerToken,
        take: impl FnOnce(&DueTimer<T>) -> R,
    ) -> (Option<R>, ExpiryChange) {
        if !self.is_held_by(token) {
            return (None, ExpiryChange::default());
        }
        let next = loop {
            let ready = self.runs.pop_ready();
            let Some(due) = ready.or_else(|| self.queues.pop_collected()) else { break None };
            if !self.runs.is_running(due.address()) {
                break Some(self.begin(due, token.cpu, take));
            }
            // It stays pending, but cannot run before that run has ended.
            let word = &due.shared().word;
            word.store(word.load().without(TimerWord::COLLECTED));
            self.runs.wait(due.address(), Wait::Due(due));
            self.counters.waited += 1;
        };
        if next.is_none() {
            self.runner = None;
        }
        (next, self.renewed())
    }

    /// Hands out up to `room` detached timers, as long as the next one is such a one.
    fn pop_detached(
        &mut self,
        token: &RunnerToken,
        room: u32,
        mut take: impl FnMut(&DueTimer<T>),
    ) -> (u32, ExpiryChange) {
        let mut taken = 0;
        if self.is_held_by(token) && !self.runs.has_ready() {
            while taken < room
                && let Some(due) = self.queues.pop_collected_detached()
            {
                self.begin(due, token.cpu, &mut take);
                taken += 1;
            }
        }
        (taken, self.renewed())
    }

    #[inline]
    fn begin<R>(&mut self, due: Due<T>, runner: CpuId, take: impl FnOnce(&DueTimer<T>) -> R) -> R {
        if !due.shared().word.load().has(TimerWord::DETACHED) {
            self.runs.begin(due.address(), runner);
        }
        self.pending -= 1;
        self.counters.ran += 1;
        self.counters.ran_remote += u64::from(runner != self.id.cpu);
        Self::let_go(due, take)
    }

    /// The run of a timer has ended, on a base that still takes timers. One that waited for that is due at
    /// once, or when it was armed for.
    fn end(
        &mut self,
        expired: &ExpiredTimer<T>,
        now: Nanos,
        may_take: bool,
    ) -> (Option<RunnerToken>, ExpiryChange) {
        let (wait, leaves) = self.end_record(expired);
        match wait {
            // It may be in a queue.
            Wait::Nothing => (None, ExpiryChange { leaves, ..ExpiryChange::default() }),
            Wait::Rearmed(due) if !due.is_due(now, self.queues.length) => {
                self.pending -= 1;
                (None, ExpiryChange { leaves, ..self.insert_due(due) })
            }
            Wait::Due(due) | Wait::Rearmed(due) => {
                let since = due.expires(self.queues.length).0;
                self.overdue = if self.has_expired() { self.overdue.min(since) } else { since };
                self.runs.make_ready(due);
                // No other CPU may be there to see it.
                let token = if may_take { self.take(expired.runner) } else { None };
                let is_exact_first = matches!(due, Due::Exact(..)) && self.runner.is_none();
                (token, ExpiryChange { is_exact_first, leaves, ..self.renewed() })
            }
        }
    }

    pub(super) fn end_record(&mut self, expired: &ExpiredTimer<T>) -> (Wait<T>, bool) {
        let end = self.runs.end(expired.address);
        end.expect("a run ends once, on the base where it began")
    }

    /// Puts a timer whose word names this base, where it is in no queue and on no record, into its queue.
    pub(super) fn insert_due(&mut self, due: Due<T>) -> ExpiryChange {
        match due {
            Due::Tick(timer, when) => self.insert(timer, when),
            Due::Exact(timer, when) => self.insert(timer, when),
        }
    }
}

/// A run that begins: what may be known of its timer without the lock.
pub(super) struct DueTimer<T> {
    pub(super) due: Due<T>,
    pub(super) payload: T,
    number: Option<u32>,
    is_detached: bool,
}

impl<T: Copy> DueTimer<T> {
    #[inline(always)]
    fn of(due: Due<T>, word: TimerWord) -> Self {
        let shared = due.shared();
        let is_detached = word.has(TimerWord::DETACHED);
        Self { payload: shared.payload, number: shared.number(), due, is_detached }
    }
}

impl<L: RawLock, T: Copy> Bases<L, T> {
    /// Collects what is due and takes the token, for `runner`; `None` when there is nothing to run or
    /// the token is out.
    pub(crate) fn collect_and_take(
        &self,
        id: BaseId,
        runner: CpuId,
        context: Context,
    ) -> Option<RunnerToken> {
        let mut base = self.lock(id, context.own_cpu());
        if id.kind == BaseKind::Guest && !self.may_take(runner, id) {
            return None;
        }
        base.collect(context.now());
        if self.may_take(runner, id) { base.take(runner) } else { None }
    }

    /// The next timer to run, and what `take` made of it under the lock.
    #[inline]
    pub(crate) fn pop_with<R>(
        &self,
        token: &RunnerToken,
        context: Context,
        take: impl FnOnce(T, TimerName<T>) -> R,
    ) -> Popped<T, R> {
        let mut base = self.lock(token.base, context.own_cpu());
        let (expired, change) = base.pop(token, self.handing_out(token, take));
        drop(base);
        interleave!(BeforeRun);
        Popped { expired, change }
    }

    /// Up to `room` further timers, if they are detached: `take` is called with each, under the lock.
    pub(crate) fn pop_detached_with(
        &self,
        token: &RunnerToken,
        room: u32,
        context: Context,
        mut take: impl FnMut(T, TimerName<T>, Nanos),
    ) -> (u32, ExpiryChange) {
        let take = |run: &DueTimer<T>| take(run.payload, self.name(run), run.due.expires(self.length));
        self.lock(token.base, context.own_cpu()).pop_detached(token, room, take)
    }

    /// Calls `each` with every timer that is pending in the base `id`, and the moment that it is armed for,
    /// under the lock.
    pub(crate) fn for_each_pending(&self, id: BaseId, mut each: impl FnMut(T, TimerName<T>, Nanos)) {
        let tell = |run: &DueTimer<T>| each(run.payload, self.name(run), run.due.expires(self.length));
        self.lock(id, None).for_each_pending(tell);
    }

    /// Takes out a timer that is still pending in the base `id`, which was closed, and what `take` made of it
    /// under the lock.
    pub(crate) fn end_pending<R>(&self, id: BaseId, take: impl FnOnce(T, TimerName<T>) -> R) -> Option<R> {
        self.lock(id, None).end_pending(|run| take(run.payload, self.name(run)))
    }

    /// Gives the token back before everything was run.
    pub(crate) fn release(&self, token: RunnerToken, context: Context) -> ExpiryChange {
        self.lock(token.base, context.own_cpu()).release(&token)
    }

    /// What is known of a run that begins, for the holder of `token`, and what `take` makes of its timer.
    #[inline]
    fn handing_out<R>(
        &self,
        token: &RunnerToken,
        take: impl FnOnce(T, TimerName<T>) -> R,
    ) -> impl FnOnce(&DueTimer<T>) -> (ExpiredTimer<T>, R) {
        move |run| {
            let expired = ExpiredTimer {
                address: run.due.address(),
                payload: run.payload,
                name: self.name(run),
                expires: run.due.expires(self.length),
                base: token.base,
                runner: token.cpu,
                is_detached: run.is_detached,
            };
            let taken = take(run.payload, expired.name);
            (expired, taken)
        }
    }

    #[inline]
    pub(super) fn name(&self, run: &DueTimer<T>) -> TimerName<T> {
        match (run.due, run.number) {
            (Due::Tick(_, _), Some(number)) => TimerName::Id(self.store.id(number)),
            (Due::Exact(_, _), Some(number)) => TimerName::ExactId(self.store.id(number)),
            (Due::Tick(timer, _), None) => TimerName::Timer(timer),
            (Due::Exact(timer, _), None) => TimerName::Exact(timer),
        }
    }

    /// The run of a timer has ended. For a detached one this takes no lock.
    #[inline]
    pub(crate) fn finish(&self, expired: ExpiredTimer<T>, context: Context) -> Finished {
        if expired.is_detached {
            return Finished { token: None, change: ExpiryChange::default(), base: expired.base };
        }
        let mut base = self.lock(expired.base, context.own_cpu());
        if let Some(adopter) = base.adopter() {
            drop(base);
            return self.finish_adopted(expired, adopter, context);
        }
        let may_take = self.may_take(expired.runner, expired.base);
        let (token, change) = base.end(&expired, context.now(), may_take);
        Finished { token, change, base: expired.base }
    }

    /// The same on a base that was adopted during the run: what the timer waits for, its adopter gets.
    #[cold]
    fn finish_adopted(&self, expired: ExpiredTimer<T>, adopter: CpuId, context: Context) -> Finished {
        let mut onto = BaseId { cpu: adopter, ..expired.base };
        loop {
            let (mut old, mut new) =
                self.lock_same_kind(expired.base.cpu, onto.cpu, expired.base.kind, context);
            if old.adopter().is_none() {
                let may_take = self.may_take(expired.runner, expired.base);
                let (token, change) = old.end(&expired, context.now(), may_take);
                return Finished { token, change, base: expired.base };
            }
            if let Some(adopter) = new.adopter() {
                onto.cpu = adopter;
                continue;
            }
            let change = match old.end_record(&expired).0 {
                Wait::Nothing => ExpiryChange::default(),
                Wait::Due(due) | Wait::Rearmed(due) => old.hand_over(&mut new, due),
            };
            return Finished { token: None, change, base: onto };
        }
    }

    /// Ends a run and pops the next timer in one lock hold.
    ///
    /// `Err` gives the run back when the token was lost, or the base was adopted: then its end is for
    /// [`finish`](Self::finish).
    #[inline]
    pub(crate) fn finish_and_pop_with<R>(
        &self,
        expired: ExpiredTimer<T>,
        token: &RunnerToken,
        context: Context,
        take: impl FnOnce(T, TimerName<T>) -> R,
    ) -> Result<Popped<T, R>, ExpiredTimer<T>> {
        assert_eq!(expired.base, token.base, "a token is for its base");
        if expired.is_detached {
            return Ok(self.pop_with(token, context, take));
        }
        let mut base = self.lock(token.base, context.own_cpu());
        if base.adopter().is_some() || !base.is_held_by(token) {
            drop(base);
            return Err(expired);
        }
        // What has waited for the end is for the holder of the token: no other one is given.
        let (_, end) = base.end(&expired, context.now(), false);
        let (expired, change) = base.pop(token, self.handing_out(token, take));
        drop(base);
        interleave!(BeforeRun);
        Ok(Popped { expired, change: end.and(change) })
    }
}
