//! What is inside of others is reached, changed and counted where it runs.

use quietcore_core::Nanos;
use quietcore_qdisc::{
    Cbq, CbqClass, CbqOverlimit, CbqSettings, Chance, ClassId, Classful, DelayTimer, Dequeued, Enqueued,
    Fifo, FifoLimit, Fq, FqSettings, Hfsc, HfscClass, Htb, HtbClass, HtbSettings, InnerQdisc, Netem,
    NetemDelay, NetemLoss, NetemSettings, Prio, PrioSettings, Probability, Qdisc, Rate, ServiceCurve, Tbf,
    TbfLimit, TbfSettings,
};
use std::any::Any;

type Packet = Vec<u8>;

const CLASS: ClassId = ClassId::new(1, 1);

fn rate(bytes: u64) -> Rate {
    Rate::bytes_per_second(bytes).expect("not 0")
}

fn tbf(bytes_per_second: u64) -> TbfSettings {
    TbfSettings::new(rate(bytes_per_second), 100, TbfLimit::Bytes(10_000))
}

/// A bucket of one packet that takes years to fill again.
fn slow() -> Tbf<Packet> {
    Tbf::new(tbf(1), Nanos(0)).expect("settings that can be")
}

fn htb() -> Htb<Packet> {
    let mut htb = Htb::new(HtbSettings { default_class: 1, ..HtbSettings::default() });
    htb.add_class(None, CLASS, HtbClass::new(rate(1_000_000_000))).expect("a class");
    htb
}

fn hfsc() -> Hfsc<Packet> {
    let mut hfsc = Hfsc::new();
    let curve = ServiceCurve::linear(1_000_000_000);
    hfsc.add_class(None, CLASS, HfscClass::guaranteed_share(curve)).expect("a class");
    hfsc.set_default_class(Some(CLASS));
    hfsc
}

/// One whose packets are all of the first band.
fn prio() -> Prio<Packet> {
    Prio::new(PrioSettings { priomap: [0; 16], ..PrioSettings::default() }).expect("settings that can be")
}

fn cbq(overlimit: CbqOverlimit) -> Cbq<Packet> {
    let settings = CbqSettings { default_class: 1, ..CbqSettings::new(rate(1_000_000_000)) };
    let mut cbq = Cbq::new(settings);
    cbq.add_class(None, CLASS, CbqClass { overlimit, ..CbqClass::new(rate(500_000_000)) }).expect("a class");
    cbq
}

fn fill(queue: &mut impl Qdisc<Packet>, count: u32) {
    (0..count).for_each(|_| assert_eq!(queue.enqueue(Nanos(0), vec![0; 100]), Enqueued::Queued));
}

/// Makes the bucket fast, deep inside.
fn hurry(inner: &mut InnerQdisc<Packet>) {
    let any: &mut dyn Any = inner.qdisc_mut();
    let tbf_inside = any.downcast_mut::<Tbf<Packet>>().expect("it was put there");
    tbf_inside.change(tbf(1_000_000_000), Nanos(1)).expect("settings that can be");
}

fn hurry_inside<Q: Classful<Packet>>(outer: &mut Q) {
    outer.change_inner(Nanos(1), CLASS, &mut hurry);
}

/// The first packet leaves, the second one waits for years; after `change` it leaves at once.
fn check<Q: Qdisc<Packet>>(mut outer: Q, change: impl FnOnce(&mut Q)) {
    fill(&mut outer, 2);
    assert!(outer.dequeue(Nanos(0)).packet().is_some(), "{}", outer.kind());
    assert!(matches!(outer.dequeue(Nanos(0)), Dequeued::Throttled(until) if until > Nanos(1)));
    change(&mut outer);
    let next = outer.dequeue(Nanos(1_000_000));
    assert!(matches!(next, Dequeued::Packet(_)), "{}: {next:?}", outer.kind());
    let done = outer.statistics();
    assert_eq!((done.sent_packets, done.qlen, done.dropped), (2, 0, 0), "{}", outer.kind());
}

/// Goal: who waits for what is inside looks again when that is changed. Method: a slow bucket inside of each
/// kind, which becomes a fast one.
#[test]
fn a_change_inside_is_noticed() {
    let mut outer = htb();
    outer.set_inner(CLASS, InnerQdisc::new(slow())).expect("a leaf");
    check(outer, hurry_inside);
    let mut outer = hfsc();
    outer.set_leaf(Nanos(0), CLASS, Box::new(slow())).expect("a leaf");
    check(outer, hurry_inside);
    let mut outer = cbq(CbqOverlimit::Classic);
    outer.set_inner(CLASS, InnerQdisc::new(slow())).expect("a class");
    check(outer, hurry_inside);
    let outer = Netem::new(NetemSettings::default(), || 0, Nanos(0)).expect("they go together");
    check(outer.with_inner(InnerQdisc::new(slow())), hurry_inside);
    let outer = Tbf::new(tbf(1_000_000_000), Nanos(0)).expect("settings that can be");
    check(outer.with_inner(InnerQdisc::new(slow())), hurry_inside);
    let mut outer = prio();
    assert!(outer.graft_inner(Nanos(0), CLASS, Some(Box::new(slow()))));
    check(outer, hurry_inside);
}

/// Goal: netem with another discipline inside waits for the first of both. Method: 10 ms, and then a bucket
/// of one packet that takes 100 ms to fill; packets at such moments that each of both is the first once.
#[test]
fn netem_waits_for_the_first_of_both() {
    let ms = |count: u64| Nanos(count * 1_000_000);
    let delay = NetemDelay { latency: ms(10), ..NetemDelay::default() };
    let settings = NetemSettings { delay, ..NetemSettings::default() };
    let bucket = Tbf::new(tbf(1_000), Nanos(0)).expect("settings that can be");
    let netem: Netem<Packet, _> = Netem::new(settings, || 0, Nanos(0)).expect("they go together");
    let mut netem = netem.with_inner(InnerQdisc::new(bucket));
    fill(&mut netem, 2);
    assert!(netem.dequeue(ms(10)).packet().is_some());
    assert_eq!(netem.dequeue(ms(10)), Dequeued::Throttled(ms(110)), "nothing else is on its way");
    for (sent, until) in [(95, 105), (107, 110)] {
        assert_eq!(netem.enqueue(ms(sent), vec![0; 100]), Enqueued::Queued);
        assert_eq!(netem.dequeue(ms(sent)), Dequeued::Throttled(ms(until)), "at {sent} ms");
    }
}

/// Goal: what is lost inside of netem, and what is inside when another one is put there, is dropped and
/// counted. Method: a netem that loses everything, then a fifo of one packet, which goes.
#[test]
fn netem_counts_what_is_inside() {
    let always = Chance { probability: Probability::ALWAYS, ..Chance::default() };
    let settings = NetemSettings { loss: NetemLoss::Random(always), ..NetemSettings::default() };
    let losing = Netem::new(settings, || 0, Nanos(0)).expect("they go together");
    let mut outer = Netem::new(NetemSettings::default(), || 0, Nanos(0)).expect("they go together");
    outer.set_inner(Some(InnerQdisc::new(losing)));
    assert_eq!(outer.enqueue(Nanos(0), vec![0; 100]), Enqueued::Queued);
    assert_eq!(outer.dequeue(Nanos(0)), Dequeued::Empty);
    let lost = outer.statistics();
    assert_eq!((lost.sent_packets, lost.dropped, lost.qlen, lost.backlog), (0, 1, 0, 0));
    outer.set_inner(Some(InnerQdisc::new(slow())));
    fill(&mut outer, 3);
    assert!(outer.dequeue(Nanos(0)).packet().is_some());
    assert!(outer.dequeue(Nanos(0)).packet().is_none());
    assert_eq!(outer.statistics().qlen, 2);
    outer.set_inner(None);
    let gone = outer.statistics();
    assert_eq!((gone.sent_packets, gone.dropped, gone.qlen, gone.backlog), (1, 3, 0, 0));
}

/// Twice: a packet is held and two are dropped inside of `outer`, whose inner discipline is then replaced.
fn check_replaced(mut outer: impl Classful<Packet>) {
    let kind = outer.kind();
    for dropped in [0, 3] {
        let small = Fifo::new(FifoLimit::Packets(1));
        assert!(outer.graft_inner(Nanos(0), CLASS, Some(Box::new(small))), "{kind}");
        let begun = outer.statistics();
        assert_eq!((begun.dropped, begun.qlen, begun.backlog), (dropped, 0, 0), "{kind}");
        fill_and_drop(&mut outer);
        let full = outer.statistics();
        assert_eq!((full.dropped, full.qlen, full.backlog), (dropped + 2, 1, 100), "{kind}");
    }
    assert!(outer.graft_inner(Nanos(0), CLASS, None), "{kind}");
    check_gone(&outer, 6);
}

/// One packet of 100 bytes has a place, two have none.
fn fill_and_drop(outer: &mut impl Qdisc<Packet>) {
    let packets = [0; 3].map(|_| outer.enqueue(Nanos(0), vec![0; 100]));
    assert_eq!(packets, [Enqueued::Queued, Enqueued::Dropped, Enqueued::Dropped], "{}", outer.kind());
}

/// Nothing is left, and all that came was dropped.
fn check_gone(outer: &impl Qdisc<Packet>, came: u64) {
    let gone = outer.statistics();
    assert_eq!((gone.dropped, gone.sent_packets), (came, 0), "{}", outer.kind());
    assert_eq!((gone.qlen, gone.backlog), (0, 0), "{}", outer.kind());
}

/// Goal: what was dropped inside of a discipline stays counted when another one is put there, and what was
/// held is counted as well, each once. Method: a fifo of one packet inside of each kind, replaced by another
/// one, and that by what is there by default.
#[test]
fn drops_inside_stay_counted() {
    check_replaced(htb());
    check_replaced(hfsc());
    check_replaced(cbq(CbqOverlimit::Classic));
    check_replaced(Tbf::new(tbf(1_000_000_000), Nanos(0)).expect("settings that can be"));
    check_replaced(prio());
}

/// Goal: what was dropped in a class stays counted when the class goes, with what it held. Method: a fifo of
/// one packet in a class of each kind that is removed, after another one that was replaced there.
#[test]
fn drops_in_a_class_that_goes_stay_counted() {
    fn check_removed<Q: Classful<Packet>>(mut outer: Q, remove: impl FnOnce(&mut Q)) {
        for _ in 0..2 {
            let small = Fifo::new(FifoLimit::Packets(1));
            assert!(outer.graft_inner(Nanos(0), CLASS, Some(Box::new(small))), "{}", outer.kind());
            fill_and_drop(&mut outer);
        }
        remove(&mut outer);
        check_gone(&outer, 6);
    }
    check_removed(htb(), |outer| outer.remove_class(CLASS).expect("a leaf"));
    check_removed(hfsc(), |outer| outer.remove_class(CLASS).expect("a leaf"));
    check_removed(cbq(CbqOverlimit::Classic), |outer| outer.remove_class(CLASS).expect("a leaf"));
}

/// Goal: a second timer is found through everything, and only where there is one. Method: cbq inside of each
/// kind, with and without.
#[test]
fn delays_are_found_inside() {
    for (overlimit, delays) in
        [(CbqOverlimit::Delay, DelayTimer::Idle), (CbqOverlimit::Classic, DelayTimer::Absent)]
    {
        let mut in_htb = htb();
        in_htb.set_inner(CLASS, InnerQdisc::new(cbq(overlimit))).expect("a leaf");
        let mut in_hfsc = hfsc();
        in_hfsc.set_leaf(Nanos(0), CLASS, Box::new(cbq(overlimit))).expect("a leaf");
        let mut in_cbq = cbq(CbqOverlimit::Classic);
        in_cbq.set_inner(CLASS, InnerQdisc::new(cbq(overlimit))).expect("a class");
        let in_netem = Netem::new(NetemSettings::default(), || 0, Nanos(0)).expect("they go together");
        let in_tbf = Tbf::new(tbf(1_000), Nanos(0)).expect("settings that can be");
        let mut in_prio = Prio::new(PrioSettings::default()).expect("defaults");
        assert!(in_prio.graft_inner(Nanos(0), CLASS, Some(Box::new(cbq(overlimit)))));
        let all: [(Box<dyn Qdisc<Packet>>, &str); 6] = [
            (Box::new(in_htb), "htb"),
            (Box::new(in_hfsc), "hfsc"),
            (Box::new(in_cbq), "cbq"),
            (Box::new(in_netem.with_inner(InnerQdisc::new(cbq(overlimit)))), "netem"),
            (Box::new(in_tbf.with_inner(InnerQdisc::new(cbq(overlimit)))), "tbf"),
            (Box::new(in_prio), "prio"),
        ];
        for (qdisc, kind) in all {
            assert_eq!((qdisc.kind(), qdisc.delays()), (kind, delays));
        }
    }
    let none = Fq::<Packet>::new(FqSettings::default()).expect("defaults");
    assert_eq!((none.kind(), none.delays()), ("fq", DelayTimer::Absent));
}

/// A class far above its rate, which waits for the delay timer.
fn delayed() -> Cbq<Packet> {
    let mut inner = Cbq::new(CbqSettings { default_class: 1, ..CbqSettings::new(rate(10_000_000)) });
    let overlimit = CbqOverlimit::Delay;
    let class = CbqClass { bounded: true, max_burst: 0, overlimit, ..CbqClass::new(rate(1_000)) };
    inner.add_class(None, CLASS, class).expect("a class");
    inner
}

fn check_delays(mut outer: impl Qdisc<Packet>) {
    let kind = outer.kind();
    fill(&mut outer, 4);
    while outer.dequeue(Nanos(0)).packet().is_some() {}
    let until = outer.delays().until().expect("it is above its rate");
    assert!(until > Nanos(0), "{kind}");
    outer.end_delays(Nanos(until.0 - 1));
    assert_eq!(outer.delays(), DelayTimer::Until(until), "{kind}: not before");
    outer.end_delays(until);
    assert_eq!(outer.delays(), DelayTimer::Idle, "{kind}");
    assert!(outer.dequeue(until).packet().is_some(), "{kind}");
}

/// Goal: a class that was delayed comes back by `end_delays`, through what is around it. Method: cbq inside
/// of each kind, with a class far above its rate; the moment, and what is due then.
#[test]
fn delays_end() {
    let mut outer = htb();
    outer.set_inner(CLASS, InnerQdisc::new(delayed())).expect("a leaf");
    check_delays(outer);
    let mut outer = hfsc();
    outer.set_leaf(Nanos(0), CLASS, Box::new(delayed())).expect("a leaf");
    check_delays(outer);
    let outer = Tbf::new(tbf(1_000_000_000), Nanos(0)).expect("settings that can be");
    check_delays(outer.with_inner(InnerQdisc::new(delayed())));
    let outer = Netem::new(NetemSettings::default(), || 0, Nanos(0)).expect("they go together");
    check_delays(outer.with_inner(InnerQdisc::new(delayed())));
    let mut outer = prio();
    assert!(outer.graft_inner(Nanos(0), CLASS, Some(Box::new(delayed()))));
    check_delays(outer);
}

/// Goal: one timer for two is for the earlier moment, if there is one. Method: each pair in both orders.
#[test]
fn the_earlier_delay_is_first() {
    let (early, late) = (DelayTimer::Until(Nanos(3)), DelayTimer::Until(Nanos(5)));
    assert_eq!([early.and(late), late.and(early)], [early, early]);
    assert_eq!([DelayTimer::Idle.and(late), late.and(DelayTimer::Absent)], [late, late]);
}

/// Goal: fq counts bands as the priorities are mapped now. Method: packets in one band, another map, and
/// limits of the band that they are in then.
#[test]
fn fq_moves_bands() {
    let paced = FqSettings { maxrate: Some(1), limit: 3, ..FqSettings::default() };
    let mut fq = Fq::new(paced).expect("settings that can be");
    fill(&mut fq, 3);
    assert_eq!(fq.fq_statistics().band_packets, [0, 3, 0]);
    fq.change(FqSettings { priomap: [2; 16], ..paced }).expect("settings that can be");
    assert_eq!(fq.fq_statistics().band_packets, [0, 0, 3]);
    assert_eq!(fq.enqueue(Nanos(0), vec![0; 100]), Enqueued::Dropped);
    assert!(fq.change(FqSettings { quantum: 0, ..FqSettings::default() }).is_err());
    assert_eq!(fq.settings().priomap, [2; 16], "as it was");
    assert!(fq.dequeue(Nanos(0)).packet().is_some());
    assert_eq!(fq.fq_statistics().band_packets, [0, 0, 2]);
}

/// Goal: fifos and buckets keep what they hold. Method: another limit, of a tbf's own fifo, too.
#[test]
fn limits_change() {
    let mut outer = slow();
    fill(&mut outer, 3);
    outer.change(TbfSettings::new(rate(1), 100, TbfLimit::Bytes(300)), Nanos(0)).expect("can be");
    assert_eq!(outer.enqueue(Nanos(0), vec![0; 100]), Enqueued::Dropped);
    assert_eq!(outer.statistics().qlen, 3);
    let mut fifo = Fifo::new(FifoLimit::Packets(1));
    assert_eq!(fifo.enqueue(Nanos(0), vec![0_u8; 100]), Enqueued::Queued);
    fifo.set_limit(FifoLimit::Bytes(200));
    assert_eq!((fifo.limit(), Qdisc::<Packet>::kind(&fifo)), (FifoLimit::Bytes(200), "bfifo"));
    assert_eq!(fifo.enqueue(Nanos(0), vec![0; 100]), Enqueued::Queued);
    assert_eq!(fifo.enqueue(Nanos(0), vec![0; 100]), Enqueued::Dropped);
}

/// Goal: all that is due comes to what is inside of a netem before that is asked; it is asked twice while
/// another packet waits, as a bucket's `overlimits` tell. Linux 6.12 does both (tests/fidelity). Method:
/// three packets, two of which are due, with room for one inside; then a bucket that has nothing left.
#[test]
fn what_is_due_comes_inside_first() {
    let netem = || {
        let delay = NetemDelay { latency: Nanos(10), ..NetemDelay::default() };
        Netem::new(NetemSettings { delay, ..NetemSettings::default() }, || 0, Nanos(0))
    };
    let mut outer = netem().expect("settings").with_inner(InnerQdisc::new(Fifo::new(FifoLimit::Packets(1))));
    for at in [0, 0, 5] {
        assert_eq!(outer.enqueue(Nanos(at), vec![0; 100]), Enqueued::Queued);
    }
    assert!(outer.dequeue(Nanos(10)).packet().is_some());
    assert_eq!((outer.statistics().dropped, outer.statistics().qlen), (1, 1));
    let mut outer = netem().expect("settings").with_inner(InnerQdisc::new(slow()));
    for at in [0, 0, 5] {
        assert_eq!(outer.enqueue(Nanos(at), vec![0; 100]), Enqueued::Queued);
    }
    assert!(outer.dequeue(Nanos(10)).packet().is_some());
    for (at, overlimits) in [(10, 2), (14, 4), (15, 5)] {
        assert!(matches!(outer.dequeue(Nanos(at)), Dequeued::Throttled(_)));
        let bucket = Classful::inner(&outer, CLASS).expect("it is there").statistics();
        assert_eq!(bucket.overlimits, overlimits, "at {at}");
    }
}
