//! The words of a run queue under weak memory.

use super::{CurrentItem, Gate};
use crate::words::sync::models::ends;
use loom::sync::Arc;
use loom::thread;
use quietcore_core::run_queue::Activity;
use std::collections::BTreeSet;

/// Goal: after isolating has waited nothing that is not bound to the lane starts or runs. Method: the lane
/// tries to begin while the gate is closed; both may not have their way.
#[test]
fn nothing_starts_behind_a_closed_gate() {
    let ends = ends(|| {
        let words = Arc::new((CurrentItem::new(), Gate::new()));
        words.1.open();
        let lane = Arc::clone(&words);
        let lane = thread::spawn(move || lane.0.begin_movable(Activity::Normal, &lane.1));
        let is_seen = words.1.close_and_see(&words.0);
        let runs = lane.join().expect("no panic");
        assert!(is_seen || !runs, "it runs, and nobody waits for it");
        (is_seen, runs)
    });
    assert_eq!(ends, BTreeSet::from([(false, false), (true, false), (true, true)]));
}
