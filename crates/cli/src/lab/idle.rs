//! Two lanes with nothing to do but timers: how often is anybody woken up for 1000 of them, or for none?
//!
//! Wake-ups are context switches that a thread made by itself (/proc/self/task), of all threads but the one
//! that measures.

use super::crew::{Crew, Manner, armed, tick};
use super::plan::{Bench, Better, Compare, PLAIN, Plan, Role, Seed, SeedFigure, Sim, SimCompare, Variant};
use super::trace::Note;
use crate::error::CliError;
use quietcore_live::{Machine, Nanos, Policy, TimerHandle};
use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::time::Duration;

pub(super) const PLAN: Plan = Plan {
    name: "idle",
    question: "two idle lanes and 1000 timers of 100 ms: how often is anybody woken up?",
    figures: &[
        ("wake-ups per second", "all threads"),
        ("CPU time", "% of one CPU"),
        ("run per second", "timers"),
        ("lateness, mean", "us"),
    ],
    variants: &[
        Variant {
            name: "nothing armed",
            what: "pull, and no timer at all",
            role: Role::NoiseFloor,
            run: |bench| trial(bench, Policy::Pull, 0),
        },
        Variant {
            name: "stay",
            what: "each lane wakes up for its own timers",
            role: Role::Before,
            run: |bench| trial(bench, Policy::Stay, TIMERS),
        },
        Variant {
            name: "pull",
            what: "one lane wakes up for all",
            role: Role::After,
            run: |bench| trial(bench, Policy::Pull, TIMERS),
        },
    ],
    compares: &[Compare { figure: 0, better: Better::Lower }, Compare { figure: 1, better: Better::Lower }],
    seed: Some(Seed {
        id: "002",
        figures: &[SeedFigure {
            what: "idle states and the ping-pong: told in words, without figures",
            verbatim: "none",
        }],
    }),
    sim: Some(Sim {
        scenario: "idle.toml",
        compares: &[
            SimCompare {
                what: "wake-ups per second, 16 CPUs",
                figure: "wakeups_per_s",
                unit: ("all CPUs", 1.0),
                before: "stay/last",
                after: "pull/last",
                better: Better::Lower,
            },
            SimCompare {
                what: "ping-pongs per second, wake-ups where the task ran, or where its timer did",
                figure: "ping_pongs_per_s",
                unit: ("all CPUs", 1.0),
                before: "pull/last",
                after: "pull/here",
                better: Better::Lower,
            },
        ],
    }),
    ..PLAIN
};

pub(super) const TIMERS: u64 = 1000;
const PERIOD: Duration = Duration::from_millis(100);

pub(super) fn trial(bench: &Bench, policy: Policy, timers: u64) -> Result<Vec<f64>, CliError> {
    let lanes = bench.cpus.map(|cpu| (cpu, Manner::Parks));
    let crew = Crew::start(Machine::builder().policy(policy), bench, &lanes)?;
    let machine = crew.machine;
    let note = Note::of(bench);
    let timer = |number: u64| {
        let (note, armed) = (note.clone(), bench.cpus[number as usize % 2]);
        machine.timer(tick(), move |run| note.ran(number, "timer", Some(armed), run))
    };
    let timers: Vec<TimerHandle> = (0..timers).map(timer).collect();
    let timers = std::sync::Arc::new(timers);
    for (half, cpu) in bench.cpus.into_iter().enumerate() {
        let timers = std::sync::Arc::clone(&timers);
        crew.on_lane(cpu, move || {
            let now = machine.now().0;
            for (number, timer) in timers.iter().enumerate().skip(half).step_by(2) {
                // Spread over the period.
                let first = Nanos(now + (number as u64 + 1) * PERIOD.as_nanos() as u64 / TIMERS);
                let _ = armed(timer.arm_periodic(first, PERIOD));
            }
        })?;
    }
    // The first period is the lanes' settling down.
    bench.wait_for(PERIOD);
    let before = (machine.metrics(), wake_ups()?, cpu_time());
    bench.wait();
    let after = (machine.metrics(), wake_ups()?, cpu_time());
    let seconds = bench.span.as_secs_f64();
    let ran = |metrics: &quietcore_live::Metrics| metrics.lateness().len();
    let late = |metrics: &quietcore_live::Metrics| metrics.sum(|cpu| cpu.lateness_sum.as_u64());
    let runs = ran(&after.0) - ran(&before.0);
    let mean = (late(&after.0) - late(&before.0)) as f64 / 1e3 / (runs.max(1)) as f64;
    let busy = 100.0 * (after.2 - before.2) / seconds;
    Ok(vec![(after.1 - before.1) as f64 / seconds, busy, runs as f64 / seconds, mean])
}

/// Voluntary context switches of all threads but this one.
fn wake_ups() -> Result<u64, CliError> {
    let failed = |error| CliError::Live(format!("cannot read /proc/self/task: {error}"));
    let here = rustix::thread::gettid().as_raw_nonzero().to_string();
    let mut sum = 0;
    for entry in fs::read_dir("/proc/self/task").map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_name().to_string_lossy() == here {
            continue;
        }
        // A thread that has ended meanwhile is not woken up any more.
        let Ok(text) = fs::read_to_string(entry.path().join("status")) else { continue };
        let line = text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        sum += line.and_then(|count| count.trim().parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(sum)
}

/// CPU time of this process, in seconds.
fn cpu_time() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
