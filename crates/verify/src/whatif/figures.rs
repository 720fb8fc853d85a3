//! Figures of one replay, under the names and definitions of `quietcore explain --json`.
//!
//! Armed on: the CPU of the recorded arm. Base: the CPU whose base the replay put it into. Ran on: the CPU
//! that the replay ran it on. Pulled: ran on != base. Placed: ran on == base. Examples stay empty: nothing
//! here has a line of its own.

use super::load::{LoadArm, LoadBase, RecordedLoad};
use hdrhistogram::Histogram;
use quietcore_core::CpuId;
use quietcore_core::tmigr::{Levels, Tree};
use quietcore_explain::{CountByNumber, DelayQuantiles, Disturbance, RemoteExpiries};
use serde::Serialize;

/// What one replay came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct WhatifFigures {
    /// `pull`, `push` or `stay`.
    pub policy: &'static str,
    /// CPUs that take no part in the hierarchy at the end, or get no timers of others under a push; a
    /// kernel list.
    pub excluded: String,
    /// CPUs that never go idle, a kernel list.
    pub kept_awake: String,
    /// Timers that ran.
    pub expired: u64,
    /// Timers that were still pending at the end.
    pub pending: u64,
    /// Timers that were armed again before they ran, though they had run in the recording.
    pub superseded: u64,
    /// Armed on a CPU that is not isolated, ran on an isolated one.
    pub foreign: Disturbance,
    /// `foreign.total` in the four orders in which CPUs are let come within one tick: lowest and highest.
    pub foreign_range: FigureRange,
    /// Where `foreign.total` of a real kernel under such a load is expected in 19 of 20 runs: the range,
    /// widened by what differs by chance from run to run.
    pub foreign_expected: FigureRange,
    /// Ran on another CPU than the base's.
    pub remote: RemoteExpiries,
    /// How often a sleeping CPU was woken.
    pub wakeups: Wakeups,
    /// From the expiry that was asked for to the tick in which the timer ran, in ns; without deferrable
    /// timers, which wait until their CPU is awake anyway.
    pub lateness_ns: DelayQuantiles,
}

/// From the lowest to the highest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FigureRange {
    /// Lowest.
    pub low: u64,
    /// Highest.
    pub high: u64,
}

/// The normal distribution is within this many standard deviations in 19 of 20 cases.
const NINETEEN_OF_TWENTY: f64 = 1.96;

impl FigureRange {
    /// The range widened by chance: where a count lies in 19 of 20 runs if what is counted happens
    /// independently of each other (Poisson), by the approximation of Wilson and Hilferty (1931).
    pub(super) fn by_chance(self) -> Self {
        let limit = |count: f64, deviations: f64| {
            let ninth = 1.0 / (9.0 * count);
            count * (1.0 - ninth + deviations * ninth.sqrt()).max(0.0).powi(3)
        };
        let low = if self.low == 0 { 0.0 } else { limit(self.low as f64, -NINETEEN_OF_TWENTY) };
        let high = limit((self.high as f64) + 1.0, NINETEEN_OF_TWENTY);
        Self { low: low as u64, high: high.ceil() as u64 }
    }
}

impl std::fmt::Display for FigureRange {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.low == self.high {
            write!(out, "{}", self.low)
        } else {
            write!(out, "{}..{}", self.low, self.high)
        }
    }
}

/// Wake-ups of CPUs that slept: alarms, arms by another CPU that come first, and tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Wakeups {
    /// All of them.
    pub total: u64,
    /// By CPU.
    pub by_cpu: CountByNumber,
}

/// How a replay of what was recorded compares with it, expiry by expiry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FigureAgreement {
    /// Arms whose timer ran in both.
    pub expired_in_both: u64,
    /// Those that ran on the same CPU.
    pub same_cpu: u64,
    /// Arms whose timer ran in the recording only.
    pub recorded_only: u64,
    /// Arms whose timer ran in the replay only.
    pub replayed_only: u64,
}

/// Where a timer ran, and out of which base.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunPlace {
    pub(super) base: CpuId,
    pub(super) cpu: CpuId,
}

#[derive(Debug)]
pub(super) struct WhatifCounts<'a> {
    load: &'a RecordedLoad,
    /// By the place of the arm: where it ran.
    pub(super) ran_on: Vec<(u32, CpuId)>,
    foreign: Disturbance,
    remote: CountByNumber,
    pub(super) wakeups: Wakeups,
    pub(super) superseded: u64,
    /// In ticks.
    lateness: Histogram<u64>,
    latest: u64,
}

fn number(cpu: CpuId) -> u16 {
    cpu.index() as u16
}

impl<'a> WhatifCounts<'a> {
    pub(super) fn new(load: &'a RecordedLoad) -> Self {
        Self {
            load,
            ran_on: Vec::new(),
            foreign: Disturbance::default(),
            remote: CountByNumber::new(),
            wakeups: Wakeups::default(),
            superseded: 0,
            lateness: Histogram::new(3).expect("three digits are allowed"),
            latest: 0,
        }
    }

    /// What input `place` armed runs on `cpu` in tick `now`, out of the base of `base`.
    pub(super) fn ran(&mut self, place: u32, arm: &LoadArm, at: RunPlace, now: u64) {
        let RunPlace { base, cpu } = at;
        self.ran_on.push((place, cpu));
        if arm.kind != LoadBase::Deferrable {
            let late = now.saturating_sub(self.load.tick_of(arm.expires));
            self.latest = self.latest.max(late);
            // It refuses only values that need more memory than there is; nothing real is late by centuries.
            let _ = self.lateness.record(late);
        }
        if base != cpu {
            *self.remote.entry(number(cpu)).or_default() += 1;
        }
        let isolated = &self.load.facts.isolated;
        if !isolated.contains(cpu) || isolated.contains(arm.cpu) {
            return;
        }
        let foreign = &mut self.foreign;
        let kind = if base == cpu { &mut foreign.placed } else { &mut foreign.pulled };
        *kind.get_or_insert(0) += 1;
        *foreign.by_cpu.get_or_insert_default().entry(number(cpu)).or_default() += 1;
        *foreign.by_base_cpu.get_or_insert_default().entry(number(base)).or_default() += 1;
        let function = self.load.functions.get(arm.function as usize).cloned().unwrap_or_default();
        *foreign.by_function.get_or_insert_default().entry(function).or_default() += 1;
    }

    pub(super) fn woken(&mut self, cpu: CpuId) {
        self.wakeups.total += 1;
        *self.wakeups.by_cpu.entry(number(cpu)).or_default() += 1;
    }

    /// The figures, but for what only the caller knows.
    pub(super) fn finish(mut self) -> (WhatifFigures, Vec<(u32, CpuId)>) {
        let (pulled, placed) = (self.foreign.pulled.unwrap_or(0), self.foreign.placed.unwrap_or(0));
        let foreign = &mut self.foreign;
        (foreign.total, foreign.pulled, foreign.placed) = (Some(pulled + placed), Some(pulled), Some(placed));
        let by_cpu = foreign.by_cpu.get_or_insert_default().clone();
        foreign.by_base_cpu.get_or_insert_default();
        foreign.by_function.get_or_insert_default();
        let groups = groups(self.load);
        let by_group = foreign.by_group.get_or_insert_default();
        for (cpu, count) in by_cpu {
            *by_group.entry(groups[usize::from(cpu)]).or_default() += count;
        }
        let mut lateness_ns = DelayQuantiles::default();
        if !self.lateness.is_empty() {
            // The distribution rounds up, past the latest even.
            let nanos = |ticks: u64| ticks.min(self.latest).saturating_mul(self.load.tick.as_u64());
            lateness_ns.p50 = Some(nanos(self.lateness.value_at_quantile(0.5)));
            lateness_ns.p99 = Some(nanos(self.lateness.value_at_quantile(0.99)));
            lateness_ns.max = Some(nanos(self.latest));
        }
        let mut remote = RemoteExpiries::default();
        (remote.total, remote.by_cpu) = (Some(self.remote.values().sum()), Some(self.remote));
        let figures = WhatifFigures {
            expired: self.ran_on.len() as u64,
            superseded: self.superseded,
            foreign: self.foreign,
            remote,
            wakeups: self.wakeups,
            lateness_ns,
            ..WhatifFigures::default()
        };
        (figures, self.ran_on)
    }
}

/// The level-0 group of each CPU, by its lowest CPU: as the hierarchy builds them in the order of joining.
fn groups(load: &RecordedLoad) -> Vec<u16> {
    let mut tree = Tree::new(levels(load));
    let mut lowest: Vec<Option<u16>> = Vec::new();
    let mut leaves = vec![0; usize::from(load.cpus)];
    for cpu in load.joining_order() {
        let leaf = tree.join(load.nodes[cpu.index()]).leaf.0.index();
        if lowest.len() <= leaf {
            lowest.resize(leaf + 1, None);
        }
        lowest[leaf] = Some(lowest[leaf].map_or(number(cpu), |known| known.min(number(cpu))));
        leaves[cpu.index()] = leaf;
    }
    leaves.into_iter().map(|leaf| lowest.get(leaf).copied().flatten().unwrap_or(0)).collect()
}

/// As the hierarchy itself counts them.
pub(super) fn levels(load: &RecordedLoad) -> Levels {
    let mut nodes = load.nodes.clone();
    nodes.sort_unstable();
    nodes.dedup();
    Levels::new(load.cpus, nodes.len() as u16)
}

/// How often two runs of the same arms agree, if the recorded one is known.
pub(super) fn agreement(load: &RecordedLoad, replayed: &[(u32, CpuId)]) -> Option<FigureAgreement> {
    if load.ran_on.is_empty() {
        return None;
    }
    let mut agreement = FigureAgreement::default();
    for &(place, cpu) in replayed {
        match load.recorded_cpu(place) {
            Some(recorded) => {
                agreement.expired_in_both += 1;
                agreement.same_cpu += u64::from(recorded == cpu);
            }
            None => agreement.replayed_only += 1,
        }
    }
    agreement.recorded_only = load.ran_on.len() as u64 - agreement.expired_in_both;
    Some(agreement)
}

#[cfg(test)]
mod tests {
    use super::super::load::{AwakeSource, FIRST_TICK, LoadArm, LoadBase, LoadFacts, RecordedLoad};
    use super::{FigureAgreement, FigureRange, RunPlace, WhatifCounts, agreement};
    use quietcore_core::place::Policy;
    use quietcore_core::{CpuId, CpuSet, Nanos};
    use quietcore_trace::TimerModel;

    fn cpu(number: u64) -> CpuId {
        CpuId::new(number).expect("a CPU")
    }

    /// On CPU 0, for jiffy 1000.
    fn arm() -> LoadArm {
        let (kind, cpu) = (LoadBase::Global, cpu(0));
        let (is_pinned, is_idle) = (false, false);
        LoadArm {
            timer: 0,
            function: 0,
            expires: 1000,
            jiffies: 1000,
            cpu,
            base: cpu,
            kind,
            is_pinned,
            is_idle,
        }
    }

    /// 20 CPUs in groups of eight, 1 and 9 isolated; ticks of 4 ms, the first of them jiffy 1000.
    fn load() -> RecordedLoad {
        RecordedLoad {
            inputs: vec![],
            functions: ["(other)", "f", "g"].map(str::to_owned).into(),
            timers: 0,
            first_jiffy: 1000,
            tick: Nanos(4_000_000),
            cpus: 20,
            nodes: vec![0; 20],
            joining: CpuSet::new(),
            appearing: CpuSet::new(),
            asleep_first: CpuSet::new(),
            never_idle: CpuSet::new(),
            awake_source: AwakeSource::None,
            model: TimerModel::Pull,
            policy: Policy::Pull,
            facts: LoadFacts { isolated: "1,9".parse().expect("a list"), ..LoadFacts::default() },
            ran_on: vec![],
            is_cut: false,
        }
    }

    /// Goal: chance widens a range as the tables of the Poisson distribution have it (exact limits: 0 to 3.7,
    /// 0.03 to 5.6, 4.8 to 18.4, 81.4 to 121.6). Method: those counts, rounded outwards, and a range.
    #[test]
    fn chance_widens_a_range() {
        let widened = |low, high| FigureRange { low, high }.by_chance().to_string();
        let all = [(0, 0), (1, 1), (10, 10), (100, 100), (10, 100)].map(|(low, high)| widened(low, high));
        assert_eq!(all, ["0..4", "0..6", "4..19", "81..122", "4..122"]);
    }

    /// Goal: every figure counts what its name says. Method: 100 timers for jiffy 2000 that run 1 to 100
    /// ticks late at places of which each count is another, a deferrable one that is later still, and seven
    /// wake-ups; all worked out by hand.
    #[test]
    fn every_figure_counts_what_it_says() {
        let load = load();
        let mut counts = WhatifCounts::new(&load);
        let at = |base: u64, runner: u64| RunPlace { base: cpu(base), cpu: cpu(runner) };
        let mut ran = |late: u64, armed: u64, at: RunPlace, function: u32| {
            let kind = if late > 100 { LoadBase::Deferrable } else { LoadBase::Global };
            let arm = LoadArm { function, expires: 2000, cpu: cpu(armed), base: at.base, kind, ..arm() };
            counts.ran(late as u32, &arm, at, FIRST_TICK + 1000 + late);
        };
        for late in 1..=100 {
            match late {
                1..=2 => ran(late, 0, at(0, 1), 1),   // pulled by an isolated CPU
                3..=5 => ran(late, 0, at(9, 9), 2),   // placed on another one
                6..=9 => ran(late, 0, at(0, 2), 1),   // pulled by one that is not isolated
                10..=14 => ran(late, 1, at(1, 9), 1), // armed on an isolated CPU, so not foreign
                _ => ran(late, 0, at(0, 0), 1),
            }
        }
        ran(900, 0, at(0, 0), 1);
        for number in [3, 3, 3, 3, 3, 3, 4] {
            counts.woken(cpu(number));
        }
        counts.superseded = 8;
        let (figures, ran_on) = counts.finish();
        assert_eq!((figures.expired, figures.superseded, ran_on.len()), (101, 8, 101));
        let foreign = figures.foreign;
        assert_eq!((foreign.total, foreign.pulled, foreign.placed), (Some(5), Some(2), Some(3)));
        assert_eq!(foreign.by_cpu, Some([(1, 2), (9, 3)].into()));
        assert_eq!(foreign.by_base_cpu, Some([(0, 2), (9, 3)].into()));
        assert_eq!(foreign.by_group, Some([(0, 2), (8, 3)].into()));
        assert_eq!(foreign.by_function, Some([("f".to_owned(), 2), ("g".to_owned(), 3)].into()));
        assert_eq!(
            (figures.remote.total, figures.remote.by_cpu),
            (Some(11), Some([(1, 2), (2, 4), (9, 5)].into()))
        );
        assert_eq!((figures.wakeups.total, figures.wakeups.by_cpu), (7, [(3, 6), (4, 1)].into()));
        let late = figures.lateness_ns;
        let ms = |ms: u64| Some(ms * 1_000_000);
        assert_eq!((late.p50, late.p99, late.max), (ms(50 * 4), ms(99 * 4), ms(100 * 4)));
    }

    /// Goal: no quantile is past the latest, though the distribution rounds up. Method: one timer, 5001 ticks
    /// late.
    #[test]
    fn no_quantile_is_past_the_latest() {
        let load = load();
        let mut counts = WhatifCounts::new(&load);
        counts.ran(0, &arm(), RunPlace { base: cpu(0), cpu: cpu(0) }, FIRST_TICK + 5001);
        let late = counts.finish().0.lateness_ns;
        assert_eq!((late.p50, late.p99, late.max), (late.max, late.max, Some(5001 * 4_000_000)));
    }

    /// Goal: agreement is arm by arm. Method: eight that ran in the recording; of those three ran in the
    /// replay, two on the same CPU, and one that did not run in the recording.
    #[test]
    fn agreement_is_arm_by_arm() {
        let ran_on = (0..8).map(|place| (place, cpu(0))).collect();
        let mut load = RecordedLoad { ran_on, ..load() };
        let replayed = [(0, cpu(0)), (1, cpu(0)), (2, cpu(3)), (9, cpu(0))];
        let expected =
            FigureAgreement { expired_in_both: 3, same_cpu: 2, recorded_only: 5, replayed_only: 1 };
        assert_eq!(agreement(&load, &replayed), Some(expected));
        load.ran_on.clear();
        assert_eq!(agreement(&load, &replayed), None, "no expiry was recorded");
    }
}
