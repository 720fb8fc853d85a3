//! Every scenario of the project is a test: what it expects holds, twice in the same way.

use quietcore_sim::{Options, Outcome, Scenario};
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

fn load(file: &Path) -> Scenario {
    let text = std::fs::read_to_string(file).expect("a scenario can be read");
    Scenario::parse(file, &text, &|costs| std::fs::read_to_string(costs)).unwrap_or_else(|error| panic!("{error}"))
}

fn run(file: &Path, options: Options) -> Outcome {
    let outcome = load(file).run(options, &mut |_| true, &mut |_| Ok(None));
    outcome.expect("writes nothing").expect("nobody stops it")
}

fn assert_holds(name: &str) {
    let outcome = run(&folder().join(name), Options::default());
    for variant in &outcome.variants {
        println!("{name} {}: {:?}", variant.label, variant.figures);
    }
    let broken: Vec<_> = outcome.verdicts.iter().filter(|verdict| !verdict.holds).collect();
    assert!(outcome.holds, "{name}, seed {}: {broken:#?}", outcome.seed);
}

/// Goal: seed 001's machine has the pullers that its lists predict, and none with exclusion.
#[test]
fn oslat_128() {
    assert_holds("oslat-128.toml");
}

/// Goal: an arm under pull costs the same on every machine and less than under push, which looks around.
#[test]
fn enqueue() {
    assert_holds("enqueue.toml");
}

/// Goal: pull neither loses nor gains more than the mail's table shows, from 1 to 1024 pairs.
#[test]
fn dbench_128() {
    assert_holds("dbench-128.toml");
}

/// Goal: the ping-pong appears with wake-ups at the last CPU, and goes away with wake-ups here.
#[test]
fn idle() {
    assert_holds("idle.toml");
}

/// Goal: a blocked lane delays its timers only where nobody watches it.
#[test]
fn stall() {
    assert_holds("stall.toml");
}

/// Goal: coming and going loses no timer.
#[test]
fn hotplug_storm() {
    assert_holds("hotplug-storm.toml");
}

/// Goal: isolation is complete when the change of it returns.
#[test]
fn isolate_flips() {
    assert_holds("isolate-flips.toml");
}
