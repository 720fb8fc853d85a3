//! The owner of a slot under weak memory.

use super::{SlotOwner, Waits};
use crate::words::sync::models::ends;
use loom::sync::Arc;
use loom::thread;
use std::collections::BTreeSet;

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
