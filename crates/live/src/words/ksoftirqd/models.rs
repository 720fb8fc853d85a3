//! A bell and a park word together, under weak memory.

use super::Ksoftirqd;
use crate::words::sync::models::ends;
use crate::words::sync::{AtomicU32, Ordering};
use loom::sync::Arc;
use loom::thread;
use std::collections::BTreeSet;

/// Goal: a thread does not sleep on something that it was asked for, and finds it. Method: it is asked while
/// it looks, and waits if it sees nothing.
#[test]
fn what_is_asked_for_is_found() {
    let ends = ends(|| {
        let words = Arc::new((Ksoftirqd::new(), AtomicU32::new(0)));
        let sender = Arc::clone(&words);
        let sender = thread::spawn(move || {
            // Relaxed: the bell releases it.
            sender.1.store(7, Ordering::Relaxed);
            sender.0.ask();
        });
        let mut looks = 0;
        let is_asked = words.0.wait(|| {
            looks += 1;
            true
        });
        // Relaxed: the bell's answer acquires it.
        assert_eq!((is_asked, words.1.load(Ordering::Relaxed)), (true, 7));
        sender.join().expect("no panic");
        looks
    });
    assert_eq!(ends, BTreeSet::from([0, 1]), "asked before, or after the first look");
}

/// Goal: the end of the machine is not slept through, and is no request. Method: it ends while the thread
/// looks, and waits if it sees nothing.
#[test]
fn an_end_is_noticed() {
    let ends = ends(|| {
        let words = Arc::new((Ksoftirqd::new(), AtomicU32::new(1)));
        let ender = Arc::clone(&words);
        let ender = thread::spawn(move || {
            // Relaxed: the park word's fence orders it.
            ender.1.store(0, Ordering::Relaxed);
            ender.0.wake();
        });
        let mut looks = 0;
        let is_asked = words.0.wait(|| {
            looks += 1;
            // Relaxed: see above.
            words.1.load(Ordering::Relaxed) != 0
        });
        assert!(!is_asked, "there is nothing to do");
        ender.join().expect("no panic");
        looks
    });
    assert_eq!(ends, BTreeSet::from([1, 2]), "it ended before, or after the first look");
}
