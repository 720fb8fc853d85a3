//! What a wheel must do, from the definitions: a list of timers, a search for each answer.
//!
//! No bitmaps, no links, no bit tricks: levels by trying them, expiries by division. Arithmetic is in
//! `u128` above an offset, so nothing wraps here where the wheel must wrap.

use quietcore_wheel::{Precision, Tick};
use std::collections::VecDeque;

/// One pending timer.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub(crate) id: usize,
    pub(crate) expires: u128,
    pub(crate) precision: Precision,
    pub(crate) level: usize,
    /// When its bucket is due.
    pub(crate) due: u128,
    /// Later insertions are larger.
    sequence: u64,
}

/// Measures of a wheel, as KERNEL-like tables give them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measures {
    pub(crate) levels: usize,
    pub(crate) buckets: u128,
    /// How much coarser each level is.
    pub(crate) ratio: u128,
}

impl Measures {
    pub(crate) fn granularity(self, level: usize) -> u128 {
        self.ratio.pow(level as u32)
    }

    pub(crate) fn start(self, level: usize) -> u128 {
        if level == 0 { 0 } else { (self.buckets - 1) * self.granularity(level - 1) }
    }

    pub(crate) fn cutoff(self) -> u128 {
        (self.buckets - 1) * self.granularity(self.levels - 1)
    }

    /// Level and due time of a timer.
    pub(crate) fn place(self, clock: u128, expires: u128, precision: Precision) -> (usize, u128) {
        if expires < clock {
            return (0, clock);
        }
        let clipped = clock + self.cutoff() - self.granularity(self.levels - 1);
        let expires = if expires - clock >= self.cutoff() { clipped } else { expires };
        let level = (0..self.levels).rev().find(|level| expires - clock >= self.start(*level));
        let level = level.expect("level 0 starts at 0");
        let granule = self.granularity(level);
        let due = match precision {
            Precision::Coarse => expires / granule * granule + granule,
            Precision::Tick => (expires + 1) / granule * granule,
        };
        (level, due)
    }

    /// The bucket that is due at `due`: its position goes round with the level.
    fn bucket(self, level: usize, due: u128) -> (usize, u128) {
        (level, due / self.granularity(level) % self.buckets)
    }
}

/// The list. Times are ticks plus [`Oracle::OFFSET`], a multiple of 2^64, so that they never wrap.
#[derive(Clone, Debug)]
pub(crate) struct Oracle {
    pub(crate) measures: Measures,
    /// In buckets.
    pending: Vec<Pending>,
    /// Out of their buckets, not yet handed out: in the order of running.
    collected: VecDeque<Pending>,
    /// The wheel's clock.
    pub(crate) clock: u128,
    sequence: u64,
}

impl Oracle {
    /// So far from zero that the past of any test has room below.
    pub(crate) const OFFSET: u128 = 1 << 64;

    pub(crate) fn new(measures: Measures, clock: u128) -> Self {
        Self { measures, pending: vec![], collected: VecDeque::new(), clock, sequence: 0 }
    }

    pub(crate) fn find(&self, id: usize) -> Option<&Pending> {
        self.pending.iter().chain(&self.collected).find(|timer| timer.id == id)
    }

    pub(crate) fn first_due(&self) -> Option<u128> {
        self.pending.iter().map(|timer| timer.due).min()
    }

    pub(crate) fn has_collected(&self) -> bool {
        !self.collected.is_empty()
    }

    /// Arms, or moves; a move into the same bucket changes nothing but the wish, unless timers wait to be
    /// handed out (this one may be among them).
    pub(crate) fn arm(&mut self, id: usize, expires: u128, precision: Precision) {
        let (level, due) = self.measures.place(self.clock, expires, precision);
        if self.find(id).is_some_and(|old| old.expires == expires) {
            return;
        }
        let bucket = self.measures.bucket(level, due);
        let waiting = self.has_collected();
        if let Some(old) = self.pending.iter_mut().find(|timer| timer.id == id)
            && !waiting
            && self.measures.bucket(old.level, old.due) == bucket
        {
            old.expires = expires;
            return;
        }
        self.cancel(id);
        self.sequence += 1;
        self.pending.push(Pending { id, expires, precision, level, due, sequence: self.sequence });
    }

    pub(crate) fn cancel(&mut self, id: usize) -> bool {
        let was_pending = self.find(id).is_some();
        self.pending.retain(|timer| timer.id != id);
        self.collected.retain(|timer| timer.id != id);
        was_pending
    }

    /// Takes out what is to be handed out next: by tick, then from the coarsest level to the finest, then
    /// the last inserted first. Timers of tick precision that are not due yet move on instead.
    pub(crate) fn next_due(&mut self, now: u128) -> Option<Pending> {
        loop {
            while let Some(timer) = self.collected.pop_front() {
                if timer.precision == Precision::Coarse || timer.expires + 1 < self.clock {
                    return Some(timer);
                }
                self.arm(timer.id, timer.expires, timer.precision);
            }
            let due = self.first_due().filter(|due| *due <= now)?;
            let mut collected: Vec<_> = self.pending.extract_if(.., |timer| timer.due == due).collect();
            collected.sort_by_key(|timer| std::cmp::Reverse((timer.level, timer.sequence)));
            self.collected = collected.into();
            self.clock = due + 1;
        }
    }
}

/// The tick of an oracle's time.
pub(crate) fn tick(time: u128) -> Tick {
    Tick(time as u64)
}
