//! Every figure of small machines, written down: one that changes has to be explained.
//!
//! The machines have few CPUs and run for some milliseconds, every cost differs from all others, and between
//! them they have every kind of load, fault and rule. What a figure of them means is tested where it is made,
//! on numbers; here nothing may be counted at another place, on another CPU or at another cost.

use quietcore_sim::{RunFigures, Scenario, SimOptions};

/// Costs in ns, no two alike.
const COSTS: [(&str, u64); 16] = [
    ("arm", 113),
    ("cancel", 71),
    ("collect", 307),
    ("walk", 41),
    ("dispatch", 59),
    ("look", 17),
    ("lock_handover", 83),
    ("kick", 1_013),
    ("kick_latency", 2_503),
    ("context_switch", 1_301),
    ("interrupt", 797),
    ("idle_entry", 607),
    ("idle_exit", 3_001),
    ("helper_switch", 8_009),
    ("packet_enqueue", 293),
    ("packet_dequeue", 337),
];

/// The figures of the only variant, checked after every event.
fn figures(text: &str) -> RunFigures {
    let cost = |(name, ns)| format!("{name} = {{ ns = {ns}, source = \"drawn\" }}\n");
    let text = format!("{text}[cost]\n{}", COSTS.map(cost).concat());
    let scenario = Scenario::parse("figures.toml".as_ref(), &text, &|_| unreachable!("names no file"));
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}\n{text}"));
    let options = SimOptions { check: true, ..SimOptions::default() };
    let outcome = scenario.run(options, &mut |_| true, &mut |_| Ok(None));
    outcome.expect("no output").expect("not stopped").variants.remove(0).figures
}

/// Holds a run's figures against those that are written down.
fn assert_figures(name: &str, text: &str) {
    let found = figures(text);
    assert_eq!((found.early, found.lost), (0, 0));
    insta::assert_snapshot!(name, serde_json::to_string_pretty(&found).expect("figures are numbers"));
}

/// Goal: timers of all kinds, with idle CPUs and busy ones. Method: four CPUs of two nodes, of which one is
/// isolated and pulls, as nothing excludes it; no fault.
#[test]
fn timers_that_are_pulled() {
    let text = r#"
        seed = 3
        duration = "60ms"
        [machine]
        cpus = 4
        nodes = 2
        isolated = "3"
        exclusion = "off"
        [[load.periodic]]
        cpus = "0-1"
        period = "4ms"
        jitter = "900us"
        callback = "23us"
        [[load.periodic]]
        cpus = "2"
        period = "5ms"
        pinned = true
        [[load.periodic]]
        cpus = "1"
        period = "6ms"
        deferrable = true
        precision = "tick"
        [[load.timeout]]
        cpus = "0"
        delay = "3ms"
        run = "210us"
        sleep = "1ms"
        [[load.sleeper]]
        cpus = "2-3"
        count = 3
        run = "130us"
        sleep = "2ms"
        jitter = "1ms"
        [[load.busy]]
        cpus = "3"
        chunk = "450us"
        [[load.driver]]
        cpus = "1"
        period = "7ms"
        delay = "2ms"
        work = "61us"
        [[load.measure]]
        cpus = "0,3"
    "#;
    assert_figures("pulled", text);
}

/// Goal: idle CPUs choose a state, pay for it, and their time there is counted. Method: the same machine with
/// three states, of kernels and of lanes; one CPU is awake, one is woken early by others, and faults stop it.
#[test]
fn idle_cpus_choose_a_state() {
    for (name, preempt) in [("idle-kernel", "tick"), ("idle-lanes", "cooperative")] {
        let text = format!(
            r#"
            seed = 8
            duration = "60ms"
            [machine]
            cpus = 4
            preempt = "{preempt}"
            [[machine.idle_state]]
            name = "shallow"
            exit = "1us"
            residency = "3us"
            [[machine.idle_state]]
            name = "middle"
            entry = "2us"
            exit = "21us"
            residency = "90us"
            [[machine.idle_state]]
            name = "deep"
            entry = "31us"
            exit = "110us"
            residency = "1200us"
            [[load.sleeper]]
            cpus = "0-1"
            run = "130us"
            sleep = "3ms"
            jitter = "1ms"
            [[load.periodic]]
            cpus = "2"
            period = "7ms"
            callback = "23us"
            [[load.busy]]
            cpus = "3"
            [[fault.stall]]
            cpus = "1"
            blocked = "4ms"
            every = "17ms"
        "#
        );
        assert_figures(name, &text);
    }
}

/// Goal: requests, their timeouts and arms that look for a busy CPU. Method: timers that are pushed, on CPUs
/// that share cores and caches; pairs of a client and a server of which some take longer than they may; and
/// loops that arm and cancel.
#[test]
fn timers_that_are_pushed() {
    let text = r#"
        seed = 4
        duration = "40ms"
        [machine]
        cpus = 8
        threads_per_core = 2
        siblings = "apart"
        cores_per_cache = 2
        policy = "push"
        wake = "last"
        [[load.pairs]]
        cpus = "all"
        count = 3
        request = "180us"
        service = "1300us"
        timeout = "1ms"
        [[load.sleeper]]
        cpus = "6"
        run = "70us"
        sleep = "1500us"
        rt = true
    "#;
    assert_figures("pushed", text);
    let loops = r#"
        seed = 4
        duration = "1ms"
        [machine]
        cpus = 4
        policy = "push"
        [[load.busy]]
        cpus = "1"
        [[load.enqueue]]
        cpus = "2-3"
        delay = "11ms"
    "#;
    assert_figures("loops", loops);
}

/// Goal: what faults do to figures. Method: each kind of fault, on lanes, often.
#[test]
fn machines_with_faults() {
    let text = r#"
        seed = 5
        duration = "80ms"
        [machine]
        cpus = 5
        preempt = "cooperative"
        isolated = "4"
        [[load.periodic]]
        cpus = "all"
        period = "3ms"
        jitter = "1ms"
        callback = "19us"
        [[load.periodic]]
        cpus = "1,3"
        period = "5ms"
        pinned = true
        [[load.timeout]]
        cpus = "2"
        delay = "9ms"
        run = "310us"
        sleep = "2ms"
        [[fault.stall]]
        cpus = "1-2"
        blocked = "6ms"
        every = "17ms"
        [[fault.isolation]]
        cpus = "2-4"
        every = "7ms"
        [[fault.hotplug]]
        cpus = "3"
        every = "13ms"
        [fault.lost_kicks]
        percent = 30
        retry = "100us"
        [fault.late_wakeups]
        percent = 20
        upto = "700us"
        [fault.panics]
        percent = 10
    "#;
    assert_figures("faults", text);
}

/// Goal: real-time threads beside softirqs. Method: more threads than CPUs, of two priorities; softirqs that
/// are sometimes longer than what is put off; tasks that do not give way and arms on other CPUs.
#[test]
fn threads_beside_softirqs() {
    for (name, awareness, ksoftirqd) in [("aware", "both", "preempted"), ("unaware", "none", "whole")] {
        let text = format!(
            r#"
            seed = 6
            duration = "50ms"
            [machine]
            cpus = 3
            awareness = {awareness:?}
            ksoftirqd = {ksoftirqd:?}
            defer_limit = "700us"
            [[load.softirq]]
            cpus = "0-1"
            vector = "NET_RX"
            interval = "900us"
            least = "3us"
            median = "60us"
            most = "2ms"
            tail = 1.3
            [[load.softirq]]
            cpus = "2"
            vector = "BLOCK"
            interval = "2ms"
            least = "5us"
            median = "90us"
            most = "1ms"
            tail = 1.5
            [[load.realtime]]
            cpus = "all"
            threads = 3
            priority = 70
            interval = "1100us"
            step = "130us"
            work = "200us"
            [[load.realtime]]
            cpus = "all"
            threads = 2
            priority = 40
            interval = "1700us"
            step = "90us"
            work = "400us"
            [[load.busy]]
            cpus = "1"
            normal = true
            chunk = "300us"
            [[load.remote]]
            cpus = "2"
            from = "0"
            period = "3ms"
            slow = "30us"
            "#
        );
        assert_figures(name, &text);
    }
}

/// Goal: raises of TIMER on isolated CPUs, empty ones and others. Method: CPUs with nothing, with a far, with
/// a near and with a foreign timer, under each rule of raising.
#[test]
fn raises_on_isolated_cpus() {
    for rule in ["unconditional", "bitmap", "next_expiry"] {
        let text = format!(
            r#"
            seed = 9
            duration = "90ms"
            [machine]
            cpus = 5
            isolated = "1-4"
            exclusion = "merged"
            timer_raise = {rule:?}
            [[load.measure]]
            cpus = "isolated"
            [[load.realtime]]
            cpus = "4"
            pinned = true
            priority = 95
            interval = "997us"
            work = "5us"
            [[load.periodic]]
            cpus = "2"
            period = "70ms"
            pinned = true
            [[load.periodic]]
            cpus = "3"
            period = "5ms"
            pinned = true
            [[load.remote]]
            cpus = "4"
            from = "0"
            period = "3ms"
            slow = "20us"
            "#
        );
        assert_figures(rule, &text);
    }
}

/// Goal: packets, their locks and watchdogs. Method: queues whose packets are taken out by a busy CPU, too,
/// with a window; and senders at a rate whose queues are too short.
#[test]
fn packets_in_queues() {
    let window = r#"
        seed = 7
        duration = "20ms"
        [machine]
        cpus = 3
        policy = "push"
        ksoftirqd = "whole"
        [[load.busy]]
        cpus = "0"
        normal = true
        [[load.packets]]
        cpus = "all"
        watchdog = "movable"
        window = 70
        work = "230ns"
        copy = "190ns"
        transmit = "110ns"
        coalesce = "30us"
        wire = "45us"
        tc = ["qdisc add dev e parent 1:1 netem delay 2ms", "qdisc add dev e parent 1:2 netem delay 3ms",
              "qdisc add dev e parent 1:3 netem delay 1ms 300us"]
    "#;
    assert_figures("window", window);
    let rate = r#"
        seed = 8
        duration = "20ms"
        [machine]
        cpus = 2
        [[load.packets]]
        cpus = "0-1"
        sender = "datagram"
        watchdog = "pinned"
        rate = 40000
        work = "700ns"
        transmit = "310ns"
        coalesce = "50us"
        tc = ["qdisc add dev e parent 1:1 netem limit 30 delay 1ms", "qdisc add dev e parent 1:2 netem limit 90 delay 2ms"]
    "#;
    assert_figures("rate", rate);
}

/// Goal: real-time threads that give way to each other. Method: six of two priorities on two CPUs that are
/// busy with them most of the time; then the same on CPUs that go offline, stop and become isolated.
#[test]
fn threads_that_move() {
    let threads = r#"
        seed = 7
        duration = "120ms"
        [machine]
        cpus = 2
        [[load.realtime]]
        cpus = "all"
        threads = 3
        priority = 60
        interval = "4ms"
        step = "130us"
        work = "1ms"
        [[load.realtime]]
        cpus = "all"
        threads = 3
        priority = 40
        interval = "5ms"
        step = "130us"
        work = "1200us"
        [[load.sleeper]]
        cpus = "1"
        run = "130us"
        sleep = "2ms"
        rt = true
        [[load.driver]]
        cpus = "0"
        period = "7ms"
        jitter = "2ms"
        delay = "2ms"
        work = "61us"
    "#;
    assert_figures("threads", threads);
    let faults = r#"
        [[fault.stall]]
        cpus = "1-2"
        blocked = "3ms"
        every = "11ms"
        [[fault.isolation]]
        cpus = "1-3"
        every = "5ms"
        [[fault.hotplug]]
        cpus = "2-3"
        every = "7ms"
        [[load.softirq]]
        cpus = "0-2"
        vector = "NET_RX"
        interval = "700us"
        least = "3us"
        median = "60us"
        most = "2ms"
        tail = 1.3
    "#;
    assert_figures("threads-faults", &format!("{}{faults}", threads.replace("cpus = 2", "cpus = 4")));
}

/// Goal: softirqs that are more than a CPU can do at once. Method: storms beside a thread that leaves little
/// time, with each answer to it and each rule for ksoftirqd.
#[test]
fn storms_of_softirqs() {
    for (awareness, ksoftirqd) in
        [("none", "preempted"), ("none", "whole"), ("defer", "preempted"), ("defer", "whole")]
    {
        let text = format!(
            r#"
            seed = 11
            duration = "40ms"
            [machine]
            cpus = 2
            awareness = {awareness:?}
            ksoftirqd = {ksoftirqd:?}
            defer_limit = "600us"
            [[load.softirq]]
            cpus = "0"
            vector = "NET_RX"
            interval = "110us"
            least = "5us"
            median = "50us"
            most = "1ms"
            tail = 1.4
            [[load.softirq]]
            cpus = "0"
            vector = "BLOCK"
            interval = "900us"
            least = "5us"
            median = "90us"
            most = "1ms"
            tail = 1.5
            [[load.realtime]]
            cpus = "0"
            pinned = true
            priority = 50
            interval = "3ms"
            work = "1100us"
            [[load.busy]]
            cpus = "0"
            normal = true
            chunk = "300us"
            "#
        );
        assert_figures(&format!("storm-{awareness}-{ksoftirqd}"), &text);
    }
}

/// Goal: more packets than a poll or a queue takes. Method: three queues of one CPU whose packets come
/// together; a stream whose window is larger than its queue, so that some are sent again.
#[test]
fn packets_beyond_a_limit() {
    let many = r#"
        seed = 12
        duration = "12ms"
        [machine]
        cpus = 2
        [[load.packets]]
        cpus = "0"
        window = 400
        work = "230ns"
        copy = "190ns"
        transmit = "110ns"
        coalesce = "500us"
        wire = "45us"
        tc = ["qdisc add dev e parent 1:1 netem delay 200us", "qdisc add dev e parent 1:2 netem delay 300us",
              "qdisc add dev e parent 1:3 netem delay 100us"]
    "#;
    assert_figures("many", many);
    let full = r#"
        seed = 13
        duration = "20ms"
        [machine]
        cpus = 2
        [[load.packets]]
        cpus = "all"
        window = 60
        work = "230ns"
        copy = "190ns"
        transmit = "110ns"
        coalesce = "30us"
        tc = ["qdisc add dev e parent 1:1 netem limit 25 delay 2ms", "qdisc add dev e parent 1:2 netem limit 40 delay 1ms"]
    "#;
    assert_figures("full", full);
}
