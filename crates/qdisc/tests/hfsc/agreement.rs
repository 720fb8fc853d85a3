//! Random trees and scripts, on the discipline and on the model.

use crate::common::Parcel;
use crate::name;
use crate::reference::Reference;
use proptest::prelude::*;
use quietcore_core::Nanos;
use quietcore_qdisc::{Dequeued, Hfsc, HfscClass, Qdisc, ServiceCurve};

#[derive(Clone, Debug)]
enum Step {
    Enqueue {
        leaf: usize,
        length: u32,
    },
    Dequeue,
    Wait(u64),
    /// Until the moment that was named last.
    WaitAsTold,
}

/// Few values, so that there are ties, or any; 0 now and then.
fn rate() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => prop::sample::select(vec![1_000_u64, 2_000, 100_000]),
        4 => 1_u64..200_000,
        1 => Just(0),
    ]
}

fn curve() -> impl Strategy<Value = ServiceCurve> {
    let span = prop_oneof![Just(0_u64), Just(10_000_000), 0_u64..50_000_000];
    let any = (rate(), span, rate()).prop_map(|(m1, d, m2)| ServiceCurve::two_piece(m1, Nanos(d), m2));
    let can_be = |curve: &ServiceCurve| curve.m2 > 0 || (curve.m1 > 0 && curve.d.0 > 0);
    prop_oneof![1 => (1_u64..100_000).prop_map(ServiceCurve::linear), 2 => any]
        .prop_filter("gives something", can_be)
}

fn class() -> impl Strategy<Value = (usize, HfscClass)> {
    let share = curve().prop_filter("goes on", |curve| curve.m2 > 0);
    let realtime = prop::option::of(curve());
    let limit = prop::option::weighted(0.3, curve());
    let parts = (any::<prop::sample::Index>(), realtime, prop::option::weighted(0.9, share), limit);
    parts
        .prop_filter("has a curve", |(_, realtime, share, _)| realtime.is_some() || share.is_some())
        .prop_map(|(parent, realtime, link_share, limit)| {
            let upper_limit = limit.filter(|_| link_share.is_some());
            (parent.index(1_000), HfscClass { realtime, link_share, upper_limit })
        })
}

fn step() -> impl Strategy<Value = Step> {
    let length = prop_oneof![Just(1_000_u32), 40_u32..1_500];
    prop_oneof![
        4 => (0_usize..10, length).prop_map(|(leaf, length)| Step::Enqueue { leaf, length }),
        4 => Just(Step::Dequeue),
        2 => prop_oneof![0_u64..100_000, 0_u64..20_000_000, 0_u64..500_000_000].prop_map(Step::Wait),
        2 => Just(Step::WaitAsTold),
    ]
}

/// Both, with up to 3 levels of classes below the link.
fn build(classes: &[(usize, HfscClass)]) -> (Hfsc<Parcel>, Reference) {
    let (mut queue, mut reference) = (Hfsc::new(), Reference::new());
    let mut levels = vec![(0, 0)]; // which may have children, and how deep they are
    for (index, (parent, config)) in classes.iter().enumerate() {
        let (number, (parent, depth)) = (index + 1, levels[parent % levels.len()]);
        let above = (parent > 0).then(|| name(parent));
        queue.add_class(above, name(number), *config).expect("it can be");
        reference.add(parent, *config);
        if depth < 2 && config.link_share.is_some() {
            levels.push((number, depth + 1));
        }
    }
    (queue, reference)
}

/// Both as one.
struct Pair {
    queue: Hfsc<Parcel>,
    reference: Reference,
    now: Nanos,
    told: Option<Nanos>,
    sent: usize,
}

impl Pair {
    fn dequeue(&mut self) -> Dequeued<usize> {
        let was_told = self.told.take();
        let expected = self.reference.dequeue(self.now);
        let found = match self.queue.dequeue(self.now) {
            Dequeued::Packet(packet) => Dequeued::Packet(packet.number as usize),
            Dequeued::Throttled(until) => Dequeued::Throttled(until),
            Dequeued::Empty => Dequeued::Empty,
        };
        assert_eq!(found, expected, "at {:?}", self.now);
        match found {
            Dequeued::Packet(_) => self.sent += 1,
            Dequeued::Throttled(until) => {
                assert!(until > self.now, "{until:?} has come at {:?}", self.now);
                assert!(was_told.is_none_or(|told| self.now < told), "no packet at {was_told:?} as told");
                self.told = Some(until);
            }
            Dequeued::Empty => {}
        }
        found
    }

    fn drain(&mut self) {
        loop {
            match self.dequeue() {
                Dequeued::Packet(_) => {}
                Dequeued::Throttled(Nanos(u64::MAX)) | Dequeued::Empty => return,
                Dequeued::Throttled(until) => self.now = until,
            }
        }
    }
}

/// Plays `steps` on both, and says how many packets came out.
fn play(classes: &[(usize, HfscClass)], steps: &[Step]) -> usize {
    let (queue, reference) = build(classes);
    let mut pair = Pair { queue, reference, now: Nanos(1_000_000), told: None, sent: 0 };
    let leaves = pair.reference.leaves();
    let (mut number, mut held) = (0, 0);
    for step in steps {
        match *step {
            Step::Enqueue { leaf, length } => {
                let leaf = leaves[leaf % leaves.len()];
                let packet = Parcel { class: name(leaf), number: number as u32, bytes: length };
                assert!(pair.queue.enqueue(pair.now, packet).is_accepted(), "there is room");
                pair.reference.enqueue(pair.now, leaf, (number, length));
                (number, pair.told) = (number + 1, None);
            }
            Step::Dequeue => drop(pair.dequeue().packet()),
            Step::Wait(span) => pair.now.0 += span,
            Step::WaitAsTold => {
                let until = pair.told.filter(|until| until.0 < u64::MAX);
                pair.now = pair.now.max(until.unwrap_or(pair.now));
            }
        }
        held = number - pair.sent;
        assert_eq!(pair.queue.statistics().qlen, held as u64, "queued at {:?}", pair.now);
    }
    pair.drain();
    assert!(pair.sent + held >= number, "what was accepted is sent or held");
    pair.sent
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1_500) })]

    /// Goal: packet for packet, and moment for moment, what the definitions say; the moment named is one of
    /// progress. Method: random trees of up to 3 levels and 9 classes, random curves and scripts.
    #[test]
    fn the_same_as_the_definitions(
        classes in prop::collection::vec(class(), 1..10),
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let arrived = steps.iter().filter(|step| matches!(step, Step::Enqueue { .. })).count();
        prop_assert!(play(&classes, &steps) <= arrived);
    }
}

/// Goal: the scripts exercise what they are to. Method: a tree with every kind of curve; all packets come
/// out, in turns of both criteria.
#[test]
fn a_script_with_every_kind_of_curve() {
    let concave = ServiceCurve::two_piece(100_000, Nanos(10_000_000), 2_000);
    let convex = ServiceCurve::two_piece(1_000, Nanos(10_000_000), 100_000);
    let inner = HfscClass { upper_limit: Some(convex), ..HfscClass::guaranteed_share(concave) };
    let classes = [
        (0, inner),
        (1, HfscClass::guaranteed_share(convex)),
        (1, HfscClass::guaranteed_share(concave)),
        (0, HfscClass { realtime: Some(convex), ..HfscClass::default() }),
        (0, HfscClass { upper_limit: Some(concave), ..HfscClass::guaranteed_share(concave) }),
    ];
    let mut steps = Vec::new();
    for round in 0..200_u32 {
        let leaf = round as usize % 4;
        steps.push(Step::Enqueue { leaf, length: 100 + 7 * (round % 50) });
        if round % 3 > 0 {
            steps.extend([Step::Dequeue, Step::WaitAsTold, Step::Dequeue, Step::Wait(3_000_000)]);
        }
    }
    assert_eq!(play(&classes, &steps), 200);
}
