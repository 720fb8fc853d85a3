//! Random trees and steps: the discipline and the model say the same, packet for packet and moment for
//! moment.

use crate::common::{Parcel, id, rate};
use crate::model::{Class, Model};
use proptest::prelude::*;
use quietcore_core::Nanos;
use quietcore_qdisc::{ClassId, Dequeued, Enqueued, Htb, HtbClass, HtbError, HtbSettings, Qdisc};

/// Classes of a script at most.
const CLASSES: u16 = 12;

#[derive(Clone, Debug)]
enum Step {
    /// A packet for a class, whether there is such a leaf or not.
    Enqueue(u16, u32),
    /// So many packets for each class, of which leaves take theirs.
    Fill(u16, u32),
    Dequeue,
    /// Nanoseconds pass.
    Wait(u64),
    /// Time passes until the moment that was named last, less so much.
    Until(u64),
    Add(Option<u16>, u16, HtbClass),
    Change(u16, HtbClass),
    Remove(u16),
}

/// Ids that are not in the order in which classes are added.
fn name(number: u16) -> ClassId {
    id(number * 5 % (CLASSES + 1) + 1)
}

fn told() -> impl Strategy<Value = HtbClass> {
    let rates = prop_oneof![Just(1_000_u64), Just(50_000), Just(125_000), 2_000..3_000_000_u64];
    let ceils = prop_oneof![2 => Just(1_u64), 2 => Just(3), 3 => Just(100)];
    let bursts = || prop_oneof![Just(None), Just(Some(0)), (0..20_000_u64).prop_map(Some)];
    let quanta = prop_oneof![Just(None), (0..5_000_u32).prop_map(Some)];
    (rates, ceils, bursts(), bursts(), prop_oneof![2 => Just(0_u8), 1 => 0..4_u8], quanta).prop_map(
        |(own, times, burst, cburst, prio, quantum)| HtbClass {
            ceil: rate(own * times),
            burst,
            cburst,
            prio: if prio == 3 { 9 } else { prio },
            quantum,
            ..HtbClass::new(rate(own))
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let bytes = || prop_oneof![Just(0_u32), Just(60), Just(1_500), 1..3_000_u32, Just(20_000)];
    let times = prop_oneof![8 => 0..3_000_000_u64, 2 => 0..2_000_000_000_u64, 1 => Just(70_000_000_000)];
    prop_oneof![
        20 => (0..=CLASSES, bytes()).prop_map(|(class, bytes)| Step::Enqueue(class, bytes)),
        1 => (1..4_u16, bytes()).prop_map(|(count, bytes)| Step::Fill(count, bytes)),
        30 => Just(Step::Dequeue),
        5 => times.prop_map(Step::Wait),
        6 => (0..2_u64).prop_map(Step::Until),
        1 => (prop::option::of(0..CLASSES), 0..CLASSES, told()).prop_map(|(p, c, t)| Step::Add(p, c, t)),
        1 => (0..CLASSES, told()).prop_map(|(class, told)| Step::Change(class, told)),
        1 => (0..CLASSES).prop_map(Step::Remove),
    ]
}

/// Trees of at most 3 levels: two roots, each class below one of the four before it.
fn tree() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec((0..4_u16, told()), 2..usize::from(CLASSES)).prop_map(|classes| {
        let add = |(number, (parent, told)): (usize, (u16, HtbClass))| {
            let number = number as u16;
            Step::Add((number > 1).then_some(parent.min(number - number.min(1))), number, told)
        };
        classes.into_iter().enumerate().map(add).collect()
    })
}

struct Run {
    htb: Htb<Parcel>,
    model: Model,
    now: u64,
    named: u64,
    number: u32,
}

impl Run {
    fn new() -> Self {
        let settings = HtbSettings { default_class: 3, direct_qlen: 4, ..HtbSettings::default() };
        Self { htb: Htb::new(settings), model: Model::default(), now: 0, named: 0, number: 0 }
    }

    fn play(&mut self, step: Step) {
        match step {
            Step::Enqueue(class, bytes) => self.enqueue(name(class), bytes),
            Step::Fill(count, bytes) => {
                for class in (0..CLASSES).flat_map(|class| (0..count).map(move |_| class)) {
                    let number = name(class).0;
                    if self.model.find(number).is_some() && !self.model.has_children(number) {
                        self.enqueue(name(class), bytes);
                    }
                }
            }
            Step::Dequeue => _ = self.dequeue(),
            Step::Wait(nanos) => self.now += nanos,
            Step::Until(less) => self.now = self.now.max(self.named.saturating_sub(less)),
            Step::Add(parent, class, told) => self.add(parent.map(name), name(class), told),
            Step::Change(class, told) => {
                let at = self.model.find(name(class).0);
                assert_eq!(self.htb.change_class(name(class), told).is_ok(), at.is_some());
                if let Some(at) = at {
                    self.model.classes[at].told = told;
                }
            }
            Step::Remove(class) => {
                let number = name(class).0;
                let may = self.model.find(number).is_some() && !self.model.has_children(number);
                assert_eq!(self.htb.remove_class(name(class)).is_ok(), may);
                if may {
                    self.model.remove(number);
                }
            }
        }
        self.compare();
    }

    fn enqueue(&mut self, class: ClassId, bytes: u32) {
        self.number += 1;
        let parcel = Parcel { number: self.number, class, bytes };
        let leaf = [class, id(3)]
            .map(|class| class.0)
            .into_iter()
            .find_map(|one| self.model.find(one).filter(|_| !self.model.has_children(one)));
        let verdict = self.htb.enqueue(Nanos(self.now), parcel);
        let expected = match leaf {
            Some(at) => {
                self.model.classes[at].queue.push(parcel);
                Enqueued::Queued
            }
            None if self.model.direct.len() < 4 => {
                self.model.direct.push(parcel);
                Enqueued::Queued
            }
            None => Enqueued::Dropped,
        };
        assert_eq!(verdict, expected);
    }

    fn add(&mut self, parent: Option<ClassId>, class: ClassId, told: HtbClass) {
        let above = parent.map(|class| class.0);
        let found = above.map(|above| self.model.find(above));
        let expected = if self.model.find(class.0).is_some() {
            Err(HtbError::Exists(class))
        } else if found == Some(None) {
            Err(HtbError::UnknownParent(parent.expect("it was looked for")))
        } else if let Some(at) = found.flatten().filter(|&at| !self.model.classes[at].queue.is_empty()) {
            assert!(!self.model.has_children(self.model.classes[at].id), "only leaves hold packets");
            Err(HtbError::HoldsPackets(parent.expect("it was looked for")))
        } else if above.is_some_and(|above| self.model.depth(above) > 6) {
            Err(HtbError::TooDeep(class))
        } else {
            self.model.classes.push(Class::new(class.0, above, told));
            Ok(())
        };
        assert_eq!(self.htb.add_class(parent, class, told), expected);
    }

    fn dequeue(&mut self) -> Dequeued<Parcel> {
        let got = self.htb.dequeue(Nanos(self.now));
        assert_eq!(got, self.model.dequeue(self.now), "at {}", self.now);
        if let Dequeued::Throttled(moment) = got {
            assert!(moment.0 > self.now, "a busy loop at {}", self.now);
            self.named = moment.0;
        }
        got
    }

    fn compare(&self) {
        let all = self.htb.statistics();
        let queued = self.model.classes.iter().flat_map(|class| &class.queue).chain(&self.model.direct);
        let bytes: u64 = queued.clone().map(|parcel| u64::from(parcel.bytes)).sum();
        assert_eq!((all.backlog, all.qlen), (bytes, queued.count() as u64));
        assert_eq!(all.sent_packets + all.dropped + all.qlen, u64::from(self.number), "nothing is lost");
        for class in &self.model.classes {
            let id = id((class.id & 0xffff) as u16);
            let told = self.htb.class(id).expect("the model has it");
            assert_eq!((told.lends, told.borrows), (class.lends, class.borrows), "{id}");
            assert_eq!(told.queue.overlimits, class.overlimits, "{id}");
            let tokens = (i128::from(told.tokens), i128::from(told.ctokens));
            assert_eq!(tokens, (class.tokens, class.ctokens), "{id}");
        }
    }

    /// Takes out all there is, as a driver whose timer is never late.
    fn drain(&mut self) {
        let mut waits = 0;
        while self.dequeue() != Dequeued::Empty {
            if self.named > self.now {
                waits += 1;
                assert!(waits < 100_000, "it ends");
                self.now = self.named;
            }
        }
        self.compare();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 3 } else { 500 }))]

    /// Goal: the discipline does what the model does. Method: random trees, steps, and the end of it all.
    #[test]
    fn model_and_discipline_agree(tree in tree(), steps in prop::collection::vec(step(), 1..250)) {
        let mut run = Run::new();
        for step in tree.into_iter().chain(steps) {
            run.play(step);
        }
        run.drain();
        assert_eq!(run.htb.statistics().qlen, 0);
    }
}

/// Goal: the model is not agreed with by doing nothing. Method: one run in which all that may happen does.
#[test]
fn scripts_reach_every_mode() {
    let mut run = Run::new();
    let told = |own, times| HtbClass { ceil: rate(own * times), ..HtbClass::new(rate(own)) };
    run.play(Step::Add(None, 0, told(100_000, 1)));
    run.play(Step::Add(Some(0), 1, told(10_000, 4)));
    run.play(Step::Add(Some(0), 2, told(10_000, 20)));
    for _ in 0..20 {
        run.play(Step::Enqueue(1, 1_500));
        run.play(Step::Enqueue(2, 1_500));
    }
    run.drain();
    let [root, slow, fast] = [0, 1, 2].map(|class| run.htb.class(name(class)).expect("added"));
    assert_eq!(root.lends + slow.lends + fast.lends, 40, "{root:?} {slow:?} {fast:?}");
    assert_eq!(root.lends, slow.borrows + fast.borrows);
    assert!(root.lends > 0 && slow.lends > 0 && fast.lends > 0 && slow.queue.overlimits > 0);
}
