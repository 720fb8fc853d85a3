//! Callback timers of all precisions, each with one owner and its books.
//!
//! The callback only notes when it ran. Its owner compares that with what it armed and cancelled: a run too
//! many is twice, one too early is early, and a period that neither is pending nor has run is lost, at once.
//! What stays pending too long is lost, too. A timer that was dropped may still have the run that had begun,
//! and then its closure must be gone.

use crate::ledger::{Fault, Ledger};
use crate::running::{Lateness, Overdue};
use crate::scene::{Load, Scene, after};
use quietcore_live::{CpuId, CpuSet, Nanos, Precision, TimerHandle, TimerOptions, timer::WouldBlock};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many timers each thread has.
const PIECES: usize = 1000;

/// When a callback ran, since its owner looked.
type Runs = Arc<Mutex<Vec<Nanos>>>;

struct Piece {
    timer: TimerHandle,
    runs: Runs,
    ledger: Ledger,
    overdue: Overdue,
}

/// A timer that was dropped with that many periods open.
struct Grave {
    runs: Runs,
    open: usize,
}

/// The callback timers of one thread.
pub(crate) struct Callbacks {
    pieces: Vec<Piece>,
    graves: Vec<Grave>,
    lanes: CpuSet,
}

impl Callbacks {
    /// With `lanes`, some of them are pinned to these.
    pub(crate) fn new(lanes: CpuSet, scene: &mut Scene) -> Self {
        let pieces = (0..PIECES).map(|_| Piece::new(&lanes, scene)).collect();
        Self { pieces, graves: Vec::new(), lanes }
    }

    /// Drops the timer at `index`, whatever it does now, and makes another one.
    fn replace(&mut self, index: usize, scene: &mut Scene) {
        let piece = core::mem::replace(&mut self.pieces[index], Piece::new(&self.lanes, scene));
        let open = piece.ledger.open();
        scene.tally.dropped += open as u64;
        self.graves.push(Grave { runs: piece.runs, open });
    }

    /// Forgets those whose closure is gone.
    fn visit_graves(&mut self, scene: &mut Scene) {
        self.graves.retain(|grave| {
            let is_gone = Arc::strong_count(&grave.runs) == 1;
            if is_gone {
                let ran = lock(&grave.runs).len();
                let extra = ran.saturating_sub(grave.open) as u64;
                scene.tally.fault(Fault::Twice, extra, "callback: ran, but it had ended and was dropped");
            }
            !is_gone
        });
    }
}

impl Piece {
    fn new(lanes: &CpuSet, scene: &mut Scene) -> Self {
        let runs = Runs::default();
        let (log, machine) = (Arc::clone(&runs), scene.machine);
        let timer = machine.timer(options(lanes, scene), move |_run| lock(&log).push(machine.now()));
        Self { timer, runs, ledger: Ledger::default(), overdue: Overdue::default() }
    }

    /// Brings its books up to date.
    fn look(&mut self, scene: &mut Scene) -> Lateness {
        // In this order: what ran before it was found to be neither has left its note.
        let is_idle = !self.timer.is_pending() && !self.timer.is_running();
        self.take_runs(scene);
        if is_idle {
            self.ledger.give_up("callback: neither pending nor running, and did not run", &mut scene.tally);
        }
        let lateness = self.overdue.look(self.ledger.first(), scene.now, scene.running);
        if lateness == Lateness::Lost {
            self.timer.cancel();
            self.ledger.give_up("callback: pending for too long", &mut scene.tally);
        }
        lateness
    }

    fn take_runs(&mut self, scene: &mut Scene) {
        for now in lock(&self.runs).drain(..) {
            self.ledger.ran(now, &mut scene.tally);
        }
    }

    fn arm(&mut self, lanes: &CpuSet, scene: &mut Scene) {
        let delay = scene.random.delay();
        let due = after(scene.machine.now(), delay);
        let armed = match (scene.random.below(4), random_lane(lanes, scene)) {
            (0, _) => self.timer.arm_after(delay),
            (1, Some(cpu)) => self.timer.arm_on(cpu, due),
            _ => self.timer.arm_at(due),
        };
        if let Ok(before) = armed {
            self.ledger.armed(due, before.into(), &mut scene.tally);
        }
    }

    fn cancel(&mut self, scene: &mut Scene) {
        let before = self.timer.cancel();
        self.ledger.cancelled(before.into(), &mut scene.tally);
    }

    /// No run of it is left when this returns.
    fn cancel_sync(&mut self, scene: &mut Scene) -> Result<(), WouldBlock> {
        let before = self.timer.cancel_sync()?;
        self.ledger.cancelled(before.into(), &mut scene.tally);
        self.take_runs(scene);
        let left = self.ledger.open() as u64;
        scene.tally.fault(Fault::Twice, left, "callback: still to run after cancel_sync");
        Ok(())
    }

    fn reduce(&mut self, scene: &mut Scene) {
        let due = scene.deadline();
        if let Ok(before) = self.timer.reduce(due) {
            self.ledger.reduced(due, before.into(), &mut scene.tally);
        }
    }

    fn mod_pending(&mut self, scene: &mut Scene) {
        let due = scene.deadline();
        if let Ok(before) = self.timer.mod_pending(due) {
            self.ledger.modified(due, before.into(), &mut scene.tally);
        }
    }
}

impl Load for Callbacks {
    fn act(&mut self, scene: &mut Scene) {
        let index = scene.random.index(self.pieces.len());
        let piece = &mut self.pieces[index];
        if piece.look(scene) != Lateness::None {
            return;
        }
        match scene.random.below(20) {
            0..=11 => piece.arm(&self.lanes, scene),
            12..=14 => piece.cancel(scene),
            15 => {
                if piece.cancel_sync(scene).is_err() {
                    // No thread says whether it was pending.
                    self.replace(index, scene);
                }
            }
            16 => piece.reduce(scene),
            17 => piece.mod_pending(scene),
            _ => self.replace(index, scene),
        }
    }

    fn look(&mut self, scene: &mut Scene) {
        for piece in &mut self.pieces {
            let _ = piece.look(scene);
        }
        self.visit_graves(scene);
    }

    fn wind_down(&mut self, until: Nanos, scene: &mut Scene) {
        for piece in &mut self.pieces {
            let _ = piece.look(scene);
            if piece.ledger.first().is_some_and(|due| due > until) {
                piece.cancel(scene);
            }
        }
    }

    fn open(&self) -> usize {
        let open: usize = self.pieces.iter().map(|piece| piece.ledger.open()).sum();
        open + self.graves.len()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn options(lanes: &CpuSet, scene: &mut Scene) -> TimerOptions {
    let precision = match scene.random.below(3) {
        0 => Precision::Coarse,
        1 => Precision::Tick,
        _ => Precision::Exact,
    };
    let options = TimerOptions::new().precision(precision);
    if !lanes.is_empty() && scene.random.below(4) == 0 { options.pinned() } else { options }
}

fn random_lane(lanes: &CpuSet, scene: &mut Scene) -> Option<CpuId> {
    let lanes: Vec<CpuId> = lanes.iter().collect();
    (!lanes.is_empty()).then(|| lanes[scene.random.index(lanes.len())])
}
