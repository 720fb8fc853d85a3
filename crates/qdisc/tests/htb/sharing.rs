//! Who gets what a link leaves, in numbers: a root of 1,000,000 bytes per second and what is below it.

use crate::busy::{bytes_of, class, keep_busy};
use crate::common::{Parcel, id};
use quietcore_core::Nanos;
use quietcore_qdisc::{Dequeued, Htb, HtbClass, HtbSettings, Qdisc};

const SECOND: Nanos = Nanos(1_000_000_000);
const PACKET: u32 = 1_000;

/// What a class may be off after a second: its burst, its ceil's burst, and a packet of every other class.
const SLACK: u64 = 8_000;

fn htb(leaves: &[(u16, HtbClass)]) -> Htb<Parcel> {
    let mut htb = Htb::new(HtbSettings::default());
    htb.add_class(None, id(1), class(1_000_000, 1_000_000)).expect("new");
    for &(minor, told) in leaves {
        htb.add_class(Some(id(1)), id(minor), told).expect("new");
    }
    htb
}

/// What the classes of `busy` send in a second in which all of them always have something.
fn shares(htb: &mut Htb<Parcel>, busy: &[u16]) -> Vec<u64> {
    let wanted: Vec<_> = busy.iter().map(|&minor| (id(minor), PACKET)).collect();
    let departures = keep_busy(htb, &wanted, Nanos(0), SECOND);
    busy.iter().map(|&minor| bytes_of(&departures, id(minor))).collect()
}

fn check(got: &[u64], expected: &[u64]) {
    for (index, (&got, &expected)) in got.iter().zip(expected).enumerate() {
        assert!(got.abs_diff(expected) <= SLACK, "class {index}: {got} bytes, not {expected}");
    }
}

/// Goal: who is alone reaches its ceil, and no more. Method: the ceil of the link, and half of it.
#[test]
fn alone_a_class_reaches_its_ceil() {
    for ceil in [1_000_000, 500_000] {
        let mut htb = htb(&[(10, class(100_000, ceil)), (20, class(900_000, 1_000_000))]);
        let got = shares(&mut htb, &[10]);
        check(&got, &[ceil]);
        let [root, leaf] = [1, 10].map(|minor| htb.class(id(minor)).expect("added"));
        assert_eq!(root.lends, leaf.borrows, "what it borrowed is the root's");
        assert!(leaf.borrows > leaf.lends, "{leaf:?}");
    }
}

/// Goal: rates are kept under load, whatever the priorities. Method: rates that add up to the link's.
#[test]
fn everybody_has_its_rate() {
    let told = |rate, prio| HtbClass { prio, ..class(rate, 1_000_000) };
    let mut htb = htb(&[(10, told(100_000, 0)), (20, told(300_000, 1)), (30, told(600_000, 2))]);
    check(&shares(&mut htb, &[10, 20, 30]), &[100_000, 300_000, 600_000]);
}

/// Goal: among borrowers the lowest priority has it all. Method: 800,000 to borrow, twice the other way
/// round.
#[test]
fn what_is_left_goes_by_priority() {
    let told = |prio| HtbClass { prio, ..class(100_000, 1_000_000) };
    let mut first = htb(&[(10, told(0)), (20, told(1))]);
    check(&shares(&mut first, &[10, 20]), &[900_000, 100_000]);
    let mut second = htb(&[(10, told(7)), (20, told(3))]);
    check(&shares(&mut second, &[10, 20]), &[100_000, 900_000]);
    let mut third = htb(&[(10, told(200)), (20, told(6)), (30, told(7))]);
    check(&shares(&mut third, &[10, 20, 30]), &[100_000, 800_000, 100_000]);
}

/// Goal: among borrowers of one priority it goes by quantum. Method: quanta of 2,000 and 6,000.
#[test]
fn what_is_left_goes_by_quantum() {
    let told = |quantum| HtbClass { quantum: Some(quantum), ..class(100_000, 1_000_000) };
    let mut htb = htb(&[(10, told(2_000)), (20, told(6_000))]);
    check(&shares(&mut htb, &[10, 20]), &[300_000, 700_000]);
}

/// Goal: a near lender goes before a far one: what a department does not use goes to its own first. Method:
/// two departments of half the link, one with an idle leaf.
#[test]
fn near_lenders_go_first() {
    let mut htb = htb(&[(2, class(500_000, 1_000_000)), (3, class(500_000, 1_000_000))]);
    for (parent, leaf) in [(2, 20), (2, 21), (3, 30)] {
        htb.add_class(Some(id(parent)), id(leaf), class(100_000, 1_000_000)).expect("new");
    }
    check(&shares(&mut htb, &[20, 30]), &[500_000, 500_000]);
    assert_eq!(htb.class(id(2)).map(|class| class.level), Some(6));
}

/// Goal: among classes that borrow for their leaves, turns go round, too. Method: two departments without
/// any share to speak of, one with two leaves and one with one: each leaf has a quantum per round of its
/// own department, and departments change at the end of theirs.
#[test]
fn departments_take_turns() {
    let poor = HtbClass { quantum: Some(1_000), ..class(1_000, 1_000_000) };
    let mut htb = htb(&[(2, poor), (3, poor)]);
    for (parent, leaf) in [(2, 20), (2, 21), (3, 30)] {
        htb.add_class(Some(id(parent)), id(leaf), poor).expect("new");
    }
    check(&shares(&mut htb, &[20, 21, 30]), &[333_333, 333_333, 333_333]);
}

/// Goal: the moments that are named are exact, and lead to a packet. Method: a nanosecond before each. The
/// first is the root's, which may lend again before its leaf may borrow.
#[test]
fn moments_are_exact() {
    let mut htb = htb(&[(10, class(100_000, 300_000))]);
    let parcel = Parcel { number: 0, class: id(10), bytes: 1_000 };
    for _ in 0..4 {
        assert!(htb.enqueue(Nanos(0), parcel).is_accepted());
    }
    for _ in 0..2 {
        assert!(htb.dequeue(Nanos(0)).packet().is_some());
    }
    // 400 bytes above the burst of its ceil: 400 / 1,000,000 of a second, 400 / 300,000.
    for (now, named) in [(0, 400_000), (399_999, 400_000), (400_000, 1_333_333), (1_333_332, 1_333_333)] {
        assert_eq!(htb.dequeue(Nanos(now)), Dequeued::Throttled(Nanos(named)), "at {now}");
    }
    assert!(htb.dequeue(Nanos(1_333_333)).packet().is_some());
}
