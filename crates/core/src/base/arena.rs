//! Memory for the timers of a store, in chunks that stay where they are until the arena is dropped.
//!
//! A slot is named by its number and by how often that number was given out. Invariants: a slot's timer is
//! written only while it is in no queue and on no record; a taken slot has an odd generation.
//!
//! `unsafe` here reaches slots through pointers: queues link the timers in them, so an exclusive reference to
//! a chunk would claim too much.
#![allow(unsafe_code, reason = "queues link the timers of a chunk, so it is reached by pointer")]

use super::timer::{NO_NUMBER, Timer, TimerKind, TimerRef};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ptr::NonNull;

/// Timers per allocation. Few under Miri, which is slow: the tests fill several.
const CHUNK: usize = if cfg!(miri) { 8 } else { 256 };

/// A timer of a store. With 16 bytes of payload it is a cache line.
pub(super) struct ArenaSlot<N> {
    timer: N,
    /// Odd while the slot is taken.
    generation: u32,
    /// The free slot after this one.
    next: u32,
}

/// The chunks, and which of their slots are free.
#[derive(Debug)]
pub struct Arena<N> {
    /// Each points to `CHUNK` slots that this arena owns. No `Box`: a box that is moved claims to be the only
    /// way to its content, and queues link the timers in it.
    chunks: Vec<NonNull<ArenaSlot<N>>>,
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

    #[cfg(all(test, not(loom)))]
    pub(super) fn len(&self) -> usize {
        self.taken
    }

    /// One more than the highest number in use.
    pub(super) fn capacity(&self) -> u32 {
        (self.chunks.len() * CHUNK) as u32
    }

    fn slot(&self, number: u32) -> Option<NonNull<ArenaSlot<N>>> {
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

    /// The address of a taken slot's timer. Only the keeper of the arena may follow it.
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
        // SAFETY: the slot is ours, free, so no queue links its timer, and borrowed exclusively. No
        // other slot is touched.
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
        let slots = (first..first + CHUNK as u32).map(|number| ArenaSlot {
            timer: make(number),
            generation: 0,
            next: if number + 1 == first + CHUNK as u32 { NO_NUMBER } else { number + 1 },
        });
        let chunk: Box<[ArenaSlot<N>]> = slots.collect();
        self.chunks.extend(NonNull::new(Box::into_raw(chunk).cast()));
        self.free = first;
    }
}

impl<T, K: TimerKind> Arena<Timer<T, K>> {
    /// A reference to a taken slot's timer.
    ///
    /// Sound because of its callers: `Bases` keeps the store, and with it this arena, beside its queues,
    /// gives these references to these queues only, and shows none to users, who hold a `TimerId`. Slots
    /// stay valid as long as the arena.
    #[inline]
    pub(super) fn reference(&self, number: u32, generation: u32) -> Option<TimerRef<T, K>> {
        let timer = self.find(number, generation)?;
        // SAFETY: argued above.
        Some(unsafe { TimerRef::new(timer) })
    }
}

impl<N> Drop for Arena<N> {
    fn drop(&mut self) {
        for chunk in &self.chunks {
            let slots = core::ptr::slice_from_raw_parts_mut(chunk.as_ptr(), CHUNK);
            // SAFETY: `grow` took it from a box of `CHUNK` slots, which nothing has freed since. BaseQueues
            // that link its timers are those of the machine that keeps this arena, and are not used again.
            drop(unsafe { Box::from_raw(slots) });
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
