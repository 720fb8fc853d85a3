//! Lanes that stop for ever, anywhere, while one goes on: every due timer runs (PROTOCOL, sections 2 to 5).

use crate::lanes::{A, Lanes, W};
use crate::play::{Part, Scenario, explore, explore_from, script};
use crate::script::Mover;
use crate::search::Search;
use quietcore_core::Mark;
use quietcore_core::script::Site;

const X: Part<Lanes> = |lanes| lanes.turn(0, 3);
const M: Part<Lanes> = |lanes| lanes.turn(1, 3);
const WATCH: Part<Lanes> = |lanes| lanes.turn(W, 3);

fn lives(lanes: &Lanes) -> String {
    lanes.lives()
}

/// Goal: nobody freezes: three lanes turn at the same time, and each timer runs once per arm. Method: all orders,
/// one preemption.
#[test]
fn three_lanes_turn() {
    let parts = [X, M, WATCH];
    let found = explore(&Scenario { make: Lanes::new, parts: &parts, preemptions: 1, outcome: lives });
    assert!(found.runs > 100, "{} runs", found.runs);
}

/// Goal: X stops for ever anywhere outside a lock, and W runs what X had. Method: all places, all orders with one
/// preemption.
#[test]
fn one_freezes_anywhere() {
    let scenario = Scenario { make: Lanes::new, parts: &[X, WATCH], preemptions: 1, outcome: lives };
    let found = explore_from(&scenario, Search::new(1).freezing(1, 1));
    assert!(found.runs > 100, "{} runs", found.runs);
}
