//! Sleeps, timeouts and intervals, polled by an executor of a few lines.
//!
//! Each future gets a waker of its own, with a number, so that a wake-up says for which future it was. Ready
//! before its deadline is early; woken more often than it said "pending" is twice; neither woken nor ready
//! long after its deadline is lost. Futures are dropped, reset, polled without need by another waker, and
//! handed to other threads at random.

use crate::ledger::Fault;
use crate::running::{Lateness, Overdue};
use crate::scene::{Load, Rouser, Scene};
use core::future::{Future, Pending, pending};
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use quietcore_live::Nanos;
use quietcore_live::time::{self, Interval, Precision, Sleep, Timeout};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Wake;

/// How many futures each thread has.
const PIECES: usize = 1000;

/// How many futures may be on their way at a time.
const EXCHANGE_MAX: usize = 64;

/// How long the period of an interval is.
const PERIOD_MIN: Duration = Duration::from_millis(1);
const PERIOD_MAX: Duration = Duration::from_secs(2);

/// What kind of future.
enum Kind {
    Sleep(Pin<Box<Sleep>>),
    Timeout(Pin<Box<Timeout<Pending<()>>>>),
    /// Each tick is a period; it begins when the one before it was taken.
    Interval(Box<Interval>),
}

/// Futures on their way from one thread to another.
pub(crate) type Exchange = Arc<Mutex<Vec<Parcel>>>;

/// A future, whichever executor polls it.
pub(crate) struct Parcel {
    kind: Kind,
    due: Nanos,
}

/// What a poll came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Polled {
    Pending,
    /// Of an interval, which goes on.
    Tick,
    Over,
}

impl Parcel {
    fn random(scene: &mut Scene) -> Self {
        let due = scene.deadline();
        scene.tally.armed += 1;
        let kind = match scene.random.below(8) {
            0..=4 => {
                let precision = precision(scene);
                Kind::Sleep(Box::pin(time::sleep_until(due.into()).with_precision(precision)))
            }
            5 | 6 => Kind::Timeout(Box::pin(time::timeout_at(due.into(), pending()))),
            _ => {
                let period = scene.random.delay().clamp(PERIOD_MIN, PERIOD_MAX);
                Kind::Interval(Box::new(time::interval_at(due.into(), period)))
            }
        };
        Self { kind, due }
    }

    fn poll(&mut self, waker: &Waker, scene: &mut Scene) -> Polled {
        let mut context = Context::from_waker(waker);
        let is_ready = match &mut self.kind {
            Kind::Sleep(sleep) => sleep.as_mut().poll(&mut context).is_ready(),
            Kind::Timeout(timeout) => timeout.as_mut().poll(&mut context).is_ready(),
            Kind::Interval(interval) => match interval.poll_tick(&mut context) {
                Poll::Ready(tick) => {
                    let period = interval.period().as_nanos() as u64;
                    self.ticked(tick.into(), period, scene);
                    return Polled::Tick;
                }
                Poll::Pending => false,
            },
        };
        if !is_ready {
            return Polled::Pending;
        }
        scene.tally.ran(self.due, scene.machine.now());
        Polled::Over
    }

    /// A tick is one of the multiples of the period that are to come, and never the same again.
    fn ticked(&mut self, tick: Nanos, period: u64, scene: &mut Scene) {
        scene.tally.ran(tick, scene.machine.now());
        let is_new = tick >= self.due && (tick.0 - self.due.0).is_multiple_of(period);
        scene.tally.fault(Fault::Twice, u64::from(!is_new), "interval: not a new tick");
        scene.tally.armed += 1;
        self.due = Nanos(tick.0 + period);
    }
}

/// Wake-ups that came, by index and number of the waker.
type Woken = Arc<Mutex<Vec<(usize, u64)>>>;

struct Bell {
    index: usize,
    number: u64,
    woken: Woken,
    rouser: Rouser,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.woken.lock().unwrap_or_else(PoisonError::into_inner).push((self.index, self.number));
        self.rouser.rouse();
    }
}

struct Piece {
    parcel: Parcel,
    waker: Waker,
    /// Of the waker.
    number: u64,
    /// How often the waker was told "pending", and how often it was woken: never more.
    pending: u64,
    woken: u64,
    overdue: Overdue,
}

/// The futures of one thread.
pub(crate) struct Futures {
    pieces: Vec<Option<Piece>>,
    woken: Woken,
    exchange: Exchange,
    rouser: Rouser,
    next_number: u64,
    is_winding_down: bool,
}

impl Futures {
    /// To be made and used by one thread: it is the one that is woken.
    pub(crate) fn new(exchange: Exchange, scene: &mut Scene) -> Self {
        let (woken, rouser) = (Woken::default(), scene.rouser.clone());
        let mut futures =
            Self { pieces: Vec::new(), woken, exchange, rouser, next_number: 0, is_winding_down: false };
        for index in 0..PIECES {
            futures.pieces.push(None);
            futures.replace(index, scene);
            futures.poll(index, scene);
        }
        futures
    }

    /// A new future in place of whatever is there; none when it is all to end.
    fn replace(&mut self, index: usize, scene: &mut Scene) {
        self.pieces[index] = if self.is_winding_down {
            None
        } else {
            let parcel = Parcel::random(scene);
            Some(self.piece(index, parcel))
        };
    }

    fn piece(&mut self, index: usize, parcel: Parcel) -> Piece {
        let (waker, number) = self.waker(index);
        Piece { parcel, waker, number, pending: 0, woken: 0, overdue: Overdue::default() }
    }

    fn waker(&mut self, index: usize) -> (Waker, u64) {
        let number = self.next_number;
        self.next_number += 1;
        let bell = Bell { index, number, woken: Arc::clone(&self.woken), rouser: self.rouser.clone() };
        (Waker::from(Arc::new(bell)), number)
    }

    /// Until it is pending, or gone.
    fn poll(&mut self, index: usize, scene: &mut Scene) {
        while let Some(piece) = &mut self.pieces[index] {
            match piece.parcel.poll(&piece.waker, scene) {
                Polled::Pending => {
                    piece.pending += 1;
                    return;
                }
                Polled::Tick => {}
                Polled::Over => self.replace(index, scene),
            }
        }
    }

    /// A wake-up that came.
    fn was_woken(&mut self, index: usize, number: u64, scene: &mut Scene) {
        // A waker that was replaced may still be woken once, by the thread that had it in hand.
        let Some(piece) = self.pieces[index].as_mut().filter(|piece| piece.number == number) else { return };
        piece.woken += 1;
        let is_extra = piece.woken > piece.pending;
        scene.tally.fault(Fault::Twice, u64::from(is_extra), "future: woken more often than pending");
        self.poll(index, scene);
    }

    /// Another deadline; sometimes its waker has to do without a poll.
    fn reset(&mut self, index: usize, scene: &mut Scene) {
        let Some(piece) = &mut self.pieces[index] else { return };
        let due = scene.deadline();
        if let Kind::Sleep(sleep) = &mut piece.parcel.kind {
            sleep.as_mut().reset(due.into());
            piece.parcel.due = due;
            scene.tally.armed += 1;
            scene.tally.superseded += 1;
        }
        if scene.random.below(2) == 0 {
            self.poll(index, scene);
        }
    }

    /// The waker it had is told no more.
    fn poll_by_another(&mut self, index: usize, scene: &mut Scene) {
        let Some(piece) = self.pieces[index].take() else { return };
        self.pieces[index] = Some(self.piece(index, piece.parcel));
        self.poll(index, scene);
    }

    /// Another thread's future in place of one of ours.
    fn exchange(&mut self, index: usize, scene: &mut Scene) {
        let Some(piece) = self.pieces[index].take() else { return };
        let mut exchange = self.exchange.lock().unwrap_or_else(PoisonError::into_inner);
        exchange.push(piece.parcel);
        let is_full = exchange.len() > EXCHANGE_MAX;
        let parcel = is_full.then(|| exchange.swap_remove(scene.random.index(EXCHANGE_MAX)));
        drop(exchange);
        match parcel {
            Some(parcel) => self.pieces[index] = Some(self.piece(index, parcel)),
            None => self.replace(index, scene),
        }
        self.poll(index, scene);
    }

    fn give_up_late_ones(&mut self, scene: &mut Scene) {
        for index in 0..self.pieces.len() {
            let Some(piece) = &mut self.pieces[index] else { continue };
            if piece.overdue.look(Some(piece.parcel.due), scene.now, scene.running) == Lateness::Lost {
                scene.tally.fault(Fault::Lost, 1, "future: not ready for too long");
                self.replace(index, scene);
                self.poll(index, scene);
            }
        }
    }
}

impl Load for Futures {
    fn act(&mut self, scene: &mut Scene) {
        let index = scene.random.index(self.pieces.len());
        let Some(piece) = &mut self.pieces[index] else { return };
        if piece.overdue.look(Some(piece.parcel.due), scene.now, scene.running) != Lateness::None {
            return;
        }
        match scene.random.below(10) {
            0..=3 => {
                scene.tally.dropped += 1;
                self.replace(index, scene);
                self.poll(index, scene);
            }
            4..=6 => self.reset(index, scene),
            7 => self.poll(index, scene),
            8 => self.poll_by_another(index, scene),
            _ => self.exchange(index, scene),
        }
    }

    fn look(&mut self, scene: &mut Scene) {
        let woken = core::mem::take(&mut *self.woken.lock().unwrap_or_else(PoisonError::into_inner));
        for waker in woken {
            self.was_woken(waker.0, waker.1, scene);
        }
        self.give_up_late_ones(scene);
    }

    fn wind_down(&mut self, until: Nanos, scene: &mut Scene) {
        self.is_winding_down = true;
        for piece in &mut self.pieces {
            let ends =
                |piece: &Piece| piece.parcel.due <= until && !matches!(piece.parcel.kind, Kind::Interval(_));
            if !piece.as_ref().is_some_and(ends) {
                scene.tally.dropped += 1;
                *piece = None;
            }
        }
    }

    fn open(&self) -> usize {
        self.pieces.iter().flatten().count()
    }
}

fn precision(scene: &mut Scene) -> Precision {
    match scene.random.below(3) {
        0 => Precision::Coarse,
        1 => Precision::Tick,
        _ => Precision::Exact,
    }
}
