//! `pfifo_fast`, `multiq` and `noqueue`: against lists.

mod common;

use common::{Gate, Parcel, id as class, throttled};
use quietcore_core::Nanos;
use quietcore_qdisc::{
    ClassId, Classful, Dequeued, Enqueued, Fifo, FifoLimit, InnerQdisc, Multiq, Noqueue, Packet, PfifoFast,
    Qdisc, Statistics,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};
use std::collections::VecDeque;

const NOW: Nanos = Nanos(0);

fn parcel(number: u32, priority: u32) -> Parcel {
    Parcel { number, class: ClassId(priority), bytes: 60 + number % 7 }
}

/// tc-pfifo_fast(8): the band of each priority.
const BANDS: [usize; 16] = [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];

/// What lists of packets hold, with what has left them.
fn counted(lists: &[VecDeque<Parcel>], sent: Statistics) -> Statistics {
    let mut all = sent;
    lists.iter().flatten().for_each(|packet| all.arrived(packet.bytes));
    all
}

/// A ring of places, and the packets that are in them.
#[derive(Clone)]
struct Places {
    packets: VecDeque<Parcel>,
    taken: Vec<bool>,
    end: usize,
    first: usize,
    /// Places from here to `first` have not come back.
    kept: usize,
}

impl Places {
    fn new() -> Self {
        Self { packets: VecDeque::new(), taken: vec![false; 1_000], end: 0, first: 0, kept: 0 }
    }

    fn arrive(&mut self, packet: Parcel) -> Enqueued {
        if std::mem::replace(&mut self.taken[self.end], true) {
            return Enqueued::Dropped;
        }
        self.end = (self.end + 1) % 1_000;
        self.packets.push_back(packet);
        Enqueued::Queued
    }

    fn leave(&mut self) -> Option<Parcel> {
        let packet = self.packets.pop_front()?;
        self.first += 1;
        if self.first - self.kept == 16 || self.first == 1_000 {
            self.taken[self.kept..self.first].fill(false);
            self.kept = self.first;
        }
        if self.first == 1_000 {
            (self.first, self.kept) = (0, 0);
        }
        Some(packet)
    }
}

/// Goal: `pfifo_fast` sends from three rings in order, by the priority's last four bits; a place that was
/// left comes back with fifteen others. Method: random packets of any priority, more and then less than
/// leave, and a reset in the middle; a model with all places; every count after each step.
#[test]
fn three_bands_in_order() {
    let mut random = ChaCha8Rng::seed_from_u64(9);
    let (mut queue, mut rings) = (PfifoFast::new(), vec![Places::new(); 3]);
    let (mut sent, mut fullest) = (Statistics::default(), [0, 1_000]);
    for number in 0..30_000 {
        if number == 11_000 {
            queue.reset(NOW);
            rings.iter_mut().for_each(|ring| while ring.leave().is_some() {});
        }
        // All bands fill, then the first one, from which packets leave meanwhile; then they empty.
        let (chances, urgent) = match number % 10_000 {
            0..2_000 => (10, false),
            2_000..8_000 => (7, true),
            _ => (1, false),
        };
        if random.next_u32() % 10 < chances {
            let priority = if urgent { 6 } else { random.next_u32() };
            let ring = &mut rings[BANDS[(priority & 15) as usize]];
            let verdict = ring.arrive(parcel(number, priority));
            assert_eq!(queue.enqueue(NOW, parcel(number, priority)), verdict, "packet {number}");
            if verdict == Enqueued::Dropped {
                sent.dropped += 1;
                fullest = [fullest[0].max(ring.packets.len()), fullest[1].min(ring.packets.len())];
            }
        } else {
            let next = rings.iter().find_map(|ring| ring.packets.front()).map(|packet| packet.bytes);
            assert_eq!(queue.head(), next);
            let packet = rings.iter_mut().find_map(Places::leave);
            assert_eq!(queue.dequeue(NOW).packet(), packet, "packet {number}");
            sent.sent_bytes += packet.map_or(0, |packet| u64::from(packet.bytes));
            sent.sent_packets += u64::from(packet.is_some());
        }
        let lists: Vec<_> = rings.iter().map(|ring| ring.packets.iter().copied().collect()).collect();
        let expected = counted(&lists, sent);
        assert_eq!((queue.statistics(), queue.is_empty()), (expected, expected.qlen == 0));
    }
    assert!(sent.dropped > 0 && fullest[0] > fullest[1], "{sent:?} {fullest:?}");
    assert_eq!(queue.classes(), []);
    queue.reset(NOW);
    assert_eq!((queue.statistics(), queue.dequeue(NOW)), (sent, Dequeued::Empty));
}

/// Goal: a look at the next packet does not hold it back from a more urgent one. Method: a child, which
/// looks.
#[test]
fn a_look_does_not_choose() {
    let mut child = InnerQdisc::new(PfifoFast::new());
    for (number, priority) in [(0, 2), (1, 6)] {
        assert!(child.enqueue(NOW, parcel(number, priority)).is_accepted());
        assert_eq!(child.peek(NOW), Dequeued::Packet(60 + number));
    }
    assert_eq!(child.dequeue(NOW).packet().map(|packet| packet.number), Some(1));
}

/// Goal: `noqueue` gives what comes, in order, and drops nothing. Method: more packets than any other
/// discipline holds unless told.
#[test]
fn nothing_is_dropped_without_a_queue() {
    let mut queue = Noqueue::new();
    for number in 0..100_000 {
        assert_eq!(queue.enqueue(NOW, parcel(number, 0)), Enqueued::Queued);
    }
    assert_eq!((queue.head(), queue.statistics().qlen, queue.is_empty()), (Some(60), 100_000, false));
    for number in 0..50_000 {
        assert_eq!(queue.dequeue(NOW).packet().map(|packet| packet.number), Some(number));
    }
    queue.reset(NOW);
    let told = queue.statistics();
    assert_eq!((told.sent_packets, told.dropped, told.qlen), (50_000, 0, 0));
    assert_eq!((queue.dequeue(NOW), queue.is_empty()), (Dequeued::Empty, true));
}

/// A parcel whose flow is its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Flowing(u32);

impl Packet for Flowing {
    fn len(&self) -> u32 {
        100
    }

    fn flow(&self) -> u64 {
        self.0.into()
    }
}

fn multiq<P: Packet + std::fmt::Debug + Send>(bands: u16) -> Multiq<P> {
    Multiq::new(1, bands.try_into().expect("not 0"))
}

/// Goal: `multiq` sends from its bands in turns, a packet each, from the one behind the last. Method: random
/// flows; a model that looks through the bands behind the last; every count after each step, and a filter's
/// class, which means nothing.
#[test]
fn bands_in_turns() {
    for seed in 0..50 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let bands = 1 + random.next_u32() % 6;
        let mut queue = multiq(bands as u16);
        let mut lists = vec![VecDeque::new(); bands as usize];
        let (mut last, mut sent) = (0, Statistics::default());
        for step in 0..600 {
            match random.next_u32() % 8 {
                0..=3 => {
                    let packet = Flowing(random.next_u32());
                    lists[(packet.0 % bands) as usize].push_back(packet);
                    let verdict = if packet.0.is_multiple_of(2) {
                        queue.enqueue(NOW, packet)
                    } else {
                        queue.enqueue_filtered(NOW, class(1), packet)
                    };
                    assert!(verdict.is_accepted());
                }
                4..=6 => {
                    let turns = (1..=bands as usize).map(|behind| (last + behind) % bands as usize);
                    let band = turns.into_iter().find(|band| !lists[*band].is_empty());
                    let packet = band.and_then(|band| lists[band].pop_front());
                    assert_eq!(queue.head(), packet.map(|_| 100));
                    assert_eq!(queue.dequeue(NOW).packet(), packet, "seed {seed}, step {step}");
                    last = band.unwrap_or(last);
                    sent.sent_packets += u64::from(packet.is_some());
                }
                _ if step % 9 == 0 => {
                    let minor = 1 + (random.next_u32() % 8) as u16;
                    assert_eq!(queue.graft_inner(NOW, class(minor), None), u32::from(minor) <= bands);
                    if let Some(list) = lists.get_mut(usize::from(minor) - 1) {
                        sent.dropped += list.drain(..).count() as u64;
                    }
                }
                _ => {}
            }
            let held: u64 = lists.iter().map(|list| list.len() as u64).sum();
            let mut expected = sent;
            expected.sent_bytes = 100 * sent.sent_packets;
            (expected.backlog, expected.qlen) = (100 * held, held);
            assert_eq!((queue.statistics(), queue.is_empty()), (expected, held == 0), "seed {seed}");
        }
    }
}

/// Goal: a band that waits holds back itself only; of several the first moment is told; a reset begins anew.
/// Method: gates in two of three bands.
#[test]
fn bands_that_wait() {
    let mut queue = multiq::<Parcel>(3);
    assert_eq!((queue.bands(), queue.classes()), (3, vec![class(1), class(2), class(3)]));
    for (band, at) in [(2, 900), (3, 700)] {
        let gate = Gate::new(Nanos(at), 0, 0);
        assert!(queue.graft_inner(NOW, class(band), Some(Box::new(gate))));
    }
    for band in 1..=3 {
        queue.change_inner(NOW, class(band), &mut |inner| {
            assert!(inner.enqueue(NOW, parcel(band.into(), 0)).is_accepted());
        });
    }
    assert_eq!(queue.dequeue(NOW).packet().map(|packet| packet.number), Some(1));
    assert_eq!(throttled(queue.dequeue(NOW)), Nanos(700));
    assert_eq!(queue.dequeue(Nanos(700)).packet().map(|packet| packet.number), Some(3));
    assert_eq!(throttled(queue.dequeue(Nanos(700))), Nanos(900));
    assert!(!queue.graft_inner(NOW, class(4), Some(Box::new(Fifo::new(FifoLimit::Packets(1))))));
    queue.reset(Nanos(700));
    assert_eq!(queue.dequeue(Nanos(900)), Dequeued::Empty);
}
