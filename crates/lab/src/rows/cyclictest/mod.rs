//! Real-time tasks that wake up in their periods while long softirqs run on the same lanes: how late are
//! they?
//!
//! Eight tasks of one priority, as cyclictest starts threads: periods of 1 to 4.5 ms, [`WORK`] per cycle,
//! free to move between two lanes. Their timer interrupt is a lane of another machine with a higher priority
//! of the system, which softirqs do not hold up; lateness is from the moment that was due to the first line
//! of the cycle. Devices of the same other machine raise NET_RX and BLOCK on both lanes, with work of very
//! different lengths. All four modes get the same load, with the same random numbers. Every raised piece of
//! work must have been done at the end: what is gained for tasks is not taken from packets by losing them.
//! `figures.rs` has what a variant comes to.

mod event;
mod figures;

use crate::error::LabError;
use crate::plan::{
    Better, Citation, CitedFigure, Compare, ExactCheck, RowPlan, RowScenario, RowVariant, ScenarioCompare,
    TrialContext, TrialFigures, TrialSpans, VariantRole,
};
use crate::slice::SliceLog;
use crate::sync::lock;
use event::TaskEvent;
use figures::{TrialCounts, figures, line};
use quietcore_live::{
    CpuId, LaneThreads, Machine, Nanos, Precision, TimerHandle, TimerOptions,
    lane::Pinning,
    softirq::{Awareness, SoftirqRun, Vector},
    task::{JoinHandle, Priority},
};
use quietcore_sim::SimRandom;
use quietcore_trace::Question;
use rustix::time::{ClockId, clock_gettime};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

pub(crate) const PLAN: RowPlan = RowPlan {
    name: "cyclictest",
    question: "real-time tasks beside long softirqs: what do placing and deferring bring, and cost?",
    figures: &[
        ("late p50", "us"),
        ("late p99", "us"),
        ("late p99.9", "us"),
        ("late max, no claim", "us"),
        ("moved to another lane", "per second"),
        ("softirq delay p50", "us"),
        ("softirq delay p99", "us"),
        ("longest delay, no claim", "ms"),
        ("deferred", "per second"),
        ("run by ksoftirqd", "%"),
        ("softirqs lost", "pieces"),
        ("cycles missed", "%"),
    ],
    variants: &[
        RowVariant {
            name: "no softirqs",
            what: "the same tasks, and no device raises anything",
            role: VariantRole::NoiseFloor,
            run: |context| trial(context, Awareness::None, Load::None),
        },
        RowVariant {
            name: "none",
            what: "placed by priority alone, softirqs run where they are raised",
            role: VariantRole::Before,
            run: |context| trial(context, Awareness::None, Load::Devices),
        },
        RowVariant {
            name: "both",
            what: "placed away from long softirqs, which are deferred (50 ms at most)",
            role: VariantRole::After,
            run: |context| trial(context, Awareness::Both, Load::Devices),
        },
        RowVariant {
            name: "place",
            what: "placed away from long softirqs",
            role: VariantRole::After,
            run: |context| trial(context, Awareness::Place, Load::Devices),
        },
        RowVariant {
            name: "defer",
            what: "long softirqs are deferred",
            role: VariantRole::After,
            run: |context| trial(context, Awareness::Defer, Load::Devices),
        },
    ],
    compares: &[
        Compare { figure: 1, better: Better::Lower },
        Compare { figure: 2, better: Better::Lower },
        Compare { figure: 6, better: Better::Lower },
    ],
    exact_checks: &[
        ExactCheck { variant: "none", figure: 10, value: 0.0 },
        ExactCheck { variant: "both", figure: 10, value: 0.0 },
        ExactCheck { variant: "place", figure: 10, value: 0.0 },
        ExactCheck { variant: "defer", figure: 10, value: 0.0 },
    ],
    notes: &[],
    spans: TrialSpans { full: Duration::from_secs(4), quick: Duration::from_millis(1200) },
    cited: Some(Citation {
        question: Question::RealTime,
        figures: &[
            CitedFigure {
                what: "cyclictest's maxima of eight threads in us, before",
                verbatim: "4107 8994 3616 40273 10510 13194 9470 20101",
            },
            CitedFigure { what: "the same, after", verbatim: "1734 1181 444 1729 406 1264 2351 2285" },
        ],
    }),
    scenario: Some(RowScenario {
        name: "cyclictest.toml",
        text: include_str!("../../../scenarios/cyclictest.toml"),
        compares: &[ScenarioCompare::lower("late p99, 8 CPUs", "rt_latency_p99", "none", "both")],
    }),
};

/// Periods: the first, and by how much each is longer than the one before it.
const PERIOD: u64 = 1_000_000;
const STEP: u64 = 500_000;
const TASKS: usize = 8;
const WORK: Duration = Duration::from_micros(60);
/// Between two raises of one device, on average.
const RAISE_NS: f64 = 4_000_000.0;
/// The shortest and the longest piece of work of a softirq, and how quickly long ones become rare: a Pareto
/// distribution that is cut off, as lengths of transfers are.
const SHORTEST_NS: f64 = 100_000.0;
const LONGEST_NS: f64 = 8_000_000.0;
const TAIL: f64 = 1.2;
/// How long the end waits for what is still pending.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    None,
    Devices,
}

fn period(task: usize) -> u64 {
    PERIOD + task as u64 * STEP
}

/// Computes for `work` of this thread's own time.
fn compute(work: Duration) {
    let spent = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    let end = spent() + work;
    while spent() < end {
        std::hint::spin_loop();
    }
}

/// What devices do: the same numbers in every variant.
struct Draws(SimRandom);

impl Draws {
    /// In (0, 1].
    fn next(&mut self) -> f64 {
        (self.0.below(1 << 53) + 1) as f64 / (1_u64 << 53) as f64
    }

    fn pause(&mut self) -> u64 {
        (-self.next().ln() * RAISE_NS) as u64 + 1_000
    }

    fn length(&mut self) -> Duration {
        let cut = 1.0 - (SHORTEST_NS / LONGEST_NS).powf(TAIL);
        let ns = SHORTEST_NS / (1.0 - self.next() * cut).powf(1.0 / TAIL);
        Duration::from_nanos(ns.min(LONGEST_NS) as u64)
    }
}

/// A piece of work of a device: when it was raised, and how long it takes.
type Piece = (Nanos, Duration);

#[derive(Debug, Default)]
struct Device {
    waiting: Mutex<VecDeque<Piece>>,
    raised: Mutex<u64>,
    delays: Mutex<Vec<u64>>,
}

impl Device {
    /// Takes the next piece, which begins `now`; how long it takes.
    fn begin(&self, now: Nanos) -> Option<Duration> {
        let (raised, length) = lock(&self.waiting).pop_front()?;
        lock(&self.delays).push(now.since(raised).0);
        Some(length)
    }

    /// Pieces that were raised and not begun.
    fn left(&self) -> u64 {
        *lock(&self.raised) - lock(&self.delays).len() as u64
    }
}

/// By CPU of the lanes, NET_RX and BLOCK.
type Devices = Arc<Vec<(CpuId, [Device; 2])>>;

const VECTORS: [Vector; 2] = [Vector::NET_RX, Vector::BLOCK];

fn handle(devices: &Devices, kind: usize, run: &SoftirqRun<'_>, slices: &SliceLog) {
    let Some((_, of)) = devices.iter().find(|(cpu, _)| *cpu == run.cpu()) else { return };
    let device = &of[kind];
    let began = run.machine().now();
    let Some(length) = device.begin(began) else { return };
    compute(length);
    slices.handled(run, began);
    if !lock(&device.waiting).is_empty() {
        run.raise_again();
    }
}

/// One variant: the machine with the tasks, and the one that plays the hardware.
struct Trial {
    machine: &'static Machine,
    hardware: &'static Machine,
    devices: Devices,
    events: Vec<Arc<Mutex<TaskEvent>>>,
    tasks: Vec<JoinHandle<()>>,
    timers: Vec<TimerHandle>,
}

impl Drop for Trial {
    fn drop(&mut self) {
        self.hardware.shutdown();
        self.machine.shutdown();
    }
}

fn trial(context: &TrialContext, awareness: Awareness, load: Load) -> Result<TrialFigures, LabError> {
    let mut trial = Trial::start(context, awareness)?;
    trial.tasks(&context.slices.clone())?;
    if load == Load::Devices {
        trial.raise()?;
    }
    let began = Instant::now();
    context.wait();
    let seconds = began.elapsed().as_secs_f64();
    trial.stop();
    context.attach("cyclictest", trial.lines());
    Ok(trial.figures(seconds))
}

impl Trial {
    fn start(context: &TrialContext, awareness: Awareness) -> Result<Self, LabError> {
        let devices: Devices = Arc::new(context.cpus.map(|cpu| (cpu, Default::default())).into());
        let mut builder = Machine::builder().lanes(context.lanes()).awareness(awareness);
        builder = builder.lane_threads(LaneThreads::new().pinning(Pinning::Always).fifo(10));
        for (kind, vector) in VECTORS.into_iter().enumerate() {
            let (devices, slices) = (Arc::clone(&devices), context.slices.clone());
            builder = builder.softirq(vector, move |run| handle(&devices, kind, run, &slices));
        }
        let machine = builder.start()?;
        let floating = LaneThreads::new().pinning(Pinning::Never).fifo(50);
        let hardware = Machine::builder().lanes([context.cpus[0]].into_iter().collect());
        let hardware = hardware.lane_threads(floating).start().inspect_err(|_| {
            machine.shutdown();
        })?;
        Ok(Self { machine, hardware, devices, events: Vec::new(), tasks: Vec::new(), timers: Vec::new() })
    }

    /// Starts the tasks, and what interrupts for them.
    fn tasks(&mut self, slices: &SliceLog) -> Result<(), LabError> {
        let machine = self.machine;
        let first = self.hardware.now().0 + 10_000_000;
        for number in 0..TASKS {
            let event = Arc::new(Mutex::new(TaskEvent::default()));
            let cycle = cycles(machine, Arc::clone(&event), number as u64, slices.clone());
            let task = machine.spawn_rt(Priority::HIGHEST, cycle)?;
            let interrupt = Arc::clone(&event);
            self.every(first + number as u64 * 100_000, move |due| {
                let waker = lock(&interrupt).interrupted(due);
                if let Some(waker) = waker {
                    waker.wake();
                }
                period(number)
            })?;
            self.tasks.push(task);
            self.events.push(event);
        }
        Ok(())
    }

    fn raise(&mut self) -> Result<(), LabError> {
        let first = self.hardware.now().0 + 12_000_000;
        for (at, cpu) in self.devices.iter().map(|(cpu, _)| *cpu).enumerate().collect::<Vec<_>>() {
            for (kind, vector) in VECTORS.into_iter().enumerate() {
                let (machine, devices) = (self.machine, Arc::clone(&self.devices));
                let mut draws = Draws(SimRandom::new(1, (at * 2 + kind) as u64));
                self.every(first, move |due| {
                    let device = &devices[at].1[kind];
                    lock(&device.waiting).push_back((due, draws.length()));
                    if machine.raise(cpu, vector).is_ok() {
                        *lock(&device.raised) += 1;
                    }
                    draws.pause()
                })?;
            }
        }
        Ok(())
    }

    /// Calls `interrupt` at `first`, and then each time as many ns after it was due as it says.
    fn every(
        &mut self,
        first: u64,
        interrupt: impl FnMut(Nanos) -> u64 + Send + 'static,
    ) -> Result<(), LabError> {
        let state = Mutex::new((Nanos(first), interrupt));
        let options = TimerOptions::new().precision(Precision::Exact);
        let timer = self.hardware.timer(options, move |run| {
            let mut state = lock(&state);
            let (due, interrupt) = &mut *state;
            let pause = interrupt(*due);
            due.0 += pause;
            // Refused when the machine has ended.
            let _ = run.timer().arm_at(*due);
        });
        timer.arm_at(Nanos(first))?;
        self.timers.push(timer);
        Ok(())
    }

    /// Nothing is raised any more; waits for what was.
    fn stop(&mut self) {
        for timer in &self.timers {
            let _ = timer.cancel_sync();
        }
        let end = Instant::now() + PATIENCE;
        while self.left() > 0 && Instant::now() < end {
            thread::sleep(Duration::from_millis(5));
        }
        for task in &self.tasks {
            task.abort();
        }
    }

    fn devices(&self) -> impl Iterator<Item = &Device> {
        self.devices.iter().flat_map(|(_, of)| of)
    }

    /// Pieces that were raised and not begun.
    fn left(&self) -> u64 {
        self.devices().map(Device::left).sum()
    }

    fn figures(&self, seconds: f64) -> TrialFigures {
        let mut late: Vec<u64> = self.events.iter().flat_map(|event| lock(event).late.clone()).collect();
        let mut delays: Vec<u64> = self.devices().flat_map(|device| lock(&device.delays).clone()).collect();
        late.sort_unstable();
        delays.sort_unstable();
        figures(&TrialCounts {
            seconds,
            late,
            missed: self.events.iter().map(|event| lock(event).missed).sum(),
            delays,
            raised: self.devices().map(|device| *lock(&device.raised)).sum(),
            left: self.left(),
            metrics: self.machine.metrics(),
        })
    }

    /// What cyclictest would print at its end.
    fn lines(&self) -> Vec<String> {
        let all = (0..).zip(&self.events);
        all.map(|(number, event)| line(number, period(number), &lock(event).late)).collect()
    }
}

/// A task: waits for its interrupt, notes how late it is, computes.
async fn cycles(machine: &'static Machine, event: Arc<Mutex<TaskEvent>>, number: u64, slices: SliceLog) {
    loop {
        poll_fn(|context| {
            let mut event = lock(&event);
            if event.begin(|| machine.now()) {
                return Poll::Ready(());
            }
            event.waker = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
        slices.around(machine, "task", Some(number), || compute(WORK));
    }
}

#[cfg(test)]
mod tests {
    use super::{Device, lock, period};
    use quietcore_live::Nanos;
    use std::sync::Mutex;
    use std::time::Duration;

    /// Goal: a piece waits from when it was raised to when it begins, the oldest first, and what has not
    /// begun is left. Method: three pieces, of which two begin; none.
    #[test]
    fn pieces_wait_and_are_left() {
        let micros = Duration::from_micros;
        let waiting = [(100, 30), (200, 40), (300, 50)].map(|(at, takes)| (Nanos(at), micros(takes)));
        let device =
            Device { waiting: Mutex::new(waiting.into()), raised: Mutex::new(3), ..Device::default() };
        assert_eq!([270, 290].map(|now| device.begin(Nanos(now))), [Some(micros(30)), Some(micros(40))]);
        assert_eq!((device.left(), lock(&device.delays).as_slice()), (1, &[170, 90][..]));
        assert_eq!(Device::default().begin(Nanos(5)), None);
    }

    /// Goal: periods are those that the line of a task and the head of the file say. Method: the first, the
    /// second and the last.
    #[test]
    fn periods_are_one_to_four_and_a_half_ms() {
        assert_eq!([0, 1, 7].map(period), [1_000_000, 1_500_000, 4_500_000]);
    }
}
