//! Two lanes with nothing to do but timers: how often is a thread woken up for 1000 of them, or for none?
//!
//! Wake-ups are context switches that a thread made by itself (/proc/self/task), of all threads but the one
//! that measures.

use crate::error::LabError;
use crate::harness::{LaneHarness, LaneMode, tick, voluntary_switches};
use crate::plan::{
    Better, Citation, CitedFigure, Compare, PLAIN, RowPlan, RowScenario, RowVariant, ScenarioCompare,
    TrialContext, TrialFigures, VariantRole,
};
use quietcore_live::{Machine, Nanos, TimerHandle, timer::Policy};
use quietcore_trace::Question;
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

pub(crate) const PLAN: RowPlan = RowPlan {
    name: "idle",
    question: "two idle lanes and 1000 timers of 100 ms: how often is a thread woken up?",
    figures: &[
        ("wake-ups per second", "all threads"),
        ("CPU time", "% of one CPU"),
        ("run per second", "timers"),
        ("lateness, mean", "us"),
    ],
    variants: &[
        RowVariant {
            name: "nothing armed",
            what: "pull, and no timer at all",
            role: VariantRole::NoiseFloor,
            run: |context| trial(context, Policy::Pull, 0),
        },
        RowVariant {
            name: "stay",
            what: "each lane wakes up for its own timers",
            role: VariantRole::Before,
            run: |context| trial(context, Policy::Stay, TIMERS),
        },
        RowVariant {
            name: "pull",
            what: "one lane wakes up for all",
            role: VariantRole::After,
            run: |context| trial(context, Policy::Pull, TIMERS),
        },
    ],
    compares: &[Compare { figure: 0, better: Better::Lower }, Compare { figure: 1, better: Better::Lower }],
    cited: Some(Citation {
        question: Question::Placement,
        figures: &[CitedFigure {
            what: "idle states and the ping-pong: told in words, without figures",
            verbatim: "none",
        }],
    }),
    scenario: Some(RowScenario {
        name: "idle.toml",
        text: include_str!("../../../../scenarios/idle.toml"),
        compares: &[
            ScenarioCompare::lower("wake-ups per second, 16 CPUs", "wakeups_per_s", "stay/last", "pull/last")
                .in_unit("all CPUs", 1.0),
            ScenarioCompare::lower(
                "ping-pongs per second, wake-ups where the task ran, or where its timer did",
                "ping_pongs_per_s",
                "pull/last",
                "pull/here",
            )
            .in_unit("all CPUs", 1.0),
        ],
    }),
    ..PLAIN
};

pub(crate) const TIMERS: u64 = 1000;
const PERIOD: Duration = Duration::from_millis(100);

pub(crate) fn trial(context: &TrialContext, policy: Policy, timers: u64) -> Result<TrialFigures, LabError> {
    let lanes = context.cpus.map(|cpu| (cpu, LaneMode::Parks));
    let harness = LaneHarness::start(Machine::builder().policy(policy), context, &lanes)?;
    let machine = harness.machine;
    let slices = context.slices.clone();
    let timer = |number: u64| {
        let (slices, armed) = (slices.clone(), context.cpus[number as usize % 2]);
        machine.timer(tick(), move |run| slices.ran(number, "timer", Some(armed), run))
    };
    let timers: Vec<TimerHandle> = (0..timers).map(timer).collect();
    let timers = std::sync::Arc::new(timers);
    for (half, cpu) in context.cpus.into_iter().enumerate() {
        let timers = std::sync::Arc::clone(&timers);
        harness.on_lane(cpu, move || {
            let now = machine.now().0;
            for (number, timer) in timers.iter().enumerate().skip(half).step_by(2) {
                // Spread over the period.
                let first = Nanos(now + (number as u64 + 1) * PERIOD.as_nanos() as u64 / TIMERS);
                let _ = timer.arm_periodic(first, PERIOD);
            }
        })?;
    }
    // The first period is the lanes' settling down.
    context.wait_for(PERIOD);
    let before = (machine.metrics(), wake_ups()?, cpu_time());
    context.wait();
    let after = (machine.metrics(), wake_ups()?, cpu_time());
    let seconds = context.span.as_secs_f64();
    let ran = |metrics: &quietcore_live::metrics::Metrics| metrics.lateness().len();
    let late = |metrics: &quietcore_live::metrics::Metrics| metrics.sum(|cpu| cpu.lateness_sum.as_u64());
    let runs = ran(&after.0) - ran(&before.0);
    let late_us = (late(&after.0) - late(&before.0)) as f64 / 1e3;
    let mean = (runs > 0).then(|| late_us / runs as f64);
    let busy = 100.0 * (after.2 - before.2) / seconds;
    Ok(vec![Some((after.1 - before.1) as f64 / seconds), Some(busy), Some(runs as f64 / seconds), mean])
}

/// Voluntary context switches of all threads but this one.
fn wake_ups() -> Result<u64, LabError> {
    let here = format!("\nPid:\t{}\n", rustix::thread::gettid().as_raw_nonzero());
    voluntary_switches(|status| !status.contains(&here))
}

/// CPU time of this process, in seconds.
fn cpu_time() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
