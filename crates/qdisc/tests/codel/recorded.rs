//! `codel` and `fq_codel` against recordings of a real kernel: the same packets are dropped and marked.

use crate::Datagram;
use quietcore_core::Nanos;
use quietcore_qdisc::{
    Codel, CodelLaw, CodelSettings, Dequeued, FqCodel, FqCodelSettings, InnerQdisc, Qdisc, Rate, Tbf,
    TbfLimit, TbfSettings,
};

const RECORDED: &str = include_str!("../recorded/codel-linux-6.12.txt");
const BYTES: u32 = 1_042;
/// Microseconds from the program's send to the discipline, about.
const WAY: u64 = 10;
/// Microseconds by which the recorded machine's watchdog was late, about.
const LATE: u64 = 20;

/// What became of a packet, and when it was sent, in microseconds.
#[derive(Clone, Copy, Debug)]
struct Recorded {
    sent: u64,
    /// When it left, and whether marked; nothing if it was dropped.
    left: Option<(u64, bool)>,
    is_known: bool,
}

fn section(name: &str) -> Vec<Recorded> {
    let begin = RECORDED.find(&format!("= {name}\n")).expect("it is recorded");
    let lines = RECORDED[begin..].lines().skip(1).take_while(|line| !line.starts_with('='));
    let mut now = 0;
    let packet = |word: &str| {
        let (gap, delay) = word.split_once('/').expect("a packet");
        now += gap.parse::<u64>().expect("microseconds");
        let is_marked = delay.ends_with('c');
        let delay = delay.trim_end_matches('c').parse::<u64>().ok();
        let left = delay.map(|delay| (now + delay, is_marked));
        Recorded { sent: now, left, is_known: !word.ends_with('?') }
    };
    lines.flat_map(str::split_whitespace).map(packet).collect()
}

/// Plays the same sends to the discipline inside of the same bucket: how many packets have another fate than
/// in the recording, and how many were dropped or marked there.
fn differences(name: &str, classes: &[u16], inside: impl Qdisc<Datagram> + 'static) -> (usize, usize) {
    let recorded = section(name);
    let rate = Rate::bytes_per_second(1_000_000).expect("not 0");
    let settings = TbfSettings::new(rate, 3_000, TbfLimit::Bytes(10_000_000));
    let bucket = Tbf::new(settings, Nanos(0)).expect("they go together");
    let mut bucket = bucket.with_inner(InnerQdisc::new(inside));
    let mut fates: Vec<Option<(u64, bool)>> = vec![None; recorded.len()];
    let start = 1_000_000_000;
    let mut run = |bucket: &mut Tbf<Datagram>, from: Nanos, until: Nanos| {
        let mut now = from;
        loop {
            match bucket.dequeue(now) {
                Dequeued::Packet(packet) => {
                    let left = (now.0 - start) / 1_000;
                    fates[packet.number as usize] = Some((left, packet.marks > 0));
                }
                Dequeued::Throttled(next) if next.0 + LATE * 1_000 <= until.0 => {
                    now = Nanos(next.0 + LATE * 1_000);
                }
                _ => return,
            }
        }
    };
    for (number, packet) in (0_u32..).zip(&recorded) {
        let now = Nanos(start + (packet.sent + WAY) * 1_000);
        let class = classes[number as usize % classes.len()];
        let markable = name.starts_with("codel ecn");
        let datagram = Datagram { number, class, bytes: BYTES, markable, ..Datagram::default() };
        let _ = bucket.enqueue(now, datagram);
        let next = recorded.get(number as usize + 1).map_or(u64::MAX / 2, |next| next.sent + WAY);
        run(&mut bucket, now, Nanos(start.saturating_add(next.saturating_mul(1_000))));
    }
    let known = || recorded.iter().zip(&fates).filter(|(recorded, _)| recorded.is_known);
    let is_other = |(recorded, fate): &(&Recorded, &Option<(u64, bool)>)| match (recorded.left, fate) {
        (Some((left, is_marked)), Some((ours, marked))) => {
            is_marked != *marked || left.abs_diff(*ours) > 3_000
        }
        (left, fate) => left.is_some() != fate.is_some(),
    };
    let signals = known().filter(|(recorded, _)| recorded.left.is_none_or(|(_, is_marked)| is_marked));
    (known().filter(is_other).count(), signals.count())
}

/// Goal: a real kernel drops and marks what ours does, and lets packets go at the same time. Method: its
/// arrivals. Which of its queues come first, where several are equally long, is told beside each. What tbf
/// has looked at counts for a limit of the kernel's, and not for ours, so ours are one less.
#[test]
fn a_kernel_drops_the_same_packets() {
    let settings = CodelSettings::default();
    assert_eq!(differences("codel", &[1], Codel::new(settings)), (0, 27));
    let law = CodelLaw { ecn: true, ce_threshold: Some(Nanos(20_000_000)), ..settings.law };
    let codel = Codel::new(CodelSettings { limit: 59, law });
    // What comes and goes in the same microseconds makes up for a packet or two of the limit.
    let (other, signals) = differences("codel ecn ce_threshold 20ms limit 60", &[1], codel);
    assert!(other <= 20 && signals == 903, "{other} others of {signals}");
}

/// Goal: the same of fair queues, where drops for want of room come on top. Method: as above.
#[test]
fn a_kernel_drops_from_the_same_queues() {
    let settings = FqCodelSettings { limit: 99, ..FqCodelSettings::default() };
    let queue = FqCodel::new(settings).expect("settings that can be");
    let (other, signals) = differences("fq_codel limit 100, 3 flows", &[1, 3, 2], queue);
    assert!(other <= 2 && signals == 308, "{other} others of {signals}");
    // The kernel's packets took 2304 bytes of memory: 43 were below the limit.
    let memory_limit = 43 * (BYTES + 256) + 100;
    let settings = FqCodelSettings { memory_limit, drop_batch: 8, ..FqCodelSettings::default() };
    let queue = FqCodel::new(settings).expect("settings that can be");
    let name = "fq_codel memory_limit 100000 drop_batch 8 ecn, 3 flows";
    let (other, signals) = differences(name, &[3, 1, 2], queue);
    assert!(other <= 32 && signals == 359, "{other} others of {signals}");
}
