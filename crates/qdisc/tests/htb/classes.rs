//! Adding, removing, errors, statistics, packets of no class, and queues that are throttled.

use crate::busy::class;
use crate::common::{Gate, Parcel, id, rate};
use quietcore_core::Nanos;
use quietcore_qdisc::{
    ClassId, Dequeued, Enqueued, Fifo, FifoLimit, FqCodel, FqCodelSettings, Htb, HtbClass, HtbError,
    HtbQuantumWarning, HtbSettings, InnerQdisc, Qdisc, Tbf, TbfLimit, TbfSettings,
};

fn parcel(class: ClassId) -> Parcel {
    Parcel { number: 0, class, bytes: 1_000 }
}

fn new() -> Htb<Parcel> {
    Htb::new(HtbSettings { direct_qlen: 2, ..HtbSettings::default() })
}

/// Goal: each refusal has its reason, and changes nothing. Method: one of each.
#[test]
fn refusals() {
    let mut htb = new();
    let told = class(1_000, 1_000);
    for foreign in [ClassId::new(2, 1), ClassId::new(1, 0)] {
        assert_eq!(htb.add_class(None, foreign, told), Err(HtbError::Foreign(foreign)));
    }
    assert_eq!(htb.add_class(Some(id(1)), id(2), told), Err(HtbError::UnknownParent(id(1))));
    assert_eq!(htb.change_class(id(1), told), Err(HtbError::Unknown(id(1))));
    assert_eq!(htb.remove_class(id(1)), Err(HtbError::Unknown(id(1))));
    assert_eq!(htb.add_class(None, id(1), told), Ok(()));
    assert_eq!(htb.add_class(None, id(1), told), Err(HtbError::Exists(id(1))));
    assert!(htb.enqueue(Nanos(0), parcel(id(1))).is_accepted());
    assert_eq!(htb.add_class(Some(id(1)), id(2), told), Err(HtbError::HoldsPackets(id(1))));
    assert!(htb.dequeue(Nanos(0)).packet().is_some());
    assert_eq!(htb.add_class(Some(id(1)), id(2), told), Ok(()));
    assert_eq!(htb.remove_class(id(1)), Err(HtbError::HasChildren(id(1))));
    let queue = InnerQdisc::new(Fifo::new(FifoLimit::Packets(1)));
    assert_eq!(htb.set_inner(id(1), queue), Err(HtbError::HasChildren(id(1))));
    let classes: Vec<_> = htb.classes().map(|(id, parent, _)| (id, parent)).collect();
    assert_eq!(classes, [(id(1), None), (id(2), Some(id(1)))]);
}

/// Goal: eight levels and not nine, and who may borrow through all of them. Method: a chain.
#[test]
fn eight_levels() {
    let mut htb = new();
    htb.add_class(None, id(1), class(1_000_000, 1_000_000)).expect("new");
    for minor in 2..=8 {
        htb.add_class(Some(id(minor - 1)), id(minor), class(1, 1_000_000)).expect("within 8 levels");
    }
    assert_eq!(htb.add_class(Some(id(8)), id(9), class(1, 1)), Err(HtbError::TooDeep(id(9))));
    let levels: Vec<_> = (1..=8).map(|minor| htb.class(id(minor)).expect("added").level).collect();
    assert_eq!(levels, [7, 6, 5, 4, 3, 2, 1, 0]);
    assert_eq!(htb.remove_class(id(7)), Err(HtbError::HasChildren(id(7))));
    let queue = InnerQdisc::new(Fifo::new(FifoLimit::Packets(1)));
    assert_eq!(htb.set_inner(id(7), queue), Err(HtbError::HasChildren(id(7))));
    // The first one empties the bursts of all but the root; the second is the root's.
    for at in [0, 400_000] {
        for _ in 0..2 {
            assert!(htb.enqueue(Nanos(at), parcel(id(8))).is_accepted());
        }
        for _ in 0..2 {
            let _ = htb.dequeue(Nanos(at));
        }
    }
    assert_eq!(htb.class(id(1)).map(|root| (root.lends, root.queue.sent_packets)), Some((1, 3)));
}

/// Goal: packets without a class go first, up to their limit, and are counted. Method: the discipline's own
/// id, another discipline's, a class with classes below it.
#[test]
fn packets_of_no_class() {
    let mut htb = new();
    htb.add_class(None, id(1), class(1_000, 1_000)).expect("new");
    htb.add_class(Some(id(1)), id(2), class(1_000, 1_000)).expect("new");
    assert_eq!(htb.enqueue(Nanos(0), parcel(id(2))), Enqueued::Queued);
    let none = [ClassId::new(1, 0), id(1), ClassId::new(2, 2)];
    let verdicts = none.map(|class| htb.enqueue(Nanos(0), parcel(class)));
    assert_eq!(verdicts, [Enqueued::Queued, Enqueued::Queued, Enqueued::Dropped]);
    assert_eq!(htb.direct_packets(), 2);
    let sent: Vec<_> = (0..3).filter_map(|_| htb.dequeue(Nanos(0)).packet()).collect();
    assert_eq!(sent.iter().map(|parcel| parcel.class).collect::<Vec<_>>(), [none[0], none[1], id(2)]);
    assert_eq!((htb.statistics().dropped, htb.statistics().sent_packets), (1, 3));
    assert_eq!(htb.dequeue(Nanos(0)), Dequeued::Empty);
}

/// Goal: packets that name no leaf go to the default class, but those that name the discipline do not.
/// Method: each, with a default class.
#[test]
fn the_default_class() {
    let mut htb = Htb::new(HtbSettings { default_class: 2, ..HtbSettings::default() });
    htb.add_class(None, id(2), class(1_000, 1_000)).expect("new");
    for (class, direct, qlen) in [(ClassId::new(2, 7), 0, 1), (id(3), 0, 2), (ClassId::new(1, 0), 1, 2)] {
        assert!(htb.enqueue(Nanos(0), parcel(class)).is_accepted());
        let default = htb.class(id(2)).expect("added");
        assert_eq!((htb.direct_packets(), default.queue.qlen), (direct, qlen), "{class}");
    }
}

/// Goal: nothing that came in is forgotten. Method: a limit, another queue, a class that goes, a reset.
#[test]
fn every_packet_is_accounted_for() {
    let mut htb = new();
    let told = class(1_000, 1_000);
    htb.add_class(None, id(1), told).expect("new");
    htb.add_class(Some(id(1)), id(2), told).expect("new");
    htb.set_inner(id(2), InnerQdisc::new(Fifo::new(FifoLimit::Packets(2)))).expect("a leaf");
    let mut came = 0;
    let mut feed = |htb: &mut Htb<Parcel>| {
        for _ in 0..3 {
            let _ = htb.enqueue(Nanos(0), parcel(id(2)));
            came += 1;
        }
        let all = htb.statistics();
        assert_eq!(all.sent_packets + all.dropped + all.qlen, came, "{all:?}");
    };
    feed(&mut htb);
    assert_eq!(
        htb.class(id(2)).map(|class| (class.queue.dropped, class.queue.qlen, class.queue.backlog)),
        Some((1, 2, 2_000))
    );
    assert!(htb.dequeue(Nanos(0)).packet().is_some());
    htb.set_inner(id(2), InnerQdisc::new(Fifo::new(FifoLimit::Packets(2)))).expect("a leaf");
    assert_eq!(htb.class(id(2)).map(|class| class.queue.dropped), Some(2));
    feed(&mut htb);
    htb.remove_class(id(2)).expect("a leaf");
    assert_eq!((htb.statistics().dropped, htb.statistics().qlen), (5, 0));
    assert_eq!(htb.dequeue(Nanos(0)), Dequeued::Empty);
    htb.set_inner(id(1), InnerQdisc::new(Fifo::new(FifoLimit::Packets(2)))).expect("it is a leaf again");
    let before = htb.statistics();
    assert!(htb.enqueue(Nanos(0), parcel(id(1))).is_accepted());
    htb.reset(Nanos(7));
    assert_eq!((htb.statistics(), htb.dequeue(Nanos(7))), (before, Dequeued::Empty));
    assert_eq!(htb.class(id(1)).map(|class| class.tokens), Some(1_600_000_000), "its bucket is full");
}

/// Goal: a reset forgets whose turn it was and who waits. Method: a class in debt sends at once after it.
#[test]
fn a_reset_ends_all_debts() {
    let mut htb = new();
    htb.add_class(None, id(1), class(1_000, 1_000)).expect("new");
    for _ in 0..3 {
        assert!(htb.enqueue(Nanos(0), parcel(id(1))).is_accepted());
    }
    while htb.dequeue(Nanos(0)).packet().is_some() {}
    assert!(matches!(htb.dequeue(Nanos(0)), Dequeued::Throttled(_)));
    htb.reset(Nanos(0));
    assert!(htb.enqueue(Nanos(0), parcel(id(1))).is_accepted());
    assert!(htb.dequeue(Nanos(0)).packet().is_some());
}

/// A leaf's queue that takes 8 ms for its second packet.
fn bucket() -> InnerQdisc<Parcel> {
    let settings = TbfSettings::new(rate(125_000), 1_000, TbfLimit::Bytes(10_000));
    InnerQdisc::new(Tbf::new(settings, Nanos(0)).expect("a bucket"))
}

/// Goal: after a reset all is as at the beginning, but for what was sent. Method: packets of no class, of two
/// classes that borrow by turns and of one that is throttled; the same before and after a reset, which comes
/// in the middle of a round, before the throttled one is due.
#[test]
fn a_reset_forgets() {
    let mut htb = new();
    htb.add_class(None, id(1), class(1_000_000, 1_000_000)).expect("new");
    for minor in [10, 20, 30] {
        let told = HtbClass { quantum: Some(2_500), ..class(1_000, 1_000_000) };
        htb.add_class(Some(id(1)), id(minor), told).expect("new");
    }
    htb.set_inner(id(30), bucket()).expect("a leaf");
    let mut run = |begin: u64| {
        let (mut sent, mut now) = (vec![], Nanos(begin));
        for class in [id(10), id(20)].repeat(8).into_iter().chain([id(30); 2]).chain([ClassId::new(2, 1); 2])
        {
            assert!(htb.enqueue(now, parcel(class)).is_accepted());
        }
        while sent.len() < 12 {
            match htb.dequeue(now) {
                Dequeued::Packet(packet) => sent.push((now.0 - begin, packet.class)),
                Dequeued::Throttled(until) => now = until,
                Dequeued::Empty => panic!("there are 20"),
            }
        }
        assert!(htb.enqueue(now, parcel(ClassId::new(2, 1))).is_accepted());
        htb.reset(now);
        assert_eq!((htb.dequeue(now), htb.statistics().qlen), (Dequeued::Empty, 0));
        (sent, now.0)
    };
    let (first, end) = run(0);
    assert_eq!(run(end).0, first);
    assert_eq!(htb.statistics().sent_packets, 24);
}

/// Goal: of two leaves that are throttled, and one that waits for its rate, the one that is due first is
/// waited for and leaves then. Method: gates of 7 ms and of 3 ms, and a packet that is due at 5 ms.
#[test]
fn the_first_moment_is_waited_for() {
    let mut htb = new();
    for minor in [1, 2, 3] {
        htb.add_class(None, id(minor), class(100_000, 100_000)).expect("new");
    }
    for (minor, due) in [(1, 7_000_000), (2, 3_000_000)] {
        htb.set_inner(id(minor), InnerQdisc::new(Gate::new(Nanos(due), 0, 0))).expect("a leaf");
        assert!(htb.enqueue(Nanos(0), parcel(id(minor))).is_accepted());
    }
    // 1600 bytes are its burst, 500 more are 5 ms.
    for bytes in [1_600, 500, 100] {
        assert!(htb.enqueue(Nanos(0), Parcel { bytes, ..parcel(id(3)) }).is_accepted());
    }
    let mut left = vec![];
    let mut now = Nanos(0);
    while left.len() < 5 {
        match htb.dequeue(now) {
            Dequeued::Packet(packet) => left.push((now.0 / 1_000_000, packet.class, packet.bytes)),
            Dequeued::Throttled(until) => now = until,
            Dequeued::Empty => panic!("there are 5"),
        }
    }
    let all = [(0, 3, 1_600), (0, 3, 500), (3, 2, 1_000), (5, 3, 100), (7, 1, 1_000)];
    assert_eq!(left, all.map(|(at, minor, bytes)| (at, id(minor), bytes)));
    let overlimits = htb.class(id(3)).expect("added").queue.overlimits;
    assert_eq!((htb.statistics().overlimits, overlimits), (2, 2), "its second and its third packet");
}

/// Goal: a leaf is throttled for a nanosecond at least, and until its queue is another one. Method: a gate
/// that names moments that have passed; then a queue that is empty, and one that holds a packet.
#[test]
fn another_queue_is_asked_at_once() {
    let mut htb = new();
    htb.add_class(None, id(1), class(1_000_000, 1_000_000)).expect("new");
    htb.set_inner(id(1), InnerQdisc::new(Gate::new(Nanos(100), 0, 100))).expect("a leaf");
    assert!(htb.enqueue(Nanos(5), parcel(id(1))).is_accepted());
    assert_eq!(htb.dequeue(Nanos(5)), Dequeued::Throttled(Nanos(6)));
    htb.set_inner(id(1), InnerQdisc::new(Fifo::new(FifoLimit::Packets(1)))).expect("a leaf");
    assert_eq!(htb.dequeue(Nanos(5)), Dequeued::Empty);
    let mut full = Fifo::new(FifoLimit::Packets(1));
    assert!(full.enqueue(Nanos(5), parcel(id(1))).is_accepted());
    htb.set_inner(id(1), InnerQdisc::new(full)).expect("a leaf");
    assert!(htb.dequeue(Nanos(5)).packet().is_some());
    assert_eq!(htb.dequeue(Nanos(5)), Dequeued::Empty);
}

/// Goal: a class that is changed while it has packets takes its turn by the new priority. Method: two of one
/// priority, of which the second becomes more urgent.
#[test]
fn another_priority_holds_at_once() {
    let mut htb = new();
    let told = |prio| HtbClass { prio, ..class(1_000_000, 1_000_000) };
    for minor in [1, 2] {
        htb.add_class(None, id(minor), told(3)).expect("new");
        assert!(htb.enqueue(Nanos(0), parcel(id(minor))).is_accepted());
    }
    htb.change_class(id(2), told(0)).expect("it is there");
    let order = [0; 2].map(|_| htb.dequeue(Nanos(0)).packet().map(|parcel| parcel.class));
    assert_eq!(order, [Some(id(2)), Some(id(1))]);
}

/// Goal: what is not told is as `tc` has it. Method: the defaults; bursts that a packet and a nanosecond at
/// 3 and at 5 GB/s are; a quantum by 1 where the divisor is 0.
#[test]
fn defaults() {
    let settings = HtbSettings { major: 1, default_class: 0, r2q: 10, direct_qlen: 1_000 };
    assert_eq!(HtbSettings::default(), settings);
    let told = class(3_000_000_000, 5_000_000_000);
    assert_eq!((told.burst_bytes(), told.cburst_bytes()), (1_603, 1_605));
    let quanta = [0, 1, 2].map(|r2q| class(5_000, 5_000).quantum_bytes(r2q).0);
    assert_eq!(quanta, [5_000, 5_000, 2_500]);
    let texts = [HtbQuantumWarning::Small, HtbQuantumWarning::Big].map(|warning| warning.to_string());
    assert_eq!(texts, ["quantum is small, consider r2q change", "quantum is big, consider r2q change"]);
}

/// Goal: a default quantum that was changed says so. Method: both sides, and one that was given.
#[test]
fn quanta_warn() {
    let mut htb = new();
    let quanta = [(9_999, None), (10_000, None), (2_000_000, None), (2_000_010, None), (1, Some(7))];
    for (minor, (bytes, quantum)) in (1..).zip(quanta) {
        htb.add_class(None, id(minor), HtbClass { quantum, ..HtbClass::new(rate(bytes)) }).expect("new");
    }
    let told: Vec<_> = (1..=5)
        .map(|minor| htb.class(id(minor)).map(|class| (class.quantum, class.quantum_warning)))
        .map(|told| told.expect("added"))
        .collect();
    let (small, big) = (Some(HtbQuantumWarning::Small), Some(HtbQuantumWarning::Big));
    assert_eq!(told, [(1_000, small), (1_000, None), (200_000, None), (200_000, big), (7, None)]);
}

/// Goal: an empty tree, and packets longer than expected, are no trouble. Method: none, and a giant.
#[test]
fn giants() {
    for (mtu, giants) in [(999, 1), (1_000, 0)] {
        let mut htb = new();
        htb.add_class(None, id(1), HtbClass { mtu, ..class(1_000_000, 1_000_000) }).expect("new");
        assert_eq!(htb.dequeue(Nanos(0)), Dequeued::Empty);
        assert!(htb.enqueue(Nanos(0), parcel(id(1))).is_accepted());
        assert!(htb.dequeue(Nanos(0)).packet().is_some());
        assert_eq!(htb.class(id(1)).map(|class| class.giants), Some(giants), "{mtu} bytes");
    }
}

/// Goal: a leaf whose queue is throttled is in no other's way and is not forgotten. Method: one that gives
/// nothing before 1 ms, one that does; then the first alone.
#[test]
fn a_throttled_leaf_steps_aside() {
    let mut htb = new();
    for minor in [1, 2] {
        htb.add_class(None, id(minor), class(1_000_000, 1_000_000)).expect("new");
    }
    let late = Gate::new(Nanos(1_000_000), 0, 0);
    htb.set_inner(id(1), InnerQdisc::new(late)).expect("a leaf");
    for class in [id(1), id(2), id(1)] {
        assert!(htb.enqueue(Nanos(0), parcel(class)).is_accepted());
    }
    assert_eq!(htb.dequeue(Nanos(0)).packet().map(|parcel| parcel.class), Some(id(2)));
    assert_eq!(htb.dequeue(Nanos(0)), Dequeued::Throttled(Nanos(1_000_000)));
    assert!(htb.enqueue(Nanos(5), parcel(id(1))).is_accepted(), "it is asked again");
    assert_eq!(htb.dequeue(Nanos(5)), Dequeued::Throttled(Nanos(1_000_000)));
    for left in [2, 1] {
        assert!(htb.dequeue(Nanos(1_000_000)).packet().is_some());
        assert_eq!(htb.statistics().qlen, left);
    }
    htb.remove_class(id(1)).expect("a leaf");
    assert_eq!(htb.dequeue(Nanos(1_000_000)), Dequeued::Empty);
}

/// Goal: nothing is named later than 5 s. Method: a leaf whose next packet is due in a day, and one in debt
/// for a minute.
#[test]
fn five_seconds_at_most() {
    let mut htb = new();
    htb.add_class(None, id(1), class(1, 1)).expect("new");
    for _ in 0..3 {
        assert!(htb.enqueue(Nanos(9), parcel(id(1))).is_accepted());
    }
    while htb.dequeue(Nanos(9)).packet().is_some() {}
    assert_eq!(htb.dequeue(Nanos(9)), Dequeued::Throttled(Nanos(5_000_000_009)));
    assert_eq!(htb.dequeue(Nanos(5_000_000_009)), Dequeued::Throttled(Nanos(10_000_000_009)));
}

/// Goal: nothing is waited for where the queue of a class has dropped all that it held, to make room. Method:
/// a class that is above its rate, and an fq_codel for one packet, which drops both when a longer one comes.
#[test]
fn a_class_that_drops_all_is_not_waited_for() {
    let mut htb = new();
    htb.add_class(None, id(1), class(1_000, 1_000)).expect("new");
    let one = FqCodel::new(FqCodelSettings { limit: 1, ..FqCodelSettings::default() }).expect("settings");
    htb.set_inner(id(1), InnerQdisc::new(one)).expect("a leaf");
    for bytes in [100_000, 100] {
        assert!(htb.enqueue(Nanos(0), Parcel { bytes, ..parcel(id(1)) }).is_accepted());
        let left = htb.dequeue(Nanos(0));
        assert_eq!(left.packet().is_some(), bytes > 100);
    }
    assert!(matches!(htb.dequeue(Nanos(0)), Dequeued::Throttled(_)), "the short one waits");
    let _ = htb.enqueue(Nanos(0), parcel(id(1)));
    assert_eq!((htb.statistics().dropped, htb.statistics().qlen), (2, 0));
    assert_eq!(htb.dequeue(Nanos(0)), Dequeued::Empty);
}
