//! `red` against a model that is written from its papers, recordings of a kernel, and what it promises.

#[path = "common/recorded.rs"]
mod recorded;

use proptest::prelude::*;
use quietcore_core::Nanos;
use quietcore_qdisc::{
    ClassId, ClassListing, Classful, Dequeued, Enqueued, Fifo, FifoLimit, IdleDamping, Packet, Qdisc, Red,
    RedCurve, RedError, RedSettings, RedStatistics, Statistics,
};
use recorded::{BYTES, differences};
use std::collections::VecDeque;

const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLISECOND;

/// A packet that is only what is known of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Datagram {
    number: u32,
    bytes: u32,
    markable: bool,
    marks: u32,
}

impl Packet for Datagram {
    fn len(&self) -> u32 {
        self.bytes
    }

    fn mark_congestion(&mut self) -> bool {
        self.marks += u32::from(self.markable);
        self.markable
    }
}

/// Numbers that look random.
fn numbers(seed: u64) -> impl FnMut() -> u32 + Send + 'static {
    let mut state = 0x2545_f491_4f6c_dd1d_u64 ^ (seed << 17);
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u32
    }
}

/// The link of which an empty queue's average falls: 1,000 bytes take 800 us.
const RATE: u64 = 1_250_000;

fn curve(min: u32, max: u32, weight_log: u32, probability: u32) -> RedCurve {
    let idle = IdleDamping::new(weight_log, 1_000, RATE).expect("a usual link");
    RedCurve { min, max, weight_log, probability, idle }
}

fn settings(limit: u32, curve: RedCurve) -> RedSettings {
    RedSettings { limit, curve, ecn: false, harddrop: false, nodrop: false, adaptive: false }
}

/// A list, and the average of its length.
struct Model {
    settings: RedSettings,
    probability: u32,
    list: VecDeque<Datagram>,
    average: u64,
    count: i64,
    threshold: u64,
    idle_since: Option<u64>,
    next_adapt: u64,
    random: Box<dyn FnMut() -> u32>,
    told: Statistics,
    red: RedStatistics,
}

impl Model {
    fn new(settings: RedSettings, now: u64) -> Self {
        let (told, red) = Default::default();
        Self {
            probability: settings.curve.probability,
            settings,
            list: VecDeque::new(),
            average: 0,
            count: -1,
            threshold: 0,
            idle_since: Some(now),
            next_adapt: now + SECOND / 2,
            random: Box::new(numbers(1)),
            told,
            red,
        }
    }

    fn bytes(&self) -> u64 {
        self.list.iter().map(|packet| u64::from(packet.bytes)).sum()
    }

    /// The average by now. Of an empty queue it is halved in (ln 2 / -ln(1 - w)) packets' times; `tc` has a
    /// table of 256 steps, of units of 64 ns that the kernel takes for microseconds.
    fn fallen(&self, now: u64) -> u64 {
        let Some(since) = self.idle_since else { return self.average };
        let weight = 0.5_f64.powi(self.settings.curve.weight_log as i32);
        let packet = 1e9 * 1_000.0 / RATE as f64 / 64.0;
        let each = -(1.0 - weight).ln() / packet;
        let mut step = 1_u64;
        while 31.0 / each / step as f64 >= 512.0 {
            step *= 2;
        }
        let micros = ((now - since) / 1_000).min(255 * step);
        let at = micros / step;
        let halves = if at == 255 { 31 } else { ((at * step) as f64 * each).min(31.0) as u32 };
        match halves {
            0 => self.average - (self.average * micros / step).min(self.average / 2),
            halves => self.average >> halves,
        }
    }

    /// Floyd, Gummadi and Shenker (2001), section 4: alpha 0.01 or a quarter, beta 0.9, twice a second.
    fn adapt(&mut self, now: u64) {
        while self.settings.adaptive && self.next_adapt <= now {
            let RedCurve { min, max, weight_log, .. } = self.settings.curve;
            let average = self.fallen(self.next_adapt) >> weight_log;
            let fifth = u64::from(max - min).max(1) / 5;
            let percent = ((1_u64 << 32) + 50) / 100;
            let now_at = u64::from(self.probability);
            if average > u64::from(min) + 3 * fifth && now_at <= 50 * percent {
                self.probability += percent.min(now_at / 4) as u32;
            } else if average < u64::from(min) + 2 * fifth && now_at >= percent {
                self.probability = self.probability / 10 * 9;
            }
            self.next_adapt += SECOND / 2;
        }
    }

    fn enqueue(&mut self, now: u64, mut packet: Datagram) -> Enqueued {
        self.adapt(now);
        let RedSettings { curve: RedCurve { min, max, weight_log, .. }, .. } = self.settings;
        self.average = match self.idle_since {
            Some(_) => self.fallen(now),
            None => self.average - (self.average >> weight_log) + self.bytes(),
        };
        self.idle_since = None;
        let (low, high) = (u64::from(min) << weight_log, u64::from(max) << weight_log);
        let (mut is_chosen, mut is_forced) = (false, false);
        if self.average < low {
            self.count = -1;
        } else if self.average >= high {
            (self.count, is_chosen, is_forced) = (-1, true, true);
        } else {
            self.count += 1;
            let above = (self.average - low) >> weight_log;
            is_chosen = self.count > 0 && above * self.count as u64 >= self.threshold;
            if is_chosen || self.count == 0 {
                let each = (self.probability / (max - min).max(1)).max(1);
                self.threshold = u64::from((self.random)() / each);
                self.count = 0;
            }
        }
        if is_chosen {
            self.told.overlimits += 1;
            let is_marking = self.settings.ecn && !(is_forced && self.settings.harddrop);
            if is_marking && packet.markable {
                packet.marks += 1;
                self.red.marks += 1;
            } else if !(is_marking && self.settings.nodrop) {
                self.red.early_drops += 1;
                self.told.dropped += 1;
                return Enqueued::Dropped;
            }
        }
        if self.bytes() + u64::from(packet.bytes) > u64::from(self.settings.limit) {
            self.red.inner_drops += 1;
            self.told.dropped += 1;
            return Enqueued::Dropped;
        }
        self.list.push_back(packet);
        Enqueued::Queued
    }

    fn dequeue(&mut self, now: u64) -> Option<Datagram> {
        self.adapt(now);
        let Some(packet) = self.list.pop_front() else {
            self.idle_since = self.idle_since.or(Some(now));
            return None;
        };
        self.told.sent_packets += 1;
        self.told.sent_bytes += u64::from(packet.bytes);
        Some(packet)
    }

    fn change(&mut self, settings: RedSettings, now: u64) {
        let (mut told, red) = (self.told, self.red);
        told.dropped += self.list.len() as u64;
        let random = std::mem::replace(&mut self.random, Box::new(|| 0));
        *self = Self { told, red, random, ..Self::new(settings, now) };
    }

    fn statistics(&self) -> Statistics {
        let mut told = self.told;
        (told.backlog, told.qlen) = (self.bytes(), self.list.len() as u64);
        told
    }
}

fn all_settings() -> impl Strategy<Value = RedSettings> {
    let limits = (0_u32..4_000, 0_u32..8_000, 1_u32..6, any::<u32>());
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (limits, 3_000_u32..30_000, flags).prop_map(|((min, span, weight, probability), limit, flags)| {
        let (ecn, harddrop, nodrop, adaptive) = flags;
        let curve = curve(min, min + span, weight, probability);
        RedSettings { limit, curve, ecn, harddrop, nodrop: nodrop && ecn, adaptive }
    })
}

#[derive(Clone, Debug)]
enum Step {
    Wait(u64),
    Enqueue(u32, bool),
    Dequeue,
    Drain,
    Change(Box<RedSettings>),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let wait = prop_oneof![3 => 0_u64..1_000_000, 1 => 0_u64..50_000_000, 1 => 0_u64..2_000_000_000];
    let step = prop_oneof![
        30 => wait.prop_map(Step::Wait),
        70 => (40_u32..1_600, any::<bool>()).prop_map(|(bytes, markable)| Step::Enqueue(bytes, markable)),
        50 => Just(Step::Dequeue),
        3 => Just(Step::Drain),
        1 => all_settings().prop_map(|settings| Step::Change(Box::new(settings))),
    ];
    proptest::collection::vec(step, 1..400)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(800) })]

    /// Goal: packets, marks, verdicts, probabilities and counts are the model's. Method: random settings and
    /// steps, both compared after each.
    #[test]
    fn packets_leave_as_the_model_says(first in all_settings(), script in steps()) {
        let mut now = 1_000_000;
        let mut queue = Red::new(first.clone(), numbers(1), Nanos(now)).expect("settings that can be");
        let mut model = Model::new(first, now);
        for (number, step) in (0..).zip(script) {
            match step {
                Step::Wait(span) => now += span,
                Step::Enqueue(bytes, markable) => {
                    let packet = Datagram { number, bytes, markable, marks: 0 };
                    prop_assert_eq!(queue.enqueue(Nanos(now), packet), model.enqueue(now, packet));
                }
                Step::Dequeue => prop_assert_eq!(queue.dequeue(Nanos(now)).packet(), model.dequeue(now)),
                Step::Drain => while let Some(packet) = queue.dequeue(Nanos(now)).packet() {
                    prop_assert_eq!(Some(packet), model.dequeue(now));
                },
                Step::Change(settings) => {
                    queue.change((*settings).clone(), Nanos(now)).expect("settings that can be");
                    model.change(*settings, now);
                }
            }
            if queue.is_empty() {
                prop_assert_eq!((queue.dequeue(Nanos(now)), model.dequeue(now)), (Dequeued::Empty, None));
            }
            prop_assert_eq!(queue.statistics(), model.statistics());
            prop_assert_eq!(queue.red_statistics(), model.red);
            prop_assert_eq!(queue.curve().probability, model.probability);
        }
    }
}

/// Goal: between two marks lie 1 to 1/p packets, each number as often as the other (Floyd and Jacobson,
/// section 7, method 2). Method: a queue whose length stays in the middle of the limits, where p is a
/// hundredth: the mean of 2,000 gaps is 50.5, give or take five deviations (29 / sqrt(2000)), and none is
/// above 101.
#[test]
fn marks_are_spread_evenly() {
    let told = RedSettings { ecn: true, ..settings(1_000_000, curve(10_000, 30_000, 4, u32::MAX / 50)) };
    let mut queue = Red::new(told, numbers(3), Nanos(0)).expect("settings that can be");
    let packet = Datagram { bytes: 1_000, markable: true, ..Datagram::default() };
    (0..20).for_each(|_| assert!(queue.enqueue(Nanos(0), packet).is_accepted()));
    let (mut gaps, mut gap) = (Vec::new(), 0);
    while gaps.len() < 2_100 {
        let before = queue.red_statistics().marks;
        assert!(queue.enqueue(Nanos(0), packet).is_accepted());
        assert!(queue.dequeue(Nanos(0)).packet().is_some());
        gap += 1;
        if queue.red_statistics().marks > before {
            gaps.push(std::mem::take(&mut gap));
        }
    }
    let steady = &gaps[100..];
    let mean = f64::from(steady.iter().sum::<i32>()) / steady.len() as f64;
    assert!((mean - 50.5).abs() < 3.3, "a mean of {mean}");
    let (least, most) = (steady.iter().min().expect("2,000"), steady.iter().max().expect("2,000"));
    assert!((1..=3).contains(least) && (98..=101).contains(most), "{least} to {most}");
}

const RECORDED: &str = include_str!("recorded/red-linux-6.12.txt");

/// Goal: a real kernel drops and marks as many packets as ours does. Method: its arrivals, 40 seeds: the
/// recorded number lies between the least and the most of ours.
#[test]
fn a_kernel_drops_as_many_packets() {
    // burst 20 of 1,000 bytes above 5,000 is a weight of 1/64.
    let idle = IdleDamping::new(6, 1_000, 1_000_000).expect("the line's");
    let curve = RedCurve { min: 5_000, max: 20_000, weight_log: 6, probability: 429_496_729, idle };
    let plain = settings(60_000, curve);
    for (name, told, recorded) in [
        ("red", plain.clone(), 254),
        ("red ecn", RedSettings { ecn: true, ..plain.clone() }, 793),
        ("red adaptive", RedSettings { adaptive: true, ..plain }, 634),
    ] {
        let markable = told.ecn;
        let packet = |number| Datagram { number, bytes: BYTES, markable, marks: 0 };
        let fate = |packet: &Datagram| (packet.number, packet.marks > 0);
        let mut ours = Vec::new();
        for seed in 0..40 {
            let queue = Red::new(told.clone(), numbers(seed), Nanos(0)).expect("settings that can be");
            let (_, signals, our_signals) = differences((RECORDED, name), packet, fate, queue);
            assert_eq!(signals, recorded, "{name}");
            ours.push(our_signals);
        }
        ours.sort_unstable();
        assert!((ours[0]..=ours[39]).contains(&recorded), "{name}: {recorded}, ours {ours:?}");
    }
}

/// Goal: an average at the upper limit drops, one just below does not. Method: limits that are one, so that
/// nothing is by chance; the second of two packets of 1,000 bytes meets an average of 500.
#[test]
fn at_the_upper_limit_is_too_high() {
    for (limit, is_taken) in [(500, false), (501, true)] {
        let mut queue = Red::new(settings(9_000, curve(limit, limit, 1, 1)), numbers(1), Nanos(0))
            .expect("settings that can be");
        let packet = Datagram { bytes: 1_000, ..Datagram::default() };
        assert!(queue.enqueue(Nanos(0), packet).is_accepted());
        assert_eq!(queue.enqueue(Nanos(0), packet).is_accepted(), is_taken, "limits of {limit}");
    }
}

/// Goal: an empty queue's average falls: what would have been marked is not after a while. Method: an average
/// above the upper limit, and a packet after none of the time, and after a second.
#[test]
fn an_empty_queue_forgets() {
    for (pause, is_taken) in [(0, false), (2 * SECOND, true)] {
        let mut queue = Red::new(settings(1_000_000, curve(1_000, 2_000, 1, u32::MAX)), numbers(1), Nanos(0))
            .expect("settings that can be");
        let packet = Datagram { bytes: 1_000, ..Datagram::default() };
        while queue.enqueue(Nanos(0), packet).is_accepted() {}
        while queue.dequeue(Nanos(0)).packet().is_some() {}
        assert_eq!(queue.enqueue(Nanos(pause), packet).is_accepted(), is_taken, "after {pause} ns");
    }
}

/// Goal: another discipline inside has its own limit, what it does not take is counted once, and what the one
/// before held is dropped. Method: a fifo of two packets, below any average that marks.
#[test]
fn another_discipline_inside() {
    let told = settings(100_000, curve(50_000, 90_000, 2, 1 << 20));
    let mut queue = Red::new(told.clone(), numbers(1), Nanos(0)).expect("settings that can be");
    let packet = Datagram { bytes: 100, ..Datagram::default() };
    assert!(queue.enqueue(Nanos(0), packet).is_accepted());
    assert!(queue.wraps_one() && queue.listing() == ClassListing::Named);
    let class = ClassId::new(1, 1);
    assert!(queue.graft_inner(Nanos(0), class, Some(Box::new(Fifo::new(FifoLimit::Packets(2))))));
    let taken = (0..5).filter(|_| queue.enqueue(Nanos(0), packet).is_accepted()).count();
    assert_eq!((taken, queue.statistics().dropped, queue.red_statistics().inner_drops), (2, 4, 3));
    queue.change(told, Nanos(0)).expect("settings that can be");
    assert_eq!(
        (queue.inner(class).map(|inner| inner.kind()), queue.statistics().dropped),
        (Some("bfifo"), 6)
    );
    assert!(queue.is_empty());
}

/// Goal: settings that cannot be are refused, and change nothing. Method: both sides of each limit.
#[test]
fn settings_that_cannot_be() {
    let least = settings(0, curve(5, 5, 1, 0));
    let mut queue = Red::<Datagram, _>::new(least.clone(), || 0, Nanos(0)).expect("the least");
    let with = |curve| RedSettings { curve, ..least.clone() };
    for (wrong, error) in [
        (with(curve(6, 5, 1, 0)), RedError::Limits { min: 6, max: 5 }),
        (with(RedCurve { weight_log: 0, ..least.curve.clone() }), RedError::Weight(0)),
        (with(RedCurve { weight_log: 32, ..least.curve.clone() }), RedError::Weight(32)),
        (RedSettings { nodrop: true, ..least.clone() }, RedError::NoDrop),
    ] {
        assert_eq!(queue.change(wrong, Nanos(0)), Err(error));
        assert_eq!(queue.settings(), &least);
    }
    let most =
        RedSettings { nodrop: true, ecn: true, ..with(RedCurve { weight_log: 31, ..least.curve.clone() }) };
    assert_eq!(queue.change(most, Nanos(0)), Ok(()));
    assert_eq!(IdleDamping::new(1, 0, 1), None);
    assert_eq!(IdleDamping::new(1, 1, 0), None);
}

/// Goal: neither huge numbers nor the end of time panic, and a long time without packets costs little.
/// Method: the largest of everything.
#[test]
fn extremes() {
    let told = RedSettings {
        adaptive: true,
        ..settings(u32::MAX, RedCurve { weight_log: 31, ..curve(0, u32::MAX, 10, u32::MAX) })
    };
    let mut queue = Red::new(told, || u32::MAX, Nanos(0)).expect("settings that can be");
    for now in [0, 1, u64::MAX - 1, u64::MAX] {
        let _ = queue.enqueue(Nanos(now), Datagram { bytes: 1 << 30, ..Datagram::default() });
        let _ = queue.dequeue(Nanos(now));
        let _ = queue.dequeue(Nanos(now));
    }
    assert_eq!(queue.statistics().qlen, 0);
}
