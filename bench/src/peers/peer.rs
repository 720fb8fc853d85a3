//! What a timer structure must be able to do, so that all can be driven alike.
//!
//! One owner, no threads. Time is counted in ticks of 1 ms from the moment a peer is made, and stands still
//! unless a workload lets it pass. Timers are numbers from 0; what a peer's own interface calls a key or a
//! handle is kept by the caller, as it would be in an application. Instants and durations are made before
//! the clock of the benchmark starts, by [`Peer::when`] and [`Peer::now`].

use super::plan::Workload;
use serde::Serialize;

/// What a row of the report stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A timer structure: every effect is asserted.
    Peer,
    /// The same structure driven in another way: shown only where that makes a difference.
    Variant,
    /// Something to compare with that keeps no timers: nothing is asserted.
    Baseline,
}

/// Whose clock a peer goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The caller's: [`Peer::advance`] says what time it is.
    Caller,
    /// The system's, which it reads itself.
    System,
}

/// What [`Peer::next_expiry`] promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// When the first timer will be handed out.
    Exact,
    /// That moment or an earlier one.
    LowerBound,
    /// A moment near it, which can be an earlier or a later one.
    Approximate,
    /// Nothing: there is no such call.
    Absent,
}

/// A timer structure, or a baseline in its place.
pub trait Peer: Sized {
    /// What the report calls it.
    const NAME: &'static str;
    /// The package whose version the report shows beside the name.
    const PACKAGE: Option<&'static str> = None;
    /// How it is set up and driven, and what follows from that for its numbers.
    const NOTE: &'static str;
    const ROLE: Role = Role::Peer;
    const CLOCK: Clock = Clock::Caller;
    const ANSWER: Answer;

    /// An expiry in the form that [`arm`](Self::arm) takes.
    type When: Copy;
    /// The time in the form that [`advance`](Self::advance) takes and [`next_expiry`](Self::next_expiry)
    /// gives.
    type Now: Copy;
    /// What the caller keeps of a pending timer. Dropping it has no effect.
    type Handle;

    /// Why `workload` is left out for this peer; `None` if it is not.
    fn absent(workload: Workload) -> Option<&'static str> {
        let _ = workload;
        None
    }

    /// An empty structure, prepared for timers `0..capacity`.
    fn new(capacity: usize) -> Self;

    /// The expiry `delay` ticks after the tick `now`.
    fn when(&self, now: u64, delay: u64) -> Self::When;

    /// The tick `tick` as a time.
    fn now(&self, tick: u64) -> Self::Now;

    /// The tick that `now` falls into.
    fn tick(&self, now: Self::Now) -> u64;

    /// Arms the timer `id`, which is not pending.
    fn arm(&mut self, id: u32, when: Self::When) -> Self::Handle;

    /// Whether the timer was pending.
    fn cancel(&mut self, id: u32, handle: &mut Self::Handle) -> bool;

    /// Moves a pending timer to another expiry. The default is for peers that have no such call.
    fn rearm(&mut self, id: u32, handle: &mut Self::Handle, when: Self::When) {
        self.cancel(id, handle);
        *handle = self.arm(id, when);
    }

    /// Only for a peer with a clock of its own: returns when timers with delays up to `delay` are due.
    fn wait(&self, delay: u64) {
        let _ = delay;
    }

    /// Gives back the handle of a timer that expired, where that is the caller's duty.
    fn release(&mut self, id: u32, handle: &mut Self::Handle) {
        let _ = (id, handle);
    }

    /// Appends the timers that are due at `now`, one tick after the last call.
    fn advance(&mut self, now: Self::Now, expired: &mut Vec<u32>);

    /// When the first timer is due, as exact as [`ANSWER`](Self::ANSWER) says. A peer that does not
    /// give times answers with an arbitrary one when asked for its [`Answer::Absent`].
    fn next_expiry(&mut self) -> Option<Self::Now>;

    /// How many timers are pending.
    fn pending(&self) -> usize;
}
