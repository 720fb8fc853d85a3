//! Classes that come, change and go, while packets are queued.

use crate::common::{Parcel, throttled};
use crate::{MILLISECOND, name, share};
use proptest::prelude::*;
use quietcore_core::Nanos;
use quietcore_qdisc::{Dequeued, Hfsc, HfscClass, Qdisc, ServiceCurve};

fn packet(class: usize) -> Parcel {
    Parcel { class: name(class), number: 0, bytes: 100 }
}

fn fill(queue: &mut Hfsc<Parcel>, class: usize, count: u32) {
    (0..count).for_each(|_| assert!(queue.enqueue(Nanos(0), packet(class)).is_accepted()));
}

/// How many of the next `count` packets are of each of two classes.
fn among(queue: &mut Hfsc<Parcel>, count: u32, classes: [usize; 2]) -> [usize; 2] {
    let next = |_| queue.dequeue(Nanos(0)).packet().expect("nothing is held back").class;
    let sent: Vec<_> = (0..count).map(next).collect();
    classes.map(|class| sent.iter().filter(|sent| **sent == name(class)).count())
}

/// Goal: a new share counts from the change on, of a leaf and of an inner class. Method: 1 to 1, then 3 to 1.
#[test]
fn a_share_changes_from_now_on() {
    let mut queue = Hfsc::new();
    for class in [1, 2] {
        queue.add_class(None, name(class), share(1_000)).expect("it can be");
    }
    queue.add_class(Some(name(1)), name(3), share(1)).expect("it can be");
    fill(&mut queue, 2, 500);
    fill(&mut queue, 3, 500);
    assert_eq!(among(&mut queue, 100, [3, 2]), [50, 50]);
    queue.change_class(Nanos(0), name(1), share(3_000)).expect("it can be");
    let counted = queue.class_statistics(name(1)).expect("it is there").queue;
    assert_eq!(counted.sent_bytes, 50 * 100, "a change sends nothing");
    let [inner, other] = among(&mut queue, 100, [3, 2]);
    assert!((74..=76).contains(&inner) && inner + other == 100, "{inner} to {other}");
    queue.change_class(Nanos(0), name(2), share(9_000)).expect("it can be");
    let [inner, other] = among(&mut queue, 100, [3, 2]);
    assert!((24..=26).contains(&inner) && inner + other == 100, "{inner} to {other}");
}

/// Goal: a change gives no class a fresh start. Method: a class that had its part for a long time is changed
/// to what it is, again and again.
#[test]
fn a_change_does_not_set_back() {
    let mut queue = Hfsc::new();
    for (class, rate) in [(1, 1), (2, 1_000)] {
        queue.add_class(None, name(class), share(rate)).expect("it can be");
        fill(&mut queue, class, 500);
    }
    assert_eq!(among(&mut queue, 2, [1, 2]), [1, 1]);
    for _ in 0..10 {
        queue.change_class(Nanos(0), name(1), share(1)).expect("it can be");
        assert_eq!(among(&mut queue, 10, [1, 2]), [0, 10]);
    }
}

/// Goal: a class that is given no share for a while has what it had: no sibling begins behind it. Method: one
/// of two equal classes sends alone and loses its share, its sibling begins, then both have shares again.
#[test]
fn a_share_that_went_is_remembered() {
    let mut queue = Hfsc::new();
    for class in [1, 2] {
        queue.add_class(None, name(class), share(1_000)).expect("it can be");
    }
    fill(&mut queue, 1, 60);
    assert_eq!(among(&mut queue, 50, [1, 2]), [50, 0]);
    let alone = HfscClass { realtime: Some(ServiceCurve::linear(1)), ..HfscClass::default() };
    queue.change_class(Nanos(0), name(1), alone).expect("it can be");
    assert!(queue.dequeue(Nanos(0)).packet().is_some(), "the guarantee begins");
    fill(&mut queue, 2, 60);
    assert_eq!(among(&mut queue, 1, [1, 2]), [0, 1]);
    queue.change_class(Nanos(0), name(1), share(1_000)).expect("it can be");
    assert_eq!(among(&mut queue, 1, [1, 2]), [1, 0], "its sibling had as much");
    assert_eq!(among(&mut queue, 16, [1, 2]), [8, 8]);
}

/// Goal: limits and guarantees begin and end with a change. Method: one class with packets all the time.
#[test]
fn limits_and_guarantees_come_and_go() {
    let mut queue = Hfsc::new();
    queue.add_class(None, name(1), share(1)).expect("it can be");
    fill(&mut queue, 1, 10);
    let now = Nanos(5 * MILLISECOND);
    let limited = HfscClass { upper_limit: Some(ServiceCurve::linear(1_000)), ..share(1) };
    queue.change_class(now, name(1), limited).expect("it can be");
    assert!(queue.dequeue(now).packet().is_some());
    assert_eq!(throttled(queue.dequeue(now)), Nanos(105 * MILLISECOND));
    let guaranteed = HfscClass { realtime: Some(ServiceCurve::linear(10_000)), ..limited };
    queue.change_class(now, name(1), guaranteed).expect("it can be");
    assert!(queue.dequeue(now).packet().is_some());
    assert_eq!(throttled(queue.dequeue(now)), Nanos(15 * MILLISECOND), "the limit is not the guarantee's");
    let alone = HfscClass { realtime: guaranteed.realtime, ..HfscClass::default() };
    queue.change_class(now, name(1), alone).expect("it can be");
    assert!(queue.dequeue(now).packet().is_some());
    assert_eq!(throttled(queue.dequeue(now)), Nanos(15 * MILLISECOND));
    queue.change_class(now, name(1), share(1)).expect("it can be");
    assert_eq!(among(&mut queue, 7, [1, 2]), [7, 0]);
    assert_eq!(queue.dequeue(now), Dequeued::Empty);
}

/// Goal: what a class held when it went is dropped and counted. Method: a leaf becomes a parent, a child
/// goes, the parent is a leaf again.
#[test]
fn what_a_class_held_is_dropped() {
    let mut queue = Hfsc::new();
    queue.add_class(None, name(1), share(1)).expect("it can be");
    fill(&mut queue, 1, 3);
    queue.add_class(Some(name(1)), name(2), share(1)).expect("it can be");
    assert_eq!((queue.statistics().dropped, queue.dequeue(Nanos(0))), (3, Dequeued::Empty));
    fill(&mut queue, 2, 4);
    assert!(queue.dequeue(Nanos(0)).packet().is_some());
    queue.remove_class(name(2)).expect("it has no children");
    assert_eq!((queue.statistics().dropped, queue.dequeue(Nanos(0))), (6, Dequeued::Empty));
    fill(&mut queue, 1, 1);
    assert_eq!(queue.dequeue(Nanos(0)).packet(), Some(packet(1)));
    assert_eq!((queue.statistics().sent_packets, queue.statistics().qlen), (2, 0));
}

/// Goal: after a reset all is as at the beginning, but for what was sent. Method: the same packets before
/// and after, with classes that had used up their bursts.
#[test]
fn a_reset_forgets() {
    let burst = ServiceCurve::two_piece(100_000, Nanos(10 * MILLISECOND), 1_000);
    let mut queue = Hfsc::new();
    queue.add_class(None, name(1), HfscClass::guaranteed_share(burst)).expect("it can be");
    let limited = HfscClass { upper_limit: Some(burst), ..share(5_000) };
    queue.add_class(None, name(2), limited).expect("it can be");
    queue.add_class(Some(name(2)), name(3), share(1)).expect("it can be");
    let mut run = |begin: u64| {
        let (mut sent, mut now) = (Vec::new(), Nanos(begin));
        for class in [1, 3].repeat(20) {
            assert!(queue.enqueue(now, packet(class)).is_accepted());
        }
        while sent.len() < 30 {
            match queue.dequeue(now) {
                Dequeued::Packet(packet) => sent.push((now.0 - begin, packet.class)),
                Dequeued::Throttled(until) => now = until,
                Dequeued::Empty => panic!("there are 40"),
            }
        }
        queue.reset(now);
        assert_eq!((queue.dequeue(now), queue.statistics().qlen), (Dequeued::Empty, 0));
        (sent, now.0)
    };
    let (first, end) = run(0);
    let (second, end) = run(end);
    assert_eq!(second, first, "at once");
    assert_eq!(run(end + 900_000 * MILLISECOND).0, first, "after a while");
    assert_eq!((queue.statistics().sent_packets, queue.statistics().dropped), (90, 0));
}

#[derive(Clone, Debug)]
enum Step {
    Add { parent: usize, class: usize, config: HfscClass },
    Change { class: usize, config: HfscClass },
    Remove(usize),
    Enqueue { class: usize, length: u32 },
    Dequeue,
    Wait(u64),
    Reset,
}

fn step() -> impl Strategy<Value = Step> {
    let curve = || {
        let pieces = (0_u64..100_000, 0_u64..20 * MILLISECOND, 1_u64..100_000);
        prop::option::of(pieces.prop_map(|(m1, d, m2)| ServiceCurve::two_piece(m1, Nanos(d), m2)))
    };
    let config = move || {
        let curves = (curve(), curve(), curve());
        curves.prop_map(|(realtime, link_share, upper_limit)| HfscClass { realtime, link_share, upper_limit })
    };
    prop_oneof![
        2 => (0_usize..7, 1_usize..7, config())
            .prop_map(|(parent, class, config)| Step::Add { parent, class, config }),
        2 => (1_usize..7, config()).prop_map(|(class, config)| Step::Change { class, config }),
        1 => (1_usize..7).prop_map(Step::Remove),
        6 => (1_usize..7, 40_u32..1_500).prop_map(|(class, length)| Step::Enqueue { class, length }),
        6 => Just(Step::Dequeue),
        2 => (0..50 * MILLISECOND).prop_map(Step::Wait),
        1 => Just(Step::Reset),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1_000) })]

    /// Goal: whatever happens to classes, no packet is lost uncounted, and the queue goes on. Method: random
    /// steps, some of which are refused; in the end all that is queued comes out at the moments named.
    #[test]
    fn packets_are_accounted_for(steps in prop::collection::vec(step(), 1..150)) {
        let (mut queue, mut now) = (Hfsc::new(), Nanos(0));
        let (mut arrived, mut forgotten) = (0, 0);
        for step in steps {
            match step {
                Step::Add { parent, class, config } => {
                    let _ = queue.add_class((parent > 0).then(|| name(parent)), name(class), config);
                }
                Step::Change { class, config } => {
                    let _ = queue.change_class(now, name(class), config);
                }
                Step::Remove(class) => {
                    let _ = queue.remove_class(name(class));
                }
                Step::Enqueue { class, length } => {
                    let _ = queue.enqueue(now, Parcel { class: name(class), number: 0, bytes: length });
                    arrived += 1;
                }
                Step::Dequeue => drop(queue.dequeue(now).packet()),
                Step::Wait(span) => now.0 += span,
                Step::Reset => {
                    forgotten += queue.statistics().qlen;
                    queue.reset(now);
                }
            }
            let counted = queue.statistics();
            let accounted = counted.sent_packets + counted.dropped + counted.qlen + forgotten;
            prop_assert_eq!(accounted, arrived, "{:?}", counted);
        }
        loop {
            match queue.dequeue(now) {
                Dequeued::Packet(_) => {}
                Dequeued::Empty => break,
                Dequeued::Throttled(until) => {
                    now = until;
                    prop_assert!(now.0 < u64::MAX && queue.dequeue(now).packet().is_some(), "at {:?}", until);
                }
            }
        }
        prop_assert_eq!(queue.statistics().qlen, 0);
    }
}
