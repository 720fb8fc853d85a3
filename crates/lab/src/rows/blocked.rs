//! One lane blocks for 100 of every 120 ms. Timers that live on it are late by that, unless others take over.
//!
//! 64 timers of 10 to 16 ms, half of them begun on each lane, each re-armed by its own callback on the lane
//! that runs it; lateness is from the deadline asked for to the callback.

use crate::error::LabError;
use crate::harness::{LaneHarness, LaneMode, arm_now, tick};
use crate::observe::{Observed, observe};
use crate::plan::{
    Better, Compare, PLAIN, RowPlan, RowScenario, RowVariant, ScenarioCompare, TrialContext, TrialFigures,
    VariantRole, quantile_us,
};
use crate::slice::SliceLog;
use crate::sync::lock;
use quietcore_live::{Machine, TimerHandle, timer::Policy};
use quietcore_sim::SimRandom;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

pub(crate) const PLAN: RowPlan = RowPlan {
    name: "blocked",
    question: "one of two lanes blocks for 100 of every 120 ms: how late are 64 timers of 10 to 16 ms?",
    figures: &[
        ("run per second", "timers"),
        ("lateness p50", "us"),
        ("lateness p99", "us"),
        ("lateness p99.9", "us"),
        ("stalls noticed", "marks"),
    ],
    variants: &[
        RowVariant {
            name: "no lane blocks",
            what: "pull, and both lanes turn",
            role: VariantRole::NoiseFloor,
            run: |context| trial(context, BlockedSetup { blocks: false, ..BLOCKS }),
        },
        RowVariant {
            name: "stay",
            what: "each lane runs its own timers, as in one wheel per worker",
            role: VariantRole::Before,
            run: |context| trial(context, BlockedSetup { policy: Policy::Stay, ..BLOCKS }),
        },
        RowVariant {
            name: "stalls ignored",
            what: "pull, but no CPU looks whether a lane that is awake turns",
            role: VariantRole::Before,
            run: |context| trial(context, BlockedSetup { stall_after: Duration::MAX, ..BLOCKS }),
        },
        RowVariant {
            name: "pull",
            what: "a lane that does not turn for 2 ms is taken for absent",
            role: VariantRole::After,
            run: |context| trial(context, BLOCKS),
        },
    ],
    compares: &[
        Compare { figure: 1, better: Better::Lower },
        Compare { figure: 2, better: Better::Lower },
        Compare { figure: 3, better: Better::Lower },
    ],
    scenario: Some(RowScenario {
        name: "stall-asleep.toml",
        text: include_str!("../../scenarios/stall-asleep.toml"),
        compares: &[
            ScenarioCompare::lower("lateness p99", "lateness_p99", "stay", "pull"),
            ScenarioCompare::lower("lateness p99.9", "lateness_p999", "stay", "pull"),
        ],
    }),
    ..PLAIN
};

/// The place of the lateness that is predicted.
pub(crate) const P99: usize = 2;
const STALL: Duration = Duration::from_millis(2);
const TIMERS: u64 = 64;
const BLOCKED: Duration = Duration::from_millis(100);
const FREE: Duration = Duration::from_millis(20);

pub(crate) struct BlockedSetup {
    pub(crate) policy: Policy,
    pub(crate) stall_after: Duration,
    pub(crate) blocks: bool,
    /// What the lane that does not block does besides.
    pub(crate) other: LaneMode,
}

/// The rule after, beside a lane that sleeps.
pub(crate) const BLOCKS: BlockedSetup =
    BlockedSetup { policy: Policy::Pull, stall_after: STALL, blocks: true, other: LaneMode::Parks };

pub(crate) fn trial(context: &TrialContext, setup: BlockedSetup) -> Result<TrialFigures, LabError> {
    let builder = Machine::builder().policy(setup.policy).stall_after(setup.stall_after);
    let lanes = [(context.cpus[0], LaneMode::Parks), (context.cpus[1], setup.other)];
    let harness = LaneHarness::start(builder, context, &lanes)?;
    let machine = harness.machine;
    let late = Arc::new(Mutex::new(Vec::new()));
    let slices = context.slices.clone();
    let timers: Vec<TimerHandle> =
        (0..TIMERS).map(|number| sleeper(machine, number, &late, &slices)).collect();
    let timers = Arc::new(timers);
    for (half, cpu) in context.cpus.into_iter().enumerate() {
        let timers = Arc::clone(&timers);
        harness.on_lane(cpu, move || {
            for timer in timers.iter().skip(half).step_by(2) {
                // The machine runs; what fails here is seen in the count of runs.
                let _ = arm_now(machine, timer);
            }
        })?;
    }
    let (own, lane) = (slices.clone(), context.cpus[0]);
    let blocker = machine.timer(tick().pinned(), move |run| {
        thread::sleep(BLOCKED);
        let _ = run.timer().arm_after(FREE);
        own.ran(TIMERS, "blocker", Some(lane), run);
    });
    if setup.blocks {
        blocker.arm_on(context.cpus[0], machine.now())?;
    }
    lock(&late).clear();
    let marks = observe(context, context.span, || Ok(machine.metrics().sum(|cpu| cpu.bases.marks)))?;
    let mut late = std::mem::take(&mut *lock(&late));
    late.sort_unstable();
    Ok(figures(&late, &marks))
}

/// `late` is sorted.
fn figures(late: &[u64], marks: &Observed<u64>) -> TrialFigures {
    let rate = late.len() as f64 / marks.took.as_secs_f64();
    let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|share| quantile_us(late, share));
    vec![Some(rate), p50, p99, p999, Some((marks.after - marks.before) as f64)]
}

/// A timer that re-arms itself, for 10 to 16 ms.
fn sleeper(
    machine: &'static Machine,
    number: u64,
    late: &Arc<Mutex<Vec<u64>>>,
    slices: &SliceLog,
) -> TimerHandle {
    let (late, slices) = (Arc::clone(late), slices.clone());
    // Half of them begin on each lane; from then on each is armed where it ran.
    let mut armed = None;
    let mut spread = SimRandom::new(1, number);
    machine.timer(tick(), move |run| {
        let nanos = run.lateness().as_nanos() as u64;
        lock(&late).push(nanos);
        let span = Duration::from_micros(10_000 + spread.below(6_000));
        let _ = run.timer().arm_after(span);
        slices.ran(number, "sleeper", armed, run);
        armed = Some(run.cpu());
    })
}

#[cfg(test)]
mod tests {
    use super::{Observed, P99, PLAN, figures};
    use std::time::Duration;

    /// Goal: each figure is its own, and a round in which nothing ran has no lateness. Method: 2000 timers
    /// that were 1 to 2000 us late, by hand; none.
    #[test]
    fn figures_of_a_round() {
        let late: Vec<u64> = (1..=2000).map(|us| us * 1_000).collect();
        let marks = |after| Observed { before: 20, after, took: Duration::from_secs(4) };
        assert_eq!(figures(&late, &marks(27)), [500.0, 1000.0, 1980.0, 1998.0, 7.0].map(Some));
        assert_eq!(PLAN.figures[P99].0, "lateness p99");
        assert_eq!(figures(&[], &marks(20)), [Some(0.0), None, None, None, Some(0.0)]);
    }
}
