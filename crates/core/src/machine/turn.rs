//! A turn: what a CPU does in its timer softirq. First its own bases, then those it looks after.
//!
//! Expiry has two phases. *Collect* moves due timers aside under the base's lock, publishes what comes next,
//! and takes the base's token; *run* pops one timer per lock hold and runs it with no lock and nothing of the
//! hierarchy held. A turn keeps its tokens until their bases are empty or until it has used its time, and
//! takes them up again.
//!
//! A stalled CPU loses its tokens to the CPU that marks it absent and notices when it returns: the pop finds
//! another generation. Source: docs/design/PROTOCOL.md, section 2; Linux 6.12, kernel/time/timer.c,
//! `run_timer_softirq`.

use super::Machine;
use crate::base::{BaseId, BaseKind, ExpiredTimer, ExpiryChange, RunnerToken, TimerName, earliest};
use crate::lock::Busy;
use crate::sync::interleave;
use crate::tmigr::Pulled;
use crate::{Actions, Context, CpuId, Nanos, RawLock};
use alloc::collections::VecDeque;

/// Where a CPU is in its turn. A world keeps one per CPU, or per thread that runs timers for a CPU. What it
/// has collected waits for it, so it is not dropped while it [has more](Self::has_more), but given back with
/// [`Machine::abandon_turn`].
#[derive(Debug)]
pub struct Turn {
    cpu: CpuId,
    tokens: VecDeque<RunnerToken>,
    started: Nanos,
    left: u32,
    remote_is_due: bool,
    /// Something due was left, as a thread was inside the locks that it needed.
    met_busy: bool,
}

impl Turn {
    /// For `cpu`; nothing collected yet.
    #[must_use]
    pub const fn new(cpu: CpuId) -> Self {
        Self {
            cpu,
            tokens: VecDeque::new(),
            started: Nanos(0),
            left: 0,
            remote_is_due: false,
            met_busy: false,
        }
    }

    /// Whether collected timers wait for the next turn, which must come soon.
    #[must_use]
    pub fn has_more(&self) -> bool {
        !self.tokens.is_empty() || self.remote_is_due
    }

    /// Something more urgent waits: this turn hands out no more timers. What it has collected waits for the
    /// next one.
    pub const fn end_early(&mut self) {
        self.left = 0;
    }

    /// When to look again at what this turn could not get at, if something due at `first` is that: a tick
    /// after it began. What became due after that may wait so long, too, but no longer.
    pub(super) fn retry(&self, first: Nanos, tick: Nanos) -> Option<Nanos> {
        let was_left = self.met_busy && first <= self.started;
        was_left.then(|| Nanos(self.started.0.saturating_add(tick.0)))
    }

    /// Whose turn it is.
    #[must_use]
    pub const fn cpu(&self) -> CpuId {
        self.cpu
    }
}

/// When a call is made, and where what it asks of the world is written.
#[derive(Debug)]
pub struct At<'a> {
    /// The moment, in ns.
    pub now: Nanos,
    /// What the world has to do.
    pub actions: &'a mut Actions,
}

/// The end of a run.
#[derive(Clone, Copy, Debug)]
struct RunEnd {
    /// The base of the timer when the run began.
    began: BaseId,
    /// Where the timer rests, if it was armed again.
    base: BaseId,
    change: ExpiryChange,
}

impl<L: RawLock, T: Copy> Machine<L, T> {
    /// Whether `cpu` should take a turn: once per tick, or when it wakes up for a timer. By the CPU itself.
    /// It should also while something has to be repaired: what is due then may be seen by no migrator. Cost:
    /// a few loads; no lock.
    #[must_use]
    pub fn handle_tick(&self, cpu: CpuId, now: Nanos) -> bool {
        self.flags(cpu).is_marked()
            || self.bases.is_any_due(cpu, now)
            || self.is_pulling()
                && !self.bases.is_unavailable(cpu)
                && (self.has_repairs() || self.hierarchy.requires_handle_remote(cpu, now))
    }

    /// Whether a turn of `cpu`, which looks after no other, would do nothing: no timer on it is due by `now`,
    /// and no mark waits for its return. `now` is asked only if a timer is armed. By the CPU itself. Cost:
    /// five loads from two cache lines.
    #[inline]
    #[must_use]
    pub fn has_nothing(&self, cpu: CpuId, now: impl FnOnce() -> Nanos) -> bool {
        !self.flags(cpu).is_marked() && self.bases.soonest(cpu).is_none_or(|soonest| soonest > now())
    }

    /// Collects what is due on the CPU's own bases; [`next_expired`](Self::next_expired) hands it out. By the
    /// CPU itself. A CPU that was marked absent comes back here, if the locks can be had.
    pub fn begin_turn(&self, turn: &mut Turn, now: Nanos) {
        let cpu = turn.cpu;
        if self.flags(cpu).is_marked() {
            let _ = self.return_from_absence(cpu, now);
        }
        self.collect_due(turn, now);
    }

    /// [`begin_turn`](Self::begin_turn) for a world of lanes: a CPU that was marked stays absent in this
    /// turn, as one that returns has to tell the other lanes ([`Lane::handle_return`](crate::lane::Lane)).
    pub fn collect_due(&self, turn: &mut Turn, now: Nanos) {
        let cpu = turn.cpu;
        self.beat(cpu, now);
        if !turn.tokens.is_empty() {
            // The last turn ended in the middle of one base. Where more is always due there than a turn runs,
            // the others would wait for ever.
            turn.tokens.rotate_left(1);
        }
        (turn.started, turn.left, turn.remote_is_due) = (now, self.settings.turn.timers(), self.is_pulling());
        for kind in BaseKind::ALL {
            let id = BaseId { cpu, kind };
            if self.bases.is_due(id, now) {
                turn.tokens.extend(self.bases.collect_and_take(id, cpu, Context::on(cpu, now)));
            }
        }
    }

    /// The next timer to run; `None` when nothing is left or the turn's [budget](super::TurnBudget) is used:
    /// [`Turn::has_more`] tells. The caller runs it and then calls [`finish`](Self::finish).
    pub fn next_expired(
        &self,
        turn: &mut Turn,
        now: Nanos,
        actions: &mut Actions,
    ) -> Option<ExpiredTimer<T>> {
        self.next_expired_with(turn, At { now, actions }, |_, _| ()).map(|(expired, ())| expired)
    }

    /// [`next_expired`](Self::next_expired), and what `take` makes of the timer at the moment at which it is
    /// handed out: under its base's lock, before its owner can see that it is not pending any more. So what
    /// its owner would free with the timer (a waker, a count of references) can be taken out of it here.
    /// `take` gets the payload and the name.
    ///
    /// `take` must be short, as others wait for the lock; it must not panic, and call no machine.
    pub fn next_expired_with<R>(
        &self,
        turn: &mut Turn,
        at: At<'_>,
        mut take: impl FnMut(T, TimerName<T>) -> R,
    ) -> Option<(ExpiredTimer<T>, R)> {
        let At { now, actions } = at;
        while turn.left > 0 && now.since(turn.started) < self.settings.turn.time() {
            let Some(token) = turn.tokens.front() else {
                if !core::mem::take(&mut turn.remote_is_due) {
                    return None;
                }
                self.pull(turn, now);
                continue;
            };
            let base = token.base;
            let popped = self.bases.pop_with(token, Context::on(turn.cpu, now), &mut take);
            self.publish_change(base, popped.change, actions);
            let Some(expired) = popped.expired else {
                self.end_token(turn, now);
                continue;
            };
            turn.left -= 1;
            return Some(expired);
        }
        None
    }

    /// After a detached timer was handed out: more of the same base in one lock hold, at most `room`, as long
    /// as they are detached, too. `take` is called with the payload, the name and the moment of each, as in
    /// [`next_expired_with`](Self::next_expired_with); nothing has to be finished. Returns how many there
    /// were. What is taken is the caller's alone, also if its CPU is marked absent now: so `room` is how many
    /// timers wait when its thread loses its CPU at the wrong moment.
    pub fn take_more_detached(
        &self,
        turn: &mut Turn,
        room: u32,
        at: At<'_>,
        take: impl FnMut(T, TimerName<T>, Nanos),
    ) -> u32 {
        let room = room.min(turn.left);
        let Some(token) = turn.tokens.front().filter(|_| room > 0) else { return 0 };
        let context = Context::on(turn.cpu, at.now);
        let (taken, change) = self.bases.pop_detached_with(token, room, context, take);
        let base = token.base;
        turn.left -= taken;
        self.publish_change(base, change, at.actions);
        taken
    }

    /// The callback of `expired` has returned at `now`. By the thread that got it, also if its CPU was marked
    /// absent meanwhile.
    pub fn finish(&self, turn: &mut Turn, expired: ExpiredTimer<T>, now: Nanos, actions: &mut Actions) {
        self.beat(turn.cpu, now);
        if expired.is_detached() {
            // Its base has forgotten this run already, and armed again it may be anywhere.
            return;
        }
        let began = expired.base();
        let finished = self.bases.finish(expired, Context::on(turn.cpu, now));
        turn.tokens.extend(finished.token);
        let end = RunEnd { began, base: finished.base, change: finished.change };
        self.after_run(end, turn.cpu, At { now, actions });
    }

    /// A run on `runner` has ended. Its exact timer may wait on the base of another CPU only now, which may
    /// wait beyond it, awake or idle: the base was adopted meanwhile, or the timer is due again, and `runner`
    /// was marked absent. Tests: `hotplug::an_heir_is_told_of_an_exact_timer_that_ran`,
    /// `absence::an_exact_timer_that_was_due_while_it_ran_is_told`.
    fn publish_end(&self, base: BaseId, runner: CpuId, change: ExpiryChange, actions: &mut Actions) {
        self.publish_change(base, change, actions);
        if change.is_exact_first && base.cpu != runner {
            self.kick_unless_stuck(base.cpu, actions);
        }
    }

    /// A timer that was armed again while it ran on `runner` may have come to rest on a CPU that was isolated
    /// meanwhile: it goes where the others went, and the CPU is not told of it.
    /// What a CPU armed on its own base after it was isolated stays. Tests:
    /// `isolation::a_timer_that_arms_itself_leaves_an_isolated_cpu`, `isolation::armed_again_by_a_stranger`,
    /// `isolation::what_ran_when_it_was_isolated_leaves`.
    #[inline]
    fn after_run(&self, end: RunEnd, runner: CpuId, at: At<'_>) {
        let RunEnd { began, base, change } = end;
        let is_own = began.cpu == runner && base.cpu == runner;
        if is_own && !change.leaves {
            self.publish_change(base, change, at.actions);
        } else {
            self.after_run_elsewhere(base, runner, change, at);
        }
    }

    /// The same of a run that another CPU's base is concerned with, or whose base was evacuated meanwhile.
    #[inline(never)]
    fn after_run_elsewhere(&self, base: BaseId, runner: CpuId, change: ExpiryChange, at: At<'_>) {
        let may_leave = base.kind.is_pullable();
        if !may_leave || !self.leave_nothing_behind(base.cpu, at.now, at.actions) {
            self.publish_end(base, runner, change, at.actions);
        }
    }

    /// [`finish`](Self::finish) and [`next_expired_with`](Self::next_expired_with) in one: one lock per timer
    /// instead of two.
    pub fn finish_and_next_with<R>(
        &self,
        turn: &mut Turn,
        expired: ExpiredTimer<T>,
        at: At<'_>,
        mut take: impl FnMut(T, TimerName<T>) -> R,
    ) -> Option<(ExpiredTimer<T>, R)> {
        let At { now, actions } = at;
        let is_over = turn.left == 0 || now.since(turn.started) >= self.settings.turn.time();
        let Some(token) = turn.tokens.front().filter(|token| !is_over && token.base == expired.base()) else {
            self.finish(turn, expired, now, actions);
            return self.next_expired_with(turn, At { now, actions }, take);
        };
        self.beat(turn.cpu, now);
        let base = token.base;
        let context = Context::on(turn.cpu, now);
        let popped = match self.bases.finish_and_pop_with(expired, token, context, &mut take) {
            Ok(popped) => popped,
            Err(expired) => {
                let _ = turn.tokens.pop_front();
                self.finish(turn, expired, now, actions);
                return self.next_expired_with(turn, At { now, actions }, take);
            }
        };
        let end = RunEnd { began: base, base, change: popped.change };
        self.after_run(end, turn.cpu, At { now, actions });
        if popped.expired.is_some() {
            turn.left -= 1;
            return popped.expired;
        }
        self.end_token(turn, now);
        self.next_expired_with(turn, At { now, actions }, take)
    }

    /// The first token is used up. A timer that was collected before its time went back to the wheel, at
    /// least a level lower, and may be due there by now: a turn leaves nothing that was due when it began.
    fn end_token(&self, turn: &mut Turn, now: Nanos) {
        let Some(RunnerToken { base, .. }) = turn.tokens.pop_front() else { return };
        if self.bases.next_expiry(base).is_none_or(|next| next > turn.started) {
            return;
        }
        if base.cpu == turn.cpu {
            let context = Context::on(turn.cpu, now);
            turn.tokens.extend(self.bases.collect_and_take(base, turn.cpu, context));
        } else {
            turn.remote_is_due = self.is_pulling();
        }
    }

    /// Gives back what a turn has collected and not run, so that others can run it: when its CPU leaves, or
    /// its thread ends.
    pub fn abandon_turn(&self, turn: &mut Turn, now: Nanos, actions: &mut Actions) {
        turn.remote_is_due = false;
        while let Some(token) = turn.tokens.pop_front() {
            let base = token.base;
            let change = self.bases.release(token, Context::on(turn.cpu, now));
            self.publish_change(base, change, actions);
        }
    }

    /// Collects what is due on the bases that this CPU looks after.
    fn pull(&self, turn: &mut Turn, now: Nanos) {
        let cpu = turn.cpu;
        let (tokens, met_busy) = (&mut turn.tokens, &mut turn.met_busy);
        *met_busy = false;
        let mut pull = |target| {
            // Another CPU may be stopped inside one of these: its turn comes at the next tick.
            let lock = |kind| self.bases.try_lock(BaseId { cpu: target, kind });
            let (Some(mut global), Some(mut guest)) = (lock(BaseKind::Global), lock(BaseKind::Guest)) else {
                *met_busy = true;
                return Pulled::Left;
            };
            if !global.is_idle {
                return Pulled::Left;
            }
            for base in [&mut global, &mut guest] {
                base.collect(now);
                if self.bases.may_take(cpu, base.id) {
                    tokens.extend(base.take(cpu));
                }
            }
            interleave!(BeforeRepublish);
            let next = earliest(global.next_expiry(), guest.next_expiry());
            // This CPU is awake, or learns at the end of its look what is left to wake up for. What cannot be
            // published now stays due: it is looked at again at the next tick.
            match self.hierarchy.try_publish(target, next) {
                Ok(_) => Pulled::Published,
                Err(Busy) => {
                    *met_busy = true;
                    Pulled::Left
                }
            }
        };
        let saw_all = self.hierarchy.handle_remote(cpu, now, &mut pull);
        if !saw_all || self.has_repairs() {
            let is_due = |target| self.bases.next_global(target).is_some_and(|next| next <= now);
            self.pull_unseen(cpu, !saw_all, &mut |target| {
                if is_due(target) { pull(target) } else { Pulled::Left }
            });
        }
    }

    /// Pulls from CPUs on which something may be due that no migrator sees: the hierarchy could not learn of
    /// it, or, with `all`, events could not be seen; or a CPU is stuck: the migrator, which could not be
    /// marked, or one that was stopped inside its record.
    #[cold]
    #[inline(never)]
    fn pull_unseen(&self, cpu: CpuId, all: bool, pull: &mut dyn FnMut(CpuId) -> Pulled) {
        let cpus = || (0..self.bases.cpu_count()).map(CpuId);
        let all = all || cpus().any(|cpu| self.flags(cpu).is_stuck());
        for target in cpus().filter(|target| all || self.flags(*target).is_unpublished()) {
            // What an isolated CPU has is its own, and it runs nothing of others (T4): looked up each time.
            if !self.bases.is_unavailable(target) && !self.bases.is_unavailable(cpu) {
                let _ = pull(target);
            }
        }
    }

    /// `cpu` turns, though it has looked for nothing since: between two pieces of other work. By the CPU
    /// itself. Cost: a load and a store.
    pub fn keep_alive(&self, cpu: CpuId, now: Nanos) {
        self.beat(cpu, now);
    }

    /// Stores the heartbeat; not of a CPU that was marked, so that its silence can be told when it is back.
    pub(super) fn beat(&self, cpu: CpuId, now: Nanos) {
        let watch = &self.watch[cpu.index()];
        if !watch.flags.load().is_marked() {
            watch.beat(now);
        }
    }
}
