//! From the kernel's rows to totals.
//!
//! Each watched CPU has two halves of rows. The program writes into one of them; where that one is nearly full, the other
//! one, which is empty, takes its place, and what is left in the first is taken over and cleared a collection
//! later, when no program is in the middle of it any more. So a CPU may meet any number of different things, one after
//! the other, and none is forgotten: totals are kept here, and never become less.
//!
//! Decided here: when halves change, and what becomes of totals that find no room.

use crate::layout::{BUCKETS, CPUS_MAX, KEY_WORDS, ROW_WORDS, RowKey, SOURCES, Source, word};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use quietcore_core::CpuId;
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

    fn read(row: &[AtomicU64]) -> Self {
        let at = |place: usize| row[place].load(Relaxed);
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
    /// The other one is to be cleared at the next collection.
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
        cpus * 2 * (each as usize + SOURCES)
    }

    /// Adds what was counted since the last time. `rows` are the kernel's, `choices` a word for each CPU.
    pub(crate) fn collect(&mut self, rows: &[AtomicU64], choices: &[AtomicU64]) {
        debug_assert!(
            choices.len() == CPUS_MAX
                && rows.len() == Self::count(self.cpus.len(), self.each as u32) * ROW_WORDS
        );
        for place in 0..self.cpus.len() {
            let (half, is_changing) = (self.cpus[place].half, self.cpus[place].is_changing);
            if is_changing {
                self.collect_half(rows, place, 1 - half);
                self.clear_half(rows, place, 1 - half);
                self.cpus[place].is_changing = false;
            }
            let used = self.collect_half(rows, place, half);
            if !is_changing && used * 4 > self.each * 3 {
                let of_cpu = &mut self.cpus[place];
                (of_cpu.half, of_cpu.is_changing) = (1 - half, true);
                let choice = place as u64 + 1 | (of_cpu.half as u64) << 32;
                choices[of_cpu.cpu.index()].store(choice, Relaxed);
            }
        }
    }

    /// The totals, and how often some found no room of their own.
    pub(crate) fn totals(&self) -> (impl Iterator<Item = (&(CpuId, RowKey), &Totals)>, u64) {
        (self.totals.iter(), self.merged)
    }

    /// The rows of a half, by their places among all.
    fn half(&self, place: usize, half: usize) -> core::ops::Range<usize> {
        let each = self.each + SOURCES;
        let first = (place * 2 + half) * each;
        first..first + each
    }

    /// Adds what a half has; returns how many of its rows are in use.
    fn collect_half(&mut self, rows: &[AtomicU64], place: usize, half: usize) -> usize {
        let mut used = 0;
        let range = self.half(place, half);
        for (in_half, index) in range.enumerate() {
            let row = &rows[index * ROW_WORDS..(index + 1) * ROW_WORDS];
            // In use, and its key is whole.
            if row[word::HASH].load(Relaxed) == 0 || row[word::READY].load(Relaxed) as u32 == 0 {
                continue;
            }
            let is_others = in_half >= self.each;
            used += usize::from(!is_others);
            let now = RowNow::read(row);
            let cpu = self.cpus[place].cpu;
            let known = match self.cpus[place].known.get_mut(&index) {
                Some(known) => known,
                None => {
                    let key = if is_others {
                        Some(RowKey::others(Source::ALL[in_half - self.each]))
                    } else {
                        RowKey::of(&core::array::from_fn::<_, KEY_WORDS, _>(|at| {
                            row[word::KEY + at].load(Relaxed)
                        }))
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
        let is_full = self.totals.len() >= TOTALS_MAX && !self.totals.contains_key(&key);
        let (cpu, of) = key;
        let key = if is_full { (cpu, RowKey::others(of.thing.source)) } else { key };
        self.merged += u64::from(is_full);
        self.totals.entry(key).or_insert(Totals::NONE).add(now, before);
    }

    /// Makes a half that no program writes into any more empty.
    fn clear_half(&mut self, rows: &[AtomicU64], place: usize, half: usize) {
        let range = self.half(place, half);
        for index in range.clone() {
            let row = &rows[index * ROW_WORDS..(index + 1) * ROW_WORDS];
            row.iter().rev().for_each(|word| word.store(0, Relaxed));
        }
        self.cpus[place].known.retain(|index, _| !range.contains(index));
    }
}
