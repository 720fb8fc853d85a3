//! Softirqs: deferred work of a CPU, by vector; what runs now and what is left to ksoftirqd.
//!
//! `vector.rs` names them; `claims.rs` is what is pending and who runs it; `rounds.rs` what a lane and its
//! ksoftirqd do next; `pass.rs` the budget of one round; `defer.rs` what waits for a real-time task, and for
//! how long at most; `raise.rs` whether a tick raises TIMER; `call.rs` tells a CPU that something was
//! armed on it. Invariants: vectors of a pass run in ascending order; what was raised during a pass runs in
//! the next one; HI, TIMER, TASKLET, SCHED, HRTIMER and RCU never leave their CPU. Not here: handlers,
//! threads, and who raises. Source: Linux 6.12, kernel/softirq.c (`handle_softirqs`), by behaviour; deferral
//! as in the softirq-aware series of 2022. Deviations: the time is measured in ns, not in ticks; a limit ends
//! every deferral.

mod call;
mod claims;
mod defer;
mod pass;
mod raise;
mod rounds;
mod vector;

pub use call::Call;
pub use claims::{Claims, Raise};
pub use defer::Deferral;
pub use pass::{Budget, Passes, Runner, Step};
pub use raise::TimerRaise;
pub use rounds::{KsoftirqdRound, KsoftirqdStep, LaneRound, LaneSoftirqs, LaneStep, Left};
pub use vector::{Vector, VectorSet};
