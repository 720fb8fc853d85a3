//! A run of the lab: rows one after the other, each with its rounds and then its scenario.

use crate::cpus::{allowed_cpus, two_cpus};
use crate::error::LabError;
use crate::host::{self, LabHost};
use crate::measure::RowRounds;
use crate::plan::{RowPlan, RunScale, TrialContext};
use crate::report::{LabReport, RowReport, SCHEMA};
use crate::simulated;
use crate::slice::{SliceLog, VariantSlices};
use crate::sync::StopFlag;
use quietcore_core::{CpuId, CpuSet};
use std::time::Duration;

/// What is run, and how.
#[derive(Clone, Debug, Default)]
pub struct LabOptions {
    /// A first impression: fewer and shorter rounds, fewer loads.
    pub scale: RunScale,
    /// How long each variant runs in each round; `None` leaves it to the row.
    pub span: Option<Duration>,
    /// Rounds, in which each variant runs once; `None` is 5, or 3 of a quick run.
    pub rounds: Option<u32>,
    /// Two CPUs for the lanes; `None` is the first two that this process may use.
    pub cpus: Option<CpuSet>,
    /// Whether rows go without their scenario.
    pub no_scenario: bool,
    /// Whether what runs in the last rounds is taken down, which costs time.
    pub trace: bool,
}

impl LabOptions {
    fn context(&self, plan: &RowPlan, cpus: [CpuId; 2], stop: &StopFlag) -> TrialContext {
        let usual = if self.scale == RunScale::Quick { plan.spans.quick } else { plan.spans.full };
        let mut context = TrialContext::new(self.span.unwrap_or(usual), cpus, stop.clone());
        context.scale = self.scale;
        if self.trace {
            context.slices = SliceLog::on();
        }
        context
    }

    fn rounds(&self) -> u32 {
        self.rounds.unwrap_or(if self.scale == RunScale::Quick { 3 } else { 5 })
    }

    /// What runs a row again as it was run now.
    fn command(&self, plan: &RowPlan) -> String {
        let mut command = format!("quietcore lab {}", plan.name);
        if self.scale == RunScale::Quick {
            command.push_str(" --quick");
        }
        if let Some(span) = self.span {
            command.push_str(&format!(" --span {}ms", span.as_millis()));
        }
        if let Some(rounds) = self.rounds {
            command.push_str(&format!(" --rounds {rounds}"));
        }
        if let Some(cpus) = &self.cpus {
            command.push_str(&format!(" --cpus {cpus}"));
        }
        command
    }
}

/// How far a run is.
#[derive(Clone, Copy, Debug)]
pub enum LabProgress<'a> {
    /// A row begins.
    Row {
        /// Its name.
        name: &'a str,
        /// Its place among all rows of this run, from 1.
        number: usize,
        /// How many there are.
        of: usize,
        /// How long its rounds take.
        about: Duration,
    },
    /// A variant begins in a round.
    Round {
        /// The row's name.
        row: &'a str,
        /// From 1.
        round: u32,
        /// How many there are.
        of: u32,
        /// The variant's name.
        variant: &'a str,
    },
    /// The simulator is at work; said again and again.
    Simulating {
        /// The row's name.
        row: &'a str,
        /// The scenario's name.
        scenario: &'a str,
    },
    /// Rounds or the simulation are over.
    Done,
}

/// Runs `plans`, or those that come before the stop flag is set, which makes the report incomplete.
/// `tell` hears how far it is.
///
/// # Errors
///
/// The first [`LabError`] of a row.
pub fn run(
    plans: &[&'static RowPlan],
    options: &LabOptions,
    stop: &StopFlag,
    tell: &mut dyn FnMut(LabProgress<'_>),
) -> Result<(LabReport, Vec<VariantSlices>), LabError> {
    let allowed = allowed_cpus()?;
    let cpus = two_cpus(options.cpus.as_ref(), &allowed)?;
    let mut report = LabReport {
        schema: SCHEMA,
        quietcore: env!("CARGO_PKG_VERSION"),
        complete: true,
        quick: options.scale == RunScale::Quick,
        host: LabHost::read(&allowed),
        rows: Vec::new(),
    };
    let mut slices = Vec::new();
    for (number, plan) in (1..).zip(plans) {
        let context = options.context(plan, cpus, stop);
        let trials = options.rounds() * u32::try_from(plan.variants.len()).unwrap_or(u32::MAX);
        let (about, of) = (context.span * trials, plans.len());
        tell(LabProgress::Row { name: plan.name, number, of, about });
        report.rows.extend(row(plan, options, &context, &mut slices, tell)?);
        if stop.is_set() {
            report.complete = false;
            break;
        }
    }
    Ok((report, slices))
}

/// `None` when not even one round was measured.
fn row(
    plan: &'static RowPlan,
    options: &LabOptions,
    context: &TrialContext,
    slices: &mut Vec<VariantSlices>,
    tell: &mut dyn FnMut(LabProgress<'_>),
) -> Result<Option<RowReport>, LabError> {
    let of = options.rounds();
    let mut told = |round: u32, variant: &str| {
        tell(LabProgress::Round { row: plan.name, round, of, variant });
    };
    let (rounds, others) = host::beside(|| RowRounds::measure(plan, context, of, &mut told));
    tell(LabProgress::Done);
    let mut rounds = rounds?;
    slices.append(&mut rounds.slices);
    if rounds.count() == 0 {
        return Ok(None);
    }
    let mut row = rounds.row(plan, context, options.command(plan));
    row.beside(others);
    if let (Some(scenario), true) = (&plan.scenario, !options.no_scenario) {
        let mut go_on = || {
            tell(LabProgress::Simulating { row: plan.name, scenario: scenario.name });
            !context.stop.is_set()
        };
        row.simulated = simulated::run(scenario, &mut go_on)?;
        tell(LabProgress::Done);
    }
    Ok(Some(row))
}

#[cfg(test)]
mod tests;
