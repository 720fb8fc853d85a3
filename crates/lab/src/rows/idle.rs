//! Two lanes with nothing to do but timers: how often is a thread woken up for 1000 of them, or for none?
//!
//! Wake-ups are context switches that a thread made by itself (/proc/self/task), of all threads but the one
//! that measures.

use crate::error::LabError;
use crate::harness::{LaneHarness, LaneMode, tick, voluntary_switches};
use crate::observe::{Observed, observe};
use crate::plan::{
    Better, Citation, CitedFigure, Compare, PLAIN, RowPlan, RowScenario, RowVariant, ScenarioCompare,
    TrialContext, TrialFigures, VariantRole,
};
use quietcore_live::{Machine, Nanos, TimerHandle, timer::Policy};
use quietcore_trace::Question;
use rustix::thread::{Pid, gettid};
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
        text: include_str!("../../scenarios/idle.toml"),
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
    let seen = observe(context, context.span, || Seen::now(machine))?;
    Ok(figures(&seen))
}

/// What was counted until a moment.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// Timers that ran, and how late they were together.
    ran: u64,
    late_ns: u64,
    /// Voluntary context switches of all threads but the one that asks.
    wake_ups: u64,
    /// Of this process.
    cpu_time: Duration,
}

impl Seen {
    fn now(machine: &Machine) -> Result<Self, LabError> {
        let metrics = machine.metrics();
        let here = gettid();
        let time = clock_gettime(ClockId::ProcessCPUTime);
        Ok(Self {
            ran: metrics.lateness().len(),
            late_ns: metrics.sum(|cpu| cpu.lateness_sum.as_u64()),
            wake_ups: voluntary_switches(|status| !is_of(status, here))?,
            cpu_time: Duration::new(time.tv_sec as u64, time.tv_nsec as u32),
        })
    }
}

/// Whether a thread's `status` in /proc is that of `thread`.
fn is_of(status: &str, thread: Pid) -> bool {
    status.contains(&format!("\nPid:\t{}\n", thread.as_raw_nonzero()))
}

fn figures(of: &Observed<Seen>) -> TrialFigures {
    let Observed { before, after, took } = of;
    let seconds = took.as_secs_f64();
    let runs = after.ran - before.ran;
    let late_us = (after.late_ns - before.late_ns) as f64 / 1e3;
    let busy = (after.cpu_time - before.cpu_time).as_secs_f64();
    vec![
        // The switches of a thread that has ended meanwhile are gone.
        Some(after.wake_ups.saturating_sub(before.wake_ups) as f64 / seconds),
        Some(100.0 * busy / seconds),
        Some(runs as f64 / seconds),
        (runs > 0).then(|| late_us / runs as f64),
    ]
}

#[cfg(test)]
mod tests {
    use super::{Observed, Seen, figures, is_of};
    use quietcore_live::{Machine, Nanos};
    use rustix::thread::Pid;
    use std::sync::mpsc::channel;
    use std::thread;
    use std::time::Duration;

    /// Goal: each figure is its own, of what grew, and where no timer ran none was late. Method: counts of
    /// which each is another, in four seconds, by hand; nothing that grew.
    #[test]
    fn figures_of_a_round() {
        let cpu_time = |millis| Duration::from_millis(millis);
        let before = Seen { ran: 100, late_ns: 1_000_000, wake_ups: 50, cpu_time: cpu_time(300) };
        let after = Seen { ran: 900, late_ns: 3_000_000, wake_ups: 74, cpu_time: cpu_time(1_100) };
        let took = Duration::from_secs(4);
        assert_eq!(figures(&Observed { before, after, took }), [6.0, 20.0, 200.0, 2.5].map(Some));
        let nothing = Observed { before, after: before, took };
        assert_eq!(figures(&nothing), [Some(0.0), Some(0.0), Some(0.0), None]);
    }

    /// Goal: what was counted is of this machine's timers and of all threads but the one that asks. Method:
    /// three timers that are 5 ms late when they are armed, and another thread that sleeps often; each
    /// grows by that at least, and the count of timers by no more.
    #[test]
    fn counts_are_of_timers_and_of_other_threads() {
        let machine = Machine::start().expect("a machine");
        thread::sleep(Duration::from_millis(10));
        let before = Seen::now(machine).expect("/proc is there");
        for _ in 0..3 {
            let (sender, ran) = channel();
            let timer = machine.timer(super::tick(), move |_| {
                let _ = sender.send(());
            });
            timer.arm_at(Nanos(machine.now().0 - 5_000_000)).expect("it runs");
            ran.recv().expect("it ran");
            timer.cancel_sync().expect("it is over");
        }
        let (sender, slept) = channel();
        let sleeper = thread::spawn(move || {
            (0..100).for_each(|_| thread::sleep(Duration::from_millis(1)));
            let _ = sender.send(());
            thread::park();
        });
        slept.recv().expect("it slept");
        let after = Seen::now(machine).expect("/proc is there");
        sleeper.thread().unpark();
        sleeper.join().expect("it slept");
        machine.shutdown();
        assert_eq!(after.ran - before.ran, 3);
        assert!(after.late_ns - before.late_ns >= 15_000_000, "{before:?} {after:?}");
        assert!(after.wake_ups >= 50, "{after:?}");
        assert!(after.cpu_time > before.cpu_time, "{before:?} {after:?}");
    }

    /// Goal: a thread is known by its whole id. Method: its own status, and one whose id begins as it does.
    #[test]
    fn a_thread_is_known_by_its_id() {
        let status = "Name:\tlab\nTgid:\t77\nNgid:\t0\nPid:\t123\nPPid:\t12\n";
        let known = [123, 12, 77].map(|id| is_of(status, Pid::from_raw(id).expect("an id")));
        assert_eq!(known, [true, false, false]);
    }
}
