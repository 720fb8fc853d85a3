//! The migration hierarchy under every order that its memory orderings allow. Runs with
//! `RUSTFLAGS="--cfg loom"` only.
//!
//! The code is the real one; loom's atomics and lock stand below it. Each model plays two or three calls on
//! the smallest tree that has the race, asserts the tree's invariants when they are over, and asserts which
//! ends were reached, so that it cannot pass by exploring nothing. `LOOM_MAX_PREEMPTIONS` (3 unless it is
//! set) bounds the search.
//!
//! - `group_word`: a group's word against its parent's, up and down;
//! - `growth`: the root moves up below walks;
//! - `publish`: timers of sleeping CPUs against the last one that goes idle;
//! - `absent`: a mark against the return.
//!
//! Longer orders of more calls, one after the other, are the business of `tests/site`.
#![cfg(loom)]

mod absent;
mod ends;
mod group_word;
mod growth;
mod publish;
