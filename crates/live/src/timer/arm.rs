//! Arms and cancels in the core's words: which of its calls a verb becomes, and what the course has to do
//! with it.
//!
//! A timer that has a course pays for its lock: an arm for a moment ends it, as a cancel does, so that no
//! period begins again behind somebody's back. An arm that saw no course looks again afterwards: had another
//! thread begun one before, as the base's lock orders them, it is ended then.

use super::course::{Locked, Planned, before};
use super::raw::{Name, RawTimer, Reference};
use crate::machine::ArmError;
use crate::{CpuId, Machine, Nanos};
use quietcore_core::{Actions, Armed, Context, Expiry};
use quietcore_wheel::Shape;

/// Of a coarse timer: beyond this many ticks the wheel would hand it out early. Half of the wheel's reach,
/// whose clock may be behind.
const FAR: u64 = Shape::<9, 64>::LONGEST / 2;

/// How an arm treats a timer that is pending already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Arm,
    Reduce,
    ModPending,
}

impl Name {
    #[inline]
    pub(super) fn alive(&self) -> Result<&'static Machine, ArmError> {
        let machine = self.timer().machine();
        machine.check_alive().map(|()| machine)
    }

    #[inline]
    pub(super) fn arm_once(self, at: Nanos, context: Context) -> Result<bool, ArmError> {
        let course = &self.timer().course;
        if course.follows() || self.is_far(at, context.now) {
            return self.arm_slowly(at, context);
        }
        course.due.store(at);
        let was_pending = self.put(at, Verb::Arm, context)?;
        // See the file's comment.
        if course.follows() {
            let _ = self.arm_slowly(at, context)?;
        }
        Ok(was_pending)
    }

    /// Whether a coarse timer would be handed out before its time.
    #[inline]
    fn is_far(&self, at: Nanos, now: Nanos) -> bool {
        let tick = self.timer().machine().core.settings().tick.nanos().0;
        at.since(now).0 >= tick.saturating_mul(FAR) && self.timer().slack().is_none()
    }

    /// Ends the course, or begins one that is only far ahead.
    #[cold]
    fn arm_slowly(self, at: Nanos, context: Context) -> Result<bool, ArmError> {
        if self.is_far(at, context.now) {
            return self.arm_course(at, Nanos(0), context);
        }
        self.under_lock(at, |course, actions| {
            course.end();
            self.enqueue(at, Verb::Arm, (context, actions))
        })
    }

    pub(super) fn arm_course(self, at: Nanos, period: Nanos, context: Context) -> Result<bool, ArmError> {
        self.under_lock(at, |course, actions| {
            course.begin(at, period);
            let armed = self.enqueue(at, Verb::Arm, (context, actions));
            if armed.is_err() {
                course.end();
            }
            armed
        })
    }

    pub(super) fn modify(self, at: Nanos, verb: Verb, context: Context) -> Result<bool, ArmError> {
        let timer = self.timer();
        let is_pending = timer.is_pending();
        if self.is_far(at, context.now) && !is_pending && verb == Verb::Reduce {
            return self.arm_slowly(at, context);
        }
        // What the base does is the truth: this is for a run to know its moment to the nanosecond.
        let moves = match verb {
            Verb::Arm => true,
            Verb::Reduce => !is_pending || at < timer.course.due.load(),
            Verb::ModPending => is_pending,
        };
        if moves {
            timer.course.due.store(at);
        }
        self.put(at, verb, context)
    }

    pub(super) fn arm_on(self, cpu: CpuId, at: Nanos, context: Context) -> Result<bool, ArmError> {
        let machine = self.timer().machine();
        if !machine.lane_set.contains(cpu) {
            return Err(ArmError::NoLane { cpu });
        }
        self.under_lock(at, |course, actions| {
            course.end();
            let armed = match self.reference() {
                Reference::Tick(timer) => machine.core.arm_on(timer, (cpu, before(at)), context, actions),
                Reference::Exact(timer, slack) => {
                    let expiry = Expiry::with_slack(at.0, slack);
                    machine.core.arm_exact_on(timer, (cpu, expiry), context, actions)
                }
            };
            Ok(armed?)
        })
    }

    /// Changes the course together with the timer.
    fn under_lock(
        self,
        at: Nanos,
        change: impl FnOnce(&mut Locked<'_>, &mut Actions) -> Result<Armed, ArmError>,
    ) -> Result<bool, ArmError> {
        let timer = self.timer();
        let armed = timer.machine().act(|actions| {
            let mut course = timer.course.lock();
            timer.course.due.store(at);
            change(&mut course, actions)
        })?;
        Ok(self.armed(armed, at))
    }

    #[inline]
    fn put(self, at: Nanos, verb: Verb, context: Context) -> Result<bool, ArmError> {
        let armed = self.timer().machine().act(|actions| self.enqueue(at, verb, (context, actions)))?;
        Ok(self.armed(armed, at))
    }

    /// With no lock held: lanes that doze look once per tick.
    #[inline]
    fn armed(self, armed: Armed, at: Nanos) -> bool {
        let timer = self.timer();
        if timer.slack().is_some() || timer.is_pinned() {
            timer.machine().interrupt_doze(armed.base, at);
        }
        armed.was_pending
    }

    #[inline]
    fn enqueue(
        self,
        at: Nanos,
        verb: Verb,
        (context, actions): (Context, &mut Actions),
    ) -> Result<Armed, ArmError> {
        let timer = self.timer();
        let core = &timer.machine().core;
        let context = timer.place(context)?;
        let is_lent = timer.is_lent();
        let armed = match (self.reference(), verb) {
            (Reference::Tick(timer), Verb::Arm) if is_lent => {
                core.arm_floating(timer, before(at), context, actions)
            }
            (Reference::Tick(timer), Verb::Arm) => core.arm(timer, before(at), context, actions),
            (Reference::Tick(timer), Verb::Reduce) => core.reduce(timer, before(at), context, actions),
            (Reference::Tick(timer), Verb::ModPending) => {
                core.mod_pending(timer, before(at), context, actions)
            }
            (Reference::Exact(timer, slack), verb) => {
                let expiry = Expiry::with_slack(at.0, slack);
                match verb {
                    Verb::Arm if is_lent => core.arm_exact_floating(timer, expiry, context, actions),
                    Verb::Arm => core.arm_exact(timer, expiry, context, actions),
                    Verb::Reduce => core.reduce_exact(timer, expiry, context, actions),
                    Verb::ModPending => core.mod_pending_exact(timer, expiry, context, actions),
                }
            }
        };
        Ok(armed?)
    }

    #[inline]
    pub(super) fn cancel(self) -> bool {
        let timer = self.timer();
        let machine = timer.machine();
        if machine.is_forked() {
            return false;
        }
        timer.course.end();
        let context = machine.cancel_context();
        let cancelled = match self.reference() {
            Reference::Tick(timer) => machine.core.cancel(timer, context),
            Reference::Exact(timer, _) => machine.core.cancel_exact(timer, context),
        };
        cancelled.is_ok_and(|was_pending| was_pending)
    }

    pub(super) fn shutdown(self) -> bool {
        let timer = self.timer();
        let machine = timer.machine();
        if machine.is_forked() {
            return false;
        }
        timer.course.end();
        let context = machine.cancel_context();
        let cancelled = match self.reference() {
            Reference::Tick(timer) => machine.core.shutdown(timer, context),
            Reference::Exact(timer, _) => machine.core.shutdown_exact(timer, context),
        };
        cancelled.is_ok_and(|was_pending| was_pending)
    }

    pub(super) fn is_running(self) -> bool {
        let machine = self.timer().machine();
        if machine.is_forked() {
            return false;
        }
        let context = machine.cancel_context();
        let is_running = match self.reference() {
            Reference::Tick(timer) => machine.core.is_running(timer, context),
            Reference::Exact(timer, _) => machine.core.is_running_exact(timer, context),
        };
        is_running.is_ok_and(|is_running| is_running)
    }

    /// By the runner, after what was planned and before the machine is told that this run is over.
    pub(super) fn follow(self, planned: Planned, now: Nanos) {
        let timer = self.timer();
        let machine = timer.machine();
        if machine.check_alive().is_err() {
            return;
        }
        machine.act(|actions| {
            let mut course = timer.course.lock();
            if timer.is_pending() {
                return;
            }
            if let Some(at) = course.next(planned, now) {
                timer.course.due.store(at);
                // It stays with its runner, who looks again. Refused only when it was shut down meanwhile.
                let _ = self.enqueue(at, Verb::Arm, (machine.context(now), actions));
            }
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
            return Err(ArmError::NoLane { cpu: context.cpu });
        }
        // The helper is the only one whose being awake a deferrable timer can wait for.
        Ok(if self.is_deferrable() { Context::near(machine.spare, context.now) } else { context })
    }
}
