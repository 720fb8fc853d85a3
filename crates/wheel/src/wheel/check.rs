//! Asserts every invariant of a wheel, for tests.

use super::Wheel;
use crate::node::{Links, WheelNodes};
use crate::{Precision, Shape, Tick};

impl<N: WheelNodes, const LEVELS: usize, const BUCKETS: usize> Wheel<N, LEVELS, BUCKETS> {
    /// Asserts the invariants that the module names. For tests: cost O(timers + buckets).
    ///
    /// # Panics
    /// When one does not hold, which is a bug of this crate (or a broken promise of
    /// [`NodeRef::new`](crate::NodeRef::new)).
    pub fn check(&self) {
        let mut first: Option<Tick> = None;
        for level in 0..LEVELS {
            for position in 0..BUCKETS {
                let list = &self.buckets[level][position];
                let is_marked = self.occupied[level] & (1 << position) != 0;
                assert_eq!(is_marked, list.first.is_some(), "bit of level {level}, bucket {position}");
                let due = Shape::<LEVELS, BUCKETS>::due(self.clock, level, position);
                let number = level * BUCKETS + position;
                self.check_list(list.first, |links| {
                    assert_eq!(
                        usize::from(links.bucket()),
                        number,
                        "a timer in bucket {number} knows another one (W5)"
                    );
                    self.check_lateness(links, level, due);
                });
                if is_marked && first.is_none_or(|first| due.is_before(first)) {
                    first = Some(due);
                }
            }
        }
        self.check_list(self.expired.first, |links| {
            assert!(links.is_pending(), "a collected timer is idle (W5)");
        });
        self.check_next_expiry(first);
    }

    /// W3. A bucket that is due at the clock may hold timers armed for the past; the last level may hold
    /// clipped ones.
    fn check_lateness(&self, links: &Links<N::Ref>, level: usize, due: Tick) {
        let late = due.since(links.expires());
        let granule = Shape::<LEVELS, BUCKETS>::granularity(level).cast_signed();
        let is_past = level == 0 && due == self.clock && late > 0;
        let is_clipped = level == LEVELS - 1 && late <= 0;
        let range = match links.precision() {
            Precision::Tick if level > 0 => 2 - granule..=1,
            _ => 1..=granule,
        };
        assert!(
            range.contains(&late) || is_past || is_clipped,
            "level {level}: {late} ticks late, not in {range:?} (W3)"
        );
    }

    /// W1 and W4.
    fn check_next_expiry(&self, first: Option<Tick>) {
        let known = self.is_pending.then_some(self.next_expiry);
        assert!(known.is_none_or(|known| !known.is_before(self.clock)), "the clock passed {known:?} (W4)");
        assert_eq!(self.first_due(), first, "first bucket in use (W1)");
        match (self.is_stale, known, first) {
            (false, known, first) => assert_eq!(known, first, "next expiry (W1)"),
            (true, Some(known), Some(first)) => {
                assert!(!first.is_before(known), "next expiry {known:?} is after {first:?} (W1)");
            }
            (true, known, first) => assert!(first.is_none() && known.is_some(), "{known:?} {first:?} (W1)"),
        }
    }

    fn check_list(&self, first: Option<N::Ref>, mut each: impl FnMut(&Links<N::Ref>)) {
        let (mut previous, mut next) = (None, first);
        while let Some(node) = next {
            let links = self.nodes.links(node);
            if previous.is_some() {
                assert_eq!(links.previous.get(), previous, "the way back from {node:?} (W5)");
            }
            each(links);
            previous = Some(node);
            next = links.next.get();
        }
        let last = first.and_then(|first| self.nodes.links(first).previous.get());
        assert_eq!(previous, last, "the end of a list (W5)");
    }
}
