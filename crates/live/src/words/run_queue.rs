//! The words of a run queue that are read without its lock.
//!
//! - [`Doorbell`]: something was left for the lane since it last looked; set after the thing itself was left.
//! - [`CurrentItem`]: what the lane is in the middle of, for those who place tasks, and for those who
//!   isolate.
//! - [`Gate`]: whether the lane takes what is not bound to it.
//! - [`Hint`]: a number under the lock, as others see it without.
//!
//! Races 13 and 14 of [core's lane/README.md](../../../core/src/lane/README.md); models: `models.rs`.

use crate::words::sync::{AtomicU32, Ordering, fence, swap_then_fence};
use quietcore_core::realtime::Priority;
use quietcore_core::run_queue::Activity;

/// Whether something was left for a lane since it last looked.
#[derive(Debug)]
pub(crate) struct Doorbell(AtomicU32);

impl Doorbell {
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Something was left for a thread that may wait. The bell rings before `kick` wakes it: else it would
    /// look, and wait again.
    #[inline]
    pub(crate) fn ring_then<R>(&self, kick: impl FnOnce() -> R) -> R {
        self.ring();
        kick()
    }

    /// Something was left by the lane itself, which looks before it waits.
    #[inline]
    pub(crate) fn ring(&self) {
        // Release: pairs with Acquire in `take`: who takes it finds what was left.
        self.0.fetch_or(1, Ordering::Release);
    }

    /// Whether there is something to look for. Before a wait: after the park word said so.
    #[inline]
    pub(crate) fn is_rung(&self) -> bool {
        // Relaxed: before a wait the park word's fence orders it; else the next look will do.
        self.0.load(Ordering::Relaxed) != 0
    }

    /// For the lane, before it looks everywhere.
    #[inline]
    pub(crate) fn answer(&self) -> bool {
        // Acquire: pairs with Release in `ring`.
        self.is_rung() && self.0.swap(0, Ordering::Acquire) != 0
    }
}

/// What a lane is in the middle of. Bit 8: what it does may be done elsewhere; the rest: what.
#[derive(Debug)]
pub(crate) struct CurrentItem(AtomicU32);

const NOTHING: u32 = 0;
const SOFTIRQ: u32 = 100;
const NORMAL: u32 = 101;
const MOVABLE: u32 = 1 << 8;

const fn word(activity: Activity) -> u32 {
    match activity {
        Activity::None => NOTHING,
        Activity::Softirq => SOFTIRQ,
        Activity::Normal => NORMAL,
        Activity::Realtime(priority) => priority.get() as u32,
    }
}

impl CurrentItem {
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(NOTHING))
    }

    /// What the lane does, and whether that may move; out of date when it is used.
    #[inline]
    pub(crate) fn get(&self) -> (Activity, bool) {
        // Relaxed: a hint; `is_movable` asks for more.
        let word = self.0.load(Ordering::Relaxed);
        let activity = match word & !MOVABLE {
            SOFTIRQ => Activity::Softirq,
            NORMAL => Activity::Normal,
            number => Priority::new(number as u8).map_or(Activity::None, Activity::Realtime),
        };
        (activity, word & MOVABLE != 0)
    }

    /// By the lane: what it does from now on is its own.
    #[inline]
    pub(crate) fn begin(&self, activity: Activity) {
        // Relaxed: a hint.
        self.0.store(word(activity), Ordering::Relaxed);
    }

    /// By the lane: it would do something that is not bound to it; says whether it may.
    #[inline]
    #[must_use]
    pub(crate) fn begin_movable(&self, activity: Activity, gate: &Gate) -> bool {
        // Pairs with the fence in `Gate::close_and_see`, see the file's comment.
        swap_then_fence(&self.0, word(activity) | MOVABLE);
        let is_open = gate.is_open();
        if !is_open {
            self.end();
        }
        is_open
    }

    /// By the lane: it is done.
    #[inline]
    pub(crate) fn end(&self) {
        // Release: pairs with Acquire in `is_movable`: who waited for the end sees what was done.
        self.0.store(NOTHING, Ordering::Release);
    }

    /// Whether it does something that is not bound to it.
    pub(crate) fn is_movable(&self) -> bool {
        // Acquire: pairs with Release in `end`.
        self.0.load(Ordering::Acquire) & MOVABLE != 0
    }
}

/// Whether a lane takes what is not bound to it. Written under the queue's lock.
#[derive(Debug)]
pub(crate) struct Gate(AtomicU32);

const CLOSED: u32 = 0;
const OPEN: u32 = 1;

impl Gate {
    /// Closed: no thread has claimed the lane.
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(CLOSED))
    }

    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        // Relaxed: `begin_movable` has a fence before it; for all others a hint.
        self.0.load(Ordering::Relaxed) == OPEN
    }

    pub(crate) fn open(&self) {
        // Relaxed: see `is_open`.
        self.0.store(OPEN, Ordering::Relaxed);
    }

    /// Says whether the lane is in the middle of something that is not bound to it; if so, its end has to be
    /// waited for.
    pub(crate) fn close_and_see(&self, doing: &CurrentItem) -> bool {
        // Relaxed, fence: pairs with the fence in `begin_movable`, see the file's comment.
        self.0.store(CLOSED, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        doing.is_movable()
    }
}

/// A number that changes under a lock, for those who look without it.
#[derive(Debug)]
pub(crate) struct Hint(AtomicU32);

impl Hint {
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    #[inline]
    pub(crate) fn get(&self) -> u32 {
        // Relaxed: a hint; who acts on it takes the lock.
        self.0.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn set(&self, number: u32) {
        // Relaxed: see `get`.
        self.0.store(number, Ordering::Relaxed);
    }

    /// Counts up and says what it was: for turns that are taken one after the other.
    pub(crate) fn next(&self) -> usize {
        // Relaxed: any number will do.
        self.0.fetch_add(1, Ordering::Relaxed) as usize
    }
}

#[cfg(all(test, loom))]
mod models;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{CurrentItem, Gate};
    use quietcore_core::realtime::Priority;
    use quietcore_core::run_queue::Activity;

    /// Goal: what is said is what is read. Method: every activity, bound and not.
    #[test]
    fn activities() {
        let (doing, gate) = (CurrentItem::new(), Gate::new());
        gate.open();
        let realtime = (1..=99).filter_map(Priority::new).map(Activity::Realtime);
        for activity in [Activity::Softirq, Activity::Normal].into_iter().chain(realtime) {
            doing.begin(activity);
            assert_eq!((doing.get(), doing.is_movable()), ((activity, false), false));
            assert!(doing.begin_movable(activity, &gate));
            assert_eq!((doing.get(), doing.is_movable()), ((activity, true), true));
        }
        assert!(gate.close_and_see(&doing));
        assert!(!doing.begin_movable(Activity::Normal, &gate));
        assert_eq!((doing.get(), gate.close_and_see(&doing)), ((Activity::None, false), false));
    }
}
