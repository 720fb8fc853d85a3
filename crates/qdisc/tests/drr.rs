//! Deficit round robin: against the paper's algorithm, its bound, and where the kernel's rules have corners.

mod common;

use common::round::{PaperRound, Sharer};
use common::{Gate, Parcel, id as class, throttled};
use proptest::prelude::*;
use quietcore_core::Nanos;
use quietcore_qdisc::{
    ClassId, Classful, Dequeued, Drr, DrrError, Enqueued, Fifo, FifoLimit, FqCodel, FqCodelSettings,
    InnerQdisc, Qdisc, Statistics,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;

const NOW: Nanos = Nanos(0);
const CLASSES: usize = 5;

fn parcel(number: u32, priority: u32, bytes: u32) -> Parcel {
    Parcel { number, class: ClassId(priority), bytes }
}

fn name(at: usize) -> ClassId {
    class(at as u16 + 1)
}

/// Which of the classes that are there a packet is for, step by step as the kernel finds it.
fn sharer(is_there: &[bool], priority: u32, filtered: Option<usize>) -> Option<usize> {
    let named = (priority >> 16 == 1).then_some((priority & 0xffff) as usize).filter(|minor| *minor > 0);
    let known = |at: &usize| is_there.get(*at) == Some(&true);
    named.map(|minor| minor - 1).filter(known).or_else(|| filtered.filter(known))
}

/// Goal: packets leave in the paper's order, whatever names the class; classes come and go with what they
/// hold; what no class is for is dropped. Method: random steps, and every count after each.
#[test]
fn packets_leave_as_the_paper_says() {
    for seed in 0..300 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut below = |most: u32| random.next_u32() % most;
        let mut queue = Drr::new(1);
        let mut model = PaperRound::default();
        model.sharers.resize_with(CLASSES, Sharer::default);
        let (mut is_there, mut sent, mut dropped) = ([false; CLASSES], Statistics::default(), 0_u64);
        for number in 0..500 {
            let at = below(CLASSES as u32) as usize;
            match below(24) {
                0..=11 => {
                    let majors = [0, 1 << 16, 1 << 16, 7 << 16];
                    let priority = majors[below(4) as usize] + below(CLASSES as u32 + 2);
                    let filtered = (below(2) == 0).then_some(at);
                    let packet = parcel(number, priority, 1 + below(1_500));
                    let verdict = match filtered {
                        Some(at) => queue.enqueue_filtered(NOW, name(at), packet),
                        None => queue.enqueue(NOW, packet),
                    };
                    let expected = sharer(&is_there, priority, filtered);
                    assert_eq!(verdict == Enqueued::Queued, expected.is_some(), "seed {seed}, {packet:?}");
                    match expected {
                        Some(sharer) => model.arrive(sharer, packet),
                        None => dropped += 1,
                    }
                }
                12..=19 => {
                    let packet = model.leave();
                    assert_eq!(queue.dequeue(NOW).packet(), packet, "seed {seed}, step {number}");
                    sent.sent_bytes += packet.map_or(0, |packet| u64::from(packet.bytes));
                    sent.sent_packets += u64::from(packet.is_some());
                }
                20 if is_there[at] => {
                    assert_eq!(Drr::remove_class(&mut queue, name(at)), Ok(()));
                    is_there[at] = false;
                    dropped += std::mem::take(&mut model.sharers[at].packets).len() as u64;
                    model.look(at);
                }
                21 if is_there[at] => {
                    assert!(queue.graft_inner(NOW, name(at), None));
                    dropped += std::mem::take(&mut model.sharers[at].packets).len() as u64;
                    model.look(at);
                }
                22 if is_there[at] && !model.is_active(at) => {
                    model.sharers[at].quantum = 1 + u64::from(below(3_000));
                    assert_eq!(queue.change_class(name(at), model.sharers[at].quantum as u32), Ok(()));
                }
                _ if !is_there[at] => {
                    model.sharers[at].quantum = 1 + u64::from(below(3_000));
                    assert_eq!(queue.add_class(name(at), model.sharers[at].quantum as u32), Ok(()));
                    is_there[at] = true;
                }
                _ => {}
            }
            let held = model.sharers.iter().flat_map(|sharer| &sharer.packets);
            let mut expected = sent;
            expected.dropped = dropped;
            held.for_each(|packet| expected.arrived(packet.bytes));
            assert_eq!(queue.statistics(), expected, "seed {seed}, step {number}");
            assert_eq!(queue.is_empty(), expected.qlen == 0);
        }
    }
}

proptest! {
    /// Goal: what two classes sent while both had packets is as their quanta, to within the paper's bound
    /// (theorem 2): over any span the difference, per quantum of the smallest class, is at most that quantum
    /// and two of the longest packets. Method: random quanta and packets, from any packet to any later one.
    #[test]
    fn shares_are_as_quanta(
        quanta in prop::collection::vec(1_500_u32..20_000, 2..5),
        lengths in prop::collection::vec(64_u32..=1_500, 4_000),
        from in 0_usize..1_000,
    ) {
        let mut queue = Drr::new(1);
        for (at, quantum) in quanta.iter().enumerate() {
            queue.add_class(name(at), *quantum).expect("a new one");
            // More than all of them send in the span.
            queue.set_inner(name(at), InnerQdisc::new(Fifo::new(FifoLimit::Packets(5_000)))).expect("known");
        }
        for at in 0..quanta.len() {
            for (number, bytes) in lengths.iter().enumerate() {
                let _ = queue.enqueue_to(NOW, name(at), parcel(number as u32, at as u32, *bytes));
            }
        }
        let least = f64::from(*quanta.iter().min().expect("two at least"));
        let mut sent = vec![0_f64; quanta.len()];
        for step in 0..3_000 {
            let packet = queue.dequeue(NOW).packet().expect("4000 of each");
            if step < from {
                continue;
            }
            sent[packet.class.0 as usize] += f64::from(packet.bytes);
            let mut shares: Vec<f64> =
                sent.iter().zip(&quanta).map(|(sent, quantum)| sent * least / f64::from(*quantum)).collect();
            shares.sort_by(f64::total_cmp);
            let apart = shares[shares.len() - 1] - shares[0];
            prop_assert!(apart <= least + 2.0 * 1_500.0, "step {}: {:?}", step, shares);
        }
    }
}

/// Goal: a class whose packet has to wait makes all wait, until its moment. Method: a gate inside the first
/// of two classes.
#[test]
fn a_class_that_waits_makes_all_wait() {
    let mut queue = Drr::new(1);
    for at in 0..2 {
        queue.add_class(name(at), 1_000).expect("a new one");
    }
    queue.set_inner(name(0), InnerQdisc::new(Gate::new(Nanos(700), 0, 0))).expect("it is there");
    for (number, at) in [(0, 0), (1, 1)] {
        assert!(queue.enqueue_to(NOW, name(at), parcel(number, 0, 100)).is_accepted());
    }
    assert_eq!(throttled(queue.dequeue(NOW)), Nanos(700));
    let mut leave = |at| queue.dequeue(Nanos(at)).packet().map(|packet| packet.number);
    assert_eq!([leave(700), leave(700), leave(700)], [Some(0), Some(1), None]);
}

/// Goal: a quantum is changed from the next turn on, and what is left of a turn is shown. Method: by hand:
/// two of three packets of 400 in a turn of 1000, then a quantum of 500, after a turn of the other class.
#[test]
fn turns_by_hand() {
    let mut queue = Drr::new(1);
    for at in 0..2 {
        queue.add_class(name(at), 1_000).expect("a new one");
        for number in 0..5 {
            let number = number + 10 * at as u32;
            assert!(queue.enqueue_to(NOW, name(at), parcel(number, 0, 400)).is_accepted());
        }
    }
    let deficits = |queue: &Drr<Parcel>| [queue.deficit(name(0)), queue.deficit(name(1))];
    assert_eq!(deficits(&queue), [Some(1_000); 2]);
    let leave = |queue: &mut Drr<Parcel>| queue.dequeue(NOW).packet().map(|packet| packet.number);
    assert_eq!([leave(&mut queue), leave(&mut queue)], [Some(0), Some(1)]);
    assert_eq!(deficits(&queue), [Some(200), Some(1_000)]);
    queue.change_class(name(0), 500).expect("it is there");
    assert_eq!([leave(&mut queue), leave(&mut queue)], [Some(10), Some(11)]);
    assert_eq!(deficits(&queue), [Some(700), Some(200)], "200 are left, 500 are new");
    assert_eq!([leave(&mut queue), leave(&mut queue)], [Some(2), Some(12)]);
    assert_eq!(queue.quantum(name(0)), Some(500));
    queue.reset(NOW);
    assert_eq!((deficits(&queue), queue.dequeue(NOW)), ([None; 2], Dequeued::Empty));
}

/// Goal: what a class sent stays counted when its discipline goes, and the rest is the discipline's. Method:
/// a fifo of two with three packets for it, one of which has left; another in its place.
#[test]
fn classes_count_what_they_sent() {
    let mut queue = Drr::new(1);
    queue.add_class(class(1), 1_000).expect("a new one");
    assert!(queue.graft_inner(NOW, class(1), Some(Box::new(Fifo::new(FifoLimit::Packets(2))))));
    for number in 0..3 {
        let verdict = queue.enqueue_to(NOW, class(1), parcel(number, 0, 100));
        assert_eq!(verdict.is_accepted(), number < 2);
    }
    assert!(queue.dequeue(NOW).packet().is_some());
    let figures = |queue: &Drr<Parcel>| {
        let told = queue.class_statistics(class(1)).expect("it is there");
        (told.sent_packets, told.sent_bytes, told.dropped, told.qlen, queue.statistics().dropped)
    };
    assert_eq!(figures(&queue), (1, 100, 1, 1, 1));
    assert!(queue.graft_inner(NOW, class(1), None));
    assert_eq!(figures(&queue), (1, 100, 0, 0, 2));
    assert_eq!(queue.class_statistics(class(2)), None);
}

/// Goal: a discipline that is changed where it is takes part as it has to. Method: a fifo inside is emptied
/// and filled from outside.
#[test]
fn a_class_that_is_changed_takes_part() {
    let mut queue = Drr::new(1);
    for at in 0..2 {
        queue.add_class(name(at), 1_000).expect("a new one");
        assert!(queue.enqueue_to(NOW, name(at), parcel(at as u32, 0, 100)).is_accepted());
    }
    queue.change_inner(NOW, name(0), &mut |inner| inner.reset(NOW));
    assert_eq!((queue.deficit(name(0)), queue.deficit(name(1))), (None, Some(1_000)));
    queue.change_inner(NOW, name(0), &mut |inner| {
        assert!(inner.enqueue(NOW, parcel(7, 0, 100)).is_accepted())
    });
    let order: Vec<u32> =
        std::iter::from_fn(|| queue.dequeue(NOW).packet()).map(|packet| packet.number).collect();
    assert_eq!(order, [1, 7]);
}

/// Goal: what cannot be is refused, and changes nothing. Method: each error, with its text.
#[test]
fn classes_that_cannot_be() {
    let mut queue = Drr::<Parcel>::new(1);
    assert_eq!(queue.add_class(class(1), 0), Err(DrrError::Quantum));
    assert_eq!(queue.classes(), []);
    assert_eq!(queue.add_class(class(1), 5), Ok(()));
    for (error, text) in [
        (queue.add_class(class(1), 6), "there is a class 1:1 already"),
        (queue.change_class(class(1), 0), "a class with a quantum of 0 could never send"),
        (queue.change_class(class(2), 6), "there is no class 1:2"),
        (Drr::remove_class(&mut queue, class(2)), "there is no class 1:2"),
        (queue.set_inner(class(2), InnerQdisc::first()), "there is no class 1:2"),
    ] {
        assert_eq!(error.map_err(|error| error.to_string()), Err(text.to_owned()));
    }
    assert_eq!((queue.classes(), queue.quantum(class(1))), (vec![class(1)], Some(5)));
    assert!(!queue.graft_inner(NOW, class(2), None));
}

/// Goal: a class whose queue drops all that it held to make room has no turn, and begins anew. Method: an
/// fq_codel for one packet, which drops both when a longer one comes.
#[test]
fn a_class_that_drops_all_has_no_turn() {
    let mut queue = Drr::new(1);
    queue.add_class(name(0), 1_000).expect("new");
    let one = FqCodel::new(FqCodelSettings { limit: 1, ..FqCodelSettings::default() }).expect("settings");
    queue.set_inner(name(0), InnerQdisc::new(one)).expect("it is there");
    assert_eq!(queue.enqueue(NOW, parcel(0, 0x1_0001, 100)), Enqueued::Queued);
    assert_eq!((queue.deficit(name(0)), queue.is_empty()), (Some(1_000), false));
    let _ = queue.enqueue(NOW, parcel(1, 0x1_0001, 1_000));
    let counted = queue.statistics();
    assert_eq!((counted.dropped, counted.qlen, queue.is_empty()), (2, 0, true));
    assert_eq!(queue.deficit(name(0)), None);
    assert_eq!(queue.dequeue(NOW), Dequeued::Empty);
}
