//! Arming: which base a timer goes to, and which CPU must learn that it came first.
//!
//! A pinned timer goes to the LOCAL base of the CPU that arms it, or of the one it is armed on; a deferrable
//! one to DEF. Any other goes where the policy says: `Pull` and `Stay` to the arming CPU's GLOBAL base,
//! `Push` to the one of a busy CPU. A thread that drives no CPU arms on the GUEST base of the nearest
//! housekeeping CPU.
//!
//! If it became the first of an idle CPU, that CPU's next expiry is published, or the CPU is kicked where
//! no other CPU can expire it in time (pinned, exact, unavailable, `Push`, `Stay`). An absent CPU is never
//! kicked.
//!
//! Most arms are alike: a floating timer, on the base that it was in before, not the first of a sleeping CPU.
//! [`Machine::arm`] does those inline with one lock, and leaves the rest to `arm_slow`, which knows every
//! case. Source: Linux 6.12, kernel/time/timer.c, `__mod_timer`, `trigger_dyntick_cpu`; hrtimers:
//! `place/exact.rs`.

use super::Machine;
use super::name::AnyTimer;
use crate::base::{
    Arm, ArmOfMany, ArmTarget, BaseId, BaseKind, EitherRef, ExpiryChange, FastArm, Moment, TimerKind,
    TimerRef, earliest,
};
use crate::place::{Arming, Caller, ExactMode, ExactOrigin, ExactPolicy, ExactStart, Policy};
use crate::place::{exact_target, nearest_housekeeping, push_target};
use crate::tmigr::CpuState;
use crate::{Actions, Context, CpuId, Nanos, RawLock};
use core::fmt;
use quietcore_wheel::Shape;

/// Why a timer was not armed or cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArmRefusal {
    /// The machine has no such timer, or no longer.
    UnknownTimer,
    /// The timer was shut down.
    ShutDown,
    /// The machine has no such CPU, or it is offline.
    NoSuchCpu {
        /// The CPU.
        cpu: CpuId,
    },
}

impl fmt::Display for ArmRefusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownTimer => out.write_str("the machine has no such timer"),
            Self::ShutDown => out.write_str("the timer was shut down"),
            Self::NoSuchCpu { cpu } => write!(out, "CPU {cpu} is not online"),
        }
    }
}

impl core::error::Error for ArmRefusal {}

/// What an arm did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Armed {
    /// The timer was pending: that period ends without a run.
    pub was_pending: bool,
    /// The base that the timer is in now.
    pub base: BaseId,
}

/// What an arm in the usual case leaves to do.
#[derive(Clone, Copy, Debug)]
#[must_use = "what follows is not done yet"]
pub struct ArmFollowUp {
    base: BaseId,
    must_publish: bool,
    is_needed: bool,
}

impl ArmFollowUp {
    /// Whether [`Machine::follow_up`] has anything to do.
    #[inline]
    #[must_use]
    pub const fn is_needed(&self) -> bool {
        self.is_needed
    }
}

/// How near the deadline of a timer must be kept by the CPU that expires it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Promptness {
    /// Within a tick or two.
    Tick,
    /// As it is: its CPU must wake up itself.
    Exact,
}

/// Ticks that the finest level of a base's wheel reaches from its clock, whatever part of a tick has passed.
const FINEST: u64 = Shape::<9, 64>::level_start(1) - 1;

impl<L: RawLock, T: Copy> Machine<L, T> {
    /// The moment of a [`Context`] for an arm for `at`, by a CPU that last looked at the clock at `looked`,
    /// as long ago as that may be. How coarse a timer is follows from its delay, counted from there: where
    /// that ends in the finest level of the wheel, any moment will do; else `read` looks again.
    #[inline]
    pub fn moment_for_arm(&self, at: Nanos, looked: Nanos, read: impl FnOnce() -> Nanos) -> Nanos {
        let finest = self.settings().tick.nanos().0.saturating_mul(FINEST);
        if at.since(looked).0 < finest { looked } else { read().max(looked) }
    }

    /// Arms `timer`, or moves it there if it is pending: for a moment, or as an [`Arm`] says. The CPU that
    /// the policy finds runs it: one of ticks after the tick that the moment lies in, an exact one when it
    /// is due. Under [`ExactPolicy::Kernel`] an exact timer that is not pinned is pushed as hrtimers are
    /// and belongs to that CPU; under `Pull` it is pulled like the rest.
    ///
    /// Cost: a lock, two if the timer changes its base; no allocation.
    ///
    /// # Errors
    /// When there is no such timer, or it was shut down; for [`ArmTarget::Cpu`], when that is not online.
    ///
    /// ```
    /// # use quietcore_core::{Actions, Arm, ArmRefusal, BaseKind, Context, CpuId, Machine, Nanos};
    /// # use quietcore_core::{Expiry, SequentialLock, Settings, TimerOptions, topology::Topology};
    /// # let mut machine: Machine<SequentialLock, u32> =
    /// #     Machine::new(Topology::builder(1).build()?, Settings::default())?;
    /// # let (cpu, mut actions) = (CpuId::default(), Actions::new(1));
    /// # machine.online(cpu, Nanos(0), &mut actions)?;
    /// let timer = machine.add_timer(TimerOptions::new(), 7);
    /// let context = Context::on(cpu, Nanos(0));
    /// assert!(!machine.arm(timer, Nanos(5_000_000), context, &mut actions)?.was_pending);
    /// // Later than it is armed for: it stays.
    /// assert!(machine.arm(timer, Arm::reduce(Nanos(9_000_000)), context, &mut actions)?.was_pending);
    /// // From now on it runs on that CPU only.
    /// let armed = machine.arm(timer, Arm::at(Nanos(5)).on(cpu), context, &mut actions)?;
    /// assert_eq!(armed.base.kind, BaseKind::Local);
    /// machine.shutdown(timer, context)?;
    /// assert_eq!(machine.arm(timer, Nanos(9), context, &mut actions), Err(ArmRefusal::ShutDown));
    ///
    /// let exact = machine.add_exact(TimerOptions::new(), 8);
    /// machine.arm(exact, Expiry::at(3_141_592), context, &mut actions)?;
    /// assert_eq!(machine.renewed_next_event(cpu), Some(Nanos(3_141_592)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn arm<K: TimerKind>(
        &self,
        timer: impl AnyTimer<T, K>,
        arm: impl Into<Arm<K::When>>,
        context: Context,
        actions: &mut Actions,
    ) -> Result<Armed, ArmRefusal> {
        let timer = timer.find(self.bases.store()).ok_or(ArmRefusal::UnknownTimer)?;
        let arm = arm.into();
        if arm.is_plain()
            && let Some((was_pending, left)) = self.arm_as_usual(timer, arm.when, context)
        {
            if left.is_needed() {
                self.follow_up(left, context, actions);
            }
            return Ok(Armed { was_pending, base: left.base });
        }
        self.arm_slow(timer, arm, context, actions)
    }

    /// [`arm`](Self::arm) for a moment in the usual case, a floating timer of ticks that was here before or
    /// nowhere, for callers to whom a list of actions is dear; says whether it was pending. `None` when it is
    /// another case, and then nothing was done, and [`arm`](Self::arm) does all. Seldom something is left to
    /// do: `follow` gets it, and hands it to [`follow_up`](Self::follow_up). Any thread; cost: a lock.
    #[inline(always)]
    pub fn arm_usual<K: TimerKind>(
        &self,
        timer: TimerRef<T, K>,
        when: K::When,
        context: Context,
        follow: impl FnOnce(ArmFollowUp),
    ) -> Option<bool> {
        let (was_pending, left) = self.arm_as_usual(timer, when, context)?;
        if left.is_needed() {
            follow(left);
        }
        Some(was_pending)
    }

    #[inline(always)]
    fn arm_as_usual<K: TimerKind>(
        &self,
        timer: TimerRef<T, K>,
        when: K::When,
        context: Context,
    ) -> Option<(bool, ArmFollowUp)> {
        let (EitherRef::Tick(timer), Moment::Tick(expires)) = (K::either(timer), K::moment(when)) else {
            return None;
        };
        let base = self.fast_base(context)?;
        let FastArm { was_pending, change } = self.bases.arm_fast(timer, expires, base, context)?;
        Some((was_pending, self.after_usual(base, change, context)))
    }

    /// [`arm_usual`](Self::arm_usual) for many timers of ticks, under one lock and with their memory asked
    /// for ahead. Those of which nothing [is known](ArmOfMany::was_pending) afterwards are another case.
    /// `None` if all are. Sixteen or so at a time: as long as they take, others wait for the lock.
    pub fn arm_many_usual(&self, arms: &mut [ArmOfMany<T>], context: Context) -> Option<ArmFollowUp> {
        let base = self.fast_base(context)?;
        let change = self.bases.arm_many_fast(arms, base, context);
        Some(self.after_usual(base, change, context))
    }

    #[inline]
    fn after_usual(&self, base: BaseId, change: ExpiryChange, context: Context) -> ArmFollowUp {
        let must_publish = change.must_publish();
        // As in `arm_slow`: behind the lock of the base.
        let must_leave = !context.is_cpu() && !self.flags(base.cpu).takes_timers();
        ArmFollowUp { base, must_publish, is_needed: must_publish || must_leave }
    }

    /// What is left of an arm in the usual case, from the same context, by the same thread. The timer may be
    /// gone. Cost: locks of the CPU's bases and of the hierarchy; seldom needed.
    pub fn follow_up(&self, left: ArmFollowUp, context: Context, actions: &mut Actions) {
        // As in `arm_slow`.
        let has_left = !context.is_cpu() && self.leave_nothing_behind(left.base.cpu, context.now(), actions);
        if left.must_publish && !has_left {
            self.publish_first(left.base, Promptness::Tick, actions);
        }
    }

    /// Where a floating timer goes when nothing is special about who arms it; [`base_for`](Self::base_for)
    /// says the same at length.
    #[inline]
    fn fast_base(&self, context: Context) -> Option<BaseId> {
        let (cpu, watch) = (context.cpu(), self.watch.get(context.cpu().index())?);
        if !context.is_cpu() {
            return watch.flags.load().takes_timers().then_some(BaseId { cpu, kind: BaseKind::Guest });
        }
        let is_usual = watch.flags.load().is_online() && self.settings.policy != Policy::Push;
        is_usual.then_some(BaseId { cpu, kind: BaseKind::Global })
    }

    #[inline(never)]
    fn arm_slow<K: TimerKind>(
        &self,
        timer: TimerRef<T, K>,
        arm: Arm<K::When>,
        context: Context,
        actions: &mut Actions,
    ) -> Result<Armed, ArmRefusal> {
        let onto = self.base_for(timer, &arm, context)?;
        let armed = self.bases.arm(timer, arm, onto, context);
        // The CPU was chosen by its flags before its base was locked. If it was isolated in between, its
        // evacuation either came after this arm and took the timer along, or is seen now; then it is not
        // told.
        let base = armed.base;
        let may_leave = base.kind.is_pullable() && !self.is_from(base.cpu, context);
        let has_left = may_leave && self.leave_nothing_behind(base.cpu, context.now(), actions);
        if armed.change.must_publish() && !has_left {
            let promptness = if K::IS_EXACT { Promptness::Exact } else { Promptness::Tick };
            self.publish_first(base, promptness, actions);
        }
        if armed.is_refused {
            return Err(ArmRefusal::ShutDown);
        }
        Ok(Armed { was_pending: armed.was_pending, base })
    }

    /// The base that an arm asks for.
    fn base_for<K: TimerKind>(
        &self,
        timer: TimerRef<T, K>,
        arm: &Arm<K::When>,
        context: Context,
    ) -> Result<BaseId, ArmRefusal> {
        let (is_deferrable, hard) = match K::moment(arm.when) {
            Moment::Tick(_) => (timer.is_deferrable(), None),
            Moment::Exact(expiry) => (false, Some(Nanos(expiry.hard))),
        };
        let is_pinned = match arm.target {
            ArmTarget::Cpu(cpu) => {
                if cpu.index() >= self.watch.len() || !self.flags(cpu).is_online() {
                    return Err(ArmRefusal::NoSuchCpu { cpu });
                }
                let kind = if is_deferrable { BaseKind::Deferrable } else { BaseKind::Local };
                return Ok(BaseId { cpu, kind });
            }
            ArmTarget::AsIs => timer.is_pinned(),
            ArmTarget::Floating => false,
        };
        if is_deferrable {
            return Ok(BaseId { cpu: self.home(context)?, kind: BaseKind::Deferrable });
        }
        if let (ExactPolicy::Kernel, Some(hard)) = (self.settings.exact_policy, hard) {
            let cpu = self.exact_cpu(context.of(self.home(context)?), is_pinned, hard);
            return Ok(BaseId { cpu, kind: BaseKind::Local });
        }
        if is_pinned {
            return Ok(BaseId { cpu: self.home(context)?, kind: BaseKind::Local });
        }
        self.floating_base(context)
    }

    /// Where a timer waits that may run anywhere.
    fn floating_base(&self, context: Context) -> Result<BaseId, ArmRefusal> {
        let cpu = self.home(context)?;
        if !self.is_from(cpu, context) {
            return Ok(BaseId { cpu, kind: BaseKind::Guest });
        }
        let cpu = if self.settings.policy == Policy::Push { self.push(cpu) } else { cpu };
        Ok(BaseId { cpu, kind: BaseKind::Global })
    }

    /// Whether `cpu` itself arms.
    fn is_from(&self, cpu: CpuId, context: Context) -> bool {
        context.is_cpu() && context.cpu() == cpu
    }

    /// The CPU that keeps what is armed here: the one that arms, or the one that stands in for it.
    fn home(&self, context: Context) -> Result<CpuId, ArmRefusal> {
        let is_known = context.cpu().index() < self.watch.len();
        if context.is_cpu() && is_known && self.flags(context.cpu()).is_online() {
            return Ok(context.cpu());
        }
        self.host_of(context.cpu()).ok_or(ArmRefusal::NoSuchCpu { cpu: context.cpu() })
    }

    /// The CPU that stands in for `cpu` when a thread arms there that is not the CPU itself; `None` while no
    /// CPU is online. Under the lock of control unless that is `cpu`.
    #[inline]
    pub(super) fn host_of(&self, cpu: CpuId) -> Option<CpuId> {
        if cpu.index() < self.watch.len() && self.flags(cpu).takes_timers() {
            return Some(cpu);
        }
        self.host_near(cpu)
    }

    #[cold]
    fn host_near(&self, cpu: CpuId) -> Option<CpuId> {
        let control = self.control.lock_remote();
        let masks = control.housekeeping.as_ref()?;
        nearest_housekeeping(&self.topology, cpu, masks.work())
    }

    /// The CPU that the old rule guesses. Without a lock where `cpu` is busy; else under the lock of control.
    fn push(&self, cpu: CpuId) -> CpuId {
        let is_idle = self.flags(cpu).is_idle();
        if !is_idle && self.flags(cpu).takes_timers() {
            return cpu;
        }
        let control = self.control.lock_remote();
        let Some(masks) = control.housekeeping.as_ref() else { return cpu };
        let domains = self.topology.domains(cpu);
        push_target(Arming { cpu, is_idle }, masks, domains, |other| self.flags(other).is_idle())
    }

    /// The kernel's rule for hrtimers. A CPU that is not idle looks at its timers with every tick, so a tick
    /// is its next event at the latest, as the tick of the kernel is an hrtimer among the others.
    fn exact_cpu(&self, home: Context, is_pinned: bool, expires: Nanos) -> CpuId {
        let (cpu, now) = (home.cpu(), home.now());
        let start = ExactStart {
            cpu,
            caller: Caller::Online,
            mode: if is_pinned { ExactMode::Pinned } else { ExactMode::Floating },
            expires,
            origin: ExactOrigin::Inactive,
        };
        let tick = |cpu| (!self.flags(cpu).is_idle()).then(|| self.next_tick(now));
        let first_event = |cpu| earliest(self.bases.next_local(cpu), tick(cpu));
        exact_target(ExactPolicy::Kernel, &start, || self.push(cpu), first_event)
    }

    /// The first expiry of an idle CPU's base is a new one.
    #[cold]
    pub(super) fn publish_first(&self, base: BaseId, promptness: Promptness, actions: &mut Actions) {
        let BaseId { cpu, kind } = base;
        if kind == BaseKind::Deferrable {
            return;
        }
        let is_published = kind.is_pullable() && self.is_pulling();
        if is_published {
            self.republish(cpu, actions);
        }
        // Where its record is not to be had a kick does no harm.
        let is_available = |state| state != CpuState::Unavailable;
        let is_served = is_published && self.hierarchy.try_cpu_state(cpu).is_some_and(is_available);
        if !is_served || promptness == Promptness::Exact {
            self.kick_unless_stuck(cpu, actions);
        }
    }
}
