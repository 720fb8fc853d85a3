//! Softirqs, ksoftirqd and real-time tasks on simulated CPUs: what must hold, and what must show.

use proptest::prelude::*;
use quietcore_sim::{RunFigures, Scenario, SimOptions};

fn parse(text: &str) -> Scenario {
    let scenario = Scenario::parse("realtime.toml".as_ref(), text, &|_| unreachable!("names no file"));
    scenario.unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The figures of the only variant, checked after every event.
fn figures(text: &str) -> RunFigures {
    let options = SimOptions { check: true, ..SimOptions::default() };
    let outcome = parse(text).run(options, &mut |_| true, &mut |_| Ok(None));
    outcome.expect("no output").expect("not stopped").variants.remove(0).figures
}

fn number(figures: &RunFigures, name: &str) -> f64 {
    figures.number(name).unwrap_or_else(|| panic!("no {name}"))
}

const COSTS: &str = "[cost]\ninterrupt = { ns = 800, source = \"drawn\" }\nkick = { ns = 900, source = \"drawn\" }\n\
                     context_switch = { ns = 700, source = \"drawn\" }\nhelper_switch = { ns = 9000, source = \"drawn\" }\n";

/// Goal: a real-time task that never rests keeps a vector waiting for the limit and not longer, also while
/// ksoftirqd holds what it was in the middle of; without deferral nothing waits for it. Method: a hog on the
/// only CPU; two limits; the clock of each vector.
#[test]
fn the_limit_ends_every_deferral() {
    let hog = |awareness: &str, limit: &str, ksoftirqd: &str| {
        figures(&format!(
            "seed = 5\nduration = \"400ms\"\n[machine]\ncpus = 1\nawareness = {awareness:?}\ndefer_limit = {limit:?}\n\
             ksoftirqd = {ksoftirqd:?}\n[[load.realtime]]\ncpus = \"0\"\npinned = true\npriority = 50\ninterval = \"60ms\"\n\
             work = \"59500us\"\n[[load.softirq]]\ncpus = \"0\"\nvector = \"NET_RX\"\ninterval = \"1ms\"\nleast = \"5us\"\n\
             median = \"60us\"\nmost = \"2ms\"\ntail = 1.5\n{COSTS}"
        ))
    };
    for ksoftirqd in ["preempted", "whole"] {
        for (limit, ms) in [("10ms", 10.0), ("25ms", 25.0)] {
            let found = hog("defer", limit, ksoftirqd);
            let (longest, pass) = (number(&found, "deferral_max"), number(&found, "pass_max"));
            assert!(number(&found, "limit_reached") > 5.0, "{limit}: {found:?}");
            assert!(longest >= ms * 1e6, "{limit}: held back for {longest} ns only");
            assert!(longest <= ms * 1e6 + pass + 1e6, "{limit}: held back for {longest} ns");
            assert_eq!(number(&found, "vectors_lost"), 0.0);
        }
        let none = hog("none", "10ms", ksoftirqd);
        assert_eq!((number(&none, "deferred"), number(&none, "deferral_max")), (0.0, 0.0));
        assert!(number(&none, "net_rx_delay_p99") < 5e6, "{none:?}");
    }
}

/// Goal: a task that may move goes around the CPU that a long softirq keeps busy, one that may not waits.
/// Method: one noisy CPU of two; the same thread, pinned and not; placed and not.
#[test]
fn placement_goes_around_softirqs() {
    let thread = |awareness: &str, pinned: bool| {
        figures(&format!(
            "seed = 6\nduration = \"1s\"\n[machine]\ncpus = 2\nawareness = {awareness:?}\n[[load.realtime]]\ncpus = \"all\"\n\
             pinned = {pinned}\npriority = 50\ninterval = \"3ms\"\nwork = \"10us\"\n[[load.softirq]]\ncpus = \"0\"\n\
             vector = \"BLOCK\"\ninterval = \"4ms\"\nleast = \"100us\"\nmedian = \"1ms\"\nmost = \"8ms\"\ntail = 1.2\n{COSTS}"
        ))
    };
    let (before, pinned, after) = (thread("none", false), thread("both", true), thread("both", false));
    assert_eq!((number(&before, "rt_migrations"), number(&pinned, "rt_migrations")), (0.0, 0.0));
    assert!(number(&after, "rt_placed") > 0.0, "{after:?}");
    assert!(number(&before, "rt_latency_p99") > 1e6 && number(&pinned, "rt_latency_p99") > 1e6);
    assert!(number(&after, "rt_latency_p99") < 0.1 * number(&before, "rt_latency_p99"), "{after:?}");
}

/// Goal: CPUs give away and take what waits, and no task overtakes its equals. Method: six threads of two
/// priorities on two CPUs that are busy with them most of the time.
#[test]
fn what_waits_is_pushed_and_pulled() {
    let entry = |priority: u8, interval: &str, work: &str| {
        format!(
            "[[load.realtime]]\ncpus = \"all\"\nthreads = 3\npriority = {priority}\ninterval = {interval:?}\nstep = \"130us\"\n\
             work = {work:?}\n"
        )
    };
    let text = format!(
        "seed = 7\nduration = \"1s\"\n[machine]\ncpus = 2\n{}{}{COSTS}",
        entry(60, "4ms", "1ms"),
        entry(40, "5ms", "1200us")
    );
    let found = figures(&text);
    let realtime = found.realtime.as_ref().expect("there are threads");
    assert!(realtime.placed > 0 && realtime.pushed > 0 && realtime.pulled > 0, "{realtime:?}");
    assert_eq!((realtime.disorder, realtime.on_isolated), (0, 0));
    let longest = |threads: &[quietcore_sim::CyclicThread]| {
        threads.iter().filter_map(|thread| thread.max_ns).max().expect("there are threads")
    };
    // Higher ones wait for each other at most, lower ones for all.
    assert!(longest(&realtime.threads[..3]) < 3_100_000, "{realtime:?}");
    assert!(longest(&realtime.threads[3..]) > longest(&realtime.threads[..3]), "{realtime:?}");
}

/// Goal: tasks leave a CPU that becomes isolated, and do not come back while it is. Method: isolation that
/// changes all the time under threads that may move; the check after every event looks for guests.
#[test]
fn isolated_cpus_have_no_guests() {
    let text = format!(
        "seed = 8\nduration = \"200ms\"\n[machine]\ncpus = 4\nexclusion = \"merged\"\nawareness = \"both\"\n\
         [[load.realtime]]\ncpus = \"all\"\nthreads = 6\npriority = 30\ninterval = \"700us\"\nstep = \"90us\"\nwork = \"300us\"\n\
         [[fault.isolation]]\ncpus = \"1-3\"\nevery = \"1ms\"\n{COSTS}"
    );
    let found = figures(&text);
    assert_eq!(number(&found, "rt_on_isolated"), 0.0);
    assert!(number(&found, "rt_migrations") > 100.0, "{found:?}");
}

/// Goal: what a lane does not do is refused with a reason. Method: each load that needs a kernel.
#[test]
fn lanes_have_no_interrupts() {
    let softirq = "[[load.softirq]]\ncpus = \"0\"\nvector = \"NET_RX\"\ninterval = \"1ms\"\nleast = \"1us\"\nmedian = \"2us\"\n\
                   most = \"3us\"\ntail = 1.5\n";
    let realtime = "[[load.realtime]]\ncpus = \"0\"\npriority = 1\ninterval = \"1ms\"\n";
    let remote = "[[load.remote]]\ncpus = \"1\"\nfrom = \"0\"\nperiod = \"1ms\"\nslow = \"9us\"\n";
    for load in [softirq, realtime, remote] {
        let text = format!("duration = \"1ms\"\n[machine]\ncpus = 2\npreempt = \"cooperative\"\n{load}");
        let refused = Scenario::parse("a.toml".as_ref(), &text, &|_| unreachable!()).unwrap_err().to_string();
        assert!(refused.contains("needs preempt = \"tick\""), "{refused}");
    }
    for (from, to, why) in [
        ("NET_RX", "TIMER", "known are NET_TX, NET_RX, BLOCK, IRQ_POLL"),
        ("tail = 1.5", "tail = 0.0", "allowed are 0.1 to 10"),
        ("median = \"2us\"", "median = \"4us\"", "allowed are"),
    ] {
        let text = format!("duration = \"1ms\"\n[machine]\ncpus = 2\n{}", softirq.replace(from, to));
        let refused = Scenario::parse("a.toml".as_ref(), &text, &|_| unreachable!()).unwrap_err().to_string();
        assert!(refused.contains(why), "{to}: {refused}");
    }
}

/// A run that uses everything of this file, and no other.
const EVERYTHING: &str = r#"
seed = 43
duration = "60ms"
[machine]
cpus = 6
isolated = "5"
exclusion = "merged"
awareness = "both"
timer_raise = "bitmap"
defer_limit = "3ms"
[[load.realtime]]
cpus = "all"
threads = 7
priority = 20
interval = "900us"
step = "55us"
work = "200us"
[[load.realtime]]
cpus = "5"
pinned = true
priority = 90
interval = "1ms"
work = "9us"
[[load.softirq]]
cpus = "0-3"
vector = "NET_RX"
interval = "400us"
least = "3us"
median = "50us"
most = "3ms"
tail = 1.1
[[load.softirq]]
cpus = "all"
vector = "BLOCK"
interval = "1ms"
least = "3us"
median = "20us"
most = "4ms"
tail = 0.9
[[load.remote]]
cpus = "5"
from = "0-1"
period = "2ms"
slow = "15us"
[[load.busy]]
cpus = "2-5"
normal = true
chunk = "700us"
[[fault.isolation]]
cpus = "1-4"
every = "5ms"
[[fault.hotplug]]
cpus = "1-4"
every = "4ms"
"#;

/// Goal: the same run in every build and on every platform, with its random lengths and intervals. Method:
/// its hash as a constant; when it changes, look why, and write the new one down.
#[test]
fn a_run_is_the_same_everywhere() {
    let found = figures(&format!("{EVERYTHING}{COSTS}"));
    for name in ["vectors_ran", "rt_migrations", "deferred", "calls"] {
        assert!(number(&found, name) > 0.0, "{name}: {found:?}");
    }
    assert_eq!(format!("{:016x}", found.hash), HASH, "{found:?}");
}

const HASH: &str = "cf112e17227b5cfc";

#[derive(Clone, Debug)]
struct Drawn {
    seed: u64,
    cpus: u64,
    isolated: bool,
    mode: usize,
    whole: bool,
    limit_us: u64,
    threads: Vec<(u64, u8, u64, u64, bool)>,
    noise: Vec<(u64, u64, u64, u64)>,
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let thread = (1_u64..6, 1_u8..=99, 300_u64..4_000, 1_u64..900, any::<bool>());
    let noise = (0_u64..6, 100_u64..3_000, 1_u64..300, 5_u64..30);
    let (threads, noise) = (prop::collection::vec(thread, 1..4), prop::collection::vec(noise, 1..4));
    (1_u64..1_000, 2_u64..7, any::<bool>(), 0_usize..4, any::<bool>(), 0_u64..8_000, threads, noise).prop_map(
        |(seed, cpus, isolated, mode, whole, limit_us, threads, noise)| Drawn {
            seed,
            cpus,
            isolated,
            mode,
            whole,
            limit_us,
            threads,
            noise,
        },
    )
}

impl Drawn {
    fn text(&self) -> String {
        let awareness = ["none", "place", "defer", "both"][self.mode];
        let ksoftirqd = if self.whole { "whole" } else { "preempted" };
        let mut text = format!(
            "seed = {}\nduration = \"40ms\"\n[machine]\ncpus = {}\nawareness = {awareness:?}\nksoftirqd = {ksoftirqd:?}\n\
             defer_limit = \"{}us\"\n",
            self.seed, self.cpus, self.limit_us
        );
        if self.isolated {
            text += &format!("isolated = \"{}\"\n", self.cpus - 1);
        }
        for (threads, priority, interval, work, pinned) in &self.threads {
            text += &format!(
                "[[load.realtime]]\ncpus = \"all\"\nthreads = {threads}\npriority = {priority}\ninterval = \"{interval}us\"\n\
                 step = \"70us\"\nwork = \"{work}us\"\npinned = {pinned}\n"
            );
        }
        for (cpu, interval, median, tail) in &self.noise {
            let vector = if cpu % 2 == 0 { "NET_RX" } else { "BLOCK" };
            let cpu = cpu % self.cpus;
            text += &format!(
                "[[load.softirq]]\ncpus = \"{cpu}\"\nvector = {vector:?}\ninterval = \"{interval}us\"\nleast = \"1us\"\n\
                 median = \"{median}us\"\nmost = \"5ms\"\ntail = {:?}\n[[load.busy]]\ncpus = \"{cpu}\"\nnormal = true\n",
                *tail as f64 / 10.0
            );
        }
        text + COSTS
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    /// Goal: no vector is lost, every interval of a thread is met, skipped or under way, no task overtakes
    /// its equals, none that may move is on an isolated CPU, and the same seed is the same run. Method:
    /// random machines, checked after every event.
    #[test]
    fn nothing_is_lost_and_no_task_overtakes(drawn in drawn()) {
        let text = drawn.text();
        let found = figures(&text);
        for name in ["vectors_lost", "rt_disorder", "rt_on_isolated", "early", "lost"] {
            prop_assert_eq!(number(&found, name), 0.0, "{}\n{}", name, &text);
        }
        let realtime = found.realtime.as_ref().expect("there are threads");
        for thread in &realtime.threads {
            let unfinished = thread.expected as i64 - (thread.cycles + thread.skipped) as i64;
            prop_assert!(unfinished >= 0, "{:?}\n{}", thread, &text);
        }
        prop_assert_eq!(&found, &figures(&text));
    }
}
