//! The word of a group: which children are active, which of them is the migrator, and how often it changed.
//!
//! One `u64`: `active` (8 bits) | `migrator` (8 bits, one of `active`, or 0 for none) | `seq` (48 bits).
//! Invariants ([`Snapshot::check`]; model `tests/loom/group_word.rs`):
//! - T2: the migrator is one of the active children; there is none exactly when no child is active.
//! - T7: `seq` moves on every transition, also on one that changes nothing else, so that a walker that
//!   decided on an older word loses its compare-and-swap and decides again.
//!
//! Deviation from Linux 6.12 (kernel/time/timer_migration.c), where the word has 32 bits: 16 bits of `seq`
//! wrap while a thread is off its CPU for 100 ms; 48 do not. A [`ChildMask`] is never zero, by its type.

use crate::sync::{AtomicU64, Ordering, interleave};
use core::fmt;
use core::num::NonZeroU8;

/// Children per group.
pub(crate) const CHILDREN: usize = 8;

/// One child of a group: a byte with exactly one bit set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildMask(NonZeroU8);

impl ChildMask {
    /// The mask of child number `slot`, which is below 8.
    #[must_use]
    pub const fn new(slot: u8) -> Option<Self> {
        if slot >= CHILDREN as u8 {
            return None;
        }
        match NonZeroU8::new(1 << slot) {
            Some(mask) => Some(Self(mask)),
            None => None,
        }
    }

    /// The mask with exactly these bits; `None` unless one bit is set.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Option<Self> {
        if bits.is_power_of_two() { Self::new(bits.trailing_zeros() as u8) } else { None }
    }

    /// The byte.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0.get()
    }

    /// The number of the child in its group, 0 to 7.
    #[must_use]
    pub const fn slot(self) -> u8 {
        self.0.get().trailing_zeros() as u8
    }
}

/// Hexadecimal, as the kernel writes it.
impl fmt::Display for ChildMask {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:x}", self.bits())
    }
}

/// A group's word at one moment. All its functions are pure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Snapshot(u64);

impl Snapshot {
    const MIGRATOR_SHIFT: u32 = 8;
    const SEQ_SHIFT: u32 = 16;

    fn pack(active: u8, migrator: u8, seq: u64) -> Self {
        Self(u64::from(active) | u64::from(migrator) << Self::MIGRATOR_SHIFT | seq << Self::SEQ_SHIFT)
    }

    /// The active children, a bit each.
    #[must_use]
    pub const fn active(self) -> u8 {
        self.0 as u8
    }

    /// The child that looks after this group's events; `None` when none is active.
    #[must_use]
    pub const fn migrator(self) -> Option<ChildMask> {
        match NonZeroU8::new((self.0 >> Self::MIGRATOR_SHIFT) as u8) {
            Some(mask) => Some(ChildMask(mask)),
            None => None,
        }
    }

    /// How often the word changed, modulo 2^48.
    #[must_use]
    pub const fn seq(self) -> u64 {
        self.0 >> Self::SEQ_SHIFT
    }

    /// Whether any child is active.
    #[must_use]
    pub const fn is_active(self) -> bool {
        self.active() != 0
    }

    /// Whether `child` looks after this group, or none does.
    #[must_use]
    pub fn is_migrator_or_none(self, child: ChildMask) -> bool {
        self.migrator().is_none_or(|migrator| migrator == child)
    }

    /// After `child` became active: it takes the role of the migrator if none has it.
    #[must_use]
    pub fn with(self, child: ChildMask) -> Self {
        let migrator = self.migrator().unwrap_or(child);
        Self::pack(self.active() | child.bits(), migrator.bits(), self.seq().wrapping_add(1))
    }

    /// After `child` became inactive: if it was the migrator, the lowest active child is.
    #[must_use]
    pub fn without(self, child: ChildMask) -> Self {
        let active = self.active() & !child.bits();
        let migrator = match self.migrator() {
            Some(migrator) if migrator != child => migrator.bits(),
            _ => active & active.wrapping_neg(),
        };
        Self::pack(active, migrator, self.seq().wrapping_add(1))
    }

    /// Asserts T2.
    ///
    /// # Panics
    /// When the migrator is not one of the active children.
    pub fn check(self) {
        let migrator = self.migrator().map_or(0, ChildMask::bits);
        assert!(migrator.count_ones() == u32::from(self.is_active()), "T2: migrator {migrator:x} of {self}");
        assert!(migrator & !self.active() == 0, "T2: migrator {migrator:x} of {self}");
    }
}

/// As the kernel's trace writes it: `active=3 migrator=1`, `ff` for none.
impl fmt::Display for Snapshot {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let migrator = self.migrator().map_or(0xff, ChildMask::bits);
        write!(out, "active={:x} migrator={migrator:x}", self.active())
    }
}

/// What a transition of a group's word did.
#[derive(Clone, Copy, Debug)]
#[must_use = "a group that became active or inactive has a parent that must learn it"]
pub(crate) struct Transition {
    pub(crate) before: Snapshot,
    pub(crate) after: Snapshot,
}

impl Transition {
    /// Whether the group as a whole became active or inactive.
    pub(crate) fn is_change(self) -> bool {
        self.before.is_active() != self.after.is_active()
    }
}

/// The word that CPUs share.
#[derive(Debug)]
pub(crate) struct GroupWord(AtomicU64);

impl GroupWord {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(Snapshot::default().0))
    }

    pub(crate) fn load(&self) -> Snapshot {
        // Acquire: pairs with AcqRel in `transition`, so that what a walk did before it is seen with it.
        Snapshot(self.0.load(Ordering::Acquire))
    }

    /// Reads the word and changes nothing, but takes its place in the order of all transitions: those
    /// before it are seen here, those after it see what this thread did before.
    pub(crate) fn load_in_order(&self) -> Snapshot {
        // AcqRel: pairs with AcqRel in `transition`.
        Snapshot(self.0.fetch_add(0, Ordering::AcqRel))
    }

    /// Makes the bit of `child` say what `is_active` says, asking again whenever another CPU was faster.
    ///
    /// The last walker has read the child after the word that it replaces, so the bit is right when none is
    /// on the way any more. Interleaving S (KERNEL: "race S"): CPU 0 clears its group and is delayed before
    /// the parent; CPU 1 of the group wakes up and sets both; CPU 0 goes on with what it saw. Its
    /// compare-and-swap fails on `seq`, it asks again and leaves the bit. Tests:
    /// `site::race_s_late_idle_cpu`, model `tests/loom/group_word.rs`.
    pub(crate) fn transition(&self, child: ChildMask, is_active: impl Fn() -> bool) -> Transition {
        let mut before = self.load();
        loop {
            interleave!(BeforeChildRead);
            let after = if is_active() { before.with(child) } else { before.without(child) };
            interleave!(BeforeCas);
            // AcqRel: pairs with itself on another CPU. Release shows our child's change to the walker that
            // replaces this word; Acquire shows us the child's changes that the replaced word knew of.
            // Acquire on failure: the child is read again, and not earlier than the word. In `load` as well.
            match self.0.compare_exchange(before.0, after.0, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    interleave!(AfterCas);
                    return Transition { before, after };
                }
                Err(bits) => before = Snapshot(bits),
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{CHILDREN, ChildMask, Snapshot};

    /// Goal: T2 and T7 hold over every word that can be reached. Method: all masks with all migrators, each
    /// child set and cleared.
    #[test]
    fn transitions_keep_a_migrator_among_the_active() {
        let mut seen = 0;
        for active in 0..=u8::MAX {
            for slot in 0..CHILDREN as u8 {
                if active >> slot & 1 == 0 && active != 0 {
                    continue;
                }
                let migrator = if active == 0 { 0 } else { 1 << slot };
                let word = Snapshot::pack(active, migrator, u64::MAX >> 16);
                for child in (0..CHILDREN as u8).filter_map(ChildMask::new) {
                    for next in [word.with(child), word.without(child)] {
                        next.check();
                        assert_eq!(next.seq(), 0, "seq wraps within its 48 bits");
                        seen += 1;
                    }
                    assert_eq!(word.with(child).active(), active | child.bits());
                    assert_eq!(word.without(child).active(), active & !child.bits());
                }
            }
        }
        assert_eq!(seen, 16 * (8 * 128 + 8), "every mask with every migrator");
    }

    /// Goal: the successor of a migrator is the lowest active child, and no other's leaving changes the
    /// migrator. Method: three children.
    #[test]
    fn the_lowest_active_child_takes_over() {
        let child = |slot| ChildMask::new(slot).expect("below 8");
        let word = Snapshot::default().with(child(5)).with(child(2)).with(child(7));
        assert_eq!(word.migrator(), Some(child(5)));
        assert_eq!(word.without(child(2)).migrator(), Some(child(5)));
        assert_eq!(word.without(child(5)).migrator(), Some(child(2)));
    }
}
