//! `htb` against a real kernel: 10,000 packets leave in the order in which they left Linux 6.18.
//!
//! The recording was made on a device (`cargo xtask packets shape` makes it again, beside ours); here the
//! same packets pass in virtual time. Four classes borrow from one parent and have next to no rate of their
//! own, so that the order is one of priorities and quanta, not of microseconds.

use quietcore_core::Nanos;
use quietcore_qdisc::{
    ClassId, Dequeued, Fifo, FifoLimit, Htb, HtbClass, HtbSettings, InnerQdisc, Qdisc, Rate,
};

const RECORDED: &str = include_str!("recorded/htb-order-linux-6.18.txt");
const PACKETS: usize = 10_000;
/// UDP, IPv4, Ethernet.
const HEADERS: usize = 42;

/// The numbers of the sender (a linear congruential generator).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Class and bytes on the link of each packet.
fn packets() -> Vec<(u16, usize)> {
    let mut numbers = Numbers(7);
    let mut packets: Vec<(u16, usize)> = (0..4).map(|class| (class, 1_400)).collect();
    packets.extend((0..900).map(|_| (0, 1_000)));
    while packets.len() < PACKETS {
        let class = 1 + u16::try_from(numbers.below(3)).expect("small");
        packets.push((class, 200 + usize::try_from(numbers.below(800)).expect("small")));
    }
    packets.iter().map(|&(class, payload)| (class, payload + HEADERS)).collect()
}

fn bits(rate: u64) -> Rate {
    Rate::bytes_per_second(rate / 8).expect("not 0")
}

fn leaf(number: u16) -> ClassId {
    ClassId::new(1, 0x10 * (number + 1))
}

fn shaped() -> Htb<Vec<u8>> {
    let mut htb = Htb::new(HtbSettings::default());
    let root = ClassId::new(1, 1);
    let mut all = HtbClass::new(bits(20_000_000));
    (all.burst, all.cburst) = (Some(5_000), Some(5_000));
    htb.add_class(None, root, all).expect("the first");
    for (number, (prio, quantum)) in (0..).zip([(0, 1_500), (1, 1_500), (1, 4_000), (2, 1_500)]) {
        let mut class = HtbClass { ceil: bits(1_000_000_000), prio, ..HtbClass::new(bits(200)) };
        (class.burst, class.cburst, class.quantum) = (Some(100), Some(1_000_000), Some(quantum));
        htb.add_class(Some(root), leaf(number), class).expect("a new one");
        htb.set_inner(leaf(number), InnerQdisc::new(Fifo::new(FifoLimit::Packets(20_000)))).expect("a leaf");
    }
    htb
}

/// Goal: who goes first is what the kernel says, for every packet. Method: one packet per class, so that
/// no class has tokens left; then everything at once.
#[test]
fn ten_thousand_packets_leave_in_the_kernels_order() {
    let recorded: Vec<u32> = RECORDED
        .lines()
        .filter(|line| !line.starts_with('#'))
        .flat_map(str::split_whitespace)
        .map(|word| word.parse().expect("a number"))
        .collect();
    assert_eq!(recorded.len(), PACKETS);
    let mut htb = shaped();
    let (mut now, mut left) = (Nanos(0), Vec::new());
    let mut drain = |htb: &mut Htb<Vec<u8>>, now: &mut Nanos, until: Option<Nanos>| {
        loop {
            match htb.dequeue(*now) {
                Dequeued::Packet(packet) => {
                    left.push(u32::from_be_bytes([packet[0], packet[1], packet[2], packet[3]]));
                }
                Dequeued::Throttled(next) if until.is_none_or(|until| next < until) => *now = next,
                Dequeued::Throttled(_) | Dequeued::Empty => break,
            }
        }
        *now = until.unwrap_or(*now);
    };
    for (number, (class, bytes)) in (0_u32..).zip(packets()) {
        if number < 4 {
            let next = Nanos(now.0 + 100_000_000);
            drain(&mut htb, &mut now, Some(next));
        }
        let mut packet = vec![0; bytes];
        packet[..4].copy_from_slice(&number.to_be_bytes());
        assert!(htb.enqueue_to(now, leaf(class), packet).is_accepted());
    }
    drain(&mut htb, &mut now, None);
    let differs = left.iter().zip(&recorded).position(|(ours, kernels)| ours != kernels);
    assert_eq!((left.len(), differs), (PACKETS, None), "ours {:?}", differs.map(|at| &left[at..at + 5]));
}
