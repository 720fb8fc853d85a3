//! What a row of the lab is: a question, figures, variants, and what they are held against.
//!
//! A row is one file with a `PLAN`, its `mod` line, and a line in [`ROWS`](super::ROWS). Everything else
//! (rounds, medians, verdicts, text, JSON, plots, the summary) follows from the plan. Invariants: figures of
//! a trial are in the order of [`Plan::figures`]; a seed's figures are shown beside ours and are parameters
//! of nothing.

use super::trace::Ran;
use crate::error::CliError;
use crate::signals::Interrupt;
use quietcore_core::CpuSet;
use quietcore_live::{CpuId, StartError};
use serde::Serialize;
use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A figure that a trial did not measure: a load that the quick run leaves out.
pub(super) const NOT_MEASURED: f64 = f64::NAN;

/// The longest sleep between two looks for Ctrl-C.
const SLICE: Duration = Duration::from_millis(20);

/// What a variant is compared as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Role {
    NoiseFloor,
    Before,
    After,
}

/// A way to run an experiment.
pub(super) struct Variant {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    pub(super) role: Role,
    /// Runs it once; figures in the order of `Plan::figures`.
    pub(super) run: fn(&Bench) -> Result<Vec<f64>, CliError>,
}

/// Which way a figure should go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Better {
    Lower,
    Higher,
}

/// Figures that are compared, before against after. The variants are the first of each role.
#[derive(Clone, Copy, Debug)]
pub(super) struct Compare {
    /// A position in `Plan::figures`.
    pub(super) figure: usize,
    pub(super) better: Better,
}

/// A figure that must have one value exactly, in every round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Must {
    /// A variant's name.
    pub(super) variant: &'static str,
    /// A position in `Plan::figures`.
    pub(super) figure: usize,
    pub(super) value: f64,
}

/// How long each variant runs in each round, unless somebody says otherwise.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spans {
    pub(super) full: Duration,
    pub(super) quick: Duration,
}

/// A mail that the row is about, and its figures as they are written there.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Seed {
    pub(super) id: &'static str,
    /// Shown beside ours, measured by others on other machines.
    pub(super) figures: &'static [SeedFigure],
}

/// One figure of a mail.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct SeedFigure {
    pub(super) what: &'static str,
    pub(super) verbatim: &'static str,
}

/// The scenario of the simulator that asks the same.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sim {
    /// Its name in `scenarios/`.
    pub(super) scenario: &'static str,
    pub(super) compares: &'static [SimCompare],
}

/// A figure of two variants of a scenario.
#[derive(Clone, Copy, Debug)]
pub(super) struct SimCompare {
    pub(super) what: &'static str,
    /// A figure's name, as in `[expect]`.
    pub(super) figure: &'static str,
    /// What it is shown in, and how many of the simulator's units are one of it.
    pub(super) unit: (&'static str, f64),
    pub(super) before: &'static str,
    pub(super) after: &'static str,
    pub(super) better: Better,
}

/// An experiment: what is measured, and how it is run.
pub(super) struct Plan {
    pub(super) name: &'static str,
    pub(super) question: &'static str,
    /// Names and units.
    pub(super) figures: &'static [(&'static str, &'static str)],
    pub(super) variants: &'static [Variant],
    pub(super) compares: &'static [Compare],
    pub(super) musts: &'static [Must],
    /// What a reader of the figures must know, in sentences.
    pub(super) notes: &'static [&'static str],
    pub(super) spans: Spans,
    pub(super) seed: Option<Seed>,
    pub(super) sim: Option<Sim>,
}

/// What most rows need not say.
pub(super) const PLAIN: Plan = Plan {
    name: "",
    question: "",
    figures: &[],
    variants: &[],
    compares: &[],
    musts: &[],
    notes: &[],
    spans: Spans { full: Duration::from_secs(2), quick: Duration::from_millis(600) },
    seed: None,
    sim: None,
};

/// Whether everything is measured, or what gives a first impression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    Full,
    Quick,
}

/// Lines in another tool's format that a variant gave, of its last round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Attachment {
    /// Whose format.
    pub(super) format: &'static str,
    pub(super) lines: Vec<String>,
}

/// Where and how long a variant runs, and where it leaves what is no figure.
pub(super) struct Bench {
    pub(super) span: Duration,
    pub(super) cpus: [CpuId; 2],
    pub(super) scale: Scale,
    pub(super) interrupt: Interrupt,
    /// `None` unless a trace was asked for.
    pub(super) trace: Option<Arc<Mutex<Vec<Ran>>>>,
    pub(super) attachment: RefCell<Option<Attachment>>,
}

impl Bench {
    pub(super) fn new(span: Duration, cpus: [CpuId; 2], interrupt: &Interrupt) -> Self {
        let attachment = RefCell::new(None);
        Self { span, cpus, scale: Scale::Full, interrupt: interrupt.clone(), trace: None, attachment }
    }

    pub(super) fn lanes(&self) -> CpuSet {
        self.cpus.into_iter().collect()
    }

    /// Sleeps for the span. After Ctrl-C it returns early, and the round does not count.
    pub(super) fn wait(&self) {
        self.wait_for(self.span);
    }

    /// The same for another span.
    pub(super) fn wait_for(&self, span: Duration) {
        let end = Instant::now() + span;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || self.interrupt.arrived() {
                return;
            }
            thread::sleep(left.min(SLICE));
        }
    }

    /// Leaves lines in another tool's format.
    pub(super) fn attach(&self, format: &'static str, lines: Vec<String>) {
        *self.attachment.borrow_mut() = Some(Attachment { format, lines });
    }

    /// Forgets what earlier rounds left, so that a trace is of one round.
    pub(super) fn begin_trial(&self) {
        *self.attachment.borrow_mut() = None;
        if let Some(trace) = &self.trace {
            trace.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }
}

pub(super) fn cannot_start(error: StartError) -> CliError {
    CliError::Live(format!("cannot start the runtime: {error}"))
}

/// The value below which the share `quantile` of the sorted `values` lies; 0 of none.
pub(super) fn quantile(values: &[u64], quantile: f64) -> f64 {
    let rank = (values.len() as f64 * quantile).ceil() as usize;
    values.get(rank.clamp(1, values.len().max(1)) - 1).map_or(0.0, |value| *value as f64)
}

#[cfg(test)]
mod tests {
    use super::quantile;

    /// Goal: quantiles are values that occurred, by rank. Method: ten values, and none.
    #[test]
    fn quantiles_are_by_rank() {
        let values: Vec<u64> = (1..=10).collect();
        let found = [0.0, 0.5, 0.51, 0.99, 1.0].map(|share| quantile(&values, share));
        assert_eq!(found, [1.0, 5.0, 6.0, 10.0, 10.0]);
        assert_eq!(quantile(&[], 0.5), 0.0);
    }
}
