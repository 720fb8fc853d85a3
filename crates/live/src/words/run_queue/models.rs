//! The words of a run queue under weak memory.

use super::{CurrentItem, Doorbell, Gate};
use crate::words::park::Parker;
use crate::words::sync::models::ends;
use crate::words::sync::{AtomicU32, Ordering};
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

/// Goal: a lane does not sleep on something that was left for it, and finds it. Method: one is left while the
/// lane looks, and waits if it sees nothing.
#[test]
fn what_is_left_is_found() {
    let ends = ends(|| {
        let words = Arc::new((Doorbell::new(), Parker::futex(), AtomicU32::new(0)));
        let sender = Arc::clone(&words);
        let sender = thread::spawn(move || {
            // Relaxed: `Doorbell::ring` releases it.
            sender.2.store(7, Ordering::Relaxed);
            sender.0.ring();
            let _ = sender.1.unpark();
        });
        let (doorbell, parker, left) = &*words;
        let mut waits = 0;
        while !doorbell.answer() {
            parker.prepare();
            if doorbell.is_rung() {
                let _ = parker.finish();
            } else {
                waits += 1;
                let _ = parker.wait(None);
            }
        }
        // Relaxed: `Doorbell::answer` acquires it.
        assert_eq!(left.load(Ordering::Relaxed), 7);
        sender.join().expect("no panic");
        waits
    });
    assert_eq!(ends, BTreeSet::from([0, 1]));
}
