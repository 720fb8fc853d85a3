//! What is predicted and then measured: the same machine with two CPUs, once as a scenario, once as lanes.
//!
//! A scenario says in TOML what the live trial does in Rust; where both could differ (who sits where, how
//! long work takes) the trial is written to match. Costs come from the calibration alone.

use crate::error::LabError;
use crate::harness::LaneMode;
use crate::plan::{TrialContext, TrialFigures};
use crate::rows::blocked::{self, BLOCKS, BlockedSetup};
use crate::rows::dbench::{self, PairLoad, PairSeating, REQUEST, RequestGuard, SERVICE};
use crate::rows::enqueue::{self, LaneIsolation};
use crate::rows::idle;
use quietcore_live::timer::Policy;

/// One scenario, and what is asked of it.
pub(crate) struct PredictCase {
    pub(crate) name: &'static str,
    /// Simulated time: long enough that how a run begins does not show.
    pub(crate) duration: &'static str,
    /// The scenario, but for `duration`, `seed` and `costs`.
    pub(crate) scenario: fn() -> String,
    pub(crate) figures: &'static [PredictFigure],
    /// Measures once; figures in the order of `figures`.
    pub(crate) live: fn(&TrialContext) -> Result<TrialFigures, LabError>,
}

pub(crate) struct PredictFigure {
    pub(crate) what: &'static str,
    /// Of which variant of the scenario.
    pub(crate) label: &'static str,
    /// As `[expect]` calls it.
    pub(crate) figure: &'static str,
    /// What it is shown in, and how many of the simulator's units are one of it.
    pub(crate) unit: (&'static str, f64),
    pub(crate) kind: FigureKind,
    /// What the simulator leaves out that could matter here.
    pub(crate) not_modelled: &'static str,
}

/// How a difference is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FigureKind {
    /// Per request, as a time.
    Throughput,
    Plain,
}

/// Two lanes: they look at timers between tasks, and share the ticks of their machine.
const LANES: &str = "[machine]\ncpus = 2\npreempt = \"cooperative\"\nskew = false\n";

pub(crate) const CASES: &[PredictCase] = &[
    PredictCase {
        name: "idle",
        duration: "20s",
        scenario: || {
            let each = idle::TIMERS / 2;
            format!(
                "{LANES}[variants]\npolicy = [\"stay\", \"pull\"]\n[[load.periodic]]\ncpus = \"all\"\n\
                 count = {each}\nperiod = \"100ms\"\nprecision = \"tick\"\n"
            )
        },
        figures: &[
            wakeups("wake-ups per second, stay", "stay"),
            wakeups("wake-ups per second, pull", "pull"),
        ],
        live: |context| {
            let of = |policy| idle::trial(context, policy, idle::TIMERS);
            Ok(vec![of(Policy::Stay)?[0], of(Policy::Pull)?[0]])
        },
    },
    PredictCase {
        name: "enqueue",
        duration: "20ms",
        scenario: || {
            format!(
                "{LANES}nohz_full = \"1\"\n[variants]\npolicy = [\"push\", \"pull\"]\n[[load.enqueue]]\n\
                 cpus = \"isolated\"\ndelay = \"1s\"\n[[load.busy]]\ncpus = \"0\"\n"
            )
        },
        figures: &[pair("arm and cancel, push", "push"), pair("arm and cancel, pull", "pull")],
        live: |context| {
            let of = |policy| enqueue::trial(context, policy, LaneIsolation::Isolated);
            Ok(vec![of(Policy::Push)?[0], of(Policy::Pull)?[0]])
        },
    },
    PredictCase {
        name: "blocked, beside a busy lane",
        duration: "4s",
        scenario: || format!("{}{BUSY}", blocked_lanes()),
        figures: &[late("lateness p99, stay", "stay", HOST), late("lateness p99, pull", "pull", HOST)],
        live: |context| late_live(context, LaneMode::Spins),
    },
    PredictCase {
        name: "blocked, beside a sleeping lane",
        duration: "4s",
        scenario: blocked_lanes,
        figures: &[late("lateness p99, stay", "stay", HOST), late("lateness p99, pull", "pull", HOST)],
        live: |context| late_live(context, LaneMode::Parks),
    },
    PredictCase {
        name: "dbench",
        duration: "500ms",
        scenario: || {
            let (request, service) = (REQUEST.as_micros(), SERVICE.as_micros());
            format!(
                "{LANES}[variants]\npairs = [2, 8]\n[[load.pairs]]\ncpus = \"all\"\n\
                 request = \"{request}us\"\nservice = \"{service}us\"\ntimeout = \"30s\"\n"
            )
        },
        figures: &[requests("2 pairs", "2"), requests("8 pairs", "8")],
        live: |context| {
            let of = |pairs| {
                let load = PairLoad {
                    policy: Policy::Pull,
                    guard: RequestGuard::Timeout,
                    seating: PairSeating::Apart,
                    pairs,
                };
                dbench::throughput(context, load, context.span)
            };
            Ok(vec![Some(of(2)?.requests_per_s), Some(of(8)?.requests_per_s)])
        },
    },
];

/// What fills the lane that does not block; how long it does not look at its timers is nothing beside a tick.
const BUSY: &str = "[[load.busy]]\ncpus = \"1\"\nchunk = \"20us\"\n";

const HOST: &str = "a host that takes a CPU away, and programs beside this one";

fn blocked_lanes() -> String {
    format!(
        "{LANES}[variants]\npolicy = [\"stay\", \"pull\"]\n[[load.periodic]]\ncpus = \"all\"\ncount = 32\n\
         period = \"10ms\"\njitter = \"6ms\"\nprecision = \"tick\"\n[[fault.stall]]\ncpus = \"0\"\n\
         blocked = \"100ms\"\nevery = \"120ms\"\n"
    )
}

/// The p99 of stay and of pull.
fn late_live(context: &TrialContext, other: LaneMode) -> Result<TrialFigures, LabError> {
    let of = |policy| blocked::trial(context, BlockedSetup { policy, other, ..BLOCKS });
    Ok(vec![of(Policy::Stay)?[blocked::P99], of(Policy::Pull)?[blocked::P99]])
}

const fn wakeups(what: &'static str, label: &'static str) -> PredictFigure {
    let not_modelled = "threads of this process other than lanes, and wake-ups that one late wake-up saves";
    let unit = ("all threads", 1.0);
    PredictFigure { what, label, figure: "wakeups_per_s", unit, kind: FigureKind::Plain, not_modelled }
}

const fn pair(what: &'static str, label: &'static str) -> PredictFigure {
    let not_modelled = "the runtime around the core: a timer's handle, which CPU the thread is on, the clock, the \
                        lock's own word; and caches";
    PredictFigure { what, label, figure: "pair_ns", unit: ("ns", 1.0), kind: FigureKind::Plain, not_modelled }
}

const fn late(what: &'static str, label: &'static str, not_modelled: &'static str) -> PredictFigure {
    PredictFigure {
        what,
        label,
        figure: "lateness_p99",
        unit: ("us", 1e3),
        kind: FigureKind::Plain,
        not_modelled,
    }
}

const fn requests(what: &'static str, label: &'static str) -> PredictFigure {
    let not_modelled =
        "polls and mailboxes, and how often a message finds a lane still awake that was about to wait";
    let unit = ("requests/s", 1.0);
    PredictFigure { what, label, figure: "throughput", unit, kind: FigureKind::Throughput, not_modelled }
}
