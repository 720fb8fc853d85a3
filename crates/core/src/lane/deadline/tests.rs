//! The deadline word by one thread.

use super::{Deadline, PushOutcome};
use crate::Nanos;
use alloc::vec::Vec;

/// Goal: the timer is to be programmed exactly when the waiter must be awake earlier, or when the word was
/// moved by one that saw it. Method: each call once, earlier, later and equal.
#[test]
fn only_what_changes_the_word_is_news() {
    let deadline = Deadline::new();
    assert_eq!(deadline.load(), None);
    let pulls = [5, 7, 5, 4].map(|at| deadline.pull(Nanos(at)));
    assert_eq!(pulls, [true, false, false, true], "earlier than all before");
    let seen = Some(Nanos(4));
    assert_eq!(deadline.push(Some(Nanos(7)), Some(Nanos(9))), PushOutcome::Changed(seen), "not what it saw");
    assert_eq!(deadline.push(seen, Some(Nanos(9))), PushOutcome::Done);
    assert_eq!((deadline.take(), deadline.load()), (Some(Nanos(9)), None));
    assert_eq!(deadline.push(None, Some(Nanos(3))), PushOutcome::Done);
    assert_eq!(deadline.push(Some(Nanos(3)), None), PushOutcome::Done);
    assert_eq!(deadline.load(), None);
}

/// Goal: what a waiter is to end for is not moved away. Method: a push to later, and to never.
#[test]
fn nothing_moves_the_end() {
    let deadline = Deadline::new();
    assert!(deadline.pull(Nanos(50)) && deadline.end());
    for later in [Some(Nanos(90)), None] {
        let seen = deadline.load();
        assert_eq!(deadline.push(seen, later), PushOutcome::Changed(seen));
    }
    assert!(deadline.load().is_some_and(|at| at < Nanos(50)));
}

/// Goal: a thread that programs goes on while the word is earlier than what it programmed, and no longer.
/// Method: another one pulls, to earlier and then to later, during each programming.
#[test]
fn programming_ends_when_the_word_is_not_earlier() {
    let deadline = Deadline::new();
    assert!(deadline.pull(Nanos(50)));
    let mut pulls = [20, 30].into_iter();
    let mut programmed = Vec::new();
    deadline.program(|at| {
        programmed.push(at);
        let _ = pulls.next().map(|at| deadline.pull(Nanos(at)));
    });
    assert_eq!(programmed, [Some(Nanos(50)), Some(Nanos(20))]);
    let _ = deadline.take();
    deadline.program(|at| assert_eq!(at, None, "nothing waits"));
}
