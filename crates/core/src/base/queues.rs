//! The queues of one base: a wheel for ticks, and for nanoseconds those that wait and those that are
//! collected.
//!
//! They are most of the memory of a machine, which stays when the machine ends, as handles of its timers may
//! know it for ever. So they lie in a place of their own, which a base that was closed gives back when
//! nothing is in them ([`BaseQueues::release`]); nothing comes to it from then on.
//!
//! Two phases (docs/design/PROTOCOL.md, section 2). Collecting takes what is due out of the way of the clock
//! and leaves it pending, so that it can be cancelled until a CPU runs it. The wheel keeps its own list of
//! that; exact timers move to a second queue, in their order, and a flag in their word says in which of
//! the two they are. ExactKind timers are handed out before those of ticks.

use super::tick_length::TickLength;
use super::timer::{Due, EitherRef, ExactRef, Shared, TimerKind, TimerRef};
use super::word::TimerWord;
use crate::Nanos;
use crate::time::NEVER;
use alloc::boxed::Box;
use core::fmt;
use quietcore_wheel::{Expiry, IntrusiveExactQueue, IntrusiveWheel, Node, NodeRef, QueueArm};

type WheelRef<T> = NodeRef<Node<Shared<T>>>;

/// What putting a timer into its queue did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Linked {
    /// It was in a queue of this base before.
    pub(super) was_linked: bool,
    /// When its queue is due now, if that became earlier; else `NEVER`.
    pub(super) due: u64,
}

/// What waits in a base: nothing, once it was released.
pub(crate) struct BaseQueues<T> {
    held: Option<Box<HeldQueues<T>>>,
    pub(super) length: TickLength,
}

impl<T> BaseQueues<T> {
    pub(super) fn new(length: TickLength, now: Nanos) -> Self {
        Self { held: Some(Box::new(HeldQueues::new(length, now))), length }
    }

    /// Gives the memory back.
    ///
    /// # Panics
    /// When a timer is in a queue.
    pub(super) fn release(&mut self) {
        if let Some(held) = &mut self.held {
            let is_empty = held.next_expiry() == NEVER && !held.has_collected();
            assert!(is_empty, "a timer of a base that was closed is in a queue");
        }
        self.held = None;
    }

    /// Puts a timer into its queue, or moves it there.
    #[inline(always)]
    pub(super) fn enqueue<K: TimerKind>(&mut self, timer: TimerRef<T, K>, key: K::Key) -> Linked {
        match &mut self.held {
            Some(held) => held.enqueue(timer, key),
            None => unreachable!("a base that was closed takes no timer"),
        }
    }

    /// Takes a timer out of its queue; says whether it was in one.
    #[inline]
    pub(super) fn dequeue<K: TimerKind>(&mut self, timer: TimerRef<T, K>) -> bool {
        self.held.as_mut().is_some_and(|held| held.dequeue(timer))
    }

    /// The timer is about to be moved, or taken out.
    #[inline]
    pub(super) fn prefetch_neighbours(&self, timer: TimerRef<T>) {
        if let Some(held) = &self.held {
            held.wheel.prefetch_neighbours(timer.node());
        }
    }

    /// Whether an arm for `key` would change nothing that a queue knows, so that a timer that may be in any
    /// base stays in its own.
    pub(super) fn stays<K: TimerKind>(&self, timer: TimerRef<T, K>, key: K::Key) -> bool {
        self.held.as_ref().is_some_and(|held| held.stays(timer, key))
    }

    /// Takes the wheel's clock to `now`, as far as no bucket is due.
    #[inline(always)]
    pub(super) fn forward(&mut self, now: Nanos) {
        if let Some(held) = &mut self.held {
            held.forward(now);
        }
    }

    /// When the first of the exact timers is due that were not collected.
    pub(super) fn next_exact(&self) -> u64 {
        self.held.as_ref().map_or(NEVER, |held| held.exact.next_expiry().unwrap_or(NEVER))
    }

    /// When there is something to collect, in ns. Collected timers are not counted.
    #[inline]
    pub(super) fn next_expiry(&mut self) -> u64 {
        self.held.as_mut().map_or(NEVER, |held| held.next_expiry())
    }

    /// Whether anything was collected and may still be pending.
    #[inline]
    pub(super) fn has_collected(&self) -> bool {
        self.held.as_ref().is_some_and(|held| held.has_collected())
    }

    /// Collects what is due by `now`; returns when the first of that was due, else `NEVER`.
    pub(super) fn collect(&mut self, now: Nanos) -> u64 {
        self.held.as_mut().map_or(NEVER, |held| held.collect(now))
    }

    /// Takes out a timer that was collected.
    #[inline]
    pub(super) fn pop_collected(&mut self) -> Option<Due<T>> {
        self.held.as_mut()?.pop_collected()
    }

    /// The same if the next one is a detached timer of the wheel.
    #[inline]
    pub(super) fn pop_collected_detached(&mut self) -> Option<Due<T>> {
        self.held.as_mut()?.pop_collected_detached()
    }

    /// Takes any timer out, due or not, without moving the clock.
    pub(super) fn pop_pending(&mut self) -> Option<Due<T>> {
        self.held.as_mut()?.pop_pending()
    }

    /// Every timer that is in a queue, collected or not.
    pub(super) fn for_each_pending(&self, each: impl FnMut(Due<T>)) {
        if let Some(held) = &self.held {
            held.for_each_pending(each);
        }
    }

    /// Asserts W1 to W5 of the queues.
    pub(super) fn check(&self) {
        if let Some(held) = &self.held {
            held.check();
        }
    }
}

/// What is in the memory of its own. On cache lines of its own, too: its neighbour is another CPU's.
#[repr(align(128))]
struct HeldQueues<T> {
    wheel: IntrusiveWheel<Shared<T>>,
    exact: IntrusiveExactQueue<Shared<T>>,
    /// ExactKind timers that were collected.
    due: IntrusiveExactQueue<Shared<T>>,
    pub(super) length: TickLength,
}

// SAFETY: queues are behind the lock of their base. They hold addresses of timers, which are `Sync`, and hand
// out copies of payloads.
#[allow(unsafe_code, reason = "links of timers go to another thread with the lock of their base")]
unsafe impl<T: Send + Sync> Send for HeldQueues<T> {}

impl<T> HeldQueues<T> {
    fn new(length: TickLength, now: Nanos) -> Self {
        Self {
            wheel: IntrusiveWheel::new(length.floor(now)),
            exact: IntrusiveExactQueue::new(),
            due: IntrusiveExactQueue::new(),
            length,
        }
    }

    #[inline(always)]
    fn enqueue<K: TimerKind>(&mut self, timer: TimerRef<T, K>, key: K::Key) -> Linked {
        match K::due(timer, key) {
            Due::Tick(timer, when) => {
                let QueueArm { was_pending, is_first } = self.wheel.arm(timer.node(), when);
                // An arm that became the first left the wheel's next expiry fresh: this is a load.
                let due = if is_first { self.wheel_expiry() } else { NEVER };
                Linked { was_linked: was_pending, due }
            }
            Due::Exact(timer, expiry) => self.enqueue_exact(timer, expiry),
        }
    }

    fn enqueue_exact(&mut self, timer: ExactRef<T>, expiry: Expiry) -> Linked {
        let was_collected = self.dequeue_collected(timer);
        let QueueArm { was_pending, is_first } = self.exact.arm(timer.node(), expiry);
        let due = if is_first { self.exact.next_expiry().unwrap_or(NEVER) } else { NEVER };
        Linked { was_linked: was_pending || was_collected, due }
    }

    #[inline]
    fn dequeue<K: TimerKind>(&mut self, timer: TimerRef<T, K>) -> bool {
        match K::either(timer) {
            EitherRef::Tick(timer) => self.wheel.cancel(timer.node()),
            EitherRef::Exact(timer) => self.dequeue_collected(timer) || self.exact.cancel(timer.node()),
        }
    }

    fn dequeue_collected(&mut self, timer: ExactRef<T>) -> bool {
        let word = timer.shared().word.load();
        word.has(TimerWord::COLLECTED) && {
            timer.shared().word.store(word.without(TimerWord::COLLECTED));
            self.due.cancel(timer.node())
        }
    }

    fn stays<K: TimerKind>(&self, timer: TimerRef<T, K>, key: K::Key) -> bool {
        match K::due(timer, key) {
            Due::Tick(timer, when) => self.wheel.stays(timer.node(), when),
            Due::Exact(timer, expiry) => timer.linked() == Some(expiry),
        }
    }

    #[inline]
    fn wheel_expiry(&mut self) -> u64 {
        self.wheel.next_expiry().map_or(NEVER, |due| self.length.start(due).0)
    }

    #[inline(always)]
    fn forward(&mut self, now: Nanos) {
        // Most calls come in the tick that the clock shows already; no division says so. At the end of time
        // the product wraps, and the call is made for nothing.
        let next = self.wheel.clock().plus(1).0.wrapping_mul(self.length.nanos().0);
        if now.0 >= next {
            self.wheel.forward(self.length.floor(now));
        }
    }

    #[inline]
    fn next_expiry(&mut self) -> u64 {
        self.wheel_expiry().min(self.exact.next_expiry().unwrap_or(NEVER))
    }

    #[inline]
    fn has_collected(&self) -> bool {
        self.wheel.has_collected() || self.due.first().is_some()
    }

    fn collect(&mut self, now: Nanos) -> u64 {
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
            let word = &timer.shared().word;
            word.store(word.load().with(TimerWord::COLLECTED));
            first = first.min(expiry.hard);
        }
        first
    }

    #[inline]
    fn pop_collected(&mut self) -> Option<Due<T>> {
        if let Some(expiry) = Self::first_expiry(&self.due) {
            return Self::pop_exact(&mut self.due, expiry);
        }
        self.wheel.pop_collected().map(Self::handed_out)
    }

    #[inline]
    fn pop_collected_detached(&mut self) -> Option<Due<T>> {
        if self.due.first().is_some() {
            return None;
        }
        let is_detached = |node| TimerRef::<T>::from_node(node).shared().word.load().has(TimerWord::DETACHED);
        self.wheel.pop_collected_if(is_detached).map(Self::handed_out)
    }

    fn pop_pending(&mut self) -> Option<Due<T>> {
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

    fn for_each_pending(&self, mut each: impl FnMut(Due<T>)) {
        for queue in [&self.due, &self.exact] {
            queue.for_each_pending(|node| {
                let timer = ExactRef::from_node(node);
                if let Some(expiry) = timer.links().expiry() {
                    each(Due::Exact(timer, expiry));
                }
            });
        }
        self.wheel.for_each_pending(|node| each(Self::handed_out(node)));
    }

    fn check(&self) {
        self.wheel.check();
        self.exact.check();
        self.due.check();
    }
}

impl<T> fmt::Debug for BaseQueues<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("BaseQueues")
            .field("wheel", &self.held.as_ref().map(|held| &held.wheel))
            .field("exact", &self.held.as_ref().map(|held| &held.exact))
            .field("due", &self.held.as_ref().map(|held| &held.due))
            .finish_non_exhaustive()
    }
}
