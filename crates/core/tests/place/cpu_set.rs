//! A [`CpuSet`] against a [`BTreeSet`] of numbers.

use crate::machines::{cpu, set};
use proptest::prelude::*;
use quietcore_core::{CPU_LIMIT, CpuId, CpuSet};
use std::collections::BTreeSet;

const LIMIT: usize = 200;

fn numbers(set: &CpuSet) -> BTreeSet<usize> {
    set.iter().map(CpuId::index).collect()
}

proptest! {
    /// Goal: insert and remove, and equal sets are equal values. Method: random steps on both.
    #[test]
    fn steps_agree(steps in prop::collection::vec((any::<bool>(), 0..LIMIT), 0..60)) {
        let (mut set, mut oracle) = (CpuSet::new(), BTreeSet::new());
        for (insert, number) in steps {
            let (found, expected) = if insert {
                (set.insert(cpu(number)), oracle.insert(number))
            } else {
                (set.remove(cpu(number)), oracle.remove(&number))
            };
            prop_assert_eq!(found, expected, "{} {}", if insert { "insert" } else { "remove" }, number);
            prop_assert_eq!(&set, &oracle.iter().map(|&number| cpu(number)).collect::<CpuSet>());
            prop_assert_eq!(set.is_empty(), oracle.is_empty());
            prop_assert!(numbers(&set).iter().eq(&oracle) && set.len() == oracle.len());
        }
    }

    /// Goal: first and last. Method: random sets, the empty one and the full one.
    #[test]
    fn neighbours_agree(set in set(LIMIT)) {
        let oracle = numbers(&set);
        prop_assert_eq!(set.first().map(CpuId::index), oracle.first().copied());
        prop_assert_eq!(set.last().map(CpuId::index), oracle.last().copied());
    }

    /// Goal: the relations of two sets. Method: pairs of equal and of different lengths.
    #[test]
    fn relations_agree(a in set(LIMIT), b in set(130), c in set(LIMIT)) {
        for (x, y) in [(&a, &b), (&b, &a), (&a, &c), (&a, &a)] {
            let (xs, ys) = (numbers(x), numbers(y));
            prop_assert_eq!(x.is_subset(y), xs.is_subset(&ys));
            prop_assert_eq!(x.iter_common(y).collect::<CpuSet>(), x.intersection(y));
            prop_assert!(xs.intersection(&ys).copied().eq(x.iter_common(y).map(CpuId::index)));
            prop_assert!(x.intersection(y).is_subset(x) && x.is_subset(&x.union(y)));
        }
    }

    /// Goal: a range has its CPUs, by constructor and as text. Method: any start and count, over the limit
    /// too.
    #[test]
    fn ranges_agree(first in 0_u16..CPU_LIMIT, count in 0_u16..400) {
        let start = cpu(usize::from(first));
        let range = CpuSet::range(start, count);
        prop_assert_eq!(range.is_ok(), count == 0 || first + count <= CPU_LIMIT);
        if let (Ok(range), 1..) = (range, count) {
            let last = first + count - 1;
            prop_assert!(numbers(&range).into_iter().eq(usize::from(first)..=usize::from(last)));
            prop_assert_eq!(format!("{first}-{last}").parse(), Ok(range.clone()));
            prop_assert_eq!(format!("{first}-{last}:3/3").parse(), Ok(range));
        }
    }
}
