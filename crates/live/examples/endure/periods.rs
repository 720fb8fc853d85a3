//! Periodic timers: every run is at a later multiple of the period, and none is missing from the count.
//!
//! A run says which multiple it is for and how many went by without one; together they must be the next of
//! those that the timer was armed for. The callback checks itself: runs of one timer never overlap. A timer
//! is armed once, and after a while it is cancelled or dropped. Absent: how late a period may be.

use crate::ledger::{Fault, Tally};
use crate::running::{Lateness, Overdue};
use crate::scene::{Load, Scene};
use core::time::Duration;
use quietcore_live::{Nanos, Precision, TimerHandle, TimerOptions, timer::Run};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many timers each thread has.
const PIECES: usize = 50;

/// How long a period is.
const PERIOD_MIN: Duration = Duration::from_micros(500);
const PERIOD_MAX: Duration = Duration::from_millis(500);

/// One in this many actions replaces a timer.
const SELDOM: u64 = 100;

/// The multiples that a timer was armed for, and what its runs came to.
#[derive(Debug)]
struct Course {
    period: Nanos,
    /// The multiple that comes next.
    next: Nanos,
    /// Nothing may run any more.
    is_over: bool,
    tally: Tally,
}

impl Course {
    fn check(&mut self, run: &Run<'_>, now: Nanos) {
        let (scheduled, expected) = (run.scheduled(), Nanos(self.next.0 + run.overruns() * self.period.0));
        self.tally.armed += 1;
        self.tally.ran(scheduled, now);
        self.tally.fault(Fault::Twice, u64::from(scheduled < expected), "period: not a new one");
        self.tally.fault(Fault::Twice, u64::from(self.is_over), "period: ran, but it was cancelled");
        self.tally.fault(Fault::Lost, u64::from(scheduled > expected), "period: skipped, but not counted");
        self.next = Nanos(scheduled.0 + self.period.0);
    }
}

struct Piece {
    timer: TimerHandle,
    course: Arc<Mutex<Course>>,
    overdue: Overdue,
}

impl Piece {
    fn new(scene: &mut Scene) -> Self {
        let first = scene.deadline().min(Nanos(scene.now.0 + PERIOD_MAX.as_nanos() as u64));
        let period = scene.random.delay().clamp(PERIOD_MIN, PERIOD_MAX);
        let nanos = Nanos(period.as_nanos() as u64);
        let course = Course { period: nanos, next: first, is_over: false, tally: Tally::default() };
        let course = Arc::new(Mutex::new(course));
        let precision = if scene.random.below(2) == 0 { Precision::Tick } else { Precision::Exact };
        let (shared, machine) = (Arc::clone(&course), scene.machine);
        let timer = machine.timer(TimerOptions::new().precision(precision), move |run| {
            let now = machine.now();
            lock(&shared).check(run, now);
        });
        timer.arm_periodic(first, period).expect("the machine runs, and the timer is not pinned");
        Self { timer, course, overdue: Overdue::default() }
    }

    /// Collects what its runs came to.
    fn look(&mut self, scene: &mut Scene) -> Lateness {
        if self.has_stopped() {
            scene.tally.fault(Fault::Lost, 1, "period: neither pending nor running");
            return Lateness::Lost;
        }
        let next = self.collect(scene);
        let lateness = self.overdue.look(Some(next), scene.now, scene.running);
        let is_lost = lateness == Lateness::Lost;
        scene.tally.fault(Fault::Lost, u64::from(is_lost), "period: pending for too long");
        lateness
    }

    /// Returns which multiple comes next.
    fn collect(&self, scene: &mut Scene) -> Nanos {
        let mut course = lock(&self.course);
        scene.tally.merge(&core::mem::take(&mut course.tally));
        course.next
    }

    /// Whether nothing will ever run. A timer that goes on may be found to be neither pending nor running if
    /// it is armed again in between; twice in a row only if it ran in between, and then that shows.
    fn has_stopped(&self) -> bool {
        let next = lock(&self.course).next;
        let is_idle = (0..2).all(|_| !self.timer.is_pending() && !self.timer.is_running());
        is_idle && lock(&self.course).next == next
    }

    /// After this nothing runs, or it is found out.
    fn end(&mut self, scene: &mut Scene) {
        let _ = self.look(scene);
        if self.timer.cancel_sync().is_ok() {
            scene.tally.armed += 1;
            scene.tally.cancelled += 1;
            lock(&self.course).is_over = true;
        }
    }
}

/// The periodic timers of one thread.
pub(crate) struct Periods {
    pieces: Vec<Piece>,
    /// Cancelled, and to be found out if they ran.
    ended: Vec<Piece>,
}

impl Periods {
    pub(crate) fn new(scene: &mut Scene) -> Self {
        Self { pieces: (0..PIECES).map(|_| Piece::new(scene)).collect(), ended: Vec::new() }
    }
}

impl Load for Periods {
    fn act(&mut self, scene: &mut Scene) {
        if scene.random.below(SELDOM) > 0 {
            return;
        }
        let index = scene.random.index(self.pieces.len());
        if self.pieces[index].look(scene) != Lateness::None {
            return;
        }
        let mut piece = core::mem::replace(&mut self.pieces[index], Piece::new(scene));
        if scene.random.below(2) == 0 {
            piece.end(scene);
            self.ended.push(piece);
        }
    }

    fn look(&mut self, scene: &mut Scene) {
        for piece in &mut self.pieces {
            if piece.look(scene) == Lateness::Lost {
                *piece = Piece::new(scene);
            }
        }
        for piece in &self.ended {
            let _ = piece.collect(scene);
        }
        // A run that was still to come would have come by now, or is lost.
        let keep = self.ended.len().min(PIECES);
        self.ended.drain(..self.ended.len() - keep);
    }

    fn wind_down(&mut self, _until: Nanos, scene: &mut Scene) {
        for mut piece in self.pieces.drain(..) {
            piece.end(scene);
            self.ended.push(piece);
        }
    }

    fn open(&self) -> usize {
        self.pieces.len()
    }
}

fn lock(course: &Mutex<Course>) -> MutexGuard<'_, Course> {
    course.lock().unwrap_or_else(PoisonError::into_inner)
}
