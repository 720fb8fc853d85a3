//! `sfq` against a model that is written from its papers and the kernel's description, a recording of a
//! kernel, and what it promises.

#[path = "../common/recorded.rs"]
mod recorded;

use proptest::prelude::*;
use quietcore_core::Nanos;
use quietcore_qdisc::{
    ClassId, Classful, Dequeued, Enqueued, IdleDamping, Packet, Qdisc, RedCurve, Sfq, SfqError, SfqRed,
    SfqSettings, SfqStatistics, Statistics,
};
use recorded::{BYTES, differences};
use std::collections::VecDeque;

const SECOND: u64 = 1_000_000_000;

/// A packet that is only what is known of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Datagram {
    number: u32,
    /// The class that it names.
    class: u16,
    flow: u64,
    bytes: u32,
    markable: bool,
    marks: u32,
}

impl Packet for Datagram {
    fn len(&self) -> u32 {
        self.bytes
    }

    fn flow(&self) -> u64 {
        self.flow
    }

    fn priority(&self) -> u32 {
        if self.class == 0 { 0 } else { ClassId::new(1, self.class).0 }
    }

    fn mark_congestion(&mut self) -> bool {
        self.marks += u32::from(self.markable);
        self.markable
    }
}

/// Numbers that look random, the same for the model.
fn numbers() -> impl FnMut() -> u32 + Send + 'static {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u32
    }
}

#[derive(Debug, Default)]
struct Flow {
    packets: VecDeque<Datagram>,
    allot: i64,
    /// When it last became longer or shorter.
    changed: u64,
    average: u64,
    count: i64,
    threshold: u64,
}

impl Flow {
    fn bytes(&self) -> u64 {
        self.packets.iter().map(|packet| u64::from(packet.bytes)).sum()
    }
}

/// A list per class, and the classes whose turns it is.
struct Model {
    settings: SfqSettings,
    flows: Vec<Flow>,
    ring: VecDeque<usize>,
    random: Box<dyn FnMut() -> u32>,
    clock: u64,
    told: Statistics,
    red: SfqStatistics,
}

impl Model {
    fn new(settings: SfqSettings) -> Self {
        let flows = (0..settings.divisor).map(|_| Flow::default()).collect();
        let mut random = Box::new(numbers());
        for _ in 0..2 {
            random(); // what flows are spread by
        }
        let (told, red) = Default::default();
        Self { settings, flows, ring: VecDeque::new(), random, clock: 0, told, red }
    }

    fn drop(&mut self, verdict: Enqueued) -> Enqueued {
        self.told.dropped += 1;
        verdict
    }

    /// Whether the packet is marked or passes; `None` if it goes. Floyd and Jacobson (1993), figure 2.
    fn early(&mut self, index: usize, packet: &mut Datagram) -> Option<()> {
        let red = self.settings.red.clone()?;
        let flow = &mut self.flows[index];
        let weight = red.curve.weight_log;
        flow.average = flow.average - (flow.average >> weight) + flow.bytes();
        let (min, max) = (u64::from(red.curve.min) << weight, u64::from(red.curve.max) << weight);
        let mut is_forced = false;
        if flow.average < min {
            flow.count = -1;
            return Some(());
        } else if flow.average >= max {
            flow.count = -1;
            is_forced = true;
        } else {
            flow.count += 1;
            let above = (flow.average - min) >> weight;
            if flow.count > 0 && above * (flow.count as u64) < flow.threshold {
                return Some(());
            }
            let span = u64::from(red.curve.max - red.curve.min);
            let is_first = flow.count == 0;
            flow.threshold = u64::from((self.random)()) / (u64::from(red.curve.probability) / span).max(1);
            flow.count = 0;
            if is_first {
                return Some(());
            }
        }
        self.told.overlimits += 1;
        let is_marking = red.ecn && !(is_forced && red.harddrop);
        let (early, forced) = (u64::from(!is_forced), u64::from(is_forced));
        let first = flow.packets.front_mut().expect("an average above 0");
        if is_marking && self.settings.headdrop && first.markable {
            first.marks += 1;
            self.red.early_head_marks += early;
            self.red.forced_head_marks += forced;
        } else if is_marking && packet.markable {
            packet.marks += 1;
            self.red.early_marks += early;
            self.red.forced_marks += forced;
        } else {
            self.red.early_drops += early;
            self.red.forced_drops += forced;
            return None;
        }
        Some(())
    }

    fn enqueue(&mut self, mut packet: Datagram) -> Enqueued {
        let index = usize::from(packet.class) - 1;
        if self.flows[index].packets.is_empty() {
            if self.ring.len() == self.settings.flows as usize {
                return self.drop(Enqueued::Dropped);
            }
            self.flows[index] = Flow { count: -1, allot: self.settings.quantum.into(), ..Flow::default() };
        }
        let passes = self.settings.red.is_none() || self.early(index, &mut packet).is_some();
        if !passes || self.flows[index].packets.len() >= self.settings.depth as usize {
            if !self.settings.headdrop || self.flows[index].packets.is_empty() {
                return self.drop(Enqueued::Dropped);
            }
            self.flows[index].packets.pop_front();
            self.flows[index].packets.push_back(packet);
            return self.drop(Enqueued::Queued);
        }
        self.clock += 1;
        let flow = &mut self.flows[index];
        if flow.packets.is_empty() {
            self.ring.push_back(index);
        }
        flow.packets.push_back(packet);
        flow.changed = self.clock;
        let all: usize = self.flows.iter().map(|flow| flow.packets.len()).sum();
        if all <= self.settings.limit as usize {
            return Enqueued::Queued;
        }
        let length = |index: &usize| (self.flows[*index].packets.len(), self.flows[*index].changed);
        let longest = *self.ring.iter().max_by_key(|index| length(index)).expect("one is too long");
        let loser = if self.flows[longest].packets.len() == 1 { self.ring[0] } else { longest };
        let gone = &mut self.flows[loser].packets;
        if self.settings.headdrop {
            gone.pop_front()
        } else {
            gone.pop_back()
        };
        self.clock += 1;
        self.flows[loser].changed = self.clock;
        self.ring.retain(|index| !self.flows[*index].packets.is_empty());
        let is_own = loser == index && !self.settings.headdrop;
        self.drop(if is_own { Enqueued::Dropped } else { Enqueued::Queued })
    }

    fn dequeue(&mut self) -> Option<Datagram> {
        let mut index = *self.ring.front()?;
        while self.flows[index].allot <= 0 {
            self.flows[index].allot += i64::from(self.settings.quantum);
            self.ring.rotate_left(1);
            index = self.ring[0];
        }
        self.clock += 1;
        let flow = &mut self.flows[index];
        let packet = flow.packets.pop_front().expect("it is in the ring");
        (flow.changed, flow.allot) = (self.clock, flow.allot - i64::from(packet.bytes));
        if flow.packets.is_empty() {
            self.ring.pop_front();
        }
        self.told.sent_packets += 1;
        self.told.sent_bytes += u64::from(packet.bytes);
        Some(packet)
    }

    fn statistics(&self) -> Statistics {
        let mut told = self.told;
        told.backlog = self.flows.iter().map(Flow::bytes).sum();
        told.qlen = self.flows.iter().map(|flow| flow.packets.len() as u64).sum();
        told
    }
}

fn curve(min: u32, max: u32, weight_log: u32, probability: u32) -> RedCurve {
    let idle = IdleDamping::new(weight_log, 1_000, 1_250_000).expect("a usual link");
    RedCurve { min, max, weight_log, probability, idle }
}

fn red() -> impl Strategy<Value = Option<SfqRed>> {
    let limits = (1_u32..3_000, 1_u32..6_000);
    let red = (limits, 1_u32..4, any::<u32>(), any::<bool>(), any::<bool>()).prop_map(
        |((min, span), weight, probability, ecn, harddrop)| {
            let curve = curve(min, min + span, weight, probability);
            SfqRed { curve, ecn, harddrop }
        },
    );
    proptest::option::of(red)
}

const BUCKETS: u16 = 8;

fn settings() -> impl Strategy<Value = SfqSettings> {
    let limit = prop_oneof![2_u32..10, Just(127)];
    (limit, 1_u32..4_000, 1_u32..12, 1_u32..9, any::<bool>(), red()).prop_map(
        |(limit, quantum, depth, flows, headdrop, red)| {
            let divisor = BUCKETS.into();
            SfqSettings { limit, quantum, depth, flows, divisor, headdrop, red, ..SfqSettings::default() }
        },
    )
}

fn sfq(settings: SfqSettings) -> Sfq<Datagram, impl FnMut() -> u32 + Send + 'static> {
    Sfq::new(settings, numbers(), Nanos(0)).expect("settings that can be")
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(800) })]

    /// Goal: packets, marks, verdicts, turns and counts are the model's. Method: random settings and packets
    /// of eight classes, two of three steps an arrival; both compared after each step.
    #[test]
    fn packets_leave_as_the_model_says(
        settings in settings(),
        script in proptest::collection::vec((1..=BUCKETS, 1_u32..2_000, any::<bool>(), 0_u8..30), 1..400),
    ) {
        let mut queue = sfq(settings.clone());
        let mut model = Model::new(settings);
        for (number, (class, bytes, markable, step)) in (0..).zip(script) {
            match step {
                0 => {
                    queue.reset(Nanos(0));
                    model.flows.iter_mut().for_each(|flow| *flow = Flow::default());
                    model.ring.clear();
                }
                1..20 => {
                    let packet = Datagram { number, class, bytes, markable, ..Datagram::default() };
                    prop_assert_eq!(queue.enqueue(Nanos(0), packet), model.enqueue(packet));
                }
                _ => prop_assert_eq!(queue.dequeue(Nanos(0)).packet(), model.dequeue()),
            }
            prop_assert_eq!(queue.statistics(), model.statistics());
            prop_assert_eq!(queue.sfq_statistics(), model.red);
            for (minor, flow) in (1..).zip(&model.flows) {
                let class = ClassId::new(1, minor);
                let allot = (!flow.packets.is_empty()).then_some(flow.allot);
                prop_assert_eq!(queue.allot(class), allot);
                prop_assert_eq!(queue.classes().contains(&class), allot.is_some());
                let held = queue.class_statistics(class).unwrap_or_default();
                prop_assert_eq!((held.qlen, held.backlog), (flow.packets.len() as u64, flow.bytes()));
            }
        }
    }
}

/// Goal: flows of one number share a bucket; what flows are spread by is drawn, and drawn anew after a
/// period: then two flows that shared a bucket do not, in the end, and no packet is lost or twice. Method:
/// many flows in two buckets; one packet each leaves per turn.
#[test]
fn flows_are_spread_anew() {
    let perturb = Nanos(10 * SECOND);
    let settings = SfqSettings { divisor: 64, flows: 64, limit: 1_000, perturb, ..SfqSettings::default() };
    let mut queue = sfq(settings);
    let mut partners = std::collections::BTreeSet::new();
    for period in 0..40_u64 {
        let now = Nanos(period * 10 * SECOND);
        for flow in 0..32 {
            let packet = Datagram { flow, bytes: 100, ..Datagram::default() };
            assert_eq!(queue.enqueue(now, packet), Enqueued::Queued);
            assert_eq!(queue.enqueue(Nanos(now.0 + 1), packet), Enqueued::Queued);
        }
        let (used, held) = (queue.classes().len(), queue.statistics().qlen);
        assert!((15..=32).contains(&used), "{used} buckets of 32 flows");
        assert_eq!(held, 64);
        partners.insert(queue.classes());
        if period % 2 == 0 {
            // What is there when flows are spread anew is neither lost nor mixed up.
            let _ = queue.dequeue(Nanos(now.0 + 10 * SECOND - 1));
            let _ = queue.dequeue(Nanos(now.0 + 10 * SECOND));
            partners.insert(queue.classes());
            assert_eq!(queue.statistics().qlen, 62);
        }
        let mut sent = queue.statistics().sent_packets % 64;
        while queue.dequeue(Nanos(now.0 + 10 * SECOND)).packet().is_some() {
            sent += 1;
        }
        assert_eq!(sent, 64);
    }
    assert!(partners.len() >= 40, "{} of 40 periods", partners.len());
    let mut still = sfq(SfqSettings { divisor: 64, flows: 64, limit: 1_000, ..SfqSettings::default() });
    let classes = |queue: &mut Sfq<Datagram, _>, now| {
        for flow in 0..32 {
            let _ = queue.enqueue(now, Datagram { flow, bytes: 9, ..Datagram::default() });
        }
        queue.classes()
    };
    assert_eq!(classes(&mut still, Nanos(0)), classes(&mut still, Nanos(u64::MAX)));
}

/// Goal: when flows are spread anew what does not fit is dropped and counted, and what does keeps its order.
/// Method: two flows in one bucket of one, more packets than its depth once it has less.
#[test]
fn what_does_not_fit_anew_is_dropped() {
    let perturb = Nanos(SECOND);
    let settings = SfqSettings { divisor: 2, flows: 1, depth: 5, perturb, ..SfqSettings::default() };
    let mut dropped = 0;
    let mut queue = sfq(settings);
    for second in 0..50 {
        let now = Nanos(second * SECOND);
        let flows = [3, 4];
        for (number, flow) in (0..).zip(flows.into_iter().cycle().take(8)) {
            let packet = Datagram { number, flow, bytes: 100, ..Datagram::default() };
            let _ = queue.enqueue(now, packet);
        }
        let before = queue.statistics();
        let later = Nanos(now.0 + SECOND);
        let mut last = [None; 5];
        let mut left = 0;
        while let Dequeued::Packet(packet) = queue.dequeue(later) {
            let number = &mut last[packet.flow as usize];
            assert!(number.is_none_or(|number| number < packet.number), "{packet:?} after {number:?}");
            *number = Some(packet.number);
            left += 1;
        }
        let lost = queue.statistics().dropped - before.dropped;
        assert_eq!(left + lost, before.qlen);
        dropped += lost;
    }
    assert!(dropped > 0, "flows that shared a bucket came apart, and one is all there is");
}

/// Goal: a filter's class is a bucket; one that there is not drops, and the sender is not told. Method: the
/// last one, the one behind it, and none; a packet whose priority names another.
#[test]
fn filters_choose_buckets() {
    let settings = SfqSettings { major: 7, divisor: 4, ..SfqSettings::default() };
    let mut queue = sfq(settings.clone());
    assert!(queue.has_filters() && queue.slots().is_empty());
    for (minor, verdict) in [(4, Enqueued::Queued), (5, Enqueued::Lost), (0, Enqueued::Lost)] {
        let packet = Datagram { bytes: 60, ..Datagram::default() };
        assert_eq!(queue.enqueue_filtered(Nanos(0), ClassId::new(7, minor), packet), verdict, "7:{minor}");
    }
    assert_eq!((queue.classes(), queue.statistics().dropped), (vec![ClassId::new(7, 4)], 2));
    let mut queue = sfq(SfqSettings { major: 1, ..settings });
    let packet = Datagram { class: 2, bytes: 60, ..Datagram::default() };
    assert_eq!(queue.enqueue_filtered(Nanos(0), ClassId::new(1, 4), packet), Enqueued::Queued);
    assert_eq!(queue.classes(), [ClassId::new(1, 2)]);
}

/// Goal: a packet that early detection drops where its flow holds none is the one that is dropped, also where
/// the first of a flow would be. Method: a curve that drops everything.
#[test]
fn the_first_of_a_flow_that_holds_none() {
    let red = SfqRed { curve: curve(0, 0, 1, 0), ecn: false, harddrop: false };
    let mut queue = sfq(SfqSettings { headdrop: true, red: Some(red), ..SfqSettings::default() });
    let packet = Datagram { class: 1, bytes: 100, ..Datagram::default() };
    assert_eq!(queue.enqueue(Nanos(0), packet), Enqueued::Dropped);
    let counted = queue.statistics();
    assert_eq!((counted.dropped, counted.qlen, queue.dequeue(Nanos(0))), (1, 0, Dequeued::Empty));
}

/// Goal: settings that cannot be are refused. Method: both sides of each limit.
#[test]
fn settings_that_cannot_be() {
    let least =
        SfqSettings { limit: 2, quantum: 1, depth: 1, flows: 1, divisor: 1, ..SfqSettings::default() };
    let make = |settings| Sfq::<Datagram, _>::new(settings, || 0, Nanos(0)).map(|_| ());
    assert_eq!(make(least.clone()), Ok(()));
    let most = SfqSettings { depth: 127, flows: 65_408, divisor: 65_536, ..least.clone() };
    assert_eq!(make(most), Ok(()));
    for (wrong, error) in [
        (SfqSettings { limit: 1, ..least.clone() }, SfqError::Limit(1)),
        (SfqSettings { quantum: 0, ..least.clone() }, SfqError::Quantum),
        (SfqSettings { depth: 0, ..least.clone() }, SfqError::Depth(0)),
        (SfqSettings { depth: 128, ..least.clone() }, SfqError::Depth(128)),
        (SfqSettings { flows: 0, ..least.clone() }, SfqError::Flows(0)),
        (SfqSettings { flows: 65_409, ..least.clone() }, SfqError::Flows(65_409)),
        (SfqSettings { divisor: 3, ..least.clone() }, SfqError::Divisor(3)),
        (SfqSettings { divisor: 131_072, ..least }, SfqError::Divisor(131_072)),
    ] {
        assert_eq!(make(wrong), Err(error));
    }
}

const RECORDED: &str = include_str!("../recorded/sfq-linux-6.12.txt");

/// Goal: a real kernel drops what ours does, and lets packets go at the same time. Method: its arrivals; what
/// tbf has looked at counts for the kernel's limit and not for ours, so ours is one less.
#[test]
fn a_kernel_drops_the_same_packets() {
    let settings = SfqSettings { limit: 39, depth: 20, ..SfqSettings::default() };
    let datagram = |number: u32| {
        let class = (number % 3) as u16 + 1;
        Datagram { number, class, bytes: BYTES, ..Datagram::default() }
    };
    let fate = |packet: &Datagram| (packet.number, packet.marks > 0);
    let last = sfq(settings.clone());
    let first = sfq(SfqSettings { headdrop: true, quantum: 3_000, ..settings });
    // What comes and goes in the same microseconds makes up for a packet of the limit now and then.
    let (other, drops, _) = differences((RECORDED, "sfq limit 40 depth 20, 3 flows"), datagram, fate, last);
    assert!(other <= 12 && drops == 154, "{other} others, {drops} drops");
    let name = "sfq limit 40 depth 20 headdrop quantum 3000, 3 flows";
    let (other, drops, _) = differences((RECORDED, name), datagram, fate, first);
    assert!(other <= 16 && drops == 155, "{other} others, {drops} drops");
}
