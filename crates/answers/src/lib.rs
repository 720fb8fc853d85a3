//! What the command and the Python module ask of an input that is named: the same questions, the same
//! sentences, without argv and without printing.
//!
//! - **Inputs**: [`open`] opens a recording, [`bundled_recording`] has those of the program (`@NAME`),
//!   [`read_scenario`] and [`parsed_scenario`] do the same for scenarios.
//! - **Questions**: [`explain`], [`verify`], [`whatif`] and [`diff`] read a recording once (or twice) and
//!   end in what the JSON of the verb of this name holds.
//! - **Sweeps**: a [`Sweep`] is a scenario with each value of a grid and each seed, in an order that is
//!   always the same; [`Sweep::run`] runs it on several threads.
//!
//! Invariant: reading ends early only where the [`ReadWatch`] says so. Deliberately absent: arguments, text,
//! files that are written.
//!
//! ```
//! use quietcore_answers::{ExplainRequest, explain};
//!
//! let report = explain(&ExplainRequest::new("@g612-c16-iso"), &mut |_| true)?;
//! assert_eq!(report.foreign.total, Some(74));
//! # Ok::<(), quietcore_answers::AnswerError>(())
//! ```

#![forbid(unsafe_code)]

mod bundled;
mod diff;
mod error;
mod explain;
mod input;
mod reader;
mod recordings;
mod sweep;
mod verify;
mod whatif;
mod whatif_comparison;

pub use bundled::{
    BundledScenario, SCENARIOS, bundled_recording, name_of, parsed_scenario, read_beside, read_scenario,
};
pub use diff::{ComparedFigure, ComparedInput, Comparison, DiffRequest, diff};
pub use error::AnswerError;
pub use explain::{
    ExplainRequest, explain, explain_source, kernel_option, left_out, options_of_file, recorded_options,
};
pub use input::read as read_text;
pub use reader::{ReadSoFar, ReadWatch, open, open_with, read_all, refuse_empty, source};
pub use recordings::{Bundled, ISOLATION};
pub use sweep::{RUNS_MAX, Sweep, SweepKey, SweepRequest, SweepRun, SweepSoFar};
pub use verify::{VerifyEnd, verify};
pub use whatif::{WhatifRequest, WhatifRun, whatif};
pub use whatif_comparison::{RecordedKernel, WhatifComparison};
