//! The migration hierarchy, interleaved step by step. Runs with `RUSTFLAGS="--cfg site"` only.
//!
//! Virtual CPUs are threads that pass a baton at every mark of the code (`stage`). A test either says who
//! goes how far (`script`) or tries every order with a few preemptions (`search`). When all are done, the
//! tree's invariants hold and every due timer is seen by a CPU (`world`).
//!
//! - `kernel`: the races that Linux had, by name (the table is in `src/tmigr/README.md`);
//! - `walks`, `available`, `absent`, `growth`: orders of waking up, going idle, publishing, pulling, leaving,
//!   stalling and growing;
//! - `machine`: bugs of bases and CPUs, on a whole machine (`lanes`);
//! - `stall`: CPUs that stop for ever anywhere; `stopped`: one that is stopped at each step of a lock, for a
//!   while, and what others do meanwhile.
//!
//! Sequentially consistent: memory orderings are the business of `tests/loom`.
#![cfg(site)]
#![allow(unsafe_code, reason = "a lock promises one holder at a time: see `lock`")]

mod absent;
mod available;
mod growth;
mod kernel;
mod lanes;
mod lock;
mod machine;
mod play;
mod script;
mod search;
mod stage;
mod stall;
mod stopped;
mod walks;
mod world;
