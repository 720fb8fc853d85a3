//! Transmit queues on simulated CPUs: no packet is lost, pinned watchdogs stay, movable ones collapse as they
//! do in a kernel, and a CPU that waits for a lock pays for it.

use proptest::prelude::*;
use quietcore_sim::{RunFigures, Scenario, SimOptions};

fn parse(text: &str) -> Scenario {
    let scenario = Scenario::parse("packets.toml".as_ref(), text, &|_| unreachable!("names no file"));
    scenario.unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The figures of the only variant, checked after every event.
fn figures(text: &str) -> RunFigures {
    let options = SimOptions { check: true, ..SimOptions::default() };
    let outcome = parse(text).run(options, &mut |_| true, &mut |_| Ok(None));
    outcome.expect("no output").expect("not stopped").variants.remove(0).figures
}

fn number(figures: &RunFigures, name: &str) -> f64 {
    figures.number(name).unwrap_or_else(|| panic!("no {name}: {figures:?}"))
}

const COSTS: &str = "[cost]\ninterrupt = { ns = 800, source = \"drawn\" }\nidle_exit = { ns = 900, source = \"drawn\" }\n\
                     context_switch = { ns = 700, source = \"drawn\" }\nlock_handover = { ns = 60, source = \"drawn\" }\n\
                     packet_enqueue = { ns = 300, source = \"drawn\" }\npacket_dequeue = { ns = 300, source = \"drawn\" }\n";

/// One queue per CPU, with a delay of 2 ms and more.
fn queues(count: u64, limit: u64) -> String {
    let line = |queue: u64| {
        let delay = 2 + queue;
        format!(
            "\"tc qdisc add dev eth1 parent 1:{queue:x} est 1sec 4sec netem limit {limit} delay {delay}ms\", "
        )
    };
    format!("tc = [{}]\n", (1..=count).map(line).collect::<String>())
}

/// Four CPUs, each with a queue, the first always busy.
fn four(policy: &str, watchdog: &str) -> String {
    format!(
        "duration = \"60ms\"\n[machine]\ncpus = 4\npolicy = {policy:?}\nksoftirqd = \"whole\"\n[[load.busy]]\ncpus = \"0\"\n\
         normal = true\n[[load.packets]]\ncpus = \"all\"\nwindow = 300\nwork = \"200ns\"\ncopy = \"200ns\"\n\
         transmit = \"100ns\"\ncoalesce = \"30us\"\nwatchdog = {watchdog:?}\n{}{COSTS}",
        queues(4, 1000)
    )
}

/// Goal: seed 000's mechanism. An idle CPU's watchdog goes to a busy CPU, which then takes packets out of
/// the queues of all CPUs; a pinned one stays, and so does every one where timers do not migrate. Method: the
/// same load in all four; that the first has foreign dequeues shows that the others could have had some.
#[test]
fn pinned_watchdogs_stay_and_movable_ones_collapse() {
    for (policy, watchdog, collapses) in [
        ("push", "movable", true),
        ("push", "pinned", false),
        ("stay", "movable", false),
        ("stay", "pinned", false),
    ] {
        let found = figures(&four(policy, watchdog));
        assert_eq!((number(&found, "packets_lost"), found.pinned_away, found.early), (0.0, 0, 0));
        let packets = found.packets.as_ref().expect("there are queues");
        assert!(packets.dequeues() > 15_000, "{policy} {watchdog}: {packets:?}");
        if collapses {
            assert!(number(&found, "elsewhere_share") > 0.5, "{packets:?}");
            assert!(packets.watchdogs_elsewhere > 100 && packets.lock_waits > 0, "{packets:?}");
            let first = packets.watchdogs.get(&0).copied().unwrap_or(0);
            assert!(packets.watchdogs.values().all(|others| *others <= first), "the busy one: {packets:?}");
        } else {
            assert_eq!((packets.elsewhere, packets.watchdogs_elsewhere), (0, 0), "{policy} {watchdog}");
            assert_eq!((packets.lock_waits, packets.lock_wait_ns), (0, 0), "no other CPU wants it");
            assert_eq!(packets.watchdogs.len(), 4, "each on its own CPU: {packets:?}");
        }
    }
}

/// Goal: a window is a bound, what finds no room is sent again, and what arrives by itself arrives at its
/// rate. Method: each kind of sender and of arrival; a limit below the window.
#[test]
fn windows_limits_and_rates_hold() {
    let run = |sender: &str, arrivals: &str, limit: u64| {
        figures(&format!(
            "duration = \"300ms\"\n[machine]\ncpus = 2\n[[load.packets]]\ncpus = \"all\"\nsender = {sender:?}\n{arrivals}\n\
             work = \"500ns\"\ncoalesce = \"10us\"\n{}{COSTS}",
            queues(2, limit)
        ))
    };
    for sender in ["stream", "datagram"] {
        let free = run(sender, "window = 100", 1000);
        assert_eq!((number(&free, "packets_lost"), number(&free, "packets_dropped")), (0.0, 0.0));
        assert!(number(&free, "queue_max") <= 100.0, "{sender}: {free:?}");
        // 100 packets per 3 ms, and per 4 ms, less what the way round takes.
        let dequeues = number(&free, "dequeues");
        assert!((15_000.0..=17_500.0).contains(&dequeues), "{sender}: {dequeues}");
        let tight = run(sender, "window = 100", 60);
        assert_eq!((number(&tight, "packets_lost"), number(&tight, "queue_max")), (0.0, 60.0), "{sender}");
        assert!(number(&tight, "packets_dropped") >= 80.0, "{sender}: {tight:?}");
        let rated = run(sender, "rate = 20000", 1000);
        // 2 queues for 0.3 s, less what waits at the end.
        let passed = number(&rated, "dequeues") + number(&rated, "packets_held");
        assert!((11_000.0..=13_000.0).contains(&passed), "{sender}: {passed}");
        assert_eq!(number(&rated, "packets_lost"), 0.0, "{sender}");
    }
}

/// Goal: packets leave when they may, soon after, and never before. Method: a load that no CPU is busy with.
#[test]
fn packets_leave_soon_after_their_moment() {
    let text = format!(
        "duration = \"100ms\"\n[machine]\ncpus = 2\n[[load.packets]]\ncpus = \"all\"\nwindow = 10\n{}{COSTS}",
        queues(2, 1000)
    );
    let found = figures(&text);
    // An interrupt, waking up, and few packets before it.
    assert!(number(&found, "packet_late_max") < 20_000.0, "{found:?}");
    assert!(number(&found, "packet_late_p50") >= 800.0, "an interrupt at least: {found:?}");
    let jitter = text.replace("delay 3ms", "delay 3ms 1ms").replace("delay 4ms", "delay 4ms 1ms");
    let found = figures(&jitter);
    assert_eq!(found.number("packet_late_p50"), None, "it is drawn when they are enqueued");
    assert_eq!(number(&found, "packets_lost"), 0.0);
}

/// Goal: who spins pays: the longer a lock is held, the more time of CPUs goes into waiting, and the less is
/// idle. Method: the collapsed machine with dequeues of 0.3 and of 3 us.
#[test]
fn waiting_for_a_lock_is_time_of_a_cpu() {
    let short = four("push", "movable");
    let long = short.replace("packet_dequeue = { ns = 300", "packet_dequeue = { ns = 3000");
    let (short, long) = (figures(&short), figures(&long));
    assert!(number(&long, "queue_lock_wait_ns") > 3.0 * number(&short, "queue_lock_wait_ns"));
    assert!(number(&long, "lock_share") > number(&short, "lock_share"));
    assert!(long.busy_share > short.busy_share);
}

/// Goal: the time until a lock's line is there is time waited, also for a lock that is free. Method: one
/// packet at a time, sent by the first CPU and taken out by the second, which is busy and gets the watchdog.
#[test]
fn a_line_that_has_to_come_is_waited_for() {
    let found = figures(&format!(
        "duration = \"21ms\"\n[machine]\ncpus = 2\npolicy = \"push\"\n[[load.busy]]\ncpus = \"1\"\nnormal = true\n\
         [[load.packets]]\ncpus = \"0\"\nwindow = 1\nwatchdog = \"movable\"\n{}{COSTS}",
        queues(1, 1000)
    ));
    let packets = found.packets.as_ref().expect("there is a queue");
    // A packet every 3 ms. The first one's watchdog stays, as the other CPU is not busy yet, and so does the
    // line. The five that follow move it twice each: to the second CPU, and back when the next is sent.
    let lock = (packets.lock_waits, packets.lock_wait_ns);
    assert_eq!((packets.at_home, packets.elsewhere, lock), (1, 5, (0, 5 * 2 * 60)), "{packets:?}");
}

/// Goal: a mistake is named by its key, and what would be right is said. Method: one of each kind.
#[test]
fn mistakes_are_named() {
    let good = "window = 5\ntc = [\"tc qdisc add dev e parent 1:1 netem delay 6ms\"]\n";
    for (bad, key, says) in [
        (
            "tc = [\"tc qdisc add dev e parent 1:1 netem delay 6ms\"]\n",
            "[[load.packets]]",
            "window or rate is missing",
        ),
        ("window = 0\ntc = []\n", "[[load.packets]]", "1:1, 1:2 and so on"),
        (&good.replace("= 5", "= 0"), "window", "allowed are 1 to 1000000"),
        (&good.replace("window = 5", "window = 5\nrate = 9"), "rate", "exclude each other"),
        (&good.replace("1:1 ", "1:2 "), "[[load.packets]]", "1:1, 1:2 and so on"),
        (&good.replace("1:1 ", "1:0 "), "tc", "is no queue"),
        (&good.replace("parent 1:1 ", "root "), "tc", "a netem below an mq"),
        (&good.replace("netem delay 6ms", "pfifo limit 6"), "tc", "a netem below an mq"),
        (&good.replace("delay 6ms", "delay 6xs"), "tc", "`6xs` is not a time"),
        (&good.replace("delay 6ms", "delay 6ms loss 1%"), "tc", "is not simulated"),
        (&good.replace(" delay 6ms", " limit 6"), "tc", "needs a delay"),
        (&good.replace("delay 6ms", "delay 1ns"), "tc", "between 1us and 60s"),
        (&good.replace("delay 6ms", "delay 6ms 6ms"), "tc", "between 1us and 60s"),
        (
            &good.replace("qdisc add dev e parent 1:1 netem delay 6ms", "class show dev e"),
            "tc",
            "is about no qdisc",
        ),
        (&format!("{good}work = \"2h\"\n"), "work", "is no span"),
        (&format!("{good}sender = \"datagram\"\ncopy = \"1us\"\n"), "copy", "no task reads"),
        (&format!("{good}sender = \"fax\"\n"), "sender", "`datagram`"),
        (&format!("{good}watchdog = \"loose\"\n"), "watchdog", "`movable`"),
        (
            &format!("{good}[[fault.hotplug]]\ncpus = \"1\"\nevery = \"1ms\"\n"),
            "[[load.packets]]",
            "does not go with",
        ),
        (&format!("{good}[variants]\nwindow = [0]\n"), "[[load.packets]]", "the variants ask"),
    ] {
        let text =
            format!("duration = \"1ms\"\n[machine]\ncpus = 2\n[[load.packets]]\ncpus = \"all\"\n{bad}");
        let parsed = Scenario::parse("p.toml".as_ref(), &text, &|_| unreachable!("names no file"));
        let error = parsed.expect_err(bad).to_string();
        assert!(error.contains(&format!(": {key}: ")) && error.contains(says), "{bad}: {error}");
    }
    let lanes = format!(
        "duration = \"1ms\"\n[machine]\ncpus = 2\npreempt = \"cooperative\"\n[[load.packets]]\ncpus = \"all\"\n{good}"
    );
    let error = Scenario::parse("p.toml".as_ref(), &lanes, &|_| unreachable!()).unwrap_err().to_string();
    assert!(error.contains("needs preempt = \"tick\""), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(16) })]

    /// Goal: whatever the machine, no packet is lost, none leaves early, pinned watchdogs never leave a queue
    /// to others, and the same seed is the same run. Method: random machines, checked after every event.
    #[test]
    fn no_packet_is_lost(
        (seed, cpus, count) in (1_u64..1_000, 1_u64..7, 1_u64..9),
        (window, limit, jitter) in (1_u64..120, 1_u64..150, any::<bool>()),
        (policy, pinned, whole, datagram) in (0_usize..3, any::<bool>(), any::<bool>(), any::<bool>()),
        (rate, busy) in (any::<bool>(), any::<bool>()),
    ) {
        let policy = ["push", "pull", "stay"][policy];
        let watchdog = if pinned { "pinned" } else { "movable" };
        let ksoftirqd = if whole { "whole" } else { "preempted" };
        let sender = if datagram { "datagram" } else { "stream" };
        let arrivals = if rate { format!("rate = {}", window * 1_000) } else { format!("window = {window}") };
        let lines = queues(count, limit);
        let lines = if jitter { lines.replace("ms\"", "ms 1ms\"") } else { lines };
        let busy = if busy { "[[load.busy]]\ncpus = \"0\"\nnormal = true\nchunk = \"400us\"\n" } else { "" };
        let text = format!(
            "seed = {seed}\nduration = \"12ms\"\n[machine]\ncpus = {cpus}\npolicy = {policy:?}\nksoftirqd = {ksoftirqd:?}\n\
             {busy}[[load.packets]]\ncpus = \"all\"\nsender = {sender:?}\n{arrivals}\nwork = \"300ns\"\nwire = \"20us\"\n\
             watchdog = {watchdog:?}\n{lines}{COSTS}"
        );
        let found = figures(&text);
        for name in ["packets_lost", "early", "lost", "pinned_away"] {
            prop_assert_eq!(number(&found, name), 0.0, "{}\n{}", name, &text);
        }
        if pinned {
            prop_assert_eq!(number(&found, "dequeues_elsewhere"), 0.0, "{}", &text);
        }
        prop_assert_eq!(&found, &figures(&text));
    }
}
