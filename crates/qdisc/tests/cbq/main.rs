//! `Cbq` by its public interface, on a link of 1,000,000 bytes per second that takes packets one after the
//! other. What a class gets is estimated by the discipline, so shares are checked to a few percent.

mod agreement;
#[path = "../common/mod.rs"]
mod common;
mod model;

use common::{Parcel, id, rate};
use proptest::prelude::*;
use quietcore_core::Nanos;
use quietcore_qdisc::{
    Cbq, CbqClass, CbqError, CbqOverlimit, CbqSettings, ClassId, Dequeued, Fifo, FifoLimit, Htb, HtbClass,
    HtbSettings, InnerQdisc, Qdisc,
};

const LINK: u64 = 1_000_000;
const SECOND: Nanos = Nanos(1_000_000_000);

fn class(bytes: u64) -> CbqClass {
    CbqClass::new(rate(bytes))
}

fn cbq(classes: &[(u16, CbqClass)]) -> Cbq<Parcel> {
    let mut cbq = Cbq::new(CbqSettings::new(rate(LINK)));
    for &(minor, told) in classes {
        cbq.add_class(None, id(minor), told).expect("new");
    }
    cbq
}

/// Bytes that each of `busy` sends in a second in which it always has packets of 1,000 bytes. The delay
/// timer is armed by itself, as a driver with two timers does.
fn shares(cbq: &mut Cbq<Parcel>, busy: &[u16]) -> Vec<u64> {
    let (mut now, mut bytes) = (Nanos(0), vec![0; busy.len()]);
    while now < SECOND {
        for &minor in busy {
            while cbq.class(id(minor)).expect("added").queue.qlen < 2 {
                let parcel = Parcel { number: 0, class: id(minor), bytes: 1_000 };
                assert!(cbq.enqueue(now, parcel).is_accepted());
            }
        }
        match cbq.dequeue(now) {
            Dequeued::Packet(parcel) => {
                let from = busy.iter().position(|&minor| id(minor) == parcel.class).expect("it was fed");
                bytes[from] += u64::from(parcel.bytes);
                now = Nanos(now.0 + rate(LINK).time(parcel.bytes).0);
            }
            Dequeued::Throttled(until) => {
                assert!(until > now, "a busy loop at {now:?}");
                now = until;
                if cbq.delay_timer().is_some_and(|due| due <= now) {
                    cbq.end_delays(now);
                }
            }
            Dequeued::Empty => panic!("packets are queued"),
        }
    }
    bytes
}

fn check(got: &[u64], expected: &[u64]) {
    for (index, (&got, &expected)) in got.iter().zip(expected).enumerate() {
        let slack = expected / 20 + 25_000;
        assert!(got.abs_diff(expected) <= slack, "class {index}: {got} bytes, not {expected}");
    }
}

/// Goal: a bounded class has its rate, one that may borrow has the link. Method: each alone, and both
/// strategies.
#[test]
fn bounds_hold_and_borrowers_borrow() {
    for overlimit in [CbqOverlimit::Classic, CbqOverlimit::Delay] {
        let bounded = CbqClass { bounded: true, overlimit, ..class(100_000) };
        check(&shares(&mut cbq(&[(1, bounded)]), &[1]), &[100_000]);
        let mut free = cbq(&[(1, CbqClass { overlimit, ..class(100_000) }), (2, class(900_000))]);
        let got = shares(&mut free, &[1]);
        check(&got, &[LINK]);
        assert!(free.class(id(1)).expect("added").borrows > 0);
    }
}

/// Goal: the delay timer is apart from the watchdog. Method: two bounded classes, one of each strategy, look
/// at both timers.
#[test]
fn two_timers() {
    let told = |overlimit| CbqClass { bounded: true, max_burst: 0, overlimit, ..class(100_000) };
    let mut cbq = cbq(&[(1, told(CbqOverlimit::Delay)), (2, told(CbqOverlimit::Classic))]);
    feed(&mut cbq, 0, 1, 2);
    assert!(cbq.dequeue(Nanos(0)).packet().is_some());
    assert_eq!(cbq.delay_timer(), None);
    let Dequeued::Throttled(until) = cbq.dequeue(Nanos(1_000_000)) else { panic!("it is above its rate") };
    assert_eq!(cbq.delay_timer(), Some(until));
    for _ in 0..2 {
        assert!(
            cbq.enqueue(Nanos(1_000_000), Parcel { number: 0, class: id(2), bytes: 1_500 }).is_accepted()
        );
    }
    assert!(cbq.dequeue(Nanos(1_000_000)).packet().is_some(), "the other one is in nobody's way");
    let Dequeued::Throttled(both) = cbq.dequeue(Nanos(2_000_000)) else { panic!("both are") };
    assert_eq!((cbq.delay_timer(), both), (Some(until), until), "the first of the two timers");
    assert_eq!(
        cbq.class(id(1)).map(|class| class.queue.overlimits),
        Some(1),
        "it is not asked again before that"
    );
    assert_eq!(cbq.statistics().overlimits, 2, "twice nothing could leave");
    cbq.end_delays(until);
    assert_eq!(cbq.delay_timer(), None);
    assert!(cbq.dequeue(until).packet().is_some());
    assert!(matches!(cbq.dequeue(until), Dequeued::Throttled(watchdog) if watchdog > until));
    assert_eq!(cbq.delay_timer(), None, "what is left waits for the watchdog");
}

/// Goal: lower priorities go first; within one, weights decide, of which 0 is 1. Method: both may have the
/// whole link.
#[test]
fn priorities_and_weights() {
    let told = |prio| CbqClass { prio, ..class(LINK) };
    let got = shares(&mut cbq(&[(1, told(2)), (2, told(1))]), &[1, 2]);
    check(&got, &[0, LINK]);
    let told = |weight| CbqClass { weight: Some(weight), prio: 3, allot: 3_000, ..class(LINK) };
    let got = shares(&mut cbq(&[(1, told(1)), (2, told(3))]), &[1, 2]);
    check(&got, &[LINK / 4, LINK / 4 * 3]);
    check(&shares(&mut cbq(&[(1, told(0)), (2, told(0))]), &[1, 2]), &[LINK / 2; 2]);
}

/// A department of 900,000 with one poor class, 1:11, and a class beside it, 1:2; all may borrow. The
/// priorities are of these two.
fn department(poor: u8, beside: u8) -> Cbq<Parcel> {
    let told = |bytes, prio| CbqClass { prio, max_burst: 0, ..class(bytes) };
    let mut cbq = cbq(&[(1, CbqClass { max_burst: 20, ..class(900_000) }), (2, told(10_000, beside))]);
    cbq.add_class(Some(id(1)), id(11), told(10_000, poor)).expect("new");
    cbq
}

fn feed(cbq: &mut Cbq<Parcel>, at: u64, minor: u16, count: u32) {
    for number in 0..count {
        let parcel = Parcel { number, class: id(minor), bytes: 1_000 };
        assert!(cbq.enqueue(Nanos(at), parcel).is_accepted());
    }
}

fn next(cbq: &mut Cbq<Parcel>, at: u64) -> Option<ClassId> {
    cbq.dequeue(Nanos(at)).packet().map(|parcel| parcel.class)
}

/// Goal: no class borrows while a class that need not borrow has something, whatever the priorities. Method:
/// a poor class that is served first, and one beside it to which a packet comes.
#[test]
fn borrowers_wait_for_who_need_not_borrow() {
    let mut cbq = department(1, 8);
    feed(&mut cbq, 0, 11, 3);
    assert_eq!(next(&mut cbq, 0), Some(id(11)));
    feed(&mut cbq, 500_000, 2, 1);
    let order = [1_000_000, 2_000_000].map(|at| next(&mut cbq, at));
    assert_eq!(order, [Some(id(2)), Some(id(11))]);
}

/// Goal: who borrows near goes before who borrows far, whatever the priorities. Method: the department lends
/// to its own before the link does to the class beside it, which is served first.
#[test]
fn near_lenders_go_first() {
    let mut cbq = department(8, 1);
    feed(&mut cbq, 0, 2, 1);
    assert_eq!(next(&mut cbq, 0), Some(id(2)));
    feed(&mut cbq, 500_000, 11, 3);
    feed(&mut cbq, 500_000, 2, 1);
    let order = [1_000_000, 2_000_000].map(|at| next(&mut cbq, at));
    assert_eq!(order, [Some(id(11)); 2]);
    assert_eq!(cbq.class(id(1)).map(|department| department.borrows), Some(1));
}

/// Goal: bounded classes keep their rates together. Method: three, whose rates do not fill the link.
#[test]
fn bounded_classes_side_by_side() {
    let told = |bytes| CbqClass { bounded: true, prio: 4, ..class(bytes) };
    let mut cbq = cbq(&[(1, told(100_000)), (2, told(200_000)), (3, told(400_000))]);
    check(&shares(&mut cbq, &[1, 2, 3]), &[100_000, 200_000, 400_000]);
}

/// Goal: what an isolated class sends is not its parent's. Method: one of each below the link.
#[test]
fn isolated_classes_count_for_themselves() {
    let mut cbq = cbq(&[(1, CbqClass { isolated: true, ..class(LINK) }), (2, class(LINK))]);
    for minor in [1, 2] {
        feed(&mut cbq, 0, minor, 1);
        assert_eq!(next(&mut cbq, 0), Some(id(minor)));
    }
    let packets = [0, 1, 2].map(|minor| cbq.class(id(minor)).expect("added").queue.sent_packets);
    assert_eq!(packets, [1, 1, 1]);
}

/// Goal: a class that was above its rate for long sends `min_burst` packets at once, and has its rate all the
/// same. Method: how often it was delayed in a second.
#[test]
fn off_time_makes_bursts() {
    let told = |min_burst| CbqClass { bounded: true, max_burst: 8, min_burst, ..class(100_000) };
    let delays = [0, 8].map(|min_burst| {
        let mut cbq = cbq(&[(1, told(min_burst))]);
        check(&shares(&mut cbq, &[1]), &[100_000]);
        cbq.class(id(1)).expect("added").overactions
    });
    assert!(delays[1] * 4 < delays[0], "{delays:?}");
}

/// Goal: after a reset a class is as one that never sent. Method: one that is above its rate.
#[test]
fn a_reset_ends_all_debts() {
    for overlimit in [CbqOverlimit::Classic, CbqOverlimit::Delay] {
        let mut cbq = cbq(&[(1, CbqClass { bounded: true, max_burst: 0, overlimit, ..class(1_000) })]);
        for now in [Nanos(0), Nanos(7)] {
            feed(&mut cbq, now.0, 1, 3);
            assert!(cbq.dequeue(now).packet().is_some());
            assert!(matches!(cbq.dequeue(now), Dequeued::Throttled(_)));
            cbq.reset(Nanos(7));
            assert_eq!((cbq.dequeue(Nanos(7)), cbq.delay_timer()), (Dequeued::Empty, None));
        }
    }
}

/// Goal: a class whose own queue is throttled is in no other's way and is not forgotten. Method: an `htb` of
/// 100,000 bytes per second inside, and a class beside it.
#[test]
fn a_throttled_class_steps_aside() {
    let mut cbq = cbq(&[(1, class(LINK)), (2, class(LINK))]);
    let mut inner = Htb::new(HtbSettings { default_class: 7, ..HtbSettings::default() });
    let told = HtbClass { burst: Some(0), cburst: Some(0), ..HtbClass::new(rate(100_000)) };
    inner.add_class(None, id(7), told).expect("new");
    cbq.set_inner(id(1), InnerQdisc::new(inner)).expect("added");
    feed(&mut cbq, 0, 1, 2);
    assert_eq!(next(&mut cbq, 0), Some(id(1)));
    for now in [Nanos(1_000_000), Nanos(2_000_000)] {
        assert_eq!(cbq.dequeue(now), Dequeued::Throttled(Nanos(10_000_000)));
        feed(&mut cbq, now.0, 1, 1);
    }
    feed(&mut cbq, 3_000_000, 2, 1);
    let order = [3_000_000, 4_000_000, 10_000_000].map(|at| next(&mut cbq, at));
    assert_eq!(order, [Some(id(2)), None, Some(id(1))]);
    assert_eq!(cbq.statistics().qlen, 2);
}

/// Goal: each refusal has its reason. Method: one of each.
#[test]
fn refusals() {
    let mut cbq = cbq(&[]);
    let told = class(1_000);
    assert_eq!(cbq.remove_class(id(0)), Err(CbqError::InUse(id(0))), "the link, though nothing is below it");
    assert_eq!(cbq.add_class(None, id(1), told), Ok(()));
    assert_eq!(cbq.add_class(None, ClassId::new(2, 1), told), Err(CbqError::Foreign(ClassId::new(2, 1))));
    assert_eq!(cbq.add_class(None, id(1), told), Err(CbqError::Exists(id(1))));
    assert_eq!(cbq.add_class(Some(id(9)), id(2), told), Err(CbqError::UnknownParent(id(9))));
    for minor in 2..=7 {
        assert_eq!(cbq.add_class(Some(id(minor - 1)), id(minor), told), Ok(()), "{minor}");
    }
    assert_eq!(cbq.add_class(Some(id(7)), id(8), told), Err(CbqError::TooDeep(id(8))));
    assert_eq!(cbq.remove_class(id(6)), Err(CbqError::InUse(id(6))));
    assert_eq!([cbq.remove_class(id(7)), cbq.remove_class(id(6))], [Ok(()); 2]);
    assert_eq!(cbq.remove_class(id(6)), Err(CbqError::Unknown(id(6))));
    let queue = InnerQdisc::new(Fifo::new(FifoLimit::Packets(1)));
    assert_eq!(cbq.set_inner(id(6), queue), Err(CbqError::Unknown(id(6))));
}

#[derive(Clone, Debug)]
enum Step {
    Enqueue(u16, u32),
    Dequeue,
    Wait(u64),
    Change(u16, CbqClass),
    Remove(u16),
}

fn told() -> impl Strategy<Value = CbqClass> {
    (1_000..LINK, 0..10_u8, any::<[bool; 3]>(), 0..30_u32, 0..10_u32, 0..24_u8).prop_map(
        |(bytes, prio, [bounded, isolated, delay], max_burst, min_burst, ewma_log)| CbqClass {
            prio,
            bounded,
            isolated,
            max_burst,
            min_burst,
            ewma_log,
            overlimit: if delay { CbqOverlimit::Delay } else { CbqOverlimit::Classic },
            ..class(bytes)
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => (0..9_u16, 0..2_000_u32).prop_map(|(class, bytes)| Step::Enqueue(class, bytes)),
        25 => Just(Step::Dequeue),
        10 => (0..20_000_000_u64).prop_map(Step::Wait),
        1 => (1..8_u16, told()).prop_map(|(class, told)| Step::Change(class, told)),
        1 => (1..8_u16).prop_map(Step::Remove),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 3 } else { 300 }))]

    /// Goal: whatever happens, no packet is lost, doubled or overtaken in its class, no moment that is named
    /// is past, and in the end all leave. Method: random trees and steps.
    #[test]
    fn every_packet_leaves_in_order(
        tree in prop::collection::vec((0..4_u16, told()), 1..8),
        steps in prop::collection::vec(step(), 1..300),
    ) {
        let mut cbq = cbq(&[]);
        for (minor, (parent, told)) in (1_u16..).zip(tree) {
            let parent = parent.min(minor - 1);
            cbq.add_class((parent > 0).then(|| id(parent)), id(minor), told).expect("new");
        }
        let (mut now, mut number, mut last) = (0, 0, [0; 9]);
        let dequeue = |cbq: &mut Cbq<Parcel>, now: u64, last: &mut [u32; 9]| {
            let got = cbq.dequeue(Nanos(now));
            match &got {
                Dequeued::Packet(parcel) => {
                    let before = &mut last[(parcel.class.0 & 0xffff) as usize];
                    assert!(parcel.number > *before, "{parcel:?} after {before}");
                    *before = parcel.number;
                }
                Dequeued::Throttled(until) => assert!(until.0 > now, "a busy loop at {now}"),
                Dequeued::Empty => assert_eq!(cbq.statistics().qlen, 0),
            }
            let all = cbq.statistics();
            (got, all.sent_packets + all.dropped + all.qlen)
        };
        for step in steps {
            match step {
                Step::Enqueue(class, bytes) => {
                    number += 1;
                    let parcel = Parcel { number, class: id(class), bytes };
                    assert!(cbq.enqueue(Nanos(now), parcel).is_accepted());
                }
                Step::Dequeue => assert_eq!(dequeue(&mut cbq, now, &mut last).1, u64::from(number)),
                Step::Wait(nanos) => now += nanos,
                Step::Change(class, told) => assert!(
                    cbq.change_class(id(class), told).is_ok() == cbq.class(id(class)).is_some()
                ),
                Step::Remove(class) => {
                    let _ = cbq.remove_class(id(class));
                }
            }
        }
        for _ in 0..100_000 {
            match dequeue(&mut cbq, now, &mut last).0 {
                Dequeued::Packet(_) => {}
                Dequeued::Throttled(until) => now = until.0,
                Dequeued::Empty => break,
            }
        }
        assert_eq!(cbq.statistics().qlen, 0, "all have left");
        assert_eq!(cbq.statistics().sent_packets + cbq.statistics().dropped, u64::from(number));
    }
}
