//! How the models of this crate are played: in all orders, with a set of ends that must come out exactly.
//!
//! Each model stands beside its word (`park/models.rs`, ...) and runs the real code on loom's atomics. Runs
//! with `RUSTFLAGS="--cfg loom" cargo test -p quietcore-live --test loom` only. `LOOM_MAX_PREEMPTIONS` (3
//! unless it is set) bounds the search.

use loom::model::Builder;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// All ends of a model that drives one order at a time. A thread that sleeps for ever fails the model.
pub(crate) fn ends<E: Ord + Send + 'static>(play: impl Fn() -> E + Send + Sync + 'static) -> BTreeSet<E> {
    let found = Arc::new(Mutex::new(BTreeSet::new()));
    let gathered = Arc::clone(&found);
    let mut builder = Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    builder.check(move || {
        let end = play();
        gathered.lock().expect("no thread panicked").insert(end);
    });
    std::mem::take(&mut *found.lock().expect("no thread panicked"))
}
