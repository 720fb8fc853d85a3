//! One lane blocks for 100 of every 120 ms. Timers that live on it are late by that, unless others take over.
//!
//! 64 timers of 10 to 16 ms, half of them begun on each lane, each re-armed by its own callback on the lane
//! that runs it; lateness is from the deadline asked for to the callback.

use super::crew::{Crew, Manner, arm_now, armed, tick};
use super::plan::{Bench, Better, Compare, PLAIN, Plan, Role, Sim, SimCompare, Variant, quantile};
use super::trace::Note;
use crate::error::CliError;
use quietcore_live::{Machine, Policy, TimerHandle};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

pub(super) const PLAN: Plan = Plan {
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
        Variant {
            name: "nobody blocks",
            what: "pull, and no lane blocks",
            role: Role::NoiseFloor,
            run: |bench| {
                trial(
                    bench,
                    Setup { policy: Policy::Pull, stall_after: STALL, blocks: false, other: Manner::Parks },
                )
            },
        },
        Variant {
            name: "stay",
            what: "each lane runs its own timers, as in one wheel per worker",
            role: Role::Before,
            run: |bench| {
                trial(
                    bench,
                    Setup { policy: Policy::Stay, stall_after: STALL, blocks: true, other: Manner::Parks },
                )
            },
        },
        Variant {
            name: "stalls ignored",
            what: "pull, but nobody looks whether a lane that is awake turns",
            role: Role::Before,
            run: |bench| {
                trial(
                    bench,
                    Setup {
                        policy: Policy::Pull,
                        stall_after: Duration::MAX,
                        blocks: true,
                        other: Manner::Parks,
                    },
                )
            },
        },
        Variant {
            name: "pull",
            what: "a lane that does not turn for 2 ms is taken for absent",
            role: Role::After,
            run: |bench| {
                trial(
                    bench,
                    Setup { policy: Policy::Pull, stall_after: STALL, blocks: true, other: Manner::Parks },
                )
            },
        },
    ],
    compares: &[
        Compare { figure: 1, better: Better::Lower },
        Compare { figure: 2, better: Better::Lower },
        Compare { figure: 3, better: Better::Lower },
    ],
    sim: Some(Sim {
        scenario: "stall-asleep.toml",
        compares: &[
            SimCompare {
                what: "lateness p99",
                figure: "lateness_p99",
                unit: ("us", 1e3),
                before: "stay",
                after: "pull",
                better: Better::Lower,
            },
            SimCompare {
                what: "lateness p99.9",
                figure: "lateness_p999",
                unit: ("us", 1e3),
                before: "stay",
                after: "pull",
                better: Better::Lower,
            },
        ],
    }),
    ..PLAIN
};

pub(super) const STALL: Duration = Duration::from_millis(2);
const TIMERS: u64 = 64;
const BLOCKED: Duration = Duration::from_millis(100);
const FREE: Duration = Duration::from_millis(20);

pub(super) struct Setup {
    pub(super) policy: Policy,
    pub(super) stall_after: Duration,
    pub(super) blocks: bool,
    /// What the lane that does not block does besides.
    pub(super) other: Manner,
}

pub(super) fn trial(bench: &Bench, setup: Setup) -> Result<Vec<f64>, CliError> {
    let builder = Machine::builder().policy(setup.policy).stall_after(setup.stall_after);
    let lanes = [(bench.cpus[0], Manner::Parks), (bench.cpus[1], setup.other)];
    let crew = Crew::start(builder, bench, &lanes)?;
    let machine = crew.machine;
    let late = Arc::new(Mutex::new(Vec::new()));
    let note = Note::of(bench);
    let timers: Vec<TimerHandle> = (0..TIMERS).map(|number| sleeper(machine, number, &late, &note)).collect();
    let timers = Arc::new(timers);
    for (half, cpu) in bench.cpus.into_iter().enumerate() {
        let timers = Arc::clone(&timers);
        crew.on_lane(cpu, move || {
            for timer in timers.iter().skip(half).step_by(2) {
                // The machine runs; what fails here is seen in the count of runs.
                let _ = arm_now(machine, timer);
            }
        })?;
    }
    let (own, lane) = (note.clone(), bench.cpus[0]);
    let blocker = machine.timer(tick().pinned(), move |run| {
        thread::sleep(BLOCKED);
        let _ = run.timer().arm_after(FREE);
        own.ran(TIMERS, "blocker", Some(lane), run);
    });
    if setup.blocks {
        armed(blocker.arm_on(bench.cpus[0], machine.now()))?;
    }
    let metrics = machine.metrics();
    late.lock().unwrap_or_else(PoisonError::into_inner).clear();
    bench.wait();
    let mut late = std::mem::take(&mut *late.lock().unwrap_or_else(PoisonError::into_inner));
    let marks = machine.metrics().sum(|cpu| cpu.bases.marks) - metrics.sum(|cpu| cpu.bases.marks);
    late.sort_unstable();
    let micros = |share| quantile(&late, share) / 1e3;
    let rate = late.len() as f64 / bench.span.as_secs_f64();
    Ok(vec![rate, micros(0.5), micros(0.99), micros(0.999), marks as f64])
}

/// A timer that re-arms itself, for 10 to 16 ms.
fn sleeper(machine: &'static Machine, number: u64, late: &Arc<Mutex<Vec<u64>>>, note: &Note) -> TimerHandle {
    let (late, note) = (Arc::clone(late), note.clone());
    // Half of them begin on each lane; from then on each is armed where it ran.
    let mut armed = None;
    let mut state = number;
    machine.timer(tick(), move |run| {
        let nanos = run.lateness().as_nanos() as u64;
        late.lock().unwrap_or_else(PoisonError::into_inner).push(nanos);
        // Any spread will do: a linear congruence, its high bits.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407 + number);
        let span = Duration::from_micros(10_000 + (state >> 33) % 6_000);
        let _ = run.timer().arm_after(span);
        note.ran(number, "sleeper", armed, run);
        armed = Some(run.cpu());
    })
}
