//! Going idle and waking up: what a CPU publishes, and when it must wake up.
//!
//! A CPU that goes idle looks at its pinned and its global timers under their locks. If a pinned one comes
//! first it will be awake anyway and publishes nothing; otherwise the hierarchy learns its first global
//! expiry, and says whether the CPU must wake up for others. All that happens in one section, in which
//! `is_idle` is written too: an arm either is seen here or sees the flag and publishes.
//!
//! Deferrable timers never count. Under `Push` and `Stay` every timer is the CPU's own. Source: Linux 6.12,
//! kernel/time/timer.c, `timer_base_try_to_set_idle`. Deviation: waking up takes the base locks, too, since
//! here others may mark a CPU absent at the same moment.

use super::Machine;
use super::cpu_bases::CpuBases;
use crate::base::earliest;
use crate::lock::Busy;
use crate::tmigr::CpuState;
use crate::{Actions, CpuId, Nanos, RawLock, Turn};

/// What a CPU with nothing to do should do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a CPU that oversleeps is late for its timers"]
pub enum IdleDecision {
    /// The next expiry is at most a tick away, or the CPU could not go idle now: keep the tick, or spin.
    Stay {
        /// When it is.
        next: Nanos,
    },
    /// Stop the tick and sleep; the hierarchy knows that this CPU is idle.
    Sleep {
        /// Until then at the latest; `None` until it is kicked.
        until: Option<Nanos>,
    },
}

impl<L: RawLock, T: Copy> Machine<L, T> {
    /// When `cpu` would have to wake up if it went idle at `now`: a forecast, for choosing how to sleep. By
    /// the CPU itself, while it is awake. Cost: two locks of its own and a look at each level.
    pub fn forecast_idle(&self, cpu: CpuId, now: Nanos) -> IdleDecision {
        let mut bases = self.lock_bases(cpu, Some(cpu));
        let (local, global) = (bases.next_local(), bases.next_global());
        drop(bases);
        let Some(publish) = self.to_publish(local, global, now) else { return stay(local, global, now) };
        let first = if self.is_pulling() { self.hierarchy.quick_check(cpu, publish) } else { publish };
        self.idle_until(earliest(local, first), now)
    }

    /// `cpu` has nothing to run: publishes its first global expiry and says how long it may sleep. Not while
    /// its turn [has more](crate::Turn::has_more). By the CPU itself; again whenever it was woken and still
    /// has nothing to run.
    pub fn enter_idle(&self, cpu: CpuId, now: Nanos) -> IdleDecision {
        self.go_idle(cpu, now, Near::Keeps)
    }

    /// [`enter_idle`](Self::enter_idle) for a CPU that sleeps rather than keeps its tick: if another one is
    /// awake, and so has a tick, this one leaves it also the timers that are due within a tick. Not its
    /// pinned ones, and not exact ones, for which it wakes up itself: others look with their ticks.
    pub fn enter_idle_beside_others(&self, cpu: CpuId, now: Nanos) -> IdleDecision {
        self.go_idle(cpu, now, Near::GoesTo(self.settings.tick.nanos()))
    }

    fn go_idle(&self, cpu: CpuId, now: Nanos, near: Near) -> IdleDecision {
        self.watch[cpu.index()].flags.transition_to_idle();
        let mut bases = self.lock_bases(cpu, Some(cpu));
        let (local, global) = (bases.next_local(), bases.next_global());
        self.forgive(cpu, now, &mut bases);
        if bases.has_leftovers(cpu) {
            // Its turn stopped at its budget.
            return IdleDecision::Stay { next: now };
        }
        let was_idle = bases.is_idle();
        let publish = match self.to_publish(local, global, now) {
            Some(publish) => publish,
            None if near.goes(global) && !self.is_soon(local, now) && self.leaves_others(cpu) => global,
            None if !was_idle => return stay(local, global, now),
            // It is idle in the hierarchy and stays so: what it published and when it wakes up must hold.
            None => before(global, local),
        };
        let first = match self.is_pulling().then(|| self.hierarchy.try_deactivate(cpu, publish)) {
            None => publish,
            Some(Ok(first)) => first,
            Some(Err(Busy)) => return self.retry_idle(cpu, earliest(local, global), now),
        };
        let decision = self.idle_until(earliest(local, first), now);
        if let IdleDecision::Stay { .. } = decision
            && !was_idle
        {
            // What the hierarchy wants is so near that this CPU keeps its tick: the hierarchy must know.
            self.hierarchy.activate(cpu);
            return decision;
        }
        bases.set_idle(true);
        let exact = if near == Near::Keeps { None } else { bases.next_exact() };
        let (decision, until) = match decision {
            IdleDecision::Stay { next } => {
                let next = exact.map_or(next, |exact| exact.min(next));
                (IdleDecision::Stay { next }, Some(next))
            }
            IdleDecision::Sleep { until } => {
                let until = earliest(until, exact);
                (IdleDecision::Sleep { until }, until)
            }
        };
        self.watch[cpu.index()].sleep_until(until);
        decision
    }

    /// A thread was stopped inside a lock that `cpu` needs to go idle: it keeps its tick, and tries again at
    /// the next. If it was idle before, it still is, and wakes up for what it had to.
    #[cold]
    fn retry_idle(&self, cpu: CpuId, own: Option<Nanos>, now: Nanos) -> IdleDecision {
        let first = earliest(own, self.hierarchy.wakeup(cpu));
        let next = earliest(first, Some(self.next_tick(now))).unwrap_or(now).max(now);
        self.watch[cpu.index()].sleep_until(Some(next));
        IdleDecision::Stay { next }
    }

    /// `cpu` has something to run. By the CPU itself, before it does.
    pub fn exit_idle(&self, cpu: CpuId, now: Nanos) {
        self.watch[cpu.index()].flags.transition_to_busy();
        let mut bases = self.lock_bases(cpu, Some(cpu));
        self.forgive(cpu, now, &mut bases);
        // Before it is awake for those who watch.
        self.beat(cpu, now);
        self.set_awake(cpu, &mut bases);
        self.hierarchy.activate(cpu);
    }

    /// It looks at its bases by itself, and no wake-up of an earlier sleep counts any more.
    pub(super) fn set_awake(&self, cpu: CpuId, bases: &mut CpuBases<'_, L, T>) {
        bases.set_idle(false);
        self.watch[cpu.index()].sleep_until(None);
    }

    /// `cpu` goes on after it was told to [stay](IdleDecision::Stay). By the CPU itself; no lock.
    pub fn keep_running(&self, cpu: CpuId, now: Nanos) {
        self.watch[cpu.index()].flags.transition_to_busy();
        self.beat(cpu, now);
    }

    /// [`enter_idle`](Self::enter_idle) of a CPU that only stands in for others: it wakes up for its own
    /// timers only. If no CPU is awake the world is asked for an alarm instead, whose kick goes to the lowest
    /// one that sleeps. What its last `turn` found due and could not get at, as a thread was stopped inside a
    /// lock, is looked at again a tick later, not at once. By the CPU itself.
    pub fn stand_down(&self, turn: &Turn, now: Nanos, actions: &mut Actions) -> IdleDecision {
        let cpu = turn.cpu();
        self.watch[cpu.index()].flags.transition_to_idle();
        let mut bases = self.lock_bases(cpu, Some(cpu));
        self.forgive(cpu, now, &mut bases);
        let (local, global) = (bases.next_local(), bases.next_global());
        if bases.has_leftovers(cpu) || !self.is_pulling() || self.is_soon(local, now) {
            drop(bases);
            return self.enter_idle(cpu, now);
        }
        let Ok(first) = self.hierarchy.try_stand_down(cpu, global) else {
            return self.retry_idle(cpu, earliest(local, global), now);
        };
        bases.set_idle(true);
        let until = earliest(local, bases.next_exact());
        self.watch[cpu.index()].sleep_until(until);
        drop(bases);
        let at = first.map(|first| turn.retry(first, self.settings.tick.nanos()).unwrap_or(first));
        self.ask_for_alarm(at, actions);
        IdleDecision::Sleep { until }
    }

    /// A CPU that was marked is back without a turn: the mark and the hierarchy must agree before it goes on.
    fn forgive(&self, cpu: CpuId, now: Nanos, bases: &mut CpuBases<'_, L, T>) {
        if self.flags(cpu).is_marked() {
            self.hierarchy.activate(cpu);
            // Whether the mark was true is not known here.
            let _ = self.end_mark(cpu, bases);
            self.beat(cpu, now);
        }
    }

    /// Whether the hierarchy has `cpu` as awake, so that it looks after all events before it goes idle. Waits
    /// for no lock, and says no if it cannot be known. From any thread; cost: the lock of its record.
    pub(crate) fn is_awake(&self, cpu: CpuId) -> bool {
        self.hierarchy.try_cpu_state(cpu) == Some(CpuState::Awake)
    }

    /// When something is due on `cpu` itself: what its LOCAL, GLOBAL and GUEST bases say without their locks
    /// (deferrable timers wake no CPU). Never later than the truth. For a CPU that is about to sleep, after
    /// it said so to those who would wake it: an arm that came before that is seen here. From any thread;
    /// cost: three loads.
    ///
    /// # Panics
    /// When the machine has no such CPU.
    #[inline]
    #[must_use]
    pub fn next_event(&self, cpu: CpuId) -> Option<Nanos> {
        earliest(self.bases.next_local(cpu), self.bases.next_global(cpu))
    }

    /// Whether `cpu` is online. From any thread; cost: a load.
    ///
    /// # Panics
    /// When the machine has no such CPU.
    #[inline]
    #[must_use]
    pub fn is_online(&self, cpu: CpuId) -> bool {
        self.flags(cpu).is_online()
    }

    /// When the first timer of `cpu` is due, deferrable ones among them. As [`next_event`](Self::next_event);
    /// cost: four loads.
    ///
    /// # Panics
    /// When the machine has no such CPU.
    #[must_use]
    pub fn first_timer(&self, cpu: CpuId) -> Option<Nanos> {
        self.bases.soonest(cpu)
    }

    /// [`next_event`](Self::next_event), exactly: under the locks, past what was cancelled. From any thread.
    ///
    /// # Panics
    /// When the machine has no such CPU.
    #[must_use]
    pub fn renewed_next_event(&self, cpu: CpuId) -> Option<Nanos> {
        let mut bases = self.lock_bases(cpu, None);
        earliest(bases.next_local(), bases.next_global())
    }

    /// [`next_event`](Self::next_event) of the timers that other CPUs may run: GLOBAL and GUEST.
    ///
    /// # Panics
    /// When the machine has no such CPU.
    #[inline]
    #[must_use]
    pub fn next_global(&self, cpu: CpuId) -> Option<Nanos> {
        self.bases.next_global(cpu)
    }

    /// Whether others are awake, who pull what this CPU publishes.
    fn leaves_others(&self, cpu: CpuId) -> bool {
        self.is_pulling() && self.hierarchy.others_are_active(cpu)
    }

    /// What the hierarchy is to know, unless something is due within a tick.
    fn to_publish(&self, local: Option<Nanos>, global: Option<Nanos>, now: Nanos) -> Option<Option<Nanos>> {
        (!self.is_soon(earliest(local, global), now)).then(|| before(global, local))
    }

    fn is_soon(&self, next: Option<Nanos>, now: Nanos) -> bool {
        next.is_some_and(|next| next <= self.next_tick(now))
    }

    fn idle_until(&self, until: Option<Nanos>, now: Nanos) -> IdleDecision {
        match until {
            Some(next) if next <= self.next_tick(now) => IdleDecision::Stay { next: next.max(now) },
            until => IdleDecision::Sleep { until },
        }
    }

    /// The end of the tick after the one that `now` is in: what comes by then is not worth stopping the tick
    /// for.
    pub(super) fn next_tick(&self, now: Nanos) -> Nanos {
        let tick = self.settings.tick.nanos().0;
        Nanos((now.0 / tick + 1).saturating_mul(tick))
    }
}

/// What becomes of a timer that is due within a tick when its CPU has nothing to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Near {
    /// It keeps its CPU up.
    Keeps,
    /// If it is due with a tick of this length, another CPU that is awake runs it.
    GoesTo(Nanos),
}

impl Near {
    fn goes(self, global: Option<Nanos>) -> bool {
        match (self, global) {
            (Self::GoesTo(tick), Some(global)) => global.0 % tick.0 == 0,
            _ => false,
        }
    }
}

/// The first global expiry, if it is before the first pinned one: else the CPU is awake by then anyway.
fn before(global: Option<Nanos>, local: Option<Nanos>) -> Option<Nanos> {
    global.filter(|global| local.is_none_or(|local| *global < local))
}

fn stay(local: Option<Nanos>, global: Option<Nanos>, now: Nanos) -> IdleDecision {
    IdleDecision::Stay { next: earliest(local, global).unwrap_or(now).max(now) }
}
