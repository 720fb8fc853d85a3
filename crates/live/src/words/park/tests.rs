//! The park word and both ways to sleep, on the kernel.

use super::{Notify, PARKING, Parker, RUNNING, Woken};
use crate::words::sync::{AtomicU32, Ordering};
use quietcore_core::Nanos;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::thread;

/// Goal: each state does what it is there for. Method: all calls in turn, one thread, both kinds.
#[test]
fn states() {
    for parker in [Parker::futex(), Parker::event_descriptor().expect("there are descriptors")] {
        let word = || parker.word.0.value().load(Ordering::Relaxed);
        assert_eq!(parker.unpark(), Notify::NotNeeded, "it is awake");
        parker.prepare();
        assert_eq!(word(), PARKING);
        assert_eq!(parker.unpark(), Notify::Woke);
        assert_eq!(parker.unpark(), Notify::NotNeeded, "the first one woke it");
        assert_eq!(parker.finish(), Woken::Notified);
        assert_eq!(word(), RUNNING);
        parker.prepare();
        let _ = parker.finish();
        assert_eq!(parker.unpark(), Notify::NotNeeded, "it stayed awake");
        parker.prepare();
        assert_eq!(parker.finish(), Woken::TimedOut, "nobody called since");
    }
}

/// Goal: a sleep ends by time, or because a thread called before it began. Method: moments in the past, and
/// none.
#[test]
fn futex_sleeps_end() {
    let parker = Parker::futex();
    assert!(parker.descriptor().is_none());
    parker.prepare();
    assert_eq!(parker.wait(Some(Nanos(1))), Woken::TimedOut);
    parker.prepare();
    assert_eq!(parker.unpark(), Notify::Woke);
    assert_eq!(parker.wait(None), Woken::Notified);
}

/// Goal: nothing that is published before an `unpark` is slept over. Method: three senders leave items, one
/// at a time; the owner sleeps without a limit whenever it finds none. A lost wake hangs.
#[test]
fn every_item_is_found() {
    const ITEMS: u32 = if cfg!(miri) { 30 } else { 20_000 };
    let parker = Parker::futex();
    let mailbox = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..ITEMS {
                    mailbox.fetch_add(1, Ordering::Relaxed);
                    let _ = parker.unpark();
                }
            });
        }
        let mut found = 0;
        while found < 3 * ITEMS {
            found += mailbox.swap(0, Ordering::Relaxed);
            parker.prepare();
            if mailbox.load(Ordering::Relaxed) != 0 || found == 3 * ITEMS {
                let _ = parker.finish();
            } else {
                assert_eq!(parker.wait(None), Woken::Notified);
            }
        }
        assert_eq!(found, 3 * ITEMS);
    });
}

/// Whether the owner's `epoll` would return at once.
fn is_readable(parker: &Parker) -> bool {
    let descriptor = parker.descriptor().expect("it has one");
    let mut polled = [PollFd::new(&descriptor, PollFlags::IN)];
    poll(&mut polled, Some(&Timespec::default())).expect("poll works") > 0
}

/// Goal: the descriptor is readable from the wake to the end of the round, and not after it. Method: two
/// rounds.
#[test]
fn a_descriptor_is_readable_until_the_round_ends() {
    let parker = Parker::event_descriptor().expect("there are descriptors");
    for round in 0..2 {
        parker.prepare();
        assert!(!is_readable(&parker), "round {round}");
        assert_eq!(parker.unpark(), Notify::Woke);
        assert!(is_readable(&parker), "round {round}");
        assert_eq!(parker.finish(), Woken::Notified);
        assert!(!is_readable(&parker), "round {round}");
    }
}

/// Goal: a write that comes after its round ended is read in the next one. Method: the sender's swap in one
/// round, its write in the next, as a preempted sender would do.
#[test]
fn a_late_write_is_read_a_round_later() {
    let parker = Parker::event_descriptor().expect("there are descriptors");
    parker.prepare();
    assert_eq!(parker.word.notify(), Notify::Woke);
    assert_eq!(parker.finish(), Woken::Notified);
    parker.prepare();
    parker.wake();
    assert!(is_readable(&parker), "it ends one sleep too early");
    assert_eq!(parker.finish(), Woken::TimedOut, "nobody called in this round");
    assert!(!is_readable(&parker), "and only one");
}
