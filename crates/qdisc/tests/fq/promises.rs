//! What `fq` promises, by hand and by random steps: pace, fairness, order, and its defaults.

use crate::Datagram;
use proptest::prelude::*;
use quietcore_core::Nanos;
use quietcore_qdisc::{Dequeued, Enqueued, Fq, FqError, FqSettings, Horizon, Qdisc};

const MICROS: u64 = 1_000;
const MILLIS: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

fn fq(settings: FqSettings) -> Fq<Datagram> {
    Fq::new(settings).expect("settings that can be")
}

fn packet(flow: u64, bytes: u32) -> Datagram {
    Datagram { flow, bytes, ..Datagram::default() }
}

fn put(queue: &mut Fq<Datagram>, now: u64, packet: Datagram) {
    assert_eq!(queue.enqueue(Nanos(now), packet), Enqueued::Queued, "{packet:?}");
}

/// The flow of the next packet.
fn next(queue: &mut Fq<Datagram>, now: u64) -> Option<u64> {
    queue.dequeue(Nanos(now)).packet().map(|packet| packet.flow)
}

/// Sends all there is; each time waits for the moment that is named and the lateness that `late` gives.
fn drain(queue: &mut Fq<Datagram>, mut now: Nanos, late: &[u64]) -> Vec<(Nanos, Datagram)> {
    let (mut sent, mut late) = (vec![], late.iter().cycle());
    loop {
        match queue.dequeue(now) {
            Dequeued::Packet(packet) => sent.push((now, packet)),
            Dequeued::Throttled(until) => now = Nanos(until.0 + late.next().expect("some lateness")),
            Dequeued::Empty => return sent,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    /// Goal: paced packet by packet, no span sees more than the rate's, half of the first packet and the
    /// last one, stamped packets or not. Method: random packets, lateness and pauses, every span.
    #[test]
    fn windows_of_a_low_rate(
        rate in 4_000_u64..60_000,
        bursts in proptest::collection::vec((0_u64..SECOND, 1_usize..30), 1..6),
        bytes in proptest::collection::vec((1_u32..3_000, any::<bool>()), 1..20),
        late in proptest::collection::vec(0_u64..SECOND / 4, 1..10),
    ) {
        let mut queue = fq(FqSettings { maxrate: Some(rate), flow_limit: 1_000, ..FqSettings::default() });
        let (mut sent, mut now) = (vec![], Nanos(MILLIS));
        let mut bytes = bytes.into_iter().cycle();
        for (pause, count) in bursts {
            for (bytes, stamped) in bytes.by_ref().take(count) {
                let departure = stamped.then_some(now);
                put(&mut queue, now.0, Datagram { departure, ..packet(1, bytes) });
            }
            sent.extend(drain(&mut queue, now, &late));
            now = Nanos(sent.last().map_or(now, |(last, _)| *last).0 + pause);
        }
        let time = |bytes: u32| u64::from(bytes) * SECOND / rate;
        for (first, (begin, packet)) in sent.iter().enumerate() {
            let (half, mut used) = (time(packet.bytes) / 2, 0);
            for (end, packet) in &sent[first..] {
                used += time(packet.bytes);
                let allowed = end.0 - begin.0 + half + time(packet.bytes);
                prop_assert!(used <= allowed, "{used} ns sent within {allowed} ns after {begin:?}");
            }
        }
    }

    /// Goal: paced by quanta, no span sees more than the rate's, the credit of a turn and a half quantum
    /// more than one. Method: as above, packets no longer than a quantum, no refill.
    #[test]
    fn windows_of_a_high_rate(
        rate in 70_000_u64..2_000_000,
        initial in 0_u32..20_000,
        bytes in proptest::collection::vec(1_u32..3_000, 1..200),
        late in proptest::collection::vec(0_u64..50 * MILLIS, 1..10),
    ) {
        let settings = FqSettings { initial_quantum: initial, flow_limit: 1_000, ..FqSettings::default() };
        let mut queue = fq(FqSettings { maxrate: Some(rate), refill_delay: Nanos(u64::MAX), ..settings });
        for bytes in bytes {
            put(&mut queue, MILLIS, packet(1, bytes));
        }
        let sent = drain(&mut queue, Nanos(MILLIS), &late);
        let quantum = u64::from(settings.quantum);
        let per_quantum = quantum * SECOND / rate;
        for (first, (begin, _)) in sent.iter().enumerate() {
            let mut used = 0;
            for (end, packet) in &sent[first..] {
                used += u64::from(packet.bytes);
                // In halves of a byte, each quantum taking its whole nanoseconds.
                let credit = 2 * u64::from(initial).max(quantum) + 3 * quantum;
                let allowed = credit + 2 * quantum * (end.0 - begin.0) / per_quantum;
                prop_assert!(2 * used <= allowed, "{used} bytes, of {allowed} halves, after {begin:?}");
            }
        }
    }
}

/// Goal: every default is the kernel's. Method: the numbers.
#[test]
fn defaults() {
    let settings = FqSettings::default();
    assert_eq!((settings.limit, settings.flow_limit, settings.buckets), (10_000, 100, 1_024));
    assert_eq!((settings.quantum, settings.initial_quantum), (2 * 1_514, 10 * 1_514));
    assert_eq!((settings.refill_delay, settings.timer_slack), (Nanos(40 * MILLIS), Nanos(10 * MICROS)));
    assert_eq!(settings.low_rate_threshold * 8, 550_000);
    assert_eq!(settings.horizon, Horizon::Drop(Nanos(10 * SECOND)));
    assert_eq!(settings.weights, [589_824, 196_608, 65_536]);
    assert_eq!((settings.maxrate, settings.ce_threshold, settings.pacing), (None, None, true));
    assert_eq!(settings.priomap, [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]);
}

/// Goal: every error, with the value; just inside is none. Method: one wrong setting each.
#[test]
fn settings_that_cannot_be() {
    let error = |settings| Fq::<Datagram>::new(settings).err();
    let settings = FqSettings::default();
    assert_eq!(error(FqSettings { quantum: 0, ..settings }), Some(FqError::Quantum(0)));
    assert_eq!(error(FqSettings { buckets: 0, ..settings }), Some(FqError::Buckets(0)));
    let weighed = |weights| FqSettings { weights, ..settings };
    let mut priomap = [2; 16];
    assert_eq!(error(FqSettings { priomap, ..settings }), None);
    priomap[9] = 3;
    let band = FqError::Band { priority: 9, band: 3 };
    assert_eq!(error(FqSettings { priomap, ..settings }), Some(band));
    assert_eq!(error(weighed([16_384; 3])), None);
    let weight = FqError::Weight { band: 1, weight: 16_383 };
    assert_eq!(error(weighed([16_384, 16_383, 16_384])), Some(weight));
    assert_eq!(weight.to_string(), "weight 16383 of band 1 is below 16384");
    assert_eq!(band.to_string(), "priority 9 is mapped to band 3 of 3, which begin at 0");
    assert_eq!(FqError::Buckets(0).to_string(), "0 buckets keep no flow");
}

/// Goal: a flow that waits for its time is in no other's way. Method: one stamped far ahead, then others.
#[test]
fn who_waits_holds_up_nobody() {
    let mut queue = fq(FqSettings::default());
    let far = Nanos(SECOND);
    put(&mut queue, 0, Datagram { departure: Some(far), ..packet(1, 1_000) });
    assert_eq!(queue.dequeue(Nanos(0)), Dequeued::Throttled(far));
    // Eight may take the short way past it; the ninth goes by its flow, and leaves behind them.
    for flow in 2..11 {
        put(&mut queue, 0, packet(flow, 1_000));
    }
    assert_eq!((queue.fq_statistics().fast_path_packets, queue.fq_statistics().flows), (8, 2));
    for flow in 2..11 {
        assert_eq!(next(&mut queue, 0), Some(flow));
    }
    assert_eq!(queue.dequeue(Nanos(0)), Dequeued::Throttled(far));
    // At the moment itself the one that waited is no longer to be passed.
    put(&mut queue, far.0, packet(11, 1_000));
    assert_eq!(queue.fq_statistics().fast_path_packets, 8);
    assert_eq!([next(&mut queue, far.0), next(&mut queue, far.0)], [Some(11), Some(1)]);
}

/// Goal: flows share by bytes, not by packets, and one that wakes goes before those that had a turn.
/// Method: by hand; a quantum of 1000, long packets against short ones.
#[test]
fn turns() {
    let mut queue =
        fq(FqSettings { quantum: 1_000, initial_quantum: 1_000, pacing: false, ..FqSettings::default() });
    let paced = |flow, bytes| Datagram { departure: Some(Nanos(1)), ..packet(flow, bytes) };
    for _ in 0..4 {
        put(&mut queue, 0, paced(1, 1_000));
    }
    for _ in 0..8 {
        put(&mut queue, 0, paced(2, 500));
    }
    let turns: Vec<_> = (0..6).map(|_| next(&mut queue, 1).expect("twelve wait")).collect();
    assert_eq!(turns, [1, 2, 2, 1, 2, 2]);
    put(&mut queue, 1, packet(3, 400));
    assert_eq!(next(&mut queue, 1), Some(3), "it has just woken");
    assert_eq!(next(&mut queue, 1), Some(1));
}

/// Goal: bands share by their weights when all have enough. Method: three flows that never run dry.
#[test]
fn bands_share_by_weight() {
    let settings = FqSettings { flow_limit: 10_000, pacing: false, ..FqSettings::default() };
    let mut queue = fq(settings);
    let mut sent = [0_u64; 3];
    let of_band = |band: u32| Datagram { priority: [6, 0, 1][band as usize], ..packet(band.into(), 1_024) };
    for band in (0..3).cycle().take(30) {
        put(&mut queue, 0, Datagram { departure: Some(Nanos(1)), ..of_band(band) });
    }
    let rounds = 100;
    for _ in 0..rounds * settings.weights.iter().sum::<u32>() / 1_024 {
        let flow = next(&mut queue, 1).expect("none runs dry");
        sent[flow as usize] += 1_024;
        put(&mut queue, 1, Datagram { departure: Some(Nanos(1)), ..of_band(flow as u32) });
    }
    assert_eq!(sent, settings.weights.map(|weight| u64::from(rounds * weight)));
}

/// Goal: other weights hold from the change on, and credit above them is gone. Method: each band has a
/// turn's credit, then weights of 16384, 2 and 3 times as much, packets of that size, and the order in which
/// they leave.
#[test]
fn other_weights_hold_at_once() {
    let least = 16_384;
    let settings = FqSettings { pacing: false, initial_quantum: 1 << 30, ..FqSettings::default() };
    let mut queue = fq(settings);
    for _ in 0..9 {
        for (priority, flow) in [(6, 0), (0, 1), (1, 2)] {
            put(&mut queue, 0, Datagram { priority, departure: Some(Nanos(1)), ..packet(flow, least) });
        }
    }
    queue.change(FqSettings { weights: [least, 2 * least, 3 * least], ..settings }).expect("they can be");
    let order: Vec<u64> = (0..12).map(|_| next(&mut queue, 1).expect("27 wait")).collect();
    assert_eq!(order, [0, 1, 1, 2, 2, 2, 0, 1, 1, 2, 2, 2]);
    // The same weights amid a turn, of which the second band has had half, are no other turn.
    let mut order = vec![];
    for _ in 0..4 {
        let weights = [least, 2 * least, 3 * least];
        queue.change(FqSettings { weights, ..settings }).expect("they can be");
        order.push(next(&mut queue, 1).expect("15 wait"));
    }
    assert_eq!(order, [0, 1, 1, 2]);
}

/// Goal: a band with the credit of one byte sends, and one whose debt is its weight waits two turns, though
/// no other has packets. Method: weights that the first packet leaves one byte of, or overdraws by as much.
#[test]
fn the_edges_of_a_bands_credit() {
    let settings = FqSettings { pacing: false, initial_quantum: 1 << 30, ..FqSettings::default() };
    let mut queue = fq(FqSettings { weights: [16_385, 16_384, 16_384], ..settings });
    let of = |priority, flow, bytes| Datagram { priority, departure: Some(Nanos(1)), ..packet(flow, bytes) };
    for datagram in [of(6, 0, 16_384), of(6, 0, 100), of(0, 1, 100)] {
        put(&mut queue, 0, datagram);
    }
    assert_eq!([0; 3].map(|_| next(&mut queue, 1)), [Some(0), Some(0), Some(1)]);
    let mut queue = fq(FqSettings { weights: [16_384; 3], ..settings });
    for _ in 0..2 {
        put(&mut queue, 0, of(6, 0, 2 * 16_384));
    }
    assert_eq!([0; 3].map(|_| next(&mut queue, 1)), [Some(0), Some(0), None]);
}

/// Goal: a flow that was let go late catches up, but never by more than half of a delay. Method: by hand:
/// 1 ms per packet, 200 us late, then 5 ms.
#[test]
fn lateness_is_made_up_for() {
    let mut queue = fq(FqSettings::default());
    for _ in 0..4 {
        put(&mut queue, 0, Datagram { rate: Some(50_000), ..packet(1, 50) });
    }
    assert_eq!(next(&mut queue, SECOND), Some(1));
    let mut due = SECOND + MILLIS;
    assert_eq!(queue.dequeue(Nanos(SECOND)), Dequeued::Throttled(Nanos(due)));
    assert_eq!(next(&mut queue, due + 200 * MICROS), Some(1));
    due += MILLIS;
    assert_eq!(queue.dequeue(Nanos(due - 1)), Dequeued::Throttled(Nanos(due)), "on time again");
    assert_eq!(next(&mut queue, due + 5 * MILLIS), Some(1));
    due += 5 * MILLIS + MILLIS / 2;
    assert_eq!(queue.dequeue(Nanos(due - 1)), Dequeued::Throttled(Nanos(due)), "half a millisecond made up");
    let latency = 200 * MICROS / 8;
    let latency = latency - latency / 8 + 5 * MILLIS / 8;
    assert_eq!(queue.fq_statistics().unthrottle_latency, Nanos(latency));
}

/// Goal: the moments of the first packets of a flow at a high rate: its first credit at once, then a quantum
/// at a time. Method: by hand: 1 us per byte, packets of 1000.
#[test]
fn a_high_rate_is_paced_by_quanta() {
    let mut queue = fq(FqSettings {
        quantum: 2_000,
        initial_quantum: 3_000,
        maxrate: Some(1_000_000),
        ..FqSettings::default()
    });
    for _ in 0..9 {
        put(&mut queue, 0, packet(1, 1_000));
    }
    let moments: Vec<u64> = drain(&mut queue, Nanos(0), &[0]).iter().map(|(now, _)| now.0 / MICROS).collect();
    assert_eq!(moments, [0, 0, 0, 2_000, 2_000, 4_000, 4_000, 6_000, 6_000]);
}

/// Goal: a flow with the credit of one byte still sends at once. Method: packets that leave one byte of its
/// first credit, or none.
#[test]
fn the_last_byte_of_credit_sends() {
    for (initial_quantum, at_once) in [(1_000, 1), (1_001, 2)] {
        let mut queue = fq(FqSettings { initial_quantum, maxrate: Some(1_000_000), ..FqSettings::default() });
        for _ in 0..2 {
            put(&mut queue, 0, packet(1, 1_000));
        }
        let sent = (0..2).filter(|_| next(&mut queue, 0).is_some()).count();
        assert_eq!(sent, at_once, "{initial_quantum} bytes");
    }
}

/// Goal: a delay of more than a second is counted as too long, one of a second is not. Method: both sides,
/// at 50 bytes per second.
#[test]
fn delays_that_are_too_long_are_counted() {
    let mut queue = fq(FqSettings::default());
    for (flow, bytes, too_long) in [(1, 50, 0), (2, 51, 1)] {
        put(&mut queue, 0, Datagram { rate: Some(50), ..packet(flow, bytes) });
        assert_eq!(next(&mut queue, 0), Some(flow));
        assert_eq!(queue.fq_statistics().too_long_packets, too_long, "{bytes} bytes");
    }
}

/// Goal: beyond the horizon is beyond, at it is not; dropped or capped. Method: both sides of it.
#[test]
fn the_horizon() {
    let at = |departure| Datagram { departure: Some(Nanos(departure)), ..packet(1, 100) };
    let mut queue = fq(FqSettings::default());
    put(&mut queue, 0, at(10 * SECOND));
    assert_eq!(queue.enqueue(Nanos(0), at(10 * SECOND + 1)), Enqueued::Dropped);
    assert_eq!((queue.fq_statistics().horizon_drops, queue.statistics().dropped), (1, 1));
    let mut queue = fq(FqSettings { horizon: Horizon::Cap(Nanos(SECOND)), ..FqSettings::default() });
    put(&mut queue, 0, at(u64::MAX));
    assert_eq!(queue.dequeue(Nanos(0)), Dequeued::Throttled(Nanos(SECOND)));
    assert_eq!((next(&mut queue, SECOND), queue.fq_statistics().horizon_caps), (Some(1), 1));
}

/// Goal: a rate is low up to the threshold. Method: at it, and a byte per second more.
#[test]
fn low_is_up_to_the_threshold() {
    for (rate, at_once) in [(50_000, 1), (50_001, 2)] {
        let mut queue = fq(FqSettings { low_rate_threshold: 50_000, ..FqSettings::default() });
        for _ in 0..2 {
            put(&mut queue, 0, Datagram { rate: Some(rate), ..packet(1, 50) });
        }
        let sent = (0..2).filter(|_| next(&mut queue, 0).is_some()).count();
        assert_eq!(sent, at_once, "{rate} bytes per second");
    }
}

/// Goal: later than the threshold is marked, at it is not; what cannot be marked is sent as it is. Method:
/// both sides of it.
#[test]
fn late_packets_are_marked() {
    let mut queue = fq(FqSettings { ce_threshold: Some(Nanos(100)), ..FqSettings::default() });
    for (late, markable, marked) in [(100, true, false), (101, true, true), (101, false, false)] {
        let departure = Some(Nanos(SECOND));
        put(&mut queue, 0, Datagram { departure, markable, ..packet(1, 50) });
        let sent = queue.dequeue(Nanos(SECOND + late)).packet().expect("it is due");
        assert_eq!(sent.marked, marked, "{late} ns late");
    }
    assert_eq!(queue.fq_statistics().ce_marks, 1);
}

/// Goal: more than the delay of refill without packets gives a quantum, the delay itself does not. Method:
/// both sides of it; a flow that has the credit of one byte, and two packets of which a quantum has both.
#[test]
fn idleness_refills() {
    for (late, at_once) in [(0, 1), (1, 2)] {
        let settings = FqSettings {
            quantum: 1_000,
            initial_quantum: 1_000,
            maxrate: Some(1_000_000),
            ..FqSettings::default()
        };
        let mut queue = fq(settings);
        put(&mut queue, 0, packet(1, 1_999));
        assert_eq!((next(&mut queue, 0), next(&mut queue, 0)), (Some(1), None));
        let now = settings.refill_delay.0 + late;
        for _ in 0..2 {
            put(&mut queue, now, packet(1, 600));
        }
        let sent = (0..2).filter(|_| next(&mut queue, now).is_some()).count();
        assert_eq!(sent, at_once, "{late} ns after the delay");
    }
}

/// Goal: flows are forgotten when idle for more than three seconds, eight at once, and only where there are
/// many. Method: both sides of the moment; one bucket, and enough of them.
#[test]
fn idle_flows_are_forgotten() {
    for (buckets, late, forgotten) in [(1, 0, 0), (1, 1, 8), (6, 1, 8), (7, 1, 0)] {
        let mut queue = fq(FqSettings { buckets, maxrate: Some(u64::MAX), ..FqSettings::default() });
        for flow in 0..12 {
            put(&mut queue, 0, packet(flow, 100));
        }
        while next(&mut queue, 0).is_some() {}
        put(&mut queue, 3 * SECOND + late, packet(99, 100));
        let counted = queue.fq_statistics();
        assert_eq!(
            (counted.collected_flows, counted.flows),
            (forgotten, 13 - forgotten),
            "{buckets} buckets"
        );
    }
}

/// Goal: neither huge numbers nor the end of time panic. Method: the largest of everything.
#[test]
fn extremes() {
    let settings = FqSettings {
        horizon: Horizon::Cap(Nanos(u64::MAX)),
        maxrate: Some(u64::MAX),
        ..FqSettings::new(u32::MAX)
    };
    let mut queue = fq(FqSettings { weights: [u32::MAX; 3], ..settings });
    for departure in [None, Some(Nanos(u64::MAX))] {
        let (rate, priority) = (Some(u64::MAX), u32::MAX);
        put(&mut queue, 0, Datagram { departure, rate, priority, ..packet(u64::MAX, u32::MAX) });
    }
    assert_eq!(next(&mut queue, 0), Some(u64::MAX));
    assert_eq!(queue.dequeue(Nanos(0)), Dequeued::Throttled(Nanos(u64::MAX)));
    assert_eq!(next(&mut queue, u64::MAX), Some(u64::MAX));
    let mut queue = fq(FqSettings { maxrate: Some(0), ..FqSettings::default() });
    put(&mut queue, u64::MAX - 1, packet(1, 1));
    put(&mut queue, u64::MAX - 1, packet(1, 1));
    assert_eq!(next(&mut queue, u64::MAX - 1), Some(1));
    assert_eq!(queue.dequeue(Nanos(u64::MAX - 1)), Dequeued::Throttled(Nanos(u64::MAX)));
}
