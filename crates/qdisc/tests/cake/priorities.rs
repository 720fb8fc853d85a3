//! Tins: which goes first, what names one, and what washes the name off.

use crate::{Datagram, Made, SECOND, cake, run};
use quietcore_core::Nanos;
use quietcore_qdisc::{
    CakeIsolation, CakeSettings, CakeTins, ClassId, Classful as _, IpPacket, Packet as _, Qdisc,
};

fn told(tins: CakeTins) -> CakeSettings {
    CakeSettings {
        bandwidth: Some(1_000_000),
        interval: Nanos(1_000 * SECOND),
        target: Nanos(50 * SECOND),
        tins,
        ..CakeSettings::default()
    }
}

/// Bytes of each traffic class that leave while all have more.
fn shares(settings: CakeSettings, classes: &[u8]) -> Vec<u64> {
    let mut queue = cake(settings);
    for number in 0..2_000 {
        for class in classes {
            let made = Made {
                number,
                port: u16::from(*class),
                bytes: 1_000,
                traffic_class: *class,
                ..Made::default()
            };
            let _ = queue.enqueue(Nanos(SECOND), made.datagram());
        }
    }
    let left = if settings.bandwidth.is_some() {
        run(&mut queue, SECOND, 3 * SECOND).into_iter().map(|(_, left)| left).collect()
    } else {
        let taken = |_| queue.dequeue(Nanos(SECOND)).packet().expect("there is more");
        (0..2_000).map(taken).collect::<Vec<_>>()
    };
    let count = |class: &u8| left.iter().filter(|left| left.packet.bytes()[1] == *class).count() as u64;
    classes.iter().map(count).collect()
}

/// Goal: a tin that has more than its threshold leaves the rest to the others, and bulk has a sixteenth
/// when all are full. Method: each tin of `diffserv4` full; packets of 2 seconds at 1 MB/s, beside its
/// thresholds.
#[test]
fn thresholds_share_the_rate() {
    // Best effort, CS1, AF41, EF.
    let found = shares(told(CakeTins::Diffserv4), &[0, 0x20, 0x88, 0xb8]);
    // Voice has a quarter, video a half; of the last quarter bulk has its sixteenth and best effort the rest.
    for (found, expected) in found.iter().zip([375_u64, 125, 1_000, 500]) {
        assert!(found.abs_diff(expected) <= 12, "{found} of {expected}");
    }
}

/// Goal: without a rate tins share by their quanta. Method: the same, 2000 packets, quanta of 16, 1, 8 and 4.
#[test]
fn quanta_share_without_a_rate() {
    let settings = CakeSettings { bandwidth: None, ..told(CakeTins::Diffserv4) };
    let found = shares(settings, &[0, 0x20, 0x88, 0xb8]);
    for (found, expected) in found.iter().zip([1_103_u64, 69, 552, 276]) {
        assert!(found.abs_diff(expected) <= 12, "{found} of {expected}");
    }
}

/// The tin, as it is shown, that counts a packet.
fn tin_of(settings: CakeSettings, packet: Datagram) -> usize {
    let mut queue = cake(settings);
    let _ = queue.enqueue(Nanos(SECOND), packet);
    queue.cake_statistics().tins.iter().position(|tin| tin.packets == 1).expect("one has it")
}

/// Goal: a mark names a tin, and else a priority does, in the order in which they are shown; what names
/// none is of its code point's. Method: marks below a mask that begins in the middle, priorities of this
/// and of another discipline.
#[test]
fn marks_and_priorities_name_tins() {
    let settings = CakeSettings { major: 5, fwmark: 0xf0, ..told(CakeTins::Diffserv4) };
    let made = Made { bytes: 100, traffic_class: 0xb8, ..Made::default() };
    for (mark, tin) in [(0x10, 0), (0x20, 1), (0x43, 3), (0x50, 3), (0x0f, 3), (0x100, 3)] {
        assert_eq!(tin_of(settings, Made { mark, ..made }.datagram()), tin, "mark {mark:#x}");
    }
    for (priority, tin) in [((5, 1), 0), ((5, 2), 1), ((5, 5), 3), ((5, 0), 3), ((6, 1), 3)] {
        let priority = ClassId::new(priority.0, priority.1).0;
        let packet = Datagram { priority, ..made.datagram() };
        assert_eq!(tin_of(settings, packet), tin, "priority {priority:#x}");
    }
    let both = Datagram { priority: ClassId::new(5, 1).0, ..Made { mark: 0x30, ..made }.datagram() };
    assert_eq!(tin_of(settings, both), 2, "the mark goes before");
    let one = CakeSettings { tins: CakeTins::BestEffort, ..settings };
    assert_eq!(tin_of(one, Made { mark: 0x20, ..made }.datagram()), 0);
}

/// Goal: packets are washed once their tin is known, and keep their ECN. Method: a packet of IPv4, whose
/// checksum has to be right, and one of IPv6.
#[test]
fn wash_clears_the_code_point() {
    let settings = CakeSettings { wash: true, ..told(CakeTins::Diffserv4) };
    let made = Made { bytes: 100, traffic_class: 0xba, ..Made::default() };
    assert_eq!(tin_of(settings, made.datagram()), 3);
    let left = |settings: CakeSettings, packet: Datagram| {
        let mut queue = cake(settings);
        let _ = queue.enqueue(Nanos(SECOND), packet);
        queue.dequeue(Nanos(SECOND)).packet().expect("it leaves").packet
    };
    let mut sound = made.datagram();
    let mut bytes = sound.packet.bytes().to_vec();
    let checksum = !quietcore_qdisc::checksum::folded(quietcore_qdisc::checksum::sum(&bytes[..20]));
    bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
    sound.packet = IpPacket::new(bytes);
    let washed = left(settings, sound);
    assert_eq!(washed.traffic_class(), Some(2));
    let sum = quietcore_qdisc::checksum::sum(&washed.bytes()[..20]);
    assert_eq!(quietcore_qdisc::checksum::folded(sum), 0xffff, "the checksum follows");
    let mut v6 = vec![0_u8; 60];
    (v6[0], v6[1], v6[5]) = (0x6b, 0xa7, 20);
    let packet = Datagram { number: 0, packet: IpPacket::new(v6), priority: 0 };
    let washed = left(settings, packet);
    assert_eq!((washed.bytes()[0], washed.bytes()[1]), (0x60, 0x27), "the flow label stays");
    let kept = left(CakeSettings { wash: false, ..settings }, made.datagram());
    assert_eq!(kept.traffic_class(), Some(0xba));
}

/// Goal: a filter names a queue, whatever flow a packet is of, and a host. Method: two flows that it sends
/// to the queue 7, then one that it leaves alone; hosts by the shares of flows that it says are of one
/// host.
#[test]
fn filters_name_queues_and_hosts() {
    let mut queue = cake(told(CakeTins::BestEffort));
    for port in [1, 2] {
        let made = Made { port, bytes: 1_000, ..Made::default() };
        let _ = queue.enqueue_filtered(Nanos(SECOND), ClassId::new(0, 7), made.datagram());
    }
    assert_eq!(queue.classes(), [ClassId::new(1, 7)]);
    let made = Made { port: 3, bytes: 1_000, ..Made::default() };
    let _ = queue.enqueue_filtered(Nanos(SECOND), ClassId::new(0, 1_025), made.datagram());
    assert_eq!(queue.classes().len(), 2, "there is no such queue");

    let settings = CakeSettings {
        isolation: CakeIsolation::DualSourceHost,
        memory_limit: Some(u32::MAX),
        ..told(CakeTins::BestEffort)
    };
    let mut queue = cake(settings);
    for number in 0..1_200 {
        for (port, host) in [(1, 10), (2, 11), (3, 11)] {
            let made = Made { number: port, port: port as u16, bytes: 1_000, ..Made::default() };
            let _ = queue.enqueue_filtered(Nanos(SECOND + number), ClassId::new(host, 0), made.datagram());
        }
    }
    let left = run(&mut queue, SECOND + 1_200, 2 * SECOND);
    let count = |flow| left.iter().filter(|(_, left)| left.number == flow).count();
    for (flow, expected) in [(1, 500_usize), (2, 250), (3, 250)] {
        assert!(count(flow).abs_diff(expected) < 10, "{flow}: {} of {expected}", count(flow));
    }
}

/// Goal: tins that are no longer there drop what they hold; what is in others stays. Method: from four to
/// one.
#[test]
fn tins_come_and_go() {
    let mut queue = cake(told(CakeTins::Diffserv4));
    for (number, traffic_class) in [(0, 0), (1, 0xb8), (2, 0x88), (3, 0)] {
        let made = Made { number, port: 1, bytes: 500, traffic_class, ..Made::default() };
        let _ = queue.enqueue(Nanos(SECOND), made.datagram());
    }
    queue.change(told(CakeTins::BestEffort)).expect("settings that can be");
    let statistics = queue.statistics();
    assert_eq!((statistics.qlen, statistics.backlog, statistics.dropped), (2, 1_000, 2));
    let left = run(&mut queue, SECOND, u64::MAX);
    assert_eq!(left.iter().map(|(_, left)| left.number).collect::<Vec<_>>(), [0, 3]);
    assert!(queue.is_empty() && queue.cake_statistics().tins.len() == 1);
}
