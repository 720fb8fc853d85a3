//! The longest that one operation takes after a burst of arms, and how many nodes it looks at.
//!
//! A burst arms n timers and nothing else, which is when lazy structures owe the most. Each kind of
//! operation gets a burst of its own, and afterwards all of them are mixed. What is noted of an
//! operation is up to the [`Meter`]: its duration, or the places it touched.

use super::load::{LONGEST, Order, Quantiles, Random, START, at};
use super::steady::Extent;
use super::{Kind, Queue, Silent, with_queue};
use serde::Serialize;
use std::time::Instant;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Op {
    /// Any arm
    Arm,
    /// The first pop after a burst
    FirstPop,
    /// Any other pop
    Pop,
    /// Cancel of the first timer directly after a burst
    FirstCancel,
    /// Any other cancel
    Cancel,
    /// Arming the first timer anew directly after a burst
    FirstRearm,
    /// Arming any other one anew
    Rearm,
}

pub(crate) const OPS: [Op; 7] =
    [Op::Arm, Op::FirstPop, Op::Pop, Op::FirstCancel, Op::Cancel, Op::FirstRearm, Op::Rearm];

impl Op {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Arm => "arm",
            Self::FirstPop => "first pop",
            Self::Pop => "pop",
            Self::FirstCancel => "cancel the first",
            Self::Cancel => "cancel",
            Self::FirstRearm => "re-arm the first",
            Self::Rearm => "re-arm",
        }
    }
}

/// Notes something about one operation.
pub(crate) trait Meter<Q: Queue> {
    fn meter(&mut self, op: Op, queue: &mut Q, operation: impl FnOnce(&mut Q));
}

/// One burst: the delays in the order of arming, and an order that has nothing to do with them.
#[derive(Debug)]
pub(crate) struct Burst {
    pub(crate) delays: Vec<u64>,
    pub(crate) shuffled: Vec<u32>,
    /// How long everything is mixed in the end, in steps of two pairs of operations.
    pub(crate) mix: usize,
}

impl Burst {
    pub(crate) fn new(order: Order, live: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        Self {
            delays: order.delays(live, &mut random),
            shuffled: random.shuffled(live),
            mix: live.min(200_000),
        }
    }

    /// Runs all phases on an empty queue, which is empty again in the end; the time by then.
    pub(crate) fn run<Q: Queue, M: Meter<Q>>(&self, queue: &mut Q, meter: &mut M, start: u64) -> u64 {
        let phase = |number: u64| start + number * 2 * LONGEST;
        for (id, delay) in self.delays.iter().enumerate() {
            meter.meter(Op::Arm, queue, |queue| queue.arm(id as u32, at(phase(0) + delay)));
        }
        self.pop_all(queue, meter);
        self.fill(queue, phase(1));
        self.cancel_all(queue, meter);
        self.fill(queue, phase(2));
        self.rearm_all(queue, meter, phase(2));
        self.fill(queue, phase(3));
        self.mix(queue, meter, phase(3));
        for &id in &self.shuffled {
            queue.cancel(id);
        }
        phase(6)
    }

    pub(crate) fn fill<Q: Queue>(&self, queue: &mut Q, now: u64) {
        for &id in &self.shuffled {
            queue.cancel(id);
        }
        for (id, delay) in self.delays.iter().enumerate() {
            queue.arm(id as u32, at(now + delay));
        }
    }

    pub(crate) fn pop_all<Q: Queue, M: Meter<Q>>(&self, queue: &mut Q, meter: &mut M) {
        let mut op = Op::FirstPop;
        while let Some(first) = queue.first() {
            let now = queue.times(first).hard;
            meter.meter(op, queue, |queue| _ = queue.pop_expired(now));
            op = Op::Pop;
        }
    }

    fn cancel_all<Q: Queue, M: Meter<Q>>(&self, queue: &mut Q, meter: &mut M) {
        let Some(first) = queue.first() else { return };
        meter.meter(Op::FirstCancel, queue, |queue| _ = queue.cancel(first));
        for &id in self.shuffled.iter().filter(|&&id| id != first) {
            meter.meter(Op::Cancel, queue, |queue| _ = queue.cancel(id));
        }
    }

    fn rearm_all<Q: Queue, M: Meter<Q>>(&self, queue: &mut Q, meter: &mut M, now: u64) {
        let Some(first) = queue.first() else { return };
        let last = self.shuffled[0];
        let latest = at(now + self.delays[last as usize]);
        meter.meter(Op::FirstRearm, queue, |queue| queue.arm(first, latest));
        for pair in self.shuffled.windows(2) {
            let times = at(now + self.delays[pair[1] as usize]);
            meter.meter(Op::Rearm, queue, |queue| queue.arm(pair[0], times));
        }
    }

    /// Pops the first and arms it again, cancels one of all and arms it again, and so on.
    fn mix<Q: Queue, M: Meter<Q>>(&self, queue: &mut Q, meter: &mut M, mut now: u64) {
        for &id in self.shuffled.iter().cycle().take(self.mix) {
            let Some(first) = queue.first() else { return };
            now = queue.times(first).hard.max(now);
            meter.meter(Op::Pop, queue, |queue| _ = queue.pop_expired(now));
            let times = at(now + self.delays[first as usize]);
            meter.meter(Op::Arm, queue, |queue| queue.arm(first, times));
            meter.meter(Op::Cancel, queue, |queue| _ = queue.cancel(id));
            let times = at(now + self.delays[id as usize]);
            meter.meter(Op::Arm, queue, |queue| queue.arm(id, times));
        }
    }
}

/// Nanoseconds of each operation, two readings of the clock included.
#[derive(Debug, Default)]
struct Clocked {
    spans: [Vec<u32>; OPS.len()],
}

impl<Q: Queue> Meter<Q> for Clocked {
    #[inline(always)]
    fn meter(&mut self, op: Op, queue: &mut Q, operation: impl FnOnce(&mut Q)) {
        let begin = Instant::now();
        operation(queue);
        let span = begin.elapsed();
        self.spans[op as usize].push(u32::try_from(span.as_nanos()).unwrap_or(u32::MAX));
    }
}

/// Durations of one operation of one candidate, in nanoseconds, the clock's own included.
#[derive(Debug, Serialize)]
pub(crate) struct Single {
    pub(crate) op: Op,
    pub(crate) live: usize,
    pub(crate) queue: Kind,
    /// How often the operation ran in one round.
    pub(crate) count: usize,
    /// Of the rounds' figures.
    pub(crate) p50: Quantiles,
    pub(crate) p999: Quantiles,
    pub(crate) max: Quantiles,
    /// Every round does the same, so each single operation has a fastest round, in which nothing
    /// interrupted it: the longest of these.
    pub(crate) quiet_max: f64,
}

const LIVE: [usize; 3] = [1_000, 10_000, 1_000_000];
/// As many timers are armed per round and order in bursts of a smaller size.
const ARMED_PER_ROUND: usize = 50_000;

pub(crate) fn measure(extent: &Extent) -> Vec<Single> {
    let mut singles = Vec::new();
    for live in LIVE.into_iter().filter(|&live| live <= extent.live_max) {
        // Half of them random, half of them ascending, as timers of one length are.
        let bursts = |order| {
            let seeds = 0..(ARMED_PER_ROUND / live).max(1) as u64;
            seeds.map(move |seed| Burst::new(order, live, 7_000_000 + seed))
        };
        let bursts: Vec<_> = bursts(Order::Uniform).chain(bursts(Order::Ascending)).collect();
        let mut candidates: Vec<_> = extent.kinds.iter().map(|_| Candidate::default()).collect();
        for round in 0..extent.rounds as usize {
            for step in 0..extent.kinds.len() {
                let at = (round + step) % extent.kinds.len();
                candidates[at].take(with_queue!(extent.kinds[at], Silent, clocked(&bursts)));
            }
        }
        for (&queue, candidate) in extent.kinds.iter().zip(&candidates) {
            singles.extend(OPS.into_iter().map(|op| candidate.single(op, live, queue)));
        }
        eprintln!("exact: single operations with {live} live");
    }
    singles
}

/// What the rounds of one candidate showed.
#[derive(Debug, Default)]
struct Candidate {
    /// Of every operation, the shortest duration of all rounds.
    least: [Vec<u32>; OPS.len()],
    /// Per round and operation: p50, p99.9 and maximum.
    figures: Vec<[[f64; 3]; OPS.len()]>,
}

impl Candidate {
    fn take(&mut self, mut round: Clocked) {
        for (least, spans) in self.least.iter_mut().zip(&round.spans) {
            if least.is_empty() {
                least.clone_from(spans);
            }
            assert_eq!(least.len(), spans.len(), "every round does the same");
            least.iter_mut().zip(spans).for_each(|(least, &span)| *least = span.min(*least));
        }
        let mut figures = [[0.0; 3]; OPS.len()];
        for (figures, spans) in figures.iter_mut().zip(&mut round.spans) {
            spans.sort_unstable();
            let at = |part: f64| f64::from(spans[((spans.len() - 1) as f64 * part) as usize]);
            *figures = [at(0.5), at(0.999), at(1.0)];
        }
        self.figures.push(figures);
    }

    fn single(&self, op: Op, live: usize, queue: Kind) -> Single {
        let figure = |which: usize| {
            Quantiles::of(self.figures.iter().map(|round| round[op as usize][which]).collect())
        };
        let least = &self.least[op as usize];
        let quiet_max = least.iter().copied().max().map_or(0.0, f64::from);
        Single {
            op,
            live,
            queue,
            count: least.len(),
            p50: figure(0),
            p999: figure(1),
            max: figure(2),
            quiet_max,
        }
    }
}

fn clocked<Q: Queue>(bursts: &[Burst]) -> Clocked {
    let live = bursts.first().map_or(0, |burst| burst.delays.len());
    let mut queue = Q::with_nodes(live);
    let mut clocked = Clocked::default();
    for spans in &mut clocked.spans {
        // Grown beforehand, so that the page faults of the measurement are not measured.
        spans.resize(bursts.len() * live * 3, 1);
        spans.clear();
    }
    let mut now = START;
    for burst in bursts {
        now = burst.run(&mut queue, &mut clocked, now);
    }
    clocked
}

/// What measuring nothing shows: p50, p99.9 and maximum of the clock alone.
pub(crate) fn clock() -> [f64; 3] {
    let mut spans: Vec<u128> = (0..ARMED_PER_ROUND).map(|_| Instant::now().elapsed().as_nanos()).collect();
    spans.sort_unstable();
    [0.5, 0.999, 1.0].map(|part| spans[((spans.len() - 1) as f64 * part) as usize] as f64)
}
