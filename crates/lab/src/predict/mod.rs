//! The simulator held against this machine.
//!
//! The order is the point: costs are measured and frozen, then figures are predicted, then the same is
//! measured. Nothing flows back. A prediction that is off by more than [`TOLERATED`] says by how much, and
//! what of its own figures could be the reason.

mod cases;

use crate::cpus::{allowed_cpus, two_cpus};
use crate::error::LabError;
use crate::host::{self, LabHost};
use crate::measure::MUCH;
use crate::plan::{TrialContext, TrialFigures, percent};
use crate::report::{SCHEMA, number};
use crate::sync::StopFlag;
use cases::{CASES, FigureKind, PredictCase, PredictFigure};
use quietcore_core::CpuSet;
use quietcore_sim::{Cost, CostTable, Scenario, SimOptions, VariantOutcome};
use serde::Serialize;
use std::path::Path;
use std::time::Duration;

/// How far a prediction may be off, in percent.
const TOLERATED: f64 = 30.0;

/// What is predicted, and then measured.
#[derive(Clone, Debug, Serialize)]
pub struct PredictReport {
    /// Of this report: rises when a field changes its meaning or goes away.
    pub schema: u32,
    /// The version that ran.
    pub quietcore: &'static str,
    /// False after Ctrl-C.
    pub complete: bool,
    /// Where it ran.
    pub host: LabHost,
    /// Frozen before the first prediction.
    pub costs: CostTable,
    /// How far a prediction may be off.
    pub tolerated_percent: f64,
    /// How long each figure is measured in each round.
    pub span_ms: u64,
    /// In the order in which they are measured.
    pub predictions: Vec<Prediction>,
}

/// A figure, simulated and then measured.
#[derive(Clone, Debug, Serialize)]
pub struct Prediction {
    /// The case that it belongs to.
    pub question: &'static str,
    /// In a few words.
    pub what: &'static str,
    /// What it is counted in.
    pub unit: &'static str,
    /// Simulated.
    pub predicted: f64,
    /// The same with all costs halved.
    pub halved: f64,
    /// The same with all costs doubled.
    pub doubled: f64,
    /// `null` when it was not measured, or had no sample in some round.
    pub measured: Option<MeasuredFigure>,
}

/// What the machine did.
#[derive(Clone, Debug, Serialize)]
pub struct MeasuredFigure {
    /// Of the rounds.
    pub median: f64,
    /// In order.
    pub rounds: Vec<f64>,
    /// Share of all CPUs' time that others took meanwhile; `null` where the kernel does not say.
    pub others_percent: Option<f64>,
    /// Measured against predicted; `null` when 0 was predicted and something else measured.
    pub off_percent: Option<f64>,
    /// Whether it is within the tolerance.
    pub within: bool,
    /// Why it could be off; `null` when it is within.
    pub reason: Option<String>,
}

/// Predictions that can be measured: the costs are frozen, the CPUs chosen.
#[derive(Debug)]
pub struct Predictor {
    report: PredictReport,
    context: TrialContext,
}

impl Predictor {
    /// Predicts every figure from `costs` alone. Each will be measured for `span` in each round, on two of
    /// `cpus`; `None` is the first two that this process may use.
    ///
    /// # Errors
    ///
    /// [`LabError`] of the CPUs, or when the costs do not fit the scenarios.
    pub fn new(
        costs: CostTable,
        span: Duration,
        cpus: Option<&CpuSet>,
        stop: StopFlag,
    ) -> Result<Self, LabError> {
        let allowed = allowed_cpus()?;
        let context = TrialContext::new(span, two_cpus(cpus, &allowed)?, stop);
        let report = PredictReport::predict(LabHost::read(&allowed), costs, span)?;
        Ok(Self { report, context })
    }

    /// What was predicted.
    pub fn predictions(&self) -> &[Prediction] {
        &self.report.predictions
    }

    /// Measures every figure once in each of `rounds`, until the stop flag is set; `tell` hears which case
    /// and which round begins.
    ///
    /// # Errors
    ///
    /// The first [`LabError`] of a trial.
    pub fn measure(
        mut self,
        rounds: u32,
        tell: &mut dyn FnMut(&'static str, u32),
    ) -> Result<PredictReport, LabError> {
        for case in CASES {
            let (figures, others) = host::beside(|| measured(case, &self.context, rounds, tell));
            self.report.judge(case.name, &figures?, others);
        }
        self.report.complete = !self.context.stop.is_set();
        Ok(self.report)
    }
}

fn predicted(case: &PredictCase, costs: &CostTable) -> Result<Vec<Prediction>, LabError> {
    let (duration, machine) = (case.duration, (case.scenario)());
    let text = format!("seed = 1\nduration = \"{duration}\"\ncosts = \"costs.toml\"\n{machine}");
    let name = format!("{}.toml", case.name);
    let scenario = Scenario::parse(Path::new(&name), &text, &|_| Ok(costs.to_toml()))?;
    let options = SimOptions { sensitivity: true, hash: false, ..SimOptions::default() };
    let outcome = scenario.run(options, &mut |_| true, &mut |_| Ok(None)).map_err(LabError::Simulation)?;
    let variants = outcome.map(|outcome| outcome.variants).unwrap_or_default();
    let of = |figure: &PredictFigure| {
        let variant = variants.iter().find(|variant| variant.label == figure.label);
        let found = variant.and_then(|variant| prediction(case, figure, variant));
        let (scenario, variant) = (case.name, figure.label);
        found.ok_or(LabError::NoFigure { scenario, figure: figure.figure, variant })
    };
    case.figures.iter().map(of).collect()
}

fn prediction(case: &PredictCase, figure: &PredictFigure, variant: &VariantOutcome) -> Option<Prediction> {
    let predicted = variant.figures.number(figure.figure)? / figure.unit.1;
    let range = variant.sensitivity.get(figure.figure);
    let or = |value: Option<f64>| value.map_or(predicted, |value| value / figure.unit.1);
    Some(Prediction {
        question: case.name,
        what: figure.what,
        unit: figure.unit.0,
        predicted,
        halved: or(range.and_then(|range| range.halved)),
        doubled: or(range.and_then(|range| range.doubled)),
        measured: None,
    })
}

/// Figures by round; a round that was cut short does not count.
fn measured(
    case: &PredictCase,
    context: &TrialContext,
    rounds: u32,
    tell: &mut dyn FnMut(&'static str, u32),
) -> Result<Vec<TrialFigures>, LabError> {
    let mut all = Vec::new();
    for round in 1..=rounds {
        if context.stop.is_set() {
            break;
        }
        tell(case.name, round);
        let figures = (case.live)(context)?;
        if !context.stop.is_set() {
            all.push(figures);
        }
    }
    Ok(all)
}

impl PredictReport {
    /// Predicts every figure; nothing is measured.
    ///
    /// # Errors
    ///
    /// [`LabError`] when the costs do not fit the scenarios.
    pub fn predict(host: LabHost, costs: CostTable, span: Duration) -> Result<Self, LabError> {
        let mut predictions = Vec::new();
        for case in CASES {
            predictions.extend(predicted(case, &costs)?);
        }
        Ok(Self {
            schema: SCHEMA,
            quietcore: env!("CARGO_PKG_VERSION"),
            complete: true,
            host,
            costs,
            tolerated_percent: TOLERATED,
            span_ms: u64::try_from(span.as_millis()).unwrap_or(u64::MAX),
            predictions,
        })
    }

    /// Holds the predictions of `case` against figures by round, in their order; `others` is the share of all
    /// CPUs' time that others took meanwhile, in percent.
    pub fn judge(&mut self, case: &str, rounds: &[TrialFigures], others: Option<f64>) {
        let Some(figures) = CASES.iter().find(|one| one.name == case).map(|one| one.figures) else { return };
        let those = self.predictions.iter_mut().filter(|one| one.question == case);
        for (at, (one, figure)) in those.zip(figures).enumerate() {
            let values: Option<Vec<f64>> = rounds.iter().map(|figures| *figures.get(at)?).collect();
            let Some(values) = values else { continue };
            let mut sorted = values.clone();
            sorted.sort_by(f64::total_cmp);
            let Some(&median) = sorted.get(sorted.len() / 2) else { continue };
            let off_percent = if median == one.predicted {
                Some(0.0)
            } else {
                percent(median - one.predicted, one.predicted)
            };
            let within = off_percent.is_some_and(|off| off.abs() <= TOLERATED);
            let doubt = Doubt { prediction: one, figure, sorted: &sorted, others, costs: &self.costs };
            let reason = (!within).then(|| doubt.reason());
            one.measured = Some(MeasuredFigure {
                median,
                rounds: values,
                others_percent: others,
                off_percent,
                within,
                reason,
            });
        }
    }
}

/// A prediction that is off, and what could tell why.
struct Doubt<'a> {
    prediction: &'a Prediction,
    figure: &'a PredictFigure,
    /// The rounds; not empty.
    sorted: &'a [f64],
    others: Option<f64>,
    costs: &'a CostTable,
}

impl Doubt<'_> {
    /// From figures: the rounds, the costs, what is not modelled.
    fn reason(&self) -> String {
        let Self { prediction: one, figure, sorted, others, costs } = self;
        let (first, last) = (sorted[0], sorted[sorted.len() - 1]);
        let mut sentences = Vec::new();
        if (first..=last).contains(&one.predicted) {
            sentences.push(format!("the rounds went from {} to {}, past it", number(first), number(last)));
        }
        if let Some(percent) = others.filter(|percent| *percent >= MUCH) {
            sentences.push(format!("others took {} % of all CPU time meanwhile", number(percent)));
        }
        let (low, high) = (one.halved.min(one.doubled), one.halved.max(one.doubled));
        let median = sorted[sorted.len() / 2];
        if (low..=high).contains(&median) {
            let (low, high) = (number(low), number(high));
            sentences.push(format!("costs between half and twice those calibrated give {low} to {high}"));
        } else {
            sentences.push(format!(
                "not even half or twice the costs explain it ({} to {}); not simulated: {}",
                number(low),
                number(high),
                figure.not_modelled
            ));
        }
        if figure.kind == FigureKind::Throughput && median > 0.0 && one.predicted > 0.0 {
            let more = (1.0 / median - 1.0 / one.predicted) * 1e6;
            let cost = |cost| costs.get(cost).map_or(0.0, |value| value.ns / 1e3);
            let wake = cost(Cost::Kick) + cost(Cost::IdleExit);
            sentences.push(format!(
                "a request takes {} us {} than simulated, where waking a lane costs {} us",
                number(more.abs()),
                if more > 0.0 { "longer" } else { "less" },
                number(wake)
            ));
        }
        sentences.join("; ")
    }
}

#[cfg(test)]
mod tests;
