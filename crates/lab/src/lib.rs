//! Experiments on the quietcore runtime itself, on the threads of this machine.
//!
//! An experiment (a *row*) is a few variants that run one after the other, again and again, so that what else
//! the machine does falls on all of them. Reported are medians of the rounds, the smallest and the largest
//! beside them; one variant is the noise floor: the same work with nothing in its way. A figure without that
//! floor says nothing about this machine. Beside it stand, never mixed in, figures that others published and
//! what the simulator says.
//!
//! [`run`] runs rows of [`ROWS`], [`Predictor`] holds the simulator against this machine, [`calibrate`]
//! measures what things cost for the simulator. Nothing is printed, no argument is parsed: `quietcore lab`
//! does that.
//!
//! ```text
//! rows/          the experiments                  plan.rs      what a row is
//! harness.rs tasks.rs gaps.rs slice.rs            what rows are made of
//! measure.rs     rounds, medians, verdicts        simulated.rs the scenario beside a row
//! session.rs     rows one after the other         report.rs    what the JSON has
//! html/          for a browser, with plots        perfetto.rs  what ran where
//! predict/       predicted, then measured         calibrate/   costs of this machine
//! ```
#![forbid(unsafe_code)]

mod calibrate;
mod cpus;
mod error;
mod gaps;
mod harness;
mod host;
mod html;
mod measure;
mod observe;
mod perfetto;
mod plan;
mod predict;
mod report;
mod rows;
mod session;
mod simulated;
mod slice;
mod sync;
mod tasks;

pub use calibrate::{Calibration, calibrate};
pub use cpus::{allowed_cpus, two_cpus};
pub use error::LabError;
pub use host::LabHost;
pub use html::page as html_page;
pub use measure::RowRounds;
pub use perfetto::perfetto;
pub use plan::{
    Better, Citation, CitedFigure, Compare, ExactCheck, RowPlan, RowVariant, RunScale, ToolOutput,
    TrialContext, TrialFigures, VariantRole,
};
pub use predict::{MeasuredFigure, PredictReport, Prediction, Predictor};
pub use report::{
    ComparisonVerdict, ExactCheckReport, FigureComparison, FigureReport, LabReport, RowReport, SCHEMA,
    ScenarioComparison, ScenarioReport, ScenarioValue, VariantReport, maybe, number,
};
pub use rows::ROWS;
pub use session::{LabOptions, LabProgress, run};
pub use slice::{SLICES_MAX, Slice, SliceKind, SliceLog, VariantSlices};
pub use sync::StopFlag;

/// The example of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
