//! Paused time: the clock stands still while anybody has something to do, and jumps to the next expiry when
//! nobody has.
//!
//! Who takes part says so ([`Machine::participate`]): a thread in [`block_on`], the workers of a runtime. When
//! all of them are idle, the last one moves the clock to the first expiry and runs what is due on its own
//! thread; the helper runs nothing while time is paused. So a test takes no real time, and with one thread it
//! takes the same steps every time.
//!
//! Invariants:
//! - Time moves only when all who take part are idle, nobody [holds](hold) it and nobody runs timers.
//! - Whoever was woken counts as busy from the wake on, not from the moment its thread runs.
//! - When something changes that could let time move, somebody idle is asked to look again.
//!
//! Only machines that were made for it ([`Builder::virtual_time`](crate::Builder::virtual_time)) can be paused.
//! They have one CPU, so that timers that are due at the same moment run in the order in which they were armed.
//! Not here: the clock itself (`clock/`), and how a runtime finds out that it is idle. Source: tokio's
//! `time::pause`; deviation: any number of threads may take part.

mod attend;
mod state;
#[cfg(test)]
mod tests;

use crate::Machine;
pub use attend::{attend, block_on};
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use quietcore_core::Nanos;
use state::State;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Why time was not paused, resumed or moved.
///
/// ```
/// use quietcore_live::{Machine, virtual_time::TimeError};
///
/// let machine = Machine::start()?;
/// assert_eq!(machine.pause(), Err(TimeError::Refused));
/// # machine.shutdown();
/// # Ok::<(), quietcore_live::StartError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimeError {
    /// The machine was not started with [`Builder::virtual_time`](crate::Builder::virtual_time), or was shut
    /// down.
    Refused,
    /// Time is paused already.
    Paused,
    /// Time is not paused.
    NotPaused,
    /// The moment does not fit into 64 bits of nanoseconds.
    TooFar,
}

impl fmt::Display for TimeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Refused => {
                "time can be paused only on a machine that was started with `Builder::virtual_time`"
            }
            Self::Paused => "time is paused already",
            Self::NotPaused => "time is not paused",
            Self::TooFar => "time cannot be advanced that far",
        })
    }
}

impl core::error::Error for TimeError {}

/// How the machine reaches somebody who takes part in time.
///
/// ```
/// use std::thread::Thread;
/// use quietcore_live::virtual_time::Participate;
///
/// struct Loop(Thread);
///
/// impl Participate for Loop {
///     fn look_again(&self) {
///         self.0.unpark();
///     }
/// }
/// ```
pub trait Participate: Send + Sync {
    /// Whether work waits that nobody has taken up yet, although everybody is idle: a queue that other threads
    /// push to. Called under a lock: it must return at once and call no machine. Any thread.
    fn has_backlog(&self) -> bool {
        false
    }

    /// Makes the participant call [`Participant::idle`] again soon, because time may be able to move. Any
    /// thread; no lock is held.
    fn look_again(&self);
}

/// What somebody who has nothing to do is told.
///
/// ```
/// use quietcore_live::virtual_time::Rest;
///
/// assert_ne!(Rest::Wait, Rest::Woken);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "who was woken must not wait"]
pub enum Rest {
    /// It was woken meanwhile: it is busy.
    Woken,
    /// Time moved, and what was due ran: it is busy, and looks for work before it calls `idle` again.
    Moved,
    /// It waits until it is woken or asked to look again.
    Wait,
}

/// Somebody who takes part in a machine's time: while it is busy, paused time stands still. It starts idle;
/// dropping it ends its part. Any thread may call it.
///
/// ```
/// use quietcore_live::{Machine, virtual_time::{Participate, Rest}};
/// use std::sync::Arc;
///
/// struct Nobody;
/// impl Participate for Nobody {
///     fn look_again(&self) {}
/// }
/// let machine = Machine::builder().virtual_time().start()?;
/// let participant = machine.participate(Arc::new(Nobody));
/// participant.begin();
/// assert_eq!(participant.idle(), Rest::Wait); // time runs by itself: there is nothing to move
/// # machine.shutdown();
/// # Ok::<(), quietcore_live::StartError>(())
/// ```
#[derive(Debug)]
pub struct Participant {
    machine: &'static Machine,
    number: usize,
}

impl Participant {
    /// It has been given work, which it will take up: from now on it is busy.
    ///
    /// ```
    /// # use quietcore_live::{Machine, virtual_time::{Participate, Rest}};
    /// # use std::sync::Arc;
    /// # struct Nobody;
    /// # impl Participate for Nobody { fn look_again(&self) {} }
    /// # let machine = Machine::builder().virtual_time().start()?;
    /// let participant = machine.participate(Arc::new(Nobody));
    /// participant.wake();
    /// assert_eq!(participant.idle(), Rest::Woken);
    /// # machine.shutdown();
    /// # Ok::<(), quietcore_live::StartError>(())
    /// ```
    pub fn wake(&self) {
        self.machine.virtual_time.lock().wake(self.number);
    }

    /// It takes work up. Says whether it was woken since the last time.
    ///
    /// ```
    /// # use quietcore_live::{Machine, virtual_time::Participate};
    /// # use std::sync::Arc;
    /// # struct Nobody;
    /// # impl Participate for Nobody { fn look_again(&self) {} }
    /// # let machine = Machine::builder().virtual_time().start()?;
    /// let participant = machine.participate(Arc::new(Nobody));
    /// participant.wake();
    /// assert!(participant.begin());
    /// assert!(!participant.begin());
    /// # machine.shutdown();
    /// # Ok::<(), quietcore_live::StartError>(())
    /// ```
    pub fn begin(&self) -> bool {
        self.machine.virtual_time.lock().begin(self.number)
    }

    /// It has nothing to do. If time is paused and it was the last who was busy, time moves to the next expiry
    /// and what is due runs on this thread, before this returns.
    ///
    /// ```
    /// # use quietcore_live::{Machine, virtual_time::{Participate, Rest}};
    /// # use std::sync::Arc;
    /// # struct Nobody;
    /// # impl Participate for Nobody { fn look_again(&self) {} }
    /// # let machine = Machine::builder().virtual_time().start()?;
    /// machine.pause()?;
    /// let participant = machine.participate(Arc::new(Nobody));
    /// assert_eq!(participant.idle(), Rest::Wait); // no timer is armed
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn idle(&self) -> Rest {
        let (machine, time) = (self.machine, &self.machine.virtual_time);
        let mut state = time.lock();
        if !state.rest(self.number) {
            return Rest::Woken;
        }
        if !machine.clock.is_paused() || !state.may_move() {
            return Rest::Wait;
        }
        state.runner = Some(thread::current().id());
        drop(state);
        let running = Running { machine };
        let has_moved = machine.move_to_next();
        if has_moved {
            // Before others may move it again: what was woken may be this one's, and is looked for first.
            time.lock().stay(self.number);
        }
        drop(running);
        match has_moved {
            true if time.lock().is_woken(self.number) => Rest::Woken,
            true => Rest::Moved,
            false => Rest::Wait,
        }
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        let time = &self.machine.virtual_time;
        let mut state = time.lock();
        state.leave(self.number);
        self.machine.settle(state);
    }
}

/// While it lives, paused time does not move by itself. [`advance`] still moves it.
///
/// ```
/// use quietcore_live::Machine;
///
/// let machine = Machine::builder().virtual_time().start()?;
/// let hold = machine.hold();
/// drop(hold);
/// # machine.shutdown();
/// # Ok::<(), quietcore_live::StartError>(())
/// ```
#[derive(Debug)]
#[must_use = "time is held only while the guard lives"]
pub struct Hold {
    machine: &'static Machine,
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut state = self.machine.virtual_time.lock();
        state.holds -= 1;
        self.machine.settle(state);
    }
}

/// A machine's part of it.
#[derive(Debug)]
pub(crate) struct VirtualTime {
    is_allowed: bool,
    /// Length of a tick, in ns.
    tick: u64,
    state: Mutex<State>,
    /// Nobody runs timers any more.
    done: Condvar,
}

impl VirtualTime {
    /// For a machine whose tick lasts `tick`.
    pub(crate) fn new(allowed: Allowed, tick: Nanos) -> Self {
        let is_allowed = allowed == Allowed::Yes;
        Self { is_allowed, tick: tick.0.max(1), state: Mutex::default(), done: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes this thread the one that runs timers; `None` when it is already.
    fn claim(&self) -> Option<MutexGuard<'_, State>> {
        let mut state = self.lock();
        let this = thread::current().id();
        loop {
            match state.runner {
                None => {
                    state.runner = Some(this);
                    return Some(state);
                }
                Some(runner) if runner == this => return None,
                Some(_) => state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

/// Whether a machine's time may be paused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Allowed {
    #[default]
    No,
    Yes,
}

/// This thread runs timers.
struct Running {
    machine: &'static Machine,
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut state = self.machine.virtual_time.lock();
        state.runner = None;
        self.machine.virtual_time.done.notify_all();
        self.machine.settle(state);
    }
}

impl Machine {
    /// Whether its time can be paused.
    ///
    /// ```
    /// # use quietcore_live::Machine;
    /// let machine = Machine::start()?;
    /// assert!(!machine.has_virtual_time());
    /// # machine.shutdown();
    /// # Ok::<(), quietcore_live::StartError>(())
    /// ```
    #[must_use]
    pub const fn has_virtual_time(&self) -> bool {
        self.virtual_time.is_allowed
    }

    /// Whether time stands still.
    ///
    /// ```
    /// # use quietcore_live::Machine;
    /// let machine = Machine::builder().virtual_time().start()?;
    /// machine.pause()?;
    /// assert!(machine.is_paused());
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.clock.is_paused()
    }

    /// Takes part in this machine's time.
    ///
    /// ```
    /// # use quietcore_live::{Machine, virtual_time::Participate};
    /// # use std::sync::Arc;
    /// # struct Nobody;
    /// # impl Participate for Nobody { fn look_again(&self) {} }
    /// let machine = Machine::builder().virtual_time().start()?;
    /// let participant = machine.participate(Arc::new(Nobody));
    /// # drop(participant);
    /// # machine.shutdown();
    /// # Ok::<(), quietcore_live::StartError>(())
    /// ```
    pub fn participate(&'static self, how: Arc<dyn Participate>) -> Participant {
        let number = self.virtual_time.lock().join(how);
        Participant { machine: self, number }
    }

    /// Keeps paused time from moving by itself, for work that nobody who takes part knows of: a thread that
    /// computes, a process that was started, a thread that is about to take part.
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use quietcore_live::{Machine, time::sleep, virtual_time::block_on};
    /// let machine = Machine::builder().virtual_time().start()?;
    /// machine.pause()?;
    /// let hold = machine.hold();
    /// let thread = std::thread::spawn(move || {
    ///     let _entered = machine.enter();
    ///     block_on(async {
    ///         drop(hold); // from here on the thread is counted
    ///         sleep(Duration::from_secs(60)).await;
    ///     });
    /// });
    /// # thread.join().expect("no panic");
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn hold(&'static self) -> Hold {
        self.virtual_time.lock().holds += 1;
        Hold { machine: self }
    }

    /// Stops the clock, at the next edge of a tick: durations of whole ticks then end exactly. Waits while the
    /// helper runs what is due, unless a callback calls this.
    ///
    /// # Errors
    /// When the machine was not made for it, or time is paused already.
    ///
    /// ```
    /// # use quietcore_live::Machine;
    /// let machine = Machine::builder().virtual_time().start()?;
    /// machine.pause()?;
    /// assert_eq!(machine.now(), machine.now());
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pause(&'static self) -> Result<(), TimeError> {
        let time = &self.virtual_time;
        if !time.is_allowed || !self.is_running() {
            return Err(TimeError::Refused);
        }
        self.while_nobody_runs(|| {
            if self.clock.is_paused() {
                return Err(TimeError::Paused);
            }
            let edge = self.clock.now().0.div_ceil(time.tick).saturating_mul(time.tick);
            self.clock.freeze(Nanos(edge));
            Ok(())
        })
    }

    /// Lets time go on, from where it stands.
    ///
    /// # Errors
    /// When time is not paused.
    ///
    /// ```
    /// # use quietcore_live::Machine;
    /// let machine = Machine::builder().virtual_time().start()?;
    /// machine.pause()?;
    /// machine.resume()?;
    /// assert!(machine.resume().is_err());
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn resume(&'static self) -> Result<(), TimeError> {
        self.while_nobody_runs(|| {
            if !self.clock.is_paused() {
                return Err(TimeError::NotPaused);
            }
            self.clock.thaw();
            Ok(())
        })?;
        // Alarms that were asked for while time stood still were not set: the helper looks at all timers.
        self.alarm.pull(Nanos(1));
        Ok(())
    }

    /// Moves a paused clock forward by `duration` in one jump, and runs what is due on this thread. All of it
    /// sees the clock at its new place. From inside a callback only the clock is moved; what becomes due runs
    /// after it.
    ///
    /// # Errors
    /// When time is not paused, or would leave its range.
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use quietcore_live::Machine;
    /// let machine = Machine::builder().virtual_time().start()?;
    /// machine.pause()?;
    /// let before = machine.now();
    /// machine.advance(Duration::from_millis(5))?;
    /// assert_eq!(machine.now().since(before).as_u64(), 5_000_000);
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn advance(&'static self, duration: Duration) -> Result<(), TimeError> {
        let step = u64::try_from(duration.as_nanos()).map_err(|_| TimeError::TooFar)?;
        self.while_nobody_runs(|| {
            if !self.clock.is_paused() {
                return Err(TimeError::NotPaused);
            }
            // The greatest word says that time goes on.
            let target = self.clock.now().0.checked_add(step).filter(|target| *target != u64::MAX);
            self.clock.freeze(Nanos(target.ok_or(TimeError::TooFar)?));
            Ok(())
        })
    }

    /// Changes the clock, and then runs what is due if it stands still.
    fn while_nobody_runs(
        &'static self,
        change: impl FnOnce() -> Result<(), TimeError>,
    ) -> Result<(), TimeError> {
        let Some(state) = self.virtual_time.claim() else { return change() };
        drop(state);
        let _running = Running { machine: self };
        change()?;
        if self.clock.is_paused() {
            self.play_all();
        }
        Ok(())
    }

    /// For the helper: what is due, unless time is paused; nobody pauses it meanwhile.
    pub(crate) fn play_unless_paused(&'static self) {
        if !self.virtual_time.is_allowed {
            self.play(self.clock.now());
        } else if let Some(state) = self.virtual_time.claim() {
            drop(state);
            let _running = Running { machine: self };
            if !self.clock.is_paused() {
                self.play(self.clock.now());
            }
        }
    }

    /// When something is due; never later than the truth.
    fn next_expiry(&self) -> Option<Nanos> {
        self.core.online_cpus().iter().filter_map(|cpu| self.core.next_event(cpu)).min()
    }

    /// Moves the clock to the next expiry, and runs what is due. Says whether there was anything to move to.
    fn move_to_next(&self) -> bool {
        let next = self.next_expiry();
        if let Some(next) = next {
            self.clock.freeze(next.max(self.clock.now()));
        }
        // Also without a timer: then the books learn that none is left, and the next arm asks for an alarm.
        self.play_all();
        next.is_some()
    }

    /// Runs what is due; again while that makes more due: a timer that was only moved to a finer bucket, or a
    /// callback that moved the clock.
    fn play_all(&self) {
        while self.is_running() {
            let next = self.play(self.clock.now());
            if !self.clock.is_paused() || next.is_none_or(|next| next > self.clock.now()) {
                break;
            }
        }
    }

    /// Somebody who does not take part armed a timer while time stood still.
    pub(crate) fn settle_paused(&self) {
        self.settle(self.virtual_time.lock());
    }

    /// Something changed: if time may move now, somebody idle is asked to move it.
    fn settle(&self, state: MutexGuard<'_, State>) {
        let may_move = self.clock.is_paused() && self.next_expiry().is_some();
        let idle = if may_move { state.somebody_idle() } else { None };
        drop(state);
        if let Some(idle) = idle {
            idle.look_again();
        }
    }
}

/// Pauses the time of the current machine: see [`Machine::pause`].
///
/// # Panics
/// When there is no current machine, it was not made for it, or its time is paused already.
///
/// ```
/// use quietcore_live::{Machine, virtual_time};
///
/// let machine = Machine::builder().virtual_time().start()?;
/// let entered = machine.enter();
/// virtual_time::pause();
/// # drop(entered);
/// # machine.shutdown();
/// # Ok::<(), quietcore_live::StartError>(())
/// ```
#[track_caller]
pub fn pause() {
    if let Err(error) = Machine::current().pause() {
        panic!("{error}");
    }
}

/// Lets the time of the current machine go on: see [`Machine::resume`].
///
/// # Panics
/// When there is no current machine, or its time is not paused.
///
/// ```
/// # use quietcore_live::{Machine, virtual_time};
/// # let machine = Machine::builder().virtual_time().start()?;
/// # let entered = machine.enter();
/// virtual_time::pause();
/// virtual_time::resume();
/// # drop(entered);
/// # machine.shutdown();
/// # Ok::<(), quietcore_live::StartError>(())
/// ```
#[track_caller]
pub fn resume() {
    if let Err(error) = Machine::current().resume() {
        panic!("{error}");
    }
}

/// Moves the paused clock of the current machine forward in one jump, runs what is due, and yields once, so
/// that other tasks can see it: see [`Machine::advance`]. To let timers fire one after another, sleep instead.
///
/// # Panics
/// When there is no current machine, its time is not paused, or would leave its range.
///
/// ```
/// use core::time::Duration;
/// use quietcore_live::{Machine, virtual_time};
///
/// let machine = Machine::builder().virtual_time().start()?;
/// let entered = machine.enter();
/// virtual_time::pause();
/// let before = machine.now();
/// virtual_time::block_on(virtual_time::advance(Duration::from_secs(60)));
/// assert_eq!(machine.now().since(before).as_u64(), 60_000_000_000);
/// # drop(entered);
/// # machine.shutdown();
/// # Ok::<(), quietcore_live::StartError>(())
/// ```
pub async fn advance(duration: Duration) {
    if let Err(error) = Machine::current().advance(duration) {
        panic!("{error}");
    }
    YieldOnce::default().await;
}

/// Keeps the paused time of the current machine from moving by itself: see [`Machine::hold`].
///
/// # Panics
/// When there is no current machine.
///
/// ```
/// # use quietcore_live::{Machine, virtual_time};
/// # let machine = Machine::builder().virtual_time().start()?;
/// # let entered = machine.enter();
/// let hold = virtual_time::hold();
/// # drop((hold, entered));
/// # machine.shutdown();
/// # Ok::<(), quietcore_live::StartError>(())
/// ```
#[track_caller]
pub fn hold() -> Hold {
    Machine::current().hold()
}

/// Pending once.
#[derive(Default)]
struct YieldOnce {
    has_yielded: bool,
}

impl Future for YieldOnce {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if core::mem::replace(&mut self.has_yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}
