//! Arm, cancel and shut down, whichever base a timer belongs to.
//!
//! All begin alike: read the timer's word once, lock the base that it names, and begin again if it names
//! another one by then. Where a timer changes its base both locks are taken, and three rules of the kernel
//! decide whether it does (docs/design/KERNEL.md 1.10): a pending timer that would stay in its bucket stays
//! in its base, unless the base asked for is one that only its CPU runs; a running timer stays, so that it
//! is never concurrent with itself; a base of an offline CPU takes nothing, its adopter does.
//!
//! What the usual arm and a cancel consist of is inlined by force, here and below and above: each call that
//! the compiler leaves costs a tenth of them (`cargo xtask instructions` counts).
//!
//! Source: Linux 6.12, kernel/time/timer.c, `lock_timer_base`, `__mod_timer`, `add_timer_on`. Deviation: a
//! timer that was never armed belongs to no base at all, so that its first arm locks one base only; an arm of
//! a running timer on another CPU stays as well.

use super::bases::{BaseGuard, Bases};
use super::queues::Linked;
use super::runs::Wait;
use super::timer::{TimerKind, TimerRef};
use super::word::{BaseId, TimerWord};
use super::{Base, ExpiryChange, Takes};
use crate::lock::RawLock;
use crate::time::NEVER;
use crate::{Context, CpuId, Nanos};
use quietcore_wheel::Tick;

/// What an arm did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "when the base became due earlier, a CPU that waits for it must look again"]
pub(crate) struct ArmOutcome {
    /// The timer was pending before: that period ended without a run.
    pub(crate) was_pending: bool,
    /// The timer was shut down, or the machine has ended; nothing happened.
    pub(crate) is_refused: bool,
    /// Whether the base is due earlier than before, and was idle.
    pub(crate) change: ExpiryChange,
    /// The base that the timer belongs to now.
    pub(crate) base: BaseId,
}

/// The same of an arm in the usual case, which changes no base and is never refused.
#[derive(Clone, Copy, Debug)]
#[must_use = "as for `ArmOutcome`"]
pub(crate) struct FastArm {
    pub(crate) was_pending: bool,
    pub(crate) change: ExpiryChange,
}

/// What a cancel did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// The timer was pending: that period ends without a run.
    WasPending,
    /// It was not pending.
    Idle,
    /// A run of it has not ended: nothing was done.
    Running,
}

/// An arm: for when, whether at all, and where. A moment alone is an arm for it ([`From`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arm<W> {
    /// For when, in the words of the timer's [kind](TimerKind::When).
    pub when: W,
    /// Whether it does anything.
    pub mode: ArmMode,
    /// Where the timer goes.
    pub target: ArmTarget,
}

/// When an arm does something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ArmMode {
    /// Always.
    #[default]
    Always,
    /// Unless the timer is pending for that moment or an earlier one. ExactKind timers are compared by the
    /// moment before which they do not run.
    Reduce,
    /// If the timer is pending.
    ModPending,
}

/// Where an arm puts the timer. What it says of pinning holds for later arms, too, if this one does anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ArmTarget {
    /// Pinned or not, as it was made or last armed.
    #[default]
    AsIs,
    /// Pinned on that CPU. A timer that runs stays where it runs, as it is never concurrent with itself; the
    /// next arm moves it.
    Cpu(CpuId),
    /// It may run anywhere.
    Floating,
}

impl<W> Arm<W> {
    /// An arm for `when`.
    #[must_use]
    pub const fn at(when: W) -> Self {
        Self { when, mode: ArmMode::Always, target: ArmTarget::AsIs }
    }

    /// An arm unless the timer is pending for `when` or earlier.
    #[must_use]
    pub const fn reduce(when: W) -> Self {
        Self { when, mode: ArmMode::Reduce, target: ArmTarget::AsIs }
    }

    /// An arm if the timer is pending.
    #[must_use]
    pub const fn mod_pending(when: W) -> Self {
        Self { when, mode: ArmMode::ModPending, target: ArmTarget::AsIs }
    }

    /// The same, pinned on `cpu`.
    #[must_use]
    pub fn on(self, cpu: CpuId) -> Self {
        Self { target: ArmTarget::Cpu(cpu), ..self }
    }

    /// The same, for any CPU.
    #[must_use]
    pub fn floating(self) -> Self {
        Self { target: ArmTarget::Floating, ..self }
    }

    /// Whether it is neither conditional nor about pinning.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.mode == ArmMode::Always && self.target == ArmTarget::AsIs
    }
}

impl<W> From<W> for Arm<W> {
    #[inline]
    fn from(when: W) -> Self {
        Self::at(when)
    }
}

impl ArmTarget {
    /// The word of a timer after an arm.
    #[inline]
    fn pin(self, word: TimerWord) -> TimerWord {
        match self {
            Self::AsIs => word,
            Self::Cpu(_) => word.with(TimerWord::PINNED),
            Self::Floating => word.without(TimerWord::PINNED),
        }
    }
}

/// An arm on its way to its base.
#[derive(Clone, Copy, Debug)]
struct Request<W> {
    arm: Arm<W>,
    onto: BaseId,
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
    /// Arms `timer` on the base `onto`, or moves it there. One of ticks runs after the tick that its moment
    /// lies in.
    pub(crate) fn arm<K: TimerKind>(
        &self,
        timer: TimerRef<T, K>,
        arm: impl Into<Arm<K::When>>,
        onto: BaseId,
        context: Context,
    ) -> ArmOutcome {
        let Arm { when, mode, target } = arm.into();
        let arm = Arm { when: K::key(when, self.length), mode, target };
        self.request(timer, Request { arm, onto, now: context.now() }, context.own_cpu())
    }

    /// The usual case of [`arm`](Self::arm): a floating timer, for the base that it belongs to, or for its
    /// first. `None` when it is another one, and then nothing was done. Inline and without detours where the
    /// timer is idle, because it is why arming costs little more than a lock.
    #[inline(always)]
    pub(crate) fn arm_fast(
        &self,
        timer: TimerRef<T>,
        expires: Nanos,
        onto: BaseId,
        context: Context,
    ) -> Option<FastArm> {
        if !timer.shared().word.load().may_be_fast_at(onto) {
            return None;
        }
        let expires = self.length.floor(expires);
        let mut base = self.lock(onto, context.own_cpu());
        base.arm_fast(timer, expires, context.now())
    }

    fn request<K: TimerKind>(
        &self,
        timer: TimerRef<T, K>,
        mut request: Request<K::Key>,
        cpu: Option<CpuId>,
    ) -> ArmOutcome {
        loop {
            let word = timer.shared().word.load();
            let result = if word.is_at(request.onto) {
                self.arm_at(timer, &request, cpu)
            } else if let Some(from) = word.base() {
                self.arm_across(timer, &request, from, cpu)
            } else {
                self.arm_new(timer, &request, word, cpu)
            };
            match result {
                Ok(armed) => return armed,
                Err(Retry::Moved) => {}
                Err(Retry::Adopted(adopter)) => request.onto.cpu = adopter,
            }
        }
    }

    /// The timer belongs to the base asked for.
    fn arm_at<K: TimerKind>(
        &self,
        timer: TimerRef<T, K>,
        request: &Request<K::Key>,
        cpu: Option<CpuId>,
    ) -> Result<ArmOutcome, Retry> {
        let mut base = self.lock(request.onto, cpu);
        if !timer.shared().word.load().is_at(request.onto) {
            return Err(Retry::Moved);
        }
        // If it runs, it stays here all the same: `arm_across` sees to that.
        if let Some(adopter) = base.adopter() {
            return Err(Retry::Adopted(adopter));
        }
        Ok(base.arm(timer, request))
    }

    /// The timer was never armed.
    #[cold]
    fn arm_new<K: TimerKind>(
        &self,
        timer: TimerRef<T, K>,
        request: &Request<K::Key>,
        seen: TimerWord,
        cpu: Option<CpuId>,
    ) -> Result<ArmOutcome, Retry> {
        if seen.has(TimerWord::SHUT_DOWN) || request.arm.mode == ArmMode::ModPending {
            let is_refused = seen.has(TimerWord::SHUT_DOWN);
            let change = ExpiryChange::default();
            return Ok(ArmOutcome { was_pending: false, is_refused, change, base: request.onto });
        }
        let mut base = self.lock(request.onto, cpu);
        if let Some(adopter) = base.adopter() {
            return Err(Retry::Adopted(adopter));
        }
        // Only the winner has the lock of the base that the timer belongs to.
        if !timer.shared().word.claim_for(seen, request.onto) {
            return Err(Retry::Moved);
        }
        Ok(base.arm(timer, request))
    }

    /// The timer belongs to the base `from`, which is another one.
    #[cold]
    fn arm_across<K: TimerKind>(
        &self,
        timer: TimerRef<T, K>,
        request: &Request<K::Key>,
        from: BaseId,
        cpu: Option<CpuId>,
    ) -> Result<ArmOutcome, Retry> {
        let (mut old, mut new) = self.lock_pair(from, request.onto, cpu);
        let word = timer.shared().word.load();
        if !word.is_at(from) {
            return Err(Retry::Moved);
        }
        if old.runs.is_running(timer.address()) {
            return Ok(old.arm(timer, request));
        }
        if old.ends_early(timer, request, word) {
            return Ok(old.unchanged(word));
        }
        if word.has(TimerWord::PENDING) && from.kind.is_alike(request.onto.kind) {
            old.forward(request.now);
            if old.queues.stays(timer, request.arm.when) {
                return Ok(old.arm(timer, request));
            }
        }
        if let Some(adopter) = new.adopter() {
            return Err(Retry::Adopted(adopter));
        }
        if new.is_closed() {
            return Ok(new.unchanged(word));
        }
        let was_pending = word.has(TimerWord::PENDING);
        if was_pending {
            old.detach(timer);
            old.counters.superseded += 1;
        }
        // It stays pending on the way, for those who look without a lock.
        let shared = timer.shared();
        let moved = request.arm.target.pin(shared.word.load());
        shared.word.store(moved.at(request.onto));
        new.forward(request.now);
        new.counters.armed += 1;
        let change = new.insert(timer, request.arm.when);
        Ok(ArmOutcome { was_pending, is_refused: false, change, base: request.onto })
    }

    /// The base that `timer` belongs to, locked; `None` if it was never armed.
    fn lock_base_of<K: TimerKind>(
        &self,
        timer: TimerRef<T, K>,
        cpu: Option<CpuId>,
    ) -> Option<BaseGuard<'_, L, T>> {
        self.lock_base_as(timer, timer.shared().word.load(), cpu)
    }

    /// The same, where its word was `seen` a moment ago.
    #[inline(always)]
    fn lock_base_as<K: TimerKind>(
        &self,
        timer: TimerRef<T, K>,
        mut seen: TimerWord,
        cpu: Option<CpuId>,
    ) -> Option<BaseGuard<'_, L, T>> {
        loop {
            let base = self.lock_at(seen.index()?, cpu);
            let now = timer.shared().word.load();
            if now.is_with(seen) {
                return Some(base);
            }
            seen = now;
        }
    }

    /// Takes `timer` out; waits for no run of it, and prevents none that has begun. Takes no lock when the
    /// timer is idle.
    #[inline(always)]
    pub(crate) fn cancel<K: TimerKind>(&self, timer: TimerRef<T, K>, context: Context) -> Cancelled {
        let seen = timer.shared().word.load_idle();
        if !seen.has(TimerWord::PENDING) {
            return Cancelled::Idle;
        }
        let Some(mut base) = self.lock_base_as(timer, seen, context.own_cpu()) else {
            return Cancelled::Idle;
        };
        base.cancel(timer)
    }

    /// The same, but says [`Cancelled::Running`] and does nothing while a run of it has not ended.
    pub(crate) fn cancel_unless_running<K: TimerKind>(
        &self,
        timer: TimerRef<T, K>,
        context: Context,
    ) -> Cancelled {
        let Some(mut base) = self.lock_base_of(timer, context.own_cpu()) else { return Cancelled::Idle };
        if base.runs.is_running(timer.address()) {
            return Cancelled::Running;
        }
        base.cancel(timer)
    }

    /// Takes `timer` out, and refuses every arm from now on. A run that has begun is not waited for.
    pub(crate) fn shutdown<K: TimerKind>(&self, timer: TimerRef<T, K>, context: Context) -> Cancelled {
        let word = &timer.shared().word;
        loop {
            if let Some(mut base) = self.lock_base_of(timer, context.own_cpu()) {
                let result = base.cancel(timer);
                word.store(word.load().with(TimerWord::SHUT_DOWN));
                return result;
            }
            let seen = word.load();
            if seen.base().is_none() && word.claim(seen, seen.with(TimerWord::SHUT_DOWN)) {
                return Cancelled::Idle;
            }
        }
    }

    /// What `timer` is armed for; `None` when it is not pending.
    pub(crate) fn armed_for<K: TimerKind>(&self, timer: TimerRef<T, K>, context: Context) -> Option<Nanos> {
        let base = self.lock_base_of(timer, context.own_cpu())?;
        let linked = timer.linked().map(|key| K::due(timer, key));
        let due = linked.or_else(|| base.runs.pending(timer.address()))?;
        Some(due.expires(self.length))
    }

    /// Whether a run of `timer` has begun and not ended.
    pub(crate) fn is_running<K: TimerKind>(&self, timer: TimerRef<T, K>, context: Context) -> bool {
        let base = self.lock_base_of(timer, context.own_cpu());
        base.is_some_and(|base| base.runs.is_running(timer.address()))
    }
}

impl<T: Copy> Base<T> {
    fn unchanged(&self, word: TimerWord) -> ArmOutcome {
        ArmOutcome {
            was_pending: word.has(TimerWord::PENDING),
            is_refused: word.has(TimerWord::SHUT_DOWN) || self.is_closed(),
            change: ExpiryChange::default(),
            base: self.id,
        }
    }

    /// Whether an arm of a timer of this base does nothing.
    #[inline]
    fn ends_early<K: TimerKind>(
        &self,
        timer: TimerRef<T, K>,
        request: &Request<K::Key>,
        word: TimerWord,
    ) -> bool {
        if word.has(TimerWord::SHUT_DOWN) || self.is_closed() {
            return true;
        }
        let is_pending = word.has(TimerWord::PENDING);
        match request.arm.mode {
            ArmMode::Always => false,
            ArmMode::ModPending => !is_pending,
            ArmMode::Reduce => {
                let on_record = || K::key_of(&self.runs.pending(timer.address())?);
                let known = timer.linked().or_else(on_record);
                is_pending && known.is_some_and(|known| !K::is_before(request.arm.when, known))
            }
        }
    }

    /// Arms a timer whose word names this base.
    fn arm<K: TimerKind>(&mut self, timer: TimerRef<T, K>, request: &Request<K::Key>) -> ArmOutcome {
        let word = timer.shared().word.load();
        if self.ends_early(timer, request, word) {
            return self.unchanged(word);
        }
        self.forward(request.now);
        let was_pending = word.has(TimerWord::PENDING);
        let Arm { when, target, .. } = request.arm;
        if target != ArmTarget::AsIs {
            timer.shared().word.store(target.pin(word));
        }
        let change = if self.adopter().is_some() {
            // The timer runs, or this base would not take it; no CPU looks at these queues.
            self.park(timer, when)
        } else if was_pending {
            self.requeue(timer, when)
        } else {
            self.insert(timer, when)
        };
        self.counters.superseded += u64::from(was_pending);
        self.counters.armed += 1;
        ArmOutcome { was_pending, is_refused: false, change, base: self.id }
    }

    /// [`Bases::arm_fast`], in the base that it asks for.
    #[inline(always)]
    pub(super) fn arm_fast(&mut self, timer: TimerRef<T>, expires: Tick, now: Nanos) -> Option<FastArm> {
        if self.takes != Takes::Arms {
            return None;
        }
        let word = &timer.shared().word;
        let mut seen = word.load();
        if !seen.is_fast_at(self.id) {
            // Only the winner has the lock of the base that a new timer belongs to.
            if !seen.is_fast_new() || !word.claim_for(seen, self.id) {
                return None;
            }
            seen = seen.at(self.id);
        }
        self.forward(now);
        self.counters.armed += 1;
        if seen.has(TimerWord::PENDING) {
            return Some(FastArm { was_pending: true, change: self.postpone(timer, expires) });
        }
        // The wheel asks this as well, so that it costs nothing here, and what follows from it does.
        assert!(timer.linked().is_none(), "an idle timer is in no queue (W5)");
        let Linked { due, .. } = self.queues.enqueue(timer, expires);
        self.pending += 1;
        word.store(seen.with(TimerWord::PENDING));
        let change = if due == NEVER { ExpiryChange::default() } else { self.note(due) };
        Some(FastArm { was_pending: false, change })
    }

    /// Moves a timer that is pending in this base to another tick.
    #[inline(never)]
    fn postpone(&mut self, timer: TimerRef<T>, expires: Tick) -> ExpiryChange {
        self.counters.superseded += 1;
        self.requeue(timer, expires)
    }

    /// Puts a timer whose word names this base, where it is not pending, into its queue.
    #[inline]
    pub(super) fn insert<K: TimerKind>(&mut self, timer: TimerRef<T, K>, when: K::Key) -> ExpiryChange {
        let Linked { due, .. } = self.queues.enqueue(timer, when);
        self.pending += 1;
        let word = &timer.shared().word;
        word.store(word.load().with(TimerWord::PENDING));
        self.note_armed::<K>(due)
    }

    /// Puts a timer that is pending in this base, in a queue or on a record, where it belongs now.
    #[inline]
    fn requeue<K: TimerKind>(&mut self, timer: TimerRef<T, K>, when: K::Key) -> ExpiryChange {
        let Linked { was_linked, due } = self.queues.enqueue(timer, when);
        if !was_linked {
            let was_waiting = self.runs.forget(timer.address());
            assert!(was_waiting, "a pending timer is in a queue or on a record (W5)");
        }
        self.is_stale = true;
        self.note_armed::<K>(due)
    }

    /// The queue of such timers is due at `due`; `NEVER` says that an earlier one is in front.
    #[inline]
    fn note_armed<K: TimerKind>(&mut self, due: u64) -> ExpiryChange {
        ExpiryChange { is_exact_first: K::IS_EXACT && due != NEVER, ..self.note(due) }
    }

    /// Lets a running timer of this base wait for the end of its run.
    #[cold]
    fn park<K: TimerKind>(&mut self, timer: TimerRef<T, K>, when: K::Key) -> ExpiryChange {
        let word = timer.shared().word.load();
        if word.has(TimerWord::PENDING) {
            self.detach(timer);
        }
        self.pending += 1;
        self.runs.wait(timer.address(), Wait::Rearmed(K::due(timer, when)));
        timer.shared().word.store(word.with(TimerWord::PENDING).without(TimerWord::COLLECTED));
        ExpiryChange { was_idle: self.is_idle, ..ExpiryChange::default() }
    }

    /// Takes a timer that is pending in this base out of its queue or off its record. Its word still says
    /// that it is pending.
    #[inline]
    fn detach<K: TimerKind>(&mut self, timer: TimerRef<T, K>) {
        if !self.queues.dequeue(timer) {
            let was_waiting = self.runs.forget(timer.address());
            assert!(was_waiting, "a pending timer is in a queue or on a record (W5)");
        }
        self.is_stale = true;
        self.pending -= 1;
    }

    #[inline(always)]
    pub(super) fn cancel<K: TimerKind>(&mut self, timer: TimerRef<T, K>) -> Cancelled {
        let word = &timer.shared().word;
        if !word.load().has(TimerWord::PENDING) {
            return Cancelled::Idle;
        }
        self.detach(timer);
        self.counters.cancelled += 1;
        word.store(word.load().without(TimerWord::PENDING));
        Cancelled::WasPending
    }
}
