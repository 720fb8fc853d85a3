//! Shares of flows and hosts, and moments of the shaper, as they follow from the paper: no model of the code.

use crate::{Made, SECOND, cake, run};
use proptest::prelude::*;
use quietcore_core::Nanos;
use quietcore_qdisc::{CakeCells, CakeFraming, CakeIsolation, CakeSettings, CakeTins, Dequeued, Qdisc as _};

/// One tin in which nothing waits too long.
fn patient(isolation: CakeIsolation) -> CakeSettings {
    CakeSettings {
        bandwidth: Some(1_000_000),
        interval: Nanos(1_000 * SECOND),
        target: Nanos(50 * SECOND),
        tins: CakeTins::BestEffort,
        isolation,
        memory_limit: Some(u32::MAX),
        ..CakeSettings::default()
    }
}

/// Of each flow, given by its hosts, the bytes that leave while all of them have more: with packets of 1000
/// bytes but of the first flow, whose packets have 600.
fn shares(isolation: CakeIsolation, flows: &[(u8, u8)]) -> Vec<f64> {
    let mut queue = cake(patient(isolation));
    let mut bytes = vec![0_u64; flows.len()];
    for round in 0..3_000 {
        for (flow, hosts) in flows.iter().enumerate() {
            let made = Made {
                number: flow as u32,
                hosts: *hosts,
                port: flow as u16 + 1,
                bytes: if flow == 0 { 600 } else { 1_000 },
                ..Made::default()
            };
            assert!(queue.enqueue(Nanos(SECOND + round), made.datagram()).is_accepted());
        }
    }
    for (_, left) in run(&mut queue, SECOND + 3_000, 3 * SECOND) {
        bytes[left.number as usize] += u64::from(left.packet.bytes().len() as u32 + 14);
    }
    let all: u64 = bytes.iter().sum();
    assert!((1_990_000..=2_002_000).contains(&all), "{all} bytes of 2 seconds");
    bytes.iter().map(|bytes| *bytes as f64 / all as f64).collect()
}

/// Goal: hosts share before their flows do, on the side that is told; with both, a flow has its part of the
/// host that has more of them. Method: flows between three hosts and two, each mode, beside shares that
/// follow from the numbers of flows.
#[test]
fn hosts_share_before_flows() {
    let flows = [(1, 9), (2, 9), (2, 9), (2, 8), (3, 8), (3, 9)];
    let even = |parts: [f64; 6]| {
        let all: f64 = parts.iter().sum();
        parts.map(|part| part / all)
    };
    let source = even([6.0, 2.0, 2.0, 2.0, 3.0, 3.0]);
    let destination = even([2.0, 2.0, 2.0, 4.0, 4.0, 2.0]);
    // The most flows of either end: 4, 4, 4, 3, 2, 4.
    let triple = even([3.0, 3.0, 3.0, 4.0, 6.0, 3.0]);
    for (isolation, expected) in [
        (CakeIsolation::Flows, even([1.0; 6])),
        (CakeIsolation::DualSourceHost, source),
        (CakeIsolation::DualDestinationHost, destination),
        (CakeIsolation::Triple, triple),
    ] {
        let found = shares(isolation, &flows);
        for (found, expected) in found.iter().zip(expected) {
            assert!((found / expected - 1.0).abs() < 0.02, "{isolation:?}: {found} of {expected}");
        }
    }
}

/// Goal: where hosts are flows, their own flows share a queue in order of arrival. Method: the same flows;
/// parts of hosts, and of packets within one.
#[test]
fn hosts_are_flows() {
    let flows = [(1, 9), (2, 9), (2, 9), (2, 8), (3, 8), (3, 9)];
    let expected = [
        (CakeIsolation::SourceHost, [1.0 / 3.0, 1.0 / 9.0, 1.0 / 9.0, 1.0 / 9.0, 1.0 / 6.0, 1.0 / 6.0]),
        (CakeIsolation::Hosts, [0.2, 0.1, 0.1, 0.2, 0.2, 0.2]),
        (CakeIsolation::FlowBlind, [0.107, 0.179, 0.179, 0.179, 0.179, 0.179]),
    ];
    for (isolation, expected) in expected {
        for (found, expected) in shares(isolation, &flows).iter().zip(expected) {
            assert!((found / expected - 1.0).abs() < 0.02, "{isolation:?}: {found} of {expected}");
        }
    }
}

/// Goal: a flow that has little goes before those that have much. Method: a packet that comes to a long
/// queue of another flow.
#[test]
fn what_is_sparse_goes_first() {
    let mut queue = cake(patient(CakeIsolation::Triple));
    for number in 0..50 {
        let made = Made { number, port: 1, bytes: 1_000, ..Made::default() };
        let _ = queue.enqueue(Nanos(SECOND), made.datagram());
    }
    assert_eq!(run(&mut queue, SECOND, SECOND + 5_500_000).len(), 6);
    let made = Made { number: 99, port: 2, bytes: 100, ..Made::default() };
    let _ = queue.enqueue(Nanos(SECOND + 5_600_000), made.datagram());
    let next = run(&mut queue, SECOND + 6_000_000, SECOND + 7_000_000);
    assert_eq!(next[0].1.number, 99);
}

/// What a packet takes on the link, in nanoseconds at 1 MB/s, from the manual.
fn link_time(framing: CakeFraming, bytes: u32) -> u64 {
    let bytes = i64::from(bytes) - if framing.raw { 0 } else { 14 };
    let bytes = (bytes + i64::from(framing.overhead)).max(i64::from(framing.mpu)) as u64;
    1_000
        * match framing.cells {
            CakeCells::Plain => bytes,
            CakeCells::Atm => bytes.div_ceil(48) * 53,
            CakeCells::Ptm => bytes + bytes.div_ceil(64),
        }
}

proptest! {
    /// Goal: a packet leaves when the link is done with those before, and not later; with `unlimited`, at
    /// once. Method: packets of one flow at random moments, beside a link that takes one after the other.
    #[test]
    fn the_shaper_is_a_link(
        arrivals in proptest::collection::vec((0_u64..3_000_000, 60_u32..1_500), 1..80),
        (raw, overhead, mpu) in (any::<bool>(), -20_i32..60, 0_u32..120),
        cells in prop_oneof![Just(CakeCells::Plain), Just(CakeCells::Atm), Just(CakeCells::Ptm)],
        is_limited in any::<bool>(),
    ) {
        let framing = CakeFraming { raw, overhead, mpu, cells };
        let mut settings = CakeSettings { framing, ..patient(CakeIsolation::Flows) };
        if !is_limited {
            settings.bandwidth = None;
        }
        let mut queue = cake(settings);
        let (mut now, mut free, mut expected, mut left) = (SECOND, 0, Vec::new(), Vec::new());
        for (number, (gap, bytes)) in arrivals.iter().enumerate() {
            left.extend(run(&mut queue, now, now + gap - gap.min(&1)));
            now += gap;
            let made = Made { number: number as u32, bytes: *bytes, ..Made::default() };
            prop_assert!(queue.enqueue(Nanos(now), made.datagram()).is_accepted());
            let begin = now.max(free);
            free = if is_limited { begin + link_time(framing, *bytes) } else { begin };
            expected.push(begin);
        }
        left.extend(run(&mut queue, now, u64::MAX));
        prop_assert_eq!(left.len(), expected.len());
        for ((moment, packet), (number, begin)) in left.iter().zip(expected.iter().enumerate()) {
            prop_assert_eq!(packet.number as usize, number);
            // Times per byte are cut off at a part in 2^34.
            prop_assert!(moment.abs_diff(*begin) <= 100, "{} left at {}, not {}", number, moment, begin);
        }
    }
}

/// Goal: dropped packets count for the shaper on the far side of a link, sent ones bound for how long: by
/// half as much again. Method: a flood of which most is dropped, with and without `ingress`.
#[test]
fn dropped_packets_count_on_ingress() {
    let sent = |ingress| {
        let settings = CakeSettings { ingress, memory_limit: Some(20_000), ..patient(CakeIsolation::Flows) };
        let (mut queue, mut sent) = (cake(settings), 0);
        // Three times the rate, for a second.
        for number in 0..3_000_u32 {
            let now = SECOND + u64::from(number) * 333_333;
            let made = Made { number, bytes: 1_000, ..Made::default() };
            let _ = queue.enqueue(Nanos(now), made.datagram());
            sent += run(&mut queue, now, now + 333_332).len();
        }
        assert!(queue.statistics().dropped > 1_000);
        sent
    };
    let (egress, ingress) = (sent(false), sent(true));
    assert!((995..=1_002).contains(&egress), "{egress}");
    assert!((660..=675).contains(&ingress), "{ingress}: two thirds, and not a third");
}

/// Goal: an empty shaper has no claims, and none is against it. Method: a packet long after the last one.
#[test]
fn silence_is_not_saved() {
    let mut queue = cake(patient(CakeIsolation::Flows));
    for at in [SECOND, 100 * SECOND] {
        for number in 0..5 {
            let _ = queue.enqueue(Nanos(at), Made { number, bytes: 1_000, ..Made::default() }.datagram());
        }
        assert!(matches!(queue.dequeue(Nanos(at)), Dequeued::Packet(_)));
        let next = queue.dequeue(Nanos(at));
        assert!(
            matches!(next, Dequeued::Throttled(next) if next.0.abs_diff(at + 1_000_000) <= 10),
            "{next:?}"
        );
        assert_eq!(run(&mut queue, at, u64::MAX).len(), 4);
    }
}
