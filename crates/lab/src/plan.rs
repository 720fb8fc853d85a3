//! What a row of the lab is: a question, figures, variants, and what they are held against.
//!
//! Everything else (rounds, medians, verdicts, text, JSON, plots, the summary) follows from the plan.
//! Invariants: figures of a trial are in the order of [`RowPlan::figures`]; figures that others published are
//! shown beside ours and are parameters of nothing.

use crate::error::LabError;
use crate::slice::SliceLog;
use crate::sync::StopFlag;
use quietcore_core::{CpuId, CpuSet};
use quietcore_trace::Question;
use serde::{Serialize, Serializer};
use std::cell::RefCell;
use std::thread;
use std::time::{Duration, Instant};

/// Figures of a trial, in the order of [`RowPlan::figures`]; `None` where it has no sample.
pub type TrialFigures = Vec<Option<f64>>;

/// The longest sleep between two looks at the stop flag.
const LONGEST_SLEEP: Duration = Duration::from_millis(20);

/// What a variant is compared as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VariantRole {
    /// The same work with nothing in its way.
    NoiseFloor,
    /// The old rule.
    Before,
    /// The new rule.
    After,
}

impl VariantRole {
    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoiseFloor => "noise floor",
            Self::Before => "before",
            Self::After => "after",
        }
    }
}

/// A way to run an experiment.
#[derive(Debug)]
pub struct RowVariant {
    /// One or two words.
    pub name: &'static str,
    /// A sentence.
    pub what: &'static str,
    /// What it is compared as.
    pub role: VariantRole,
    /// Runs it once; figures in the order of [`RowPlan::figures`].
    pub run: fn(&TrialContext) -> Result<TrialFigures, LabError>,
}

/// Which way a figure should go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Less is better.
    Lower,
    /// More is better.
    Higher,
}

impl Better {
    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lower => "lower is better",
            Self::Higher => "higher is better",
        }
    }
}

/// A figure that is compared, before against after. The variants are the first of each role.
#[derive(Clone, Copy, Debug)]
pub struct Compare {
    /// A position in [`RowPlan::figures`].
    pub figure: usize,
    /// Which way it should go.
    pub better: Better,
}

/// A figure that must have one value exactly, in every round.
#[derive(Clone, Copy, Debug)]
pub struct ExactCheck {
    /// A variant's name.
    pub variant: &'static str,
    /// A position in [`RowPlan::figures`].
    pub figure: usize,
    /// The value.
    pub value: f64,
}

/// How long each variant runs in each round, unless a span is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrialSpans {
    pub(crate) full: Duration,
    pub(crate) quick: Duration,
}

/// What others published about the question that a row is part of, word for word.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Citation {
    /// Which of the five questions.
    #[serde(serialize_with = "by_name")]
    pub question: Question,
    /// Measured by others on other machines.
    pub figures: &'static [CitedFigure],
}

fn by_name<S: Serializer>(question: &Question, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(question.name())
}

/// A figure that others published.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CitedFigure {
    /// What it says.
    pub what: &'static str,
    /// As it is written there.
    pub verbatim: &'static str,
}

/// The scenario of the simulator that asks the same as a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowScenario {
    /// Its name in `scenarios/`.
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
    /// What is shown of it.
    pub(crate) compares: &'static [ScenarioCompare],
}

/// A figure of two variants of a scenario.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScenarioCompare {
    pub(crate) what: &'static str,
    /// A figure's name, as in `[expect]`.
    pub(crate) figure: &'static str,
    /// What it is shown in, and how many of the simulator's units are one of it.
    pub(crate) unit: (&'static str, f64),
    /// Two variants of the scenario.
    pub(crate) before: &'static str,
    pub(crate) after: &'static str,
    pub(crate) better: Better,
}

impl ScenarioCompare {
    /// A figure of which less is better; a time, in us, unless told otherwise.
    pub(crate) const fn lower(
        what: &'static str,
        figure: &'static str,
        before: &'static str,
        after: &'static str,
    ) -> Self {
        Self { what, figure, unit: ("us", 1e3), before, after, better: Better::Lower }
    }

    pub(crate) const fn in_unit(self, unit: &'static str, per_unit: f64) -> Self {
        Self { unit: (unit, per_unit), ..self }
    }
}

/// An experiment: what is measured, and how it is run.
#[derive(Debug)]
pub struct RowPlan {
    /// What a user calls it.
    pub name: &'static str,
    /// What it asks.
    pub question: &'static str,
    /// Names and units.
    pub figures: &'static [(&'static str, &'static str)],
    /// The noise floor first.
    pub variants: &'static [RowVariant],
    /// Figures that are compared.
    pub compares: &'static [Compare],
    /// Figures that must have one value.
    pub exact_checks: &'static [ExactCheck],
    /// What a reader of the figures must know, in sentences.
    pub notes: &'static [&'static str],
    pub(crate) spans: TrialSpans,
    /// What others published.
    pub cited: Option<Citation>,
    pub(crate) scenario: Option<RowScenario>,
}

/// What most rows need not say.
pub(crate) const PLAIN: RowPlan = RowPlan {
    name: "",
    question: "",
    figures: &[],
    variants: &[],
    compares: &[],
    exact_checks: &[],
    notes: &[],
    spans: TrialSpans { full: Duration::from_secs(2), quick: Duration::from_millis(600) },
    cited: None,
    scenario: None,
};

/// Whether everything is measured, or what gives a first impression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunScale {
    /// All loads.
    #[default]
    Full,
    /// Fewer loads.
    Quick,
}

/// Lines in another tool's format that a variant gave, of its last round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ToolOutput {
    /// Whose format.
    pub format: &'static str,
    /// Without line ends.
    pub lines: Vec<String>,
}

/// Where and how long a variant runs, and where it leaves what is no figure.
#[derive(Debug)]
pub struct TrialContext {
    /// How long.
    pub span: Duration,
    /// The CPUs of its lanes.
    pub cpus: [CpuId; 2],
    /// Which loads.
    pub scale: RunScale,
    /// Ends the trial early; its round then does not count.
    pub stop: StopFlag,
    /// Off unless a trace was asked for.
    pub slices: SliceLog,
    pub(crate) attachment: RefCell<Option<ToolOutput>>,
}

impl TrialContext {
    /// All loads, and no trace.
    pub fn new(span: Duration, cpus: [CpuId; 2], stop: StopFlag) -> Self {
        let (slices, attachment) = (SliceLog::default(), RefCell::new(None));
        Self { span, cpus, scale: RunScale::Full, stop, slices, attachment }
    }

    pub(crate) fn lanes(&self) -> CpuSet {
        self.cpus.into_iter().collect()
    }

    /// Sleeps for the span, or until the stop flag is set.
    pub(crate) fn wait(&self) {
        self.wait_for(self.span);
    }

    /// The same for another span.
    pub(crate) fn wait_for(&self, span: Duration) {
        let end = Instant::now() + span;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || self.stop.is_set() {
                return;
            }
            thread::sleep(left.min(LONGEST_SLEEP));
        }
    }

    /// Leaves lines in another tool's format.
    pub(crate) fn attach(&self, format: &'static str, lines: Vec<String>) {
        *self.attachment.borrow_mut() = Some(ToolOutput { format, lines });
    }
}

/// The value below which the share `quantile` of the sorted `values` lies; `None` of none.
pub(crate) fn quantile(values: &[u64], quantile: f64) -> Option<f64> {
    let rank = (values.len() as f64 * quantile).ceil() as usize;
    values.get(rank.clamp(1, values.len().max(1)) - 1).map(|value| *value as f64)
}

/// The same in us, of values in ns.
pub(crate) fn quantile_us(values: &[u64], share: f64) -> Option<f64> {
    quantile(values, share).map(|ns| ns / 1e3)
}

/// `part` of `of` in percent; of nothing there is no part.
pub(crate) fn percent(part: f64, of: f64) -> Option<f64> {
    (of > 0.0).then(|| 100.0 * part / of)
}

#[cfg(test)]
mod tests {
    use super::{TrialContext, percent, quantile, quantile_us};
    use crate::sync::StopFlag;
    use quietcore_core::CpuId;
    use std::time::{Duration, Instant};

    /// Goal: quantiles are values that occurred, by rank. Method: ten values, and none.
    #[test]
    fn quantiles_are_by_rank() {
        let values: Vec<u64> = (1..=10).collect();
        let found = [0.0, 0.5, 0.51, 0.99, 1.0].map(|share| quantile(&values, share));
        assert_eq!(found, [1.0, 5.0, 6.0, 10.0, 10.0].map(Some));
        assert_eq!(quantile_us(&[2_500], 0.5), Some(2.5));
    }

    /// Goal: what has no sample has no value, which would pass for the best one. Method: nothing at all.
    #[test]
    fn of_nothing_there_is_no_figure() {
        assert_eq!((quantile(&[], 0.5), quantile_us(&[], 0.99), percent(0.0, 0.0)), (None, None, None));
        assert_eq!((percent(0.0, 8.0), percent(2.0, 8.0)), (Some(0.0), Some(25.0)));
    }

    /// Goal: a trial lasts its span at least, and not at all once everything is to end. Method: a span of a
    /// few of its sleeps; one of an hour.
    #[test]
    fn a_trial_lasts_its_span_unless_it_is_stopped() {
        let cpus = [3, 1].map(|number| CpuId::new(number).expect("a CPU"));
        let (began, span) = (Instant::now(), Duration::from_millis(50));
        let mut context = TrialContext::new(span, cpus, StopFlag::default());
        context.wait();
        assert!(began.elapsed() >= span, "{:?}", began.elapsed());
        assert_eq!(context.lanes().to_string(), "1,3");
        context.stop.set();
        context.span = Duration::from_secs(3600);
        context.wait();
    }
}
