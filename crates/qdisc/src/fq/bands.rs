//! Whose turn it is: bands take turns by weight, and in a band new flows go before old ones.
//!
//! Invariants: a flow is in at most one list; a band's credit is at most its weight.

use alloc::collections::VecDeque;

/// How many bands there are.
pub(super) const BANDS: usize = 3;

/// Which list of a band a flow is at the head of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlowList {
    /// Flows that have had no turn since they had nothing.
    New,
    /// All others.
    Old,
}

/// Whose turn it is: `flow` is at the head of `list` of `band`.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlowTurn {
    pub(super) band: usize,
    pub(super) list: FlowList,
    pub(super) flow: usize,
}

#[derive(Debug)]
struct Band {
    /// Bytes that it may send before others have their turn; in debt by at most what one packet has.
    credit: i64,
    weight: i64,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
}

impl Band {
    fn list(&mut self, list: FlowList) -> &mut VecDeque<usize> {
        match list {
            FlowList::New => &mut self.new,
            FlowList::Old => &mut self.old,
        }
    }

    fn head(&self) -> Option<(FlowList, usize)> {
        let new = self.new.front().map(|flow| (FlowList::New, *flow));
        new.or_else(|| self.old.front().map(|flow| (FlowList::Old, *flow)))
    }
}

/// All bands.
#[derive(Debug)]
pub(super) struct Bands {
    bands: [Band; BANDS],
    present: usize,
}

impl Bands {
    /// Empty ones, each with the credit of a whole turn.
    pub(super) fn new(weights: [u32; BANDS]) -> Self {
        let band = |weight: u32| {
            let weight = i64::from(weight);
            Band { credit: weight, weight, new: VecDeque::new(), old: VecDeque::new() }
        };
        Self { bands: weights.map(band), present: 0 }
    }

    /// Other weights; no band has more credit than its weight.
    pub(super) fn weigh(&mut self, weights: [u32; BANDS]) {
        for (band, weight) in self.bands.iter_mut().zip(weights) {
            band.weight = i64::from(weight);
            band.credit = band.credit.min(band.weight);
        }
    }

    /// The flow whose turn it is: of the present band while that has credit, else of the next one that has,
    /// once its turn gave it some. `None` when all have credit and no flows.
    pub(super) fn next(&mut self) -> Option<FlowTurn> {
        let mut without_flows = 0;
        loop {
            let band = &self.bands[self.present];
            if band.credit > 0
                && let Some((list, flow)) = band.head()
            {
                return Some(FlowTurn { band: self.present, list, flow });
            }
            if without_flows == BANDS {
                return None;
            }
            self.present = (self.present + 1) % BANDS;
            let band = &mut self.bands[self.present];
            band.credit = (band.credit + band.weight).min(band.weight);
            without_flows = if band.credit > 0 { without_flows + 1 } else { 0 };
        }
    }

    /// A flow that had nothing has something.
    pub(super) fn add_new(&mut self, band: usize, flow: usize) {
        self.bands[band].new.push_back(flow);
    }

    /// A flow that waited for its time is due.
    pub(super) fn add_old(&mut self, band: usize, flow: usize) {
        self.bands[band].old.push_back(flow);
    }

    /// Whose turn it was is behind all that had one.
    pub(super) fn rotate(&mut self, turn: FlowTurn) {
        self.remove(turn);
        self.add_old(turn.band, turn.flow);
    }

    /// Whose turn it was is in no list.
    pub(super) fn remove(&mut self, turn: FlowTurn) {
        let removed = self.bands[turn.band].list(turn.list).pop_front();
        debug_assert_eq!(removed, Some(turn.flow), "only the head has its turn");
    }

    /// Whether the band has flows that had a turn.
    pub(super) fn has_old(&self, band: usize) -> bool {
        !self.bands[band].old.is_empty()
    }

    /// So many bytes of the band were sent.
    pub(super) fn charge(&mut self, band: usize, bytes: u32) {
        self.bands[band].credit -= i64::from(bytes);
    }
}
