//! Who takes part in a machine's time, and guards that keep it.
//!
//! A participant is busy or idle, and says so itself; a wake makes it busy at once, on whichever thread it
//! happens. The last that becomes idle moves time. Not here: what that is (`mover.rs`), and who is what
//! (`state.rs`).

use super::mover::Running;
use crate::Machine;

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
    /// Whether work waits that nobody has taken up yet, although everybody is idle: a queue that other
    /// threads push to. Called under a lock: it must return at once and call no machine. Any thread.
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
    pub(super) machine: &'static Machine,
    pub(super) number: usize,
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

    /// It has nothing to do. If time is paused and it was the last who was busy, time moves to the next
    /// expiry and what is due runs on this thread, before this returns.
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
        let running = Running::begin(machine, state);
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

/// While it lives, paused time does not move by itself. [`advance`](super::advance) still moves it.
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
    pub(super) machine: &'static Machine,
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut state = self.machine.virtual_time.lock();
        state.holds -= 1;
        self.machine.settle(state);
    }
}
