//! Every scenario of the project is a test: what it expects holds, twice in the same way.

use quietcore_sim::{Scenario, SimOptions, SimOutcome};
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

fn load(file: &Path) -> Scenario {
    let text = std::fs::read_to_string(file).expect("a scenario can be read");
    Scenario::parse(file, &text, &|costs| std::fs::read_to_string(costs))
        .unwrap_or_else(|error| panic!("{error}"))
}

fn run(file: &Path, options: SimOptions) -> SimOutcome {
    let outcome = load(file).run(options, &mut |_| true, &mut |_| Ok(None));
    outcome.expect("writes nothing").expect("nothing stops it")
}

fn assert_holds(name: &str) {
    let outcome = run(&folder().join(name), SimOptions::default());
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

/// Goal: a blocked lane delays its timers only where no lane watches it.
#[test]
fn stall() {
    assert_holds("stall.toml");
}

/// Goal: the same when no lane is awake that could watch. Method: two lanes, one of which sleeps.
#[test]
fn stall_asleep() {
    assert_holds("stall-asleep.toml");
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

/// Goal: seed 000's watchdogs move queues to other CPUs where they may, and nowhere else.
#[test]
fn mq_netem() {
    assert_holds("mq-netem.toml");
}

/// Goal: threads go around long softirqs, and none of these is lost or waits beyond its limit.
#[test]
fn cyclictest() {
    assert_holds("cyclictest.toml");
}

/// Goal: what each rule of raising TIMER costs an isolated CPU, and that none of them misses a timer.
#[test]
fn isolated() {
    assert_holds("isolated.toml");
}

/// A run that uses every load and fault, and no file, so that its hash depends on this code alone.
const EVERYTHING: &str = r#"
seed = 42
duration = "60ms"
[machine]
cpus = 12
nodes = 2
isolated = "5-6"
exclusion = "merged"
[[load.periodic]]
cpus = "all"
period = "3ms"
jitter = "1ms"
callback = "20us"
[[load.timeout]]
cpus = "1,7"
delay = "20ms"
run = "100us"
sleep = "1ms"
[[load.sleeper]]
cpus = "all"
run = "30us"
sleep = "4ms"
rt = true
precision = "tick"
[[load.busy]]
cpus = "2"
[[load.driver]]
cpus = "3"
period = "5ms"
delay = "2ms"
work = "200us"
[[load.measure]]
cpus = "5"
[[load.pairs]]
cpus = "8-11"
count = 3
request = "50us"
service = "70us"
timeout = "8ms"
[[load.enqueue]]
cpus = "6"
delay = "9ms"
[[fault.stall]]
cpus = "4"
blocked = "5ms"
every = "9ms"
[[fault.isolation]]
cpus = "7-9"
every = "2ms"
[[fault.hotplug]]
cpus = "1-11"
every = "3ms"
[fault.lost_kicks]
percent = 20
retry = "100us"
[fault.late_wakeups]
percent = 20
upto = "200us"
[fault.panics]
percent = 5
[cost]
arm = { ns = 37, source = "any number will do here" }
cancel = { ns = 24, source = "any number will do here" }
interrupt = { ns = 900, source = "any number will do here" }
idle_exit = { ns = 5000, source = "any number will do here" }
kick_latency = { ns = 60, source = "any number will do here" }
walk = { ns = 40, source = "any number will do here" }
"#;

/// Goal: the same run in every build and on every platform, debug and release alike. Method: its hash as a
/// constant. It changes with what the core decides and with the order of events; then look why, and write the
/// new one down.
#[test]
fn a_run_is_the_same_everywhere() {
    let scenario =
        Scenario::parse("everything.toml".as_ref(), EVERYTHING, &|_| unreachable!("names no file"));
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
    let once = || scenario.run(SimOptions::default(), &mut |_| true, &mut |_| Ok(None));
    let outcome = once().expect("no output").expect("not stopped");
    let figures = &outcome.variants[0].figures;
    assert_eq!((figures.early, figures.lost), (0, 0));
    assert_eq!(outcome, once().expect("no output").expect("not stopped"), "two runs of one seed");
    assert_eq!(format!("{:016x}", figures.hash), HASH, "{figures:?}");
}

const HASH: &str = "0144c29c4c9dc184";

/// Goal: halving and doubling the costs shows what depends on them. Method: a loop whose time is nothing but
/// costs.
#[test]
fn sensitivity_shows_what_depends_on_costs() {
    let text = "duration = \"1ms\"\n[machine]\ncpus = 1\n[[load.enqueue]]\ncpus = \"0\"\ndelay = \"1s\"\n[cost]\n\
                arm = { ns = 40, source = \"drawn\" }\ncancel = { ns = 20, source = \"drawn\" }\n";
    let scenario =
        Scenario::parse("a.toml".as_ref(), text, &|_| unreachable!("names no file")).expect("valid");
    let options = SimOptions { sensitivity: true, ..SimOptions::default() };
    let outcome =
        scenario.run(options, &mut |_| true, &mut |_| Ok(None)).expect("no output").expect("not stopped");
    let range = outcome.variants[0].sensitivity["pair_ns"];
    assert_eq!((range.halved, range.doubled), (Some(30.0), Some(120.0)));
    assert_eq!(outcome.variants[0].figures.pair_ns, Some(60.0));
}

/// Goal: a run can be stopped. Method: progress says no at its first look.
#[test]
fn a_run_can_be_stopped() {
    let stopped =
        load(&folder().join("oslat-128.toml")).run(SimOptions::default(), &mut |_| false, &mut |_| Ok(None));
    assert!(stopped.expect("no output").is_none());
}
