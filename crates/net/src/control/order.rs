//! The order in which the kernel lists: what is in tables of buckets comes bucket by bucket, and within one
//! mostly the newest first.
//!
//! Scripts that compare listings see it, so it is kept. Source: Linux by observation (recordings in
//! `tests/tc_recorded`, trees of classes of up to nine), of 6.12.

use quietcore_qdisc::ClassId;

/// Buckets that a table of classes begins with.
const FIRST_BUCKETS: usize = 4;
/// Buckets of the disciplines of a device, as a power of 2.
const QDISC_BITS: u32 = 4;
/// The golden ratio, by which the kernel spreads numbers.
const GOLDEN: u32 = 0x61c8_8647;

/// The bucket of a discipline; the root is before all buckets.
pub(super) const fn qdisc_bucket(handle: u16) -> u32 {
    ((handle as u32) << 16).wrapping_mul(GOLDEN) >> (u32::BITS - QDISC_BITS)
}

/// The classes of a discipline, as the kernel holds them: a table that grows.
#[derive(Clone, Debug)]
pub(super) struct ClassTable {
    /// Each with the newest in front.
    buckets: Vec<Vec<ClassId>>,
}

impl Default for ClassTable {
    fn default() -> Self {
        Self { buckets: vec![Vec::new(); FIRST_BUCKETS] }
    }
}

impl ClassTable {
    fn bucket(&mut self, class: ClassId) -> &mut Vec<ClassId> {
        let mut number = u32::from(class.major()) << 16 | u32::from(class.minor());
        number ^= number >> 8;
        number ^= number >> 4;
        let at = number as usize & (self.buckets.len() - 1);
        &mut self.buckets[at]
    }

    pub(super) fn insert(&mut self, class: ClassId) {
        self.bucket(class).insert(0, class);
        let size = self.buckets.len();
        if self.all().count() * 4 <= size * 3 {
            return;
        }
        let before = core::mem::replace(&mut self.buckets, vec![Vec::new(); 2 * size]);
        for class in before.into_iter().flatten() {
            self.bucket(class).insert(0, class);
        }
    }

    pub(super) fn remove(&mut self, class: ClassId) {
        self.bucket(class).retain(|other| *other != class);
    }

    /// All, in order.
    pub(super) fn all(&self) -> impl Iterator<Item = ClassId> + '_ {
        self.buckets.iter().flatten().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::{ClassTable, qdisc_bucket};
    use quietcore_qdisc::ClassId;

    fn listed(minors: &[u16]) -> Vec<u16> {
        let mut table = ClassTable::default();
        minors.iter().for_each(|minor| table.insert(ClassId::new(1, *minor)));
        table.all().map(ClassId::minor).collect()
    }

    /// Goal: classes are listed as the kernel lists them. Method: trees that it was given, in the order of
    /// their lines, and what `tc class show` said.
    #[test]
    fn classes_in_the_kernels_order() {
        assert_eq!(listed(&[0x1, 0x10, 0x12]), [0x10, 0x1, 0x12]);
        assert_eq!(listed(&[0, 0x1, 0x10, 0x11]), [0, 0x11, 0x1, 0x10]);
        assert_eq!(
            listed(&[0x1, 0x10, 0x20, 0x21, 0x30, 0x31, 0x11, 0x2, 0x40]),
            [0x11, 0x10, 0x1, 0x2, 0x20, 0x31, 0x21, 0x30, 0x40]
        );
    }

    /// Goal: a class that went is not listed. Method: one of two in a bucket.
    #[test]
    fn classes_go() {
        let mut table = ClassTable::default();
        [1, 0x10].into_iter().for_each(|minor| table.insert(ClassId::new(1, minor)));
        table.remove(ClassId::new(1, 1));
        assert_eq!(table.all().collect::<Vec<_>>(), [ClassId::new(1, 0x10)]);
    }

    /// Goal: disciplines are listed as the kernel lists them. Method: handles that it was given, in the order
    /// in which `tc qdisc show` said them.
    #[test]
    fn disciplines_in_the_kernels_order() {
        for listed in [
            &[0x8001, 0x8005, 0x8003, 0x8007, 0x8002, 0x8004, 0x8006, 0x8008][..],
            &[0x2, 0x8, 0x100, 0x10, 0xff, 0x20],
        ] {
            let buckets: Vec<u32> = listed.iter().map(|handle| qdisc_bucket(*handle)).collect();
            assert!(buckets.is_sorted(), "{listed:x?} {buckets:?}");
        }
        assert_eq!(qdisc_bucket(0), 0, "default ones come first");
    }
}
