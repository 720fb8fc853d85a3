//! The deadline word and its timer under weak memory: never programmed too late, and nothing pulled is
//! overlooked.

use super::{Deadline, PushOutcome};
use crate::Nanos;
use crate::sync::models::ends;
use crate::sync::{AtomicU32, Ordering};
use crate::time::{NEVER, to_word};
use alloc::collections::BTreeSet;
use loom::sync::{Arc, Mutex};

/// The word, and the kernel's timer as loom sees it: a moment under a lock.
struct Alarm {
    deadline: Deadline,
    timer: Mutex<u64>,
}

impl Alarm {
    fn new() -> Arc<Self> {
        Arc::new(Self { deadline: Deadline::new(), timer: Mutex::new(NEVER) })
    }

    fn program(&self) {
        self.deadline.program(|at| *self.timer.lock().expect("no thread panicked") = to_word(at));
    }

    fn pull(&self, at: Nanos) {
        if self.deadline.pull(at) {
            self.program();
        }
    }

    fn push(&self, seen: Option<Nanos>, at: Option<Nanos>) -> PushOutcome {
        let outcome = self.deadline.push(seen, at);
        if outcome == PushOutcome::Done {
            self.program();
        }
        outcome
    }

    /// It expires, and the waiter reads it.
    fn expire(&self) {
        *self.timer.lock().expect("no thread panicked") = NEVER;
    }
}

fn spawn<R: 'static>(
    alarm: &Arc<Alarm>,
    act: impl FnOnce(&Alarm) -> R + 'static,
) -> loom::thread::JoinHandle<R> {
    let alarm = Arc::clone(alarm);
    loom::thread::spawn(move || act(&alarm))
}

/// A1, and what the timer is programmed for beside what W is.
fn check(alarm: &Alarm) -> (u64, u64) {
    let timer = *alarm.timer.lock().expect("no thread panicked");
    let word = to_word(alarm.deadline.load());
    assert!(timer <= word, "the timer expires at {timer}, W is {word}");
    (timer, word)
}

/// Goal: whichever thread programs last, the earliest wins. Method: three pulls at the same time.
#[test]
fn pull_against_pull() {
    let found = ends(|| {
        let alarm = Alarm::new();
        let others = [30, 10].map(|at| spawn(&alarm, move |alarm| alarm.pull(Nanos(at))));
        alarm.pull(Nanos(20));
        for other in others {
            other.join().expect("it ends");
        }
        check(&alarm)
    });
    assert_eq!(found, BTreeSet::from([(10, 10)]));
}

/// Goal: a push never hides a pull: either it finds W changed, or the pull makes its moment earlier again.
/// Method: one each; an early timer is possible, a late one is not.
#[test]
fn pull_against_push() {
    let found = ends(|| {
        let alarm = Alarm::new();
        alarm.pull(Nanos(10));
        let pusher = spawn(&alarm, |alarm| alarm.push(Some(Nanos(10)), Some(Nanos(50))));
        let puller = spawn(&alarm, |alarm| alarm.pull(Nanos(5)));
        puller.join().expect("it ends");
        (pusher.join().expect("it ends"), check(&alarm))
    });
    assert_eq!(
        found,
        BTreeSet::from([(PushOutcome::Done, (5, 5)), (PushOutcome::Changed(Some(Nanos(5))), (5, 5))])
    );
}

/// Goal: who pushes a pulled moment away sees what was published before the pull: it goes on for it. Method:
/// the pusher looks once.
#[test]
fn a_push_takes_over() {
    let found = ends(|| {
        let alarm = Alarm::new();
        let published = Arc::new(AtomicU32::new(0));
        alarm.pull(Nanos(10));
        let puller = spawn(&alarm, {
            let published = Arc::clone(&published);
            move |alarm| {
                published.store(1, Ordering::Relaxed);
                alarm.pull(Nanos(5));
            }
        });
        let seen = alarm.deadline.load();
        let push = alarm.push(seen, Some(Nanos(50)));
        let is_found = published.load(Ordering::Relaxed) == 1;
        assert!(is_found || push != PushOutcome::Done || seen == Some(Nanos(10)), "5 was pushed away unseen");
        puller.join().expect("it ends");
        check(&alarm);
        (seen, push == PushOutcome::Done)
    });
    let (pulled, first) = (Some(Nanos(5)), Some(Nanos(10)));
    assert_eq!(found, BTreeSet::from([(pulled, true), (first, false), (first, true)]));
}

/// Goal (A2, of a push): the waiter sees what was published before a push whose moment it takes. Method:
/// against a take.
#[test]
fn push_against_take() {
    let found = ends(|| {
        let alarm = Alarm::new();
        let published = Arc::new(AtomicU32::new(0));
        let pusher = spawn(&alarm, {
            let published = Arc::clone(&published);
            move |alarm| {
                published.store(1, Ordering::Relaxed);
                assert_eq!(alarm.push(None, Some(Nanos(5))), PushOutcome::Done);
            }
        });
        let taken = alarm.deadline.take();
        assert!(taken.is_none() || published.load(Ordering::Relaxed) == 1, "5 was taken unseen");
        pusher.join().expect("it ends");
        taken
    });
    assert_eq!(found, BTreeSet::from([None, Some(Nanos(5))]));
}

/// Goal (A2): the waiter finds what was published before a pull, or the timer is programmed for it. Method: W
/// has expired; the waiter takes, looks and pulls something later, while another publishes and pulls, for an
/// earlier or a later moment than the expired one.
#[test]
fn pull_against_take() {
    for at in [5, 15] {
        let found = ends(move || {
            let alarm = Alarm::new();
            let published = Arc::new(AtomicU32::new(0));
            alarm.pull(Nanos(10));
            alarm.expire();
            let puller = spawn(&alarm, {
                let published = Arc::clone(&published);
                move |alarm| {
                    published.store(1, Ordering::Relaxed);
                    alarm.pull(Nanos(at));
                }
            });
            let _ = alarm.deadline.take();
            let is_found = published.load(Ordering::Relaxed) == 1;
            alarm.pull(Nanos(50));
            puller.join().expect("it ends");
            let (timer, _) = check(&alarm);
            assert!(is_found || timer <= at, "nobody looks at {at}");
            is_found
        });
        assert_eq!(found, BTreeSet::from([false, true]), "pulled for {at}");
    }
}
