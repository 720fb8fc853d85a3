//! A set of CPUs as words of 64 bits.
//!
//! Invariant: no trailing zero words, so equal sets are equal values and the empty set owns no memory.
//! Queries and walks allocate nothing; what returns a new set allocates that set.
//! Not here: the text forms (`cpu_text.rs`), and which CPUs a machine has (`topology`).

use super::{CpuError, CpuId};
use alloc::vec::Vec;

/// A set of CPUs. `FromStr` and `Display` speak the kernel's list form (`0-3,8`).
///
/// Cost: one bit per CPU up to the highest member; every query is O(1) or one pass.
///
/// ```
/// use quietcore_core::{CpuId, CpuSet};
///
/// let mut awake = CpuSet::new();
/// awake.insert(CpuId::new(0)?);
/// awake.insert(CpuId::new(8)?);
/// assert_eq!(awake.to_string(), "0,8");
/// # Ok::<(), quietcore_core::CpuError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CpuSet {
    words: Vec<u64>,
}

impl CpuSet {
    /// The empty set; allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { words: Vec::new() }
    }

    /// `count` CPUs with consecutive numbers, the lowest of them `first`.
    ///
    /// # Errors
    /// [`CpuError::OutOfRange`] names the highest number when it is not below
    /// [`CPU_LIMIT`](crate::CPU_LIMIT).
    pub fn range(first: CpuId, count: u16) -> Result<Self, CpuError> {
        let mut set = Self::new();
        if let Some(more) = count.checked_sub(1) {
            set.insert_range(first, CpuId::new(u64::from(first.0) + u64::from(more))?);
        }
        Ok(set)
    }

    /// Adds `cpu`; true when it was not a member before.
    pub fn insert(&mut self, cpu: CpuId) -> bool {
        let (word, bit) = (cpu.index() / 64, 1 << (cpu.index() % 64));
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        let absent = self.words[word] & bit == 0;
        self.words[word] |= bit;
        absent
    }

    /// Adds every CPU from `first` to `last`, 64 at a time.
    pub(crate) fn insert_range(&mut self, first: CpuId, last: CpuId) {
        let (low, high) = (first.index() / 64, last.index() / 64);
        if first > last {
            return;
        }
        if self.words.len() <= high {
            self.words.resize(high + 1, 0);
        }
        for (at, word) in self.words.iter_mut().enumerate().take(high + 1).skip(low) {
            let from = if at == low { first.index() % 64 } else { 0 };
            let to = if at == high { last.index() % 64 } else { 63 };
            *word |= (u64::MAX << from) & (u64::MAX >> (63 - to));
        }
    }

    /// Takes `cpu` out; true when it was a member before.
    pub fn remove(&mut self, cpu: CpuId) -> bool {
        let bit = 1 << (cpu.index() % 64);
        let Some(word) = self.words.get_mut(cpu.index() / 64) else { return false };
        let present = *word & bit != 0;
        *word &= !bit;
        self.trim();
        present
    }

    /// Restores the invariant after members left.
    fn trim(&mut self) {
        while self.words.last() == Some(&0) {
            self.words.pop();
        }
    }

    /// Whether `cpu` is a member.
    #[must_use]
    pub fn contains(&self, cpu: CpuId) -> bool {
        self.words.get(cpu.index() / 64).is_some_and(|word| word >> (cpu.index() % 64) & 1 == 1)
    }

    /// How many CPUs are members.
    #[must_use]
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether no CPU is a member.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The members in ascending order; allocates nothing, and costs one step per member and per word.
    pub fn iter(&self) -> impl Iterator<Item = CpuId> + Clone + '_ {
        Ones { words: self.words.iter().copied(), taken: 0, rest: 0 }
    }

    /// The members of both sets in ascending order, as [`CpuSet::intersection`] has them, without
    /// allocating it.
    pub fn iter_common<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = CpuId> + Clone + 'a {
        let words = self.words.iter().zip(&other.words).map(|(mine, theirs)| mine & theirs);
        Ones { words, taken: 0, rest: 0 }
    }

    /// The member with the lowest number.
    #[must_use]
    pub fn first(&self) -> Option<CpuId> {
        self.iter().next()
    }

    /// The member with the highest number; O(1).
    #[must_use]
    pub fn last(&self) -> Option<CpuId> {
        let word = self.words.last()?;
        Some(CpuId((self.words.len() * 64 - 1 - word.leading_zeros() as usize) as u16))
    }

    /// Whether every member is a member of `other`.
    #[must_use]
    pub fn is_subset(&self, other: &Self) -> bool {
        self.words.len() <= other.words.len()
            && self.words.iter().zip(&other.words).all(|(mine, theirs)| mine & !theirs == 0)
    }

    /// Members of both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.combine(other, |mine, theirs| mine & theirs)
    }

    /// Members of either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        self.combine(other, |mine, theirs| mine | theirs)
    }

    /// Members of this set that are not in `other`.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.combine(other, |mine, theirs| mine & !theirs)
    }

    fn combine(&self, other: &Self, each: impl Fn(u64, u64) -> u64) -> Self {
        let word = |set: &Self, at: usize| set.words.get(at).copied().unwrap_or(0);
        let count = self.words.len().max(other.words.len());
        let mut set = Self { words: (0..count).map(|at| each(word(self, at), word(other, at))).collect() };
        set.trim();
        set
    }
}

/// The numbers of the bits that are set in a row of words.
#[derive(Clone)]
struct Ones<I> {
    words: I,
    /// How many words lie before the next one of `words`.
    taken: usize,
    /// What is left of the word before that.
    rest: u64,
}

impl<I: Iterator<Item = u64>> Iterator for Ones<I> {
    type Item = CpuId;

    fn next(&mut self) -> Option<CpuId> {
        while self.rest == 0 {
            self.rest = self.words.next()?;
            self.taken += 1;
        }
        let bit = self.rest.trailing_zeros() as usize;
        self.rest &= self.rest - 1;
        Some(CpuId(((self.taken - 1) * 64 + bit) as u16))
    }
}

impl FromIterator<CpuId> for CpuSet {
    fn from_iter<I: IntoIterator<Item = CpuId>>(cpus: I) -> Self {
        let mut set = Self::new();
        for cpu in cpus {
            set.insert(cpu);
        }
        set
    }
}
