//! One level of a machine: which CPUs belong together.
//!
//! Invariants: every CPU of the machine is in exactly one group; groups are numbered by their lowest
//! member; the members of a group are in ascending order. Memory is one number per CPU and one per
//! group, however large the groups are, so a machine's levels together are linear in its CPUs.

use crate::{CpuId, CpuSet};
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

/// Stands in `CpuPartition::group` for a CPU that the machine does not have; no group has this number,
/// because there are not more groups than CPUs.
const NO_GROUP: u16 = u16::MAX;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CpuPartition {
    /// By CPU number: the group, or [`NO_GROUP`].
    group: Vec<u16>,
    /// By group: where its members begin in `members`; one more entry for the end of the last.
    start: Vec<u16>,
    members: Vec<CpuId>,
}

impl CpuPartition {
    /// CPUs with equal keys belong together.
    pub(super) fn by_key<K: Ord>(cpus: &CpuSet, key: impl Fn(CpuId) -> K) -> Self {
        let mut numbers: BTreeMap<K, u16> = BTreeMap::new();
        let mut group = vec![NO_GROUP; cpus.last().map_or(0, |last| last.index() + 1)];
        let mut sizes: Vec<u16> = Vec::new();
        for cpu in cpus.iter() {
            let fresh = sizes.len() as u16;
            let number = *numbers.entry(key(cpu)).or_insert(fresh);
            if number == fresh {
                sizes.push(0);
            }
            sizes[usize::from(number)] += 1;
            group[cpu.index()] = number;
        }
        let mut start = vec![0; sizes.len() + 1];
        for (at, size) in sizes.iter().enumerate() {
            start[at + 1] = start[at] + size;
        }
        let mut free = start.clone();
        let mut members = vec![CpuId::default(); cpus.len()];
        for cpu in cpus.iter() {
            let slot = &mut free[usize::from(group[cpu.index()])];
            members[usize::from(*slot)] = cpu;
            *slot += 1;
        }
        Self { group, start, members }
    }

    /// The number of the group of `cpu`; `None` if the machine does not have this CPU.
    pub(super) fn group(&self, cpu: CpuId) -> Option<u16> {
        self.group.get(cpu.index()).copied().filter(|&group| group != NO_GROUP)
    }

    /// The CPUs that belong together with `cpu`, itself among them; none for an unknown CPU. O(1).
    pub(super) fn members(&self, cpu: CpuId) -> &[CpuId] {
        self.group(cpu).map_or(&[], |group| self.group_members(usize::from(group)))
    }

    /// All groups, by their lowest member.
    pub(super) fn groups(&self) -> impl Iterator<Item = &[CpuId]> {
        (0..self.start.len() - 1).map(|group| self.group_members(group))
    }

    fn group_members(&self, group: usize) -> &[CpuId] {
        &self.members[usize::from(self.start[group])..usize::from(self.start[group + 1])]
    }
}

#[cfg(test)]
mod tests {
    use super::CpuPartition;
    use crate::{CpuId, CpuSet};
    use alloc::vec::Vec;

    /// Goal: groups are complete, ascending, numbered by their lowest member, and skip CPUs that are not
    /// there. Method: every third CPU together, on sets with holes.
    #[test]
    fn members_are_those_with_the_same_key() {
        for list in ["0-9", "3,5-8,64-70", "8191", "1"] {
            let cpus: CpuSet = list.parse().unwrap();
            let partition = CpuPartition::by_key(&cpus, |cpu| cpu.index() % 3);
            for cpu in cpus.iter() {
                let expected: Vec<CpuId> =
                    cpus.iter().filter(|other| other.index() % 3 == cpu.index() % 3).collect();
                assert_eq!(partition.members(cpu), expected, "CPU {cpu} of {list}");
            }
            let absent = CpuId::new(2).unwrap();
            assert_eq!(partition.members(absent).is_empty(), !cpus.contains(absent), "CPUs {list}");
            let lowest: Vec<CpuId> = partition.groups().map(|group| group[0]).collect();
            assert!(lowest.is_sorted(), "groups of {list} begin with {lowest:?}");
            assert_eq!(partition.groups().map(<[CpuId]>::len).sum::<usize>(), cpus.len(), "CPUs {list}");
        }
    }
}
