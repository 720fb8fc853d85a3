//! The lock under weak memory: its sections exclude each other, and see each other.

use super::{FutexLock, HOLDER};
use crate::words::sync::UnsafeCell;
use crate::words::sync::models::ends;
use loom::sync::Arc;
use quietcore_core::RawLock;
use std::collections::BTreeSet;

#[derive(Default)]
struct Guarded {
    lock: FutexLock,
    /// Loom fails a model in which two touch it without an order.
    value: UnsafeCell<u32>,
}

impl Guarded {
    /// Adds one, and says what was there.
    fn add(&self) -> u32 {
        self.value.with_mut(|value| {
            // SAFETY: the caller holds the lock, and loom checks it.
            unsafe {
                *value += 1;
                *value - 1
            }
        })
    }
}

/// Where the second thread of a model is: on the first one's CPU, or on another.
const PLACES: [u32; 2] = [1, 2];

/// Goal: sections are exclusive and ordered, whether the lock was free, spun for or slept for. Method: two
/// threads take it once each, on one CPU and on two; the thread that came second sees what the first one did.
#[test]
fn two_sections() {
    for place in PLACES {
        let found = ends(move || {
            let guarded = Arc::new(Guarded::default());
            let take = |guarded: &Guarded| {
                guarded.lock.lock_owner();
                let seen = guarded.add();
                guarded.lock.unlock();
                seen
            };
            let other = loom::thread::spawn({
                let guarded = Arc::clone(&guarded);
                move || {
                    HOLDER.with(|holder| holder.set(place));
                    take(&guarded)
                }
            });
            let ours = take(&guarded);
            (ours, other.join().expect("it ends"))
        });
        assert_eq!(found, BTreeSet::from([(0, 1), (1, 0)]), "on CPU {place}");
    }
}

/// Goal: a try that says true is a section; one that says false touched nothing. Method: against a section,
/// on one CPU and on two.
#[test]
fn a_section_against_a_try() {
    for place in PLACES {
        let found = ends(move || {
            let guarded = Arc::new(Guarded::default());
            let other = loom::thread::spawn({
                let guarded = Arc::clone(&guarded);
                move || {
                    HOLDER.with(|holder| holder.set(place));
                    let is_taken = guarded.lock.try_lock_remote();
                    is_taken.then(|| {
                        let seen = guarded.add();
                        guarded.lock.unlock();
                        seen
                    })
                }
            });
            guarded.lock.lock_remote();
            let ours = guarded.add();
            guarded.lock.unlock();
            (ours, other.join().expect("it ends"))
        });
        assert_eq!(found, BTreeSet::from([(0, None), (0, Some(1)), (1, Some(0))]), "on CPU {place}");
    }
}
