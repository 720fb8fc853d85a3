//! `cake` against recordings of a real kernel: the same packets are dropped and marked, and leave at the
//! same time.

use crate::{Datagram, Made, SECOND, cake, numbers, run};
use quietcore_core::Nanos;
use quietcore_qdisc::{
    Cake, CakeCells, CakeFraming, CakeIsolation, CakeSettings, CakeTins, Classful as _, Qdisc as _,
};

const RECORDED: &str = include_str!("../recorded/cake-linux-6.12.txt");
/// Nanoseconds from the program's send to the discipline, about.
const WAY: u64 = 7_000;
/// Nanoseconds that the moments of a packet may differ by.
const APART: u64 = 60_000;

/// The tin of each code point, as the kernel counted a packet of each.
const DIFFSERV3: &str = "1011211101111111111111111111111111111111111121212111111121111111";
const DIFFSERV4: &str = "1011211101111111212121212121212131212121311131313111111131111111";
const DIFFSERV8: &str = "2012422212121212524242423232323262323232622262627222222272222222";
const PRECEDENCE: &str = "0000000011111111222222223333333344444444555555556666666677777777";

/// A packet: when it was sent, in nanoseconds, and how much later it left, in microseconds, marked or not;
/// nothing if it was dropped.
struct Seen {
    sent: u64,
    made: Made,
    left: Option<(u64, bool)>,
}

fn section(name: &str) -> Vec<Seen> {
    let begin = RECORDED.find(&format!("= {name}\n")).expect("it is recorded");
    let lines = RECORDED[begin..].lines().skip(1).take_while(|line| !line.starts_with('='));
    let mut sent = 0;
    let packet = |(number, word): (usize, &str)| {
        let parts: Vec<&str> = word.split('/').collect();
        let [gap, bytes, flow, left] = parts[..] else { panic!("{word}: four parts") };
        let count = |word: &str| word.parse::<u64>().expect("a number");
        sent += count(gap);
        let made = Made {
            number: number as u32,
            port: 5_000 + count(flow) as u16,
            bytes: count(bytes.trim_end_matches('e')) as u32,
            traffic_class: if bytes.ends_with('e') { 2 } else { 0 },
            ..Made::default()
        };
        let left = (left != "-").then(|| (count(left.trim_end_matches('c')), left.ends_with('c')));
        Seen { sent, made, left }
    };
    lines.flat_map(str::split_whitespace).enumerate().map(packet).collect()
}

/// Packets that have another fate here than in the recording, and how many were dropped or marked there; of
/// the first ones, as what came later than the recording has it may have left before the others.
fn differences(name: &str, settings: CakeSettings, first: usize) -> (Vec<u32>, usize) {
    let (seen, mut queue) = (section(name), cake(settings));
    let seen_first = || seen.iter().take(first);
    let mut fates: Vec<Option<(u64, bool)>> = vec![None; seen.len()];
    for (at, packet) in seen.iter().enumerate() {
        let now = SECOND + packet.sent + WAY;
        let _ = queue.enqueue(Nanos(now), packet.made.datagram());
        let until = seen.get(at + 1).map_or(u64::MAX, |next| SECOND + next.sent + WAY - 1);
        for (left, Datagram { number, packet, .. }) in run(&mut queue, now, until) {
            let is_marked = packet.bytes()[1] & 3 == 3;
            fates[number as usize] = Some((left - SECOND, is_marked));
        }
    }
    let is_other = |(seen, fate): &(&Seen, &Option<(u64, bool)>)| match (seen.left, fate) {
        (Some((left, marked)), Some((ours, is_marked))) => {
            marked != *is_marked || (seen.sent + left * 1_000).abs_diff(*ours) > APART
        }
        (left, fate) => left.is_some() != fate.is_some(),
    };
    let signals = seen_first().filter(|seen| seen.left.is_none_or(|(_, is_marked)| is_marked)).count();
    let others = seen_first().zip(&fates).filter(is_other).map(|(seen, _)| seen.made.number).collect();
    (others, signals)
}

fn told(bits: u64) -> CakeSettings {
    CakeSettings { bandwidth: Some(bits / 8), tins: CakeTins::BestEffort, ..CakeSettings::default() }
}

/// Goal: a real kernel drops and marks what ours does, and lets packets go at the same time. Method: its
/// arrivals of one flow, and of several that share a queue, with other times and with ECN.
#[test]
fn a_kernel_drops_the_same_packets() {
    let rtt = CakeSettings { interval: Nanos(30_000_000), target: Nanos(1_500_000), ..told(2_000_000) };
    let (others, signals) = differences("bandwidth 2mbit besteffort rtt 30ms", rtt, usize::MAX);
    assert_eq!((others, signals), (vec![], 102));
    let (others, signals) = differences("bandwidth 2mbit besteffort", told(2_000_000), 400);
    assert_eq!((others, signals), (vec![], 62));
    let blind = CakeSettings { isolation: CakeIsolation::FlowBlind, ..told(4_000_000) };
    let (others, signals) = differences("bandwidth 4mbit besteffort flowblind", blind, usize::MAX);
    assert_eq!((others, signals), (vec![], 44));
}

/// Goal: the rate follows what arrives as the kernel's does. Method: its arrivals; its first packet took
/// longer.
#[test]
fn a_kernel_follows_the_same_rate() {
    let autorate = CakeSettings { autorate_ingress: true, ..told(1_000_000) };
    let (others, signals) = differences("bandwidth 1mbit besteffort autorate-ingress", autorate, usize::MAX);
    assert!(others.len() <= 1 && signals == 141, "{others:?} of {signals}");
}

/// Goal: links count as in the kernel. Method: its arrivals of two flows; where both wait, whose turn is
/// longer by a byte is chance.
#[test]
fn a_kernel_counts_the_same_bytes() {
    let docsis = CakeFraming { raw: false, overhead: 18, mpu: 64, cells: CakeCells::Plain };
    let docsis = CakeSettings { framing: docsis, ..told(1_800_000) };
    let (others, _) = differences("bandwidth 1800kbit besteffort docsis", docsis, usize::MAX);
    assert!(others.len() <= 4, "{others:?}");
    let atm = CakeFraming { raw: false, overhead: 32, mpu: 0, cells: CakeCells::Atm };
    let atm = CakeSettings { framing: atm, ..told(1_800_000) };
    let (others, _) = differences("bandwidth 1800kbit besteffort pppoe-vcmux", atm, usize::MAX);
    assert!(others.len() <= 4, "{others:?}");
}

/// Goal: each code point has the tin that it had on Linux 6.12. Method: a packet of each, in each mode, and
/// which of the tins that are shown counts it.
#[test]
fn code_points_have_the_tins_of_the_kernel() {
    for (tins, recorded) in [
        (CakeTins::Precedence, PRECEDENCE),
        (CakeTins::Diffserv3, DIFFSERV3),
        (CakeTins::Diffserv4, DIFFSERV4),
        (CakeTins::Diffserv8, DIFFSERV8),
    ] {
        let found = (0..64_u8).map(|code_point| {
            let mut queue = cake(CakeSettings { tins, ..CakeSettings::default() });
            let made = Made { bytes: 100, traffic_class: code_point << 2, ..Made::default() };
            let _ = queue.enqueue(Nanos(0), made.datagram());
            let counted = queue.cake_statistics().tins;
            let tin = counted.iter().position(|tin| tin.packets == 1).expect("one has it");
            char::from_digit(tin as u32, 10).expect("below 10")
        });
        assert_eq!(found.collect::<String>(), recorded, "{tins:?}");
    }
}

/// Goal: a packet takes the memory that a kernel's own datagram took. Method: both sides of each step that
/// was recorded, and the sizes between.
#[test]
fn packets_take_the_memory_of_the_kernel() {
    for (bytes, memory) in [(54, 960), (367, 960), (368, 1_280), (687, 1_280), (688, 2_304), (1_514, 2_304)] {
        let mut queue = cake(CakeSettings::default());
        let _ = queue.enqueue(Nanos(0), Made { bytes, ..Made::default() }.datagram());
        assert_eq!(queue.cake_statistics().memory_used, memory, "{bytes}");
    }
}

/// Goal: a class is shown as `tc` showed it behind a load on Linux 6.12. Method: the recorded texts of a
/// queue that drops and of one at rest.
#[test]
fn a_class_is_a_queue() {
    let mut queue = Cake::new(CakeSettings::default(), numbers()).expect("settings that can be");
    assert!(queue.classes().is_empty());
    let made = Made { bytes: 100, ..Made::default() };
    let _ = queue.enqueue(Nanos(SECOND), made.datagram());
    let classes = queue.classes();
    // Best effort is the second tin that is shown.
    assert!(matches!(classes[..], [class] if (1_025..2_049).contains(&class.minor())), "{classes:?}");
    let flow = queue.flow(Nanos(SECOND), classes[0]).expect("it is listed");
    assert_eq!((flow.statistics.backlog, flow.statistics.qlen, flow.count), (100, 1, 0));
    assert!((1_513..=1_514).contains(&flow.deficit) && flow.drop_next.is_none());
    let shown = queue.describe_class(classes[0]).figures.text(Default::default());
    assert_eq!(shown, format!("  deficit {} count 0 blue_prob 0", flow.deficit));
}
