//! The round of classes of one priority: those that may send at a level, or those that want to borrow from
//! one class.
//!
//! A round goes by class id. The next class is found when it is asked for, not when the set changes: the
//! cursor is a lower bound, so a class that left and came back in between finds its turn again unless
//! another class took it.

use crate::ClassId;
use crate::sorted::SortedSet;

/// Classes, and where the round has come to.
#[derive(Debug, Default)]
pub(super) struct RoundRobin {
    classes: SortedSet<ClassId>,
    /// The class whose turn it is has this number or the next higher one of a class that is in; 2^32 is
    /// above all.
    next: u64,
}

impl RoundRobin {
    pub(super) fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }

    pub(super) fn insert(&mut self, id: ClassId) {
        self.classes.insert(id);
    }

    pub(super) fn remove(&mut self, id: ClassId) {
        self.classes.remove(&id);
    }

    /// Whose turn it is, and stays; `None` when the round is over.
    pub(super) fn current(&mut self) -> Option<ClassId> {
        let next = u32::try_from(self.next).ok()?;
        let found = *self.classes.at_or_above(&ClassId(next))?;
        self.next = u64::from(found.0);
        Some(found)
    }

    /// `id` had its turn.
    pub(super) fn pass(&mut self, id: ClassId) {
        self.next = u64::from(id.0) + 1;
    }

    /// A new round.
    pub(super) fn rewind(&mut self) {
        self.next = 0;
    }

    /// No class is in, and no turn is remembered.
    pub(super) fn clear(&mut self) {
        self.classes.clear();
        self.next = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::RoundRobin;
    use crate::ClassId;

    /// Goal: a turn is kept, passed, and found again. Method: the highest id there is, and one that leaves.
    #[test]
    fn rounds() {
        let [low, middle, high] = [1, 2, 0xffff].map(|minor| ClassId::new(0xffff, minor));
        let mut round = RoundRobin::default();
        assert_eq!(round.current(), None);
        for id in [high, low, middle] {
            round.insert(id);
        }
        assert_eq!([round.current(), round.current()], [Some(low), Some(low)]);
        round.pass(low);
        round.remove(middle);
        round.insert(middle);
        assert_eq!(round.current(), Some(middle), "it came back before its turn was another's");
        round.remove(middle);
        assert_eq!(round.current(), Some(high));
        round.insert(middle);
        assert_eq!(round.current(), Some(high), "its turn was another's");
        round.pass(high);
        assert_eq!(round.current(), None);
        round.rewind();
        assert_eq!(round.current(), Some(low));
    }
}
