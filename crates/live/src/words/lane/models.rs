//! The words of one slot under weak memory.

use super::{DozeUntil, SlotOwner, Waits};
use crate::words::park::{Notify, Parker};
use crate::words::sync::models::ends;
use crate::words::sync::{AtomicU64, Ordering};
use loom::sync::Arc;
use loom::thread;
use quietcore_core::Nanos;
use std::collections::BTreeSet;

/// A base's word, without its lock: the first expiry.
struct Base {
    next: AtomicU64,
    doze: DozeUntil,
    parker: Parker,
}

/// Goal: a lane that dozes until 20 does not sleep through an exact timer for 5 that another thread arms.
/// Method: the lane looks as lanes do; a doze that no thread interrupts never ends, and fails the model.
#[test]
fn a_doze_is_interrupted() {
    let found = ends(|| {
        let base = Arc::new(Base {
            next: AtomicU64::new(u64::MAX),
            doze: DozeUntil::new(),
            parker: Parker::futex(),
        });
        let other = Arc::clone(&base);
        let arming = thread::spawn(move || {
            // Relaxed: what bases do.
            other.next.store(5, Ordering::Relaxed);
            other.doze.is_later_than(Nanos(5)).then(|| other.parker.unpark())
        });
        base.parker.prepare();
        base.doze.begin(Nanos(20));
        // Relaxed: as above.
        let is_seen = base.next.load(Ordering::Relaxed) < 20;
        if is_seen {
            let _ = base.parker.finish();
        } else {
            let _ = base.parker.wait(None);
        }
        base.doze.end();
        (is_seen, arming.join().expect("it ends"))
    });
    assert!(found.contains(&(true, None)), "{found:?}: armed before the lane said that it dozes");
    assert!(found.contains(&(false, Some(Notify::Woke))), "{found:?}: woken");
    assert!(found.contains(&(true, Some(Notify::NotNeeded))), "{found:?}: seen by both");
}

/// Goal: a slot has one owner at a time, and the next one finds what the last one left. Method: two claim,
/// count and release; loom watches the count.
#[test]
fn a_slot_has_one_owner() {
    let found = ends(|| {
        let slot = Arc::new((SlotOwner::new(), loom::cell::Cell::new(0_u32)));
        let claim = |(owner, count): &(SlotOwner, loom::cell::Cell<u32>)| {
            owner.claim(Waits::Futex).then(|| {
                let before = count.get();
                count.set(before + 1);
                owner.release();
                before
            })
        };
        let other = Arc::clone(&slot);
        let thread = thread::spawn(move || claim(&other));
        (claim(&slot), thread.join().expect("it ends"))
    });
    let both = [(Some(0), Some(1)), (Some(1), Some(0)), (Some(0), None), (None, Some(0))];
    assert_eq!(found, BTreeSet::from(both));
}
