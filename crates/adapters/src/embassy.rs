//! A time driver for `embassy_time`: its timers wait on a machine.
//!
//! Decides which machine that is: the current one of the first call that has one, for good. Embassy tells a
//! driver which wakers to wake and when, again at each poll, and never that one is no longer wanted. So the
//! driver keeps one moment per waker, the earliest, as embassy's own queues do, and one timer for the first
//! of all. A waker whose future was dropped is woken once for nothing.
//!
//! Invariant: the timer is pending for the first moment of the queue or an earlier one, or the thread that
//! changed the queue is about to arm it. Wakers are cloned, woken and dropped without the queue's lock. Not
//! here: the registration, which is the program's: there is one driver in a program.

use core::task::Waker;
use embassy_time_driver::TICK_HZ;
use quietcore_live::time::Instant;
use quietcore_live::{Machine, Nanos, Precision, TimerHandle, TimerOptions};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// What `embassy_time` waits with; a program registers it, once:
///
/// ```
/// embassy_time_driver::time_driver_impl!(
///     static DRIVER: quietcore::embassy::EmbassyDriver = quietcore::embassy::EmbassyDriver::new()
/// );
///
/// let machine = quietcore::Machine::start()?;
/// machine.install_default()?;
/// quietcore::time::block_on(embassy_time::Timer::after_millis(2));
/// # machine.shutdown();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// It belongs to the machine that is current at the first call that has one, and stays with that; before, its
/// clock is CLOCK_MONOTONIC, in ticks of embassy's `TICK_HZ` (a microsecond unless its features say
/// otherwise). Where that machine's time is paused, embassy's is.
///
/// Any executor, any thread. Panics: where something waits, and there was never a current machine or it was
/// shut down. Cost: a lock that all timers of embassy share, and one more when the first of them changes:
/// fit for programs of hundreds of timers. `quietcore::time` has none in common.
#[derive(Debug)]
pub struct EmbassyDriver {
    precision: Precision,
    world: OnceLock<World>,
}

/// The machine, and what waits there.
#[derive(Debug)]
struct World {
    machine: &'static Machine,
    queue: Arc<Mutex<Queue>>,
    alarm: TimerHandle,
}

impl EmbassyDriver {
    /// One that wakes at ticks of the machine (1 ms).
    #[must_use]
    pub const fn new() -> Self {
        Self::with_precision(Precision::Tick)
    }

    /// One that wakes as exactly as `precision` says.
    #[must_use]
    pub const fn with_precision(precision: Precision) -> Self {
        Self { precision, world: OnceLock::new() }
    }

    /// `None` while there is no machine.
    fn world(&self) -> Option<&World> {
        self.world.get().or_else(|| {
            let machine = Machine::try_current()?;
            Some(self.world.get_or_init(|| World::new(machine, self.precision)))
        })
    }
}

impl Default for EmbassyDriver {
    fn default() -> Self {
        Self::new()
    }
}

impl embassy_time_driver::Driver for EmbassyDriver {
    fn now(&self) -> u64 {
        ticks(self.world().map_or_else(|| Instant::now().into(), |world| world.machine.now()))
    }

    /// # Panics
    /// When there is no machine, or it was shut down: the waker would never be woken.
    fn schedule_wake(&self, at: u64, waker: &Waker) {
        let world = self.world().expect("embassy's timers need a current machine: Machine::install_default");
        let (at, waker) = (moment(at), waker.clone());
        let unused = lock(&world.queue).insert(at, waker);
        world.arm(at);
        drop(unused);
    }
}

impl World {
    fn new(machine: &'static Machine, precision: Precision) -> Self {
        let queue = Arc::new(Mutex::new(Queue::default()));
        let waiting = Arc::clone(&queue);
        let alarm = machine.timer(TimerOptions::new().precision(precision), move |run| {
            let now = machine.now();
            let (due, next) = {
                let mut queue = lock(&waiting);
                (queue.take_due(now), queue.first())
            };
            if let Some(next) = next {
                // Refused only by a machine that has ended.
                let _ = run.timer().reduce(next);
            }
            due.into_iter().for_each(Waker::wake);
        });
        Self { machine, queue, alarm }
    }

    /// The alarm rings at `at`, or before.
    fn arm(&self, at: Nanos) {
        if let Err(error) = self.alarm.reduce(at) {
            panic!("a timer of embassy waits for a time that will not come: {error}");
        }
    }
}

fn lock(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whole ticks that are over at `now`.
fn ticks(now: Nanos) -> u64 {
    let ticks = u128::from(now.0) * u128::from(TICK_HZ) / NANOS_PER_SECOND;
    u64::try_from(ticks).unwrap_or(u64::MAX)
}

/// The first moment at which `ticks` are over.
fn moment(ticks: u64) -> Nanos {
    let nanos = (u128::from(ticks) * NANOS_PER_SECOND).div_ceil(u128::from(TICK_HZ));
    Nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// Which waker it is: two with the same key wake the same task. A waker that is kept keeps its key.
type WakerKey = (usize, usize);

fn key(waker: &Waker) -> WakerKey {
    (waker.data().addr(), core::ptr::from_ref(waker.vtable()).addr())
}

/// Who is woken when: each waker once, at the earliest moment that it was given.
#[derive(Debug, Default)]
struct Queue {
    by_waker: BTreeMap<WakerKey, (Nanos, Waker)>,
    by_moment: BTreeSet<(Nanos, WakerKey)>,
}

impl Queue {
    /// Returns the waker if it is there for that moment or an earlier one.
    fn insert(&mut self, at: Nanos, waker: Waker) -> Option<Waker> {
        let key = key(&waker);
        match self.by_waker.get_mut(&key) {
            Some((earlier, _)) if *earlier <= at => return Some(waker),
            Some((later, _)) => {
                self.by_moment.remove(&(*later, key));
                *later = at;
                self.by_moment.insert((at, key));
                return Some(waker);
            }
            None => {}
        }
        self.by_waker.insert(key, (at, waker));
        self.by_moment.insert((at, key));
        None
    }

    fn first(&self) -> Option<Nanos> {
        self.by_moment.first().map(|(at, _)| *at)
    }

    /// The wakers whose moment has come, in order.
    fn take_due(&mut self, now: Nanos) -> Vec<Waker> {
        let mut due = vec![];
        while let Some((at, key)) = self.by_moment.first().copied()
            && at <= now
        {
            self.by_moment.remove(&(at, key));
            due.extend(self.by_waker.remove(&key).map(|(_, waker)| waker));
        }
        due
    }
}
