//! Classes by their names, found in a few steps however many there are.
//!
//! Values lie side by side in no order. Where each is, is in blocks of 256 numbers that follow one another;
//! most disciplines have one block. Going through all is in the order of the numbers.

use crate::ClassId;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// No value is here.
const NONE: u32 = u32::MAX;
const BLOCK: usize = 256;

#[derive(Clone, Debug)]
struct Block {
    /// The numbers' upper 24 bits.
    prefix: u32,
    places: Box<[u32; BLOCK]>,
    /// How many of them are some.
    count: u32,
}

/// A map by names of classes.
#[derive(Debug)]
pub(crate) struct ClassMap<V> {
    /// In the order of their prefixes; none is empty.
    blocks: Vec<Block>,
    values: Vec<(u32, V)>,
}

impl<V> ClassMap<V> {
    pub(crate) const fn new() -> Self {
        Self { blocks: Vec::new(), values: Vec::new() }
    }

    fn block(&self, number: u32) -> Result<usize, usize> {
        match &*self.blocks {
            [only] if only.prefix == number >> 8 => Ok(0),
            blocks => blocks.binary_search_by_key(&(number >> 8), |block| block.prefix),
        }
    }

    /// Where the value of `key` lies; nowhere if it has none.
    fn place(&self, key: ClassId) -> usize {
        let number = key.0;
        let Ok(block) = self.block(number) else { return NONE as usize };
        self.blocks[block].places[number as usize % BLOCK] as usize
    }

    pub(crate) fn get(&self, key: ClassId) -> Option<&V> {
        self.values.get(self.place(key)).map(|(_, value)| value)
    }

    pub(crate) fn get_mut(&mut self, key: ClassId) -> Option<&mut V> {
        let place = self.place(key);
        self.values.get_mut(place).map(|(_, value)| value)
    }

    pub(crate) fn contains_key(&self, key: ClassId) -> bool {
        self.get(key).is_some()
    }

    /// Another value for the key in place of the one that it has, if any.
    pub(crate) fn insert(&mut self, key: ClassId, value: V) {
        if let Some(known) = self.get_mut(key) {
            *known = value;
            return;
        }
        let number = key.0;
        let block = self.block(number).unwrap_or_else(|block| {
            let places = Box::new([NONE; BLOCK]);
            self.blocks.insert(block, Block { prefix: number >> 8, places, count: 0 });
            block
        });
        let block = &mut self.blocks[block];
        // There are less than 2^32 of them: one per number, and some numbers are no class.
        block.places[number as usize % BLOCK] = self.values.len() as u32;
        block.count += 1;
        self.values.push((number, value));
    }

    pub(crate) fn remove(&mut self, key: ClassId) -> Option<V> {
        let (number, place) = (key.0, self.place(key));
        let block = self.block(number).ok()?;
        if place >= self.values.len() {
            return None;
        }
        self.blocks[block].places[number as usize % BLOCK] = NONE;
        self.blocks[block].count -= 1;
        if self.blocks[block].count == 0 {
            self.blocks.remove(block);
        }
        let (_, removed) = self.values.swap_remove(place);
        if let Some(moved) = self.values.get(place).map(|(number, _)| *number)
            && let Ok(block) = self.block(moved)
        {
            self.blocks[block].places[moved as usize % BLOCK] = place as u32;
        }
        Some(removed)
    }

    /// In order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ClassId, &V)> {
        let places = self.blocks.iter().flat_map(|block| block.places.iter());
        let values = places.filter_map(|place| self.values.get(*place as usize));
        values.map(|(number, value)| (ClassId(*number), value))
    }

    /// In order.
    pub(crate) fn keys(&self) -> impl Iterator<Item = ClassId> {
        self.iter().map(|(key, _)| key)
    }

    /// In no order.
    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.values.iter().map(|(_, value)| value)
    }

    /// In no order.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.values.iter_mut().map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::ClassMap;
    use crate::ClassId;
    use alloc::collections::BTreeMap;

    /// Goal: it is the map that it says. Method: numbers of a few blocks come and go at random, beside a
    /// `BTreeMap`.
    #[test]
    fn it_is_a_map_in_order() {
        let (mut map, mut model) = (ClassMap::new(), BTreeMap::new());
        let mut state = 3_u32;
        for step in 0..4_000_u32 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let key = ClassId((((state >> 8) % 40) * 37) | ((state >> 28) << 16));
            if state % 2 == step / 500 % 2 {
                map.insert(key, step);
                model.insert(key, step);
            } else {
                assert_eq!(map.remove(key), model.remove(&key));
            }
            assert_eq!((map.get(key), map.contains_key(key)), (model.get(&key), model.contains_key(&key)));
            assert!(map.iter().map(|(key, value)| (key, *value)).eq(model.iter().map(|(k, v)| (*k, *v))));
            assert_eq!(map.values().count(), model.len());
        }
    }
}
