//! `drr`, `ets`, `prio`, `multiq` and `pfifo_fast` against a real kernel: packets leave in the order in which
//! they left Linux 6.12.
//!
//! The recording was made in an emulated machine, on a veth device: a `tbf` of 20 kbit/s and the discipline
//! inside, one program that sends everything at once with `SO_PRIORITY`, and one behind the device that notes
//! what comes. The first packet empties the bucket, the second one is held in front of it meanwhile, and the
//! third leaves when all have arrived; so the order is one of rules, not of microseconds.

mod common;

use common::{Parcel, rate};
use core::num::NonZeroU16;
use quietcore_core::Nanos;
use quietcore_qdisc::{
    ClassId, Dequeued, Drr, Ets, EtsSettings, InnerQdisc, Multiq, Packet, PfifoFast, Prio, PrioSettings,
    Qdisc, Tbf, TbfLimit, TbfSettings,
};

const RECORDED: &str = include_str!("recorded/order-linux-6.12.txt");

/// The numbers of the sender (a linear congruential generator).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

/// A parcel whose flow is its priority.
#[derive(Debug)]
struct Sent(Parcel);

impl Packet for Sent {
    fn len(&self) -> u32 {
        self.0.bytes
    }

    fn flow(&self) -> u64 {
        self.0.class.0.into()
    }

    fn priority(&self) -> u32 {
        self.0.class.0
    }
}

/// What was sent: two long packets of the first priority, then `count` of any, 60 to `60 + lengths` bytes
/// long.
fn packets(seed: u64, priorities: &[u32], count: u32, lengths: usize) -> Vec<Parcel> {
    let mut numbers = Numbers(seed);
    let first = (0..2).map(|number| Parcel { number, class: ClassId(priorities[0]), bytes: 1_500 });
    let others = (0..count).map(|number| Parcel {
        number: number + 2,
        class: ClassId(priorities[numbers.below(priorities.len())]),
        bytes: 60 + numbers.below(lengths) as u32,
    });
    first.chain(others).collect()
}

/// The numbers of a recorded run.
fn recorded(name: &str) -> Vec<u32> {
    let lines = RECORDED.lines().skip_while(|line| line.strip_prefix("= ") != Some(name)).skip(1);
    let words = lines.take_while(|line| !line.starts_with('=')).flat_map(str::split_whitespace);
    words.map(|word| word.parse().expect("a number")).collect()
}

fn assert_order(name: &str, inner: impl Qdisc<Sent>, packets: Vec<Parcel>) {
    let bucket = TbfSettings::new(rate(2_500), 1_514, TbfLimit::Bytes(100 << 20));
    let mut queue = Tbf::new(bucket, Nanos(0)).expect("a bucket").with_inner(InnerQdisc::new(inner));
    let (mut now, mut left) = (Nanos(0), Vec::new());
    for packet in packets {
        let _ = queue.enqueue(now, Sent(packet));
        // The kernel looks, too, and holds what it saw.
        left.extend(queue.dequeue(now).packet().map(|packet| packet.0.number));
    }
    loop {
        match queue.dequeue(now) {
            Dequeued::Packet(packet) => left.push(packet.0.number),
            Dequeued::Throttled(until) => now = until,
            Dequeued::Empty => break,
        }
    }
    let kernels = recorded(name);
    let differs = left.iter().zip(&kernels).position(|(ours, kernels)| ours != kernels);
    assert_eq!((left.len(), differs), (kernels.len(), None), "{name}");
}

const fn class(minor: u32) -> u32 {
    1 << 16 | minor
}

/// Goal: classes take turns as the kernel's do. Method: four, with quanta shorter and longer than packets;
/// 256 is what the kernel made of 100.
#[test]
fn drr_is_as_recorded() {
    let mut queue = Drr::new(1);
    for (minor, quantum) in [(1, 1_514), (2, 3_000), (3, 500), (0x10, 256)] {
        queue.add_class(ClassId(class(minor)), quantum).expect("a new one");
    }
    assert_order("drr", queue, packets(1, &[class(1), class(2), class(3), class(0x10)], 600, 1_400));
}

/// Goal: bands are chosen and served as the kernel's are. Method: two strict ones and four that share;
/// priorities, names of classes, of some that there are not, and of another discipline's.
#[test]
fn ets_is_as_recorded() {
    let mut told = EtsSettings::new(6, 2);
    told.quanta[2..6].copy_from_slice(&[1_514, 700, 4_000, 256]);
    told.priomap[..6].copy_from_slice(&[0, 1, 2, 3, 4, 5]);
    let queue = Ets::new(told).expect("they can be");
    let priorities = [0, 1, 2, 3, 4, 5, 9, 2, 3, 4, 5, class(3), class(9), 0x2_0003, class(6)];
    assert_order("ets", queue, packets(2, &priorities, 600, 1_400));
}

/// Goal: the same of `prio`. Method: as above.
#[test]
fn prio_is_as_recorded() {
    let mut told = PrioSettings { bands: 4, ..PrioSettings::default() };
    told.priomap[..8].copy_from_slice(&[1, 2, 3, 0, 1, 2, 3, 0]);
    let mut priorities: Vec<u32> = (0..16).collect();
    priorities.extend([class(1), class(4), class(9), 0x2_0002]);
    let queue = Prio::new(told).expect("they can be");
    assert_order("prio", queue, packets(4, &priorities, 600, 1_400));
}

/// Goal: bands take turns as the kernel's do. Method: four, chosen by an action (`skbedit queue_mapping`)
/// there and by the flow here.
#[test]
fn multiq_is_as_recorded() {
    let queue = Multiq::new(1, NonZeroU16::new(4).expect("4"));
    assert_order("multiq", queue, packets(6, &[0, 1, 2, 3], 600, 1_400));
}

/// Goal: the same of `pfifo_fast`, to which names of classes are priorities, and of what is lost when bands
/// are full. Method: as above; then more packets than three bands hold.
#[test]
fn pfifo_fast_is_as_recorded() {
    let mut priorities: Vec<u32> = (0..16).collect();
    priorities.extend([class(6), 0x2_0002]);
    assert_order("pfifo_fast", PfifoFast::new(), packets(3, &priorities, 600, 1_400));
    assert_order("pfifo_fast_full", PfifoFast::new(), packets(5, &[0, 2, 6, 2], 4_400, 40));
}
