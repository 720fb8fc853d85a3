//! What every CPU's highest queued priority is, for searchers without a lock.
//!
//! One slot per priority: how many CPUs are in it, and which. A CPU moves by joining its new slot before it
//! leaves the old one, and a searcher goes from low to high: so it may see a CPU twice, but while the CPU's
//! priority rises never not at all. It reads that the CPU has left a slot only together with what the CPU did
//! before, which is joining a higher one. While a priority falls a searcher may miss the CPU; the CPU then
//! pulls. Model: `models`, `one_that_rises_is_found`.
//!
//! Absent: which of several CPUs to take (`lowest.rs`). Source: Linux 6.12, kernel/sched/cpupri.c.
//! Deviation: leaving is a release and reading an acquire, in place of three fences.

use super::Priority;
use crate::sync::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use crate::{CPU_LIMIT, CpuId, CpuSet};
use alloc::boxed::Box;

/// The highest priority that is queued on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CpuPriority {
    /// It is offline or isolated: no search finds it.
    Absent,
    /// No real-time task.
    Normal,
    /// A real-time task of this priority.
    Realtime(Priority),
    /// Something that no real-time task may wait behind: the lane does not turn, or is about to leave.
    Higher,
}

impl CpuPriority {
    /// In which slot such a CPU is.
    const fn slot(self) -> Option<usize> {
        match self {
            Self::Absent => None,
            Self::Normal => Some(0),
            Self::Realtime(priority) => Some(priority.get() as usize),
            Self::Higher => Some(SLOTS - 1),
        }
    }

    fn from_word(word: u8) -> Self {
        match usize::from(word) {
            0 => Self::Absent,
            1 => Self::Normal,
            SLOTS => Self::Higher,
            slot => Self::Realtime(Priority::new(slot as u8 - 1).expect("between the two")),
        }
    }

    fn to_word(self) -> u8 {
        self.slot().map_or(0, |slot| slot as u8 + 1)
    }
}

/// Normal, 99 priorities, higher.
const SLOTS: usize = 101;

#[derive(Debug)]
struct Slot {
    /// CPUs in it; a hint that saves looking at the words.
    count: AtomicU32,
    cpus: Box<[AtomicU64]>,
}

/// The slots of a machine. 101 of them, each with a bit per CPU.
#[derive(Debug)]
pub struct CpuPriorities {
    slots: Box<[Slot]>,
    /// The slot of each CPU, one more than its number; 0: none. Written by who holds the CPU's queue.
    present: Box<[AtomicU8]>,
}

impl CpuPriorities {
    /// For CPUs 0 to `cpu_count` - 1, all of them absent.
    ///
    /// # Panics
    /// When there are more than [`CPU_LIMIT`] CPUs.
    #[must_use]
    pub fn new(cpu_count: u16) -> Self {
        assert!(cpu_count <= CPU_LIMIT, "a machine has no more than {CPU_LIMIT} CPUs");
        Self::with_slots(cpu_count, SLOTS)
    }

    /// Models explore less with fewer of them.
    fn with_slots(cpu_count: u16, slots: usize) -> Self {
        let words = usize::from(cpu_count).div_ceil(64);
        let slot =
            |_| Slot { count: AtomicU32::new(0), cpus: (0..words).map(|_| AtomicU64::new(0)).collect() };
        Self {
            slots: (0..slots).map(slot).collect(),
            present: (0..cpu_count).map(|_| AtomicU8::new(0)).collect(),
        }
    }

    /// What `cpu` has now; a hint for all but who holds its queue.
    ///
    /// # Panics
    /// When there is no such CPU.
    #[must_use]
    pub fn of(&self, cpu: CpuId) -> CpuPriority {
        // Relaxed: the holder of the queue reads its own write, any other thread looks again under its lock.
        CpuPriority::from_word(self.present[cpu.index()].load(Ordering::Relaxed))
    }

    /// `cpu` has `priority` from now on. By the holder of that CPU's queue; one at a time for each CPU. Cost:
    /// nothing if that is no news; else four read-modify-writes.
    ///
    /// # Panics
    /// When there is no such CPU.
    pub fn set(&self, cpu: CpuId, priority: CpuPriority) {
        let before = self.of(cpu);
        if before == priority {
            return;
        }
        let (word, bit) = (cpu.index() / 64, 1 << (cpu.index() % 64));
        if let Some(slot) = priority.slot() {
            let slot = &self.slots[slot];
            // Relaxed: who reads that this CPU has left its old slot sees these, see below.
            slot.cpus[word].fetch_or(bit, Ordering::Relaxed);
            slot.count.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(slot) = before.slot() {
            let slot = &self.slots[slot];
            // Release, both: pair with Acquire in `SlotView::iter` and in `find_map`: a searcher that reads
            // that this CPU is not here finds it in its new slot.
            slot.count.fetch_sub(1, Ordering::Release);
            slot.cpus[word].fetch_and(!bit, Ordering::Release);
        }
        // Relaxed: see `of`.
        self.present[cpu.index()].store(priority.to_word(), Ordering::Relaxed);
    }

    /// Goes through the slots below `priority`, the lowest first, until `look` finds something in one.
    /// Cost: a load per slot, and what `look` does in those that are not empty.
    pub fn find_map<R>(&self, priority: Priority, look: impl FnMut(SlotView<'_>) -> Option<R>) -> Option<R> {
        let lower = &self.slots[..usize::from(priority.get())];
        // Acquire: pairs with Release in `set`.
        let taken = lower.iter().filter(|slot| slot.count.load(Ordering::Acquire) != 0);
        taken.map(SlotView).find_map(look)
    }
}

/// The CPUs of one slot, as they are when they are asked for.
#[derive(Clone, Copy, Debug)]
pub struct SlotView<'a>(&'a Slot);

impl SlotView<'_> {
    /// Those that are in `among`, too, in ascending order.
    pub fn iter<'a>(&'a self, among: &'a CpuSet) -> impl Iterator<Item = CpuId> + 'a {
        among.iter().filter(|cpu| self.contains(*cpu))
    }

    /// Whether `cpu` is in it.
    #[must_use]
    pub fn contains(&self, cpu: CpuId) -> bool {
        let word = self.0.cpus.get(cpu.index() / 64);
        // Acquire: pairs with Release in `CpuPriorities::set`.
        word.is_some_and(|word| word.load(Ordering::Acquire) >> (cpu.index() % 64) & 1 != 0)
    }
}

#[cfg(all(test, loom))]
mod models;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{CpuPriorities, CpuPriority, SLOTS};
    use crate::realtime::Priority;
    use crate::{CpuId, CpuSet};
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn priority(number: u8) -> CpuPriority {
        match number {
            0 => CpuPriority::Absent,
            1 => CpuPriority::Normal,
            101 => CpuPriority::Higher,
            number => CpuPriority::Realtime(Priority::new(number - 1).expect("1 to 99")),
        }
    }

    /// Goal: words and slots are one to one, and in the order of priorities. Method: all of them.
    #[test]
    fn words() {
        for number in 0..=SLOTS as u8 {
            let one = priority(number);
            assert_eq!((one.to_word(), CpuPriority::from_word(number)), (number, one));
            assert!(number == 0 || priority(number - 1) < one);
        }
    }

    proptest! {
        /// Goal: a search finds the CPUs of the lowest slot that has any below the task's. Method: a sorted
        /// list of what was set, over CPUs in two words.
        #[test]
        fn the_lowest_slot_is_found(
            sets in prop::collection::vec((0_u64..100, 0_u8..=101), 0..60),
            task in 1_u8..=99,
        ) {
            let priorities = CpuPriorities::new(100);
            let mut oracle = [CpuPriority::Absent; 100];
            for (cpu, number) in sets {
                priorities.set(CpuId::new(cpu).expect("small"), priority(number));
                oracle[cpu as usize] = priority(number);
            }
            let task = Priority::new(task).expect("1 to 99");
            let below = |cpu: &usize| {
                oracle[*cpu] != CpuPriority::Absent && oracle[*cpu] < CpuPriority::Realtime(task)
            };
            let lowest = (0..100).filter(below).map(|cpu| oracle[cpu]).min();
            let expected: Vec<usize> = (0..100).filter(|cpu| Some(oracle[*cpu]) == lowest).collect();
            let all = CpuSet::range(CpuId::default(), 100).expect("small");
            let found = priorities.find_map(task, |slot| Some(slot.iter(&all).map(CpuId::index).collect()));
            prop_assert_eq!(found, lowest.map(|_| expected));
        }
    }
}
