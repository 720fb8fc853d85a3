//! Packets that stand for several of a stream: who takes them, and what they count.

use quietcore_core::Nanos;
use quietcore_qdisc::checksum::OwedChecksum;
use quietcore_qdisc::{
    Cbq, CbqSettings, Chance, ClassId, Fifo, FifoLimit, Fq, FqSettings, Hfsc, Htb, HtbClass, HtbSettings,
    InnerQdisc, IpPacket, Netem, NetemDelay, NetemLoss, NetemRate, NetemSettings, Noqueue, Packet,
    PacketSize, Prio, PrioSettings, Probability, Qdisc, Rate, Segments, Statistics, Tbf, TbfLimit,
    TbfSettings,
};
use std::num::NonZeroU16;

/// Headers of IP and TCP, and of the link.
const HEADERS: u16 = 52;
const LINK: u16 = 14;
const SEGMENTS: Segments =
    Segments { headers: HEADERS, payload: NonZeroU16::new(1000).expect("not 0"), kind: 1 };

/// A piece of a stream of so many bytes of data, to be cut into packets of 1000.
fn whole(data: usize) -> IpPacket {
    let mut bytes = vec![0; usize::from(HEADERS) + data];
    (bytes[0], bytes[9], bytes[32]) = (0x45, 6, 0x80);
    let owed = OwedChecksum { start: 20, offset: 16 };
    let packet = IpPacket::new(bytes).with_owed_checksum(owed).expect("it fits");
    let packet = packet.with_segments(SEGMENTS);
    packet.expect("it has data").with_link_header(LINK)
}

fn rate(bytes: u64) -> Rate {
    Rate::bytes_per_second(bytes).expect("not 0")
}

fn fifo(packets: u32) -> InnerQdisc<IpPacket> {
    InnerQdisc::new(Fifo::new(FifoLimit::Packets(packets)))
}

fn netem(settings: NetemSettings) -> Netem<IpPacket, impl FnMut() -> u32 + Send + 'static> {
    Netem::new(settings, || 0, Nanos(0)).expect("settings that can be")
}

fn delay() -> NetemSettings {
    let latency = Nanos::from_micros(1_000);
    NetemSettings { delay: NetemDelay { latency, ..NetemDelay::default() }, ..NetemSettings::default() }
}

fn tbf(settings: TbfSettings) -> Tbf<IpPacket> {
    Tbf::new(settings, Nanos(0)).expect("settings that can be")
}

fn htb(class: HtbClass) -> Htb<IpPacket> {
    let mut htb = Htb::new(HtbSettings { default_class: 1, ..HtbSettings::default() });
    htb.add_class(None, ClassId::new(1, 1), class).expect("it is the first");
    htb
}

fn wide_tbf() -> TbfSettings {
    TbfSettings::new(rate(1 << 30), 80 << 10, TbfLimit::Bytes(1 << 20))
}

fn wide_htb() -> HtbClass {
    HtbClass { burst: Some(80 << 10), cburst: Some(80 << 10), ..HtbClass::new(rate(1 << 30)) }
}

/// Goal: it counts as what will be cut out of it, each packet with its headers and those of the link.
/// Method: data for exactly two packets, a byte more, and one that is not to be cut; the link told first,
/// last, and twice; no data.
#[test]
fn it_counts_as_what_will_be_cut_out_of_it() {
    assert_eq!(whole(2_000).size(), PacketSize { bytes: 2_000 + 2 * 66, packets: 2 });
    assert_eq!(whole(2_001).size(), PacketSize { bytes: 2_001 + 3 * 66, packets: 3 });
    let plain = IpPacket::new(whole(2_001).into_bytes()).with_link_header(LINK);
    assert_eq!(plain.size(), PacketSize { bytes: 2_001 + 66, packets: 1 });
    assert_eq!((whole(2_001).size().each(), plain.size().each()), (733, 2_067));
    let [early, late] = [LINK, 4].map(|link| IpPacket::new(whole(2_001).into_bytes()).with_link_header(link));
    let [early, late] = [early, late].map(|packet| packet.with_segments(SEGMENTS).expect("it has data"));
    assert_eq!((early.size(), late.with_link_header(LINK).size()), (whole(2_001).size(), early.size()));
    let headers = IpPacket::new(vec![0x45; usize::from(HEADERS)]);
    assert_eq!(headers.with_segments(SEGMENTS), None);
}

/// Goal: a bit of it cannot be damaged, for what cuts it would make the checksum of the damage right.
#[test]
fn it_is_not_damaged() {
    let mut packet = whole(2_000);
    packet.corrupt(100, 1);
    assert_eq!(packet, whole(2_000));
}

/// Goal: queues take them whole if they have room for some. Method: the limits at which they begin to.
#[test]
fn long_queues_keep_them_whole() {
    let keeps = |limit| Fifo::<IpPacket>::new(limit).keeps_whole();
    assert!(keeps(FifoLimit::Packets(256)) && !keeps(FifoLimit::Packets(255)));
    assert!(keeps(FifoLimit::Bytes(320 << 10)) && !keeps(FifoLimit::Bytes((320 << 10) - 1)));
}

/// Goal: netem takes them whole as long as it only delays them. Method: each thing that it draws or paces,
/// alone; a limit that is too low; a discipline inside that does not.
#[test]
fn netem_keeps_them_whole_where_it_only_delays() {
    let chance =
        || Chance { probability: Probability::percent(1.0).expect("it is one"), ..Chance::default() };
    assert!(netem(delay()).keeps_whole() && netem(NetemSettings::default()).keeps_whole());
    let jitter = NetemDelay { jitter: Nanos(1), ..delay().delay };
    let paced = NetemRate { bytes_per_second: 1 << 40, ..NetemRate::default() };
    for (number, settings) in [
        NetemSettings { delay: jitter, ..delay() },
        NetemSettings { loss: NetemLoss::Random(chance()), ..delay() },
        NetemSettings { duplicate: chance(), ..delay() },
        NetemSettings { corrupt: chance(), ..delay() },
        NetemSettings { reorder: chance(), gap: 1, ..delay() },
        NetemSettings { gap: 5, ..delay() },
        NetemSettings { rate: paced, ..delay() },
        NetemSettings { limit: 255, ..delay() },
    ]
    .into_iter()
    .enumerate()
    {
        assert!(!netem(settings).keeps_whole(), "setting {number}");
    }
    assert!(netem(NetemSettings { limit: 256, ..delay() }).with_inner(fifo(1_000)).keeps_whole());
    assert!(!netem(delay()).with_inner(fifo(10)).keeps_whole());
}

/// Goal: shapers take them whole if every bucket holds the longest and no packet counts more than its bytes.
/// Method: one thing at a time that is otherwise; what is inside.
#[test]
fn shapers_keep_them_whole_where_bursts_are_long() {
    assert!(tbf(wide_tbf()).keeps_whole());
    assert!(!tbf(TbfSettings::new(rate(1 << 30), (80 << 10) - 1, TbfLimit::Bytes(1 << 20))).keeps_whole());
    assert!(
        !tbf(TbfSettings::new(rate(1 << 30).overhead(4), 80 << 10, TbfLimit::Bytes(1 << 20))).keeps_whole()
    );
    assert!(!tbf(TbfSettings::new(rate(1 << 30), 80 << 10, TbfLimit::Bytes(100_000))).keeps_whole());
    assert!(!tbf(wide_tbf().peak(rate(1 << 31), 1_600)).keeps_whole());
    assert!(tbf(wide_tbf().peak(rate(1 << 31), 80 << 10)).keeps_whole());
    assert!(htb(wide_htb()).keeps_whole());
    assert!(!htb(HtbClass { burst: None, ..wide_htb() }).keeps_whole());
    assert!(!htb(HtbClass { cburst: Some((80 << 10) - 1), ..wide_htb() }).keeps_whole());
    assert!(!htb(HtbClass { rate: rate(1 << 30).mpu(64), ..wide_htb() }).keeps_whole());
    assert!(!htb(HtbClass { ceil: rate(1 << 30).overhead(1), ..wide_htb() }).keeps_whole());
    let mut tree = htb(wide_htb());
    tree.add_class(None, ClassId::new(1, 2), wide_htb()).expect("it is new");
    tree.set_inner(ClassId::new(1, 2), fifo(10)).expect("it is a leaf");
    assert!(!tree.keeps_whole(), "one leaf of two does not");
    assert!(!Htb::<IpPacket>::new(HtbSettings { direct_qlen: 9, ..HtbSettings::default() }).keeps_whole());
}

/// Goal: `prio` does as its bands do; the other disciplines choose or pace packet by packet. Method: as told.
#[test]
fn others_keep_them_whole_as_those_inside_do() {
    assert!(Prio::<IpPacket>::new(PrioSettings::default()).expect("defaults").keeps_whole());
    assert!(!Fq::<IpPacket>::new(FqSettings::default()).expect("defaults").keeps_whole());
    assert!(!Hfsc::<IpPacket>::new().keeps_whole());
    let cbq = CbqSettings::new(rate(1 << 30));
    assert!(!Cbq::<IpPacket>::new(cbq).keeps_whole());
    assert!(!InnerQdisc::<IpPacket>::new(Hfsc::new()).keeps_whole());
    assert!(Noqueue::<IpPacket>::new().keeps_whole());
}

/// Goal: limits are of packets of the link, and what finds no room is counted as those. Method: a `pfifo` and
/// a netem of 256 packets, which 51 of 5 packets fit into, and one of one packet more.
#[test]
fn limits_are_of_packets_of_the_link() {
    let queues: [Box<dyn Qdisc<IpPacket>>; 2] = [
        Box::new(Fifo::new(FifoLimit::Packets(256))),
        Box::new(netem(NetemSettings { limit: 256, ..delay() })),
    ];
    for mut queue in queues {
        for number in 0..51 {
            assert!(queue.enqueue(Nanos(0), whole(4_500)).is_accepted(), "{}, {number}", queue.kind());
        }
        assert!(!queue.enqueue(Nanos(0), whole(4_500)).is_accepted());
        assert!(queue.enqueue(Nanos(0), whole(900)).is_accepted(), "for one there is room");
        assert!(!queue.enqueue(Nanos(0), whole(900)).is_accepted());
        let statistics = queue.statistics();
        assert_eq!((statistics.qlen, statistics.dropped), (256, 6), "{}", queue.kind());
        let later = Nanos::from_micros(1_000);
        for _ in 0..2 {
            assert_eq!(queue.dequeue(later).packet(), Some(whole(4_500)));
        }
        assert!(queue.enqueue(later, whole(9_500)).is_accepted(), "what left has made room");
        queue.reset(later);
        for _ in 0..51 {
            assert!(queue.enqueue(later, whole(4_500)).is_accepted(), "all of it is free again");
        }
    }
}

/// Goal: every discipline counts the packets and bytes that it stands for, queued and sent, also those that
/// are given one though they take none, as their settings changed. Method: two pieces, five packets, of which
/// the first one leaves, through each of them; `tbf` also with netem inside, which it looks into.
#[test]
fn all_count_what_it_stands_for() {
    let inside = netem(NetemSettings::default());
    let tree = tbf(wide_tbf());
    let looks = tbf(wide_tbf()).with_inner(InnerQdisc::new(inside));
    let queues: [Box<dyn Qdisc<IpPacket>>; 8] = [
        Box::new(Fifo::new(FifoLimit::Packets(1_000))),
        Box::new(netem(NetemSettings::default())),
        Box::new(netem(NetemSettings::default()).with_inner(fifo(1_000))),
        Box::new(tree),
        Box::new(looks),
        Box::new(htb(wide_htb())),
        Box::new(Prio::new(PrioSettings::default()).expect("defaults")),
        Box::new(Fq::new(FqSettings::default()).expect("defaults")),
    ];
    let (first, second) = (whole(2_500), whole(1_500));
    for mut queue in queues {
        let now = Nanos(1_000);
        for packet in [&first, &second] {
            assert!(queue.enqueue(now, packet.clone()).is_accepted());
        }
        let statistics = queue.statistics();
        let bytes = u64::from(first.len() + second.len());
        assert_eq!((statistics.qlen, statistics.backlog), (5, bytes), "{}", queue.kind());
        assert_eq!(queue.dequeue(now).packet(), Some(first.clone()));
        let mut expected = Statistics::default();
        (expected.sent_packets, expected.sent_bytes) = (3, u64::from(first.len()));
        (expected.qlen, expected.backlog) = (2, u64::from(second.len()));
        assert_eq!(queue.statistics(), expected, "{}", queue.kind());
        queue.reset(now);
        assert_eq!(queue.statistics().qlen, 0);
    }
}

/// Goal: a rate is of the bytes it stands for, and a class counts its packets. Method: a bucket of `htb` that
/// four pieces of 20 packets empty, as 80 packets of the link would: the next one waits for what they owe.
#[test]
fn rates_are_of_the_bytes_it_stands_for() {
    let mut htb = htb(HtbClass { rate: rate(1_000_000), ceil: rate(1_000_000), ..wide_htb() });
    for _ in 0..5 {
        assert!(htb.enqueue(Nanos(0), whole(20_000)).is_accepted());
    }
    let each = u64::from(whole(20_000).len());
    assert_eq!(each, 20_000 + 20 * 66);
    for _ in 0..4 {
        assert!(htb.dequeue(Nanos(0)).packet().is_some());
    }
    let debt = 4 * each - (80 << 10);
    let wanted = quietcore_qdisc::Dequeued::Throttled(Nanos(debt * 1_000));
    assert_eq!(htb.dequeue(Nanos(0)), wanted);
    let class = htb.class(ClassId::new(1, 1)).expect("it is there");
    assert_eq!((class.queue.sent_packets, class.lends, class.giants), (80, 80, 0));
}
