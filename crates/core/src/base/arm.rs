//! Arm, cancel and shut down, whichever base a timer belongs to.
//!
//! All begin alike: read the timer's place once, lock the base that it names, and begin again if it names
//! another one by then. Where a timer changes its base both locks are taken, and three rules of the kernel
//! decide whether it does (KERNEL 1.10): a pending timer that would stay in its bucket stays in its base,
//! unless the base asked for is one that only its CPU runs; a running timer stays, so that it is never
//! concurrent with itself; a base of an offline CPU takes nothing, its adopter does.
//!
//! Source: Linux 6.12, kernel/time/timer.c, `lock_timer_base`, `__mod_timer`, `add_timer_on`. Deviation: a
//! timer that was never armed belongs to no base at all, so that its first arm locks one base only; an arm of
//! a running timer on another CPU stays as well.

use super::bases::{BaseGuard, Bases, Context};
use super::place::{BaseId, Place};
use super::queues::{Handle, Linked};
use super::records::Wait;
use super::{Base, Change, ExactRef, TimerRef};
use crate::lock::RawLock;
use crate::time::NEVER;
use crate::{CpuId, Nanos};
use quietcore_wheel::{Expiry, Tick};

/// What an arm did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "when the base became due earlier, whoever waits for it must look again"]
pub(crate) struct Armed {
    /// The timer was pending before: that period ended without a run.
    pub(crate) was_pending: bool,
    /// The timer was shut down, and stays so; nothing happened.
    pub(crate) is_refused: bool,
    /// Whether the base is due earlier than before, and was idle.
    pub(crate) change: Change,
    /// The base that the timer belongs to now.
    pub(crate) base: BaseId,
}

/// The same of an arm in the usual case, which changes no base and is never refused.
#[derive(Clone, Copy, Debug)]
#[must_use = "as for `Armed`"]
pub(crate) struct UsualArm {
    pub(crate) was_pending: bool,
    pub(crate) change: Change,
}

/// What a cancel did.
///
/// ```
/// assert_ne!(quietcore_core::Cancelled::WasPending, quietcore_core::Cancelled::Running);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// The timer was pending: that period ends without a run.
    WasPending,
    /// It was not pending.
    Idle,
    /// A run of it has not ended: nothing was done.
    Running,
}

/// Whether a timer stays on the CPU that it is armed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pinning {
    Pinned,
    Floating,
}

/// When an arm does something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Always,
    /// Unless it is pending for that moment or an earlier one.
    Reduce,
    /// If it is pending.
    Pending,
}

/// An arm on its way to its base.
#[derive(Clone, Copy, Debug)]
struct Request<W> {
    when: W,
    onto: BaseId,
    mode: Mode,
    now: Nanos,
}

/// Why to begin again.
#[derive(Clone, Copy, Debug)]
enum Retry {
    /// The timer belongs to another base by now.
    Moved,
    /// The base takes nothing; this CPU's does.
    Adopted(CpuId),
}

impl<L: RawLock, T: Copy> Bases<L, T> {
    /// Arms `timer` for `expires` on the base `onto`, or moves it there. It runs after the tick that
    /// `expires` lies in.
    pub(crate) fn arm(&self, timer: TimerRef<T>, expires: Nanos, onto: BaseId, context: Context) -> Armed {
        self.arm_tick(timer, self.length.floor(expires), onto, context)
    }

    /// The same by the tick.
    pub(crate) fn arm_tick(
        &self,
        timer: TimerRef<T>,
        expires: Tick,
        onto: BaseId,
        context: Context,
    ) -> Armed {
        self.request(timer, self.asked(expires, onto, Mode::Always, context), context.cpu)
    }

    /// Arms an exact timer.
    pub(crate) fn arm_exact(
        &self,
        timer: ExactRef<T>,
        expiry: Expiry,
        onto: BaseId,
        context: Context,
    ) -> Armed {
        self.request(timer, self.asked(expiry, onto, Mode::Always, context), context.cpu)
    }

    /// Arms `timer` unless it is pending for `expires` or an earlier tick.
    pub(crate) fn reduce(&self, timer: TimerRef<T>, expires: Nanos, onto: BaseId, context: Context) -> Armed {
        let expires = self.length.floor(expires);
        self.request(timer, self.asked(expires, onto, Mode::Reduce, context), context.cpu)
    }

    /// Arms `timer` if it is pending.
    pub(crate) fn mod_pending(
        &self,
        timer: TimerRef<T>,
        expires: Nanos,
        onto: BaseId,
        context: Context,
    ) -> Armed {
        let expires = self.length.floor(expires);
        self.request(timer, self.asked(expires, onto, Mode::Pending, context), context.cpu)
    }

    /// [`reduce`](Self::reduce) of an exact timer, by the moment before which it does not run.
    pub(crate) fn reduce_exact(
        &self,
        timer: ExactRef<T>,
        expiry: Expiry,
        onto: BaseId,
        context: Context,
    ) -> Armed {
        self.request(timer, self.asked(expiry, onto, Mode::Reduce, context), context.cpu)
    }

    /// [`mod_pending`](Self::mod_pending) of an exact timer.
    pub(crate) fn mod_pending_exact(
        &self,
        timer: ExactRef<T>,
        expiry: Expiry,
        onto: BaseId,
        context: Context,
    ) -> Armed {
        self.request(timer, self.asked(expiry, onto, Mode::Pending, context), context.cpu)
    }

    fn asked<W>(&self, when: W, onto: BaseId, mode: Mode, context: Context) -> Request<W> {
        Request { when, onto, mode, now: context.now }
    }

    /// The usual case of [`arm`](Self::arm): a floating timer, for the base that it belongs to, or for its
    /// first. `None` when it is another one, and then nothing was done. Inline and without detours where the
    /// timer is idle, because it is why arming costs little more than a lock.
    #[inline]
    pub(crate) fn arm_usual(
        &self,
        timer: TimerRef<T>,
        expires: Nanos,
        onto: BaseId,
        context: Context,
    ) -> Option<UsualArm> {
        let place = &timer.shared().place;
        let hint = place.load();
        if !hint.is_usual_at(onto) && !hint.is_usual_new() {
            return None;
        }
        let expires = self.length.floor(expires);
        let mut base = self.lock(onto, context.cpu);
        if base.adopter.is_some() {
            return None;
        }
        let mut seen = place.load();
        if !seen.is_usual_at(onto) {
            // Only who wins has the lock of the base that a new timer belongs to.
            if !seen.is_usual_new() || !place.claim_for(seen, onto) {
                return None;
            }
            seen = seen.at(onto);
        }
        base.forward(context.now);
        base.counters.armed += 1;
        if seen.has(Place::PENDING) {
            return Some(UsualArm { was_pending: true, change: base.postpone(timer, expires) });
        }
        // The wheel asks this as well, so that it costs nothing here, and what follows from it does.
        assert!(timer.linked().is_none(), "an idle timer is in no queue (W5)");
        let Linked { due, .. } = timer.enqueue(&mut base.queues, expires);
        base.pending += 1;
        place.store(seen.with(Place::PENDING));
        let change = if due == NEVER { Change::default() } else { base.note(due) };
        Some(UsualArm { was_pending: false, change })
    }

    fn request<H: Handle<T>>(&self, timer: H, mut request: Request<H::When>, cpu: Option<CpuId>) -> Armed {
        loop {
            let place = timer.shared().place.load();
            let result = if place.is_at(request.onto) {
                self.arm_at(timer, &request, cpu)
            } else if let Some(from) = place.base() {
                self.arm_across(timer, &request, from, cpu)
            } else {
                self.arm_new(timer, &request, place, cpu)
            };
            match result {
                Ok(armed) => return armed,
                Err(Retry::Moved) => {}
                Err(Retry::Adopted(adopter)) => request.onto.cpu = adopter,
            }
        }
    }

    /// The timer belongs to the base asked for.
    fn arm_at<H: Handle<T>>(
        &self,
        timer: H,
        request: &Request<H::When>,
        cpu: Option<CpuId>,
    ) -> Result<Armed, Retry> {
        let mut base = self.lock(request.onto, cpu);
        if !timer.shared().place.load().is_at(request.onto) {
            return Err(Retry::Moved);
        }
        if let Some(adopter) = base.adopter
            && !base.records.is_running(timer.address())
        {
            return Err(Retry::Adopted(adopter));
        }
        Ok(base.arm(timer, request))
    }

    /// The timer was never armed.
    #[cold]
    fn arm_new<H: Handle<T>>(
        &self,
        timer: H,
        request: &Request<H::When>,
        seen: Place,
        cpu: Option<CpuId>,
    ) -> Result<Armed, Retry> {
        if seen.has(Place::SHUT_DOWN) || request.mode == Mode::Pending {
            let is_refused = seen.has(Place::SHUT_DOWN);
            let change = Change::default();
            return Ok(Armed { was_pending: false, is_refused, change, base: request.onto });
        }
        let mut base = self.lock(request.onto, cpu);
        if let Some(adopter) = base.adopter {
            return Err(Retry::Adopted(adopter));
        }
        // Only who wins has the lock of the base that the timer belongs to.
        if !timer.shared().place.claim_for(seen, request.onto) {
            return Err(Retry::Moved);
        }
        Ok(base.arm(timer, request))
    }

    /// The timer belongs to the base `from`, which is another one.
    #[cold]
    fn arm_across<H: Handle<T>>(
        &self,
        timer: H,
        request: &Request<H::When>,
        from: BaseId,
        cpu: Option<CpuId>,
    ) -> Result<Armed, Retry> {
        let (mut old, mut new) = self.lock_pair(from, request.onto, cpu);
        let place = timer.shared().place.load();
        if !place.is_at(from) {
            return Err(Retry::Moved);
        }
        if old.records.is_running(timer.address()) {
            return Ok(old.arm(timer, request));
        }
        if old.ends_early(timer, request, place) {
            return Ok(old.unchanged(place));
        }
        if place.has(Place::PENDING) && from.kind.is_alike(request.onto.kind) {
            old.forward(request.now);
            if timer.stays(&old.queues, request.when) {
                return Ok(old.arm(timer, request));
            }
        }
        if let Some(adopter) = new.adopter {
            return Err(Retry::Adopted(adopter));
        }
        let was_pending = place.has(Place::PENDING);
        if was_pending {
            old.detach(timer);
            old.counters.superseded += 1;
        }
        // It stays pending on the way, for those who look without a lock.
        let shared = timer.shared();
        shared.place.store(shared.place.load().at(request.onto));
        new.forward(request.now);
        new.counters.armed += 1;
        let change = new.insert(timer, request.when);
        Ok(Armed { was_pending, is_refused: false, change, base: request.onto })
    }

    /// The base that `timer` belongs to, locked; `None` if it was never armed.
    fn lock_base_of<H: Handle<T>>(&self, timer: H, cpu: Option<CpuId>) -> Option<BaseGuard<'_, L, T>> {
        self.lock_base_as(timer, timer.shared().place.load(), cpu)
    }

    /// The same, where its place was `seen` a moment ago.
    #[inline]
    fn lock_base_as<H: Handle<T>>(
        &self,
        timer: H,
        mut seen: Place,
        cpu: Option<CpuId>,
    ) -> Option<BaseGuard<'_, L, T>> {
        loop {
            let base = self.lock_at(seen.index()?, cpu);
            let now = timer.shared().place.load();
            if now.is_with(seen) {
                return Some(base);
            }
            seen = now;
        }
    }

    /// Takes `timer` out; waits for no run of it, and prevents none that has begun. Takes no lock when the
    /// timer is idle.
    #[inline]
    pub(crate) fn cancel<H: Handle<T>>(&self, timer: H, context: Context) -> Cancelled {
        let seen = timer.shared().place.load_idle();
        if !seen.has(Place::PENDING) {
            return Cancelled::Idle;
        }
        let Some(mut base) = self.lock_base_as(timer, seen, context.cpu) else { return Cancelled::Idle };
        base.cancel(timer)
    }

    /// The same, but says [`Cancelled::Running`] and does nothing while a run of it has not ended.
    pub(crate) fn cancel_unless_running<H: Handle<T>>(&self, timer: H, context: Context) -> Cancelled {
        let Some(mut base) = self.lock_base_of(timer, context.cpu) else { return Cancelled::Idle };
        if base.records.is_running(timer.address()) {
            return Cancelled::Running;
        }
        base.cancel(timer)
    }

    /// Takes `timer` out, and refuses every arm from now on. A run that has begun is not waited for.
    pub(crate) fn shutdown<H: Handle<T>>(&self, timer: H, context: Context) -> Cancelled {
        self.update(timer, context, |place| place.with(Place::SHUT_DOWN), Base::cancel)
    }

    /// Says whether later arms are for one CPU. A timer that is pending stays where it is.
    pub(crate) fn set_pinning<H: Handle<T>>(&self, timer: H, pinning: Pinning, context: Context) {
        let change = |place: Place| match pinning {
            Pinning::Pinned => place.with(Place::PINNED),
            Pinning::Floating => place.without(Place::PINNED),
        };
        self.update(timer, context, change, |_, _| Cancelled::Idle);
    }

    /// Does something under the timer's lock and changes its flags.
    fn update<H: Handle<T>>(
        &self,
        timer: H,
        context: Context,
        change: impl Fn(Place) -> Place,
        under_lock: impl FnOnce(&mut Base<T>, H) -> Cancelled,
    ) -> Cancelled {
        let place = &timer.shared().place;
        loop {
            if let Some(mut base) = self.lock_base_of(timer, context.cpu) {
                let result = under_lock(&mut base, timer);
                place.store(change(place.load()));
                return result;
            }
            let seen = place.load();
            if seen.base().is_none() && place.claim(seen, change(seen)) {
                return Cancelled::Idle;
            }
        }
    }

    /// Whether a run of `timer` has begun and not ended.
    pub(crate) fn is_running<H: Handle<T>>(&self, timer: H, context: Context) -> bool {
        let base = self.lock_base_of(timer, context.cpu);
        base.is_some_and(|base| base.records.is_running(timer.address()))
    }
}

impl<T: Copy> Base<T> {
    fn unchanged(&self, place: Place) -> Armed {
        Armed {
            was_pending: place.has(Place::PENDING),
            is_refused: place.has(Place::SHUT_DOWN),
            change: Change::default(),
            base: self.id,
        }
    }

    /// Whether an arm of a timer of this base does nothing.
    #[inline]
    fn ends_early<H: Handle<T>>(&self, timer: H, request: &Request<H::When>, place: Place) -> bool {
        if place.has(Place::SHUT_DOWN) {
            return true;
        }
        let is_pending = place.has(Place::PENDING);
        match request.mode {
            Mode::Always => false,
            Mode::Pending => !is_pending,
            Mode::Reduce => {
                let on_record = || H::when(&self.records.pending(timer.address())?);
                let known = timer.linked().or_else(on_record);
                is_pending && known.is_some_and(|known| !H::is_before(request.when, known))
            }
        }
    }

    /// Arms a timer whose place names this base.
    fn arm<H: Handle<T>>(&mut self, timer: H, request: &Request<H::When>) -> Armed {
        let place = timer.shared().place.load();
        if self.ends_early(timer, request, place) {
            return self.unchanged(place);
        }
        self.forward(request.now);
        let was_pending = place.has(Place::PENDING);
        let change = if self.adopter.is_some() {
            // The timer runs, or this base would not take it; nobody looks at these queues.
            self.park(timer, request.when)
        } else if was_pending {
            self.requeue(timer, request.when)
        } else {
            self.insert(timer, request.when)
        };
        self.counters.superseded += u64::from(was_pending);
        self.counters.armed += 1;
        Armed { was_pending, is_refused: false, change, base: self.id }
    }

    /// Moves a timer that is pending in this base to another tick.
    #[inline(never)]
    fn postpone(&mut self, timer: TimerRef<T>, expires: Tick) -> Change {
        self.counters.superseded += 1;
        self.requeue(timer, expires)
    }

    /// Puts a timer whose place names this base, where it is not pending, into its queue.
    #[inline]
    pub(super) fn insert<H: Handle<T>>(&mut self, timer: H, when: H::When) -> Change {
        let Linked { due, .. } = timer.enqueue(&mut self.queues, when);
        self.pending += 1;
        let place = &timer.shared().place;
        place.store(place.load().with(Place::PENDING));
        self.note(due)
    }

    /// Puts a timer that is pending in this base, in a queue or on a record, where it belongs now.
    #[inline]
    fn requeue<H: Handle<T>>(&mut self, timer: H, when: H::When) -> Change {
        let Linked { was_linked, due } = timer.enqueue(&mut self.queues, when);
        if !was_linked {
            let was_waiting = self.records.forget(timer.address());
            assert!(was_waiting, "a pending timer is in a queue or on a record (W5)");
        }
        self.is_stale = true;
        self.note(due)
    }

    /// Lets a running timer of this base wait for the end of its run.
    #[cold]
    fn park<H: Handle<T>>(&mut self, timer: H, when: H::When) -> Change {
        let place = timer.shared().place.load();
        if place.has(Place::PENDING) {
            self.detach(timer);
        }
        self.pending += 1;
        self.records.wait(timer.address(), Wait::Parked(timer.due(when)));
        timer.shared().place.store(place.with(Place::PENDING).without(Place::COLLECTED));
        Change { is_first: false, was_idle: self.is_idle }
    }

    /// Takes a timer that is pending in this base out of its queue or off its record. Its place still says
    /// that it is pending.
    #[inline]
    fn detach<H: Handle<T>>(&mut self, timer: H) {
        if !timer.dequeue(&mut self.queues) {
            let was_waiting = self.records.forget(timer.address());
            assert!(was_waiting, "a pending timer is in a queue or on a record (W5)");
        }
        self.is_stale = true;
        self.pending -= 1;
    }

    #[inline(always)]
    fn cancel<H: Handle<T>>(&mut self, timer: H) -> Cancelled {
        let place = &timer.shared().place;
        if !place.load().has(Place::PENDING) {
            return Cancelled::Idle;
        }
        self.detach(timer);
        self.counters.cancelled += 1;
        place.store(place.load().without(Place::PENDING));
        Cancelled::WasPending
    }
}
