//! Packets through disciplines, as `Control` makes them of tc lines: with filters and classes, without a
//! device.
//!
//! A round is a packet that comes and one that leaves, of 200 bytes and one of 64 ports, beside 1,000 that
//! are queued; `alone` beside none, so that each packet finds all idle. Time is an argument: 10 Gbit/s are
//! used by four fifths. Packets go round, so none is allocated. The peer is what a program would write by
//! hand, a binary heap of moments.

use quietcore_live::{Machine, Nanos};
use quietcore_net::{Control, Device, DeviceOptions, Network};
use quietcore_qdisc::{Dequeued, IpPacket, Packet as _, Qdisc};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::sync::Arc;

/// How many packets are queued.
const QUEUED: usize = 1_000;
/// A little less than the queue of a class holds.
const CLASSES_QUEUED: usize = 990;
/// Between two packets: 200 bytes at 8 Gbit/s.
const SPACING: u64 = 200;
/// So many packets come within netem's mean delay.
const LATENCY: u64 = 10_000_000;
const JITTER: u64 = 3_000_000;

const HTB: &[&str] = &["qdisc add dev e root handle 1: htb default 14"];
const HTB_ONE: &[&str] = &["class add dev e parent 1: classid 1:14 htb rate 10gbit"];
const HTB_BORROW: &[&str] = &[
    "class add dev e parent 1: classid 1:1 htb rate 10gbit",
    "class add dev e parent 1:1 classid 1:11 htb rate 1gbit ceil 10gbit",
    "class add dev e parent 1:1 classid 1:12 htb rate 1gbit ceil 10gbit",
    "class add dev e parent 1:1 classid 1:13 htb rate 1gbit ceil 10gbit",
    "class add dev e parent 1:1 classid 1:14 htb rate 1gbit ceil 10gbit",
    "filter add dev e parent 1: protocol ip prio 1 u32 match ip dport 1 0x3 flowid 1:11",
    "filter add dev e parent 1: protocol ip prio 1 u32 match ip dport 2 0x3 flowid 1:12",
    "filter add dev e parent 1: protocol ip prio 1 u32 match ip dport 3 0x3 flowid 1:13",
];
const HFSC: &[&str] = &[
    "qdisc add dev e root handle 1: hfsc default 13",
    "class add dev e parent 1: classid 1:1 hfsc ls rate 10gbit ul rate 10gbit",
    "class add dev e parent 1:1 classid 1:11 hfsc sc rate 1gbit",
    "class add dev e parent 1:1 classid 1:12 hfsc sc rate 2gbit",
    "class add dev e parent 1:1 classid 1:13 hfsc sc rate 3gbit",
    "filter add dev e parent 1: protocol ip prio 1 u32 match ip dport 1 0x3 flowid 1:11",
    "filter add dev e parent 1: protocol ip prio 1 u32 match ip dport 2 0x3 flowid 1:12",
];
const CAKE: &[&str] = &["qdisc add dev e root cake bandwidth 10gbit"];

/// Where packets pass.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) machine: &'static Machine,
    pub(super) network: &'a Network,
}

/// A path, by its name.
type PacketPath = (&'static str, fn(Place<'_>, u32));

pub(super) const PATHS: [PacketPath; 19] = [
    ("packet_heap", |_, rounds| heap(rounds, 0)),
    ("packet_heap_jitter", |_, rounds| heap(rounds, JITTER)),
    ("packet_pfifo", |place, rounds| queued(place, &[&["qdisc add dev e root pfifo limit 2000"]], rounds)),
    ("packet_netem", |place, rounds| timed(place, "delay 10ms", rounds)),
    ("packet_netem_jitter", |place, rounds| timed(place, "delay 10ms 3ms", rounds)),
    ("packet_netem_normal", |place, rounds| {
        timed(place, "delay 10ms 3ms distribution normal loss 1%", rounds);
    }),
    ("packet_netem_rate", |place, rounds| {
        queued(place, &[&["qdisc add dev e root netem rate 10gbit limit 2000"]], rounds);
    }),
    ("packet_tbf", |place, rounds| {
        queued(place, &[&["qdisc add dev e root tbf rate 10gbit burst 100k limit 1m"]], rounds);
    }),
    ("packet_fq", |place, rounds| queued(place, &[&["qdisc add dev e root fq"]], rounds)),
    ("packet_fq_maxrate", |place, rounds| {
        queued(place, &[&["qdisc add dev e root fq maxrate 200mbit"]], rounds);
    }),
    ("packet_htb", |place, rounds| queued(place, &[HTB, HTB_ONE], rounds)),
    ("packet_htb_borrow", |place, rounds| queued(place, &[HTB, HTB_BORROW], rounds)),
    ("packet_hfsc", |place, rounds| queued(place, &[HFSC], rounds)),
    ("packet_cake", |place, rounds| queued(place, &[CAKE], rounds)),
    ("packet_fq_alone", |place, rounds| alone(place, &[&["qdisc add dev e root fq"]], rounds)),
    ("packet_htb_alone", |place, rounds| alone(place, &[HTB, HTB_ONE], rounds)),
    ("packet_htb_borrow_alone", |place, rounds| alone(place, &[HTB, HTB_BORROW], rounds)),
    ("packet_hfsc_alone", |place, rounds| alone(place, &[HFSC], rounds)),
    ("packet_cake_alone", |place, rounds| alone(place, &[CAKE], rounds)),
];

/// An UDP packet to one of 64 ports.
fn packet(number: usize) -> IpPacket {
    let mut bytes = vec![0; 200];
    bytes[..20].copy_from_slice(&[69, 0, 0, 200, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    bytes[20..28].copy_from_slice(&[19, 136, 19, 64 + (number % 64) as u8, 0, 180, 0, 0]);
    IpPacket::new(bytes)
}

/// What a workload is.
struct Load {
    /// Packets that stay.
    least: usize,
    spacing: u64,
}

/// Packets that wait for their turn to come.
struct Round {
    spare: Vec<IpPacket>,
    now: u64,
    held: usize,
}

impl Round {
    fn new() -> Self {
        Self { spare: (0..4 * QUEUED).map(packet).collect(), now: 1_000_000_000, held: 0 }
    }

    fn one(&mut self, load: &Load, qdisc: &mut dyn Qdisc<IpPacket>) {
        self.now += load.spacing;
        let packet = self.spare.pop().expect("there are enough");
        self.held += usize::from(qdisc.enqueue(Nanos(self.now), packet).is_accepted());
        while self.held > load.least {
            let Dequeued::Packet(packet) = qdisc.dequeue(Nanos(self.now)) else { break };
            self.spare.push(packet);
            self.held -= 1;
        }
        if load.least == 0 {
            // What is lost is accepted, too, and is made anew.
            while self.spare.len() < 2 * QUEUED {
                self.spare.push(crate::packets::packet(self.spare.len()));
            }
        }
    }
}

fn pass(place: Place<'_>, lines: &[&[&str]], load: &Load, rounds: u32) {
    let device = Device::new(place.network, place.machine, DeviceOptions::new(1), |_, _: IpPacket| Ok(()));
    let device = Arc::new(device.expect("a lane and a queue"));
    let control = Control::new(place.machine, 1);
    control.add_device("e", Arc::clone(&device)).expect("it has no other");
    for line in lines.iter().copied().flatten() {
        control.execute_line(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    }
    let mut round = Round::new();
    device.with_qdisc(0, |qdisc| {
        (0..2 * QUEUED).for_each(|_| round.one(load, qdisc));
        (0..rounds).for_each(|_| round.one(load, qdisc));
        qdisc.reset(Nanos(round.now));
    });
}

fn queued(place: Place<'_>, lines: &[&[&str]], rounds: u32) {
    pass(place, lines, &Load { least: CLASSES_QUEUED, spacing: SPACING }, rounds);
}

/// Each packet leaves before the next one comes.
fn alone(place: Place<'_>, lines: &[&[&str]], rounds: u32) {
    pass(place, lines, &Load { least: 0, spacing: SPACING }, rounds);
}

/// Packets leave when their time has come.
fn timed(place: Place<'_>, netem: &str, rounds: u32) {
    let line = format!("qdisc add dev e root netem limit 4000 seed 7 {netem}");
    pass(place, &[&[&line]], &Load { least: 0, spacing: LATENCY / QUEUED as u64 }, rounds);
}

/// The first to leave is the greatest.
struct Waiting(u64, u64, IpPacket);

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.0, other.1).cmp(&(self.0, self.1))
    }
}

fn heap(rounds: u32, jitter: u64) {
    let mut heap = BinaryHeap::with_capacity(4 * QUEUED);
    let mut spare: Vec<_> = (0..4 * QUEUED).map(packet).collect();
    let (mut now, mut number, mut random) = (1_000_000_000, 0, 88_172_645_463_325_252_u64);
    let mut one = || {
        now += LATENCY / QUEUED as u64;
        number += 1;
        // Marsaglia's xorshift: what is drawn costs next to nothing.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let extra = ((random >> 32) * 2 * jitter) >> 32;
        let packet: IpPacket = spare.pop().expect("there are enough");
        black_box(packet.len());
        heap.push(Waiting(now + LATENCY - jitter + extra, number, packet));
        while heap.peek().is_some_and(|first| first.0 <= now) {
            let Some(first) = heap.pop() else { break };
            black_box(first.2.len());
            spare.push(first.2);
        }
    };
    (0..2 * QUEUED).for_each(|_| one());
    (0..rounds).for_each(|_| one());
}
