//! Processors: an id, and a set of them.
//!
//! Invariants: a [`CpuId`] is below [`CPU_LIMIT`]; a [`CpuSet`] holds no trailing zero words, so
//! equal sets are equal values. The text forms (kernel lists and masks) are in `cpu_text.rs`.
//! Not here: topology, and which CPUs a machine has.

use alloc::vec::Vec;
use core::fmt;

/// One more than the highest CPU number: the largest `NR_CPUS` that Linux can be built with on
/// x86 (`MAXSMP`). A number at or above it in any input is an error, so hostile input cannot
/// make a per-CPU table large.
pub const CPU_LIMIT: u16 = 8192;

/// The number of a logical CPU, as in `/sys/devices/system/cpu/cpuN`; always below [`CPU_LIMIT`].
///
/// ```
/// use quietcore_core::CpuId;
///
/// let cpu = CpuId::new(3)?;
/// assert_eq!((cpu.index(), cpu.to_string().as_str()), (3, "3"));
/// assert!(CpuId::new(8192).is_err());
/// # Ok::<(), quietcore_core::CpuError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuId(u16);

impl CpuId {
    /// Checks the range.
    ///
    /// # Errors
    /// [`CpuError::OutOfRange`] when `number` is not below [`CPU_LIMIT`].
    ///
    /// ```
    /// assert!(quietcore_core::CpuId::new(0).is_ok());
    /// ```
    pub const fn new(number: u64) -> Result<Self, CpuError> {
        if number < CPU_LIMIT as u64 { Ok(Self(number as u16)) } else { Err(CpuError::OutOfRange { number }) }
    }

    /// The number, for indexing a per-CPU table.
    ///
    /// ```
    /// # use quietcore_core::CpuId;
    /// assert_eq!(CpuId::new(9)?.index(), 9);
    /// # Ok::<(), quietcore_core::CpuError>(())
    /// ```
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for CpuId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, out)
    }
}

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
    ///
    /// ```
    /// assert!(quietcore_core::CpuSet::new().is_empty());
    /// ```
    #[must_use]
    pub const fn new() -> Self {
        Self { words: Vec::new() }
    }

    /// Adds `cpu`; true when it was not a member before.
    ///
    /// ```
    /// # use quietcore_core::{CpuId, CpuSet};
    /// let mut set = CpuSet::new();
    /// assert!(set.insert(CpuId::default()));
    /// assert!(!set.insert(CpuId::default()));
    /// ```
    pub fn insert(&mut self, cpu: CpuId) -> bool {
        let (word, bit) = (cpu.index() / 64, 1 << (cpu.index() % 64));
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        let absent = self.words[word] & bit == 0;
        self.words[word] |= bit;
        absent
    }

    /// Whether `cpu` is a member.
    ///
    /// ```
    /// # use quietcore_core::{CpuId, CpuSet};
    /// assert!("4-6".parse::<CpuSet>()?.contains(CpuId::new(5)?));
    /// # Ok::<(), quietcore_core::CpuError>(())
    /// ```
    #[must_use]
    pub fn contains(&self, cpu: CpuId) -> bool {
        self.words.get(cpu.index() / 64).is_some_and(|word| word >> (cpu.index() % 64) & 1 == 1)
    }

    /// How many CPUs are members.
    ///
    /// ```
    /// assert_eq!("0,2,4-7".parse::<quietcore_core::CpuSet>()?.len(), 6);
    /// # Ok::<(), quietcore_core::CpuError>(())
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether no CPU is a member.
    ///
    /// ```
    /// assert!("".parse::<quietcore_core::CpuSet>()?.is_empty());
    /// # Ok::<(), quietcore_core::CpuError>(())
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The members in ascending order.
    ///
    /// ```
    /// # use quietcore_core::CpuSet;
    /// let set: CpuSet = "3,1".parse()?;
    /// assert_eq!(set.iter().map(|cpu| cpu.index()).collect::<Vec<_>>(), [1, 3]);
    /// # Ok::<(), quietcore_core::CpuError>(())
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = CpuId> + '_ {
        self.words.iter().enumerate().flat_map(|(word, &bits)| {
            (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| CpuId((word * 64 + bit) as u16))
        })
    }

    /// Members of both sets.
    ///
    /// ```
    /// # use quietcore_core::CpuSet;
    /// let (a, b): (CpuSet, CpuSet) = ("0-4".parse()?, "3-9".parse()?);
    /// assert_eq!(a.intersection(&b).to_string(), "3-4");
    /// # Ok::<(), quietcore_core::CpuError>(())
    /// ```
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.combine(other, |mine, theirs| mine & theirs)
    }

    /// Members of either set.
    ///
    /// ```
    /// # use quietcore_core::CpuSet;
    /// let (a, b): (CpuSet, CpuSet) = ("0-1".parse()?, "4".parse()?);
    /// assert_eq!(a.union(&b).to_string(), "0-1,4");
    /// # Ok::<(), quietcore_core::CpuError>(())
    /// ```
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        self.combine(other, |mine, theirs| mine | theirs)
    }

    /// Members of this set that are not in `other`.
    ///
    /// ```
    /// # use quietcore_core::CpuSet;
    /// let (a, b): (CpuSet, CpuSet) = ("0-4".parse()?, "1-2".parse()?);
    /// assert_eq!(a.difference(&b).to_string(), "0,3-4");
    /// # Ok::<(), quietcore_core::CpuError>(())
    /// ```
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.combine(other, |mine, theirs| mine & !theirs)
    }

    fn combine(&self, other: &Self, each: impl Fn(u64, u64) -> u64) -> Self {
        let word = |set: &Self, at: usize| set.words.get(at).copied().unwrap_or(0);
        let count = self.words.len().max(other.words.len());
        let mut words: Vec<u64> = (0..count).map(|at| each(word(self, at), word(other, at))).collect();
        while words.last() == Some(&0) {
            words.pop();
        }
        Self { words }
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

/// Why a CPU number, list or mask was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CpuError {
    /// `number` is not below [`CPU_LIMIT`].
    OutOfRange {
        /// The number that was given.
        number: u64,
    },
    /// The text at byte `at` is neither a number nor the separator that must follow one.
    Unexpected {
        /// Byte offset from the start of the text.
        at: usize,
    },
    /// A list that names so many CPUs so often that it is an attack or a mistake; noticed at `at`.
    Repetitive {
        /// Byte offset from the start of the text.
        at: usize,
    },
    /// A range that ends before it begins, as `7-3`.
    Backwards {
        /// First number of the range.
        first: u64,
        /// Last number of the range.
        last: u64,
    },
}

impl fmt::Display for CpuError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfRange { number } => {
                write!(out, "CPU number {number} is out of range 0..{CPU_LIMIT}")
            }
            Self::Unexpected { at } => {
                write!(out, "not a CPU list at byte {at} (expected numbers and ranges, as 0-3,8)")
            }
            Self::Repetitive { at } => write!(out, "CPU list names the same CPUs over and over (byte {at})"),
            Self::Backwards { first, last } => {
                write!(out, "CPU range {first}-{last} ends before it begins")
            }
        }
    }
}

impl core::error::Error for CpuError {}
