//! Timers that all threads arm and cancel at once.
//!
//! No thread can say what a single run belongs to; but when all is over the sums must agree: armed = ran +
//! cancelled + superseded. Each thread counts what its own calls were told.

use crate::ledger::{Fault, Tally};
use crate::scene::{Load, Scene, after};
use core::time::Duration;
use quietcore_live::{Machine, Nanos, Precision, TimerHandle, TimerOptions};
use std::sync::{Arc, Mutex, PoisonError};

/// How many timers.
const PIECES: usize = 4;

/// The longest delay: short, so that runs and arms meet.
const DELAY_MAX: u64 = 1_500_000;

/// One timer, and what became of it so far.
struct Piece {
    timer: TimerHandle,
    sums: Arc<Mutex<Tally>>,
}

/// The timers of all threads; a clone for each.
#[derive(Clone)]
pub(crate) struct Shared(Arc<[Piece]>);

impl Piece {
    fn new(machine: &'static Machine, precision: Precision) -> Self {
        let sums = Arc::new(Mutex::new(Tally::default()));
        let log = Arc::clone(&sums);
        let timer = machine.timer(TimerOptions::new().precision(precision), move |run| {
            let now = machine.now();
            log.lock().unwrap_or_else(PoisonError::into_inner).ran(run.scheduled(), now);
        });
        Self { timer, sums }
    }

    fn count(&self, change: &Tally) {
        self.sums.lock().unwrap_or_else(PoisonError::into_inner).merge(change);
    }
}

impl Shared {
    pub(crate) fn new(machine: &'static Machine) -> Self {
        let precisions = [Precision::Coarse, Precision::Tick, Precision::Exact];
        Self((0..PIECES).map(|piece| Piece::new(machine, precisions[piece % 3])).collect())
    }

    /// When no thread acts any more: ends all of them, and holds the sums against each other.
    pub(crate) fn settle(&self) -> Tally {
        let mut all = Tally::default();
        for piece in &*self.0 {
            let was_pending = piece.timer.cancel_sync().expect("this thread is in no callback");
            let mut sums = core::mem::take(&mut *piece.sums.lock().unwrap_or_else(PoisonError::into_inner));
            sums.cancelled += u64::from(was_pending);
            let ended = sums.ran + sums.cancelled + sums.superseded;
            let (lost, extra) = (sums.armed.saturating_sub(ended), ended.saturating_sub(sums.armed));
            sums.fault(Fault::Lost, lost, "shared timer: fewer ends than arms");
            sums.fault(Fault::Twice, extra, "shared timer: more ends than arms");
            all.merge(&sums);
        }
        all
    }
}

impl Load for Shared {
    fn act(&mut self, scene: &mut Scene) {
        let piece = &self.0[scene.random.index(PIECES)];
        let mut change = Tally::default();
        let delay = Duration::from_nanos(scene.random.below(DELAY_MAX));
        let due = after(scene.machine.now(), delay);
        match scene.random.below(5) {
            0 | 1 => change.cancelled += u64::from(piece.timer.cancel()),
            // Both end no period and begin none, if there is one.
            2 => change.armed += u64::from(!piece.timer.reduce(due).expect("the machine runs")),
            3 => _ = piece.timer.mod_pending(due).expect("the machine runs"),
            _ => {
                let was_pending = piece.timer.arm_at(due).expect("the machine runs");
                change.armed += 1;
                change.superseded += u64::from(was_pending);
            }
        }
        piece.count(&change);
    }

    /// The books are closed at the end, by [`settle`](Self::settle).
    fn look(&mut self, _scene: &mut Scene) {}

    fn wind_down(&mut self, _until: Nanos, _scene: &mut Scene) {}

    fn open(&self) -> usize {
        0
    }
}
