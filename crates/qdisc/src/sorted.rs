//! A sorted set whose elements come and go with every packet.
//!
//! Few elements are one sorted chunk of memory; many are chunks in order, of at most [`CHUNK_MAX`]. So
//! finding one costs a logarithm, putting it in or taking it out moves a part of one chunk, and memory of a
//! chunk that is gone is kept for the next one: a set that has once been as large allocates nothing.
//!
//! Invariants (unit test): chunks are in order; none is empty but the only one; two that lie together and of
//! which one is short have more elements than one is joined for, so their number does not grow with what has
//! come and gone.

use alloc::vec::Vec;

/// A chunk of so many elements is cut into two.
const CHUNK_MAX: usize = 64;
/// One of fewer is joined with one beside it, if both together have at most [`JOINED_MAX`].
const CHUNK_MIN: usize = 16;
const JOINED_MAX: usize = 48;

/// A set in order.
#[derive(Debug)]
pub(crate) struct SortedSet<K> {
    len: usize,
    chunks: Vec<Vec<K>>,
    spare: Vec<Vec<K>>,
}

impl<K> Default for SortedSet<K> {
    fn default() -> Self {
        Self { len: 0, chunks: Vec::new(), spare: Vec::new() }
    }
}

impl<K: Ord + Copy> SortedSet<K> {
    pub(crate) const fn new() -> Self {
        Self { len: 0, chunks: Vec::new(), spare: Vec::new() }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn first(&self) -> Option<&K> {
        self.chunks.first()?.first()
    }

    pub(crate) fn last(&self) -> Option<&K> {
        self.chunks.last()?.last()
    }

    /// In order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &K> {
        self.chunks.iter().flatten()
    }

    /// The first one that is not below `key`.
    pub(crate) fn at_or_above(&self, key: &K) -> Option<&K> {
        let chunk = self.chunk_of(key);
        let elements = self.chunks.get(chunk)?;
        let at = elements.partition_point(|other| other < key);
        elements.get(at).or_else(|| self.chunks.get(chunk + 1)?.first())
    }

    /// The chunk in which `key` is, if it is in any.
    fn chunk_of(&self, key: &K) -> usize {
        if self.chunks.len() <= 1 {
            return 0;
        }
        let behind = self.chunks.partition_point(|chunk| chunk.first().is_some_and(|first| first <= key));
        behind.saturating_sub(1)
    }

    /// Puts it in, if it is not in.
    pub(crate) fn insert(&mut self, key: K) {
        let chunk = self.chunk_of(&key);
        let Some(elements) = self.chunks.get_mut(chunk) else {
            let mut first = Vec::with_capacity(CHUNK_MAX + 1);
            first.push(key);
            self.chunks.push(first);
            self.len += 1;
            return;
        };
        let at = elements.partition_point(|other| *other < key);
        if at == elements.len() {
            elements.push(key); // as into an empty one
        } else if elements[at] == key {
            return;
        } else {
            elements.insert(at, key);
        }
        self.len += 1;
        if elements.len() > CHUNK_MAX {
            self.cut(chunk);
        }
    }

    #[cold]
    fn cut(&mut self, chunk: usize) {
        let mut behind = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(CHUNK_MAX + 1));
        behind.extend(self.chunks[chunk].drain(CHUNK_MAX / 2..));
        self.chunks.insert(chunk + 1, behind);
        // There is room for it when it goes.
        self.spare.reserve(self.chunks.len());
    }

    /// Takes it out; says whether it was in.
    pub(crate) fn remove(&mut self, key: &K) -> bool {
        let chunk = self.chunk_of(key);
        let Some(elements) = self.chunks.get_mut(chunk) else { return false };
        if elements.last() == Some(key) {
            elements.pop(); // as of an only one
        } else {
            let at = elements.partition_point(|other| other < key);
            if elements.get(at) != Some(key) {
                return false;
            }
            elements.remove(at);
        }
        self.len -= 1;
        if elements.len() < CHUNK_MIN && self.chunks.len() > 1 {
            self.join(chunk);
        }
        true
    }

    /// Puts `new`, which is not in, into the place of `old`, which is. They are often near each other.
    pub(crate) fn replace(&mut self, old: &K, new: K) {
        let [only] = &mut *self.chunks else {
            self.remove(old);
            return self.insert(new);
        };
        let is_first = only.first() == Some(old);
        let mut at = if is_first { 0 } else { only.partition_point(|other| other < old) };
        if only.get(at) != Some(old) {
            return;
        }
        while let Some(next) = only.get(at + 1).copied().filter(|next| *next < new) {
            only[at] = next;
            at += 1;
        }
        while let Some(before) = at.checked_sub(1).map(|before| only[before]).filter(|before| new < *before) {
            only[at] = before;
            at -= 1;
        }
        only[at] = new;
    }

    /// Takes the first one out.
    pub(crate) fn pop_first(&mut self) -> Option<K> {
        let first = *self.first()?;
        self.remove(&first);
        Some(first)
    }

    /// Joins a chunk that has become short with one beside it.
    #[cold]
    fn join(&mut self, chunk: usize) {
        let fits = |front: &usize| {
            let both = self.chunks.get(*front).zip(self.chunks.get(front + 1));
            both.is_some_and(|(one, other)| one.len() + other.len() <= JOINED_MAX)
        };
        if let Some(front) = chunk.checked_sub(1).filter(fits).or(Some(chunk).filter(fits)) {
            let mut behind = self.chunks.remove(front + 1);
            self.chunks[front].append(&mut behind);
            self.spare.push(behind);
        } else if self.chunks[chunk].is_empty() {
            let empty = self.chunks.remove(chunk);
            self.spare.push(empty);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
        self.chunks.truncate(1);
        self.chunks.iter_mut().for_each(Vec::clear);
    }
}

#[cfg(test)]
mod tests {
    use super::{CHUNK_MAX, CHUNK_MIN, JOINED_MAX, SortedSet};
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;

    fn check(set: &SortedSet<u32>, model: &BTreeSet<u32>) {
        assert!(set.iter().eq(model.iter()));
        assert_eq!((set.first(), set.last()), (model.first(), model.last()));
        assert_eq!((set.len(), set.is_empty()), (model.len(), model.is_empty()));
        let lengths: Vec<usize> = set.chunks.iter().map(Vec::len).collect();
        assert!(lengths.iter().all(|length| *length <= CHUNK_MAX), "{lengths:?}");
        for pair in lengths.windows(2) {
            assert!(pair.iter().all(|length| *length > 0), "{lengths:?}");
            let short = pair.iter().all(|length| *length < CHUNK_MIN);
            assert!(!short || pair[0] + pair[1] > JOINED_MAX, "{lengths:?}");
        }
    }

    /// Goal: it is the set that it says, and its chunks stay few. Method: random keys beside a `BTreeSet`, in
    /// waves that fill it and empty it, with looks at neighbours of keys.
    #[test]
    fn it_is_a_set_in_order() {
        let (mut set, mut model) = (SortedSet::new(), BTreeSet::new());
        let mut state = 7_u32;
        for step in 0..20_000_u32 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let key = (state >> 8) % 1_500;
            let fills = (step / 2_500) % 2 == 0;
            if fills == (state % 4 < 3) {
                set.insert(key);
                model.insert(key);
            } else {
                assert_eq!(set.remove(&key), model.remove(&key));
            }
            assert_eq!(set.at_or_above(&key), model.range(key..).next());
            let other = state % 1_500;
            if let Some(old) = model.range(key..).next().copied().filter(|_| !model.contains(&other)) {
                set.replace(&old, other);
                model.remove(&old);
                model.insert(other);
            }
            if step % 97 == 0 {
                check(&set, &model);
            }
        }
        while let Some(first) = model.pop_first() {
            assert_eq!(set.pop_first(), Some(first));
            check(&set, &model);
        }
        assert_eq!((set.pop_first(), set.remove(&1), set.at_or_above(&0)), (None, false, None));
        (0..200).for_each(|key| set.insert(key));
        set.clear();
        check(&set, &model);
    }
}
