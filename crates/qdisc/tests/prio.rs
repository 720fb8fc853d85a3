//! Strict priorities: against a model, and where the kernel's rules have corners.

mod common;

use common::{Parcel, id as class};
use quietcore_core::Nanos;
use quietcore_qdisc::{
    ClassId, Classful, Dequeued, Enqueued, Fifo, FifoLimit, InnerQdisc, Prio, PrioError, PrioSettings, Qdisc,
    Rate, Tbf, TbfLimit, TbfSettings,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};
use std::collections::VecDeque;

fn urgent(number: u32, priority: u32) -> Parcel {
    Parcel { number, class: ClassId(priority), bytes: 100 }
}

const NOW: Nanos = Nanos(0);
const LIMIT: usize = 1_000;

/// Bands as lists. The kernel's way to choose one is written out here, step by step.
struct Model {
    lists: Vec<VecDeque<u32>>,
    map: [u8; 16],
    sent: u64,
    dropped: u64,
}

impl Model {
    fn band(&self, priority: u32, filtered: Option<u16>) -> usize {
        let minor = match (priority >> 16, filtered) {
            (1, _) => Some(priority & 0xffff),
            (_, Some(minor)) => Some(u32::from(minor)),
            (0, None) => return self.map[(priority & 15) as usize].into(),
            (_, None) => return self.map[0].into(),
        };
        match minor {
            Some(minor) if minor >= 1 && minor as usize <= self.lists.len() => minor as usize - 1,
            _ => self.map[0].into(),
        }
    }

    fn enqueue(&mut self, id: u32, priority: u32, filtered: Option<u16>) -> Enqueued {
        let band = self.band(priority, filtered);
        if self.lists[band].len() == LIMIT {
            self.dropped += 1;
            return Enqueued::Dropped;
        }
        self.lists[band].push_back(id);
        Enqueued::Queued
    }

    fn dequeue(&mut self) -> Option<u32> {
        let id = self.lists.iter_mut().find_map(VecDeque::pop_front)?;
        self.sent += 1;
        Some(id)
    }
}

/// Goal: packets leave as from lists that are asked in order, whatever names the band; bands come and go with
/// what they hold. Method: random steps, and every count after each.
#[test]
fn packets_leave_as_the_model_says() {
    for seed in 0..300 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut below = |most: u32| random.next_u32() % most;
        let settings = PrioSettings::default();
        let mut queue = Prio::new(settings).expect("defaults");
        let mut model = Model { lists: vec![VecDeque::new(); 3], map: settings.priomap, sent: 0, dropped: 0 };
        for id in 0..400 {
            match below(20) {
                0..=9 => {
                    let majors = [0, 0, 0, 1 << 16, 7 << 16];
                    let priority = majors[below(5) as usize] + below(20);
                    let filtered = (below(3) == 0).then(|| below(20) as u16);
                    let packet = urgent(id, priority);
                    let verdict = match filtered {
                        Some(minor) => queue.enqueue_filtered(NOW, class(minor), packet),
                        None => queue.enqueue(NOW, packet),
                    };
                    assert_eq!(verdict, model.enqueue(id, priority, filtered), "seed {seed}, packet {id}");
                }
                10..=17 => {
                    let sent = queue.dequeue(NOW).packet().map(|packet| packet.number);
                    assert_eq!(sent, model.dequeue(), "seed {seed}, step {id}");
                }
                18 => {
                    let bands = 2 + below(15) as u8;
                    let priomap = std::array::from_fn(|_| below(u32::from(bands)) as u8);
                    queue.change(PrioSettings { bands, priomap, ..settings }).expect("bands that are there");
                    let gone = model.lists.drain(usize::from(bands).min(model.lists.len())..);
                    model.dropped += gone.map(|list| list.len() as u64).sum::<u64>();
                    model.lists.resize(bands.into(), VecDeque::new());
                    model.map = priomap;
                }
                _ => {
                    let minor = 1 + below(16) as u16;
                    let is_there = usize::from(minor) <= model.lists.len();
                    assert_eq!(queue.graft_inner(NOW, class(minor), None), is_there);
                    if is_there {
                        let list = std::mem::take(&mut model.lists[usize::from(minor) - 1]);
                        model.dropped += list.len() as u64;
                    }
                }
            }
            let held = model.lists.iter().map(VecDeque::len).sum::<usize>() as u64;
            let told = queue.statistics();
            let counts = (told.sent_packets, told.dropped, told.qlen, told.backlog);
            assert_eq!(counts, (model.sent, model.dropped, held, 100 * held), "seed {seed}, step {id}");
        }
    }
}

/// Goal: a throttled band holds back itself only, and its moment is told when no other band has a packet.
#[test]
fn a_throttled_band_holds_back_itself_only() {
    let rate = Rate::bytes_per_second(100).expect("not 0");
    let bucket = Tbf::new(TbfSettings::new(rate, 100, TbfLimit::Bytes(1_000)), NOW).expect("a bucket");
    let mut queue = Prio::new(PrioSettings::default()).expect("defaults");
    assert!(queue.graft_inner(NOW, class(1), Some(Box::new(bucket))));
    for (id, band) in [(0, 1), (1, 1), (2, 2), (3, 3)] {
        assert!(queue.enqueue_to(NOW, class(band), urgent(id, 0)).is_accepted());
    }
    let sent: Vec<u32> =
        std::iter::from_fn(|| queue.dequeue(NOW).packet()).map(|packet| packet.number).collect();
    assert_eq!(sent, [0, 2, 3], "100 bytes are the bucket");
    assert_eq!(queue.dequeue(NOW), Dequeued::Throttled(Nanos(1_000_000_000)));
    assert!(queue.dequeue(Nanos(1_000_000_000)).packet().is_some());
    assert_eq!(queue.dequeue(Nanos(1_000_000_000)), Dequeued::Empty);
}

/// Goal: of several throttled bands the one that is due first is waited for; a reset empties them all.
/// Method: buckets that take 2 s, 1 s and 3 s for another packet.
#[test]
fn the_first_throttled_band_is_waited_for() {
    let mut queue = Prio::new(PrioSettings::default()).expect("defaults");
    for (band, bytes) in [(1, 50), (2, 100), (3, 33)] {
        let rate = Rate::bytes_per_second(bytes).expect("not 0");
        let bucket = Tbf::new(TbfSettings::new(rate, 100, TbfLimit::Bytes(1_000)), NOW).expect("a bucket");
        assert!(queue.graft_inner(NOW, class(band), Some(Box::new(bucket))));
        for number in 0..2 {
            assert!(queue.enqueue_to(NOW, class(band), urgent(number, 0)).is_accepted());
        }
    }
    assert_eq!(std::iter::from_fn(|| queue.dequeue(NOW).packet()).count(), 3);
    assert_eq!(queue.dequeue(NOW), Dequeued::Throttled(Nanos(1_000_000_000)));
    queue.reset(NOW);
    let told = queue.statistics();
    assert_eq!((told.sent_packets, told.qlen, told.dropped), (3, 0, 0));
    assert_eq!(queue.dequeue(NOW), Dequeued::Empty);
}

/// Goal: what a band has dropped stays counted when it goes, and what it held is dropped then. Method: seven
/// packets for a band with room for two, and one for a band that stays.
#[test]
fn what_a_band_dropped_stays_counted() {
    let mut queue = Prio::new(PrioSettings::default()).expect("defaults");
    let short = Fifo::new(FifoLimit::Packets(2));
    assert!(queue.graft_inner(NOW, class(3), Some(Box::new(short))));
    let taken = (0..7).filter(|id| queue.enqueue_to(NOW, class(3), urgent(*id, 0)).is_accepted()).count();
    assert!(queue.enqueue_to(NOW, class(1), urgent(7, 0)).is_accepted());
    let figures = |queue: &Prio<Parcel>| (queue.statistics().dropped, queue.statistics().qlen);
    assert_eq!((taken, figures(&queue)), (2, (5, 3)));
    let two = PrioSettings { bands: 2, priomap: [1; 16], ..PrioSettings::default() };
    queue.change(two).expect("bands that are there");
    assert_eq!(figures(&queue), (7, 1));
}

/// Goal: a class of another discipline says nothing, whatever its number. Method: priorities that name
/// classes of 1: and of 8: to a prio that is 9:, and its own; and one that names none.
#[test]
fn classes_of_others_say_nothing() {
    for (major, minor, band) in [(1, 6, 2), (8, 1, 2), (9, 3, 3), (0, 6, 1)] {
        let mut queue = Prio::new(PrioSettings { major: 9, ..PrioSettings::default() }).expect("defaults");
        assert!(queue.enqueue(NOW, urgent(0, ClassId::new(major, minor).0)).is_accepted());
        let inner = queue.inner(ClassId::new(9, band)).expect("a band").statistics();
        assert_eq!(inner.qlen, 1, "{major}:{minor}");
    }
}

/// Goal: a discipline around it that has looked at the next packet does not hold that back from a more urgent
/// one. Method: a child, which looks first.
#[test]
fn a_look_does_not_choose() {
    let mut child = InnerQdisc::new(Prio::new(PrioSettings::default()).expect("defaults"));
    assert!(child.enqueue(NOW, urgent(0, 2)).is_accepted());
    assert_eq!(child.peek(NOW), Dequeued::Packet(100));
    assert!(child.enqueue(NOW, urgent(1, 6)).is_accepted());
    assert_eq!(child.dequeue(NOW).packet().map(|packet| packet.number), Some(1));
}

/// Goal: settings that cannot be are refused, and change nothing. Method: both sides of each limit.
#[test]
fn settings_that_cannot_be() {
    let with = |bands, band| PrioSettings { bands, priomap: [band; 16], ..PrioSettings::default() };
    let mut queue = Prio::<Parcel>::new(with(2, 1)).expect("the least");
    assert_eq!(queue.change(with(1, 0)), Err(PrioError::Bands(1)));
    assert_eq!(queue.change(with(17, 0)), Err(PrioError::Bands(17)));
    assert_eq!(queue.change(with(2, 2)), Err(PrioError::Band { priority: 0, band: 2 }));
    assert_eq!(queue.settings(), &with(2, 1));
    assert_eq!(queue.change(with(16, 15)), Ok(()));
    assert_eq!(queue.classes().last(), Some(&class(16)));
    assert!(!queue.graft_inner(NOW, class(17), Some(Box::new(Fifo::new(FifoLimit::Packets(1))))));
}
