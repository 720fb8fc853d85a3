//! Isolation and hotplug: which CPUs take part, decided while the machine runs.
//!
//! Everything here runs on the caller, under one lock, and is complete when it returns. Joiners come before
//! leavers, so that there is always a CPU that pulls; at least one housekeeping CPU remains. A CPU that is
//! isolated gives its pending global timers to the nearest housekeeping CPU (the kernel leaves them where
//! they are; users ask for this); one that goes offline gives away all it has, pinned timers too.
//!
//! Source: Linux 6.19, kernel/time/timer_migration.c, `tmigr_isolated_exclude_cpumask`; Linux 6.12,
//! kernel/time/timer.c, `timers_dead_cpu`.

use super::cpu_flags::CpuRole;
use super::{Control, ControlRoles, Machine};
use crate::base::{BaseId, BaseKind, ExpiryChange};
use crate::place::{Housekeeping, HousekeepingError, Isolation, nearest_housekeeping};
use crate::tmigr::CpuState;
use crate::{Actions, Context, CpuId, CpuSet, Nanos, RawLock};
use core::fmt;

/// Why a CPU cannot come or go. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CpuControlError {
    /// The machine has no such CPU.
    UnknownCpu {
        /// The CPU.
        cpu: CpuId,
    },
    /// It is not online, or already is.
    WrongState {
        /// The CPU.
        cpu: CpuId,
        /// Whether it is online.
        is_online: bool,
    },
    /// No housekeeping CPU would be left.
    Housekeeping(HousekeepingError),
}

impl fmt::Display for CpuControlError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownCpu { cpu } => write!(out, "CPU {cpu} is not a possible CPU of this machine"),
            Self::WrongState { cpu, is_online: true } => write!(out, "CPU {cpu} is online already"),
            Self::WrongState { cpu, is_online: false } => write!(out, "CPU {cpu} is not online"),
            Self::Housekeeping(error) => fmt::Display::fmt(error, out),
        }
    }
}

impl core::error::Error for CpuControlError {}

impl From<HousekeepingError> for CpuControlError {
    fn from(error: HousekeepingError) -> Self {
        Self::Housekeeping(error)
    }
}

/// What a change of isolation did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IsolationReport {
    /// Global timers that were moved to housekeeping CPUs.
    pub evacuated: usize,
    /// Pinned timers that stay on isolated CPUs.
    pub pinned_left: usize,
    /// CPUs that are isolated now but are still running a timer of another CPU.
    pub still_running: CpuSet,
    /// CPUs that take part in the hierarchy now and did not before.
    pub joined: CpuSet,
    /// CPUs that do not take part any more.
    pub left: CpuSet,
}

impl<L: RawLock, T: Copy> Machine<L, T> {
    /// `cpu` comes online: it joins the tree, if this is the first time, and takes part unless it is
    /// isolated. By a CPU that is online, or by the thread that starts the machine; `cpu` turns only after
    /// this returned.
    ///
    /// # Errors
    /// When the machine has no such CPU, or it is online.
    pub fn online(&self, cpu: CpuId, now: Nanos, actions: &mut Actions) -> Result<(), CpuControlError> {
        let mut control = self.control.lock_remote();
        self.known(&control, cpu, false)?;
        self.hierarchy.connect(cpu);
        // What was left of an earlier life was adopted; the clocks are taken to the present. Before others
        // see that it takes timers.
        self.bases.prepare(cpu, Context::near(CpuId(0), now));
        control.online.insert(cpu);
        control.tick_cpu = control.tick_cpu.or(Some(cpu));
        self.renew_masks(&mut control);
        let mut bases = self.lock_bases(cpu, None);
        self.hierarchy.activate(cpu);
        self.set_awake(cpu, &mut bases);
        drop(bases);
        self.count_repairs(self.watch[cpu.index()].flags.transition_to_awake());
        self.beat(cpu, now);
        self.bases.set_absent(cpu, false);
        let is_excluded = self.excluded(&control).contains(cpu);
        self.bases.set_unavailable(cpu, is_excluded);
        if !is_excluded {
            let first = self.hierarchy.set_available(cpu, None);
            self.ask_for_alarm(first, actions);
        }
        Ok(())
    }

    /// `cpu` goes offline: all its timers, pinned ones too, go to the nearest housekeeping CPU that is not
    /// absent. By another CPU; `cpu` has taken its last turn.
    ///
    /// # Errors
    /// When it is not online, or no housekeeping CPU would be left.
    pub fn offline(&self, cpu: CpuId, now: Nanos, actions: &mut Actions) -> Result<(), CpuControlError> {
        let mut control = self.control.lock_remote();
        self.known(&control, cpu, true)?;
        let mut online = control.online.clone();
        online.remove(cpu);
        let housekeeping = Housekeeping::new(&online, &control.isolation)?;
        let first = self.hierarchy.set_unavailable(cpu);
        self.bases.set_unavailable(cpu, true);
        self.wake_somebody(first, actions);
        control.online = online;
        if control.tick_cpu == Some(cpu) {
            control.tick_cpu = housekeeping.work().first();
        }
        self.renew_masks(&mut control);
        // The tick CPU may have changed hands, and with it who is excluded.
        self.take_part(&control, now, actions);
        if let Some(heir) = self.heir_of(cpu, housekeeping.work()) {
            let adopted = self.bases.adopt(cpu, heir, Context::near(CpuId(0), now));
            self.first_may_have_changed(heir, adopted.change, actions);
        }
        self.take_all_tokens(cpu, actions);
        Ok(())
    }

    /// From now on the CPUs of `isolated` are isolated at run time, and only those. Complete when it returns:
    /// none of those that the rule excludes ([`IsolationReport::left`]) starts anything foreign after that.
    /// Under [`Exclusion::Merged`](crate::place::Exclusion::Merged) `nohz_full` CPUs and the CPU that keeps
    /// time are not excluded. Exact timers that the kernel's rule pushed to a CPU are its own and count as
    /// pinned.
    ///
    /// # Errors
    /// When no housekeeping CPU would be left. Nothing was changed then.
    pub fn set_isolated(
        &self,
        isolated: &CpuSet,
        now: Nanos,
        actions: &mut Actions,
    ) -> Result<IsolationReport, CpuControlError> {
        let mut control = self.control.lock_remote();
        let isolation = Isolation { runtime: isolated.clone(), ..control.isolation.clone() };
        let housekeeping = Housekeeping::new(&control.online, &isolation)?;
        control.isolation = isolation;
        self.renew_masks(&mut control);
        let mut report = self.take_part(&control, now, actions);
        for cpu in report.left.iter() {
            let heir = nearest_housekeeping(&self.topology, cpu, housekeeping.work());
            let Some(heir) = heir.filter(|heir| *heir != cpu) else { continue };
            let moved = self.bases.evacuate(cpu, heir, usize::MAX, Context::near(CpuId(0), now));
            let moved = moved.expect("a housekeeping CPU is online as long as control is held");
            report.evacuated += moved.moved;
            self.first_may_have_changed(heir, moved.change, actions);
            report.pinned_left += self.bases.lock(BaseId { cpu, kind: BaseKind::Local }, None).pending();
            // What it took over and has not begun is run by others.
            self.take_all_tokens(cpu, actions);
        }
        report.still_running = report.left.iter().filter(|&cpu| self.runs_for_others(cpu)).collect();
        Ok(report)
    }

    /// Who is isolated now, and how.
    #[must_use]
    pub fn isolation(&self) -> Isolation {
        self.control.lock_remote().isolation.clone()
    }

    fn known(&self, control: &Control, cpu: CpuId, should_be_online: bool) -> Result<(), CpuControlError> {
        if !self.topology.possible().contains(cpu) {
            return Err(CpuControlError::UnknownCpu { cpu });
        }
        let is_online = control.online.contains(cpu);
        if is_online == should_be_online {
            Ok(())
        } else {
            Err(CpuControlError::WrongState { cpu, is_online })
        }
    }

    fn excluded(&self, control: &Control) -> CpuSet {
        self.settings.exclusion.excluded(&control.isolation, &control.online, control.tick_cpu)
    }

    /// The masks and flags that follow from who is online and isolated. Only flags that change are written:
    /// a machine of many CPUs comes online one by one.
    fn renew_masks(&self, control: &mut Control) {
        control.housekeeping = Housekeeping::new(&control.online, &control.isolation).ok();
        let work = control.housekeeping.as_ref().map_or_else(CpuSet::new, |masks| masks.work().clone());
        let (before, now) = (&control.roles, ControlRoles { online: control.online.clone(), work });
        let either_way = |one: &CpuSet, other: &CpuSet| one.difference(other).union(&other.difference(one));
        let changed = either_way(&before.online, &now.online).union(&either_way(&before.work, &now.work));
        for cpu in changed.iter() {
            let role = CpuRole { is_online: now.online.contains(cpu), takes_timers: now.work.contains(cpu) };
            self.watch[cpu.index()].flags.transition_to_role(role);
        }
        control.roles = now;
    }

    /// Makes every CPU available that should be, and then takes the others out: joiners first. A joiner is
    /// silent from `now` on: alone it need not have turned.
    fn take_part(&self, control: &Control, now: Nanos, actions: &mut Actions) -> IsolationReport {
        let excluded = self.excluded(control);
        let mut report = IsolationReport::default();
        for cpu in control.online.difference(&excluded).iter() {
            if self.hierarchy.cpu_state(cpu) != CpuState::Unavailable {
                continue;
            }
            self.beat(cpu, now);
            let mut bases = self.lock_bases(cpu, None);
            let next = bases.next_global();
            self.bases.set_unavailable(cpu, false);
            let first = self.hierarchy.set_available(cpu, next);
            drop(bases);
            self.ask_for_alarm(first, actions);
            report.joined.insert(cpu);
        }
        for cpu in excluded.iter() {
            if self.hierarchy.cpu_state(cpu) == CpuState::Unavailable {
                continue;
            }
            let bases = self.lock_bases(cpu, None);
            let first = self.hierarchy.set_unavailable(cpu);
            self.bases.set_unavailable(cpu, true);
            let is_idle = bases.is_idle();
            drop(bases);
            self.wake_somebody(first, actions);
            if is_idle {
                // From now on it must wake up for its own global timers.
                self.kick_unless_stuck(cpu, actions);
            }
            report.left.insert(cpu);
        }
        report
    }

    /// Whether `cpu` runs a timer right now that is not its own: of another CPU's base, or of its GUEST base,
    /// where strangers arm. Detached timers do not count. Cost: the locks of all bases, one at a time.
    #[must_use]
    pub fn runs_for_others(&self, cpu: CpuId) -> bool {
        let mut others = self.base_ids().filter(|id| id.cpu != cpu || id.kind == BaseKind::Guest);
        others.any(|id| self.bases.lock(id, None).runs_on(cpu))
    }

    /// A timer that others armed came to rest on `cpu` after it was isolated: it was running elsewhere when
    /// `cpu` was evacuated, or the caller that armed it had looked at the masks before. It goes where the
    /// others went; says whether there is such a CPU.
    #[inline]
    pub(super) fn leave_nothing_behind(&self, cpu: CpuId, now: Nanos, actions: &mut Actions) -> bool {
        !self.flags(cpu).takes_timers() && self.evacuate_isolated(cpu, now, actions)
    }

    /// Without the lock of control, whose holder may be stopped: the caller may be a lane in its turn. A
    /// holder that has not evacuated `cpu` yet will do it; one that has wrote before that what is read here.
    /// So does one that isolates the heir meanwhile: what came too late for that goes on to another. Tests:
    /// `site::stopped`, `isolation::who_leaves_meanwhile_gets_nothing_from_an_isolated_cpu`.
    #[cold]
    fn evacuate_isolated(&self, cpu: CpuId, now: Nanos, actions: &mut Actions) -> bool {
        let mut from = cpu;
        while !self.flags(from).takes_timers() && self.flags(from).is_online() {
            let possible = self.topology.possible().iter();
            let takers: CpuSet = possible.filter(|cpu| self.flags(*cpu).takes_timers()).collect();
            let heir = nearest_housekeeping(&self.topology, from, &takers).filter(|heir| *heir != from);
            let Some(heir) = heir.filter(|_| self.bases.is_unavailable(from)) else { break };
            // Of one that has gone offline meanwhile the flags say so by now.
            let moved = self.bases.evacuate(from, heir, usize::MAX, Context::near(CpuId(0), now));
            if let Some(moved) = moved {
                self.first_may_have_changed(heir, moved.change, actions);
                from = heir;
            }
        }
        from != cpu
    }

    /// Who of `work` takes the timers of `cpu`: the nearest. One that is absent could not run the pinned
    /// ones, and takes them only where no other is left.
    fn heir_of(&self, cpu: CpuId, work: &CpuSet) -> Option<CpuId> {
        let present: CpuSet = work.iter().filter(|other| !self.is_marked(*other)).collect();
        let nearest = |among: &CpuSet| nearest_housekeeping(&self.topology, cpu, among);
        nearest(&present).or_else(|| nearest(work))
    }

    /// Timers were put on `cpu` from outside. A lane that is awake may wait for the end of its tick: an exact
    /// timer is due before that.
    fn first_may_have_changed(&self, cpu: CpuId, change: ExpiryChange, actions: &mut Actions) {
        self.republish(cpu, actions);
        if change.is_exact_first || self.bases.lock(BaseId { cpu, kind: BaseKind::Local }, None).is_idle {
            self.kick_unless_stuck(cpu, actions);
        }
    }
}
