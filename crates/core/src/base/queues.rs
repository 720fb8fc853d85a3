//! The queues of one base: a wheel for ticks, and for nanoseconds those that wait and those that are
//! collected.
//!
//! Two phases (PROTOCOL 2). Collecting takes what is due out of the way of the clock and leaves it pending,
//! so that it can be cancelled until somebody runs it. The wheel keeps its own list of that; exact timers
//! move to a second queue, in their order, and a flag in their place says in which of the two they are.
//!
//! Exact timers are handed out before those of ticks: they asked for it.

use super::place::Place;
use super::tick_length::TickLength;
use super::timer::{ExactRef, Shared, TimerRef};
use crate::Nanos;
use crate::time::NEVER;
use core::fmt;
use core::num::NonZeroUsize;
use quietcore_wheel::{Armed, Expiry, IntrusiveExactQueue, IntrusiveWheel, Node, NodeRef, Tick};

type WheelRef<T> = NodeRef<Node<Shared<T>>>;

/// A timer of either kind, and what it is armed for.
pub(crate) enum Due<T> {
    Tick(TimerRef<T>, Tick),
    Exact(ExactRef<T>, Expiry),
}

impl<T> Due<T> {
    #[inline]
    pub(super) fn address(&self) -> NonZeroUsize {
        match self {
            Self::Tick(timer, _) => timer.address(),
            Self::Exact(timer, _) => timer.address(),
        }
    }

    #[inline]
    pub(super) fn shared(&self) -> &Shared<T> {
        match self {
            Self::Tick(timer, _) => timer.shared(),
            Self::Exact(timer, _) => timer.shared(),
        }
    }

    /// Whether it may run at `now`, whatever its bucket says.
    pub(super) fn is_due(&self, now: Nanos, length: TickLength) -> bool {
        match self {
            Self::Tick(_, expires) => expires.is_before(length.floor(now)),
            Self::Exact(_, expiry) => expiry.soft <= now.0,
        }
    }

    /// What was asked for; of a timer of ticks the start of its tick.
    #[inline]
    pub(super) fn expires(&self, length: TickLength) -> Nanos {
        match self {
            Self::Tick(_, expires) => length.start(*expires),
            Self::Exact(_, expiry) => Nanos(expiry.soft),
        }
    }
}

impl<T> Copy for Due<T> {}

impl<T> Clone for Due<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> fmt::Debug for Due<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tick(timer, expires) => write!(out, "{timer:?} for {expires:?}"),
            Self::Exact(timer, expiry) => write!(out, "{timer:?} for {expiry:?}"),
        }
    }
}

/// What putting a timer into its queue did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Linked {
    /// It was in a queue of this base before.
    pub(super) was_linked: bool,
    /// When its queue is due now, if that became earlier; else `NEVER`.
    pub(super) due: u64,
}

/// A timer that a base can keep, of either kind.
pub(crate) trait Handle<T>: Copy + PartialEq {
    /// What it is armed for.
    type When: Copy;

    fn shared(&self) -> &Shared<T>;
    fn address(self) -> NonZeroUsize;
    fn due(self, when: Self::When) -> Due<T>;
    /// The other way.
    fn when(due: &Due<T>) -> Option<Self::When>;
    /// Whether `one` comes before `other`.
    fn is_before(one: Self::When, other: Self::When) -> bool;
    /// What a timer in a queue of this base is armed for.
    fn linked(self) -> Option<Self::When>;
    /// Whether an arm for `when` would change nothing that a queue knows, so that a timer that may be in any
    /// base stays in its own.
    fn stays(self, queues: &Queues<T>, when: Self::When) -> bool;
    fn enqueue(self, queues: &mut Queues<T>, when: Self::When) -> Linked;
    /// Whether it was in a queue.
    fn dequeue(self, queues: &mut Queues<T>) -> bool;
}

impl<T> Handle<T> for TimerRef<T> {
    type When = Tick;

    #[inline]
    fn shared(&self) -> &Shared<T> {
        Self::shared(self)
    }

    #[inline]
    fn address(self) -> NonZeroUsize {
        Self::address(self)
    }

    fn due(self, when: Tick) -> Due<T> {
        Due::Tick(self, when)
    }

    fn when(due: &Due<T>) -> Option<Tick> {
        if let Due::Tick(_, when) = due { Some(*when) } else { None }
    }

    fn is_before(one: Tick, other: Tick) -> bool {
        one.is_before(other)
    }

    #[inline]
    fn linked(self) -> Option<Tick> {
        self.links().expires()
    }

    fn stays(self, queues: &Queues<T>, when: Tick) -> bool {
        queues.wheel.stays(self.node(), when)
    }

    #[inline]
    fn enqueue(self, queues: &mut Queues<T>, when: Tick) -> Linked {
        let Armed { was_pending, is_first } = queues.wheel.arm(self.node(), when);
        // An arm that became the first left the wheel's next expiry fresh: this is a load.
        let due = if is_first { queues.wheel_expiry() } else { NEVER };
        Linked { was_linked: was_pending, due }
    }

    #[inline]
    fn dequeue(self, queues: &mut Queues<T>) -> bool {
        queues.wheel.cancel(self.node())
    }
}

impl<T> Handle<T> for ExactRef<T> {
    type When = Expiry;

    #[inline]
    fn shared(&self) -> &Shared<T> {
        Self::shared(self)
    }

    #[inline]
    fn address(self) -> NonZeroUsize {
        Self::address(self)
    }

    fn due(self, when: Expiry) -> Due<T> {
        Due::Exact(self, when)
    }

    fn when(due: &Due<T>) -> Option<Expiry> {
        if let Due::Exact(_, when) = due { Some(*when) } else { None }
    }

    fn is_before(one: Expiry, other: Expiry) -> bool {
        one.soft < other.soft
    }

    fn linked(self) -> Option<Expiry> {
        self.links().expiry()
    }

    fn stays(self, _queues: &Queues<T>, when: Expiry) -> bool {
        self.linked() == Some(when)
    }

    fn enqueue(self, queues: &mut Queues<T>, when: Expiry) -> Linked {
        let was_collected = self.dequeue_collected(queues);
        let Armed { was_pending, is_first } = queues.exact.arm(self.node(), when);
        let due = if is_first { queues.exact.next_expiry().unwrap_or(NEVER) } else { NEVER };
        Linked { was_linked: was_pending || was_collected, due }
    }

    fn dequeue(self, queues: &mut Queues<T>) -> bool {
        self.dequeue_collected(queues) || queues.exact.cancel(self.node())
    }
}

impl<T> ExactRef<T> {
    fn dequeue_collected(self, queues: &mut Queues<T>) -> bool {
        let place = self.shared().place.load();
        place.has(Place::COLLECTED) && {
            self.shared().place.store(place.without(Place::COLLECTED));
            queues.due.cancel(self.node())
        }
    }
}

/// What waits in a base.
pub(crate) struct Queues<T> {
    pub(super) wheel: IntrusiveWheel<Shared<T>>,
    exact: IntrusiveExactQueue<Shared<T>>,
    /// Exact timers that were collected.
    due: IntrusiveExactQueue<Shared<T>>,
    pub(super) length: TickLength,
}

impl<T> Queues<T> {
    pub(super) fn new(length: TickLength, now: Nanos) -> Self {
        Self {
            wheel: IntrusiveWheel::new(length.floor(now)),
            exact: IntrusiveExactQueue::new(),
            due: IntrusiveExactQueue::new(),
            length,
        }
    }

    #[inline]
    fn wheel_expiry(&mut self) -> u64 {
        self.wheel.next_expiry().map_or(NEVER, |due| self.length.start(due).0)
    }

    /// Takes the wheel's clock to `now`, as far as no bucket is due.
    #[inline]
    pub(super) fn forward(&mut self, now: Nanos) {
        // Most calls come in the tick that the clock shows already; no division says so. At the end of time
        // the product wraps, and the call is made for nothing.
        let next = self.wheel.clock().plus(1).0.wrapping_mul(self.length.nanos().0);
        if now.0 >= next {
            self.wheel.forward(self.length.floor(now));
        }
    }

    /// When there is something to collect, in ns. Collected timers are not counted.
    #[inline]
    pub(super) fn next_expiry(&mut self) -> u64 {
        self.wheel_expiry().min(self.exact.next_expiry().unwrap_or(NEVER))
    }

    /// Whether anything was collected and may still be pending.
    #[inline]
    pub(super) fn has_collected(&self) -> bool {
        self.wheel.has_collected() || self.due.first().is_some()
    }

    /// Collects what is due by `now`; returns when the first of that was due, else `NEVER`.
    pub(super) fn collect(&mut self, now: Nanos) -> u64 {
        let tick = self.length.floor(now);
        let mut first = NEVER;
        let due = self.wheel_expiry();
        while self.wheel.collect(tick) {
            first = due;
        }
        self.wheel.forward(tick);
        while let Some(expiry) = Self::first_expiry(&self.exact)
            && let Some(node) = self.exact.pop_expired(now.0)
        {
            let _ = self.due.arm(node, expiry);
            let timer = ExactRef::from_node(node);
            let place = &timer.shared().place;
            place.store(place.load().with(Place::COLLECTED));
            first = first.min(expiry.hard);
        }
        first
    }

    /// Takes out a timer that was collected.
    #[inline]
    pub(super) fn pop_collected(&mut self) -> Option<Due<T>> {
        if let Some(expiry) = Self::first_expiry(&self.due) {
            return Self::pop_exact(&mut self.due, expiry);
        }
        self.wheel.pop_collected().map(Self::handed_out)
    }

    /// The same if the next one is a detached timer of the wheel.
    #[inline]
    pub(super) fn pop_collected_detached(&mut self) -> Option<Due<T>> {
        if self.due.first().is_some() {
            return None;
        }
        let is_detached = |node| TimerRef::from_node(node).shared().place.load().has(Place::DETACHED);
        self.wheel.pop_collected_if(is_detached).map(Self::handed_out)
    }

    /// Takes any timer out, due or not, without moving the clock.
    pub(super) fn pop_pending(&mut self) -> Option<Due<T>> {
        for queue in [&mut self.due, &mut self.exact] {
            if let Some(expiry) = Self::first_expiry(queue) {
                return Self::pop_exact(queue, expiry);
            }
        }
        self.wheel.pop_pending().map(Self::handed_out)
    }

    #[inline]
    fn handed_out(node: WheelRef<T>) -> Due<T> {
        let timer = TimerRef::from_node(node);
        Due::Tick(timer, timer.links().last_expires())
    }

    #[inline]
    fn first_expiry(queue: &IntrusiveExactQueue<Shared<T>>) -> Option<Expiry> {
        ExactRef::from_node(queue.first()?).links().expiry()
    }

    fn pop_exact(queue: &mut IntrusiveExactQueue<Shared<T>>, expiry: Expiry) -> Option<Due<T>> {
        let node = queue.pop_expired(NEVER)?;
        Some(Due::Exact(ExactRef::from_node(node), expiry))
    }

    /// Asserts W1 to W5 of the queues.
    pub(super) fn check(&self) {
        self.wheel.check();
        self.exact.check();
        self.due.check();
    }
}

impl<T> fmt::Debug for Queues<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Queues")
            .field("wheel", &self.wheel)
            .field("exact", &self.exact)
            .field("due", &self.due)
            .finish_non_exhaustive()
    }
}
