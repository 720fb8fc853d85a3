//! Pairs of a client and a server on two lanes; each request is guarded by a timeout that is cancelled.
//!
//! A pair's client is on one lane, its server on the other, every other pair the other way round. A client
//! sends a request, waits for the answer with `time::timeout` around it, works, and begins again; a server
//! works and answers. Both lanes are full from a few pairs on; with one pair each waits for the other all
//! the time. The noise floor is the same without timeouts, which is also the most that any rule of placing
//! them could gain.

use crate::error::LabError;
use crate::harness::{LaneHarness, spin};
use crate::observe::{Observed, observe};
use crate::plan::{
    Better, Citation, CitedFigure, Compare, ExactCheck, RowPlan, RowScenario, RowVariant, RunScale,
    ScenarioCompare, TrialContext, TrialFigures, TrialSpans, VariantRole,
};
use crate::slice::SliceLog;
use crate::sync::{SharedCount, StopFlag};
use crate::tasks::{LaneTask, LaneTasks, Mailbox, play, stop};
use quietcore_live::{Machine, time, timer::Policy};
use quietcore_trace::Question;
use std::sync::Arc;
use std::time::Duration;

pub(crate) const PLAN: RowPlan = RowPlan {
    name: "dbench",
    question: "clients and servers with a timeout around each request: how many requests per second?",
    figures: &[
        ("1 pair", "requests/s"),
        ("2 pairs", "requests/s"),
        ("4 pairs", "requests/s"),
        ("8 pairs", "requests/s"),
        ("16 pairs", "requests/s"),
        ("32 pairs", "requests/s"),
        ("64 pairs", "requests/s"),
        ("128 pairs", "requests/s"),
        ("256 pairs", "requests/s"),
        ("512 pairs", "requests/s"),
        ("1024 pairs", "requests/s"),
        ("timeouts that ran", "requests"),
    ],
    variants: &[
        RowVariant {
            name: "no timeouts",
            what: "the same requests, unguarded",
            role: VariantRole::NoiseFloor,
            run: |context| trial(context, Policy::Pull, RequestGuard::None),
        },
        RowVariant {
            name: "push",
            what: "a busy CPU is looked for when a timer is armed on an idle or isolated one (Linux up to 6.8)",
            role: VariantRole::Before,
            run: |context| trial(context, Policy::Push, RequestGuard::Timeout),
        },
        RowVariant {
            name: "stay",
            what: "each lane runs its own timers and no others",
            role: VariantRole::Before,
            run: |context| trial(context, Policy::Stay, RequestGuard::Timeout),
        },
        RowVariant {
            name: "pull",
            what: "a timer stays where it is armed; who expires it is decided when it is due",
            role: VariantRole::After,
            run: |context| trial(context, Policy::Pull, RequestGuard::Timeout),
        },
    ],
    compares: &[
        more(0),
        more(1),
        more(2),
        more(3),
        more(4),
        more(5),
        more(6),
        more(7),
        more(8),
        more(9),
        more(10),
    ],
    exact_checks: &[ExactCheck { variant: "pull", figure: 11, value: 0.0 }],
    notes: &[],
    spans: TrialSpans { full: Duration::from_millis(3_300), quick: Duration::from_millis(900) },
    cited: Some(Citation {
        question: Question::Placement,
        figures: &[
            CitedFigure {
                what: "menu, largest loss (pairs, before, after)",
                verbatim: "32 9741.92 (3.44) 8979.83 (1.13) -7.82%",
            },
            CitedFigure {
                what: "menu, largest gain",
                verbatim: "1024 32903.03 (0.86) 35370.70 (0.89) 7.50%",
            },
            CitedFigure { what: "teo, largest loss", verbatim: "128 25044.93 (1.11) 23250.03 (1.08) -7.17%" },
            CitedFigure { what: "teo, largest gain", verbatim: "512 36369.30 (0.39) 38890.13 (0.36) 6.93%" },
        ],
    }),
    scenario: Some(RowScenario {
        name: "dbench-128.toml",
        text: include_str!("../../scenarios/dbench-128.toml"),
        compares: &[
            simulated("1 pair, 128 CPUs", "push/1", "pull/1"),
            simulated("32 pairs, 128 CPUs", "push/32", "pull/32"),
            simulated("1024 pairs, 128 CPUs", "push/1024", "pull/1024"),
        ],
    }),
};

const fn more(figure: usize) -> Compare {
    Compare { figure, better: Better::Higher }
}

const fn simulated(what: &'static str, before: &'static str, after: &'static str) -> ScenarioCompare {
    let unit = ("requests/s", 1.0);
    ScenarioCompare { what, figure: "throughput", unit, before, after, better: Better::Higher }
}

/// In the order of the figures.
const PAIRS: [usize; 11] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
const QUICK: [usize; 3] = [1, 8, 128];
/// What a client does between an answer and the next request, and what a server does for one.
pub(crate) const REQUEST: Duration = Duration::from_micros(8);
pub(crate) const SERVICE: Duration = Duration::from_micros(12);
/// Far beyond any answer.
const TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestGuard {
    None,
    Timeout,
}

/// Who sits where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PairSeating {
    /// Every other pair the other way round.
    Crossed,
    /// All clients on the first lane.
    Apart,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct PairLoad {
    pub(crate) policy: Policy,
    pub(crate) guard: RequestGuard,
    pub(crate) seating: PairSeating,
    pub(crate) pairs: usize,
}

#[derive(Debug, Default)]
struct Tally {
    answered: SharedCount,
    timed_out: SharedCount,
}

fn trial(context: &TrialContext, policy: Policy, guard: RequestGuard) -> Result<TrialFigures, LabError> {
    let chosen: &[usize] = if context.scale == RunScale::Quick { &QUICK } else { &PAIRS };
    let span = context.span / chosen.len() as u32;
    let mut ran = Vec::new();
    for pairs in PAIRS {
        let is_chosen = chosen.contains(&pairs) && !context.stop.is_set();
        let load = PairLoad { policy, guard, seating: PairSeating::Crossed, pairs };
        ran.push(if is_chosen { Some(throughput(context, load, span)?) } else { None });
    }
    Ok(figures(&ran, guard))
}

/// `ran` is in the order of [`PAIRS`]; `None` of what was left out.
fn figures(ran: &[Option<Throughput>], guard: RequestGuard) -> TrialFigures {
    let mut figures: TrialFigures = ran.iter().map(|one| Some(one.as_ref()?.requests_per_s)).collect();
    let timed_out: u64 = ran.iter().flatten().map(|one| one.timed_out).sum();
    let is_answered = ran.iter().flatten().any(|one| one.requests_per_s > 0.0);
    // Of requests that were not guarded, or not answered either, none can have timed out.
    let is_guarded = guard == RequestGuard::Timeout && (is_answered || timed_out > 0);
    figures.push(is_guarded.then_some(timed_out as f64));
    figures
}

/// What came of one load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Throughput {
    pub(crate) requests_per_s: f64,
    pub(crate) timed_out: u64,
}

impl Throughput {
    fn new(answered: &Observed<u64>, timed_out: u64) -> Self {
        let count = answered.after - answered.before;
        Self { requests_per_s: count as f64 / answered.took.as_secs_f64(), timed_out }
    }
}

pub(crate) fn throughput(
    context: &TrialContext,
    load: PairLoad,
    span: Duration,
) -> Result<Throughput, LabError> {
    let (tally, over) = (Arc::new(Tally::default()), StopFlag::default());
    let mut tasks: [Vec<(usize, PairEnd)>; 2] = [Vec::new(), Vec::new()];
    for pair in 0..load.pairs {
        let wires = Arc::new(Wires { request: Mailbox::new(), answer: Mailbox::new() });
        let client = if load.seating == PairSeating::Crossed { pair % 2 } else { 0 };
        tasks[client].push((pair, PairEnd::Client(Arc::clone(&wires))));
        tasks[1 - client].push((pair, PairEnd::Server(wires)));
    }
    let lanes = context.cpus.into_iter().zip(tasks).map(|(cpu, seats)| {
        let (tally, slices) = (Arc::clone(&tally), context.slices.clone());
        let make: LaneTasks = Box::new(move |machine| {
            let work = |pair| Work { machine, slices: slices.clone(), pair };
            seats.into_iter().map(|(pair, seat)| seat.sit(load.guard, &tally, work(pair as u64))).collect()
        });
        (cpu, play(make, over.clone()))
    });
    let harness = LaneHarness::start_with(Machine::builder().policy(load.policy), context, lanes.collect())?;
    // Until all of them wait for each other.
    context.wait_for(span / 8);
    let answered = observe(context, span - span / 8, || Ok(tally.answered.get()))?;
    stop(&harness, context, &over)?;
    drop(harness);
    Ok(Throughput::new(&answered, tally.timed_out.get()))
}

#[derive(Debug)]
struct Wires {
    request: Mailbox<()>,
    answer: Mailbox<()>,
}

enum PairEnd {
    Client(Arc<Wires>),
    Server(Arc<Wires>),
}

impl PairEnd {
    fn sit(self, guard: RequestGuard, tally: &Arc<Tally>, work: Work) -> LaneTask {
        let tally = Arc::clone(tally);
        match self {
            Self::Client(wires) => Box::pin(client(wires, guard, tally, work)),
            Self::Server(wires) => Box::pin(async move {
                loop {
                    wires.request.receive().await;
                    work.take("server", SERVICE);
                    wires.answer.send(());
                }
            }),
        }
    }
}

async fn client(wires: Arc<Wires>, guard: RequestGuard, tally: Arc<Tally>, work: Work) {
    loop {
        wires.request.send(());
        let answer = wires.answer.receive();
        let is_answered = match guard {
            RequestGuard::None => {
                answer.await;
                true
            }
            RequestGuard::Timeout => time::timeout(TIMEOUT, answer).await.is_ok(),
        };
        let count = if is_answered { &tally.answered } else { &tally.timed_out };
        count.add_one();
        work.take("client", REQUEST);
    }
}

struct Work {
    machine: &'static Machine,
    slices: SliceLog,
    pair: u64,
}

impl Work {
    fn take(&self, name: &'static str, span: Duration) {
        self.slices.around(self.machine, name, Some(self.pair), || spin(span));
    }
}

#[cfg(test)]
mod tests {
    use super::{Observed, PAIRS, PLAN, QUICK, RequestGuard, Throughput, figures};

    fn ran(requests_per_s: f64, timed_out: u64) -> Option<Throughput> {
        Some(Throughput { requests_per_s, timed_out })
    }

    /// Goal: requests per second are those that were answered meanwhile. Method: 900 in four seconds.
    #[test]
    fn requests_are_of_the_time_that_went_by() {
        let answered = Observed { before: 100, after: 1_000, took: std::time::Duration::from_secs(4) };
        let found = Throughput::new(&answered, 3);
        assert_eq!((found.requests_per_s, found.timed_out), (225.0, 3));
    }

    /// Goal: each load has its own figure, and timeouts are those of all loads. Method: three loads of which
    /// one was left out, guarded and not.
    #[test]
    fn figures_of_a_round() {
        let all = [ran(100.0, 2), None, ran(300.0, 5)];
        let expected = [Some(100.0), None, Some(300.0), Some(7.0)];
        assert_eq!(figures(&all, RequestGuard::Timeout), expected);
        assert_eq!(figures(&all, RequestGuard::None), [Some(100.0), None, Some(300.0), None]);
    }

    /// Goal: where no request was answered, that none timed out is no figure; that one did is. Method: loads
    /// without an answer, with one of two, and none at all.
    #[test]
    fn no_requests_are_no_timeouts() {
        let last = |all: &[Option<Throughput>]| figures(all, RequestGuard::Timeout).pop().expect("a figure");
        assert_eq!(last(&[ran(0.0, 0), ran(0.0, 0)]), None);
        assert_eq!(last(&[ran(0.0, 0), ran(1.0, 0)]), Some(0.0));
        assert_eq!(last(&[ran(0.0, 3), ran(0.0, 0)]), Some(3.0));
        assert_eq!(last(&[None, None]), None);
    }

    /// Goal: a figure's name is its load. Method: names against the numbers of pairs, and the quick run's.
    #[test]
    fn names_are_loads() {
        for (pairs, (name, unit)) in PAIRS.iter().zip(PLAN.figures) {
            let plural = if *pairs == 1 { "" } else { "s" };
            assert_eq!((format!("{pairs} pair{plural}"), "requests/s"), ((*name).to_owned(), *unit));
        }
        assert!(QUICK.iter().all(|pairs| PAIRS.contains(pairs)), "{QUICK:?}");
    }
}
