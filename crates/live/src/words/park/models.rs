//! The park word under weak memory: a sleeper that has something to do is woken.

use super::event::EventDescriptor;
use super::{Notify, Parker, SleepBy, Woken};
use crate::words::sync::models::ends;
use crate::words::sync::{AtomicU32, Ordering};
use loom::sync::Arc;
use quietcore_core::Nanos;
use std::collections::BTreeSet;

/// An owner's place to sleep, and what senders leave: only relaxed accesses, so that nothing but the park
/// word orders them.
struct Place {
    parker: Parker,
    mailbox: AtomicU32,
}

impl Place {
    fn new(parker: Parker) -> Arc<Self> {
        Arc::new(Self { parker, mailbox: AtomicU32::new(0) })
    }

    /// One more item.
    fn send(&self) -> Notify {
        self.mailbox.fetch_add(1, Ordering::Relaxed);
        self.parker.unpark()
    }

    fn take(&self) -> u32 {
        self.mailbox.swap(0, Ordering::Relaxed)
    }

    fn has_mail(&self) -> bool {
        // A load: a swap would always see the newest value.
        self.mailbox.load(Ordering::Relaxed) != 0
    }
}

/// Goal: an item is found before a sleep, or ends it. Method: one sender, an owner that sleeps for ever if
/// it finds nothing; loom reports who never wakes up.
#[test]
fn a_sleeper_is_woken() {
    let found = ends(|| {
        let place = Place::new(Parker::futex());
        let sender = loom::thread::spawn({
            let place = Arc::clone(&place);
            move || place.send()
        });
        place.parker.prepare();
        let woken = if place.has_mail() {
            let _ = place.parker.finish();
            None
        } else {
            let woken = place.parker.wait(None);
            assert!(place.has_mail(), "who was notified sees what the sender left");
            Some(woken)
        };
        (woken, sender.join().expect("it ends"))
    });
    assert_eq!(
        found,
        BTreeSet::from([
            (None, Notify::NotNeeded),
            (None, Notify::Woke),
            (Some(Woken::Notified), Notify::Woke)
        ])
    );
}

/// Goal: the same over several rounds, where a sender of one round may leave its mark in the next. Method:
/// two senders; the owner parks until it has both items, the first time with a moment that comes.
#[test]
fn two_items_two_rounds() {
    let found = ends(|| {
        let place = Place::new(Parker::futex());
        let senders = [0, 1].map(|_| {
            let place = Arc::clone(&place);
            loom::thread::spawn(move || place.send())
        });
        let mut until = Some(Nanos(1));
        let mut had = 0;
        while had < 2 {
            place.parker.prepare();
            if place.has_mail() {
                let _ = place.parker.finish();
            } else {
                let _ = place.parker.wait(until.take());
            }
            had += place.take();
        }
        senders.map(|sender| sender.join().expect("it ends"))
    });
    let both = [Notify::NotNeeded, Notify::Woke];
    let expected = both.into_iter().flat_map(|first| both.map(|second| [first, second])).collect();
    assert_eq!(found, expected);
}

fn descriptor(place: &Place) -> &EventDescriptor {
    match &place.parker.how {
        SleepBy::Event(event) => event,
        SleepBy::Futex => unreachable!("the model made one"),
    }
}

/// Goal: an owner with a descriptor is woken, too, and once all is over nothing is left to read that no
/// thread expects. Method: as above; the owner sleeps on the descriptor.
#[test]
fn a_descriptor_is_drained() {
    let found = ends(|| {
        let place = Place::new(Parker::event_descriptor().expect("a model has descriptors"));
        let senders = [0, 1].map(|_| {
            let place = Arc::clone(&place);
            loom::thread::spawn(move || place.send())
        });
        let mut had = 0;
        while had < 2 {
            place.parker.prepare();
            if !place.has_mail() {
                descriptor(&place).wait();
            }
            let _ = place.parker.finish();
            had += place.take();
        }
        let _ = senders.map(|sender| sender.join().expect("it ends"));
        let (readable, owed) = descriptor(&place).left();
        assert_eq!(readable, owed, "a write that nobody expects, or one that never comes");
        owed
    });
    assert_eq!(found, BTreeSet::from([0, 1]), "all read, and one write that came late");
}
