//! Every figure by its name, and every distribution from its samples: values that are worked out by hand, and
//! of which no two are the same.

use super::{CpuResidency, CyclicThread, IdleStateFigures, PacketFigures, RaiseFigures, RealtimeFigures};
use super::{NUMBERS, PER_CPU, RunFigures, SpanQuantiles};
use super::{Recorder, SoftirqFigures};
use quietcore_core::softirq::Vector;
use quietcore_core::{CpuId, CpuSet};

/// Four values from `first` on.
const fn quantiles(first: u64) -> SpanQuantiles {
    SpanQuantiles { p50: first, p99: first + 1, p999: first + 2, max: first + 3 }
}

fn cpu(number: u64) -> CpuId {
    CpuId::new(number).expect("a CPU")
}

fn realtime() -> RealtimeFigures {
    let thread = |cycles, latency: u64| CyclicThread {
        cycles,
        expected: cycles + latency / 10,
        skipped: latency / 25,
        latency_ns: Some(quantiles(latency)),
        ..CyclicThread::default()
    };
    RealtimeFigures {
        threads: vec![thread(301, 400), thread(302, 500)],
        latency_ns: Some(quantiles(330)),
        placed: 340,
        pushed: 341,
        pulled: 342,
        on_isolated: 343,
        disorder: 344,
    }
}

fn packets() -> PacketFigures {
    PacketFigures {
        at_home: 600,
        elsewhere: 200,
        dropped: 601,
        held: 602,
        lost: 603,
        queue_max: 604,
        lock_waits: 605,
        lock_wait_ns: 100,
        enqueue_ns: 300,
        dequeue_ns: 500,
        busy_ns: 1000,
        watchdogs: [(7, 606), (8, 202)].into(),
        watchdogs_elsewhere: 607,
        late_ns: Some(quantiles(610)),
    }
}

fn idle() -> Vec<IdleStateFigures> {
    let of_cpu = |first: u64, share: f64| CpuResidency {
        entries: first + 1,
        total_ns: first,
        max_ns: first + 2,
        short: first + 3,
        share,
    };
    let shallow = [(7, of_cpu(700, 0.5))].into();
    let deep = [(7, of_cpu(710, 0.0625)), (8, of_cpu(720, 0.125))].into();
    vec![
        IdleStateFigures { name: "shallow".to_owned(), share: 0.25, by_cpu: shallow },
        IdleStateFigures { name: "deep".to_owned(), share: 0.375, by_cpu: deep },
    ]
}

/// Two seconds, in which nothing is absent.
fn figures() -> RunFigures {
    RunFigures {
        duration_ns: 2_000_000_000,
        arms: 101,
        cancels: 102,
        expiries: 103,
        foreign: 104,
        foreign_by_cpu: [(7, 105)].into(),
        foreign_pulled: 106,
        pullers: "7".parse().expect("a list"),
        remote: 107,
        pinned_away: 108,
        wakeups: 109,
        wakeups_by_cpu: [(7, 110)].into(),
        wakeups_isolated: 111,
        kicks: 112,
        ping_pongs: 113,
        lateness_ns: Some(quantiles(201)),
        task_delay_ns: Some(quantiles(211)),
        gaps_ns: [(7, quantiles(221)), (8, quantiles(231))].into(),
        throughput: Some(240.5),
        timeouts: 114,
        pair_ns: Some(241.5),
        looks: 115,
        lock_waits: 116,
        lock_wait_ns: 117,
        panics: 118,
        early: 119,
        past_bound: 122,
        lost: 120,
        busy_share: 0.25,
        idle_spans: 121,
        realtime: Some(realtime()),
        softirqs: Some(SoftirqFigures {
            raised: 420,
            ran_inline: 421,
            ran_ksoftirqd: 422,
            left: 423,
            delay_ns: [("NET_RX", quantiles(401)), ("BLOCK", quantiles(411))].into(),
            deferred: 424,
            deferral_ns_max: 425,
            limit_reached: 426,
            pass_ns_max: 427,
            ksoftirqd_wakeups: 428,
        }),
        timer_raise: Some(RaiseFigures {
            raises: [(7, 500), (8, 502)].into(),
            idle_raises: [(7, 503), (8, 504)].into(),
            calls: 505,
            coalesced: 506,
            late: 507,
            late_ns_max: 508,
            overdue: 509,
            overdue_ns_max: 510,
        }),
        packets: Some(packets()),
        idle: Some(idle()),
        events: 122,
        checks: 123,
        hash: 124,
    }
}

/// In the order of [`NUMBERS`].
const VALUES: [(&str, f64); 97] = [
    ("arms", 101.0),
    ("cancels", 102.0),
    ("expiries", 103.0),
    ("expiries_per_s", 51.5),
    ("foreign", 104.0),
    ("foreign_pulled", 106.0),
    ("remote", 107.0),
    ("pinned_away", 108.0),
    ("wakeups", 109.0),
    ("wakeups_per_s", 54.5),
    ("wakeups_isolated", 111.0),
    ("kicks", 112.0),
    ("ping_pongs", 113.0),
    ("ping_pongs_per_s", 56.5),
    ("lateness_p50", 201.0),
    ("lateness_p99", 202.0),
    ("lateness_p999", 203.0),
    ("lateness_max", 204.0),
    ("task_delay_p50", 211.0),
    ("task_delay_p99", 212.0),
    ("task_delay_max", 214.0),
    ("gap_p99", 232.0), // of the CPU that was away for longest
    ("gap_max", 234.0),
    ("throughput", 240.5),
    ("timeouts", 114.0),
    ("pair_ns", 241.5),
    ("looks", 115.0),
    ("lock_waits", 116.0),
    ("lock_wait_ns", 117.0),
    ("panics", 118.0),
    ("early", 119.0),
    ("past_bound", 122.0),
    ("lost", 120.0),
    ("busy_share", 0.25),
    ("idle_spans", 121.0),
    ("events", 122.0),
    ("gap_p50", 231.0),
    ("rt_latency_p50", 330.0),
    ("rt_latency_p99", 331.0),
    ("rt_latency_p999", 332.0),
    ("rt_latency_max", 333.0),
    ("rt_cycles", 603.0),      // 301 + 302
    ("rt_skipped", 36.0),      // 16 + 20
    ("rt_expected", 693.0),    // 341 + 352
    ("rt_unfinished", 54.0),   // 693 - 603 - 36
    ("rt_migrations", 1023.0), // 340 + 341 + 342
    ("rt_placed", 340.0),
    ("rt_pushed", 341.0),
    ("rt_pulled", 342.0),
    ("rt_on_isolated", 343.0),
    ("rt_disorder", 344.0),
    ("net_rx_delay_p50", 401.0),
    ("net_rx_delay_p99", 402.0),
    ("net_rx_delay_max", 404.0),
    ("block_delay_p50", 411.0),
    ("block_delay_p99", 412.0),
    ("block_delay_max", 414.0),
    ("vectors_raised", 420.0),
    ("vectors_ran", 843.0), // 421 + 422
    ("vectors_left", 423.0),
    ("vectors_lost", 846.0), // 843 + 423 - 420
    ("deferred", 424.0),
    ("deferral_max", 425.0),
    ("limit_reached", 426.0),
    ("pass_max", 427.0),
    ("ksoftirqd_wakeups", 428.0),
    ("raises", 1002.0), // 500 + 502
    ("raises_per_s", 501.0),
    ("idle_raises", 1007.0), // 503 + 504
    ("calls", 505.0),
    ("calls_coalesced", 506.0),
    ("late", 507.0),
    ("late_max", 508.0),
    ("overdue", 509.0),
    ("overdue_max", 510.0),
    ("packets_per_s", 400.0), // 800 in two seconds
    ("packets_dropped", 601.0),
    ("packets_held", 602.0),
    ("packets_lost", 603.0),
    ("dequeues", 800.0), // 600 + 200
    ("dequeues_elsewhere", 200.0),
    ("elsewhere_share", 0.25),
    ("lock_share", 0.1),
    ("enqueue_share", 0.3),
    ("dequeue_share", 0.5),
    ("queue_lock_waits", 605.0),
    ("queue_lock_wait_ns", 100.0),
    ("queue_max", 604.0),
    ("watchdogs", 808.0), // 606 + 202
    ("watchdogs_elsewhere", 607.0),
    ("watchdogs_top_share", 0.75),
    ("packet_late_p50", 610.0),
    ("packet_late_p99", 611.0),
    ("packet_late_max", 613.0),
    ("deep_idle_share", 0.375), // of the second state
    ("idle_entries", 2133.0),   // 701 + 711 + 721
    ("idle_short", 2139.0),     // 703 + 713 + 723
];

/// In the order of [`PER_CPU`]; of CPU 7, or of the second thread.
const VALUES_PER_CPU: [(&str, u64, f64); 13] = [
    ("foreign", 7, 105.0),
    ("wakeups", 7, 110.0),
    ("gap_p50", 7, 221.0),
    ("gap_p99", 7, 222.0),
    ("gap_max", 7, 224.0),
    ("raises", 7, 500.0),
    ("raises_per_s", 7, 250.0),
    ("idle_raises", 7, 503.0),
    ("thread_p50", 1, 500.0),
    ("thread_p99", 1, 501.0),
    ("thread_max", 1, 503.0),
    ("watchdogs", 7, 606.0),
    ("deep_idle_share", 7, 0.0625),
];

/// Goal: every name leads to its figure, and to no neighbour of it. Method: figures in which nothing is
/// absent and hardly two are the same.
#[test]
fn every_name_leads_to_its_figure() {
    let figures = figures();
    for ((name, of), (expected, value)) in NUMBERS.into_iter().zip(VALUES) {
        assert_eq!((name, of(&figures)), (expected, Some(value)));
        assert_eq!(figures.number(name), Some(value), "{name}");
    }
    for (name, (expected, number, value)) in PER_CPU.into_iter().zip(VALUES_PER_CPU) {
        assert_eq!((name, figures.number_of(name, cpu(number))), (expected, Some(value)));
    }
    assert_eq!(figures.cpus("pullers"), Some(&"7".parse().expect("a list")));
    assert_eq!((figures.number("hash"), figures.cpus("hash")), (None, None));
}

/// Goal: a figure of a part that a run does not have is absent, never 0. Method: a run without anything.
#[test]
fn what_a_run_does_not_have_is_absent() {
    let figures = Recorder::new(2).finish(1_000_000, &CpuSet::new());
    for (name, of) in NUMBERS {
        let is_of_a_part = ["_p50", "_p99", "_p999", "gap_", "rt_", "packet", "raises", "vectors"];
        if is_of_a_part.iter().any(|part| name.contains(part)) {
            assert_eq!(of(&figures), None, "{name}");
        }
    }
    for name in ["throughput", "pair_ns", "deferred", "late", "overdue_max", "queue_max", "lock_share"] {
        assert_eq!(figures.number(name), None, "{name}");
    }
    for name in ["deep_idle_share", "idle_entries", "idle_short"] {
        assert_eq!(figures.number(name), None, "{name}");
    }
    assert_eq!(figures.number_of("deep_idle_share", cpu(0)), None);
    assert_eq!((figures.number("arms"), figures.number("busy_share")), (Some(0.0), Some(1.0)));
}

/// Goal: what a run amounts to follows from what was recorded. Method: 250 ms of four CPUs, with samples of
/// which every quantile is another and is worked out by hand.
#[test]
fn figures_follow_from_what_was_recorded() {
    let mut recorder = Recorder::new(4);
    (1..=1000).for_each(|span| recorder.lateness(span));
    (1001..=2000).for_each(|span| recorder.task_delay(span));
    recorder.measures(cpu(1));
    recorder.measures(cpu(2)); // which is never away
    (1..=100).for_each(|span| recorder.gap(cpu(1), span));
    recorder.gap(cpu(3), 7); // on which nothing measures
    recorder.softirqs().raised = 1;
    (1..=200).for_each(|span| recorder.delay(Vector::NET_RX, span));
    (301..=500).for_each(|span| recorder.delay(Vector::BLOCK, span));
    recorder.realtime().threads = vec![CyclicThread::default(); 2];
    (1..=100).for_each(|span| recorder.latency(0, span));
    (101..=200).for_each(|span| recorder.latency(1, span));
    recorder.packets().held = 1;
    (1..=400).for_each(|span| recorder.packet_late(span));
    [1, 1, 3, 3, 3].into_iter().for_each(|number| recorder.foreign(cpu(number)));
    [0, 0, 0, 0, 1, 1, 1, 1, 1].into_iter().for_each(|number| recorder.wakeup(cpu(number)));
    recorder.requests = Some(500);
    recorder.rounds = Some((8, 1000));
    recorder.idle_ns = 600_000_000;

    let figures = recorder.finish(250_000_000, &"1,3".parse().expect("a list"));
    let span = |p50, p99, p999, max| Some(SpanQuantiles { p50, p99, p999, max });
    assert_eq!(figures.duration_ns, 250_000_000);
    assert_eq!(figures.lateness_ns, span(500, 990, 999, 1000));
    assert_eq!(figures.task_delay_ns, span(1500, 1990, 1999, 2000));
    assert_eq!(figures.gaps_ns.keys().copied().collect::<Vec<u16>>(), [1]);
    assert_eq!(figures.gaps_ns.get(&1).copied(), span(50, 99, 100, 100));
    let softirqs = figures.softirqs.expect("devices");
    assert_eq!(softirqs.delay_ns.get("NET_RX").copied(), span(100, 198, 200, 200));
    assert_eq!(softirqs.delay_ns.get("BLOCK").copied(), span(400, 498, 500, 500));
    let realtime = figures.realtime.expect("threads");
    assert_eq!(realtime.latency_ns, span(100, 198, 200, 200));
    assert_eq!(realtime.threads[0].latency_ns, span(50, 99, 100, 100));
    assert_eq!(realtime.threads[1].latency_ns, span(150, 199, 200, 200));
    let packets = figures.packets.expect("queues");
    assert_eq!((packets.late_ns, packets.busy_ns), (span(200, 396, 400, 400), 400_000_000));
    assert_eq!((figures.foreign, figures.foreign_by_cpu), (5, [(1, 2), (3, 3)].into()));
    assert_eq!(figures.pullers, "1,3".parse().expect("a list"));
    assert_eq!((figures.wakeups, figures.wakeups_isolated), (9, 5));
    assert_eq!(figures.wakeups_by_cpu, [(0, 4), (1, 5)].into());
    assert_eq!((figures.throughput, figures.pair_ns), (Some(2000.0), Some(125.0)));
    assert_eq!(figures.busy_share, 0.4); // 400 of 1000 ms
}

/// Goal: each residency counts for its state and CPU, and is too short only if a wake-up ended it before its
/// time. Method: 1 ms of two CPUs with two states; residencies on both sides of a bound, and one that the end
/// cuts off.
#[test]
fn residencies_count_for_their_state_and_cpu() {
    let mut recorder = Recorder::new(2);
    recorder.idle.add_state("shallow", 10, 2);
    recorder.idle.add_state("deep", 1_000, 2);
    let mut residency = |cpu, state, span, is_woken| {
        recorder.idle.enter(cpu, state);
        recorder.idle.stayed(cpu, state, span);
        if is_woken {
            recorder.idle.woken(cpu, state, span);
        }
    };
    residency(0, 0, 10, true);
    residency(0, 1, 250_000, true);
    residency(1, 1, 999, true);
    residency(1, 1, 1_000, true);
    residency(1, 1, 748_001, true);
    residency(1, 1, 3, false);
    let figures = recorder.finish(1_000_000, &CpuSet::new());
    let of_cpu =
        |entries, total_ns, max_ns, short, share| CpuResidency { entries, total_ns, max_ns, short, share };
    let expected = [
        ("shallow", 0.000_005, vec![(0, of_cpu(1, 10, 10, 0, 0.000_01))]),
        (
            "deep",
            0.500_001_5,
            vec![(0, of_cpu(1, 250_000, 250_000, 0, 0.25)), (1, of_cpu(4, 750_003, 748_001, 1, 0.750_003))],
        ),
    ];
    let states = figures.idle.as_ref().expect("two states");
    assert_eq!(states.len(), 2);
    for (state, (name, share, by_cpu)) in states.iter().zip(expected) {
        assert_eq!((state.name.as_str(), state.share), (name, share));
        assert_eq!(state.by_cpu, by_cpu.into_iter().collect(), "{name}");
    }
    assert_eq!((figures.number("idle_entries"), figures.number("idle_short")), (Some(6.0), Some(1.0)));
    assert_eq!(figures.number_of("deep_idle_share", cpu(2)), Some(0.0));
}

/// Goal: the first CPU, one event and one round count, and nothing is 0 of its CPU, but no share. Method: one
/// of each, on CPU 0, which is isolated.
#[test]
fn one_counts_and_none_is_nothing() {
    let finish = |rounds| {
        let mut recorder = Recorder::new(2);
        recorder.rounds = Some((rounds, 700));
        recorder.foreign(cpu(0));
        recorder.wakeup(cpu(0));
        recorder.finish(1_000_000, &"0".parse().expect("a list"))
    };
    let one = finish(1);
    assert_eq!((&one.foreign_by_cpu, &one.wakeups_by_cpu), (&[(0, 1)].into(), &[(0, 1)].into()));
    assert_eq!((one.wakeups_isolated, one.pullers), (1, "0".parse().expect("a list")));
    assert_eq!((one.pair_ns, finish(0).pair_ns), (Some(700.0), None));
    for name in ["foreign", "wakeups", "raises", "raises_per_s", "idle_raises", "watchdogs"] {
        assert_eq!(figures().number_of(name, cpu(9)), Some(0.0), "{name}");
    }
    assert_eq!(figures().number_of("gap_max", cpu(9)), None);
    let elsewhere = |elsewhere| PacketFigures { elsewhere, ..PacketFigures::default() }.elsewhere_share();
    assert_eq!((elsewhere(1), elsewhere(0)), (Some(1.0), None));
}
