//! Parked CPUs that did not wake up when they said they would.
//!
//! A CPU whose own timer comes first publishes nothing when it goes idle: it will be awake by then. If its
//! thread does not get to run, no other CPU knows of its global timers. So an awake CPU looks, once per tick
//! of the whole machine, for parked CPUs that should have woken up more than a stall ago and have something
//! overdue, and marks them absent: then others serve them, and no CPU waits for their kick. A world's
//! sentinel does the same when no CPU is awake.
//!
//! Hints decide which CPUs to look at, locks what is true: the mark is made under LOCAL, GLOBAL, GUEST and
//! the record, as every mark. Source: docs/design/PROTOCOL.md, section 3 ("overslept").

use super::super::Machine;
use super::policy::Patience;
use crate::tmigr::CpuState;
use crate::{Actions, CpuId, Nanos, RawLock};

impl<L: RawLock, T: Copy> Machine<L, T> {
    /// Marks every parked CPU absent that should have woken up by itself more than
    /// [`StallPolicy::after`](crate::StallPolicy::after) ago and has a global timer that is overdue by a
    /// tick; returns how many. By any thread; an awake CPU does it with its [`watch`](Self::watch). Waits for
    /// no lock. Cost: a look at each CPU.
    pub fn mark_missed_wakeups(&self, now: Nanos, actions: &mut Actions) -> u32 {
        if !self.is_pulling() {
            return 0;
        }
        let cpus = || (0..self.bases.cpu_count()).map(CpuId);
        cpus().filter(|cpu| self.is_stopped_in_record(*cpu, now)).for_each(|cpu| self.note_stuck(cpu));
        let overslept = cpus().filter(|cpu| self.has_missed_wakeup(*cpu, now));
        overslept.map(|cpu| u32::from(self.mark_parked(cpu, now, actions))).sum()
    }

    /// Whether a thread was stopped inside the record of `cpu`: the CPU itself, on its way into or out of
    /// idle, or one that publishes for it. Groups above may not know what that CPU is, nor what others below
    /// them have: it may have left the lowest one, and not the next. One that has turned lately is not looked
    /// at, nor one that is isolated, whose memory is left alone.
    fn is_stopped_in_record(&self, cpu: CpuId, now: Nanos) -> bool {
        let watch = &self.watch[cpu.index()];
        let is_silent = self.settings.stall.is_stalled(now.since(watch.heartbeat()), Patience::Usual);
        let is_in_tree = watch.flags.load().is_online() && !self.bases.is_unavailable(cpu);
        is_silent && is_in_tree && self.hierarchy.try_cpu_state(cpu).is_none()
    }

    /// Whether that is so of any CPU: for a sentinel, which finds none awake. Waits for no lock.
    pub(crate) fn is_any_stopped_in_record(&self, now: Nanos) -> bool {
        (0..self.bases.cpu_count()).any(|cpu| self.is_stopped_in_record(CpuId(cpu), now))
    }

    /// The same, unless another CPU has done it in this tick.
    pub(super) fn mark_missed_wakeups_once_per_tick(&self, now: Nanos, actions: &mut Actions) -> u32 {
        let tick = self.settings.tick.floor(now).0;
        if self.looked_for_missed_wakeups.is_first_in(tick) {
            self.mark_missed_wakeups(now, actions)
        } else {
            0
        }
    }

    /// When `cpu` wakes up by itself, to the best of what is known without a lock; `None` while it is not
    /// idle, was marked, or sleeps until it is kicked. For a sentinel, which looks for missed wake-ups.
    #[must_use]
    pub fn sleeps_until(&self, cpu: CpuId) -> Option<Nanos> {
        let watch = &self.watch[cpu.index()];
        let flags = watch.flags.load();
        if flags.is_idle() && !flags.is_marked() { watch.sleeps_until() } else { None }
    }

    /// Without a lock.
    fn has_missed_wakeup(&self, cpu: CpuId, now: Nanos) -> bool {
        let (policy, tick) = (self.settings.stall, self.settings.tick.nanos());
        let is_late = |wakes| policy.is_stalled(now.since(wakes), Patience::Usual);
        let is_overdue = |next| policy.is_overdue(next, now, tick);
        self.sleeps_until(cpu).is_some_and(is_late) && self.bases.next_global(cpu).is_some_and(is_overdue)
    }

    fn mark_parked(&self, cpu: CpuId, now: Nanos, actions: &mut Actions) -> bool {
        let watch = &self.watch[cpu.index()];
        let Some(mut bases) = self.try_lock_bases(cpu) else {
            watch.busy_marks.count();
            return false;
        };
        // It may have woken up, and gone back to sleep: what it said then was said under these locks.
        if self.hierarchy.try_cpu_state(cpu) != Some(CpuState::Parked) || !self.has_missed_wakeup(cpu, now) {
            return false;
        }
        let next = bases.next_global();
        // A CPU that is awake has found it, or a sentinel, which kicks one or asks for an alarm after this.
        let Ok(_) = self.hierarchy.try_go_absent(cpu, next) else {
            watch.busy_marks.count();
            // What it has may be known to no CPU, as it was to be up before that is due.
            self.count_repairs(watch.flags.transition_to_unpublished());
            return false;
        };
        self.complete_absence(cpu, &mut bases);
        drop(bases);
        self.take_back_tokens(cpu, actions);
        true
    }
}
