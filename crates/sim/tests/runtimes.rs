//! Random runtimes: whole sets of lanes with their sentinel and helper, stopped and kept waiting anywhere.
//!
//! 300 by default; `QUIETCORE_RUNTIMES` says how many (a release: 10000), and `QUIETCORE_RUNTIMES_FIRST` with
//! which seed to begin. A failure names the seed, and the smallest plan that was found to fail, too.

use quietcore_sim::{RuntimePlan, run_runtime, run_runtimes, smallest_failure, tell_runtime};
use std::ops::Range;
use std::thread;

const RUNTIMES: u64 = 300;

/// Lines of what happened that a failure shows.
const SHOWN: usize = 60;

/// Seeds whose counts are written down; together they have something of each kind.
const COUNTED: Range<u64> = 3..10;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text:?}")))
}

/// Goal: the properties of `quietcore_sim::run_runtime` hold. Method: plans drawn from seeds in a row.
#[test]
fn random_runtimes_keep_their_promises() {
    let first = number("QUIETCORE_RUNTIMES_FIRST", 1);
    let seeds = first..first + number("QUIETCORE_RUNTIMES", RUNTIMES);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let outcome = run_runtimes(seeds, threads, |_| true);
    println!("{outcome:?}");
    if let Some(seed) = outcome.failed {
        let plan = RuntimePlan::draw(seed);
        println!("{plan}: {:?}", run_runtime(&plan).violation);
        let smallest = smallest_failure(&plan);
        let told = tell_runtime(&smallest);
        let last = told.log.len().saturating_sub(SHOWN);
        panic!("{plan}\nsmallest: {smallest:#?}\n{}\n{:?}", told.log[last..].join("\n"), told.violation);
    }
    let counts = outcome.counts;
    let least = counts.expiries.min(counts.marks).min(counts.forks).min(counts.softirqs);
    let moved = counts.stolen.min(counts.pulled).min(counts.pushed);
    assert!(least.min(counts.items).min(moved) > 0, "the plans have become harmless");
}

/// Goal: a plan is a run, event for event, on whatever thread. Method: some plans twice, and side by side.
#[test]
fn a_seed_is_a_run() {
    for seed in 1..6 {
        let plan = RuntimePlan::draw(seed);
        let run = run_runtime(&plan);
        assert!(run.events > 100, "seed {seed} does next to nothing");
        let other = thread::spawn({
            let plan = plan.clone();
            move || run_runtime(&plan)
        });
        assert_eq!(run, other.join().expect("it does not panic"), "seed {seed}");
        assert_eq!(run.events, tell_runtime(&plan).events, "telling changes nothing: seed {seed}");
    }
    let one = run_runtimes(1..6, 1, |_| true);
    assert_eq!(one, run_runtimes(1..6, 3, |_| true));
    assert_eq!((one.runs, one.failed), (5, None));
    assert_eq!(run_runtimes(1..6, 1, |begun| begun < 2).runs, 2, "it ends when it is told to");
}

/// Goal: what a run of many seeds once found stays mended, or stays told. Method: those seeds again.
#[test]
fn what_was_found_is_not_found_again() {
    // A stranger that is stopped before it has told the helper of a machine without lanes.
    assert_eq!(run_runtime(&RuntimePlan::draw(1_500_333)).violation, None);
}

/// Goal: what is counted is what happens, each in its own count, and counts of many runs are added up.
/// Method: the counts of some plans, written down, and those of all of them.
#[test]
fn counts_are_those_that_were_written_down() {
    let each: Vec<_> = COUNTED.map(|seed| (seed, run_runtime(&RuntimePlan::draw(seed)).counts)).collect();
    let all = run_runtimes(COUNTED, 1, |_| true).counts;
    insta::assert_debug_snapshot!("counts", (each, all));
}
