//! The words of one slot under weak memory.

use super::DozeUntil;
use crate::Nanos;
use crate::sync::models::ends;
use crate::sync::{AtomicU64, Ordering};
use alloc::collections::BTreeSet;
use loom::sync::Arc;
use loom::thread;

/// A base's word, without its lock: the first expiry.
struct Base {
    next: AtomicU64,
    doze: DozeUntil,
}

/// Goal: a lane that dozes until 20 does not sleep through an exact timer for 5 that another thread arms: it
/// sees the timer, or is kicked. Method: the lane looks as lanes do.
#[test]
fn a_doze_is_interrupted() {
    let found = ends(|| {
        let base = Arc::new(Base { next: AtomicU64::new(u64::MAX), doze: DozeUntil::new() });
        let other = Arc::clone(&base);
        let arming = thread::spawn(move || {
            // Relaxed: what bases do.
            other.next.store(5, Ordering::Relaxed);
            other.doze.is_later_than(Nanos(5))
        });
        base.doze.begin(Nanos(20));
        // Relaxed: as above.
        let is_seen = base.next.load(Ordering::Relaxed) < 20;
        let is_kicked = arming.join().expect("it ends");
        assert!(is_seen || is_kicked, "the timer waits for the end of the doze");
        (is_seen, is_kicked)
    });
    assert_eq!(found, BTreeSet::from([(true, false), (false, true), (true, true)]));
}
