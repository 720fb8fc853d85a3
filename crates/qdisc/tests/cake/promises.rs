//! What a cake promises whatever it is told: nothing is lost uncounted, flows keep their order, memory has
//! its limit.

use crate::{Datagram, LINK_HEADER, Made, SECOND, cake};
use proptest::prelude::*;
use quietcore_core::Nanos;
use quietcore_qdisc::{
    CakeAckFilter, CakeCells, CakeError, CakeFraming, CakeIsolation, CakeSettings, CakeTins, Dequeued,
    IpPacket, Qdisc as _, Segments,
};
use std::collections::BTreeMap;
use std::num::NonZeroU16;

#[derive(Clone, Debug)]
enum Step {
    Wait(u64),
    Enqueue(Made),
    Dequeue,
    Reset,
    Change(CakeSettings),
}

fn settings() -> impl Strategy<Value = CakeSettings> {
    use CakeIsolation as I;
    use CakeTins as T;
    let tins = prop_oneof![
        Just(T::BestEffort),
        Just(T::Precedence),
        Just(T::Diffserv3),
        Just(T::Diffserv4),
        Just(T::Diffserv8)
    ];
    let isolation = proptest::sample::select(&[
        I::FlowBlind,
        I::SourceHost,
        I::DestinationHost,
        I::Hosts,
        I::Flows,
        I::DualSourceHost,
        I::DualDestinationHost,
        I::Triple,
    ]);
    let rate = prop_oneof![Just(None), (0_u64..400_000).prop_map(Some)];
    let rtt = prop_oneof![Just(100_000_000_u64), 1_u64..2_000_000];
    let memory = prop_oneof![Just(None), (0_u32..40_000).prop_map(Some)];
    let cells = prop_oneof![Just(CakeCells::Plain), Just(CakeCells::Atm), Just(CakeCells::Ptm)];
    let framing = (any::<bool>(), -64..=256_i32, 0..=256_u32, cells)
        .prop_map(|(raw, overhead, mpu, cells)| CakeFraming { raw, overhead, mpu, cells });
    let switches = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (rate, rtt, tins, isolation, memory, framing, switches).prop_map(
        |(bandwidth, rtt, tins, isolation, memory_limit, framing, (wash, ingress, autorate, acks))| {
            CakeSettings {
                bandwidth,
                autorate_ingress: autorate,
                interval: Nanos(rtt),
                target: Nanos(rtt.div_ceil(20)),
                tins,
                isolation,
                wash,
                ingress,
                ack_filter: if acks { CakeAckFilter::Aggressive } else { CakeAckFilter::Off },
                framing,
                memory_limit,
                fwmark: 3,
                ..CakeSettings::default()
            }
        },
    )
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let made = (any::<bool>(), 0_u8..4, 0_u16..6, 42_u32..1_514, any::<u8>(), 0_u32..12).prop_map(
        |(is_back, host, port, bytes, traffic_class, mark)| Made {
            hosts: if is_back { (9, host) } else { (host, 9) },
            port,
            bytes,
            traffic_class,
            mark,
            ..Made::default()
        },
    );
    let wait = prop_oneof![3 => 0_u64..1_000, 6 => 0_u64..4_000_000, 1 => 0_u64..900_000_000];
    let step = prop_oneof![
        40 => wait.prop_map(Step::Wait),
        60 => made.prop_map(Step::Enqueue),
        50 => Just(Step::Dequeue),
        1 => Just(Step::Reset),
        2 => settings().prop_map(Step::Change),
    ];
    proptest::collection::vec(step, 1..300)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Goal: what came in left once, was dropped and counted, or is there; a flow of one tin keeps its
    /// order; memory is below its limit; a moment that is named is a later one. Method: random packets and
    /// changes.
    #[test]
    fn nothing_is_lost_uncounted(first in settings(), steps in steps()) {
        let (mut queue, mut now, mut number) = (cake(first), SECOND, 0_u32);
        // Gone without being counted: at resets.
        let (mut gone, mut came, mut sent) = (0, 0_u64, 0_u64);
        let mut last: BTreeMap<(u8, u32, Vec<u8>), u32> = BTreeMap::new();
        // What came before may be in another tin than what follows.
        let mut changed = 0;
        let mut told = first;
        for step in steps {
            match step {
                Step::Wait(nanos) => now += nanos,
                Step::Enqueue(made) => {
                    number += 1;
                    came += 1;
                    let _ = queue.enqueue(Nanos(now), Made { number, ..made }.datagram());
                }
                Step::Dequeue => match queue.dequeue(Nanos(now)) {
                    Dequeued::Packet(left) => {
                        sent += 1;
                        let bytes = left.packet.bytes();
                        if told.wash || left.number <= changed {
                            continue;
                        }
                        let mark = quietcore_qdisc::Packet::mark(&left);
                        let key = (bytes[1] >> 2, mark, bytes[12..24].to_vec());
                        let before = last.insert(key, left.number);
                        prop_assert!(before < Some(left.number), "{:?} before {}", before, left.number);
                    }
                    Dequeued::Throttled(until) => prop_assert!(until.0 > now),
                    Dequeued::Empty => prop_assert!(queue.is_empty()),
                },
                Step::Reset => {
                    gone += queue.statistics().qlen;
                    queue.reset(Nanos(now));
                    prop_assert!(queue.is_empty());
                }
                Step::Change(settings) => {
                    queue.change(settings).expect("settings that can be");
                    last.clear();
                    changed = number;
                    told = settings;
                }
            }
            let statistics = queue.statistics();
            prop_assert_eq!(sent, statistics.sent_packets);
            prop_assert_eq!(came, sent + statistics.dropped + statistics.qlen + gone);
            let counted = queue.cake_statistics();
            let backlog: u64 = counted.tins.iter().map(|tin| tin.backlog).sum();
            prop_assert_eq!(backlog, statistics.backlog);
        }
        while !queue.is_empty() {
            match queue.dequeue(Nanos(now)) {
                Dequeued::Packet(_) => sent += 1,
                Dequeued::Throttled(until) => now = until.0,
                Dequeued::Empty => break,
            }
        }
        let statistics = queue.statistics();
        prop_assert_eq!((statistics.qlen, statistics.backlog), (0, 0));
        prop_assert_eq!(came, sent + statistics.dropped + gone);
    }
}

/// Goal: packets take no more memory than they may, the longest queue pays, and the rest of the flows keep
/// theirs. Method: a flood beside two packets of another flow.
#[test]
fn the_longest_queue_makes_room() {
    let settings =
        CakeSettings { bandwidth: Some(1_000), memory_limit: Some(20_000), ..CakeSettings::default() };
    let mut queue = cake(settings);
    for number in 0..2 {
        let _ = queue
            .enqueue(Nanos(SECOND), Made { number, port: 1, bytes: 1_500, ..Made::default() }.datagram());
    }
    for number in 2..100 {
        let made = Made { number, port: 2, bytes: 1_500, ..Made::default() };
        assert!(queue.enqueue(Nanos(SECOND), made.datagram()).is_accepted());
    }
    let statistics = queue.statistics();
    // Each takes 2304 bytes: 8 fit.
    assert_eq!((statistics.qlen, statistics.dropped), (8, 92));
    let mut left = Vec::new();
    let mut now = SECOND;
    while !queue.is_empty() {
        match queue.dequeue(Nanos(now)) {
            Dequeued::Packet(packet) => left.push(packet.number),
            Dequeued::Throttled(until) => now = until.0,
            Dequeued::Empty => break,
        }
    }
    assert!(left.contains(&0) && left.contains(&1) && left.contains(&99), "{left:?}: the oldest ones go");
    let tin = queue.cake_statistics().tins[1];
    assert_eq!((tin.unresponsive_flows, tin.packets), (1, 100));
    // What has no room even alone is told to its sender.
    let mut queue = cake(CakeSettings { memory_limit: Some(100), ..settings });
    assert!(!queue.enqueue(Nanos(SECOND), Made { bytes: 100, ..Made::default() }.datagram()).is_accepted());
}

/// Goal: what cannot be is refused, and says why. Method: both sides of each limit.
#[test]
fn what_cannot_be_is_refused() {
    let framing = |overhead, mpu| CakeSettings {
        framing: CakeFraming { overhead, mpu, ..CakeFraming::default() },
        ..CakeSettings::default()
    };
    let refused = |settings| quietcore_qdisc::Cake::<crate::Datagram, _>::new(settings, || 0).map(drop);
    assert_eq!((refused(framing(-64, 256)), refused(framing(256, 0))), (Ok(()), Ok(())));
    assert_eq!(refused(framing(-65, 0)), Err(CakeError::Overhead(-65)));
    assert_eq!(refused(framing(257, 0)), Err(CakeError::Overhead(257)));
    assert_eq!(refused(framing(0, 257)), Err(CakeError::Mpu(257)));
    let interval = CakeSettings { interval: Nanos(0), ..CakeSettings::default() };
    let target = CakeSettings { target: Nanos(0), ..CakeSettings::default() };
    assert_eq!((refused(interval), refused(target)), (Err(CakeError::NoTime), Err(CakeError::NoTime)));
    for (error, text) in [
        (CakeError::Overhead(257), "overhead of 257 bytes: it is -64 to 256"),
        (CakeError::Mpu(257), "mpu of 257 bytes: it is 0 to 256"),
        (CakeError::NoTime, "an interval or a target of 0: each is at least 1 ns"),
    ] {
        assert_eq!(error.to_string(), text);
    }
}

/// Goal: a piece of a stream is kept whole only where it is told so, and counts as its packets do one by
/// one. Method: three packets of which the last is short, whole and cut, with an overhead and cells.
#[test]
fn a_whole_piece_counts_as_its_packets() {
    let framing = CakeFraming { raw: false, overhead: 10, mpu: 0, cells: CakeCells::Atm };
    let told = CakeSettings { framing, ..CakeSettings::default() };
    let whole = CakeSettings { split_gso: false, ..told };
    assert!(cake(whole).keeps_whole() && !cake(told).keeps_whole());
    let segment = |data: usize| {
        let mut bytes = vec![0; 40 + data];
        bytes[..10].copy_from_slice(&[69, 0, 0, 0, 0, 0, 0, 0, 64, 6]);
        bytes[2..4].copy_from_slice(&(40 + data as u16).to_be_bytes());
        bytes[32] = 5 << 4;
        IpPacket::new(bytes).with_link_header(LINK_HEADER)
    };
    let sent = |packets: Vec<IpPacket>, settings| {
        let mut queue = cake(settings);
        for packet in packets {
            let _ = queue.enqueue(Nanos(SECOND), Datagram { number: 0, packet, priority: 0 });
        }
        while queue.statistics().qlen > 0 {
            let _ = queue.dequeue(Nanos(SECOND));
        }
        let counted = queue.cake_statistics();
        (
            counted.network_size,
            counted.adjusted_size,
            queue.statistics().sent_bytes,
            queue.statistics().sent_packets,
        )
    };
    let segments = Segments { headers: 40, payload: NonZeroU16::new(1_000).expect("not 0"), kind: 1 };
    let piece = segment(2_300).with_segments(segments).expect("there are data");
    let cut = vec![segment(1_000), segment(1_000), segment(300)];
    let expected = ((340, 1_040), (8 * 53, 22 * 53), 2 * 1_054 + 354, 3);
    assert_eq!((sent(vec![piece], whole), sent(cut, told)), (expected, expected));
}
