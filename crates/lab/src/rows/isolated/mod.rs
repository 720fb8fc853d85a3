//! An isolated lane that turns all the time: when does it take a timer turn for nothing, and is any arm from
//! elsewhere lost or late for that?
//!
//! Three loads in each trial, one after the other: nothing is armed; one pinned timer waits, far away; a
//! thread that is no lane arms pinned timers there, in bursts that lie around the edge of a tick, for moments
//! just before, at and just after it. The counters are read in between. Its own clock says how long the lane
//! was away, between two looks with a turn in between.
//!
//! A timer is *late* here from the later of its moment and the end of the call that armed it. *Beyond the
//! contract* is more than a tick (moments are rounded up to ticks), another tick (an arm may come just after
//! its tick has looked) and the longest gap of that lane under the same load, taken over two turns in a row:
//! one that had begun before the moment came, and the one that ran the timer.
//!
//! `arms.rs` has the thread that arms.

mod arms;

use crate::error::LabError;
use crate::gaps::Gaps;
use crate::harness::{LaneBody, LaneHarness, LaneMode, tick, voluntary_switches};
use crate::plan::{
    Better, Citation, CitedFigure, Compare, ExactCheck, RowPlan, RowScenario, RowVariant, ScenarioCompare,
    TrialContext, TrialFigures, TrialSpans, VariantRole, quantile_us,
};
use crate::sync::lock;
use arms::{Arms, TICK, arm_for};
use quietcore_live::{CpuId, Machine, Nanos, isolation::TimerRaise, metrics::Metrics};
use quietcore_trace::Question;
use std::cell::Cell;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub(crate) const PLAN: RowPlan = RowPlan {
    name: "isolated",
    question: "a busy isolated lane: what do timer turns for nothing cost, and is an arm from elsewhere seen?",
    figures: &[
        ("gap p50, far timer", "us"),
        ("gap p99, far timer", "us"),
        ("longest of each tick p50, far timer", "us"),
        ("longest of each tick p99, far timer", "us"),
        ("timer turns, nothing armed", "per second"),
        ("timer turns, far timer", "per second"),
        ("timer turns, remote arms", "per second"),
        ("turns that ran nothing, remote arms", "per second"),
        ("own threads woken, nothing due", "times"),
        ("remote arms", "arms"),
        ("never run", "timers"),
        ("early", "timers"),
        ("late beyond the contract", "timers"),
        ("late p99", "us"),
        ("late max, no claim", "us"),
        ("longest gap, no claim", "us"),
    ],
    variants: &[
        RowVariant {
            name: "no timers",
            what: "next expiry, and nothing is armed; gaps are what the machine does",
            role: VariantRole::NoiseFloor,
            run: |context| trial(context, TimerRaise::NextExpiry, Load::None),
        },
        RowVariant {
            name: "unconditional",
            what: "a timer turn in every tick, as kernels did until 2019",
            role: VariantRole::Before,
            run: |context| trial(context, TimerRaise::Unconditional, Load::Arms),
        },
        RowVariant {
            name: "next expiry",
            what: "a timer turn when one is due, as kernels do today",
            role: VariantRole::After,
            run: |context| trial(context, TimerRaise::NextExpiry, Load::Arms),
        },
        RowVariant {
            name: "bitmap",
            what: "a timer turn in every tick in which any timer waits; an arm from elsewhere calls",
            role: VariantRole::After,
            run: |context| trial(context, TimerRaise::Bitmap, Load::Arms),
        },
    ],
    compares: &[
        // Not the quantiles of all gaps: of a variant with fewer gaps a larger share is the host's.
        Compare { figure: 2, better: Better::Lower },
        Compare { figure: 3, better: Better::Lower },
        Compare { figure: 5, better: Better::Lower },
        Compare { figure: 7, better: Better::Lower },
    ],
    exact_checks: &[
        ExactCheck { variant: "unconditional", figure: NEVER, value: 0.0 },
        ExactCheck { variant: "unconditional", figure: EARLY, value: 0.0 },
        ExactCheck { variant: "unconditional", figure: BEYOND, value: 0.0 },
        ExactCheck { variant: "next expiry", figure: NEVER, value: 0.0 },
        ExactCheck { variant: "next expiry", figure: EARLY, value: 0.0 },
        ExactCheck { variant: "next expiry", figure: BEYOND, value: 0.0 },
        ExactCheck { variant: "bitmap", figure: NEVER, value: 0.0 },
        ExactCheck { variant: "bitmap", figure: EARLY, value: 0.0 },
        ExactCheck { variant: "bitmap", figure: BEYOND, value: 0.0 },
    ],
    notes: &[],
    spans: TrialSpans { full: Duration::from_secs(4), quick: Duration::from_millis(600) },
    cited: Some(Citation {
        question: Question::EmptySoftirqs,
        figures: &[
            CitedFigure { what: "cyclictest's latency, before", verbatim: "25us" },
            CitedFigure { what: "the same, after", verbatim: "14us" },
        ],
    }),
    scenario: Some(RowScenario {
        name: "isolated.toml",
        text: include_str!("../../../scenarios/isolated.toml"),
        compares: &[
            ScenarioCompare::lower("gap p99, 8 isolated CPUs", "gap_p99", "unconditional", "next_expiry"),
            ScenarioCompare::lower("the same with the bitmap", "gap_p99", "unconditional", "bitmap"),
            ScenarioCompare::lower(
                "raises that ran nothing, in 10 s",
                "idle_raises",
                "unconditional",
                "next_expiry",
            )
            .in_unit("raises", 1.0),
        ],
    }),
};

const NEVER: usize = 10;
const EARLY: usize = 11;
const BEYOND: usize = 12;

/// Further away than any span.
const FAR: u64 = 3_600_000_000_000;
/// For how long what was started goes to sleep.
const SETTLE: Duration = Duration::from_millis(50);
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    None,
    Arms,
}

thread_local! {
    /// On the busy lane: which load there is, by number; none outside of them.
    static LOAD: Cell<Option<usize>> = const { Cell::new(None) };
}

/// What the lane found under one load.
#[derive(Debug)]
struct Watch {
    gaps: Gaps,
    /// The longest gap of each tick.
    ticks: Vec<u64>,
    tick: u64,
    longest: u64,
    /// The gap before this one, and the longest two in a row.
    last: u64,
    pair: u64,
    /// Turns in which a timer ran.
    ran: u64,
}

type Watches = Arc<Mutex<Option<[Watch; 3]>>>;

impl Watch {
    fn new() -> Self {
        Self { gaps: Gaps::new(), ticks: Vec::new(), tick: 0, longest: 0, last: 0, pair: 0, ran: 0 }
    }

    /// The lane looked at `last` and looks `now`; the turn that follows runs `timers`.
    fn take(&mut self, last: u64, now: u64, timers: u32) {
        let gap = now - last;
        self.ran += u64::from(timers > 0);
        self.gaps.take(gap);
        self.pair = self.pair.max(self.last + gap);
        self.last = gap;
        if now / TICK != self.tick {
            if self.tick != 0 {
                self.ticks.push(self.longest);
            }
            (self.tick, self.longest) = (now / TICK, 0);
        }
        self.longest = self.longest.max(gap);
    }
}

/// The busy lane: it looks at the clock and turns, until the machine is shut down.
fn watch(found: &Watches) -> LaneBody {
    let found = Arc::clone(found);
    Box::new(move |machine, mut cpu| {
        let mut watches: [Watch; 3] = std::array::from_fn(|_| Watch::new());
        let (mut last, mut before) = (machine.now().0, None);
        while machine.is_running() {
            let now = machine.now().0;
            let load = LOAD.get();
            // The gap in which the load changed is of neither.
            let watch = load.filter(|_| load == before).map(|load| &mut watches[load]);
            let turned = cpu.turn();
            if let Some(watch) = watch {
                watch.take(last, now, turned.ran);
            }
            (last, before) = (now, load);
        }
        *lock(&found) = Some(watches);
    })
}

/// A counter's growth under each load.
#[derive(Clone, Copy, Debug, Default)]
struct Grown {
    seconds: f64,
    turns: u64,
    woken: u64,
}

fn trial(context: &TrialContext, when: TimerRaise, load: Load) -> Result<TrialFigures, LabError> {
    let [sleeper, busy] = context.cpus;
    let builder = Machine::builder().tick(Duration::from_nanos(TICK)).timer_raise(when);
    let found = Watches::default();
    let lanes = vec![(sleeper, LaneMode::Parks.play()), (busy, watch(&found))];
    let harness = LaneHarness::start_with(builder.isolated([busy].into_iter().collect()), context, lanes)?;
    let machine = harness.machine;
    context.wait_for(SETTLE);
    let (quarter, half) = (context.span / 4, context.span / 2);
    let nothing = under(&harness, 0, busy, || context.wait_for(quarter))?;
    let far = machine.timer(tick().pinned(), |_| {});
    if load == Load::Arms {
        far.arm_on(busy, Nanos(machine.now().0 + FAR))?;
    }
    let beside = under(&harness, 1, busy, || context.wait_for(quarter))?;
    let _ = far.cancel();
    let mut arms = Ok(Arms::default());
    let remote = under(&harness, 2, busy, || match load {
        Load::None => context.wait_for(half),
        Load::Arms => arms = arm_for(context, machine, half),
    })?;
    let arms = arms?;
    drop(harness);
    let watches = lock(&found)
        .take()
        .ok_or_else(|| LabError::Trial("the busy lane did not come to an end".to_owned()))?;
    Ok(figures([nothing, beside, remote], watches, arms))
}

fn figures(grown: [Grown; 3], watches: [Watch; 3], mut arms: Arms) -> TrialFigures {
    let [nothing, beside, remote] = grown;
    let [_, mut far, last] = watches;
    far.ticks.sort_unstable();
    arms.late.sort_unstable();
    let contract = 2 * TICK + last.pair;
    let beyond = arms.late.iter().filter(|late| **late > contract).count();
    let per_second = |of: u64, grown: Grown| Some(of as f64 / grown.seconds);
    // Of nothing that was armed nothing can be missed, early or late.
    let of_arms = |count: u64| (arms.made > 0).then_some(count as f64);
    let us = |ns: f64| ns / 1e3;
    vec![
        far.gaps.quantile(0.5).map(us),
        far.gaps.quantile(0.99).map(us),
        quantile_us(&far.ticks, 0.5),
        quantile_us(&far.ticks, 0.99),
        per_second(nothing.turns, nothing),
        per_second(beside.turns, beside),
        per_second(remote.turns, remote),
        per_second(remote.turns.saturating_sub(last.ran), remote),
        Some((nothing.woken + beside.woken) as f64),
        Some(arms.made as f64),
        of_arms(arms.never()),
        of_arms(arms.early),
        of_arms(beyond as u64),
        quantile_us(&arms.late, 0.99),
        quantile_us(&arms.late, 1.0),
        last.gaps.largest_ns().map(us),
    ]
}

/// What grew while `act` was under way; the lane knows of it.
fn under(harness: &LaneHarness, load: usize, busy: CpuId, act: impl FnOnce()) -> Result<Grown, LabError> {
    harness.on_lane(busy, move || LOAD.set(Some(load)))?;
    let (began, before, slept) = (Instant::now(), harness.machine.metrics(), sleeps()?);
    act();
    let (seconds, after, sleeps) = (began.elapsed().as_secs_f64(), harness.machine.metrics(), sleeps()?);
    harness.on_lane(busy, || LOAD.set(None))?;
    let turns = turns(&after, busy) - turns(&before, busy);
    Ok(Grown { seconds, turns, woken: sleeps.saturating_sub(slept) })
}

fn turns(metrics: &Metrics, of: CpuId) -> u64 {
    metrics.cpus.iter().filter(|cpu| cpu.cpu == of).map(|cpu| cpu.turns).sum()
}

/// How often threads that the runtime started have gone to sleep: those of this process with its names.
fn sleeps() -> Result<u64, LabError> {
    voluntary_switches(is_of_the_runtime)
}

/// Of a thread, by its `status` in /proc.
fn is_of_the_runtime(status: &str) -> bool {
    status.starts_with("Name:\tquietcore-")
}

#[cfg(test)]
mod tests {
    use super::{Arms, Grown, TICK, Watch, figures, is_of_the_runtime, turns};
    use crate::harness::voluntary_switches;
    use quietcore_live::{Machine, Nanos};
    use std::sync::mpsc::channel;

    fn grown(seconds: f64, turns: u64, woken: u64) -> Grown {
        Grown { seconds, turns, woken }
    }

    /// Goal: each figure is its own, under the load that it says. Method: three loads of which every count is
    /// another; gaps at the upper ends of their places, so that nothing is rounded; by hand.
    #[test]
    fn figures_of_a_round() {
        let (mut nothing, mut far, mut last) = (Watch::new(), Watch::new(), Watch::new());
        nothing.gaps.take(9_000_000);
        (0..98).for_each(|_| far.gaps.take(2_047));
        (0..2).for_each(|_| far.gaps.take(4_095));
        far.ticks = (1..=100).rev().map(|us| us * 1_000).collect();
        last.gaps.take(5_000);
        (last.pair, last.ran) = (6_000, 100);
        // The contract is two ticks and the longest two gaps: 2.006 ms.
        let late: Vec<u64> =
            [2_006_001, 2_006_000].into_iter().chain((1..=198).map(|us| us * 1_000)).collect();
        let arms = Arms { made: 203, early: 2, late };
        let loads = [grown(1.0, 10, 1), grown(2.0, 30, 3), grown(4.0, 500, 9)];
        let expected = [
            2.047, 4.095, 50.0, 99.0, 10.0, 15.0, 125.0, 100.0, 4.0, 203.0, 3.0, 2.0, 1.0, 198.0, 2006.001,
            5.0,
        ];
        assert_eq!(figures(loads, [nothing, far, last], arms), expected.map(Some));
    }

    /// Goal: where nothing was armed nothing can have been in time. Method: three loads under which the lane
    /// never looked.
    #[test]
    fn nothing_armed_is_no_figure() {
        let watches = [Watch::new(), Watch::new(), Watch::new()];
        let found = figures([grown(1.0, 0, 0); 3], watches, Arms::default());
        let none: Vec<usize> = (0..found.len()).filter(|at| found[*at].is_none()).collect();
        assert_eq!(none, [0, 1, 2, 3, 10, 11, 12, 13, 14, 15]);
    }

    /// Goal: the longest gap of each tick, the longest two in a row, the longest of all, and turns that ran
    /// timers. Method: looks in four ticks, the last of which has not ended, and turns that run none in the
    /// first, else up to three; by hand.
    #[test]
    fn a_tick_has_its_longest_gap() {
        let mut watch = Watch::new();
        for (tick, within, gap) in
            [(7, 9, 5_000), (8, 1, 300), (8, 2, 4_000), (8, 3, 200), (9, 0, 700), (9, 1, 600), (10, 5, 1_500)]
        {
            let now = tick * TICK + within;
            watch.take(now - gap, now, (tick % 7) as u32);
        }
        assert_eq!(watch.ticks, [5_000, 4_000, 700]);
        assert_eq!((watch.pair, watch.longest, watch.ran), (5_300, 1_500, 6));
        assert_eq!(watch.gaps.largest_ns(), Some(5_000.0));
    }

    /// Goal: turns are those of the CPU that is asked for. Method: a snapshot in which each CPU has another
    /// number of them.
    #[test]
    fn turns_are_of_one_cpu() {
        let machine = Machine::start().expect("a machine");
        let mut metrics = machine.metrics();
        machine.shutdown();
        for (at, cpu) in (1..).zip(&mut metrics.cpus) {
            cpu.turns = 10 * at;
        }
        let found = [0, 1].map(|at| turns(&metrics, metrics.cpus[at].cpu));
        assert_eq!(found, [10, 20]);
    }

    /// Goal: threads of the runtime that go to sleep are seen, by their name. Method: a machine whose helper
    /// waits for ten timers, one after the other; of all threads only that one is looked at, as those of
    /// other tests come and go.
    #[test]
    fn the_runtime_going_to_sleep_is_seen() {
        let machine = Machine::start().expect("a machine");
        let (sender, ran) = channel();
        let timer = machine.timer(super::tick(), move |_| {
            let _ = sender.send(rustix::thread::gettid().as_raw_pid());
        });
        let run = || {
            timer.arm_at(Nanos(machine.now().0 + 3 * TICK)).expect("it runs");
            ran.recv().expect("it ran")
        };
        let line = format!("\nPid:\t{}\n", run());
        let of_helper = || {
            voluntary_switches(|status| is_of_the_runtime(status) && status.contains(&line))
                .expect("/proc is there")
        };
        let before = of_helper();
        (0..10).for_each(|_| _ = run());
        let after = of_helper();
        machine.shutdown();
        assert!(after > before, "{before} {after}");
    }
}
