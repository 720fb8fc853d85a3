//! Stalls: a CPU that does not turn must not hold back what others could do.
//!
//! Every CPU stores a heartbeat; its neighbours look at it once per tick (`watch.rs`). A CPU that is late
//! (`policy.rs`), with something overdue, is *marked absent* (`mark.rs`): its duties in the hierarchy go to
//! others, its global timers are published, the tokens that it holds are taken back (`tokens.rs`). Its pinned
//! timers wait until it returns (`returning.rs`). A parked CPU that did not wake up in time is marked as well
//! (`missed_wakeup.rs`).
//!
//! Locks decide, heartbeats hint: the mark takes LOCAL, GLOBAL, GUEST and then the CPU's record, each within
//! the lock's bound, and so does the return, so neither ever waits for a CPU that was stopped inside one of
//! them. Interleavings I1 to I8 of docs/design/PROTOCOL.md, section 5: `tests/site`. Source: ours; the kernel
//! has interrupts instead.

mod mark;
mod missed_wakeup;
pub(super) mod policy;
mod returning;
mod tokens;
mod watch;

pub use mark::MarkOutcome;
pub use policy::{Patience, StallPolicy};
