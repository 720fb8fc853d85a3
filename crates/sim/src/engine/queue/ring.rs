//! Events of the near future in buckets by time, in no order within a bucket.
//!
//! Invariants: an entry lies in the bucket of its time, at `begin` or later and less than `SPAN` after it; a
//! bucket's bit is set exactly if anything is in it.

use super::timed_event::TimedEvent;

/// How much time a bucket covers, in nanoseconds, as a power of two; and how many buckets there are.
const WIDTH_SHIFT: u32 = 13;
const BUCKETS: usize = 4096;

/// How much time all of them cover.
const SPAN: u64 = (BUCKETS as u64) << WIDTH_SHIFT;

/// No slot.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Slot<E> {
    entry: TimedEvent<E>,
    /// The next in the same bucket, or the next that is free.
    next: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Ring<E> {
    /// The first moment that is in a bucket.
    begin: u64,
    /// Each the first slot of a list.
    heads: Box<[u32; BUCKETS]>,
    occupied: [u64; BUCKETS / 64],
    slots: Vec<Slot<E>>,
    free: u32,
    len: usize,
}

impl<E: Copy> Ring<E> {
    pub(super) fn new() -> Self {
        Self {
            begin: 0,
            heads: Box::new([NONE; BUCKETS]),
            occupied: [0; BUCKETS / 64],
            slots: Vec::new(),
            free: NONE,
            len: 0,
        }
    }

    #[inline]
    pub(super) const fn begin(&self) -> u64 {
        self.begin
    }

    #[inline]
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Whether it has a bucket for `at`, which is not before its beginning.
    #[inline]
    pub(super) const fn covers(&self, at: u64) -> bool {
        at - self.begin < SPAN
    }

    #[inline]
    pub(super) fn push(&mut self, entry: TimedEvent<E>) {
        let bucket = bucket(entry.at);
        let slot = Slot { entry, next: self.heads[bucket] };
        let place = self.free;
        if let Some(freed) = self.slots.get_mut(place as usize) {
            self.free = freed.next;
            *freed = slot;
            self.heads[bucket] = place;
        } else {
            self.heads[bucket] = self.slots.len() as u32;
            self.slots.push(slot);
        }
        self.occupied[bucket / 64] |= 1 << (bucket % 64);
        self.len += 1;
    }

    /// Hands `take` what is in the first bucket that has anything, and begins after it.
    #[inline]
    pub(super) fn empty_first(&mut self, mut take: impl FnMut(TimedEvent<E>)) {
        let Some(bucket) = self.first_bucket() else { return };
        let mut place = core::mem::replace(&mut self.heads[bucket], NONE);
        self.occupied[bucket / 64] &= !(1 << (bucket % 64));
        while let Some(slot) = self.slots.get_mut(place as usize) {
            self.begin = slot.entry.at;
            take(slot.entry);
            let next = core::mem::replace(&mut slot.next, self.free);
            self.free = core::mem::replace(&mut place, next);
            self.len -= 1;
        }
        self.begin = ((self.begin >> WIDTH_SHIFT) + 1).saturating_mul(1 << WIDTH_SHIFT);
    }

    /// Begins with the bucket of `at`, which is later. It is empty.
    pub(super) fn begin_at(&mut self, at: u64) {
        self.begin = at >> WIDTH_SHIFT << WIDTH_SHIFT;
    }

    #[inline]
    fn first_bucket(&self) -> Option<usize> {
        if self.len == 0 {
            return None;
        }
        let begin = bucket(self.begin);
        let words = self.occupied.len();
        let ahead = self.occupied[begin / 64] & (u64::MAX << (begin % 64));
        if ahead != 0 {
            return Some(begin / 64 * 64 + ahead.trailing_zeros() as usize);
        }
        // The word of the beginning is the last, too, for what is just before it in the ring.
        let mut later = (1..=words).map(|distance| (begin / 64 + distance) % words);
        let word = later.find(|&word| self.occupied[word] != 0)?;
        Some(word * 64 + self.occupied[word].trailing_zeros() as usize)
    }
}

#[inline]
const fn bucket(at: u64) -> usize {
    (at >> WIDTH_SHIFT) as usize % BUCKETS
}
