//! Which operations a workload consists of: made once from a seed, the same for every peer.
//!
//! Delays are in ticks of 1 ms. Those of a population are log-uniform from 1 ms to 1 h, those of timeouts
//! log-uniform from 10 ms to 60 s: every doubling is as likely as the next. They come from a table, not
//! one value over and over, because a structure that always touches the same bucket has it in its cache.

use clap::ValueEnum;
use fastrand::Rng;
use serde::Serialize;
use std::ops::RangeInclusive;

/// Delays of a population, in ticks.
const POPULATION: std::ops::RangeInclusive<u64> = 1..=3_600_000;
/// Delays of timeouts, in ticks.
const TIMEOUTS: std::ops::RangeInclusive<u64> = 10..=60_000;
/// Different delays before a sequence of timeouts repeats itself: too many for branch prediction to learn.
const TABLE: usize = 1 << 16;
/// One operation is not measured for so many that are.
const WARM_UP: usize = 64;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// Arm a timer and cancel it, nothing else pending
    ArmCancelAlone,
    /// Arm a timer and cancel it, 10000 others pending
    ArmCancelFew,
    /// Arm a timer and cancel it, a million others pending
    ArmCancelMany,
    /// Arm a timer and cancel it 2 ms later, the clock running and 10000 others pending
    Timeouts,
    /// Arm a million timers
    Arm,
    /// Move a random timer of a million to a random expiry
    Rearm,
    /// Let a million timers of ten seconds expire, tick by tick
    Expire,
    /// Cancel a random timer of 100000 and ask for the next expiry
    NextRandom,
    /// Cancel the first timer of 100000 and ask for the next expiry
    NextFirst,
}

/// How much of everything.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Sizes {
    /// Timers pending in the large populations.
    pub many: usize,
    /// Timers pending in the small populations.
    pub few: usize,
    /// Timers pending in the workloads that ask for the next expiry; half of them get cancelled.
    pub asked: usize,
    /// Pairs of arm and cancel; and re-arms.
    pub operations: usize,
    /// Ticks over which expiries spread.
    pub spread: u64,
    /// Ticks that the clock runs in `timeouts`: as long as the longest timeout, so that a structure which
    /// forgets cancelled timers late shows what that costs.
    pub ticks: u64,
    /// Timeouts per tick.
    pub per_tick: usize,
}

impl Sizes {
    pub const FULL: Self = Self {
        many: 1_000_000,
        few: 10_000,
        asked: 100_000,
        operations: 1_000_000,
        spread: 10_000,
        ticks: 60_000,
        per_tick: 32,
    };
    /// Ends in seconds; says whether everything works, and nothing about speed.
    pub const QUICK: Self = Self {
        many: 10_000,
        few: 1_000,
        asked: 2_000,
        operations: 10_000,
        spread: 200,
        ticks: 500,
        per_tick: 32,
    };
}

/// The operations of one workload.
#[derive(Clone, Debug)]
pub struct Plan {
    pub workload: Workload,
    /// Delay of timer 0, 1, ...: the population, armed in this order at tick 0.
    pub live: Vec<u64>,
    /// Delays of what is armed while the stopwatch runs; over and over if there are more operations.
    pub delays: Vec<u64>,
    /// Which timers are re-armed or cancelled, in this order.
    pub victims: Vec<u32>,
    /// Operations of the same kind that come first and are not measured: enough that a structure which
    /// tidies up once in as many operations as it has timers does so while it is measured.
    pub warm_up: usize,
    /// What the time taken is divided by.
    pub operations: usize,
    /// Ticks that time advances by.
    pub ticks: u64,
    pub per_tick: usize,
}

impl Plan {
    /// The operations of `workload` that `seed` stands for.
    #[must_use]
    pub fn new(workload: Workload, sizes: &Sizes, seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let mut plan = Self {
            workload,
            live: Vec::new(),
            delays: Vec::new(),
            victims: Vec::new(),
            warm_up: 0,
            operations: sizes.operations,
            ticks: 0,
            per_tick: 0,
        };
        match workload {
            Workload::ArmCancelAlone => plan.arm_cancel(0, &mut random),
            Workload::ArmCancelFew => plan.arm_cancel(sizes.few, &mut random),
            Workload::ArmCancelMany => plan.arm_cancel(sizes.many, &mut random),
            Workload::Timeouts => plan.timeouts(sizes, &mut random),
            Workload::Arm => plan.arm(sizes, &mut random),
            Workload::Rearm => plan.rearm(sizes, &mut random),
            Workload::Expire => plan.expire(sizes, &mut random),
            Workload::NextRandom | Workload::NextFirst => plan.next_expiry(sizes, &mut random),
        }
        plan
    }

    fn arm_cancel(&mut self, live: usize, random: &mut Rng) {
        self.warm_up = self.operations / WARM_UP;
        self.live = draw(live, || log_uniform(random, POPULATION));
        self.delays = draw(TABLE.min(self.operations), || log_uniform(random, TIMEOUTS));
    }

    fn timeouts(&mut self, sizes: &Sizes, random: &mut Rng) {
        // None of the others expires meanwhile, so that the number pending stays what it is.
        self.live = draw(sizes.few, || log_uniform(random, 2 * sizes.ticks..=60 * sizes.ticks));
        self.operations = sizes.per_tick * sizes.ticks as usize;
        self.delays = draw(self.operations, || log_uniform(random, TIMEOUTS));
        (self.ticks, self.per_tick) = (sizes.ticks, sizes.per_tick);
    }

    fn arm(&mut self, sizes: &Sizes, random: &mut Rng) {
        self.delays = draw(sizes.many, || log_uniform(random, POPULATION));
        self.operations = sizes.many;
    }

    fn rearm(&mut self, sizes: &Sizes, random: &mut Rng) {
        self.live = draw(sizes.many, || log_uniform(random, POPULATION));
        self.warm_up = self.operations / WARM_UP;
        self.delays = draw(TABLE.min(self.operations), || log_uniform(random, POPULATION));
        self.victims = draw(self.warm_up + self.operations, || random.u32(..sizes.many as u32));
    }

    fn expire(&mut self, sizes: &Sizes, random: &mut Rng) {
        self.live = draw(sizes.many, || random.u64(1..=sizes.spread));
        (self.operations, self.ticks) = (sizes.many, sizes.spread);
    }

    fn next_expiry(&mut self, sizes: &Sizes, random: &mut Rng) {
        self.live = draw(sizes.asked, || log_uniform(random, POPULATION));
        self.victims = (0..sizes.asked as u32).collect();
        random.shuffle(&mut self.victims);
        if self.workload == Workload::NextFirst {
            let live = &self.live;
            self.victims.sort_by_key(|&id| live[id as usize]);
        }
        self.operations = sizes.asked / 2;
        self.victims.truncate(self.operations);
    }

    /// What it is, with its sizes.
    #[must_use]
    pub fn title(&self) -> String {
        let (live, operations) = (self.live.len(), self.operations);
        match self.workload {
            Workload::ArmCancelAlone | Workload::ArmCancelFew | Workload::ArmCancelMany => {
                format!("arm and cancel a timer, {live} others pending: ns per pair, {operations} pairs")
            }
            Workload::Timeouts => format!(
                "arm a timer, cancel it 2 ticks later, {} a tick for {} ticks, {live} others pending: \
                 ns per timer",
                self.per_tick, self.ticks
            ),
            Workload::Arm => {
                format!("arm {operations} timers, all of them pending afterwards: ns per timer")
            }
            Workload::Rearm => format!("re-arm a random one of {live}: ns per re-arm, {operations} re-arms"),
            Workload::Expire => {
                format!("let {live} expire within {} ticks, tick by tick: ns per timer", self.ticks)
            }
            Workload::NextRandom => {
                format!(
                    "cancel a random one of {live}, ask for the next expiry: ns per pair, {operations} pairs"
                )
            }
            Workload::NextFirst => {
                format!(
                    "cancel the first of {live}, ask for the next expiry: ns per pair, {operations} pairs"
                )
            }
        }
    }
}

fn draw<T>(count: usize, mut one: impl FnMut() -> T) -> Vec<T> {
    std::iter::repeat_with(&mut one).take(count).collect()
}

/// A number of `range`, which begins above 0: every doubling is as likely as the next.
pub(super) fn log_uniform(random: &mut Rng, range: RangeInclusive<u64>) -> u64 {
    let (low, high) = (*range.start() as f64, (*range.end() + 1) as f64);
    let value = (low.ln() + random.f64() * (high / low).ln()).exp() as u64;
    value.clamp(*range.start(), *range.end())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a seed gives one plan. Method: twice the same seed, once another.
    #[test]
    fn seeds_decide() {
        for &workload in Workload::value_variants() {
            let plan = |seed| format!("{:?}", Plan::new(workload, &Sizes::QUICK, seed));
            assert_eq!(plan(1), plan(1), "{workload:?}");
            assert_ne!(plan(1), plan(2), "{workload:?}");
        }
    }

    /// Goal: `next-first` really cancels the first. Method: expiries of the victims against a sorted list.
    #[test]
    fn first_means_first() {
        let plan = Plan::new(Workload::NextFirst, &Sizes::QUICK, 1);
        let mut sorted = plan.live.clone();
        sorted.sort_unstable();
        let victims: Vec<u64> = plan.victims.iter().map(|&id| plan.live[id as usize]).collect();
        assert_eq!(victims, sorted[..plan.operations]);
    }

    /// Goal: every doubling is as likely, and no end of a range is left. Method: ten doublings, 10 000
    /// draws, a tenth give or take 15 %; a small range.
    #[test]
    fn log_uniform_is_even_over_doublings() {
        let (mut random, mut counts) = (Rng::with_seed(2), [0_u32; 10]);
        for _ in 0..10_000 {
            counts[log_uniform(&mut random, 1..=1023).ilog2() as usize] += 1;
        }
        assert!(counts.iter().all(|count| (850..=1150).contains(count)), "{counts:?}");
        let few: Vec<u64> = (0..1000).map(|_| log_uniform(&mut random, 3..=5)).collect();
        assert_eq!((few.iter().min(), few.iter().max()), (Some(&3), Some(&5)));
    }
}
