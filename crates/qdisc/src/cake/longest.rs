//! Which queue has the most bytes, of all tins: a heap that is made when there is first no room, and kept
//! for as long as that is not too long ago.
//!
//! Invariant: while it is kept, no queue of the heap has more bytes than the one above it.

use alloc::vec::Vec;

/// After so many packets that left without one being dropped for want of room, the heap is given up.
const KEPT: u32 = 65_535;

/// The heap: queues by number.
#[derive(Debug, Default)]
pub(super) struct LongestQueues {
    heap: Vec<u32>,
    /// Where each queue is in it.
    places: Vec<u32>,
    kept_for: u32,
}

impl LongestQueues {
    pub(super) const fn is_kept(&self) -> bool {
        self.kept_for > 0
    }

    /// Gives it up: numbers of queues mean something else.
    pub(super) const fn forget(&mut self) {
        self.kept_for = 0;
    }

    /// A packet has left.
    pub(super) const fn packet_left(&mut self) {
        self.kept_for = self.kept_for.saturating_sub(1);
    }

    /// The longest of `count` queues; `bytes` says what each has. Costs a look at all of them if the heap is
    /// not kept.
    pub(super) fn first(&mut self, count: usize, bytes: impl Fn(u32) -> u64) -> Option<u32> {
        if !self.is_kept() || self.heap.len() != count {
            self.heap.clear();
            self.heap.extend(0..count as u32);
            self.places.clear();
            self.places.extend(0..count as u32);
            for at in (0..count / 2).rev() {
                self.sink(at, &bytes);
            }
        }
        self.kept_for = KEPT;
        self.heap.first().copied()
    }

    /// A queue has more bytes than before.
    pub(super) fn grown(&mut self, queue: u32, bytes: impl Fn(u32) -> u64) {
        if !self.is_kept() {
            return;
        }
        let mut at = self.places[queue as usize] as usize;
        while at > 0 && bytes(self.heap[at]) > bytes(self.heap[(at - 1) / 2]) {
            self.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
    }

    /// A queue has fewer.
    pub(super) fn shrunk(&mut self, queue: u32, bytes: impl Fn(u32) -> u64) {
        if self.is_kept() {
            self.sink(self.places[queue as usize] as usize, &bytes);
        }
    }

    fn sink(&mut self, mut at: usize, bytes: &impl Fn(u32) -> u64) {
        loop {
            let mut most = at;
            for below in [2 * at + 1, 2 * at + 2] {
                if self.heap.get(below).is_some_and(|queue| bytes(*queue) > bytes(self.heap[most])) {
                    most = below;
                }
            }
            if most == at {
                return;
            }
            self.swap(at, most);
            at = most;
        }
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.heap.swap(one, other);
        self.places[self.heap[one] as usize] = one as u32;
        self.places[self.heap[other] as usize] = other as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::{KEPT, LongestQueues};

    /// Goal: it always knows the longest. Method: lengths that rise and fall by a fixed sequence, beside the
    /// maximum.
    #[test]
    fn it_knows_the_longest() {
        let (mut longest, mut bytes) = (LongestQueues::default(), [0_u64; 100]);
        let mut seed = 7_u64;
        for step in 0..5_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (queue, now) = ((seed >> 33) as usize % 100, seed >> 54);
            let before = core::mem::replace(&mut bytes[queue], now);
            if now > before {
                longest.grown(queue as u32, |queue| bytes[queue as usize]);
            } else {
                longest.shrunk(queue as u32, |queue| bytes[queue as usize]);
            }
            if step % 7 == 3 {
                let first = longest.first(100, |queue| bytes[queue as usize]).expect("there are some");
                assert_eq!(bytes[first as usize], *bytes.iter().max().expect("some"));
            }
            longest.packet_left();
        }
    }

    /// Goal: it is given up after a while. Method: as many packets.
    #[test]
    fn it_is_given_up() {
        let mut longest = LongestQueues::default();
        assert!(!longest.is_kept());
        assert_eq!(longest.first(1, |_| 0), Some(0));
        (1..KEPT).for_each(|_| longest.packet_left());
        assert!(longest.is_kept());
        longest.packet_left();
        assert!(!longest.is_kept());
    }
}
