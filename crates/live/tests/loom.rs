//! The words of threads under weak memory, on loom's atomics: every model stands beside its word.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p quietcore-live --test loom`. The library is empty in that build, so
//! that no other file has to know of it.
#![cfg(loom)]
#![allow(dead_code, unreachable_pub, reason = "models use a part of each word")]

#[path = "../src/words/mod.rs"]
mod words;
