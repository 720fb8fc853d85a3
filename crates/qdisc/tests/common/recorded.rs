//! What a real kernel did with packets, and whether ours does the same. Files are of one form, which their
//! heads tell.

use quietcore_core::Nanos;
use quietcore_qdisc::{Dequeued, InnerQdisc, Packet, Qdisc, Rate, Tbf, TbfLimit, TbfSettings};

/// The bytes of every recorded packet.
pub(crate) const BYTES: u32 = 1_042;
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

fn section(file: &str, name: &str) -> Vec<Recorded> {
    let begin = file.find(&format!("= {name}\n")).expect("it is recorded");
    let lines = file[begin..].lines().skip(1).take_while(|line| !line.starts_with('='));
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

/// Plays the sends of a section of a file to the discipline inside of the recorded bucket: how many packets
/// have another fate than in the recording, and how many were dropped or marked there, and here. `packet`
/// makes a packet of its number, `fate` says its number and whether it is marked.
pub(crate) fn differences<P: Packet + core::fmt::Debug + Send>(
    (file, name): (&str, &str),
    packet: impl Fn(u32) -> P,
    fate: impl Fn(&P) -> (u32, bool),
    inside: impl Qdisc<P> + 'static,
) -> (usize, usize, usize) {
    let recorded = section(file, name);
    let rate = Rate::bytes_per_second(1_000_000).expect("not 0");
    let settings = TbfSettings::new(rate, 3_000, TbfLimit::Bytes(10_000_000));
    let bucket = Tbf::new(settings, Nanos(0)).expect("they go together");
    let mut bucket = bucket.with_inner(InnerQdisc::new(inside));
    let mut fates: Vec<Option<(u64, bool)>> = vec![None; recorded.len()];
    let at = |micros: u64| Nanos(1_000_000_000 + micros.saturating_mul(1_000));
    let mut run = |bucket: &mut Tbf<P>, from: Nanos, until: Nanos| {
        let mut now = from;
        loop {
            match bucket.dequeue(now) {
                Dequeued::Packet(packet) => {
                    let (number, is_marked) = fate(&packet);
                    fates[number as usize] = Some((now.since(at(0)).0 / 1_000, is_marked));
                }
                Dequeued::Throttled(next) if next.0 + LATE * 1_000 <= until.0 => {
                    now = Nanos(next.0 + LATE * 1_000);
                }
                _ => return,
            }
        }
    };
    for (number, sent) in (0_u32..).zip(&recorded) {
        let now = at(sent.sent + WAY);
        let _ = bucket.enqueue(now, packet(number));
        let next = recorded.get(number as usize + 1).map_or(at(u64::MAX / 2_000), |next| at(next.sent + WAY));
        run(&mut bucket, now, next);
    }
    let known = || recorded.iter().zip(&fates).filter(|(recorded, _)| recorded.is_known);
    let is_other = |(recorded, fate): &(&Recorded, &Option<(u64, bool)>)| match (recorded.left, fate) {
        (Some((left, is_marked)), Some((ours, marked))) => {
            is_marked != *marked || left.abs_diff(*ours) > 3_000
        }
        (left, fate) => left.is_some() != fate.is_some(),
    };
    let signals = known().filter(|(recorded, _)| recorded.left.is_none_or(|(_, is_marked)| is_marked));
    let ours = known().filter(|(_, fate)| fate.is_none_or(|(_, is_marked)| is_marked));
    (known().filter(is_other).count(), signals.count(), ours.count())
}
