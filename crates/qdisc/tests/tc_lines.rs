//! Lines of `tc` and the data that they are, for each command, kind and form of option.

use quietcore_core::Nanos;
use quietcore_qdisc::filter::{U32Address, U32Key, U32Selector};
use quietcore_qdisc::tc::{
    BeyondHorizon, BfifoOptions, BitRate, Burst, Bytes, CbqBorrow, CbqClassOptions, CbqOptions, CbqShare,
    ClassCommand, ClassOptions, Classifier, Command, Curve, DistributionName, Ecn, Estimation, FilterCommand,
    FilterHandle, FqOptions, HfscClassOptions, HfscOptions, HtbClassOptions, HtbOptions, LinkRate, Minor,
    MqOptions, NetemOptions, Pacing, Percent, Priomap, Protocol, QdiscCommand, QdiscOptions, ShowCommand,
    SlotTiming, TbfOptions, TcObject, TcParent, TcStyle, TcVerb, TypedChance, TypedDelay, TypedLoss,
    TypedSlot, U32Options, Weights, parse, parse_script,
};
use quietcore_qdisc::{ClassId, LinkLayer};

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;

fn id(major: u16, minor: u16) -> ClassId {
    ClassId::new(major, minor)
}

/// In thousandths of a percent.
fn percent(thousandths: u64) -> Percent {
    Percent::from_billionths(thousandths * 1_000_000).expect("not above 100 %")
}

fn chance(thousandths: u64, correlation: Option<u64>) -> TypedChance {
    TypedChance { percent: percent(thousandths), correlation: correlation.map(percent) }
}

/// `qdisc add dev eth0 root` and these options.
fn options(line: &str) -> QdiscOptions {
    let line = format!("tc qdisc add dev eth0 root {line}");
    match parse(&line) {
        Ok(Command::Qdisc(QdiscCommand { options: Some(options), .. })) => options,
        other => panic!("{line}: {other:?}"),
    }
}

fn class_options(line: &str) -> ClassOptions {
    let line = format!("tc class add dev eth0 parent 1: classid 1:1 {line}");
    match parse(&line) {
        Ok(Command::Class(ClassCommand { options: Some(options), .. })) => options,
        other => panic!("{line}: {other:?}"),
    }
}

fn netem(line: &str) -> NetemOptions {
    match options(&format!("netem {line}")) {
        QdiscOptions::Netem(netem) => *netem,
        other => panic!("{line}: {other:?}"),
    }
}

/// Goal: the script that showed the collapse of the watchdogs, as it was typed. Method: all of its lines.
#[test]
fn the_script_of_the_first_seed() {
    let mut text =
        String::from("tc qd del dev eth1 root 2>/dev/null\n tc qd add dev eth1 root handle 1: mq\n");
    let queues = [(1, 70_000, 6), (2, 70_000, 8), (7, 80_000, 18), (8, 90_000, 20)];
    for (queue, limit, delay) in queues {
        text += &format!(
            " tc qd add dev eth1 parent 1:{queue} est 1sec 4sec netem limit {limit} delay {delay}ms\n"
        );
    }
    let commands = parse_script(&text).expect("the script is valid");
    let command = |verb, place, handle, est, options| {
        Command::Qdisc(QdiscCommand { verb, device: "eth1".into(), place: Some(place), handle, est, options })
    };
    let mq = QdiscOptions::Mq(Box::new(MqOptions {}));
    let mut expected = vec![
        (1, command(TcVerb::Delete, TcParent::Root, None, None, None)),
        (2, command(TcVerb::Add, TcParent::Root, Some(id(1, 0)), None, Some(mq))),
    ];
    for (line, (queue, limit, delay)) in (3..).zip(queues) {
        let est = Some(Estimation { interval: Nanos(S), time_constant: Nanos(4 * S) });
        let delay = TypedDelay { time: Nanos(delay * MS), jitter: None, correlation: None };
        let netem = NetemOptions { limit: Some(limit), delay: Some(delay), ..NetemOptions::default() };
        let netem = Some(QdiscOptions::Netem(Box::new(netem)));
        expected.push((line, command(TcVerb::Add, TcParent::Parent(id(1, queue)), None, est, netem)));
    }
    assert_eq!(commands, expected);
}

/// Goal: everything that may be shortened, and every order of the head. Method: lines and canonical lines.
#[test]
fn canonical_lines() {
    for (line, canonical) in [
        ("qdisc", "qdisc show"),
        ("tc -s -d qd ls", "-s -d qdisc show"),
        ("quietcore tc -j -stat q sh dev eth0", "-s -j qdisc show dev eth0"),
        ("-details class list dev eth0 parent 1:", "-d class show dev eth0 parent 1:"),
        ("cl l dev eth0 classid 1:10", "class show dev eth0 classid 1:10"),
        ("qdisc show dev eth0 root handle 8001", "qdisc show dev eth0 root handle 8001:"),
        ("fil sh dev eth0 parent 1:0", "filter show dev eth0 parent 1:"),
        ("-s q a root dev lo pfifo", "qdisc add dev lo root pfifo"),
        ("q rep handle a: root dev lo pfifo", "qdisc replace dev lo root handle a: pfifo"),
        ("q c dev lo handle A: pfifo limit 0x10", "qdisc change dev lo handle a: pfifo limit 16"),
        ("q d dev lo root", "qdisc del dev lo root"),
        ("qdisc delete dev lo root netem delay 1ms", "qdisc del dev lo root netem delay 1ms"),
        ("qdisc del dev lo root tbf", "qdisc del dev lo root tbf"),
        ("qdisc del dev lo parent 1:2 handle 20:", "qdisc del dev lo parent 1:2 handle 20:"),
        ("qdisc add dev lo root estimator 250ms 1 mq", "qdisc add dev lo root est 250ms 1us mq"),
        ("qdisc add dev dev root mq", "qdisc add dev dev root mq"),
        ("qdisc add dev lo root netem lim 5 dup 1%", "qdisc add dev lo root netem limit 5 duplicate 1%"),
        ("class del dev lo classid 1:ff", "class del dev lo classid 1:ff"),
        ("class change dev lo classid 1:1 htb rate 8kbps", "class change dev lo classid 1:1 htb rate 64kbit"),
        ("class repl dev lo parent 1: htb rate 1", "class replace dev lo parent 1: htb rate 1bit"),
        ("filter del dev lo pref 7", "filter del dev lo prio 7"),
        ("filter del dev lo root proto 0x0806 u32", "filter del dev lo root protocol arp u32"),
        ("qdisc show # all of them", "qdisc show"),
        ("qdisc show 2>/dev/null # quietly", "qdisc show"),
        ("\tqdisc\u{3000}show\r", "qdisc show"),
    ] {
        let command = parse(line).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(command.to_string(), canonical, "{line}");
        assert_eq!(parse(canonical), Ok(command), "{canonical}");
    }
}

/// Goal: what is shown is all there. Method: one with everything.
#[test]
fn show() {
    let expected = ShowCommand {
        object: TcObject::Class,
        device: Some("eth0".into()),
        place: Some(TcParent::Parent(id(1, 0))),
        id: Some(id(1, 0x10)),
        protocol: None,
        prio: None,
        style: TcStyle { statistics: true, ..TcStyle::default() },
        json: true,
        graph: false,
    };
    let line = "-s -j class show dev eth0 parent 1: classid 1:10";
    assert_eq!(parse(line), Ok(Command::Show(expected)));
}

/// Goal: each form of each option of netem. Method: a table.
#[test]
fn netem_options() {
    let delay = |time, jitter, correlation| TypedDelay { time: Nanos(time), jitter, correlation };
    let default = NetemOptions::default;
    let lost = |loss| NetemOptions { loss: Some(loss), ..default() };
    let random = TypedLoss::Random(chance(1_000, None));
    let state = TypedLoss::State { p13: percent(1_000), others: [Some(percent(80_000)), None, None, None] };
    let others = [10_000, 70_000, 100].map(|thousandths| Some(percent(thousandths)));
    let table = [
        ("", default()),
        ("limit 7", NetemOptions { limit: Some(7), ..default() }),
        ("latency 5", NetemOptions { delay: Some(delay(5_000, None, None)), ..default() }),
        (
            "delay 100ms 10ms 25% distribution paretonormal",
            NetemOptions {
                delay: Some(delay(100 * MS, Some(Nanos(10 * MS)), Some(percent(25_000)))),
                distribution: Some(DistributionName::ParetoNormal),
                ..default()
            },
        ),
        ("loss 0.3% 25%", lost(TypedLoss::Random(chance(300, Some(25_000))))),
        ("loss random 1 ecn", NetemOptions { ecn: Some(Ecn::Mark), ..lost(random) }),
        ("loss state 1% 80% limit 3", NetemOptions { limit: Some(3), ..lost(state) }),
        ("loss gemodel 1% 10% 70% 0.1%", lost(TypedLoss::GeModel { p: percent(1_000), others })),
        (
            "corrupt 0.1% duplicate 1% 50%",
            NetemOptions {
                corrupt: Some(chance(100, None)),
                duplicate: Some(chance(1_000, Some(50_000))),
                ..default()
            },
        ),
        (
            "delay 10ms reorder 25% gap 5",
            NetemOptions {
                delay: Some(delay(10 * MS, None, None)),
                reorder: Some(chance(25_000, None)),
                gap: Some(5),
                ..default()
            },
        ),
        ("seed 18446744073709551615", NetemOptions { seed: Some(u64::MAX), ..default() }),
    ];
    for (line, expected) in table {
        assert_eq!(netem(line), expected, "{line}");
    }
}

/// Goal: rates and slots of netem, with and without what may be left out. Method: a table.
#[test]
fn netem_rates_and_slots() {
    let rate =
        |overhead, cell, cell_overhead| LinkRate { rate: BitRate(5_000), overhead, cell, cell_overhead };
    for (line, expected) in [
        ("rate 5kbit", rate(None, None, None)),
        ("rate 5kbit 20 100 5", rate(Some(20), Some(100), Some(5))),
        ("rate 5kbit -14 0 -3", rate(Some(-14), Some(0), Some(-3))),
    ] {
        assert_eq!(netem(line).rate, Some(expected), "{line}");
    }
    let between = |min, max| SlotTiming::Between { min: Nanos(min), max };
    let normal = DistributionName::Normal;
    let distributed =
        SlotTiming::Distributed { distribution: normal, delay: Nanos(2 * MS), jitter: Nanos(100_000) };
    for (line, timing, packets, bytes) in [
        ("slot 800us", between(800_000, None), None, None),
        ("slot 1ms 2ms packets 32", between(MS, Some(Nanos(2 * MS))), Some(32), None),
        ("slot 1ms bytes 64k packets 1", between(MS, None), Some(1), Some(Bytes(65_536))),
        ("slot distribution normal 2ms 100us", distributed, None, None),
    ] {
        assert_eq!(netem(line).slot, Some(TypedSlot { timing, packets, bytes }), "{line}");
    }
    for (word, expected) in [("experimental", "experimental"), ("./a.dist", "./a.dist")] {
        let named = netem(&format!("delay 5ms 1ms distribution {word}")).distribution;
        assert_eq!(named, Some(DistributionName::Table(expected.into())));
    }
    let both = netem("delay 5ms 1ms slot 1ms distribution pareto");
    let (slot, distribution) = (both.slot.map(|slot| slot.timing), both.distribution);
    assert_eq!((slot, distribution), (Some(between(MS, None)), Some(DistributionName::Pareto)));
}

/// Goal: the other disciplines without classes. Method: lines with all of their options.
#[test]
fn plain_options() {
    assert_eq!(options("pfifo"), QdiscOptions::Pfifo(Box::default()));
    assert_eq!(
        options("bfifo limit 10kb"),
        QdiscOptions::Bfifo(Box::new(BfifoOptions { limit: Some(Bytes(10_240)) }))
    );
    let tbf = TbfOptions {
        rate: Some(BitRate(500_000)),
        burst: Some(Burst { size: Bytes(5_120), cell: None }),
        limit: None,
        latency: Some(Nanos(70 * MS)),
        mpu: Some(Bytes(64)),
        peakrate: Some(BitRate(1_000_000)),
        mtu: Some(Burst { size: Bytes(1_540), cell: Some(8) }),
        overhead: Some(4),
        linklayer: Some(LinkLayer::Atm),
    };
    let line = "tbf rate 0.5mbit buffer 5kb latency 70ms peakrate 1mbit minburst 1540/8 mpu 64 overhead 4 \
                linklayer adsl";
    assert_eq!(options(line), QdiscOptions::Tbf(Box::new(tbf)));
    let fq = FqOptions {
        limit: Some(10_000),
        flow_limit: Some(100),
        quantum: Some(Bytes(3_028)),
        initial_quantum: Some(Bytes(15_140)),
        maxrate: Some(BitRate(8_000_000_000)),
        buckets: Some(1_024),
        orphan_mask: Some(1_023),
        pacing: Some(Pacing::Off),
        refill_delay: Some(Nanos(40 * MS)),
        low_rate_threshold: Some(BitRate(550_000)),
        ce_threshold: Some(Nanos(5 * MS)),
        timer_slack: Some(Nanos(10_000)),
        horizon: Some(Nanos(10 * S)),
        beyond: Some(BeyondHorizon::Cap),
        bands: Some(3),
        priomap: Some(Priomap([1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1])),
        weights: Some(Weights([589_824, 196_608, 65_536])),
    };
    let line = "fq limit 10000 flow_limit 100 quantum 3028b initial_quantum 15140 maxrate 1gbps buckets 1024 \
                orphan_mask 1023 nopacing refill_delay 40ms low_rate_threshold 550Kbit ce_threshold 5ms \
                timer_slack 10us horizon 10s horizon_cap bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1 \
                weights 589824 196608 65536";
    assert_eq!(options(line), QdiscOptions::Fq(Box::new(fq)));
}

/// Goal: `htb` and `cbq`, and their classes. Method: lines with all of their options.
#[test]
fn classful_options() {
    let htb = HtbOptions { default: Some(Minor(0x30)), r2q: Some(10), direct_qlen: Some(1_000) };
    assert_eq!(options("htb default 30 r2q 10 direct_qlen 1000"), QdiscOptions::Htb(Box::new(htb)));
    let burst = |size| Some(Burst { size: Bytes(size), cell: None });
    let class = HtbClassOptions {
        rate: Some(BitRate(1_000_000)),
        ceil: Some(BitRate(2_000_000)),
        burst: burst(15_360),
        cburst: burst(1_600),
        prio: Some(1),
        quantum: Some(Bytes(1_514)),
        mtu: Some(Bytes(1_600)),
        mpu: Some(Bytes(0)),
        overhead: Some(14),
        linklayer: Some(LinkLayer::Ethernet),
    };
    let line = "htb rate 1mbit ceil 2mbit burst 15k cburst 1600b prio 1 quantum 1514 mtu 1600 mpu 0 \
                overhead 14 linklayer ethernet";
    assert_eq!(class_options(line), ClassOptions::Htb(Box::new(class)));
    let (bandwidth, avpkt) = (Some(BitRate(100_000_000)), Some(Bytes(1_000)));
    let cbq = CbqOptions {
        bandwidth,
        avpkt,
        allot: Some(Bytes(1_514)),
        cell: Some(Bytes(8)),
        mpu: Some(Bytes(64)),
        ewma: Some(5),
    };
    let line = "cbq bandwidth 100mbit avpkt 1000 allot 1514 cell 8 mpu 64 ewma 5";
    assert_eq!(options(line), QdiscOptions::Cbq(Box::new(cbq)));
    let class = CbqClassOptions {
        bandwidth,
        avpkt,
        rate: Some(BitRate(6_000_000)),
        allot: Some(Bytes(1_514)),
        prio: Some(8),
        weight: Some(BitRate(600_000)),
        maxburst: Some(20),
        minburst: Some(2),
        borrow: Some(CbqBorrow::Bounded),
        share: Some(CbqShare::Isolated),
        ..CbqClassOptions::default()
    };
    let line = "cbq bandwidth 100Mbit rate 6Mbit weight 0.6Mbit prio 8 allot 1514 maxburst 20 minburst 2 \
                avpkt 1000 bounded isolated";
    assert_eq!(class_options(line), ClassOptions::Cbq(Box::new(class)));
}

/// Goal: `hfsc` and every form of a curve. Method: a table.
#[test]
fn curves() {
    assert_eq!(
        options("hfsc default 10"),
        QdiscOptions::Hfsc(Box::new(HfscOptions { default: Some(Minor(16)) }))
    );
    let slopes = |m1, d, m2| Curve::Slopes { m1, d, m2: BitRate(m2) };
    let work = |umax, dmax, rate| Curve::Work { umax, dmax, rate: BitRate(rate) };
    for (text, expected) in [
        ("m2 1mbit", slopes(None, None, 1_000_000)),
        ("d 10ms m2 1mbit", slopes(None, Some(Nanos(10 * MS)), 1_000_000)),
        ("m1 2mbit d 10ms m2 1mbit", slopes(Some(BitRate(2_000_000)), Some(Nanos(10 * MS)), 1_000_000)),
        ("rate 1mbit", work(None, None, 1_000_000)),
        ("dmax 10ms rate 1mbit", work(None, Some(Nanos(10 * MS)), 1_000_000)),
        ("umax 1500b dmax 10ms rate 1mbit", work(Some(Bytes(1_500)), Some(Nanos(10 * MS)), 1_000_000)),
    ] {
        let class = class_options(&format!("hfsc ls {text} rt {text} ul {text}"));
        let [rt, ls, ul] = [Some(expected); 3];
        assert_eq!(class, ClassOptions::Hfsc(Box::new(HfscClassOptions { rt, ls, ul, sc: None })), "{text}");
        let class = class_options(&format!("hfsc sc {text}"));
        let sc = HfscClassOptions { sc: Some(expected), ..HfscClassOptions::default() };
        assert_eq!(class, ClassOptions::Hfsc(Box::new(sc)), "{text}");
    }
}

/// Goal: a filter is read with all that names it, and written as it can be read again. Method: a line of u32
/// with all its parts; a line of each other kind, as written back.
#[test]
fn filters() {
    let line = "tc filter replace dev eth0 protocol ip parent 1: prio 1 handle 800::5 u32 match ip dport 80 0xffff \
                match ip sport 0x50 ff00 classid 1:1";
    let key = U32Key { value: 0x50, mask: 0xff00_ffff, offset: 20, next_header: false };
    let options = U32Options {
        selector: Some(U32Selector { keys: vec![key], ..U32Selector::default() }),
        flow: Some(id(1, 1)),
        ..U32Options::default()
    };
    let expected = FilterCommand {
        verb: TcVerb::Replace,
        device: "eth0".into(),
        place: Some(TcParent::Parent(id(1, 0))),
        protocol: Some(Protocol::IP),
        prio: Some(1),
        handle: Some(FilterHandle::Rule(U32Address { table: 0x800, bucket: 0, rule: 5 })),
        classifier: Some(Classifier::U32(options)),
    };
    assert_eq!(parse(line), Ok(Command::Filter(expected)));
    for (typed, written) in [
        ("matchall skip_hw classid 1:1", "matchall skip_hw flowid 1:1"),
        ("fw classid :10", "fw flowid :10"),
        (
            "flower ip_proto tcp dst_port 80-90 src_ip 10.0.0.0/8",
            "flower ip_proto 6 src_ip 10.0.0.0/8 dst_port 80-90",
        ),
        ("flower ip_proto 1 type 8 ip_flags nofrag", "flower ip_proto 1 type 8 ip_flags nofrag"),
        (
            "basic match 'cmp(u16 at 2 layer transport eq 80)' and not 'meta(nf_mark mask 7 gt 3)' flowid 1:1",
            "basic match cmp(u16 at 2 layer 2 eq 80) and not meta(nf_mark mask 0x00000007 gt 3) flowid 1:1",
        ),
        (
            "basic match (u32(u8 6 0xff at 9) or nbyte(\"a b\" at 12 layer 1)) flowid 1:1",
            "basic match ( u32(u32 0x60000 0xff0000 at 8) or nbyte(\"a b\" at 12 layer 1) ) flowid 1:1",
        ),
        ("u32 divisor 16", "u32 divisor 16"),
        ("u32 ht 2: sample u32 0x1234 0xffff at 0 match u32 0 0", "u32 ht 2:34 match u32 0x0 0x0 at 0"),
    ] {
        let head = "filter add dev lo protocol ip";
        let shown = parse(&format!("{head} {typed}")).map(|filter| filter.to_string());
        assert_eq!(shown, Ok(format!("{head} {written}")), "{typed}");
        assert_eq!(parse(&format!("{head} {written}")).map(|filter| filter.to_string()), shown, "{typed}");
    }
}
