//! What leaves before something that came earlier: a calendar of days that are as long as suits.
//!
//! A day has a list of packets in order. Where its list is, is found by its number modulo their count, so a
//! calendar shows as many days as it has lists, from the one of the packet that left last. Days are made as
//! long as it takes for most packets to be within what is shown, and so many that few packets share one:
//! putting a packet in and taking the first one out takes a few steps, however many there are. What is not
//! shown, and what would have to pass many others of its day, is in a heap, so that no choice of moments
//! makes it slower than a heap is.
//!
//! Invariants (`check` in the tests): a list is in order, and its bit is set exactly if it has a packet; all
//! packets of a list are of one day, and that is shown; `first` is the first of all. How long days are
//! decides nothing but the time it takes. Once there were as many packets nothing is allocated.
//!
//! Source: R. Brown, "Calendar queues: a fast O(1) priority queue implementation for the simulation event set
//! problem" (CACM 31, 1988); the heap and the bits are not in it.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;
use quietcore_core::Nanos;

/// When, and the how many-th.
pub(super) type DueKey = (Nanos, u64);

/// No packet.
const NONE: u32 = u32::MAX;
/// Lists: at least and at most.
const LISTS: (usize, usize) = (256, 1 << 16);
/// So many lists for each packet.
const LISTS_EACH: usize = 4;
/// A packet passes so many others of its day at most.
const PASSED_MAX: u32 = 8;
/// How long days are is looked at after so many packets at least.
const LOOK_AFTER: u64 = 512;

#[derive(Debug)]
struct Kept<P> {
    key: DueKey,
    /// The next one of its list, or of those that are free.
    next: u32,
    packet: Option<P>,
}

/// The packets of a day, by their places; both [`NONE`] of an empty one.
#[derive(Clone, Copy, Debug)]
struct DayList {
    first: u32,
    last: u32,
}

const EMPTY: DayList = DayList { first: NONE, last: NONE };

/// The first of all.
#[derive(Clone, Copy, Debug)]
struct Earliest {
    key: DueKey,
    place: u32,
    /// None if it is in the heap.
    list: Option<usize>,
}

#[derive(Debug)]
pub(super) struct Calendar<P> {
    /// All packets, and memory that is free.
    kept: Vec<Kept<P>>,
    free: u32,
    len: usize,
    first: Option<Earliest>,
    /// Their number is a power of two, at least [`LISTS`]; none before there was a packet.
    lists: Vec<DayList>,
    /// A bit for each list, and for each word of bits.
    bits: [Vec<u64>; 2],
    /// The first day that is shown.
    day: u64,
    /// What has passed: nothing is likely to come for before it.
    passed: Nanos,
    /// A day has 2^this nanoseconds.
    day_bits: u32,
    /// What is in no list.
    heap: BinaryHeap<Reverse<(DueKey, u32)>>,
    /// Packets since days were last looked at, and after how many they are again; how far from the first day
    /// all of them were.
    looked: u64,
    look_after: u64,
    distance: u64,
}

impl<P> Calendar<P> {
    pub(super) const fn new() -> Self {
        Self {
            kept: Vec::new(),
            free: NONE,
            len: 0,
            first: None,
            lists: Vec::new(),
            bits: [Vec::new(), Vec::new()],
            day: 0,
            passed: Nanos(0),
            day_bits: 12,
            heap: BinaryHeap::new(),
            looked: 0,
            look_after: 0,
            distance: 0,
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// The key of the first one.
    #[inline]
    pub(super) fn first(&self) -> Option<DueKey> {
        self.first.map(|first| first.key)
    }

    pub(super) fn clear(&mut self) {
        self.kept.clear();
        (self.free, self.len, self.first) = (NONE, 0, None);
        self.empty_lists();
    }

    fn empty_lists(&mut self) {
        self.lists.fill(EMPTY);
        self.bits.iter_mut().for_each(|bits| bits.fill(0));
        self.heap.clear();
    }

    /// It is `now`: what comes is likely to leave later.
    pub(super) fn pass(&mut self, now: Nanos) {
        self.passed = now;
        let until = self.first.map_or(now, |first| now.min(first.key.0));
        self.day = self.day.max(until.0 >> self.day_bits);
    }

    #[inline]
    pub(super) fn push(&mut self, key: DueKey, packet: P) {
        self.look(key);
        let place = self.keep(key, packet);
        let list = self.enter(key, place);
        self.len += 1;
        if self.first.is_none_or(|first| key < first.key) {
            self.first = Some(Earliest { key, place, list });
        }
    }

    /// Where the packet is from now on.
    #[inline]
    fn keep(&mut self, key: DueKey, packet: P) -> u32 {
        let place = self.free;
        match self.kept.get_mut(place as usize) {
            Some(free) => {
                self.free = free.next;
                (free.key, free.next, free.packet) = (key, NONE, Some(packet));
                place
            }
            None => {
                self.kept.push(Kept { key, next: NONE, packet: Some(packet) });
                // More than 2^32 packets do not fit into memory.
                (self.kept.len() - 1) as u32
            }
        }
    }

    /// Puts a packet that is kept into its list, or into the heap: then none is given.
    fn enter(&mut self, key: DueKey, place: u32) -> Option<usize> {
        let day = key.0.0 >> self.day_bits;
        let list = day as usize & (self.lists.len() - 1);
        let is_shown = day.checked_sub(self.day).is_some_and(|ahead| ahead < self.lists.len() as u64);
        if !is_shown || !self.link(list, key, place) {
            self.heap.push(Reverse((key, place)));
            return None;
        }
        Some(list)
    }

    /// Puts it into a list, if it does not pass too many there.
    fn link(&mut self, list: usize, key: DueKey, place: u32) -> bool {
        let DayList { first, last } = self.lists[list];
        if first == NONE {
            self.lists[list] = DayList { first: place, last: place };
            self.bits[0][list / 64] |= 1 << (list % 64);
            self.bits[1][list / 64 / 64] |= 1 << (list / 64 % 64);
            return true;
        }
        if self.kept[last as usize].key < key {
            self.kept[last as usize].next = place;
            self.lists[list].last = place;
            return true;
        }
        if key < self.kept[first as usize].key {
            self.kept[place as usize].next = first;
            self.lists[list].first = place;
            return true;
        }
        let mut before = first;
        for _ in 0..PASSED_MAX {
            let next = self.kept[before as usize].next;
            if key < self.kept[next as usize].key {
                self.kept[before as usize].next = place;
                self.kept[place as usize].next = next;
                return true;
            }
            before = next;
        }
        false
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<P> {
        let Earliest { key, place, list } = self.first?;
        match list {
            Some(list) => self.unlink(list),
            None => _ = self.heap.pop(),
        }
        let kept = &mut self.kept[place as usize];
        let packet = kept.packet.take();
        kept.next = core::mem::replace(&mut self.free, place);
        self.len -= 1;
        self.day = self.day.max(key.0.0 >> self.day_bits);
        self.first = self.earliest();
        packet
    }

    /// Takes the first one out of a list.
    fn unlink(&mut self, list: usize) {
        let next = self.kept[self.lists[list].first as usize].next;
        if next != NONE {
            self.lists[list].first = next;
            return;
        }
        self.lists[list] = EMPTY;
        let word = &mut self.bits[0][list / 64];
        *word &= !(1 << (list % 64));
        if *word == 0 {
            self.bits[1][list / 64 / 64] &= !(1 << (list / 64 % 64));
        }
    }

    /// The first of the lists, or of the heap.
    fn earliest(&self) -> Option<Earliest> {
        let begin = self.day as usize & (self.lists.len() - 1);
        let listed = self.list_from(begin).or_else(|| self.list_from(0)).map(|list| {
            let place = self.lists[list].first;
            Earliest { key: self.kept[place as usize].key, place, list: Some(list) }
        });
        match (listed, self.heap.peek()) {
            (Some(listed), Some(Reverse((key, _)))) if listed.key < *key => Some(listed),
            (_, Some(&Reverse((key, place)))) => Some(Earliest { key, place, list: None }),
            (listed, None) => listed,
        }
    }

    /// The first list, from `list` on, that is not empty.
    fn list_from(&self, list: usize) -> Option<usize> {
        let [words, sums] = &self.bits;
        let word = list / 64;
        let here = words.get(word)? >> (list % 64);
        if here != 0 {
            return Some(list + here.trailing_zeros() as usize);
        }
        let mut sum = (word + 1) / 64;
        let mut ahead = sums.get(sum)? & (u64::MAX << ((word + 1) % 64));
        while ahead == 0 {
            sum += 1;
            ahead = *sums.get(sum)?;
        }
        let word = sum * 64 + ahead.trailing_zeros() as usize;
        Some(word * 64 + words[word].trailing_zeros() as usize)
    }

    /// A packet comes: from time to time days are made longer or shorter, if that suits what has come.
    fn look(&mut self, key: DueKey) {
        let first = Nanos(self.day << self.day_bits);
        self.looked += 1;
        self.distance = self.distance.saturating_add(key.0.since(first).0);
        if self.looked >= self.look_after {
            self.suit();
        }
    }

    /// Has packets of the mean distance well within what is shown.
    #[cold]
    fn suit(&mut self) {
        let mean = self.distance / self.looked;
        (self.looked, self.distance) = (0, 0);
        self.look_after = LOOK_AFTER.max(2 * self.len as u64);
        let wanted = (LISTS_EACH * self.len).next_power_of_two().clamp(LISTS.0, LISTS.1);
        let count = wanted.max(self.lists.len());
        let share = mean.saturating_mul(2) / count as u64;
        let day_bits = u64::BITS - share.leading_zeros();
        // Half as long as wanted is well, too: no going back and forth.
        let is_well = day_bits == self.day_bits || day_bits + 1 == self.day_bits;
        if is_well && count == self.lists.len() {
            return;
        }
        let begin = self.first.map_or(self.passed, |first| self.passed.min(first.key.0)).0;
        self.lists.resize(count, EMPTY);
        self.bits[0].resize(count / 64, 0);
        self.bits[1].resize(count.div_ceil(64 * 64), 0);
        self.empty_lists();
        self.day_bits = if is_well { self.day_bits } else { day_bits };
        self.day = begin >> self.day_bits;
        for place in 0..self.kept.len() as u32 {
            let kept = &mut self.kept[place as usize];
            if kept.packet.is_some() {
                kept.next = NONE;
                let key = kept.key;
                let _ = self.enter(key, place);
            }
        }
        self.first = self.earliest();
    }
}

#[cfg(test)]
mod tests {
    use super::{Calendar, DueKey, EMPTY, NONE};
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;
    use quietcore_core::Nanos;

    /// All that the file says.
    fn check(calendar: &Calendar<u64>, model: &BTreeMap<DueKey, u64>) {
        assert_eq!(calendar.len(), model.len());
        assert_eq!(calendar.first(), model.keys().next().copied());
        let mut listed = 0;
        for (number, list) in calendar.lists.iter().enumerate() {
            let is_marked = calendar.bits[0][number / 64] >> (number % 64) & 1 == 1;
            assert_eq!(is_marked, list.first != NONE, "list {number}");
            let (mut keys, mut place) = (Vec::new(), list.first);
            while place != NONE {
                let kept = &calendar.kept[place as usize];
                assert!(kept.packet.is_some());
                keys.push(kept.key);
                assert!(kept.next != NONE || place == list.last);
                place = kept.next;
            }
            assert!(keys.is_sorted());
            listed += keys.len();
            let days: Vec<u64> = keys.iter().map(|key| key.0.0 >> calendar.day_bits).collect();
            for day in days {
                assert_eq!(day as usize % calendar.lists.len(), number);
                assert!(day - calendar.day < calendar.lists.len() as u64);
            }
            assert!(list.first != NONE || list.last == EMPTY.last);
        }
        for (number, word) in calendar.bits[0].iter().enumerate() {
            assert_eq!(*word != 0, calendar.bits[1][number / 64] >> (number % 64) & 1 == 1);
        }
        assert_eq!(listed + calendar.heap.len(), model.len());
    }

    /// A number from the one before.
    fn next(state: &mut u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *state >> 33
    }

    /// Goal: the first packet leaves first whatever the moments are, and the calendar is as it says. Method:
    /// moments of one spread and of all at once, in the past, equal ones, few packets and many, beside a
    /// sorted map.
    #[test]
    fn the_first_leaves_first() {
        for (spread, most) in [(1, 50), (1_000, 10), (6_000_000, 3_000), (1 << 40, 500), (0, 900)] {
            let (mut calendar, mut model) = (Calendar::new(), BTreeMap::new());
            let (mut now, mut state) = (1_u64 << 50, 5_u64);
            for number in 0..9_000_u64 {
                now += 1 + next(&mut state) % (spread / 500 + 1);
                let ahead = match (spread, number % 16) {
                    (0, kind) => 1 << (next(&mut state) % (4 * kind + 1)).min(62),
                    (_, 0) => u64::MAX - now,
                    _ => next(&mut state) % (spread + 1),
                };
                let moment = if number % 64 == 1 { now - 1_000 } else { now + ahead };
                calendar.pass(Nanos(now));
                calendar.push((Nanos(moment), number), number);
                model.insert((Nanos(moment), number), number);
                while model.len() > most || model.keys().next().is_some_and(|first| first.0.0 <= now) {
                    assert_eq!(calendar.pop(), model.pop_first().map(|(_, number)| number));
                }
                if number % 100 == 0 {
                    check(&calendar, &model);
                }
            }
            check(&calendar, &model);
            while let Some((_, number)) = model.pop_first() {
                assert_eq!(calendar.pop(), Some(number));
            }
            assert_eq!((calendar.pop(), calendar.len()), (None, 0));
            calendar.push((Nanos(3), 1), 1);
            calendar.clear();
            check(&calendar, &model);
        }
    }

    /// Goal: days become as long as suits: then hardly a packet is in the heap, or passes others. Method:
    /// 10,000 packets between 7 and 13 ms ahead, as those of `delay 10ms 3ms`, after packets of a second.
    #[test]
    fn days_suit_what_comes() {
        let (mut calendar, mut now, mut state) = (Calendar::new(), 0, 9);
        for number in 0..100_000_u64 {
            now += 1_000;
            if number == 20_000 {
                calendar.clear();
            }
            let ahead =
                if number < 20_000 { 1_000_000_000 } else { 7_000_000 + next(&mut state) % 6_000_000 };
            calendar.pass(Nanos(now));
            calendar.push((Nanos(now + ahead), number), number);
            while calendar.first().is_some_and(|first| first.0.0 <= now) {
                assert!(calendar.pop().is_some());
            }
        }
        assert!(calendar.heap.len() < calendar.len() / 50, "{} of {}", calendar.heap.len(), calendar.len());
        assert!(calendar.lists.iter().filter(|list| list.first != NONE).count() > calendar.len() / 3);
    }
}
