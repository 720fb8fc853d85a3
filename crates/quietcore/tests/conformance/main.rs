//! One program, two worlds: threads under paused time and the simulator must tell the same story of every
//! timer, and it must be the right one.
//!
//! `body.rs` has the programs, and what has to come of them by a sorted list; `live_arm.rs` and `sim_arm.rs`
//! run them.

mod body;
mod live_arm;
mod sim_arm;

use body::Program;

/// A program in both worlds, and by the list.
fn check(program: &Program, what: &str) {
    let expected = program.expected();
    for (world, happened) in [("live", live_arm::run(program)), ("sim", sim_arm::run(program))] {
        let differs = expected.iter().zip(&happened).position(|(expected, found)| expected != found);
        let differs = differs.unwrap_or(expected.len().min(happened.len()));
        assert!(
            expected == happened,
            "{what}: {world} differs at {differs}: {:?} instead of {:?}\n{program:?}",
            happened.get(differs),
            expected.get(differs)
        );
    }
}

/// Goal: each way in which a pending period ends is reported by both worlds. Method: a program for each,
/// written out.
#[test]
fn every_end_of_a_timer() {
    let programs = [
        ("ran", "0 arm 0 3000\n9 cancel 0"),
        ("cancelled", "0 arm 0 3000\n1 cancel 0\n2 cancel 0"),
        ("cancelled by another CPU", "0 arm 0 30000\n5 1 cancel 0"),
        ("superseded, later", "0 arm 0 3000\n1 arm 0 30000"),
        ("superseded, earlier", "0 arm 0 30000\n1 arm 0 3000"),
        ("superseded from another CPU", "0 arm 0 30000\n2 1 arm 0 3000\n20 arm 0 700000\n25 1 arm 0 800000"),
        ("armed again after it ran", "0 arm 0 3000\n9 1 arm 0 3000"),
        ("two at once", "0 arm 0 3000\n0 arm 1 3000\n1 2 arm 2 2000"),
        ("far away", "0 arm 0 900000\n7 1 arm 1 4000000"),
        ("pending at the end", "0 arm 0 90000000"),
    ];
    for (what, text) in programs {
        check(&Program::parse(text), what);
    }
}

/// Goal: the worlds agree on programs that were not thought of. Method: random arms, re-arms and cancels of a
/// few timers by four CPUs, with idle spans of all lengths; many seeds.
#[test]
fn random_programs() {
    for seed in 0..60 {
        check(&Program::random(seed), &format!("seed {seed}"));
    }
}
