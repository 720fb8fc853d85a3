//! Lanes that stop for ever, anywhere, while one goes on: every due timer runs (PROTOCOL, sections 2 to 5).
//!
//! "Anywhere" is at every mark and before every lock, as long as no lock is held; a lane that is stopped with
//! one (`inside_a_lock`) comes back in the end, and no lane waits for it before it does.

use crate::lanes::{A, C, Lanes};
use crate::play::{Part, Scenario, explore, script};
use crate::script::Mover;
use crate::search::Search;
use quietcore_core::MarkOutcome;
use quietcore_core::script::Site;

const X: Part<Lanes> = |lanes| lanes.turn(0, 3);
/// Its second turn judges, which was last seen at tick 3.
const M: Part<Lanes> = |lanes| {
    lanes.turn(lanes.m, 4);
    lanes.turn(lanes.m, 5);
};
const WATCH: Part<Lanes> = |lanes| lanes.turn(lanes.w, 3);

/// Each timer runs once per arm; the ends are told apart by who ran how often.
fn assert_runs(make: fn() -> Lanes, parts: &[Part<Lanes>], search: Search, least: usize) {
    explore(&Scenario { make: &make, parts, outcome: Lanes::lives }, search).assert_more_than(least);
}

/// Goal: three lanes turn at the same time and stop between two turns; each timer runs once per arm. Method:
/// all orders, one preemption.
#[test]
fn three_lanes_turn() {
    assert_runs(Lanes::watched_by_w, &[X, M, WATCH], Search::new(1), 300);
}

/// Goal (I1, I3, I6): X stops for ever anywhere, and W runs what X had. Method: all places, all orders with
/// two preemptions.
#[test]
fn one_freezes_anywhere() {
    assert_runs(Lanes::watched_by_w, &[X, WATCH], Search::new(2).freezing(1, 1), 1000);
}

/// Goal: X stops for ever with timers that it has collected and no lane sees any more: W knows by the token.
/// Method: nothing else is due; all places.
#[test]
fn what_was_collected() {
    assert_runs(Lanes::only_x, &[X, WATCH], Search::new(1).freezing(1, 1), 100);
}

/// Goal (I2, I6): X and M stop for ever anywhere, M also while it marks X or has taken over its timers.
/// Method: all pairs of places; W begins before, between or after them, and is not interrupted; with either
/// watching X.
#[test]
fn two_freeze_anywhere() {
    for make in [Lanes::watched_by_w, Lanes::watched_by_m] {
        assert_runs(make, &[X, M, WATCH], Search::new(0).freezing(2, 2), 1000);
    }
}

/// Goal (I4): A is armed again while it runs on X, by X and by a stranger, and X stops for ever. Method: all
/// places, all orders with one preemption.
#[test]
fn armed_while_it_runs() {
    let stranger: Part<Lanes> = |lanes| {
        lanes.arm_from_outside(C, 3, 4);
        lanes.arm_from_outside(A, 3, 3);
    };
    assert_runs(Lanes::watched_by_w, &[X, stranger, WATCH], Search::new(1).freezing(1, 1), 1000);
}

/// Goal (I5): X is stopped inside the locks of its bases; W does not wait for it, and counts that it could
/// not. Method: a script.
#[test]
fn inside_a_lock() {
    let parts: [Part<Lanes>; 2] = [
        |lanes| lanes.park(0, 0),
        |lanes| {
            // Again and again: a try that fails leaves the lock to its holder.
            for times in 1..=4 {
                assert_eq!(lanes.mark_absent(0), MarkOutcome::Busy);
                assert_eq!(lanes.busy_marks(), times);
            }
        },
    ];
    let (lane, watcher) = (Mover(0), Mover(1));
    let lines = [lane.until(Site::BeforeCpuLock), watcher.to_end(), lane.to_end()];
    let lanes = script(Lanes::watched_by_w(), &parts, &lines);
    assert_eq!(lanes.mark_absent(0), MarkOutcome::NotAwake, "it sleeps by then");
}
