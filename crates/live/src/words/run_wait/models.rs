//! The end of a run under weak memory: no thread waits for what is over.

use super::{RunWait, WaitingTasks};
use crate::words::sync::models::ends;
use crate::words::sync::{AtomicU32, Ordering};
use loom::sync::Arc;
use std::collections::BTreeSet;

/// How often a waiter asks until it hears that the run is over. What runs is a relaxed word: nothing but
/// `RunWait` orders the question and the end.
fn wait(state: &(RunWait, AtomicU32)) -> u32 {
    let mut asked = 0;
    state.0.wait_while(|| {
        asked += 1;
        state.1.load(Ordering::Relaxed) == 1
    });
    asked
}

fn finish(state: &(RunWait, AtomicU32)) {
    state.1.store(0, Ordering::Relaxed);
    state.0.finished();
}

/// Goal: a waiter that asks in vain is woken. Method: one run, one waiter, which sleeps for ever if it is
/// not.
#[test]
fn a_waiter_is_woken() {
    let found = ends(|| {
        let state = Arc::new((RunWait::new(), AtomicU32::new(1)));
        let waiter = loom::thread::spawn({
            let state = Arc::clone(&state);
            move || wait(&state)
        });
        finish(&state);
        waiter.join().expect("it ends")
    });
    assert_eq!(found, BTreeSet::from([1, 2, 3]), "not running; over at the second question; slept");
}

/// Goal: all who wait are woken. Method: two of them.
#[test]
fn two_waiters_are_woken() {
    let found = ends(|| {
        let state = Arc::new((RunWait::new(), AtomicU32::new(1)));
        let waiters = [0, 1].map(|_| {
            let state = Arc::clone(&state);
            loom::thread::spawn(move || wait(&state))
        });
        finish(&state);
        let mut asked = waiters.map(|waiter| waiter.join().expect("it ends"));
        asked.sort_unstable();
        asked
    });
    let all = (1..=3).flat_map(|first| (first..=3).map(move |second| [first, second]));
    assert_eq!(found, BTreeSet::from_iter(all));
}

/// Goal: a task that counts itself and then finds the run under way is seen by the end of that run. Method:
/// one task, one run.
#[test]
fn a_task_is_counted_in_time() {
    let found = ends(|| {
        let state = Arc::new((RunWait::new(), AtomicU32::new(1), WaitingTasks::new()));
        let task = loom::thread::spawn({
            let state = Arc::clone(&state);
            move || {
                state.2.store(1);
                state.1.load(Ordering::Relaxed) == 1
            }
        });
        state.1.store(0, Ordering::Relaxed);
        state.0.finished();
        let is_woken = state.2.any();
        let waits = task.join().expect("it ends");
        assert!(is_woken || !waits, "the task waits for a run that is over");
        (waits, is_woken)
    });
    assert_eq!(found, BTreeSet::from([(false, false), (false, true), (true, true)]));
}
