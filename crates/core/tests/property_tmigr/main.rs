//! The migration hierarchy against a list with one lock: a list of what every CPU published.
//!
//! `model` is the list and what it expects of every call; `random` plays random scripts on random machines (1
//! to 256 CPUs, 1 to 8 nodes, filled unevenly, CPUs joining in any order) on both. After each step the tree's
//! own invariants hold, and every expiry that was published is seen by a CPU.
//!
//! `growth` is the shape alone.
//! One thread: what happens between two steps of a call is the business of `tests/site`.

mod growth;
mod model;
mod random;
