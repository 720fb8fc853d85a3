//! Timers: memory that its owner keeps in place, the references through which bases reach it, and the two
//! kinds of them.
//!
//! A timer waits for ticks or for nanoseconds ([`TimerKind`]). What a base does with it is written once, for
//! either kind; the compiler makes two copies. Links are touched only under the lock of the base that the
//! timer's [`TimerWord`] names; value and options are read by any thread and written by none. Both together
//! make timers `Sync`.
//!
//! `unsafe` here makes a reference to a timer, follows it, and sends links to another thread. What makes it
//! sound is written at [`TimerRef::new`].
#![allow(unsafe_code, reason = "a timer reached by address has the validity that its owner promised")]

use super::options::TimerOptions;
use super::sync::SharedTimerWord;
use super::tick_length::TickLength;
#[cfg(all(test, not(loom)))]
use super::word::BaseId;
use super::word::TimerWord;
use crate::Nanos;
use core::fmt;
use core::num::NonZeroUsize;
use core::ptr::NonNull;
use quietcore_wheel::{ExactNode, Expiry, Node, NodeRef, Tick};

/// Instead of a number: the timer is its owner's, not a store's.
pub(super) const NO_NUMBER: u32 = u32::MAX;

/// What lies beside the links.
pub(crate) struct Shared<T> {
    pub(super) word: SharedTimerWord,
    /// In the store of its machine.
    number: u32,
    pub(super) payload: T,
}

impl<T> Shared<T> {
    fn new(payload: T, options: TimerOptions, number: u32) -> Self {
        const { assert!(size_of::<T>() <= 16, "a payload is two words at most") };
        let word = SharedTimerWord::new(options.word());
        Self { word, number, payload }
    }

    #[inline]
    pub(super) fn number(&self) -> Option<u32> {
        (self.number != NO_NUMBER).then_some(self.number)
    }
}

/// What a timer waits for. Sealed: [`TickKind`] and [`ExactKind`] are all there are.
pub trait TimerKind: sealed::KindOps {
    /// What a timer of this kind is armed for.
    type When: Copy + fmt::Debug;

    /// Whether it waits for a nanosecond.
    const IS_EXACT: bool;

    /// What to arm a timer for that must not run before `moment`. An exact one may run up to `slack` later; a
    /// timer of ticks has no use for it.
    fn not_before(moment: Nanos, slack: Nanos) -> Self::When;

    #[doc(hidden)]
    fn moment(when: Self::When) -> Moment;

    #[doc(hidden)]
    fn key(when: Self::When, length: TickLength) -> Self::Key;
}

/// The kind of a timer that waits for a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TickKind {}

/// The kind of a timer that waits for a nanosecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExactKind {}

impl TimerKind for TickKind {
    type When = Nanos;

    const IS_EXACT: bool = false;

    #[inline]
    fn not_before(moment: Nanos, _slack: Nanos) -> Nanos {
        Nanos(moment.0.saturating_sub(1))
    }

    #[inline]
    fn moment(when: Nanos) -> Moment {
        Moment::Tick(when)
    }

    #[inline]
    fn key(when: Nanos, length: TickLength) -> Tick {
        length.floor(when)
    }
}

impl TimerKind for ExactKind {
    type When = Expiry;

    const IS_EXACT: bool = true;

    #[inline]
    fn not_before(moment: Nanos, slack: Nanos) -> Expiry {
        Expiry::with_slack(moment.0, slack.0)
    }

    #[inline]
    fn moment(when: Expiry) -> Moment {
        Moment::Exact(when)
    }

    #[inline]
    fn key(when: Expiry, _length: TickLength) -> Expiry {
        when
    }
}

/// What a timer is armed for, whichever kind it is.
#[derive(Clone, Copy, Debug)]
pub enum Moment {
    Tick(Nanos),
    Exact(Expiry),
}

/// A timer of either kind.
#[derive(Debug)]
pub enum EitherRef<T> {
    Tick(TimerRef<T>),
    Exact(ExactRef<T>),
}

/// A timer of either kind, and what its queue sorts it by.
pub enum Due<T> {
    Tick(TimerRef<T>, Tick),
    Exact(ExactRef<T>, Expiry),
}

/// What only the bases know of a kind.
mod sealed {
    use super::{
        Due, EitherRef, ExactKind, ExactNode, Expiry, Node, Tick, TickKind, TimerKind, TimerOptions, TimerRef,
    };
    use core::fmt::Debug;
    use core::hash::Hash;

    pub trait KindOps: Copy + Debug + Ord + Hash + 'static {
        /// The links, with a value beside them.
        type Node<V>;
        /// What its queue sorts by.
        type Key: Copy;

        fn node<V>(value: V, options: TimerOptions) -> Self::Node<V>;
        fn value<V>(node: &Self::Node<V>) -> &V;
        /// What a timer in a queue is armed for.
        fn linked<V>(node: &Self::Node<V>) -> Option<Self::Key>;
        fn is_before(one: Self::Key, other: Self::Key) -> bool;
        fn either<T>(timer: TimerRef<T, Self>) -> EitherRef<T>
        where
            Self: TimerKind;
        fn due<T>(timer: TimerRef<T, Self>, key: Self::Key) -> Due<T>
        where
            Self: TimerKind;
        /// The key of a timer of this kind.
        fn key_of<T>(due: &Due<T>) -> Option<Self::Key>;
    }

    impl KindOps for TickKind {
        type Node<V> = Node<V>;
        type Key = Tick;

        fn node<V>(value: V, options: TimerOptions) -> Node<V> {
            Node::new(value).with_precision(options.precision)
        }

        #[inline]
        fn value<V>(node: &Node<V>) -> &V {
            &node.value
        }

        #[inline]
        fn linked<V>(node: &Node<V>) -> Option<Tick> {
            node.expires()
        }

        fn is_before(one: Tick, other: Tick) -> bool {
            one.is_before(other)
        }

        #[inline]
        fn either<T>(timer: TimerRef<T>) -> EitherRef<T> {
            EitherRef::Tick(timer)
        }

        #[inline]
        fn due<T>(timer: TimerRef<T>, key: Tick) -> Due<T> {
            Due::Tick(timer, key)
        }

        fn key_of<T>(due: &Due<T>) -> Option<Tick> {
            if let Due::Tick(_, key) = due { Some(*key) } else { None }
        }
    }

    impl KindOps for ExactKind {
        type Node<V> = ExactNode<V>;
        type Key = Expiry;

        fn node<V>(value: V, _options: TimerOptions) -> ExactNode<V> {
            ExactNode::new(value)
        }

        #[inline]
        fn value<V>(node: &ExactNode<V>) -> &V {
            &node.value
        }

        #[inline]
        fn linked<V>(node: &ExactNode<V>) -> Option<Expiry> {
            node.expiry()
        }

        fn is_before(one: Expiry, other: Expiry) -> bool {
            one.soft < other.soft
        }

        #[inline]
        fn either<T>(timer: TimerRef<T, Self>) -> EitherRef<T> {
            EitherRef::Exact(timer)
        }

        #[inline]
        fn due<T>(timer: TimerRef<T, Self>, key: Expiry) -> Due<T> {
            Due::Exact(timer, key)
        }

        fn key_of<T>(due: &Due<T>) -> Option<Expiry> {
            if let Due::Exact(_, key) = due { Some(*key) } else { None }
        }
    }
}

/// A timer of the kind `K`. Its owner keeps it in place; a machine links it.
///
/// `T` is what its runner needs: at most 16 bytes.
#[repr(transparent)]
pub struct Timer<T, K: TimerKind = TickKind> {
    node: K::Node<Shared<T>>,
}

/// A timer that waits for a nanosecond.
pub type ExactTimer<T> = Timer<T, ExactKind>;

#[cfg(not(loom))]
const _: () = assert!(size_of::<Timer<[usize; 2]>>() <= 56);

// SAFETY: of a timer one reaches without a lock its word, which is atomic, and its number and payload, which
// no thread writes; they may be read by many threads (`T: Sync`) and copied to any (`T: Send`). The links are
// reached by the holder of the lock of the base that its word names; no two threads hold it at a time, and it
// orders one holder's accesses before the next one's.
unsafe impl<T: Send + Sync, K: TimerKind> Sync for Timer<T, K> {}
// SAFETY: a timer that is moved is not pending, so its links name no other timer.
unsafe impl<T: Send, K: TimerKind> Send for Timer<T, K> {}

impl<T: Copy> Timer<T> {
    /// An idle timer of ticks. Does not compile when `payload` has more than 16 bytes.
    #[must_use]
    pub fn new(payload: T, options: TimerOptions) -> Self {
        Self::of_kind(payload, options)
    }
}

impl<T: Copy, K: TimerKind> Timer<T, K> {
    /// An idle timer of the kind that the type says. Does not compile when `payload` has more than 16 bytes.
    #[must_use]
    pub fn of_kind(payload: T, options: TimerOptions) -> Self {
        Self::numbered(payload, options, NO_NUMBER)
    }

    pub(super) fn numbered(payload: T, options: TimerOptions, number: u32) -> Self {
        Self { node: K::node(Shared::new(payload, options, number), options) }
    }

    #[inline]
    fn word(&self) -> TimerWord {
        K::value(&self.node).word.load()
    }

    /// What it was made with.
    #[inline]
    #[must_use]
    pub fn payload(&self) -> T {
        K::value(&self.node).payload
    }

    /// Whether it is armed and neither cancelled nor handed out. Of a timer that other threads arm this says
    /// what was, not what is.
    #[inline]
    #[must_use]
    pub fn is_pending(&self) -> bool {
        K::value(&self.node).word.load_idle().has(TimerWord::PENDING)
    }

    /// Whether it runs only on the CPU that it is armed on.
    #[inline]
    #[must_use]
    pub fn is_pinned(&self) -> bool {
        self.word().has(TimerWord::PINNED)
    }

    /// Whether it wakes no CPU.
    #[inline]
    #[must_use]
    pub fn is_deferrable(&self) -> bool {
        self.word().has(TimerWord::DEFERRABLE)
    }

    /// Whether a run of it is over when it is handed out.
    #[inline]
    #[must_use]
    pub fn is_detached(&self) -> bool {
        self.word().has(TimerWord::DETACHED)
    }
}

/// Shows what may be read without a lock.
impl<T: fmt::Debug, K: TimerKind> fmt::Debug for Timer<T, K> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shared = K::value(&self.node);
        out.debug_struct("Timer")
            .field("word", &shared.word)
            .field("payload", &shared.payload)
            .finish_non_exhaustive()
    }
}

/// Names a [`Timer`] that stays where it is.
pub struct TimerRef<T, K: TimerKind = TickKind>(NodeRef<K::Node<Shared<T>>>);

/// Names an [`ExactTimer`] that stays where it is.
pub type ExactRef<T> = TimerRef<T, ExactKind>;

impl<T, K: TimerKind> TimerRef<T, K> {
    /// Names the timer at `timer`.
    ///
    /// # Safety
    /// From its first arm until it is idle again, and during each call that gets this reference or a copy of
    /// it. Idle is a timer that was cancelled; or was handed out, and, unless it is
    /// [detached](TimerOptions::detached), the machine was told that it has finished. A detached one is idle
    /// from the moment at which [`Timer::is_pending`] says no.
    ///
    /// - the timer stays valid, at its address, and is only accessed through shared references;
    /// - every reference to it, however made, goes to one machine alone.
    ///
    /// What a machine hands out with an [`ExpiredTimer`](crate::ExpiredTimer) is such a copy: of a detached
    /// timer it may be too late to use it.
    ///
    /// The exception: a machine may be dropped while timers are pending. Such a timer must not be passed to
    /// any machine, only dropped.
    #[inline]
    #[must_use]
    pub const unsafe fn new(timer: NonNull<Timer<T, K>>) -> Self {
        // SAFETY: the caller promises what `NodeRef::new` asks for: the queues that link the timer are those
        // of one machine, one after the other, and "one thread at a time" is the lock of the base that its
        // word names.
        Self(unsafe { NodeRef::new(timer.cast()) })
    }

    /// What to arm it for: [`TimerKind::not_before`].
    #[inline]
    pub fn not_before(self, moment: Nanos, slack: Nanos) -> K::When {
        K::not_before(moment, slack)
    }

    /// Where the timer is, with what the pointer may reach (its provenance) as it was passed to
    /// [`new`](Self::new): if the timer is the first field of a larger `#[repr(C)]` struct, and `new` got a
    /// pointer to that, so is this one. Only a caller that knows that the timer is still there may follow it.
    /// Of several references to one timer a machine hands out the one that it was armed by.
    #[inline]
    #[must_use]
    pub const fn as_ptr(self) -> NonNull<Timer<T, K>> {
        self.0.as_ptr().cast()
    }

    #[inline]
    pub(super) fn node(self) -> NodeRef<K::Node<Shared<T>>> {
        self.0
    }

    #[inline]
    pub(super) const fn from_node(node: NodeRef<K::Node<Shared<T>>>) -> Self {
        Self(node)
    }

    /// For the holder of the lock of the base that the timer belongs to: its links.
    #[inline]
    pub(super) fn links(&self) -> &K::Node<Shared<T>> {
        // SAFETY: the maker of the reference promised that the timer is valid and only shared during each
        // call that gets it. The links are cells, and only the holder of that lock reaches them.
        unsafe { self.0.as_ptr().as_ref() }
    }

    /// What a timer in a queue of its base is armed for; under the lock of that base.
    #[inline]
    pub(super) fn linked(&self) -> Option<K::Key> {
        K::linked(self.links())
    }

    /// For the length of a call that got this reference.
    #[inline]
    pub(super) fn shared(&self) -> &Shared<T> {
        // SAFETY: as in `links`: this claims nothing about the links, which are cells.
        K::value(unsafe { self.0.as_ptr().as_ref() })
    }

    /// Tells timers of either kind apart.
    #[inline]
    pub(super) fn address(self) -> NonZeroUsize {
        self.0.as_ptr().addr()
    }

    /// Whether it runs only on the CPU that it is armed on.
    #[inline]
    pub(crate) fn is_pinned(self) -> bool {
        self.shared().word.load().has(TimerWord::PINNED)
    }

    /// Whether it wakes no CPU.
    #[inline]
    pub(crate) fn is_deferrable(self) -> bool {
        self.shared().word.load().has(TimerWord::DEFERRABLE)
    }

    /// Whether it is armed and neither cancelled nor handed out.
    #[cfg(test)]
    pub(crate) fn is_pending(self) -> bool {
        self.shared().word.load_idle().has(TimerWord::PENDING)
    }

    /// The base that it belongs to: where it is pending or runs, or was last; `None` before its first arm.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn base(self) -> Option<BaseId> {
        self.shared().word.load().base()
    }
}

// SAFETY: it is the address of a timer, which is `Sync`.
unsafe impl<T: Send + Sync, K: TimerKind> Send for TimerRef<T, K> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync, K: TimerKind> Sync for TimerRef<T, K> {}

impl<T, K: TimerKind> Copy for TimerRef<T, K> {}

impl<T, K: TimerKind> Clone for TimerRef<T, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, K: TimerKind> PartialEq for TimerRef<T, K> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<T, K: TimerKind> Eq for TimerRef<T, K> {}

impl<T, K: TimerKind> fmt::Debug for TimerRef<T, K> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "TimerRef({:p})", self.0.as_ptr())
    }
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

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
