//! What a class is given and counts, and the queues of leaves.

use crate::common::{Gate, Parcel, throttled};
use crate::{MILLISECOND, name, share};
use quietcore_core::Nanos;
use quietcore_qdisc::{Classful, Dequeued, Fifo, FifoLimit, Hfsc, HfscClass, HfscError, Qdisc};
use quietcore_qdisc::{Enqueued, ServiceCurve};

fn packet(class: usize, length: u32) -> Parcel {
    Parcel { class: name(class), number: 0, bytes: length }
}

/// A gate of 10 ms.
fn gate(early: u64) -> Gate {
    Gate::new(Nanos(0), 10 * MILLISECOND, early)
}

fn guarantee(curve: ServiceCurve) -> HfscClass {
    HfscClass { realtime: Some(curve), ..HfscClass::default() }
}

/// Goal: a packet goes to the leaf that its priority names, else to the default class, else nowhere.
/// Method: a leaf, an inner class and a name that no class has, with and without a default.
#[test]
fn a_priority_names_a_leaf() {
    let mut queue = Hfsc::new();
    queue.add_class(None, name(1), share(1)).expect("it can be");
    queue.add_class(Some(name(1)), name(2), share(1)).expect("it can be");
    queue.add_class(Some(name(1)), name(3), share(1)).expect("it can be");
    let mut enqueue = |default, class| {
        queue.set_default_class(default);
        let verdict = queue.enqueue(Nanos(0), packet(class, 100));
        let held = |leaf| queue.class_statistics(name(leaf)).expect("it is there").queue.qlen;
        (verdict, held(2), held(3))
    };
    assert_eq!(enqueue(None, 2), (Enqueued::Queued, 1, 0));
    assert_eq!(enqueue(None, 1), (Enqueued::Dropped, 1, 0), "an inner class");
    assert_eq!(enqueue(None, 9), (Enqueued::Dropped, 1, 0), "nobody");
    assert_eq!(enqueue(Some(name(3)), 1), (Enqueued::Queued, 1, 1));
    assert_eq!(enqueue(Some(name(3)), 2), (Enqueued::Queued, 2, 1));
    assert_eq!(enqueue(Some(name(1)), 9), (Enqueued::Dropped, 2, 1), "the default is no leaf");
    assert_eq!(queue.statistics().dropped, 3);
}

/// Goal: the moments of a guarantee are exact, and after a reset they are those of the beginning. Method:
/// 1000 bytes per second, packets of 100 bytes; and a burst of twice that for 200 ms.
#[test]
fn a_guarantee_alone_paces() {
    let burst = ServiceCurve::two_piece(2_000, Nanos(200 * MILLISECOND), 1_000);
    let expected =
        [(ServiceCurve::linear(1_000), [0, 100, 200, 300, 400, 500]), (burst, [0, 50, 100, 150, 200, 300])];
    for (curve, moments) in expected {
        let (mut queue, mut now) = (Hfsc::new(), Nanos(0));
        queue.add_class(None, name(1), guarantee(curve)).expect("it can be");
        for round in 1..=2 {
            let begin = now;
            (0..7).for_each(|_| assert!(queue.enqueue(now, packet(1, 100)).is_accepted()));
            for moment in moments {
                assert_eq!(now, Nanos(begin.0 + moment * MILLISECOND), "{curve:?}, round {round}");
                assert!(queue.dequeue(now).packet().is_some());
                now = throttled(queue.dequeue(now));
            }
            assert_eq!(queue.statistics().overlimits, 6 * round);
            let counted = queue.class_statistics(name(1)).expect("it is there");
            assert_eq!(counted.realtime_bytes, 600 * round);
            queue.reset(now);
        }
    }
}

/// Goal: what never comes is throttled for ever. Method: guarantees and limits that end in a rate of 0.
#[test]
fn a_curve_that_ends_never_sends_again() {
    let burst = ServiceCurve::two_piece(1_000, Nanos(100 * MILLISECOND), 0);
    for class in [guarantee(burst), HfscClass { upper_limit: Some(burst), ..share(1) }] {
        let mut queue = Hfsc::new();
        queue.add_class(None, name(1), class).expect("it can be");
        (0..3).for_each(|_| assert!(queue.enqueue(Nanos(0), packet(1, 100)).is_accepted()));
        assert!(queue.dequeue(Nanos(0)).packet().is_some());
        assert_eq!(throttled(queue.dequeue(Nanos(0))), Nanos(100 * MILLISECOND));
        assert!(queue.dequeue(Nanos(100 * MILLISECOND)).packet().is_some());
        assert_eq!(throttled(queue.dequeue(Nanos(100 * MILLISECOND))), Nanos(u64::MAX));
    }
}

/// Goal: a class that waited for its limit does not starve its siblings later. Method: equal shares, one
/// limited for a second and then sent to by its guarantee as well; a third one that begins late.
#[test]
fn a_limited_class_saves_up_nothing() {
    let mut queue = Hfsc::new();
    let limited = HfscClass { upper_limit: Some(ServiceCurve::linear(1_000)), ..share(1_000) };
    for (class, config) in [(1, limited), (2, share(1_000)), (3, share(1_000))] {
        queue.add_class(None, name(class), config).expect("it can be");
    }
    for class in [1, 2] {
        (0..900).for_each(|_| assert!(queue.enqueue(Nanos(0), packet(class, 100)).is_accepted()));
    }
    let of = |queue: &Hfsc<Parcel>, class| {
        queue.class_statistics(name(class)).expect("it is there").queue.sent_packets
    };
    for step in 0..500 {
        assert!(queue.dequeue(Nanos(step * MILLISECOND)).packet().is_some());
    }
    assert!((5..=6).contains(&of(&queue, 1)), "{} in half a second", of(&queue, 1));
    // The late one begins where its sibling is, not half way back to the limited one.
    let now = Nanos(500 * MILLISECOND);
    (0..900).for_each(|_| assert!(queue.enqueue(now, packet(3, 100)).is_accepted()));
    let before = of(&queue, 2);
    for _ in 0..100 {
        assert!(queue.dequeue(now).packet().is_some());
    }
    assert!((48..=52).contains(&(of(&queue, 2) - before)), "{} of 100", of(&queue, 2) - before);
}

/// Goal: a leaf whose queue is throttled holds no other up, and is asked again when it said. Method: a gate
/// of 10 ms beside a fifo, with a guarantee and with a share.
#[test]
fn a_leaf_may_be_throttled() {
    for class in [guarantee(ServiceCurve::linear(1_000_000)), share(1_000)] {
        let mut queue = Hfsc::new();
        queue.add_class(None, name(1), class).expect("it can be");
        queue.add_class(None, name(2), share(1)).expect("it can be");
        queue.set_leaf(Nanos(0), name(1), Box::new(gate(0))).expect("it is a leaf");
        (0..3).for_each(|_| assert!(queue.enqueue(Nanos(0), packet(1, 100)).is_accepted()));
        (0..2).for_each(|_| assert!(queue.enqueue(Nanos(0), packet(2, 100)).is_accepted()));
        let mut next = |at: u64| match queue.dequeue(Nanos(at * MILLISECOND)) {
            Dequeued::Packet(packet) => Ok(packet.class),
            Dequeued::Throttled(until) => Err(until.0 / MILLISECOND),
            Dequeued::Empty => Err(0),
        };
        assert_eq!((next(0), next(0), next(0)), (Ok(name(1)), Ok(name(2)), Ok(name(2))), "{class:?}");
        assert_eq!((next(0), next(9), next(10)), (Err(10), Err(10), Ok(name(1))), "{class:?}");
        assert_eq!((next(10), next(25), next(25)), (Err(20), Ok(name(1)), Err(0)), "{class:?}");
    }
}

/// Goal: a class whose queue is throttled can go, and a queue that names a moment that has come is not asked
/// for ever. Method: a gate that is early by all it names, then another leaf, then none.
#[test]
fn a_throttled_leaf_may_go() {
    let mut queue = Hfsc::new();
    queue.add_class(None, name(1), share(1)).expect("it can be");
    queue.set_leaf(Nanos(0), name(1), Box::new(gate(10 * MILLISECOND))).expect("it is a leaf");
    (0..2).for_each(|_| assert!(queue.enqueue(Nanos(0), packet(1, 100)).is_accepted()));
    assert!(queue.dequeue(Nanos(0)).packet().is_some());
    assert_eq!(throttled(queue.dequeue(Nanos(5))), Nanos(6));
    queue.set_leaf(Nanos(5), name(1), Box::new(gate(0))).expect("it is a leaf");
    assert_eq!(queue.dequeue(Nanos(6)), Dequeued::Empty);
    (0..2).for_each(|_| assert!(queue.enqueue(Nanos(6), packet(1, 100)).is_accepted()));
    assert!(queue.dequeue(Nanos(6)).packet().is_some());
    assert_eq!(throttled(queue.dequeue(Nanos(7))), Nanos(10 * MILLISECOND + 6));
    queue.remove_class(name(1)).expect("it has no children");
    assert_eq!(queue.dequeue(Nanos(20 * MILLISECOND)), Dequeued::Empty);
    assert_eq!(queue.statistics().dropped, 2);
}

/// Goal: a class counts what is below it. Method: two leaves of one parent, of which one has a guarantee.
#[test]
fn classes_count() {
    let mut queue = Hfsc::new();
    queue.add_class(None, name(1), share(1)).expect("it can be");
    let voice = HfscClass::guaranteed_share(ServiceCurve::linear(1_000));
    queue.add_class(Some(name(1)), name(2), voice).expect("it can be");
    queue.add_class(Some(name(1)), name(3), share(1_000)).expect("it can be");
    queue.set_leaf(Nanos(0), name(3), Box::new(Fifo::new(FifoLimit::Packets(1)))).expect("it is a leaf");
    for class in [2, 2, 3, 3, 3] {
        let _ = queue.enqueue(Nanos(0), packet(class, 100));
    }
    assert_eq!(queue.dequeue(Nanos(0)).packet().map(|packet| packet.class), Some(name(2)));
    let of = |class| queue.class_statistics(name(class)).expect("it is there");
    let counts = |class| (of(class).queue.sent_bytes, of(class).queue.dropped, of(class).queue.qlen);
    assert_eq!((counts(1), counts(2), counts(3)), ((100, 2, 2), (100, 0, 1), (0, 2, 1)));
    assert_eq!((of(1).realtime_bytes, of(2).realtime_bytes), (0, 100), "guarantees are of leaves");
    assert_eq!((of(1).level, of(2).level, of(1).periods, of(3).periods), (1, 0, 1, 1));
    let all = queue.statistics();
    assert_eq!((all.sent_packets, all.dropped, all.qlen, all.backlog), (1, 2, 2, 200));
    assert_eq!(queue.classes(), [name(1), name(2), name(3)]);
}

/// Goal: a level is that of the highest class below and one. Method: a class with a leaf and a parent below.
#[test]
fn levels() {
    let mut queue: Hfsc<Parcel> = Hfsc::new();
    for (parent, class) in [(None, 1), (Some(1), 2), (Some(1), 3), (Some(3), 4), (Some(1), 5)] {
        queue.add_class(parent.map(name), name(class), share(1)).expect("it can be");
    }
    let levels = [1, 2, 3, 4, 5].map(|class| queue.class_statistics(name(class)).expect("it is there").level);
    assert_eq!(levels, [2, 0, 1, 0, 0]);
}

/// Goal: a queue that holds packets when it is put into a leaf sends them, and packets of one byte count.
/// Method: two leaves of equal shares, one with a full queue put into it.
#[test]
fn a_full_queue_sends() {
    let mut queue = Hfsc::new();
    for class in [1, 2] {
        queue.add_class(None, name(class), share(1_000)).expect("it can be");
    }
    let mut full = Fifo::new(FifoLimit::Packets(10));
    (0..6).for_each(|_| assert!(full.enqueue(Nanos(0), packet(1, 1)).is_accepted()));
    queue.set_leaf(Nanos(0), name(1), Box::new(full)).expect("it is a leaf");
    (0..6).for_each(|_| assert!(queue.enqueue(Nanos(0), packet(2, 1)).is_accepted()));
    for _ in 0..6 {
        assert!(queue.dequeue(Nanos(0)).packet().is_some());
    }
    let sent = [1, 2].map(|class| queue.class_statistics(name(class)).expect("it is there").queue.sent_bytes);
    assert_eq!(sent, [3, 3]);
}

/// Goal: of two leaves that are throttled the one that is due first is waited for, and a reset forgets both.
/// Method: gates of 7 ms and of 10 ms.
#[test]
fn the_first_throttled_leaf_is_waited_for() {
    let mut queue = Hfsc::new();
    for (class, every) in [(1, 10), (2, 7)] {
        queue.add_class(None, name(class), share(1)).expect("it can be");
        let gate = Gate::new(Nanos(0), every * MILLISECOND, 0);
        queue.set_leaf(Nanos(0), name(class), Box::new(gate)).expect("it is a leaf");
        (0..2).for_each(|_| assert!(queue.enqueue(Nanos(0), packet(class, 100)).is_accepted()));
    }
    (0..2).for_each(|_| assert!(queue.dequeue(Nanos(0)).packet().is_some()));
    assert_eq!(throttled(queue.dequeue(Nanos(0))), Nanos(7 * MILLISECOND));
    queue.reset(Nanos(1));
    assert_eq!(queue.dequeue(Nanos(1)), Dequeued::Empty);
}

/// Goal: a packet never passes more than 64 classes above its own. Method: so many in each other, and one.
#[test]
fn trees_are_not_endless() {
    let mut queue: Hfsc<Parcel> = Hfsc::new();
    let mut parent = None;
    for class in 1..=65 {
        if class < 65 {
            queue.add_class(parent, name(class), share(1_000)).expect("not too deep");
            parent = Some(name(class));
        } else {
            let refused = queue.add_class(parent, name(class), share(1_000));
            assert_eq!(refused, Err(HfscError::TooDeep(name(class))));
        }
    }
}

/// Goal: what cannot be is refused, by name. Method: one of each.
#[test]
fn what_cannot_be_is_refused() {
    let mut queue: Hfsc<Parcel> = Hfsc::new();
    queue.add_class(None, name(1), share(1)).expect("it can be");
    queue.add_class(None, name(2), guarantee(ServiceCurve::linear(1))).expect("it can be");
    let limit = Some(ServiceCurve::linear(1));
    let ends = ServiceCurve::two_piece(1, Nanos(1), 0);
    let nowhere = ServiceCurve::linear(0);
    let limited = HfscClass { realtime: limit, upper_limit: limit, ..share(1) };
    let nothing = HfscClass { realtime: Some(nowhere), ..share(1) };
    let refused = [
        (None, 1, share(1), HfscError::Exists(name(1))),
        (Some(7), 3, share(1), HfscError::Unknown(name(7))),
        (Some(2), 3, share(1), HfscError::ParentWithoutShare(name(2))),
        (None, 3, HfscClass::default(), HfscError::NoCurve(name(3))),
        (None, 3, share(0), HfscError::ZeroCurve(name(3))),
        (None, 3, nothing, HfscError::ZeroCurve(name(3))),
        (None, 3, HfscClass::guaranteed_share(ends), HfscError::ZeroCurve(name(3))),
        (None, 3, HfscClass { upper_limit: limit, ..HfscClass::default() }, HfscError::NoShare(name(3))),
        (None, 3, HfscClass { link_share: None, ..limited }, HfscError::NoShare(name(3))),
        (None, 3, HfscClass { upper_limit: Some(nowhere), ..limited }, HfscError::ZeroCurve(name(3))),
        (None, 3, HfscClass { link_share: Some(nowhere), ..limited }, HfscError::ZeroCurve(name(3))),
    ];
    for (parent, class, config, why) in refused {
        assert_eq!(queue.add_class(parent.map(name), name(class), config), Err(why), "{config:?}");
    }
    queue.add_class(Some(name(1)), name(3), share(1)).expect("it can be");
    assert_eq!(queue.remove_class(name(1)), Err(HfscError::HasChildren(name(1))));
    let fifo = Box::new(Fifo::new(FifoLimit::Packets(1)));
    assert_eq!(queue.set_leaf(Nanos(0), name(1), fifo), Err(HfscError::HasChildren(name(1))));
    let alone = guarantee(ServiceCurve::linear(1));
    assert_eq!(queue.change_class(Nanos(0), name(1), alone), Err(HfscError::ParentWithoutShare(name(1))));
}

/// Goal: extremes neither panic nor hang. Method: the greatest and the least of everything, from the first
/// moment to the last.
#[test]
fn extremes_are_survived() {
    let ends = [1, u64::MAX];
    let curves = ends.iter().flat_map(|m1| {
        let spans = [0, u64::MAX].into_iter();
        spans.flat_map(move |d| ends.map(|m2| ServiceCurve::two_piece(*m1, Nanos(d), m2)))
    });
    for curve in curves {
        let mut queue = Hfsc::new();
        let class = HfscClass { upper_limit: Some(curve), ..HfscClass::guaranteed_share(curve) };
        queue.add_class(None, name(1), class).expect("it can be");
        queue.add_class(Some(name(1)), name(2), class).expect("it can be");
        queue.add_class(Some(name(1)), name(3), share(1)).expect("it can be");
        queue.set_leaf(Nanos(0), name(3), Box::new(gate(0))).expect("it is a leaf");
        for now in [0, u64::MAX / 2, u64::MAX] {
            for class in [2, 3].repeat(3) {
                assert!(queue.enqueue(Nanos(now), packet(class, u32::MAX)).is_accepted(), "{curve:?}");
            }
            let sent = (0..3).filter_map(|_| queue.dequeue(Nanos(now)).packet()).count();
            assert!(sent > 0 || now == 0, "{curve:?} at {now}");
        }
    }
}

/// Goal: what `tc` shows as sent and dropped is a leaf's own, as in the kernel, where classes above have only
/// their work. Method: a packet that is sent and one that finds no room, below a class.
#[test]
fn classes_above_leaves_send_nothing_themselves() {
    let mut queue = Hfsc::new();
    queue.add_class(None, name(1), share(1)).expect("it can be");
    queue.add_class(Some(name(1)), name(2), share(1)).expect("it can be");
    queue.set_leaf(Nanos(0), name(2), Box::new(Fifo::new(FifoLimit::Packets(1)))).expect("a leaf");
    let verdicts = [100, 100].map(|bytes| queue.enqueue(Nanos(0), packet(2, bytes)));
    assert_eq!(verdicts, [Enqueued::Queued, Enqueued::Dropped]);
    assert!(queue.dequeue(Nanos(0)).packet().is_some());
    let shown = |class| {
        let shown = Classful::class_statistics(&queue, name(class)).expect("it is there");
        (shown.sent_packets, shown.dropped)
    };
    assert_eq!([1, 2].map(shown), [(0, 0), (1, 1)]);
    assert_eq!(queue.class_statistics(name(1)).expect("it is there").queue.sent_bytes, 100, "its work");
}
