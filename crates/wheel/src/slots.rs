//! Nodes that are reached by index, in memory that the caller hands over; keys that cannot lie.
//!
//! A key is an index and a generation. A slot's generation goes up when its timer ends, so an old key
//! stops working, also when the slot is taken again. A slot whose generations are used up is not used
//! again: a stale key is told from a living one for ever, at the price of one slot per 2^32 timers.
//!
//! Invariants: `free` links exactly the slots below `used` that are idle and not used up, through
//! `next_free`. Slots from `used` on were never handed out, and
//! whatever they hold is from an earlier owner.

use crate::Nodes;
use core::fmt;
use core::marker::PhantomData;
use core::num::NonZeroU32;

/// The place of a slot in its storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Index(NonZeroU32);

impl Index {
    fn new(place: usize) -> Option<Self> {
        u32::try_from(place).ok().and_then(|place| NonZeroU32::new(place.wrapping_add(1))).map(Self)
    }

    #[inline]
    fn place(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// Names one armed timer of a [`Timers`](crate::Timers): copy it, compare it, store it anywhere.
///
/// It stops working when its timer is handed out or cancelled. A key means nothing to another
/// [`Timers`](crate::Timers), which may take it for one of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SlotKey {
    index: Index,
    generation: u32,
}

/// The key's timer was handed out or cancelled before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaleKey;

impl fmt::Display for StaleKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the timer of this key was handed out or cancelled before")
    }
}

impl core::error::Error for StaleKey {}

/// All slots are taken; gives the value back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Full<T>(
    /// What was to be armed.
    pub T,
);

impl<T> fmt::Debug for Full<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Full(..)")
    }
}

impl<T> fmt::Display for Full<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("every slot holds a timer; cancel one, or give more slots")
    }
}

impl<T> core::error::Error for Full<T> {}

/// Memory for one timer. `L` is what the queue keeps in it.
#[derive(Debug)]
pub struct Slot<T, L = crate::Links<Index>> {
    pub(crate) links: L,
    generation: u32,
    next_free: Option<Index>,
    value: Option<T>,
}

impl<T, L> AsRef<L> for Slot<T, L> {
    #[inline]
    fn as_ref(&self) -> &L {
        &self.links
    }
}

impl<T, L> Slot<T, L> {
    pub(crate) const fn with_links(links: L) -> Self {
        Self { links, generation: 0, next_free: None, value: None }
    }
}

/// Slots in a storage: an array, a slice, a `Vec`.
pub struct Slots<T, S, L = crate::Links<Index>> {
    storage: S,
    free: Option<Index>,
    used: usize,
    taken: usize,
    slots: PhantomData<fn() -> Slot<T, L>>,
}

impl<T, S: AsRef<[Slot<T, L>]>, L> Nodes for Slots<T, S, L> {
    type Node = Slot<T, L>;
    type Ref = Index;

    #[inline]
    fn get(&self, node: Index) -> &Slot<T, L> {
        &self.storage.as_ref()[node.place()]
    }
}

impl<T, S, L> fmt::Debug for Slots<T, S, L> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Slots")
            .field("taken", &self.taken)
            .field("used", &self.used)
            .finish_non_exhaustive()
    }
}

impl<T, S, L: Default> Slots<T, S, L>
where
    S: AsRef<[Slot<T, L>]> + AsMut<[Slot<T, L>]>,
{
    pub(crate) const fn new(storage: S) -> Self {
        Self { storage, free: None, used: 0, taken: 0, slots: PhantomData }
    }

    pub(crate) fn taken(&self) -> usize {
        self.taken
    }

    pub(crate) fn capacity(&self) -> usize {
        self.storage.as_ref().len()
    }

    /// Puts `value` into a free slot.
    #[inline]
    pub(crate) fn take(&mut self, value: T) -> Result<(SlotKey, Index), Full<T>> {
        let Some(index) = self.free.or_else(|| self.unused()) else { return Err(Full(value)) };
        let slot = &mut self.storage.as_mut()[index.place()];
        // What an earlier owner left is dropped last: its drop may panic.
        let _left = slot.value.replace(value);
        if self.free == Some(index) {
            self.free = slot.next_free.take();
        } else {
            self.used += 1;
            slot.links = L::default();
            // So that no key of an earlier owner is taken for ours.
            slot.generation = slot.generation.wrapping_add(1);
        }
        self.taken += 1;
        Ok((SlotKey { index, generation: slot.generation }, index))
    }

    fn unused(&self) -> Option<Index> {
        let slots = self.storage.as_ref();
        (self.used < slots.len()).then(|| Index::new(self.used)).flatten()
    }

    /// The slot of a living key.
    #[inline]
    pub(crate) fn find(&self, key: SlotKey) -> Result<Index, StaleKey> {
        let slot = self.storage.as_ref().get(key.index.place()).ok_or(StaleKey)?;
        let lives = slot.generation == key.generation && slot.value.is_some();
        if lives && key.index.place() < self.used { Ok(key.index) } else { Err(StaleKey) }
    }

    /// The key of a taken slot.
    pub(crate) fn key(&self, index: Index) -> SlotKey {
        SlotKey { index, generation: self.get(index).generation }
    }

    /// Ends the timer in an idle slot: its key is stale from now on.
    #[inline]
    pub(crate) fn release(&mut self, index: Index) -> Option<T> {
        let slot = &mut self.storage.as_mut()[index.place()];
        slot.generation = slot.generation.wrapping_add(1);
        if slot.generation != u32::MAX {
            slot.next_free = self.free;
            self.free = Some(index);
        }
        self.taken -= 1;
        slot.value.take()
    }

    pub(crate) fn value(&self, index: Index) -> Option<&T> {
        self.get(index).value.as_ref()
    }

    pub(crate) fn value_mut(&mut self, index: Index) -> Option<&mut T> {
        self.storage.as_mut()[index.place()].value.as_mut()
    }
}

impl<T, S: Extend<Slot<T, L>>, L> Slots<T, S, L> {
    pub(crate) fn extend(&mut self, slots: impl Iterator<Item = Slot<T, L>>) {
        self.storage.extend(slots);
    }
}
