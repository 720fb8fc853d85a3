//! A map from identities to what was last seen of them, with a cap on its memory.
//!
//! Two generations of at most half the cap each: when the young one is full, the old one is
//! dropped (its entries are counted as evicted) and the young one takes its place. A lookup of an
//! old entry makes it young. So what is dropped was not touched for at least half a cap of
//! insertions, every operation is O(1), and nothing ever iterates over a map.

use std::collections::HashMap;

/// How many identities each table keeps unless told otherwise.
pub const IDENTITIES_MAX: usize = 1_000_000;

/// What was last seen of each identity, bounded as the module says.
#[derive(Debug)]
pub struct IdentityTable<V> {
    young: HashMap<u64, V>,
    old: HashMap<u64, V>,
    half: usize,
    evicted: u64,
}

impl<V> IdentityTable<V> {
    /// An empty table of at most `identities_max` entries, at least 2.
    #[must_use]
    pub fn new(identities_max: usize) -> Self {
        Self {
            young: HashMap::new(),
            old: HashMap::new(),
            half: identities_max.div_ceil(2).max(1),
            evicted: 0,
        }
    }

    /// How many entries were dropped because the table was full.
    #[must_use]
    pub fn evicted(&self) -> u64 {
        self.evicted
    }

    /// What is known of `identity`.
    pub fn get_mut(&mut self, identity: u64) -> Option<&mut V> {
        if !self.young.contains_key(&identity) {
            let value = self.old.remove(&identity)?;
            self.insert_young(identity, value);
        }
        self.young.get_mut(&identity)
    }

    /// Remembers `value`; returns what was known before.
    pub fn insert(&mut self, identity: u64, value: V) -> Option<V> {
        if let Some(known) = self.young.get_mut(&identity) {
            return Some(std::mem::replace(known, value));
        }
        let known = self.old.remove(&identity);
        self.insert_young(identity, value);
        known
    }

    /// Forgets `identity`; returns what was known.
    pub fn remove(&mut self, identity: u64) -> Option<V> {
        self.young.remove(&identity).or_else(|| self.old.remove(&identity))
    }

    fn insert_young(&mut self, identity: u64, value: V) {
        if self.young.len() >= self.half {
            self.evicted += self.old.len() as u64;
            self.old.clear(); // keeps its allocation: the peak is two half tables, no third
            std::mem::swap(&mut self.young, &mut self.old);
        }
        self.young.insert(identity, value);
    }
}

#[cfg(test)]
mod tests {
    use super::IdentityTable;

    /// Goal: the cap holds, evictions are counted, and a touched entry survives.
    #[test]
    fn an_untouched_entry_is_the_one_that_goes() {
        let mut table = IdentityTable::new(8);
        for identity in 0..1000u64 {
            table.insert(identity, identity);
            assert_eq!(table.get_mut(0).copied(), Some(0), "touched at every step, dropped at {identity}");
            assert!(table.young.len() + table.old.len() <= 8);
        }
        let kept = (table.young.len() + table.old.len()) as u64;
        assert_eq!(table.evicted() + kept, 1000, "every entry is kept or counted");
        assert_eq!(table.get_mut(1), None);
    }
}
