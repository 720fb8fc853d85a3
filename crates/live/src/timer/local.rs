//! Timers of one thread: closures that need not be `Send`, in a wheel that nobody else reaches.
//!
//! No lock, no atomic, no look at another CPU: this is the cheapest timer there is, and it is as late as its
//! thread is. Nobody adopts it when that thread is stuck. The thread runs it, in its own loop
//! ([`LocalTimers::run`]), and waits no longer than [`LocalTimers::next_expiry`] says; a lane does both by
//! itself.
//!
//! While a callback runs nothing is borrowed, so it may arm and cancel everything, itself too. A wheel holds
//! a count of each pending timer; a timer that is dropped is cancelled. Absent: nanoseconds (exact timers are
//! kept to the tick), periods (a callback arms its timer again), other threads.

use super::Precision;
use super::course::before;
use crate::lane::current_cpu;
use crate::stall;
use crate::{Machine, Nanos};
use core::cell::{Cell, RefCell};
use core::fmt;
use core::time::Duration;
use quietcore_core::TickLength;
use quietcore_wheel::{Key, Slot, Timers};
use std::rc::Rc;

/// Timers in one [`run`](LocalTimers::run); the rest waits for the next one.
const BUDGET: u32 = 256;

/// The timers of one thread. Cloning it makes another name for the same ones.
///
/// ```
/// use core::time::Duration;
/// use quietcore_live::{LocalTimers, Machine, Precision};
/// use std::cell::Cell;
/// use std::rc::Rc;
///
/// let machine = Machine::start()?;
/// let timers = LocalTimers::new(machine);
/// let ran = Rc::new(Cell::new(0)); // not `Send`
/// let count = Rc::clone(&ran);
/// let timer = timers.timer(Precision::Tick, move |_run| count.set(count.get() + 1));
/// timer.arm_after(Duration::from_millis(2));
/// while ran.get() == 0 {
///     timers.run(machine.now()); // the thread's own loop
/// }
/// assert_eq!(timers.next_expiry(), None);
/// # machine.shutdown();
/// # Ok::<(), quietcore_live::StartError>(())
/// ```
#[derive(Clone)]
pub struct LocalTimers {
    shared: Rc<Shared>,
}

type Wheel = Timers<Rc<Entry>, Vec<Slot<Rc<Entry>>>>;

type Callback = Box<dyn FnMut(&LocalRun<'_>)>;

struct Shared {
    machine: &'static Machine,
    length: TickLength,
    wheel: RefCell<Wheel>,
    /// When the wheel has to be looked at, in ns; `u64::MAX` for never. Never later than the truth; after a
    /// cancel it may be earlier.
    next: Cell<u64>,
    /// A pass has not come to its end: more may be due, which the wheel's next expiry does not count.
    has_rest: Cell<bool>,
    is_running: Cell<bool>,
}

struct Entry {
    precision: Precision,
    key: Cell<Option<Key>>,
    due: Cell<Nanos>,
    /// Its [`LocalTimer`] was dropped.
    is_gone: Cell<bool>,
    /// Borrowed while it runs.
    callback: RefCell<Callback>,
    name: &'static stall::Callback,
}

/// A timer of [`LocalTimers`]. When it is dropped it is cancelled.
///
/// ```
/// # use quietcore_live::{LocalTimers, Machine, Precision};
/// # let machine = Machine::start()?;
/// let timers = LocalTimers::new(machine);
/// let timer = timers.timer(Precision::Coarse, |_run| {});
/// timer.arm_at(machine.now());
/// assert!(timer.is_pending());
/// drop(timer);
/// assert!(timers.is_empty());
/// # machine.shutdown();
/// # Ok::<(), quietcore_live::StartError>(())
/// ```
pub struct LocalTimer {
    entry: Rc<Entry>,
    shared: Rc<Shared>,
}

/// What the callback of a [`LocalTimer`] may know of its run.
///
/// ```
/// # use core::time::Duration;
/// # use quietcore_live::{LocalTimers, Machine, Precision};
/// # let machine = Machine::start()?;
/// let timers = LocalTimers::new(machine);
/// let timer = timers.timer(Precision::Tick, |run| {
///     assert!(run.scheduled() <= run.now());
///     run.arm_at(quietcore_live::Nanos(run.scheduled().0 + 1_000_000)); // a period
/// });
/// timer.arm_at(machine.now());
/// # machine.shutdown();
/// # Ok::<(), quietcore_live::StartError>(())
/// ```
pub struct LocalRun<'a> {
    entry: &'a Rc<Entry>,
    shared: &'a Shared,
    scheduled: Nanos,
    now: Nanos,
}

impl LocalTimers {
    /// No timers yet. Their ticks and clock are the machine's; it does nothing else for them.
    ///
    /// ```
    /// # let machine = quietcore_live::Machine::start()?;
    /// assert!(quietcore_live::LocalTimers::new(machine).is_empty());
    /// # machine.shutdown();
    /// # Ok::<(), quietcore_live::StartError>(())
    /// ```
    #[must_use]
    pub fn new(machine: &'static Machine) -> Self {
        let length = machine.core.settings().tick;
        let clock = length.floor(machine.clock.now());
        let shared = Shared {
            machine,
            length,
            wheel: RefCell::new(Timers::new(clock, Vec::new())),
            next: Cell::new(u64::MAX),
            has_rest: Cell::new(false),
            is_running: Cell::new(false),
        };
        Self { shared: Rc::new(shared) }
    }

    /// Makes a timer that calls `callback`. It is idle. Allocates.
    ///
    /// ```
    /// # use quietcore_live::{LocalTimers, Precision};
    /// # let machine = quietcore_live::Machine::start()?;
    /// let timer = LocalTimers::new(machine).timer(Precision::Tick, |run| println!("{:?}", run.now()));
    /// # drop(timer);
    /// # machine.shutdown();
    /// # Ok::<(), quietcore_live::StartError>(())
    /// ```
    pub fn timer<F>(&self, precision: Precision, callback: F) -> LocalTimer
    where
        F: FnMut(&LocalRun<'_>) + 'static,
    {
        let name = const { &stall::Callback::of::<F>() };
        let callback = RefCell::new(Box::new(callback) as Callback);
        let (key, due, is_gone) = (Cell::new(None), Cell::new(Nanos(0)), Cell::new(false));
        let entry = Entry { precision, key, due, is_gone, callback, name };
        LocalTimer { entry: Rc::new(entry), shared: Rc::clone(&self.shared) }
    }

    /// Runs what is due at `now`, 256 timers at most; returns how many. In a callback it does nothing. Cost
    /// when nothing is due: a load.
    ///
    /// # Panics
    /// When a callback does; the timers go on afterwards.
    ///
    /// ```
    /// # let machine = quietcore_live::Machine::start()?;
    /// let timers = quietcore_live::LocalTimers::new(machine);
    /// assert_eq!(timers.run(machine.now()), 0);
    /// # machine.shutdown();
    /// # Ok::<(), quietcore_live::StartError>(())
    /// ```
    pub fn run(&self, now: Nanos) -> u32 {
        if self.shared.next.get() > now.0 || self.shared.is_running.replace(true) {
            return 0;
        }
        let _running = Running(&self.shared.is_running);
        let mut ran = 0;
        while ran < BUDGET {
            let Some(entry) = self.shared.next_expired(now) else { break };
            let scheduled = entry.due.get();
            let run = LocalRun { entry: &entry, shared: &self.shared, scheduled, now };
            self.shared.run(&entry, || (entry.callback.borrow_mut())(&run));
            ran += 1;
        }
        ran
    }

    /// When [`run`](Self::run) has to be called next; `None` when nothing is pending. After a cancel it may
    /// be too early, until the next run. Cost: a load.
    ///
    /// ```
    /// # let machine = quietcore_live::Machine::start()?;
    /// assert_eq!(quietcore_live::LocalTimers::new(machine).next_expiry(), None);
    /// # machine.shutdown();
    /// # Ok::<(), quietcore_live::StartError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn next_expiry(&self) -> Option<Nanos> {
        let next = self.shared.next.get();
        (next != u64::MAX).then_some(Nanos(next))
    }

    /// Whether no timer is pending.
    ///
    /// ```
    /// # let machine = quietcore_live::Machine::start()?;
    /// assert!(quietcore_live::LocalTimers::new(machine).is_empty());
    /// # machine.shutdown();
    /// # Ok::<(), quietcore_live::StartError>(())
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.shared.wheel.borrow().is_empty()
    }
}

/// While it lives, callbacks run: they may panic.
struct Running<'a>(&'a Cell<bool>);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

impl Shared {
    /// Runs `code`, which is the callback of `entry`; on a lane others can tell which it is.
    fn run(&self, entry: &Rc<Entry>, code: impl FnOnce()) {
        let Some((cpu, _)) = current_cpu(self.machine) else { return code() };
        let running = stall::Running {
            callback: entry.name,
            subject: Rc::as_ptr(entry) as usize,
            function: 0,
            site: None,
        };
        self.machine.stalls.around(cpu, running, code);
    }

    /// Takes out the next timer that is due at `now`, and sees when the one after it is.
    fn next_expired(&self, now: Nanos) -> Option<Rc<Entry>> {
        let mut wheel = self.wheel.borrow_mut();
        let tick = self.length.floor(now);
        let mut next = wheel.next_expired(tick);
        // Beyond the wheel's reach a coarse timer comes early.
        while let Some(early) = next.take_if(|expired| expired.value.due.get() > now) {
            let expires = self.length.floor(before(early.value.due.get()));
            let entry = early.value;
            let key = wheel.arm_growing(expires, Rc::clone(&entry));
            entry.key.set(Some(key));
            next = wheel.next_expired(tick);
        }
        self.has_rest.set(next.is_some());
        self.renew(&mut wheel);
        let entry = next?.value;
        entry.key.set(None);
        Some(entry)
    }

    fn renew(&self, wheel: &mut Wheel) {
        let next = wheel.next_expiry().map_or(u64::MAX, |tick| self.length.start(tick).0);
        self.next.set(if self.has_rest.get() { 0 } else { next });
    }

    fn arm(&self, entry: &Rc<Entry>, at: Nanos) -> bool {
        if entry.is_gone.get() {
            return false;
        }
        entry.due.set(at);
        let expires = self.length.floor(before(at));
        let mut wheel = self.wheel.borrow_mut();
        // The wheel's own clock may be long behind.
        wheel.forward(self.length.floor(self.machine.coarse_context().now));
        let re_armed = entry.key.get().is_some_and(|key| wheel.re_arm(key, expires).is_ok());
        if !re_armed {
            let precision = match entry.precision {
                Precision::Coarse => quietcore_wheel::Precision::Coarse,
                Precision::Tick | Precision::Exact => quietcore_wheel::Precision::Tick,
            };
            let armed = wheel.arm_with(expires, precision, Rc::clone(entry)).or_else(|full| {
                let room = wheel.capacity().max(16);
                wheel.reserve(room);
                wheel.arm_with(expires, precision, full.0)
            });
            entry.key.set(Some(armed.expect("room was made")));
        }
        self.renew(&mut wheel);
        re_armed
    }

    fn cancel(&self, entry: &Entry) -> bool {
        let Some(key) = entry.key.take() else { return false };
        let mut wheel = self.wheel.borrow_mut();
        // The entry's own count goes on; this is not the last one.
        let was_pending = wheel.cancel(key).is_ok();
        if wheel.is_empty() {
            self.next.set(u64::MAX);
        }
        was_pending
    }
}

impl LocalTimer {
    /// Arms it for a moment on the machine's clock, once; says whether it was pending before. Cost: some
    /// nanoseconds; now and then an allocation, when more timers are pending than ever before.
    ///
    /// ```
    /// # use quietcore_live::{LocalTimers, Precision};
    /// # let machine = quietcore_live::Machine::start()?;
    /// let timer = LocalTimers::new(machine).timer(Precision::Tick, |_run| {});
    /// assert!(!timer.arm_at(machine.now()) && timer.arm_at(machine.now()));
    /// # machine.shutdown();
    /// # Ok::<(), quietcore_live::StartError>(())
    /// ```
    pub fn arm_at(&self, at: impl Into<Nanos>) -> bool {
        self.shared.arm(&self.entry, at.into())
    }

    /// Arms it for `delay` from now; says whether it was pending before. Reads the clock.
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use quietcore_live::{LocalTimers, Precision};
    /// # let machine = quietcore_live::Machine::start()?;
    /// let timer = LocalTimers::new(machine).timer(Precision::Coarse, |_run| {});
    /// timer.arm_after(Duration::from_secs(3));
    /// # machine.shutdown();
    /// # Ok::<(), quietcore_live::StartError>(())
    /// ```
    pub fn arm_after(&self, delay: Duration) -> bool {
        let delay = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        self.arm_at(Nanos(self.shared.machine.clock.now().0.saturating_add(delay)))
    }

    /// Takes it out; says whether it was pending.
    ///
    /// ```
    /// # use quietcore_live::{LocalTimers, Precision};
    /// # let machine = quietcore_live::Machine::start()?;
    /// let timer = LocalTimers::new(machine).timer(Precision::Tick, |_run| {});
    /// assert!(!timer.cancel());
    /// # machine.shutdown();
    /// # Ok::<(), quietcore_live::StartError>(())
    /// ```
    pub fn cancel(&self) -> bool {
        self.shared.cancel(&self.entry)
    }

    /// Whether it is armed and has neither run nor been cancelled since.
    ///
    /// ```
    /// # use quietcore_live::{LocalTimers, Precision};
    /// # let machine = quietcore_live::Machine::start()?;
    /// assert!(!LocalTimers::new(machine).timer(Precision::Tick, |_run| {}).is_pending());
    /// # machine.shutdown();
    /// # Ok::<(), quietcore_live::StartError>(())
    /// ```
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.entry.key.get().is_some()
    }
}

impl Drop for LocalTimer {
    fn drop(&mut self) {
        self.entry.is_gone.set(true);
        self.cancel();
    }
}

impl LocalRun<'_> {
    /// The moment that the timer was armed for.
    ///
    /// ```
    /// # use quietcore_live::{LocalTimers, Precision};
    /// # let machine = quietcore_live::Machine::start()?;
    /// let timer = LocalTimers::new(machine).timer(Precision::Tick, |run| println!("{:?}", run.scheduled()));
    /// # drop(timer);
    /// # machine.shutdown();
    /// # Ok::<(), quietcore_live::StartError>(())
    /// ```
    #[must_use]
    pub const fn scheduled(&self) -> Nanos {
        self.scheduled
    }

    /// The moment of this pass over the timers.
    ///
    /// ```
    /// # use quietcore_live::{LocalTimers, Precision};
    /// # let machine = quietcore_live::Machine::start()?;
    /// let timer = LocalTimers::new(machine).timer(Precision::Tick, |run| println!("{:?}", run.now()));
    /// # drop(timer);
    /// # machine.shutdown();
    /// # Ok::<(), quietcore_live::StartError>(())
    /// ```
    #[must_use]
    pub const fn now(&self) -> Nanos {
        self.now
    }

    /// Arms the timer again; says whether it was pending. Does nothing when its [`LocalTimer`] was dropped.
    ///
    /// ```
    /// # use quietcore_live::{LocalTimers, Nanos, Precision};
    /// # let machine = quietcore_live::Machine::start()?;
    /// let timer = LocalTimers::new(machine)
    ///     .timer(Precision::Tick, |run| _ = run.arm_at(Nanos(run.scheduled().0 + 5_000_000)));
    /// # drop(timer);
    /// # machine.shutdown();
    /// # Ok::<(), quietcore_live::StartError>(())
    /// ```
    pub fn arm_at(&self, at: impl Into<Nanos>) -> bool {
        self.shared.arm(self.entry, at.into())
    }
}

impl fmt::Debug for LocalTimers {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("LocalTimers").field("next_expiry", &self.next_expiry()).finish_non_exhaustive()
    }
}

impl fmt::Debug for LocalTimer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("LocalTimer").field("is_pending", &self.is_pending()).finish_non_exhaustive()
    }
}

impl fmt::Debug for LocalRun<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("LocalRun").field("scheduled", &self.scheduled).finish_non_exhaustive()
    }
}
