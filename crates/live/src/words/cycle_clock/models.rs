//! Notes under weak memory.

use super::{CycleClock, FRACTION};
use crate::words::sync::models::ends;
use loom::sync::Arc;
use loom::thread;
use quietcore_core::Nanos;

/// Goal: a reader takes no two halves of different notes. Method: two threads note, one of them twice, and a
/// third one reads; each note says that moment and cycle are the same, and a cycle is an eighth more than a
/// ns.
#[test]
fn what_is_read_was_noted_together() {
    let found = ends(|| {
        let clock = Arc::new(CycleClock::new());
        clock.set_rate(1 << FRACTION, Nanos(1 << FRACTION));
        let [one, two] = [Arc::clone(&clock), Arc::clone(&clock)];
        let first = thread::spawn(move || {
            one.note(100, Nanos(100));
            one.note(200, Nanos(200));
        });
        let second = thread::spawn(move || two.note(300, Nanos(300)));
        let latest = clock.latest(308).map(|latest| latest.0);
        first.join().expect("it ends");
        second.join().expect("it ends");
        // Of 0, 100, 200 and 300 with what has passed since.
        let is_whole = |latest| [308 + 38, 308 + 26, 308 + 13, 308 + 1].contains(&latest);
        assert!(latest.is_none_or(is_whole), "{latest:?}");
        latest.is_some()
    });
    assert_eq!(found, [false, true].into());
}
