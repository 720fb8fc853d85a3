//! Timers: memory that its owner keeps in place, and the references through which bases reach it.
//!
//! A timer's links are touched only by who holds the lock of the base that its [`Place`](super::place::Place)
//! names; its value and options are read by anybody and written by nobody. Both together make timers `Sync`.
//!
//! This is the file of `base/` with `unsafe` in it: making a reference to a timer, following it, and sending
//! links to another thread. What makes it sound is written once, at [`TimerRef::new`] for timers of a caller
//! and at [`TimerStore`](super::TimerStore) for timers of a machine. Absent: what a timer does.
#![allow(unsafe_code, reason = "a timer reached by address has the validity that its owner promised")]

use super::options::TimerOptions;
#[cfg(all(test, not(loom)))]
use super::place::BaseId;
use super::place::Place;
use super::queues::Queues;
use super::sync::SharedPlace;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::num::NonZeroUsize;
use core::ptr::NonNull;
use quietcore_wheel::{ExactNode, Node, NodeRef};

/// In the place of a number: the timer is its owner's, not a store's.
const NO_NUMBER: u32 = u32::MAX;

/// What lies beside the links.
pub(crate) struct Shared<T> {
    pub(super) place: SharedPlace,
    /// In the store of its machine.
    number: u32,
    pub(super) payload: T,
}

impl<T> Shared<T> {
    fn new(payload: T, options: TimerOptions, number: u32) -> Self {
        const { assert!(size_of::<T>() <= 16, "a payload is two words at most") };
        let place = SharedPlace::new(options.place());
        Self { place, number, payload }
    }

    #[inline]
    pub(super) fn number(&self) -> Option<u32> {
        (self.number != NO_NUMBER).then_some(self.number)
    }
}

/// A timer that waits for a tick. Its owner keeps it in place; a machine links it.
///
/// `T` is what whoever runs it needs: at most 16 bytes.
///
/// ```
/// use quietcore_core::{Timer, TimerOptions};
///
/// let timer = Box::pin(Timer::new(7_u32, TimerOptions::new()));
/// assert!(!timer.is_pending());
/// assert_eq!(timer.payload(), 7);
/// ```
#[repr(transparent)]
pub struct Timer<T> {
    node: Node<Shared<T>>,
}

/// A timer that waits for a nanosecond. Otherwise as [`Timer`].
///
/// ```
/// use quietcore_core::{ExactTimer, TimerOptions};
///
/// let timer = Box::pin(ExactTimer::new(7_u32, TimerOptions::new().pinned()));
/// assert!(timer.is_pinned());
/// ```
#[repr(transparent)]
pub struct ExactTimer<T> {
    node: ExactNode<Shared<T>>,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Timer<[usize; 2]>>() <= 56);

// SAFETY: of a timer one reaches without a lock its place, which is atomic, and its number and payload, which
// nobody writes; they may be read by many threads (`T: Sync`) and copied to any (`T: Send`). The links are
// reached by the holder of the lock of the base that `place` names, which no two threads are at a
// time, and which orders one holder's accesses before the next one's.
unsafe impl<T: Send + Sync> Sync for Timer<T> {}
// SAFETY: a timer that is moved is not pending, so its links name no other timer.
unsafe impl<T: Send> Send for Timer<T> {}
// SAFETY: as for `Timer`.
unsafe impl<T: Send + Sync> Sync for ExactTimer<T> {}
// SAFETY: as for `Timer`.
unsafe impl<T: Send> Send for ExactTimer<T> {}
// SAFETY: queues are behind the lock of their base. They hold addresses of timers, which are `Sync`, and hand
// out copies of payloads.
unsafe impl<T: Send + Sync> Send for Queues<T> {}

/// The parts that both kinds of timers have.
macro_rules! timer_methods {
    ($Timer:ident, $Node:ident, $Ref:ident, $make:expr) => {
        impl<T: Copy> $Timer<T> {
            /// An idle timer.
            ///
            /// Does not compile when `payload` has more than 16 bytes.
            ///
            /// ```
            #[doc = concat!("use quietcore_core::{", stringify!($Timer), ", TimerOptions};")]
            #[doc = concat!("let timer = ", stringify!($Timer), "::new(7, TimerOptions::new());")]
            /// assert_eq!(timer.payload(), 7);
            /// ```
            #[must_use]
            pub fn new(payload: T, options: TimerOptions) -> Self {
                Self::numbered(payload, options, NO_NUMBER)
            }

            pub(super) fn numbered(payload: T, options: TimerOptions, number: u32) -> Self {
                let make: fn(Shared<T>, TimerOptions) -> $Node<Shared<T>> = $make;
                Self { node: make(Shared::new(payload, options, number), options) }
            }

            /// What it was made with.
            ///
            /// ```
            #[doc = concat!("use quietcore_core::{", stringify!($Timer), ", TimerOptions};")]
            #[doc = concat!("let timer = ", stringify!($Timer), "::new('a', TimerOptions::new());")]
            /// assert_eq!(timer.payload(), 'a');
            /// ```
            #[must_use]
            pub const fn payload(&self) -> T {
                self.node.value.payload
            }

            /// Whether it is armed and neither cancelled nor handed out. Of a timer that other threads arm
            /// this says what was, not what is.
            ///
            /// ```
            #[doc = concat!("use quietcore_core::{", stringify!($Timer), ", TimerOptions};")]
            #[doc = concat!("assert!(!", stringify!($Timer), "::new((), TimerOptions::new()).is_pending());")]
            /// ```
            #[inline]
            #[must_use]
            pub fn is_pending(&self) -> bool {
                self.node.value.place.load_idle().has(Place::PENDING)
            }

            /// Whether it runs on the CPU that it is armed on only.
            ///
            /// ```
            #[doc = concat!("use quietcore_core::{", stringify!($Timer), ", TimerOptions};")]
            #[doc = concat!("let timer = ", stringify!($Timer), "::new((), TimerOptions::new().pinned());")]
            /// assert!(timer.is_pinned());
            /// ```
            #[inline]
            #[must_use]
            pub fn is_pinned(&self) -> bool {
                self.node.value.place.load().has(Place::PINNED)
            }

            /// Whether it wakes no CPU.
            ///
            /// ```
            #[doc = concat!("use quietcore_core::{", stringify!($Timer), ", TimerOptions};")]
            #[doc = concat!("let timer = ", stringify!($Timer), "::new((), TimerOptions::new());")]
            /// assert!(!timer.is_deferrable());
            /// ```
            #[inline]
            #[must_use]
            pub fn is_deferrable(&self) -> bool {
                self.node.value.place.load().has(Place::DEFERRABLE)
            }

            /// Whether a run of it is over when it is handed out.
            ///
            /// ```
            #[doc = concat!("use quietcore_core::{", stringify!($Timer), ", TimerOptions};")]
            #[doc = concat!("let timer = ", stringify!($Timer), "::new((), TimerOptions::new().detached());")]
            /// assert!(timer.is_detached());
            /// ```
            #[inline]
            #[must_use]
            pub fn is_detached(&self) -> bool {
                self.node.value.place.load().has(Place::DETACHED)
            }
        }

        /// Shows what may be read without a lock.
        impl<T: fmt::Debug> fmt::Debug for $Timer<T> {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                let shared = &self.node.value;
                out.debug_struct(stringify!($Timer))
                    .field("place", &shared.place)
                    .field("payload", &shared.payload)
                    .finish_non_exhaustive()
            }
        }

        impl<T> $Ref<T> {
            /// Where the timer is, with what the pointer may reach (its provenance) as it was passed to
            /// [`new`](Self::new): if the timer is the first field of a larger `#[repr(C)]` struct, and `new`
            /// got a pointer to that, so is this one. Following it is for who knows that the timer is still
            /// there. Of several references to one timer a machine hands out the one that it was armed by.
            ///
            /// ```
            #[doc = concat!("use quietcore_core::{", stringify!($Timer), ", ", stringify!($Ref), ", TimerOptions};")]
            #[doc = concat!("let timer = Box::pin(", stringify!($Timer), "::new(7, TimerOptions::new()));")]
            /// // SAFETY: the timer is pinned, and it is never armed.
            #[doc = concat!("let reference = unsafe { ", stringify!($Ref), "::new((&*timer).into()) };")]
            /// assert_eq!(reference.as_ptr(), (&*timer).into());
            /// ```
            #[inline]
            #[must_use]
            pub const fn as_ptr(self) -> NonNull<$Timer<T>> {
                self.0.as_ptr().cast()
            }

            #[inline]
            pub(super) fn node(self) -> NodeRef<$Node<Shared<T>>> {
                self.0
            }

            #[inline]
            pub(super) const fn from_node(node: NodeRef<$Node<Shared<T>>>) -> Self {
                Self(node)
            }

            /// For the holder of the lock of the base that the timer belongs to: its links.
            #[inline]
            pub(super) fn links(&self) -> &$Node<Shared<T>> {
                // SAFETY: as in `shared`. The links are cells, and whoever holds that lock is the only one to
                // reach them.
                unsafe { self.0.as_ptr().as_ref() }
            }

            /// Whether it runs on the CPU that it is armed on only.
            #[inline]
            pub(crate) fn is_pinned(self) -> bool {
                self.shared().place.load().has(Place::PINNED)
            }

            /// The base that it belongs to: where it is pending or runs, or was last; `None` before its first
            /// arm.
            #[cfg(all(test, not(loom)))]
            pub(crate) fn base(self) -> Option<BaseId> {
                self.shared().place.load().base()
            }

            /// Tells timers of either kind apart.
            #[inline]
            pub(super) fn address(self) -> NonZeroUsize {
                self.0.as_ptr().addr()
            }

            /// For the length of a call that got this reference.
            #[inline]
            pub(super) fn shared(&self) -> &Shared<T> {
                // SAFETY: whoever made the reference promised that the timer is valid and only shared during
                // each call that gets it. The field does not overlap the links.
                unsafe { &(*self.0.as_ptr().as_ptr()).value }
            }
        }

        // SAFETY: it is the address of a timer, which is `Sync`.
        unsafe impl<T: Send + Sync> Send for $Ref<T> {}
        // SAFETY: as above.
        unsafe impl<T: Send + Sync> Sync for $Ref<T> {}

        impl<T> Copy for $Ref<T> {}

        impl<T> Clone for $Ref<T> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<T> PartialEq for $Ref<T> {
            #[inline]
            fn eq(&self, other: &Self) -> bool {
                self.0 == other.0
            }
        }

        impl<T> Eq for $Ref<T> {}

        impl<T> fmt::Debug for $Ref<T> {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(out, "{}({:p})", stringify!($Ref), self.0.as_ptr())
            }
        }
    };
}

/// Names a [`Timer`] that stays where it is.
///
/// ```
/// use quietcore_core::{Timer, TimerOptions, TimerRef};
///
/// let timer = Box::pin(Timer::new(7_u32, TimerOptions::new()));
/// // SAFETY: the timer is pinned, and it is never armed.
/// let reference = unsafe { TimerRef::new((&*timer).into()) };
/// assert_eq!(reference, reference);
/// ```
pub struct TimerRef<T>(NodeRef<Node<Shared<T>>>);

/// Names an [`ExactTimer`] that stays where it is.
///
/// ```
/// use quietcore_core::{ExactRef, ExactTimer, TimerOptions};
///
/// let timer = Box::pin(ExactTimer::new(7_u32, TimerOptions::new()));
/// // SAFETY: the timer is pinned, and it is never armed.
/// let reference = unsafe { ExactRef::new((&*timer).into()) };
/// assert_eq!(reference, reference);
/// ```
pub struct ExactRef<T>(NodeRef<ExactNode<Shared<T>>>);

timer_methods!(Timer, Node, TimerRef, |shared, options| {
    Node::new(shared).with_precision(options.precision)
});
timer_methods!(ExactTimer, ExactNode, ExactRef, |shared, _options| ExactNode::new(shared));

impl<T> TimerRef<T> {
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
    /// What a machine hands out with an [`Expired`](crate::Expired) is such a copy: of a detached timer it
    /// may be too late to use it.
    ///
    /// The exception: a machine may be dropped while timers are pending. Such a timer must not be passed to
    /// any machine, only dropped.
    ///
    /// ```
    /// # use quietcore_core::{Timer, TimerOptions, TimerRef};
    /// let timer = Box::pin(Timer::new(7_u32, TimerOptions::new()));
    /// // SAFETY: the timer is pinned, and it is never armed.
    /// let _ = unsafe { TimerRef::new((&*timer).into()) };
    /// ```
    #[must_use]
    pub const unsafe fn new(timer: NonNull<Timer<T>>) -> Self {
        // SAFETY: the caller promises what `NodeRef::new` asks for: the queues that link the timer are those
        // of one machine, one after the other, and "one thread at a time" is the lock of the base in `place`.
        Self(unsafe { NodeRef::new(timer.cast()) })
    }
}

impl<T> TimerRef<T> {
    /// Whether it is armed and neither cancelled nor handed out.
    #[cfg(test)]
    pub(crate) fn is_pending(self) -> bool {
        self.shared().place.load_idle().has(Place::PENDING)
    }

    /// Whether it wakes no CPU.
    #[inline]
    pub(crate) fn is_deferrable(self) -> bool {
        self.shared().place.load().has(Place::DEFERRABLE)
    }
}

impl<T> ExactRef<T> {
    /// Names the timer at `timer`.
    ///
    /// # Safety
    /// As for [`TimerRef::new`].
    ///
    /// ```
    /// # use quietcore_core::{ExactRef, ExactTimer, TimerOptions};
    /// let timer = Box::pin(ExactTimer::new(7_u32, TimerOptions::new()));
    /// // SAFETY: the timer is pinned, and it is never armed.
    /// let _ = unsafe { ExactRef::new((&*timer).into()) };
    /// ```
    #[must_use]
    pub const unsafe fn new(timer: NonNull<ExactTimer<T>>) -> Self {
        // SAFETY: the caller promises what `NodeRef::new` asks for: the queues that link the timer are those
        // of one machine, one after the other, and "one thread at a time" is the lock of the base in `place`.
        Self(unsafe { NodeRef::new(timer.cast()) })
    }
}

/// Timers per allocation.
const CHUNK: usize = 256;

/// A timer of a store. With 16 bytes of payload it is a cache line.
#[derive(Debug)]
pub(super) struct Slot<N> {
    timer: N,
    /// Odd while the slot is taken.
    generation: u32,
    /// The free slot after this one.
    next: u32,
}

/// Memory for timers, in chunks that stay where they are until the arena is dropped.
pub(super) struct Arena<N> {
    /// Each points to `CHUNK` slots that this arena owns. No `Box`: a box that is moved claims to be the only
    /// way to its content, and queues link the timers in it.
    chunks: Vec<NonNull<Slot<N>>>,
    /// First of the free slots.
    free: u32,
    taken: usize,
}

// SAFETY: it owns its slots, as a `Vec` does.
unsafe impl<N: Send> Send for Arena<N> {}
// SAFETY: a shared arena gives shared access to its slots, as a `Vec` does.
unsafe impl<N: Sync> Sync for Arena<N> {}

impl<N> Arena<N> {
    pub(super) const fn new() -> Self {
        Self { chunks: Vec::new(), free: NO_NUMBER, taken: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.taken
    }

    /// One more than the highest number in use.
    pub(super) fn capacity(&self) -> u32 {
        (self.chunks.len() * CHUNK) as u32
    }

    fn slot(&self, number: u32) -> Option<NonNull<Slot<N>>> {
        let chunk = self.chunks.get(number as usize / CHUNK)?;
        // SAFETY: a chunk has `CHUNK` slots.
        Some(unsafe { chunk.add(number as usize % CHUNK) })
    }

    /// Even for a free slot.
    #[inline]
    pub(super) fn generation(&self, number: u32) -> Option<u32> {
        // SAFETY: the slot is ours, and written through `&mut self` only.
        self.slot(number).map(|slot| unsafe { (*slot.as_ptr()).generation })
    }

    /// The address of a taken slot's timer. Following it is for who keeps the arena.
    #[inline]
    pub(super) fn find(&self, number: u32, generation: u32) -> Option<NonNull<N>> {
        let slot = self.slot(number)?;
        // SAFETY: as in `generation`; the field is in the slot.
        let (present, timer) = unsafe { ((*slot.as_ptr()).generation, &raw mut (*slot.as_ptr()).timer) };
        (present == generation && generation % 2 == 1).then_some(NonNull::new(timer)).flatten()
    }

    /// Puts a timer into a free slot; returns its number and generation. `make` gets the number.
    pub(super) fn add(&mut self, make: impl Fn(u32) -> N) -> (u32, u32) {
        if self.free == NO_NUMBER {
            self.grow(&make);
        }
        let number = self.free;
        let slot = self.slot(number).expect("a free slot is one of ours");
        // SAFETY: the slot is ours, free, so no queue links its timer, and borrowed exclusively. Nobody
        // else's slot is touched.
        let slot = unsafe { &mut *slot.as_ptr() };
        self.free = slot.next;
        self.taken += 1;
        slot.timer = make(number);
        slot.generation = slot.generation.wrapping_add(1);
        (number, slot.generation)
    }

    /// Frees a slot, whose timer is in no queue; says whether it was taken in that generation.
    pub(super) fn remove(&mut self, number: u32, generation: u32) -> bool {
        if self.find(number, generation).is_none() {
            return false;
        }
        let Some(slot) = self.slot(number) else { return false };
        // SAFETY: the slot is ours and borrowed exclusively; these fields are not what a queue links.
        unsafe {
            (*slot.as_ptr()).generation = generation.wrapping_add(1);
            (*slot.as_ptr()).next = self.free;
        }
        self.free = number;
        self.taken -= 1;
        true
    }

    fn grow(&mut self, make: &impl Fn(u32) -> N) {
        let first = self.capacity();
        assert!(first < NO_NUMBER - CHUNK as u32, "a store has fewer than 2^32 timers");
        let slots = (first..first + CHUNK as u32).map(|number| Slot {
            timer: make(number),
            generation: 0,
            next: if number + 1 == first + CHUNK as u32 { NO_NUMBER } else { number + 1 },
        });
        let chunk: Box<[Slot<N>]> = slots.collect();
        self.chunks.extend(NonNull::new(Box::into_raw(chunk).cast()));
        self.free = first;
    }
}

impl<N> Drop for Arena<N> {
    fn drop(&mut self) {
        for chunk in &self.chunks {
            let slots = core::ptr::slice_from_raw_parts_mut(chunk.as_ptr(), CHUNK);
            // SAFETY: `grow` took it from a box of `CHUNK` slots, and nobody has freed it since. Queues that
            // link its timers are those of the machine that keeps this arena, and are not used again.
            drop(unsafe { Box::from_raw(slots) });
        }
    }
}

impl<N> fmt::Debug for Arena<N> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Arena").field("taken", &self.taken).finish_non_exhaustive()
    }
}

/// References to timers of a store.
///
/// Sound because of who calls it: `Bases` alone, which keeps the store beside its queues, gives these
/// references to these queues only, and shows no user any of them: what users hold are a [`TimerId`] or
/// [`ExactId`]. Slots stay valid as long as the store; a slot is written only while its timer is in no queue
/// and on no record.
impl<T> super::store::TimerStore<T> {
    #[inline]
    pub(super) fn timer(&self, id: super::TimerId) -> Option<TimerRef<T>> {
        let timer = self.timers.find(id.number, id.generation)?;
        // SAFETY: argued above.
        Some(unsafe { TimerRef::new(timer) })
    }

    #[inline]
    pub(super) fn exact(&self, id: super::ExactId) -> Option<ExactRef<T>> {
        let timer = self.exact.find(id.number, id.generation)?;
        // SAFETY: argued above.
        Some(unsafe { ExactRef::new(timer) })
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
