//! Every scenario of the project is a test: what it expects holds, and would not if two of the rules that it
//! compares were exchanged. A run repeats to the last event.

use quietcore_sim::{Scenario, SimOptions, SimOutcome, VariantOutcome};
use std::collections::BTreeSet;
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

/// What begins a line of a scenario that names two rules between which it shows no difference.
const NO_DIFFERENCE: &str = "# Shows no difference: ";

/// Two values of what a scenario varies, and their place in its labels.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RulePair {
    place: usize,
    rules: [String; 2],
}

impl RulePair {
    /// Every two rules that the labels name at the same place; numbers are sizes and no rules.
    fn all(labels: &[String]) -> Vec<Self> {
        let parts = |place: usize| labels.iter().filter_map(move |label| label.split('/').nth(place));
        let mut pairs = Vec::new();
        for place in 0..labels[0].split('/').count() {
            let rules: BTreeSet<&str> = parts(place).filter(|rule| rule.parse::<u64>().is_err()).collect();
            for one in &rules {
                let others = rules.iter().filter(|other| *other > one);
                let pair = |other: &&str| Self { place, rules: [(*one).to_owned(), (*other).to_owned()] };
                pairs.extend(others.map(pair));
            }
        }
        pairs
    }

    /// The figures of each variant are those of its twin under the other rule.
    fn exchanged(&self, outcome: &SimOutcome) -> Vec<VariantOutcome> {
        let [one, other] = &self.rules;
        let twin = |label: &str| {
            let part = |(place, part)| match part {
                part if place != self.place => part,
                part if part == one => other.as_str(),
                part if part == other => one.as_str(),
                part => part,
            };
            label.split('/').enumerate().map(part).collect::<Vec<&str>>().join("/")
        };
        let variant = |variant: &VariantOutcome| {
            let label = twin(&variant.label);
            let found = outcome.variants.iter().find(|other| other.label == label);
            let label = variant.label.clone();
            VariantOutcome { label, ..found.expect("every combination is run").clone() }
        };
        outcome.variants.iter().map(variant).collect()
    }

    fn is_declared(&self, text: &str) -> bool {
        let [one, other] = &self.rules;
        let declared = text.lines().filter_map(|line| line.strip_prefix(NO_DIFFERENCE));
        let pair = |line: &str| line.trim_end_matches('.').split(" and ").map(str::to_owned).collect();
        declared.map(pair).any(|pair: BTreeSet<String>| pair == BTreeSet::from([one.clone(), other.clone()]))
    }
}

/// Goal: what a scenario expects tells the rules apart that it compares. Method: the figures of each two
/// rules exchanged break an expectation, unless the scenario says that it shows no difference; then they
/// break none.
fn expect_that_exchanged_rules_are_noticed(file: &Path, outcome: &SimOutcome) {
    let (scenario, text) = (load(file), std::fs::read_to_string(file).expect("a scenario can be read"));
    let labels: Vec<String> = scenario.labels().map(str::to_owned).collect();
    let pairs = RulePair::all(&labels);
    for pair in &pairs {
        let holds = scenario.judge(pair.exchanged(outcome)).holds;
        assert_eq!(holds, pair.is_declared(&text), "{}: {:?} exchanged", file.display(), pair.rules);
    }
    let declared = text.lines().filter(|line| line.starts_with(NO_DIFFERENCE)).count();
    let known = pairs.iter().filter(|pair| pair.is_declared(&text)).count();
    assert_eq!(declared, known, "{}: a line names rules that it does not compare", file.display());
}

/// Goal: what each scenario of the project expects holds, and depends on the rules. Method: all that
/// are in the folder, each on a thread of its own; the file of costs is none.
#[test]
fn the_projects_scenarios_hold() {
    let entries = std::fs::read_dir(folder()).expect("the folder of scenarios");
    let files = entries.map(|entry| entry.expect("an entry").path());
    let files: Vec<PathBuf> = files.filter(|file| !file.ends_with("costs.toml")).collect();
    assert_eq!(files.len(), 11, "{files:?}");
    std::thread::scope(|scope| {
        for file in &files {
            scope.spawn(move || {
                let outcome = run(file, SimOptions::default());
                let broken: Vec<_> = outcome.verdicts.iter().filter(|verdict| !verdict.holds).collect();
                assert!(outcome.holds, "{}, seed {}: {broken:#?}", file.display(), outcome.seed);
                expect_that_exchanged_rules_are_noticed(file, &outcome);
            });
        }
    });
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
