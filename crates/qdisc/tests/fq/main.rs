//! `fq` against a model that is written from the description of the kernel's, and what it promises.

mod model;
mod promises;

use model::Model;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use quietcore_core::Nanos;
use quietcore_qdisc::{Dequeued, Fq, FqSettings, Horizon, Packet, Qdisc};

/// A packet that is only what is known of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Datagram {
    number: u32,
    flow: u64,
    bytes: u32,
    departure: Option<Nanos>,
    rate: Option<u64>,
    priority: u32,
    /// Whether it can be marked, and is.
    markable: bool,
    marked: bool,
}

impl Packet for Datagram {
    fn len(&self) -> u32 {
        self.bytes
    }

    fn flow(&self) -> u64 {
        self.flow
    }

    fn departure(&self) -> Option<Nanos> {
        self.departure
    }

    fn pacing_rate(&self) -> Option<u64> {
        self.rate
    }

    fn priority(&self) -> u32 {
        self.priority
    }

    fn mark_congestion(&mut self) -> bool {
        self.marked = self.markable;
        self.marked
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Wait(u64),
    /// The departure counts from now on.
    Enqueue(Datagram),
    Dequeue,
    /// Until there is nothing more to send now.
    Drain,
    /// At the moment that is named, if one is, and a nanosecond before.
    DequeueInTime,
    Reset,
}

/// Both, side by side, and what was sent when.
#[derive(Debug)]
struct Pair {
    subject: Fq<Datagram>,
    model: Model,
    now: Nanos,
    number: u32,
    sent: Vec<(Nanos, Datagram)>,
}

impl Pair {
    fn new(settings: FqSettings) -> Self {
        let subject = Fq::new(settings).expect("settings that can be");
        Self { subject, model: Model::new(settings), now: Nanos(1_000_000), number: 0, sent: vec![] }
    }

    fn dequeue(&mut self) -> Dequeued<Datagram> {
        let given = self.subject.dequeue(self.now);
        assert_eq!(given, self.model.dequeue(self.now.0), "at {:?}", self.now);
        if let Dequeued::Packet(packet) = given {
            self.sent.push((self.now, packet));
        }
        given
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Wait(span) => self.now.0 += span,
            Step::Enqueue(packet) => {
                self.number += 1;
                let departure = packet.departure.map(|after| Nanos(self.now.0 + after.0 - 500_000));
                let packet = Datagram { number: self.number, departure, ..packet };
                let verdict = self.subject.enqueue(self.now, packet);
                assert_eq!(verdict, self.model.enqueue(self.now.0, packet), "{packet:?} at {:?}", self.now);
            }
            Step::Dequeue => {
                let _ = self.dequeue();
            }
            Step::Drain => while self.dequeue().packet().is_some() {},
            Step::DequeueInTime => {
                if let Dequeued::Throttled(until) = self.dequeue() {
                    assert!(until > self.now, "{until:?} is no moment to wait for at {:?}", self.now);
                    self.now = Nanos(until.0 - 1);
                    assert_eq!(self.dequeue(), Dequeued::Throttled(until), "not earlier");
                    self.now = until;
                    assert!(self.dequeue().packet().is_some(), "not at {until:?}, as was said");
                }
            }
            Step::Reset => {
                self.subject.reset(self.now);
                self.model.reset();
            }
        }
        assert_eq!(self.subject.statistics(), self.model.statistics(), "after {step:?} at {:?}", self.now);
        let (given, expected) = (self.subject.fq_statistics(), self.model.fq_statistics());
        assert_eq!(given, expected, "after {step:?} at {:?}", self.now);
    }
}

fn packets(flows: u64) -> impl Strategy<Value = Datagram> {
    let departure = prop_oneof![
        3 => Just(None),
        1 => prop_oneof![0_u64..1_000_000, 0_u64..50_000_000, 0_u64..3_000_000_000].prop_map(Some),
    ];
    let rate = prop_oneof![
        3 => Just(None),
        2 => prop_oneof![0_u64..3, 500_u64..100_000, 60_000_u64..5_000_000, Just(u64::MAX)].prop_map(Some),
    ];
    let bytes = prop_oneof![4 => 1_u32..3_000, 1 => 1_u32..70_000];
    (0..flows, bytes, departure, rate, 0_u32..20, any::<bool>()).prop_map(
        |(flow, bytes, departure, rate, priority, markable)| {
            let departure = departure.map(Nanos);
            Datagram { flow, bytes, departure, rate, priority, markable, ..Datagram::default() }
        },
    )
}

fn steps(flows: u64) -> impl Strategy<Value = Vec<Step>> {
    let wait = prop_oneof![0_u64..100, 0_u64..100_000, 0_u64..80_000_000, 0_u64..4_000_000_000];
    let step = prop_oneof![
        20 => wait.prop_map(Step::Wait),
        50 => packets(flows).prop_map(Step::Enqueue),
        25 => Just(Step::Dequeue),
        5 => Just(Step::Drain),
        15 => Just(Step::DequeueInTime),
        1 => Just(Step::Reset),
    ];
    proptest::collection::vec(step, 1..200)
}

/// What limits how much is queued, and what marks and caps.
fn limits() -> impl Strategy<Value = FqSettings> {
    let (limit, flow_limit) = (prop_oneof![1_u32..10, Just(10_000)], prop_oneof![0_u32..6, Just(100)]);
    let horizon = (any::<bool>(), prop_oneof![0_u64..100_000_000, Just(10_000_000_000)]);
    let horizon = horizon.prop_map(|(drop, span)| match drop {
        true => Horizon::Drop(Nanos(span)),
        false => Horizon::Cap(Nanos(span)),
    });
    let mask = prop_oneof![Just(None), (0_u64..64).prop_map(Some)];
    let threshold = prop_oneof![Just(None), (0_u64..1_000_000).prop_map(Some)];
    (limit, flow_limit, horizon, mask, threshold).prop_map(
        |(limit, flow_limit, horizon, orphan_mask, threshold)| {
            let ce_threshold = threshold.map(Nanos);
            FqSettings { limit, flow_limit, horizon, orphan_mask, ce_threshold, ..FqSettings::default() }
        },
    )
}

fn settings() -> impl Strategy<Value = FqSettings> {
    let quanta = prop_oneof![Just((3_028_u32, 15_140_u32)), (1_u32..5_000, 0_u32..20_000)];
    let maxrate = prop_oneof![2 => Just(None), 1 => (0_u64..2_000_000).prop_map(Some)];
    let low = prop_oneof![Just(68_750_u64), 0_u64..3_000_000];
    let refill = prop_oneof![Just(40_000_000_u64), 0_u64..1_000_000].prop_map(Nanos);
    let weights = prop_oneof![Just([589_824_u32, 196_608, 65_536]), Just([16_384; 3])];
    let priomap = prop_oneof![Just(None), proptest::array::uniform16(0_u8..3).prop_map(Some)];
    let paces = (maxrate, low, refill, 0_u8..8);
    (limits(), quanta, paces, 1_u32..6, weights, priomap).prop_map(
        |(settings, (quantum, initial_quantum), paces, buckets, weights, priomap)| {
            let (maxrate, low_rate_threshold, refill_delay, pacing) = paces;
            FqSettings {
                quantum,
                initial_quantum,
                buckets,
                weights,
                low_rate_threshold,
                refill_delay,
                maxrate,
                pacing: pacing > 0,
                priomap: priomap.unwrap_or(settings.priomap),
                ..settings
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(800) })]

    /// Goal: verdicts, packets, moments and all statistics are the model's. Method: random settings and
    /// steps, few flows and many, both side by side.
    #[test]
    fn as_the_model(settings in settings(), few in steps(4), many in steps(40)) {
        for steps in [few, many] {
            let mut pair = Pair::new(settings);
            for step in steps {
                pair.step(step);
            }
            let counted = pair.subject.fq_statistics();
            prop_assert!(counted.throttled_flows + counted.inactive_flows <= counted.flows);
        }
    }

    /// Goal: a caller that comes when it was said sends all there is; nothing is lost, nothing comes twice
    /// and nothing before its departure. Method: random steps, then from one named moment to the next.
    #[test]
    fn everything_leaves(settings in settings(), steps in steps(6)) {
        let mut pair = Pair::new(settings);
        for step in steps.into_iter().filter(|step| !matches!(step, Step::Reset)) {
            pair.step(step);
        }
        while pair.subject.statistics().qlen > 0 {
            pair.step(Step::DequeueInTime);
        }
        let mut numbers: Vec<u32> = pair.sent.iter().map(|(_, packet)| packet.number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        prop_assert_eq!(numbers.len(), pair.sent.len());
        prop_assert_eq!(numbers.len() as u64 + pair.subject.statistics().dropped, u64::from(pair.number));
        for (now, packet) in &pair.sent {
            let early = packet.departure.is_some_and(|departure| departure > *now);
            prop_assert!(!early || matches!(settings.horizon, Horizon::Cap(_)), "{:?} at {:?}", packet, now);
        }
    }
}

/// Goal: the random steps reach everything that is counted, so agreement with the model says something.
/// Method: the same settings and steps as above, of fixed randomness, until each count was seen.
#[test]
fn random_steps_reach_everything() {
    let mut runner = TestRunner::deterministic();
    let mut seen = [0_u64; 10];
    for _ in 0..300 {
        let case = (settings(), steps(40)).new_tree(&mut runner).expect("a case");
        let (settings, steps) = case.current();
        let mut pair = Pair::new(settings);
        steps.into_iter().for_each(|step| pair.step(step));
        let counted = pair.subject.fq_statistics();
        let counts = [
            counted.throttled,
            counted.collected_flows,
            counted.fast_path_packets,
            counted.flow_limit_drops,
            counted.band_drops.into_iter().min().expect("three bands"),
            counted.horizon_drops,
            counted.horizon_caps,
            counted.ce_marks,
            counted.too_long_packets,
            counted.unthrottle_latency.0,
        ];
        seen = std::array::from_fn(|at| seen[at] + counts[at].min(1));
    }
    // In more than one case of a hundred.
    assert!(seen.iter().all(|cases| *cases > 3), "{seen:?}");
}
