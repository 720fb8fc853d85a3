//! How the models beside the code are played: in all orders, with a set of ends that must come out exactly.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p quietcore-core --lib`. `LOOM_MAX_PREEMPTIONS` (3 unless it is set)
//! bounds the search.

extern crate std;

use alloc::collections::BTreeSet;
use loom::model::Builder;
use std::sync::{Arc, Mutex};

/// All ends of a model that plays one order at a time. A thread that sleeps for ever fails the model.
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
