//! Random machines with random loads and faults, the core's invariants checked after every event.
//!
//! 300 machines by default; `QUIETCORE_SIM_MACHINES` says how many (the nightly run: 10000), and
//! `QUIETCORE_SIM_FIRST` with which seed to begin. A failure prints the seed and the scenario, which is a
//! file.

use quietcore_sim::{Scenario, SimOptions, SimOutcome, SimRandom};
use std::fmt::Write;

const MACHINES: u64 = 300;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text:?}")))
}

struct Writer {
    random: SimRandom,
    text: String,
    cpus: u64,
}

impl Writer {
    fn one_of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.random.below(words.len() as u64) as usize]
    }

    fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.random.below(most - least + 1)
    }

    /// A list of at most `count` CPUs, ascending.
    fn list(&mut self, count: u64) -> String {
        let mut cpus: Vec<u64> = (0..count).map(|_| self.random.below(self.cpus)).collect();
        cpus.sort_unstable();
        cpus.dedup();
        cpus.iter().map(u64::to_string).collect::<Vec<_>>().join(",")
    }

    fn line(&mut self, line: &str) {
        writeln!(self.text, "{line}").expect("a string takes all");
    }

    fn machine(&mut self, duration_ms: u64) {
        self.line(&format!("duration = \"{duration_ms}ms\"\n[machine]\ncpus = {}", self.cpus));
        let nodes = self.between(1, 4.min(self.cpus));
        let threads = if self.random.chance(30) { 2 } else { 1 };
        self.line(&format!("nodes = {nodes}\nthreads_per_core = {threads}"));
        let (siblings, skew) = (self.one_of(&["neighbours", "apart"]), self.one_of(&["true", "false"]));
        self.line(&format!("siblings = \"{siblings}\"\nskew = {skew}"));
        let preempt = self.one_of(&["tick", "cooperative"]);
        let policy = self.one_of(&["pull", "pull", "pull", "pull-unwatched", "push", "stay"]);
        let exclusion = self.one_of(&["off", "v2", "merged"]);
        let (wake, tick) = (self.one_of(&["here", "last"]), self.one_of(&["1ms", "1ms", "4ms"]));
        self.line(&format!("preempt = \"{preempt}\"\npolicy = \"{policy}\"\nexclusion = \"{exclusion}\""));
        self.line(&format!("wake = \"{wake}\"\ntick = \"{tick}\""));
        // CPU 0 keeps house, so that there is always one.
        let isolated =
            self.list(self.cpus / 2).split(',').filter(|cpu| *cpu != "0").collect::<Vec<_>>().join(",");
        if self.random.chance(50) && !isolated.is_empty() {
            let key = self.one_of(&["isolated", "isolated", "nohz_full"]);
            self.line(&format!("{key} = \"{isolated}\""));
        }
    }

    /// Keys of the machine and loads about softirqs and real-time tasks, for machines of a kernel.
    fn urgent(&mut self) -> (String, String) {
        let (mut keys, mut loads) = (String::new(), String::new());
        let (awareness, ksoftirqd) =
            (self.one_of(&["none", "place", "defer", "both"]), self.one_of(&["preempted", "whole"]));
        let limit = self.between(0, 5000);
        let _ = writeln!(
            keys,
            "awareness = {awareness:?}\nksoftirqd = {ksoftirqd:?}\ndefer_limit = \"{limit}us\""
        );
        if self.random.chance(50) {
            let raise = self.one_of(&["unconditional", "bitmap", "next_expiry"]);
            let _ = writeln!(keys, "timer_raise = {raise:?}");
        }
        for _ in 0..self.between(1, 3) {
            let count = self.between(1, 6);
            let (cpus, vector) = (self.list(count), self.one_of(&["NET_RX", "BLOCK", "NET_TX"]));
            let (interval, median) = (self.between(100, 2000), self.between(1, 200));
            let tail = self.between(5, 30) as f64 / 10.0;
            let _ = writeln!(
                loads,
                "[[load.softirq]]\ncpus = \"{cpus}\"\nvector = {vector:?}\ninterval = \"{interval}us\"\n\
                 least = \"1us\"\nmedian = \"{median}us\"\nmost = \"6ms\"\ntail = {tail:?}"
            );
        }
        for _ in 0..self.between(1, 2) {
            let (threads, priority) = (self.between(1, 2 * self.cpus.min(8)), self.between(1, 99));
            let (interval, work) = (self.between(200, 3000), self.between(1, 700));
            let pinned = self.one_of(&["true", "false", "false"]);
            let _ = writeln!(
                loads,
                "[[load.realtime]]\ncpus = \"all\"\nthreads = {threads}\npriority = {priority}\n\
                 interval = \"{interval}us\"\nstep = \"37us\"\nwork = \"{work}us\"\npinned = {pinned}"
            );
        }
        let count = self.between(1, 4);
        let cpus = self.list(count);
        let _ = writeln!(
            loads,
            "[[load.remote]]\ncpus = \"{cpus}\"\nfrom = \"0\"\nperiod = \"1ms\"\nslow = \"30us\"\n\
             [[load.busy]]\ncpus = \"{cpus}\"\nnormal = true\nchunk = \"300us\""
        );
        (keys, loads)
    }

    /// Transmit queues, for machines of a kernel.
    fn packets(&mut self) {
        let count = self.between(1, 6);
        let cpus = self.list(count);
        let (sender, watchdog) = (self.one_of(&["stream", "datagram"]), self.one_of(&["pinned", "movable"]));
        let (window, limit, delay) = (self.between(1, 20), self.between(5, 25), self.between(500, 3000));
        self.line(&format!(
            "[[load.packets]]\ncpus = \"{cpus}\"\nsender = {sender:?}\nwatchdog = {watchdog:?}\nwindow = {window}\n\
             work = \"1us\"\ntransmit = \"300ns\"\ncoalesce = \"20us\"\n\
             tc = [\"qdisc add dev e parent 1:1 netem limit {limit} delay {delay}us\", \
             \"qdisc add dev e parent 1:2 netem delay 900us 300us\"]"
        ));
    }

    fn loads(&mut self) {
        let kinds = self.between(2, 5);
        for _ in 0..kinds {
            let count = self.between(1, 8);
            let cpus = self.list(count);
            let (short, long) = (self.between(5, 400), self.between(1, 12));
            let (pinned, precision) = (self.one_of(&["true", "false"]), self.one_of(&["coarse", "tick"]));
            let load = match self.random.below(7) {
                0 => format!(
                    "[[load.periodic]]\ncpus = \"{cpus}\"\nperiod = \"{long}ms\"\njitter = \"2ms\"\n\
                     callback = \"{short}us\"\npinned = {pinned}\nprecision = \"{precision}\""
                ),
                1 => {
                    format!("[[load.periodic]]\ncpus = \"{cpus}\"\nperiod = \"{long}ms\"\ndeferrable = true")
                }
                2 => format!(
                    "[[load.timeout]]\ncpus = \"{cpus}\"\ndelay = \"{long}ms\"\nrun = \"{short}us\"\nsleep = \"1ms\""
                ),
                3 => format!(
                    "[[load.sleeper]]\ncpus = \"{cpus}\"\ncount = 2\nrun = \"{short}us\"\nsleep = \"{long}ms\"\n\
                     jitter = \"3ms\"\nrt = {pinned}\nprecision = \"{precision}\""
                ),
                4 => format!("[[load.busy]]\ncpus = \"{cpus}\"\nchunk = \"{short}us\""),
                5 => format!(
                    "[[load.driver]]\ncpus = \"{cpus}\"\nperiod = \"{long}ms\"\ndelay = \"2ms\"\nwork = \"{short}us\""
                ),
                _ => format!(
                    "[[load.pairs]]\ncpus = \"all\"\ncount = {count}\nrequest = \"{short}us\"\nservice = \"{short}us\"\n\
                     timeout = \"{long}ms\""
                ),
            };
            self.line(&load);
        }
    }

    fn faults(&mut self) {
        if self.random.chance(40) {
            let (cpus, blocked) = (self.list(3), self.between(1, 9));
            self.line(&format!(
                "[[fault.stall]]\ncpus = \"{cpus}\"\nblocked = \"{blocked}ms\"\nevery = \"11ms\""
            ));
        }
        if self.random.chance(40) {
            let every = self.between(100, 3000);
            self.line(&format!("[[fault.isolation]]\ncpus = \"all\"\nevery = \"{every}us\""));
        }
        if self.random.chance(40) {
            let every = self.between(100, 3000);
            self.line(&format!("[[fault.hotplug]]\ncpus = \"all\"\nevery = \"{every}us\""));
        }
        if self.random.chance(30) {
            self.line("[fault.lost_kicks]\npercent = 30\nretry = \"100us\"");
            self.line("[fault.late_wakeups]\npercent = 20\nupto = \"700us\"");
        }
        if self.random.chance(30) {
            self.line("[fault.panics]\npercent = 10");
        }
        for (cost, most) in
            [("arm", 200), ("kick", 5000), ("idle_exit", 20_000), ("interrupt", 3000), ("walk", 100)]
        {
            if self.random.chance(50) {
                let ns = self.random.below(most);
                self.line(&format!("[cost.{cost}]\nns = {ns}\nsource = \"drawn\""));
            }
        }
    }
}

fn write_scenario(seed: u64) -> String {
    let mut random = SimRandom::new(seed, 77);
    // Small machines find most bugs, large ones have deep trees; looking at all timers of those takes long.
    let cpus = match random.below(20) {
        0 => 2 + random.below(255),
        1..6 => 2 + random.below(63),
        _ => 2 + random.below(15),
    };
    let mut writer = Writer { random, text: format!("seed = {seed}\n"), cpus };
    writer.machine(4 + 160 / cpus);
    let mut urgent = Writer { random: SimRandom::new(seed, 78), text: String::new(), cpus };
    let (keys, loads) = urgent.urgent();
    // Half of those that can.
    let is_urgent = writer.text.contains("preempt = \"tick\"") && urgent.random.chance(50);
    if is_urgent {
        writer.text.push_str(&keys);
    }
    writer.loads();
    if is_urgent {
        writer.text.push_str(&loads);
    }
    writer.faults();
    if is_urgent && !writer.text.contains("fault.hotplug") {
        let mut packets = Writer { random: SimRandom::new(seed, 79), text: String::new(), cpus };
        packets.packets();
        writer.text.push_str(&packets.text);
    }
    writer.text
}

fn run(seed: u64, check: bool) -> SimOutcome {
    run_text(&write_scenario(seed), check)
}

fn run_text(text: &str, check: bool) -> SimOutcome {
    let scenario = Scenario::parse("random.toml".as_ref(), text, &|_| unreachable!("names no file"));
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}\n{text}"));
    let options = SimOptions { check, ..SimOptions::default() };
    let ran = std::panic::catch_unwind(|| scenario.run(options, &mut |_| true, &mut |_| Ok(None)));
    let outcome = ran.unwrap_or_else(|_| panic!("the core broke an invariant (above):\n{text}"));
    outcome.expect("writes nothing").expect("nothing stops it")
}

/// Goal: no invariant breaks on any machine, no timer runs early, none later than its precision and
/// what keeps its CPU busy explain, none is lost; with a rule of exclusion and
/// without nohz_full no isolated CPU pulls. Method: random scenarios, checked after every event.
#[test]
fn random_machines_keep_the_invariants() {
    let (count, first) = (number("QUIETCORE_SIM_MACHINES", MACHINES), number("QUIETCORE_SIM_FIRST", 1));
    let (mut events, mut checks, mut expiries) = (0, 0, 0);
    let (mut vectors, mut migrations, mut packets) = (0.0, 0.0, 0.0);
    for seed in first..first + count {
        let outcome = run(seed, true);
        let figures = &outcome.variants[0].figures;
        let text = || write_scenario(seed);
        let broken = (figures.early, figures.past_bound, figures.lost);
        assert_eq!(broken, (0, 0, 0), "seed {seed}: early, too late, lost\n{}", text());
        for name in ["vectors_lost", "rt_disorder", "rt_on_isolated", "packets_lost"] {
            assert_eq!(figures.number(name).unwrap_or(0.0), 0.0, "seed {seed}: {name}\n{}", text());
        }
        vectors += figures.number("vectors_ran").unwrap_or(0.0);
        migrations += figures.number("rt_migrations").unwrap_or(0.0);
        packets += figures.number("dequeues").unwrap_or(0.0);
        let excludes = !text().contains("exclusion = \"off\"") && !text().contains("nohz_full");
        let pulls = text().contains("policy = \"pull");
        let pulled = figures.foreign_pulled;
        assert!(!(excludes && pulls && pulled > 0), "seed {seed}: {pulled} pulled\n{}", text());
        events += figures.events;
        checks += figures.checks;
        expiries += figures.expiries;
    }
    println!("{count} machines, {events} events, {checks} checks, {expiries} expiries");
    println!(
        "{vectors} pieces of work of softirqs, {migrations} moves of real-time tasks, {packets} packets"
    );
    let is_enough = |found: f64| found > 3.0 * count as f64 || count < 20;
    let is_tried = [vectors, migrations, packets].into_iter().all(is_enough);
    assert!(is_tried, "too little: {vectors} {migrations} {packets}");
    assert!(checks * 8 > events, "only {checks} checks in {events} events");
    assert!(expiries > 10 * count, "only {expiries} expiries on {count} machines: nothing was tried");
}

/// Goal: the same seed is the same run. Method: hashes of some machines, twice; and they differ between
/// seeds.
#[test]
fn the_same_seed_is_the_same_run() {
    let hashes: Vec<u64> = (1..=20).map(|seed| run(seed, false).variants[0].figures.hash).collect();
    for (seed, hash) in (1..=20).zip(&hashes) {
        assert_eq!(run(seed, false).variants[0].figures.hash, *hash, "seed {seed}");
    }
    let mut unlike = hashes.clone();
    unlike.sort_unstable();
    unlike.dedup();
    assert_eq!(unlike.len(), hashes.len(), "two seeds, one run: {hashes:x?}");
}

/// Goal: timers that come too late are counted. Method: two CPUs with eighty timers, whose callbacks take a
/// seventh of the time, or five times what there is.
#[test]
fn what_comes_too_late_is_counted() {
    let past_bound = |callback: &str| {
        let text = format!(
            "duration = \"500ms\"\n[machine]\ncpus = 2\n[[load.periodic]]\ncpus = \"0,1\"\ncount = 40\n\
             period = \"30ms\"\ncallback = \"{callback}\""
        );
        let figures = run_text(&text, false).variants[0].figures.clone();
        assert!(figures.expiries > 100, "{callback}: {}", figures.expiries);
        figures.past_bound
    };
    assert_eq!(past_bound("100us"), 0);
    assert!(past_bound("4ms") > 50, "{}", past_bound("4ms"));
}
