//! What the discipline promises, on a simulated link; nothing here knows how it is kept.

use crate::common::Parcel;
use crate::reference::given;
use crate::{MILLISECOND, name, share};
use proptest::prelude::*;
use quietcore_core::Nanos;
use quietcore_qdisc::{Dequeued, Hfsc, HfscClass, Qdisc, ServiceCurve};

const SECOND: u128 = 1_000_000_000;
const LONGEST: u32 = 1_500;
/// Concave, convex and linear ones.
fn curve() -> impl Strategy<Value = ServiceCurve> {
    let pieces = (0_u64..1_000_000, 0_u64..50 * MILLISECOND, 1_000_u64..1_000_000);
    pieces.prop_map(|(m1, d, m2)| ServiceCurve::two_piece(m1, Nanos(d), m2))
}

/// Bursts: when, for whom, of how many packets, of how many bytes each.
fn bursts() -> impl Strategy<Value = Vec<(u64, usize, u32, u32)>> {
    let burst = (0..300 * MILLISECOND, 0_usize..8, 1_u32..12, 40..=LONGEST);
    prop::collection::vec(burst, 0..60).prop_map(|mut bursts| {
        bursts.sort_unstable();
        bursts
    })
}

/// The least rate of a link that can keep all of them. The sum is made of straight lines, so that it is the
/// furthest above a line through 0 at its beginning, its end or a knee.
fn rate_for(curves: &[ServiceCurve]) -> u64 {
    let first = |curve: &ServiceCurve| if curve.d.0 == 0 { curve.m2 } else { curve.m1 };
    let at = |span: u128| curves.iter().map(|curve| given(*curve, span)).sum::<u128>().div_ceil(span);
    let knees = curves.iter().map(|curve| u128::from(curve.d.0)).filter(|knee| *knee > 0).map(at);
    let (begin, end) = (curves.iter().map(first).sum(), curves.iter().map(|curve| curve.m2).sum());
    knees.map(|rate| u64::try_from(rate).expect("small")).chain([begin, end]).max().expect("two at least")
}

/// A link of `rate` with a queue. Its time is exact: the rounding does not add up.
struct Link {
    queue: Hfsc<Parcel>,
    rate: u64,
    now: Nanos,
    /// When it was idle last, and what it sent since.
    busy_since: Nanos,
    busy_bytes: u128,
    /// When the last packet began.
    began: Nanos,
}

impl Link {
    fn new(queue: Hfsc<Parcel>, rate: u64) -> Self {
        Self { queue, rate, now: Nanos(0), busy_since: Nanos(0), busy_bytes: 0, began: Nanos(0) }
    }

    /// Sends the next packet to its end, or is idle until there may be one, but not beyond `limit`.
    fn step(&mut self, limit: Nanos) -> Option<Parcel> {
        match self.queue.dequeue(self.now) {
            Dequeued::Packet(packet) => {
                self.began = self.now;
                self.busy_bytes += u128::from(packet.bytes);
                let took = (self.busy_bytes * SECOND).div_ceil(self.rate.into());
                self.now.0 = self.busy_since.0 + u64::try_from(took).expect("a short test");
                Some(packet)
            }
            Dequeued::Throttled(until) => self.idle(until.min(limit)),
            Dequeued::Empty => self.idle(limit),
        }
    }

    fn idle(&mut self, until: Nanos) -> Option<Parcel> {
        assert!(until > self.now, "time must go on at {:?}", self.now);
        (self.now, self.busy_since, self.busy_bytes) = (until, until, 0);
        None
    }
}

/// When `curve`, begun at `begin`, has given so many bytes.
fn due(curve: ServiceCurve, begin: u64, bytes: u128) -> u64 {
    let (mut low, mut high) = (0, u128::from(curve.d.0) + bytes * SECOND);
    while low < high {
        let middle = u128::midpoint(low, high);
        if given(curve, middle) >= bytes * SECOND {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    begin + u64::try_from(low).expect("a short test")
}

/// What became of the packets of a class.
struct Watched {
    sent: u32,
    /// By how many nanoseconds the worst one missed its deadline.
    late: u128,
    /// How long the link cannot be interrupted.
    blocked: u128,
}

/// Class 1 is backlogged from `begin` on, the others now and then. Every other one has a parent with a limit,
/// which is none of a guarantee.
fn watch(classes: &[HfscClass], begin: u64, length: u32, bursts: &[(u64, usize, u32, u32)]) -> Watched {
    let curves: Vec<ServiceCurve> = classes.iter().filter_map(|class| class.realtime).collect();
    let one = Some(ServiceCurve::linear(1));
    let mut queue = Hfsc::new();
    let parent = HfscClass { realtime: None, link_share: one, upper_limit: one };
    queue.add_class(None, name(99), parent).expect("it can be");
    for (index, class) in classes.iter().enumerate() {
        let above = (index % 2 == 0).then(|| name(99));
        queue.add_class(above, name(index + 1), *class).expect("it can be");
    }
    let mut link = Link::new(queue, rate_for(&curves));
    let blocked = (u128::from(LONGEST) * SECOND).div_ceil(link.rate.into());
    let mut arrivals: Vec<_> =
        bursts.iter().map(|burst| (burst.0, burst.1 % classes.len(), burst.2, burst.3)).collect();
    arrivals.retain(|(_, class, ..)| *class > 0);
    arrivals.push((begin, 0, 2, length));
    arrivals.sort_unstable();
    let mut arrivals = arrivals.into_iter().peekable();
    let (watched, end) = (Parcel { class: name(1), number: 0, bytes: length }, 400 * MILLISECOND);
    let (mut sent, mut bytes, mut late) = (0, 0, 0);
    while link.now.0 < end {
        while let Some((at, class, count, length)) = arrivals.next_if(|(at, ..)| *at <= link.now.0) {
            let packet = Parcel { class: name(1 + class), number: 0, bytes: length };
            (0..count).for_each(|_| assert!(link.queue.enqueue(Nanos(at), packet).is_accepted()));
        }
        let next = arrivals.peek().map_or(end, |(at, ..)| *at);
        let Some(packet) = link.step(Nanos(next)).filter(|packet| packet.class == watched.class) else {
            continue;
        };
        assert!(link.queue.enqueue(link.began, watched).is_accepted(), "one is there all the time");
        (sent, bytes) = (sent + 1, bytes + u128::from(packet.bytes));
        late = late.max(link.now.0.saturating_sub(due(curves[0], begin, bytes)));
    }
    let missing = end.saturating_sub(due(curves[0], begin, bytes + u128::from(length)));
    Watched { sent, late: late.max(missing).into(), blocked }
}

fn guaranteed() -> impl Strategy<Value = HfscClass> {
    (curve(), prop::option::of(curve())).prop_map(|(realtime, link_share)| HfscClass {
        realtime: Some(realtime),
        link_share,
        upper_limit: None,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    /// Goal: a backlogged leaf has its service curve, but for the packet that a link cannot interrupt.
    /// Method: a link that is just fast enough for all guarantees, and others that come and go.
    #[test]
    fn a_guarantee_is_kept(
        classes in prop::collection::vec(guaranteed(), 1..6),
        begin in 0..100 * MILLISECOND,
        length in 40..=LONGEST,
        bursts in bursts(),
    ) {
        let Watched { late, blocked, .. } = watch(&classes, begin, length, &bursts);
        prop_assert!(late <= blocked + 1, "{late} ns late, {blocked} allowed");
    }

    /// Goal: in no window is there more than the upper limit and a packet. Method: a concave limit on a leaf,
    /// or on a class of two leaves, asked at every moment that is named; bursts.
    #[test]
    fn an_upper_limit_is_kept(
        limit in curve(),
        inner in any::<prop::sample::Index>(),
        bursts in bursts(),
    ) {
        let limit = ServiceCurve { m1: limit.m1.max(limit.m2), ..limit };
        let share = share(1_000);
        let limited = HfscClass { upper_limit: Some(limit), ..share };
        let mut queue = Hfsc::new();
        let is_inner = inner.index(2) == 0;
        queue.add_class(None, name(9), if is_inner { limited } else { share }).expect("it can be");
        queue.add_class(Some(name(9)), name(1), if is_inner { share } else { limited }).expect("it can be");
        queue.add_class(Some(name(9)), name(2), share).expect("it can be");
        let watched = |class| is_inner || class == name(1);
        let sent = times_of_sending(queue, &bursts);
        let sent: Vec<_> = sent.into_iter().filter(|(_, packet)| watched(packet.class)).collect();
        for (index, (from, _)) in sent.iter().enumerate() {
            let mut bytes = 0;
            for (to, packet) in &sent[index..] {
                bytes += u128::from(packet.bytes);
                // Moments are rounded up, so that a window may be shorter by less than a nanosecond.
                let most = given(limit, u128::from(to.0 - from.0) + 1) + u128::from(LONGEST) * SECOND;
                prop_assert!(bytes * SECOND <= most, "{bytes} bytes from {from:?} to {to:?}");
            }
        }
    }

    /// Goal: backlogged classes have what their shares say, but for a packet of each. Method: equal packets,
    /// linear shares, two levels; after every packet all pairs of siblings are compared.
    #[test]
    fn shares_are_proportional(
        rates in prop::collection::vec(prop::collection::vec(1_u64..1_000_000, 1..4), 1..4),
        length in 40..=LONGEST,
    ) {
        let mut queue = Hfsc::new();
        let mut families = vec![Vec::new()];
        for (group, leaves) in rates.iter().enumerate() {
            let (parent, rate) = (100 * (group + 1), leaves.iter().sum());
            queue.add_class(None, name(parent), share(rate)).expect("it can be");
            families[0].push((name(parent), rate));
            families.push(Vec::new());
            for (index, rate) in leaves.iter().enumerate() {
                let leaf = name(parent + 1 + index);
                queue.add_class(Some(name(parent)), leaf, share(*rate)).expect("it can be");
                families[group + 1].push((leaf, *rate));
                let packet = Parcel { class: leaf, number: 0, bytes: length };
                (0..400).for_each(|_| assert!(queue.enqueue(Nanos(0), packet).is_accepted()));
            }
        }
        for now in 0..300 {
            prop_assert!(queue.dequeue(Nanos(now)).packet().is_some());
            for family in &families {
                compare(&queue, family, length);
            }
        }
    }
}

/// `W1 / r1` and `W2 / r2` differ by no more than `L / r1 + L / r2`, times `r1 * r2`.
fn compare(queue: &Hfsc<Parcel>, family: &[(quietcore_qdisc::ClassId, u64)], length: u32) {
    let had = |class| u128::from(queue.class_statistics(class).expect("it is there").queue.sent_bytes);
    for (one, one_rate) in family {
        for (other, other_rate) in family {
            let (one_rate, other_rate) = (u128::from(*one_rate), u128::from(*other_rate));
            let apart = (had(*one) * other_rate).abs_diff(had(*other) * one_rate);
            // Virtual times are whole nanoseconds.
            let rounding = one_rate * other_rate / SECOND + 1;
            let most = u128::from(length) * (one_rate + other_rate) + rounding;
            assert!(apart <= most, "{one} and {other}: {apart} apart, {most} allowed");
        }
    }
}

/// When each packet leaves if it leaves as soon as it may.
fn times_of_sending(mut queue: Hfsc<Parcel>, bursts: &[(u64, usize, u32, u32)]) -> Vec<(Nanos, Parcel)> {
    let (mut sent, mut now) = (Vec::new(), Nanos(0));
    let end = (u64::MAX, 0, 0, 0);
    for (at, class, count, length) in bursts.iter().copied().chain([end]) {
        loop {
            match queue.dequeue(now) {
                Dequeued::Packet(packet) => sent.push((now, packet)),
                Dequeued::Throttled(until) if until.0 < at => now = until,
                Dequeued::Throttled(_) | Dequeued::Empty => break,
            }
        }
        now = Nanos(at);
        let packet = Parcel { class: name(1 + class % 2), number: 0, bytes: length };
        (0..count).for_each(|_| assert!(queue.enqueue(now, packet).is_accepted()));
    }
    assert_eq!(queue.statistics().qlen, 0, "all are sent in the end");
    sent
}

/// Goal: a short delay next to a greedy class. Method: 160 bytes within 5 ms beside packets of 1500 bytes.
#[test]
fn a_concave_guarantee_next_to_a_greedy_class() {
    let bulk = ServiceCurve::two_piece(0, Nanos(5 * MILLISECOND), 117_000);
    let bursts: Vec<_> = (0..20).map(|burst| (burst * 10 * MILLISECOND, 1, 5, 1_500)).collect();
    let voice = ServiceCurve::from_delay(160, Nanos(5 * MILLISECOND), 8_000).expect("it can be");
    let classes = [voice, bulk].map(HfscClass::guaranteed_share);
    let kept = watch(&classes, 33 * MILLISECOND, 160, &bursts);
    assert!(kept.sent > 10 && kept.late <= kept.blocked + 1, "{} late, {} allowed", kept.late, kept.blocked);
}
