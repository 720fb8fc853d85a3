//! Who disturbed which CPU of a Linux machine, armed where, why it ran there, and what to change.
//!
//! - **Explaining a recording**: [`Explain`] takes the events of a `quietcore_trace::TraceReader` and ends in
//!   an [`Explanation`]: figures, and the [`Finding`]s that follow from them.
//! - **Looking at a host**: [`Facts`] gathers what a machine says about itself below any root directory, and
//!   [`examine`] judges it without tracing anything.
//! - **Handing it on**: [`openmetrics`] writes a report for monitoring systems; reports serialize, too.
//!
//! Nothing here writes a kernel setting, prints, or opens a recording.
//!
//! ```
//! use quietcore_explain::{Explain, ExplainOptions};
//! use quietcore_trace::TraceReader;
//!
//! let text = "\
//!     swapper-0 [000] d..2. 1.000000: timer_start: timer=01 function=f expires=9 [timeout=1] cpu=0 idx=1 flags=
//!     spin-99   [001] ..s1. 1.008000: timer_expire_entry: timer=01 function=f now=10 baseclk=10
//! ";
//! let mut reader = TraceReader::new(text.as_bytes());
//! let mut explain = Explain::new(ExplainOptions { isolated: "1".parse()?, ..ExplainOptions::default() });
//! reader.read(u64::MAX, &mut |record| explain.take(record))?;
//! let report = explain.finish(reader.tally());
//! assert_eq!(report.foreign.pulled, Some(1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod doctor;
mod export;
mod figures;
mod finding;
mod findings;
mod host;
mod keep_awake;
mod named_figures;
mod threshold;

pub use doctor::{
    CgroupSummary, Examination, FrequencySummary, HostSummary, IrqbalanceSummary, IsolationSummary,
    NodeSummary, PartitionSummary, QuotaSummary, examine,
};
pub use export::openmetrics;
pub use figures::*;
pub use finding::{Evidence, Finding, Severity};
pub use host::{CopiedEntry, CopyTooLarge, Facts, HostCopy};
pub use keep_awake::{KeepAwakePlan, KeepAwakeRefusal, plan_keep_awake};
pub use named_figures::{FigureUnit, figure_names, named_figures};
pub use threshold::{Crossing, Threshold};
