//! An isolated lane that never waits, beside one that sleeps and wakes up: does the sleeper's work move over?
//!
//! The second lane looks at the clock all the time, with turns in between; a look that comes late was a gap.
//! On the first CPU a pinned timer plays a device and a thread plays a program: both arm timers whose
//! callbacks take [`WORK`]. A callback that ran on the second lane's thread was foreign, since no timer is
//! armed there; it is counted by thread and, apart from that, by the runtime. With exclusion there must be
//! none at all.

use crate::error::LabError;
use crate::gaps::Gaps;
use crate::harness::{LaneBody, LaneHarness, LaneMode, spin, stay_on, tick};
use crate::plan::{
    Better, Citation, CitedFigure, Compare, ExactCheck, PLAIN, RowPlan, RowScenario, RowVariant,
    ScenarioCompare, TrialContext, TrialFigures, VariantRole,
};
use crate::slice::SliceLog;
use crate::sync::lock;
use quietcore_live::{CpuId, Machine, TimerHandle, isolation::Exclusion, timer::Policy};
use quietcore_trace::Question;
use rustix::thread::{Pid, gettid};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

pub(crate) const PLAN: RowPlan = RowPlan {
    name: "oslat",
    question: "a busy isolated lane beside one that sleeps: does the other's work move to it?",
    figures: &[
        ("foreign, by thread id", "callbacks"),
        ("foreign, by counter", "callbacks"),
        ("callbacks in all", "per second"),
        ("time away", "%"),
        ("gap p50", "us"),
        ("gap p99", "us"),
        ("gap max, no claim", "us"),
    ],
    variants: &[
        RowVariant {
            name: "no timers",
            what: "the same loop, and nothing is armed; gaps are what the machine does",
            role: VariantRole::NoiseFloor,
            run: |context| trial(context, Exclusion::Merged, Load::None),
        },
        RowVariant {
            name: "exclusion off",
            what: "the isolated lane pulls, as every lane that is awake (Linux 6.9 to 6.18)",
            role: VariantRole::Before,
            run: |context| trial(context, Exclusion::Off, Load::Works),
        },
        RowVariant {
            name: "exclusion on",
            what: "the isolated lane neither pulls nor is pulled (Linux from 6.19 on)",
            role: VariantRole::After,
            run: |context| trial(context, Exclusion::Merged, Load::Works),
        },
    ],
    compares: &[
        Compare { figure: 0, better: Better::Lower },
        Compare { figure: 3, better: Better::Lower },
        Compare { figure: 5, better: Better::Lower },
    ],
    exact_checks: &[
        ExactCheck { variant: "exclusion on", figure: 0, value: 0.0 },
        ExactCheck { variant: "exclusion on", figure: 1, value: 0.0 },
    ],
    cited: Some(Citation {
        question: Question::Isolation,
        figures: &[
            CitedFigure { what: "oslat's last line, before", verbatim: "Maximum: 1203 10 3 4 ... 5 (us)" },
            CitedFigure { what: "the same, after", verbatim: "Maximum: 10 4 3 4 3 ... 5 (us)" },
        ],
    }),
    scenario: Some(RowScenario {
        name: "oslat-128.toml",
        text: include_str!("../../scenarios/oslat-128.toml"),
        compares: &[
            ScenarioCompare::lower("foreign callbacks in 2 s, 124 isolated CPUs", "foreign", "off", "merged")
                .in_unit("callbacks", 1.0),
            ScenarioCompare::lower("gap max of the worst CPU", "gap_max", "off", "merged"),
        ],
    }),
    ..PLAIN
};

/// How long a callback takes.
const WORK: Duration = Duration::from_millis(1);
/// Between two interrupts of the device, and between two wake-ups of the program.
const PERIOD: Duration = Duration::from_millis(25);
/// Timers that each of them arms every time, and when they are due.
const DELAYS: [Duration; 2] = [Duration::from_millis(6), Duration::from_millis(13)];
/// Looks at the clock between two turns.
const LOOKS: u32 = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    None,
    Works,
}

/// Which thread ran each callback.
type Runners = Arc<Mutex<Vec<Pid>>>;

type Found = Arc<Mutex<Option<(Pid, Gaps)>>>;

fn trial(context: &TrialContext, exclusion: Exclusion, load: Load) -> Result<TrialFigures, LabError> {
    let [sleeper, busy] = context.cpus;
    let builder =
        Machine::builder().policy(Policy::Pull).exclusion(exclusion).isolated([busy].into_iter().collect());
    let found = Found::default();
    let lanes = vec![(sleeper, LaneMode::Parks.play()), (busy, watch(context.span, &found))];
    let harness = LaneHarness::start_with(builder, context, lanes)?;
    let machine = harness.machine;
    let (runners, slices) = (Runners::default(), context.slices.clone());
    let works = |first: u64| -> Vec<TimerHandle> {
        (first..).zip(DELAYS).map(|(number, _)| work(machine, number, sleeper, (&runners, &slices))).collect()
    };
    let began = Instant::now();
    let (end, program) = if load == Load::Works {
        let device = works(0);
        let interrupt = machine.timer(tick().pinned(), move |run| {
            arm(&device);
            let _ = run.timer().arm_after(PERIOD);
        });
        let works = works(DELAYS.len() as u64);
        let (end, over) = channel();
        let program = thread::spawn(move || program(sleeper, &works, &over));
        interrupt.arm_on(sleeper, machine.now())?;
        (Some((end, interrupt)), Some(program))
    } else {
        (None, None)
    };
    context.wait();
    drop(end);
    if let Some(program) = program {
        // It ends with the channel, and panics at nothing.
        let _ = program.join();
    }
    let metrics = machine.metrics();
    let seconds = began.elapsed().as_secs_f64();
    drop(harness);
    let (lane, gaps) = lock(&found)
        .take()
        .ok_or_else(|| LabError::Trial("the busy lane did not come to an end".to_owned()))?;
    if let Some(lines) = gaps.oslat(busy.index()) {
        context.attach("oslat", lines);
    }
    let counted = metrics.cpus.iter().filter(|cpu| cpu.cpu == busy).map(|cpu| cpu.ran_for_others).sum();
    Ok(figures(&lock(&runners), lane, counted, seconds, &gaps))
}

/// `runners` are the threads that ran each callback; `counted` is how many the busy `lane` ran for others.
fn figures(runners: &[Pid], lane: Pid, counted: u64, seconds: f64, gaps: &Gaps) -> TrialFigures {
    let foreign = runners.iter().filter(|runner| **runner == lane).count();
    // Where no callback ran at all, that none was foreign says nothing.
    let of_callbacks = |count: f64| (!runners.is_empty()).then_some(count);
    let us = |ns: f64| ns / 1e3;
    vec![
        of_callbacks(foreign as f64),
        of_callbacks(counted as f64),
        Some(runners.len() as f64 / seconds),
        gaps.away_percent(),
        gaps.quantile(0.5).map(us),
        gaps.quantile(0.99).map(us),
        gaps.largest_ns().map(us),
    ]
}

/// The busy lane: it looks at the clock for `span`, and turns on until the machine is shut down.
fn watch(span: Duration, found: &Found) -> LaneBody {
    let found = Arc::clone(found);
    Box::new(move |machine, mut cpu| {
        let mut gaps = Gaps::new();
        let began = Instant::now();
        let (mut last, span) = (0, span.as_nanos() as u64);
        while last < span && machine.is_running() {
            for _ in 0..LOOKS {
                last = began.elapsed().as_nanos() as u64;
                gaps.look(last);
            }
            cpu.turn();
        }
        *lock(&found) = Some((gettid(), gaps));
        while machine.is_running() {
            cpu.turn();
        }
    })
}

/// A timer whose callback works, and says who ran it.
fn work(machine: &'static Machine, number: u64, armed: CpuId, to: (&Runners, &SliceLog)) -> TimerHandle {
    let (runners, slices) = (Arc::clone(to.0), to.1.clone());
    machine.timer(tick(), move |run| {
        lock(&runners).push(gettid());
        spin(WORK);
        slices.ran(number, "driver work", Some(armed), run);
    })
}

/// What fails here, at the end, is seen in the count of callbacks.
fn arm(works: &[TimerHandle]) {
    for (timer, delay) in works.iter().zip(DELAYS) {
        let _ = timer.arm_after(delay);
    }
}

/// A thread that is no lane, on the sleeper's CPU.
fn program(cpu: CpuId, works: &[TimerHandle], over: &Receiver<()>) {
    // Refused, it arms from elsewhere, which is as foreign.
    let _ = stay_on(cpu);
    while over.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
        arm(works);
    }
}

#[cfg(test)]
mod tests {
    use super::{Gaps, figures};
    use rustix::thread::Pid;

    fn thread(id: i32) -> Pid {
        Pid::from_raw(id).expect("an id")
    }

    /// Goal: each figure is its own. Method: twelve callbacks in four seconds, five of them on the busy lane
    /// and four counted there; 100 gaps at the upper ends of their places, so that nothing is rounded, and
    /// short ones for 49 times as long; by hand.
    #[test]
    fn figures_of_a_round() {
        let runners = [7, 8, 8, 7, 8, 8, 8, 7, 7, 7, 9, 9].map(thread);
        let mut gaps = Gaps::new();
        (0..97).for_each(|_| gaps.take(2_047));
        (0..2).for_each(|_| gaps.take(4_095));
        gaps.take(8_191);
        // Together 214 940 ns; the loop itself 10 532 060.
        (0..20_000).for_each(|_| gaps.take(526));
        (0..20).for_each(|_| gaps.take(603));
        let found = figures(&runners, thread(7), 4, 4.0, &gaps);
        assert_eq!(found, [5.0, 4.0, 3.0, 2.0, 2.047, 4.095, 8.191].map(Some));
    }

    /// Goal: where no callback ran, that none was foreign is no figure; nor is the loop's time where it never
    /// looked. Method: nothing at all.
    #[test]
    fn nothing_is_no_figure() {
        let found = figures(&[], thread(7), 0, 4.0, &Gaps::new());
        assert_eq!(found, [None, None, Some(0.0), None, None, None, None]);
    }
}
