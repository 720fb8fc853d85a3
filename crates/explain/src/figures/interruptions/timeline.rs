//! When things took CPUs away: the time of each row in pieces of the recording, all of one length.
//!
//! The length doubles whenever the recording outgrows the pieces, so memory is bounded. The time of a thing
//! that others were on top of is spread evenly from its begin to its end; what matters to a picture whose
//! pieces are longer than most things.

use crate::figures::report::TimelineReport;
use quietcore_core::{CpuId, Nanos};
use std::collections::BTreeMap;

/// So many pieces at most; an even number.
const PIECES: usize = 360;
/// How long a piece is at first.
const PIECE_NANOS: u64 = 1_000;

/// See the module.
#[derive(Debug)]
pub(super) struct Timeline {
    from: Option<Nanos>,
    piece: u64,
    /// How many pieces the recording has reached.
    reached: usize,
    /// By row: how long it took in each piece; as long as the last one with any.
    rows: Vec<Vec<u64>>,
    /// By CPU: how many marks of lost events are in each piece.
    lost: BTreeMap<CpuId, Vec<u64>>,
}

impl Timeline {
    pub(super) fn new() -> Self {
        Self { from: None, piece: PIECE_NANOS, reached: 0, rows: Vec::new(), lost: BTreeMap::new() }
    }

    /// The recording has an event at this time; returns the piece that holds it.
    pub(super) fn reach(&mut self, at: Nanos) -> usize {
        let from = *self.from.get_or_insert(at);
        while at.since(from).0 / self.piece >= PIECES as u64 {
            self.piece = self.piece.saturating_mul(2);
            self.reached = self.reached.div_ceil(2);
            self.rows.iter_mut().chain(self.lost.values_mut()).for_each(fold);
        }
        let place = (at.since(from).0 / self.piece) as usize;
        self.reached = self.reached.max(place + 1);
        place
    }

    /// Something of a row lasted so long, for `own` of which nothing was on top of it.
    pub(super) fn add(&mut self, row: usize, begin: Nanos, end: Nanos, own: u64) {
        let (first, last) = (self.reach(begin), self.reach(end));
        // The second one may have made the pieces longer.
        let first = first.min(self.reach(begin)).min(last);
        let Some(from) = self.from else { return };
        let all = end.since(begin).0;
        if self.rows.len() <= row {
            self.rows.resize_with(row + 1, Vec::new);
        }
        let mut before = 0;
        for place in first..=last {
            let until = from.0.saturating_add(self.piece.saturating_mul(place as u64 + 1)).min(end.0);
            let share = u128::from(own) * u128::from(until.saturating_sub(begin.0));
            let so_far = if place == last { own } else { (share / u128::from(all.max(1))) as u64 };
            *at(&mut self.rows[row], place) += so_far.saturating_sub(before);
            before = before.max(so_far);
        }
    }

    /// Events of a CPU were lost.
    pub(super) fn lose(&mut self, cpu: CpuId, when: Nanos) {
        let place = self.reach(when);
        *at(self.lost.entry(cpu).or_default(), place) += 1;
    }

    /// How long a row took in each piece.
    pub(super) fn row(&self, row: usize) -> Vec<u64> {
        self.rows.get(row).cloned().unwrap_or_default()
    }

    pub(super) fn report(&self) -> TimelineReport {
        let by_cpu = |(cpu, marks): (&CpuId, &Vec<u64>)| (cpu.index() as u16, marks.clone());
        TimelineReport {
            from_ns: self.from.map_or(0, |from| from.0),
            piece_ns: self.piece,
            pieces: self.reached,
            lost_by_cpu: self.lost.iter().map(by_cpu).collect(),
        }
    }
}

fn at(pieces: &mut Vec<u64>, place: usize) -> &mut u64 {
    if pieces.len() <= place {
        pieces.resize(place + 1, 0);
    }
    &mut pieces[place]
}

/// Two pieces become one.
fn fold(pieces: &mut Vec<u64>) {
    *pieces = pieces.chunks(2).map(|two| two.iter().sum()).collect();
}

#[cfg(test)]
mod tests {
    use super::{PIECE_NANOS, PIECES, Timeline};
    use quietcore_core::{CpuId, Nanos};

    const FROM: u64 = 5_000_000;

    fn at(piece: u64) -> Nanos {
        Nanos(FROM + piece * PIECE_NANOS)
    }

    /// Goal: all time of a thing is in the pieces that it lasted in, by their share. Method: one within a
    /// piece, one over three and a half of them with a fifth of its time, and one without length.
    #[test]
    fn time_is_where_it_passed() {
        let mut timeline = Timeline::new();
        timeline.reach(at(0));
        timeline.add(1, Nanos(FROM + 100), Nanos(FROM + 300), 150);
        assert_eq!(timeline.row(1), [150]);
        timeline.add(0, at(1), Nanos(FROM + 4 * PIECE_NANOS + 500), 700);
        assert_eq!(timeline.row(0), [0, 200, 200, 200, 100]);
        timeline.add(2, at(3), at(3), 0);
        assert_eq!(timeline.row(2), [0, 0, 0, 0]);
        assert_eq!(timeline.row(7), [0_u64; 0]);
    }

    /// Goal: a recording of any length has a bounded number of pieces, and no time is lost when they get
    /// longer. Method: a microsecond out of each four, for as long as 40 times the first pieces, a mark of
    /// lost events in the middle, and a thing that lasts as long as all of it.
    #[test]
    fn pieces_get_longer_with_the_recording() {
        let mut timeline = Timeline::new();
        let pieces = 40 * PIECES as u64;
        timeline.reach(at(0));
        for place in (0..pieces).step_by(4) {
            timeline.add(0, at(place), at(place + 1), PIECE_NANOS);
            if place == pieces / 2 {
                timeline.lose(CpuId::new(3).expect("a small number"), at(place));
            }
        }
        timeline.add(1, at(0), at(pieces), 90_000);
        let report = timeline.report();
        assert_eq!((report.from_ns, report.piece_ns), (FROM, 64 * PIECE_NANOS));
        assert_eq!(report.pieces, 226, "the last one has the end alone");
        let row = timeline.row(0);
        assert_eq!(row, [16 * PIECE_NANOS; 225]);
        let all = timeline.row(1);
        assert_eq!((&all[..225], all[225]), ([400; 225].as_slice(), 0));
        let lost = &report.lost_by_cpu[&3];
        assert_eq!((lost.len(), lost[112]), (113, 1));
    }

    /// Goal: what says that it began before the recording takes its time at the begin of it.
    #[test]
    fn nothing_is_before_the_recording() {
        let mut timeline = Timeline::new();
        timeline.reach(at(10));
        timeline.add(0, at(0), at(12), 1_200);
        assert_eq!(timeline.row(0).iter().sum::<u64>(), 1_200);
        assert_eq!(timeline.report().from_ns, at(10).0);
    }
}
