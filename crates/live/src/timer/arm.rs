//! Arms and cancels in the core's words: which of its calls a method becomes, and what that does to
//! periods.
//!
//! A timer that is or was periodic pays for a lock: an arm for a moment ends the periods, as a cancel does,
//! so that none begins again later. When an arm for a moment and the first periodic arm of a timer come at
//! the same time, the periods go on.
//!
//! Invariant: an arm is done with the timer when its base is unlocked, as the timer may run and be freed by
//! its callback then ([`Run::release`](super::Run::release)). What is needed after that is read before. Where
//! the lock of [`Rearm`](super::rearm::Rearm) is held longer, the run waits for that lock, because the timer
//! was periodic at some time.

use super::raw::{Either, RawTimer, TimerPtr, with_either};
use super::rearm::{RearmGuard, RunPlan};
use crate::machine::ArmError;
use crate::payload::Payload;
use crate::{CpuId, Machine, Nanos};
use quietcore_core::{Actions, Arm, ArmMode, ArmTarget, Armed, Context, TickKind, TimerKind as _, TimerRef};
use quietcore_wheel::Shape;

/// Of a coarse timer: beyond this many ticks the wheel would hand it out early. Half of the wheel's reach,
/// whose clock may be behind.
const FAR: u64 = Shape::<9, 64>::LONGEST / 2;

impl Machine {
    /// Whether `at` is beyond what the wheel reaches for coarse timers.
    #[inline]
    pub(super) fn is_far(&self, at: Nanos, now: Nanos) -> bool {
        at.since(now).0 >= self.core.settings().tick.nanos().0.saturating_mul(FAR)
    }
}

impl TimerPtr {
    #[inline(always)]
    pub(super) fn arm_once(self, at: Nanos, context: Context) -> Result<bool, ArmError> {
        if let Some(timer) = self.for_usual_arm(at, context.now()) {
            let when = TickKind::not_before(at, Nanos(0));
            // An arm that is done here is of a timer that is not pinned: no lane that dozes has to be told.
            if let Some(was_pending) = self.timer().machine().arm_usual(timer, when, context) {
                return Ok(was_pending);
            }
        }
        self.arm_unusual(at, context)
    }

    /// The timer in the core's words, if an arm for `at` may be a usual one. Its run is told the moment then.
    #[inline(always)]
    pub(super) fn for_usual_arm(self, at: Nanos, now: Nanos) -> Option<TimerRef<Payload>> {
        let Either::Tick(timer) = self.core() else { return None };
        let rearm = &self.timer().rearm;
        if rearm.ever_followed() || self.is_far(at, now) {
            return None;
        }
        rearm.due.store(at);
        Some(timer)
    }

    /// [`arm_once`](Self::arm_once) for timers of all kinds.
    #[inline(never)]
    fn arm_unusual(self, at: Nanos, context: Context) -> Result<bool, ArmError> {
        if self.timer().rearm.ever_followed() || self.is_far(at, context.now()) {
            return self.arm_slowly(at, context);
        }
        self.put(at, |actions| self.enqueue(Arm::at(at), context, actions))
    }

    /// Whether a coarse timer would be handed out before its time.
    #[inline]
    fn is_far(&self, at: Nanos, now: Nanos) -> bool {
        self.timer().machine().is_far(at, now) && !self.timer().is_exact()
    }

    /// Ends the periods, or begins a wait that is longer than the wheel reaches.
    #[cold]
    fn arm_slowly(self, at: Nanos, context: Context) -> Result<bool, ArmError> {
        if self.is_far(at, context.now()) {
            return self.arm_periodic(None, at, Nanos(0), context);
        }
        self.under_lock(at, |rearm, actions| {
            rearm.end();
            self.enqueue(Arm::at(at), context, actions)
        })
    }

    /// On that CPU, or where any arm goes.
    pub(super) fn arm_periodic(
        self,
        cpu: Option<CpuId>,
        at: Nanos,
        period: Nanos,
        context: Context,
    ) -> Result<bool, ArmError> {
        let arm = match cpu {
            Some(cpu) => Arm::at(at).on(self.check_lane(cpu)?),
            None => Arm::at(at),
        };
        self.under_lock(at, |rearm, actions| {
            rearm.begin(at, period);
            let armed = self.enqueue(arm, context, actions);
            if armed.is_err() {
                rearm.end();
            }
            armed
        })
    }

    pub(super) fn modify(self, arm: Arm<Nanos>, context: Context) -> Result<bool, ArmError> {
        let timer = self.timer();
        let at = arm.when;
        let is_pending = timer.is_pending();
        // The base decides when the timer runs; this word tells the run its moment to the nanosecond.
        let moves = match arm.mode {
            ArmMode::Always => true,
            ArmMode::Reduce => !is_pending || at < timer.rearm.due.load(),
            ArmMode::ModPending => is_pending,
        };
        if moves && self.is_far(at, context.now()) {
            return self.under_lock(at, |rearm, actions| {
                if !rearm.follows() {
                    rearm.begin(at, Nanos(0));
                }
                self.enqueue(arm, context, actions)
            });
        }
        let enqueue = |actions: &mut Actions| self.enqueue(arm, context, actions);
        if moves { self.put(at, enqueue) } else { self.tell(at, enqueue) }
    }

    pub(super) fn arm_on(self, cpu: CpuId, at: Nanos, context: Context) -> Result<bool, ArmError> {
        let cpu = self.check_lane(cpu)?;
        let is_far = self.is_far(at, context.now());
        if !is_far && !self.timer().rearm.ever_followed() {
            return self.put(at, |actions| self.enqueue(Arm::at(at).on(cpu), context, actions));
        }
        self.under_lock(at, |rearm, actions| {
            if is_far {
                rearm.begin(at, Nanos(0));
            } else {
                rearm.end();
            }
            self.enqueue(Arm::at(at).on(cpu), context, actions)
        })
    }

    /// A CPU that has a lane. Asked before anything changes: what a timer is armed for stays where it has
    /// none.
    fn check_lane(self, cpu: CpuId) -> Result<CpuId, ArmError> {
        let machine = self.timer().machine();
        let has_lane = machine.lane_set.contains(cpu) && machine.core.is_online(cpu);
        if has_lane { Ok(cpu) } else { Err(ArmError::NoLane { cpu }) }
    }

    /// Changes what follows together with the timer. It was begun before, or `change` begins it.
    fn under_lock(
        self,
        at: Nanos,
        change: impl FnOnce(&mut RearmGuard<'_>, &mut Actions) -> Result<Armed, ArmError>,
    ) -> Result<bool, ArmError> {
        let rearm = &self.timer().rearm;
        self.tell(at, |actions| {
            let mut locked = rearm.lock();
            rearm.due.store(at);
            change(&mut locked, actions)
        })
    }

    #[inline]
    fn put(
        self,
        at: Nanos,
        enqueue: impl FnOnce(&mut Actions) -> Result<Armed, ArmError>,
    ) -> Result<bool, ArmError> {
        self.timer().rearm.due.store(at);
        self.tell(at, enqueue)
    }

    /// Arms, and tells a lane that dozes beyond `at`: lanes that doze look once per tick.
    #[inline]
    fn tell(
        self,
        at: Nanos,
        enqueue: impl FnOnce(&mut Actions) -> Result<Armed, ArmError>,
    ) -> Result<bool, ArmError> {
        let timer = self.timer();
        let (machine, is_exact) = (timer.machine(), timer.is_exact());
        // From here on the timer may be gone.
        let Armed { base, was_pending } = machine.act(enqueue)?;
        machine.after_arm(base, is_exact, at);
        Ok(was_pending)
    }

    #[inline(always)]
    fn enqueue(self, arm: Arm<Nanos>, context: Context, actions: &mut Actions) -> Result<Armed, ArmError> {
        let timer = self.timer();
        let core = &timer.machine().core;
        let Arm { when, mode, mut target } = arm;
        let mut context = context;
        if target == ArmTarget::AsIs {
            context = timer.place(context)?;
            if mode == ArmMode::Always && timer.is_lent() {
                target = ArmTarget::Floating;
            }
        }
        let slack = timer.slack();
        let armed = with_either!(self.core(), |timer| {
            let when = timer.not_before(when, slack);
            core.arm(timer, Arm { when, mode, target }, context, actions)
        });
        Ok(armed?)
    }

    #[inline]
    pub(super) fn cancel(self) -> bool {
        let timer = self.timer();
        let machine = timer.machine();
        if machine.is_forked() {
            return false;
        }
        timer.rearm.end();
        let context = machine.cancel_context();
        let cancelled = with_either!(self.core(), |timer| machine.core.cancel(timer, context));
        let was_pending = cancelled.is_ok_and(|was_pending| was_pending);
        if was_pending && timer.rearm.follows() {
            // What was taken out was a period that another thread began after the first look. The base's lock
            // orders this look after that.
            let _ = self.cancel();
        }
        was_pending
    }

    pub(super) fn shutdown(self) -> bool {
        let timer = self.timer();
        let machine = timer.machine();
        if machine.is_forked() {
            return false;
        }
        // What follows a run is refused from now on.
        let context = machine.cancel_context();
        let cancelled = with_either!(self.core(), |timer| machine.core.shutdown(timer, context));
        cancelled.is_ok_and(|was_pending| was_pending)
    }

    /// What it is armed for; `None` when it is not pending.
    pub(super) fn deadline(self) -> Option<Nanos> {
        let (timer, machine) = (self.timer(), self.timer().machine());
        if machine.is_forked() || !timer.is_pending() {
            return None;
        }
        let context = machine.cancel_context();
        let armed_for = with_either!(self.core(), |timer| machine.core.armed_for(timer, context));
        let length = (!timer.is_exact()).then(|| machine.core.settings().tick);
        let expires = armed_for.ok().flatten()?;
        Some(timer.rearm.moment(expires, length).0)
    }

    pub(super) fn is_running(self) -> bool {
        let machine = self.timer().machine();
        if machine.is_forked() {
            return false;
        }
        let context = machine.cancel_context();
        let is_running = with_either!(self.core(), |timer| machine.core.is_running(timer, context));
        is_running.is_ok_and(|is_running| is_running)
    }

    /// Called by the runner after the planned callback, and before the machine is told that this run is over:
    /// until then the timer stays with its base and its memory is valid.
    pub(super) fn follow(self, plan: RunPlan, now: Nanos) {
        let timer = self.timer();
        let machine = timer.machine();
        if machine.check_alive().is_err() {
            return;
        }
        let mut locked = timer.rearm.lock();
        if timer.is_pending() {
            return;
        }
        let Some(at) = locked.next(plan, now) else { return };
        timer.rearm.due.store(at);
        // Refused when it was shut down.
        let _ = self.tell(at, move |actions| {
            let armed = self.enqueue(Arm::reduce(at), machine.context(now), actions);
            if armed.as_ref().is_ok_and(|armed| armed.was_pending) {
                // Another thread armed it meanwhile. The earlier arm counts; the base knows when.
                timer.rearm.due.store(now);
            }
            drop(locked);
            armed
        });
    }
}

impl RawTimer {
    /// Where an arm goes that comes from `context`.
    #[inline]
    fn place(&self, context: Context) -> Result<Context, ArmError> {
        let machine = self.machine();
        if !machine.lane_set.is_empty() {
            return Ok(context);
        }
        if self.is_pinned() {
            return Err(ArmError::NoLane { cpu: context.cpu() });
        }
        // Without lanes, only the helper can be awake when a deferrable timer is due.
        Ok(if self.is_deferrable() { Context::near(machine.spare, context.now()) } else { context })
    }
}
