//! From the kernel's rows to totals.
//!
//! Each watched CPU has two halves of rows. The program writes into one of them; where that is nearly full,
//! the second half, which is empty, takes its place, and what is left in the first is taken over and
//! cleared a collection later, when no program is in the middle of it any more. So a CPU may meet any
//! number of different things, one after another, and none is forgotten: totals are kept here, and never
//! become less.
//!
//! Decided here: when halves change, and what becomes of totals that find no room.

use crate::layout::{BUCKETS, CPUS_MAX, MORE_ROWS, PLAIN_ROWS, ROW_WORDS, RowKey, word};
use crate::memory::Words;
use quietcore_core::CpuId;
use quietcore_trace::DisturbanceSource;
use std::collections::HashMap;

/// Totals of so many keys are kept.
const TOTALS_MAX: usize = 65_536;

/// What was counted of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Begins.
    pub(crate) count: u64,
    /// The time in which nothing else was on top, of those that ended.
    pub(crate) own_ns: u64,
    pub(crate) longest_ns: u64,
    /// The number of a stack of who started it.
    pub(crate) stack: Option<u32>,
    pub(crate) buckets: [u64; BUCKETS],
}

impl Totals {
    const NONE: Self = Self { count: 0, own_ns: 0, longest_ns: 0, stack: None, buckets: [0; BUCKETS] };

    /// Adds what was counted since.
    fn add(&mut self, now: &RowNow, before: &RowNow) {
        self.count += now.count.wrapping_sub(before.count);
        self.own_ns += now.own_ns.wrapping_sub(before.own_ns);
        self.longest_ns = self.longest_ns.max(now.longest_ns);
        self.stack = self.stack.or(now.stack);
        for ((total, now), before) in self.buckets.iter_mut().zip(now.buckets).zip(before.buckets) {
            *total += u64::from(now.wrapping_sub(before));
        }
    }
}

/// A row as it was at one moment.
#[derive(Clone, Debug)]
struct RowNow {
    count: u64,
    own_ns: u64,
    longest_ns: u64,
    stack: Option<u32>,
    buckets: [u32; BUCKETS],
}

impl RowNow {
    const NONE: Self = Self { count: 0, own_ns: 0, longest_ns: 0, stack: None, buckets: [0; BUCKETS] };

    fn read(rows: &Words, first: usize) -> Self {
        let at = |place: usize| rows.get(first + place);
        let mut buckets = [0; BUCKETS];
        for (place, pair) in buckets.chunks_mut(2).enumerate() {
            let both = at(word::BUCKETS + place);
            pair[0] = both as u32;
            pair[1] = (both >> 32) as u32;
        }
        let stack = ((at(word::READY) >> 32) as u32).checked_sub(1);
        Self { count: at(word::COUNT), own_ns: at(word::OWN), longest_ns: at(word::LONGEST), stack, buckets }
    }

    fn is_same(&self, other: &Self) -> bool {
        self.count == other.count && self.buckets == other.buckets
    }
}

/// What is known of a row since it was read.
#[derive(Debug)]
struct KnownRow {
    key: RowKey,
    last: RowNow,
}

/// One watched CPU.
#[derive(Debug)]
struct WatchedCpu {
    cpu: CpuId,
    /// The half that the program writes into.
    half: usize,
    /// The half that was left is to be cleared at the next collection.
    is_changing: bool,
    known: HashMap<usize, KnownRow>,
}

/// The rows of all watched CPUs, and the totals.
#[derive(Debug)]
pub(crate) struct Rows {
    cpus: Vec<WatchedCpu>,
    /// Rows of a half, without those of what finds no room.
    each: usize,
    totals: HashMap<(CpuId, RowKey), Totals>,
    /// How often totals found no room of their own.
    merged: u64,
}

impl Rows {
    /// Nothing yet; `cpus` in the order of their places.
    pub(crate) fn new(cpus: &[CpuId], each: u32) -> Self {
        let watched = |&cpu| WatchedCpu { cpu, half: 0, is_changing: false, known: HashMap::new() };
        Self {
            cpus: cpus.iter().map(watched).collect(),
            each: each as usize,
            totals: HashMap::new(),
            merged: 0,
        }
    }

    /// How many rows there are in the kernel for so many CPUs.
    pub(crate) const fn count(cpus: usize, each: u32) -> usize {
        cpus * 2 * (each as usize + MORE_ROWS)
    }

    /// Adds what was counted since the last time. `rows` are the kernel's, `choices` a word for each CPU.
    pub(crate) fn collect(&mut self, rows: &Words, choices: &Words) {
        debug_assert!(
            choices.count() == CPUS_MAX
                && rows.count() == Self::count(self.cpus.len(), self.each as u32) * ROW_WORDS
        );
        for place in 0..self.cpus.len() {
            let (half, is_changing) = (self.cpus[place].half, self.cpus[place].is_changing);
            if is_changing {
                self.collect_half(rows, place, 1 - half);
                self.clear_half(rows, place, 1 - half);
                self.cpus[place].is_changing = false;
            }
            let used = self.collect_half(rows, place, half);
            if !is_changing && used * 2 > self.each {
                let of_cpu = &mut self.cpus[place];
                (of_cpu.half, of_cpu.is_changing) = (1 - half, true);
                let choice = (place as u64 + 1) | ((of_cpu.half as u64) << 32);
                choices.set(of_cpu.cpu.index(), choice);
            }
        }
    }

    /// The totals, and how often some found no room of their own.
    pub(crate) fn totals(&self) -> (impl Iterator<Item = (&(CpuId, RowKey), &Totals)>, u64) {
        (self.totals.iter(), self.merged)
    }

    /// The rows of a half, by their places among all.
    fn half(&self, place: usize, half: usize) -> core::ops::Range<usize> {
        let each = self.each + MORE_ROWS;
        let first = (place * 2 + half) * each;
        first..first + each
    }

    /// Adds what a half has; returns how many of its rows are in use.
    fn collect_half(&mut self, rows: &Words, place: usize, half: usize) -> usize {
        let mut used = 0;
        let range = self.half(place, half);
        for (in_half, index) in range.enumerate() {
            let first = index * ROW_WORDS;
            // In use, and its key is whole.
            if rows.get(first + word::READY) as u32 == 0 {
                continue;
            }
            let others = in_half.checked_sub(self.each + PLAIN_ROWS);
            used += usize::from(in_half < self.each);
            let now = RowNow::read(rows, first);
            let cpu = self.cpus[place].cpu;
            let known = match self.cpus[place].known.get_mut(&index) {
                Some(known) => known,
                None => {
                    let key = match others {
                        Some(source) => Some(RowKey::others(DisturbanceSource::ALL[source])),
                        None => RowKey::of(&core::array::from_fn(|at| rows.get(first + word::KEY + at))),
                    };
                    let Some(key) = key else { continue };
                    let fresh = KnownRow { key, last: RowNow::NONE };
                    self.cpus[place].known.entry(index).or_insert(fresh)
                }
            };
            if known.last.is_same(&now) {
                continue;
            }
            let (key, before) = (known.key, core::mem::replace(&mut known.last, now.clone()));
            self.add((cpu, key), &now, &before);
        }
        used
    }

    fn add(&mut self, key: (CpuId, RowKey), now: &RowNow, before: &RowNow) {
        let (cpu, of) = key;
        let has_room =
            |key: &RowKey| self.totals.len() < TOTALS_MAX || self.totals.contains_key(&(cpu, *key));
        let plain = RowKey { cause: None, ..of };
        let found = [of, plain].into_iter().find(has_room);
        self.merged += u64::from(found != Some(of));
        let key = (cpu, found.unwrap_or(RowKey::others(of.thing.source)));
        self.totals.entry(key).or_insert(Totals::NONE).add(now, before);
    }

    /// Makes a half that no program writes into any more empty.
    fn clear_half(&mut self, rows: &Words, place: usize, half: usize) {
        let range = self.half(place, half);
        for index in range.clone() {
            // The hash last: it says that the row is free.
            (word::HASH..ROW_WORDS).rev().for_each(|word| rows.set(index * ROW_WORDS + word, 0));
        }
        self.cpus[place].known.retain(|index, _| !range.contains(index));
    }
}

#[cfg(test)]
mod tests {
    use super::{Rows, Totals};
    use crate::layout::{
        BUCKETS, CPUS_MAX, MORE_ROWS, PLAIN_ROWS, ROW_WORDS, RowKey, SOURCES, WATCHED_MAX, word,
    };
    use crate::memory::Words;
    use quietcore_core::CpuId;
    use quietcore_trace::DisturbanceSource;

    const EACH: u32 = 64;

    /// The memory that a program in the kernel would write, and its reader.
    struct Kernel {
        rows: Words,
        choices: Words,
        reader: Rows,
        cpus: Vec<CpuId>,
    }

    impl Kernel {
        fn of(cpus: &[u64]) -> Self {
            let cpus: Vec<CpuId> = cpus.iter().map(|cpu| CpuId::new(*cpu).expect("a small number")).collect();
            Self {
                rows: Words::own(Rows::count(cpus.len(), EACH) * ROW_WORDS),
                choices: Words::own(CPUS_MAX),
                reader: Rows::new(&cpus, EACH),
                cpus,
            }
        }

        /// What the program does where `function`, a timer's, took `ns`: in row `place` of the half that is
        /// in use.
        fn count(&self, cpu: usize, place: usize, function: u64, ns: u64) {
            let half = (self.choices.get(self.cpus[cpu].index()) >> 32) as usize;
            let index = (cpu * 2 + half) * (EACH as usize + MORE_ROWS) + place;
            let (rows, first) = (&self.rows, index * ROW_WORDS);
            rows.set(first + word::KEY, DisturbanceSource::Timer as u64);
            rows.set(first + word::KEY + 1, function);
            rows.set(first + word::HASH, function + 1);
            rows.set(first + word::READY, 1);
            rows.add(first + word::COUNT, 1);
            rows.add(first + word::OWN, ns);
            rows.set(first + word::LONGEST, rows.get(first + word::LONGEST).max(ns));
            let bucket = ns.ilog2() as usize;
            rows.add(first + word::BUCKETS + bucket / 2, 1 << (bucket % 2 * 32));
        }

        fn collect(&mut self) {
            self.reader.collect(&self.rows, &self.choices);
        }

        fn total(&self, cpu: usize, function: u64) -> Option<Totals> {
            let is_it = |(of, key): &(CpuId, RowKey)| *of == self.cpus[cpu] && key.thing.function == function;
            self.reader.totals().0.find(|(key, _)| is_it(key)).map(|(_, totals)| totals.clone())
        }
    }

    /// Goal: totals are what was counted, by CPU, and no collection counts anything twice. Method: two CPUs,
    /// some collections.
    #[test]
    fn totals_are_what_was_counted() {
        let mut kernel = Kernel::of(&[3, 9]);
        for round in 1..=3 {
            kernel.count(0, 5, 70, 1_000);
            kernel.count(1, 6, 70, 3_000);
            kernel.count(1, 6, 70, 5_000);
            kernel.collect();
            kernel.collect();
            let first = kernel.total(0, 70).expect("it was counted");
            assert_eq!((first.count, first.own_ns, first.longest_ns), (round, 1_000 * round, 1_000));
            let second = kernel.total(1, 70).expect("it was counted");
            assert_eq!((second.count, second.own_ns, second.longest_ns), (2 * round, 8_000 * round, 5_000));
            assert_eq!((second.buckets[11], second.buckets[12]), (round, round));
            assert_eq!(second.buckets.iter().sum::<u64>(), second.count);
        }
        assert!(kernel.total(0, 71).is_none());
        // A program is in the middle of making a row.
        kernel.rows.set(9 * ROW_WORDS + word::HASH, 72);
        kernel.rows.set(9 * ROW_WORDS + word::COUNT, 1);
        kernel.collect();
        assert_eq!(kernel.reader.totals().0.count(), 2);
    }

    /// Goal: however many different things come one after the other, none is forgotten; a half that was left
    /// is empty before it is used again, and what a program still wrote there while it was left is counted.
    /// Method: more things than both halves hold, each once in the half in use, with a late one in the half
    /// that was left.
    #[test]
    fn totals_outlive_the_rows_of_the_kernel() {
        let mut kernel = Kernel::of(&[2]);
        let each = EACH as usize;
        let (mut function, mut changes, mut half) = (1_000, 0, 0);
        for _ in 0..5 {
            for place in 0..each * 7 / 8 {
                kernel.count(0, place, function, 100);
                function += 1;
            }
            // A program is in the middle of the old half while the second one takes its place.
            let late = function - 1;
            kernel.collect();
            let now = kernel.choices.get(2) >> 32;
            changes += u32::from(now != half);
            kernel.choices.set(2, 1 | half << 32);
            kernel.count(0, each * 7 / 8 - 1, late, 100);
            kernel.choices.set(2, 1 | now << 32);
            kernel.collect();
            half = now;
            assert_eq!(kernel.total(0, late).map(|total| total.count), Some(2));
        }
        assert_eq!(changes, 5);
        let counts =
            (1_000..function).map(|function| kernel.total(0, function).expect("it was counted").count);
        assert_eq!(counts.sum::<u64>(), function - 1_000 + 5);
        let hashes =
            (0..kernel.rows.count()).step_by(ROW_WORDS).map(|first| kernel.rows.get(first + word::HASH));
        assert_eq!(hashes.filter(|hash| *hash != 0).count(), 0, "both halves were left");
    }

    /// Goal: what found no row of its own is counted without its cause, or by its kind. Method: the rows
    /// behind the others.
    #[test]
    fn what_finds_no_room_is_counted_by_its_kind() {
        let mut kernel = Kernel::of(&[0]);
        let each = EACH as usize;
        kernel.count(0, each, 70, 10);
        kernel.count(0, each + PLAIN_ROWS + DisturbanceSource::Softirq as usize, 0, 10);
        kernel.collect();
        assert_eq!(kernel.total(0, 70).map(|total| total.count), Some(1));
        let others = RowKey::others(DisturbanceSource::Softirq);
        let (totals, merged) = kernel.reader.totals();
        let counts: Vec<u64> =
            totals.filter(|((_, key), _)| *key == others).map(|(_, totals)| totals.count).collect();
        assert_eq!((counts, merged), (vec![1], 0));
    }

    /// Goal: the words here are those of the program. Method: the sizes and numbers that its header says.
    #[test]
    fn the_header_says_the_same() {
        let header = include_str!("../bpf/layout.h");
        for (name, value) in [
            ("CPUS_MAX", CPUS_MAX),
            ("WATCHED_MAX", WATCHED_MAX),
            ("SOURCES", SOURCES),
            ("PLAIN_ROWS", PLAIN_ROWS),
            ("BUCKETS", BUCKETS),
            ("NAME", crate::layout::NAME),
        ] {
            assert!(header.contains(&format!("\t{name} = {value},\n")), "{name}");
        }
        let order =
            DisturbanceSource::ALL.map(|source| format!("\t{},\n", source.name().to_uppercase())).concat();
        assert!(header.contains(&order), "{order}");
        // Words: the hash, the key, three counts, two halves, the buckets in pairs.
        assert_eq!(ROW_WORDS, word::BUCKETS + BUCKETS / 2);
        assert_eq!((word::COUNT, word::READY + 1), (word::KEY + 10, word::BUCKETS));
    }
}
