//! Random trees and loads: the discipline and the model say the same, packet for packet, moment for moment
//! and estimate for estimate.

use crate::LINK;
use crate::common::{Parcel, id, rate};
use crate::model::Model;
use proptest::prelude::*;
use quietcore_core::Nanos;
use quietcore_qdisc::{Cbq, CbqClass, CbqOverlimit, CbqSettings, ClassId, Dequeued, Qdisc};

const CLASSES: u16 = 9;

#[derive(Clone, Debug)]
enum Step {
    /// For a class, or for one that does not exist.
    Enqueue(u16, u32),
    /// So many packets for each class.
    Fill(u16, u32),
    Dequeue,
    /// Takes one packet after the other, as fast as the link does.
    Send(u16),
    Wait(u64),
    /// Time passes until the moment that was named last, less so much.
    Until(u64),
    Delays,
    Reset,
}

fn told() -> impl Strategy<Value = CbqClass> {
    let rates = prop_oneof![Just(1_000_u64), Just(LINK / 10), Just(LINK / 3), 1_000..LINK];
    let bursts = (prop_oneof![Just(0_u32), 0..30_u32], prop_oneof![2 => Just(0_u32), 1 => 0..10_u32]);
    let min_idle = prop_oneof![2 => Just(None), 1 => (0..50_000_000_u64).prop_map(|idle| Some(Nanos(idle)))];
    let weights = prop_oneof![2 => Just(None), 1 => (0..100_000_u64).prop_map(Some)];
    let prio = prop_oneof![3 => Just(8_u8), 1 => 0..10_u8];
    let kind = (any::<[bool; 3]>(), 0..24_u8, 0..4_000_u32);
    (rates, bursts, min_idle, weights, prio, kind).prop_map(
        |(
            own,
            (max_burst, min_burst),
            min_idle,
            weight,
            prio,
            ([bounded, isolated, delay], ewma_log, allot),
        )| {
            CbqClass {
                allot,
                weight,
                prio,
                max_burst,
                min_burst,
                min_idle,
                ewma_log,
                bounded,
                isolated,
                overlimit: if delay { CbqOverlimit::Delay } else { CbqOverlimit::Classic },
                ..CbqClass::new(rate(own))
            }
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let bytes = || prop_oneof![Just(0_u32), Just(60), Just(1_000), 1..2_000_u32, Just(20_000)];
    let times = prop_oneof![8 => 0..3_000_000_u64, 4 => 0..200_000_000_u64, 1 => Just(134_300_000_000)];
    prop_oneof![
        20 => (0..=CLASSES, bytes()).prop_map(|(class, bytes)| Step::Enqueue(class, bytes)),
        3 => (1..5_u16, bytes()).prop_map(|(count, bytes)| Step::Fill(count, bytes)),
        20 => Just(Step::Dequeue),
        10 => (1..20_u16).prop_map(Step::Send),
        6 => times.prop_map(Step::Wait),
        6 => (0..2_u64).prop_map(Step::Until),
        1 => Just(Step::Delays),
        1 => Just(Step::Reset),
    ]
}

struct Run {
    cbq: Cbq<Parcel>,
    model: Model,
    now: u64,
    named: u64,
    number: u32,
}

impl Run {
    fn new(tree: Vec<(u16, CbqClass)>) -> Self {
        let settings = CbqSettings { default_class: 2, ..CbqSettings::new(rate(LINK)) };
        let (mut cbq, mut model) = (Cbq::new(settings), Model::new(settings));
        for (minor, (parent, told)) in (1_u16..).zip(tree) {
            let parent = id(parent.min(minor - 1));
            cbq.add_class(Some(parent), id(minor), told).expect("new");
            model.add(id(minor).0, Some(parent.0), told);
        }
        Self { cbq, model, now: 0, named: 0, number: 0 }
    }

    fn play(&mut self, step: &Step) {
        match *step {
            Step::Enqueue(class, bytes) => self.enqueue(id(class), bytes),
            Step::Fill(count, bytes) => {
                for class in (0..count).flat_map(|_| 0..CLASSES) {
                    self.enqueue(id(class), bytes);
                }
            }
            Step::Dequeue => _ = self.dequeue(),
            Step::Send(count) => {
                for _ in 0..count {
                    let Dequeued::Packet(parcel) = self.dequeue() else { break };
                    self.now += rate(LINK).time(parcel.bytes).0;
                }
            }
            Step::Wait(nanos) => self.now += nanos,
            Step::Until(less) => self.now = self.now.max(self.named.saturating_sub(less)),
            Step::Delays => {
                assert_eq!(self.cbq.delay_timer().map(|moment| moment.0), self.model.next_penalty());
                self.cbq.end_delays(Nanos(self.now));
                self.model.end_penalties(self.now);
            }
            Step::Reset => {
                self.cbq.reset(Nanos(self.now));
                self.model.reset(self.now);
            }
        }
        self.compare();
    }

    fn enqueue(&mut self, class: ClassId, bytes: u32) {
        self.number += 1;
        let parcel = Parcel { number: self.number, class, bytes };
        let known = [class, id(2), id(0)].into_iter().find(|class| self.model.find(class.0).is_some());
        assert!(self.cbq.enqueue(Nanos(self.now), parcel).is_accepted());
        self.model.enqueue(self.now, known.expect("the link is there").0, parcel);
    }

    fn dequeue(&mut self) -> Dequeued<Parcel> {
        let got = self.cbq.dequeue(Nanos(self.now));
        assert_eq!(got, self.model.dequeue(self.now), "at {}", self.now);
        if let Dequeued::Throttled(moment) = got {
            assert!(moment.0 > self.now, "a busy loop at {}", self.now);
            self.named = moment.0;
        }
        got
    }

    fn compare(&self) {
        for class in &self.model.classes {
            let name = ClassId(class.id);
            let told = self.cbq.class(name).expect("the model has it");
            assert_eq!(i128::from(told.average_idle), class.average_idle, "{name} at {}", self.now);
            assert_eq!((told.queue.sent_bytes, told.queue.sent_packets), class.sent, "{name}");
            assert_eq!(told.queue.qlen, class.queue.len() as u64, "{name}");
            let counted = (told.queue.overlimits, told.overactions, told.borrows);
            assert_eq!(counted, (class.overlimits, class.overactions, class.borrows), "{name}");
        }
    }

    /// Takes out all there is, as a driver whose timer is never late, at the pace of the link.
    fn drain(&mut self) {
        for _ in 0..100_000 {
            match self.dequeue() {
                Dequeued::Packet(parcel) => self.now += rate(LINK).time(parcel.bytes).0,
                Dequeued::Throttled(until) => self.now = until.0,
                Dequeued::Empty => return,
            }
            self.compare();
        }
        panic!("it does not end");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 3 } else { 1_000 }))]

    /// Goal: the discipline does what the model does. Method: random trees, steps, and the end of it all.
    #[test]
    fn model_and_discipline_agree(
        tree in prop::collection::vec((0..5_u16, told()), 1..usize::from(CLASSES)),
        steps in prop::collection::vec(step(), 1..150),
    ) {
        let mut run = Run::new(tree);
        for step in &steps {
            run.play(step);
        }
        run.drain();
        prop_assert_eq!(run.cbq.statistics().qlen, 0);
    }
}

/// Goal: the model is not agreed with by doing nothing. Method: one run in which all that may happen does.
#[test]
fn loads_reach_every_answer() {
    let told = |bytes| CbqClass { max_burst: 2, ..CbqClass::new(rate(bytes)) };
    let delay = CbqClass { bounded: true, overlimit: CbqOverlimit::Delay, ..told(LINK / 20) };
    let tree = vec![
        (0, told(LINK / 2)),
        (1, told(LINK / 10)),
        (1, delay),
        (0, CbqClass { bounded: true, ..told(10_000) }),
    ];
    let mut run = Run::new(tree);
    run.play(&Step::Fill(30, 1_000));
    run.drain();
    let seen: Vec<_> = (1..=4).map(|minor| run.cbq.class(id(minor)).expect("added")).collect();
    assert!(seen[0].borrows > 0 && seen[1].borrows > 0, "{seen:?}");
    assert!(seen[2].overactions > 0 && seen[3].overactions > 0 && seen[3].queue.overlimits > 1, "{seen:?}");
}
