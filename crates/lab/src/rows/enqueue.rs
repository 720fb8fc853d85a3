//! Arm and cancel on an isolated (`nohz_full`) lane. Under the old rule every arm looks for a busy CPU to put
//! the timer on.
//!
//! The other lane spins, so that there is a busy CPU to find. That the search ran is checked: the timers must
//! have been armed on the other lane's bases. 1000 pairs to a look at the clock.

use crate::error::LabError;
use crate::harness::{LaneHarness, LaneMode, tick};
use crate::plan::{
    Better, Citation, CitedFigure, Compare, PLAIN, RowPlan, RowScenario, RowVariant, ScenarioCompare,
    TrialContext, TrialFigures, VariantRole, percent,
};
use crate::sync::lock;
use quietcore_live::{CpuSet, Machine, Nanos, timer::Policy};
use quietcore_trace::Question;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub(crate) const PLAN: RowPlan = RowPlan {
    name: "enqueue",
    question: "what does an arm and a cancel cost on an isolated lane?",
    figures: &[("arm and cancel", "ns"), ("armed on another CPU", "%")],
    variants: &[
        RowVariant {
            name: "not isolated",
            what: "pull, on a lane that is not isolated: no rule has anything to do",
            role: VariantRole::NoiseFloor,
            run: |context| trial(context, Policy::Pull, LaneIsolation::Housekeeping),
        },
        RowVariant {
            name: "push",
            what: "a busy CPU is looked for when a timer is armed (Linux up to 6.8)",
            role: VariantRole::Before,
            run: |context| trial(context, Policy::Push, LaneIsolation::Isolated),
        },
        RowVariant {
            name: "pull",
            what: "a timer stays where it is armed; who expires it is decided when it is due",
            role: VariantRole::After,
            run: |context| trial(context, Policy::Pull, LaneIsolation::Isolated),
        },
    ],
    compares: &[Compare { figure: 0, better: Better::Lower }],
    cited: Some(Citation {
        question: Question::Placement,
        figures: &[
            CitedFigure { what: "a timer enqueued and dequeued, before", verbatim: "145ns plain v6" },
            CitedFigure { what: "the same, after", verbatim: "109ns v6 with patch queue" },
        ],
    }),
    scenario: Some(RowScenario {
        name: "enqueue.toml",
        text: include_str!("../../scenarios/enqueue.toml"),
        compares: &[ScenarioCompare::lower("arm and cancel, 8 CPUs", "pair_ns", "push/8", "pull/8")
            .in_unit("ns", 1.0)],
    }),
    ..PLAIN
};

const PAIRS: u32 = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaneIsolation {
    Housekeeping,
    Isolated,
}

pub(crate) fn trial(
    context: &TrialContext,
    policy: Policy,
    isolation: LaneIsolation,
) -> Result<TrialFigures, LabError> {
    let [busy, quiet] = context.cpus;
    let isolated: CpuSet =
        if isolation == LaneIsolation::Isolated { [quiet].into_iter().collect() } else { CpuSet::new() };
    let builder = Machine::builder()
        .policy(policy)
        .isolated(CpuSet::new())
        .nohz_full(isolated)
        .stall_after(Duration::MAX);
    let harness = LaneHarness::start(builder, context, &[(busy, LaneMode::Spins), (quiet, LaneMode::Parks)])?;
    let machine = harness.machine;
    let timer = Arc::new(machine.timer(tick(), |_| {}));
    let (span, result) = (context.span, Arc::new(Mutex::new(None)));
    let (sender, done) = channel();
    let stop = context.stop.clone();
    let (out, subject, slices) = (Arc::clone(&result), Arc::clone(&timer), context.slices.clone());
    let worker = machine.timer(tick().pinned(), move |_| {
        let begin = Instant::now();
        let mut looks = 0_u64;
        while begin.elapsed() < span && !stop.is_set() {
            let at = Nanos(machine.now().0 + 1_000_000_000);
            slices.around(machine, "1000 arms and cancels", None, || {
                for _ in 0..PAIRS {
                    let _ = subject.arm_at(at);
                    subject.cancel();
                }
            });
            looks += 1;
        }
        *lock(&out) = Some((begin.elapsed(), looks));
        let _ = sender.send(());
    });
    worker.arm_on(quiet, machine.now())?;
    let failed = || LabError::Trial("the isolated lane did not finish".to_owned());
    done.recv_timeout(span + Duration::from_secs(30)).map_err(|_| failed())?;
    let measured = lock(&result).take();
    let (took, looks) = measured.ok_or_else(failed)?;
    let metrics = machine.metrics();
    let elsewhere: u64 = metrics.cpus.iter().filter(|cpu| cpu.cpu != quiet).map(|cpu| cpu.bases.armed).sum();
    figures(policy, took, looks, elsewhere)
}

/// There were [`PAIRS`] to each of the `looks` at the clock; `elsewhere` is how many timers were armed on
/// other CPUs than the isolated lane's.
fn figures(policy: Policy, took: Duration, looks: u64, elsewhere: u64) -> Result<TrialFigures, LabError> {
    let pairs = looks * u64::from(PAIRS);
    if policy == Policy::Push && elsewhere < pairs {
        let what =
            format!("only {elsewhere} of {pairs} timers were armed on a busy CPU: the search did not run");
        return Err(LabError::Trial(what));
    }
    let per_pair = (pairs > 0).then(|| took.as_nanos() as f64 / pairs as f64);
    Ok(vec![per_pair, percent(elsewhere.min(pairs) as f64, pairs as f64)])
}

#[cfg(test)]
mod tests {
    use super::{Policy, figures};
    use std::time::Duration;

    /// Goal: the figures are of one pair and of all pairs; what else was armed elsewhere makes no more than
    /// all. Method: 2000 pairs in half a millisecond, by hand; none.
    #[test]
    fn figures_of_a_round() {
        let of = |policy, looks, elsewhere| {
            figures(policy, Duration::from_micros(500), looks, elsewhere).expect("the search ran")
        };
        assert_eq!(of(Policy::Pull, 2, 100), [250.0, 5.0].map(Some));
        assert_eq!(of(Policy::Push, 2, 2_000), [250.0, 100.0].map(Some));
        assert_eq!(of(Policy::Push, 2, 2_001), [250.0, 100.0].map(Some));
        assert_eq!(of(Policy::Pull, 0, 0), [None, None]);
    }

    /// Goal: what a search costs is no figure where it did not run. Method: one timer too few on the busy
    /// CPU.
    #[test]
    fn a_search_that_did_not_run_has_no_figures() {
        let error = figures(Policy::Push, Duration::from_micros(500), 2, 1_999).expect_err("one too few");
        let sentence = "only 1999 of 2000 timers were armed on a busy CPU: the search did not run";
        assert!(error.to_string().contains(sentence), "{error}");
    }
}
