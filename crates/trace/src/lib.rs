//! Events of real Linux kernels, and the explanation of who disturbed which CPU.
//!
//! Four layers, each usable alone:
//!
//! - **reading**: [`open`] a recording, and [`TraceReader`] hands out typed [`Event`]s from the
//!   text of tracefs or of `trace-cmd report`, in constant memory;
//! - **explaining**: [`Explain`] takes these events and ends in a [`Report`]: which timer armed
//!   where ran on which isolated CPU, why, and what to change ([`Finding`]);
//! - **verifying**: [`Verify`] replays every wheel timer of a recording through the project's own wheel
//!   and says where the kernel and the wheel differ ([`Verification`]);
//! - **looking at a host**: [`Facts`] gathers what a machine says about itself below any root
//!   directory, and [`examine`] judges it without tracing anything; [`live`] records the running
//!   kernel in a tracing instance of its own.
//!
//! Nothing here writes a kernel setting, prints, or knows JSON.
//!
//! ```
//! use quietcore_trace::{Explain, Options, TraceReader};
//!
//! let text = "\
//!     swapper-0 [000] d..2. 1.000000: timer_start: timer=01 function=f expires=9 [timeout=1] cpu=0 idx=1 flags=
//!     spin-99   [001] ..s1. 1.008000: timer_expire_entry: timer=01 function=f now=10 baseclk=10
//! ";
//! let mut reader = TraceReader::new(text.as_bytes());
//! let mut explain = Explain::new(Options { isolated: "1".parse()?, ..Options::default() });
//! reader.read(u64::MAX, &mut |record| explain.take(record))?;
//! let report = explain.finish(reader.tally());
//! assert_eq!(report.foreign.pulled, Some(1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod annotation;
mod decode;
mod doctor;
mod event;
mod explain;
mod export;
mod field;
mod finding;
mod header;
mod host;
mod kernel;
mod line;
mod lines;
pub mod live;
mod names;
mod reader;
mod source;
mod table;
mod tally;
mod verify;

pub use decode::parse_line;
pub use doctor::{Examination, examine};
pub use event::{Event, HrtimerStart, Migration, MigrationStep, Record, SoftirqStep, TimerStart, WakeStep};
pub use explain::*;
pub use export::{PerfettoWriter, openmetrics};
pub use field::Malformed;
pub use finding::{Evidence, Finding, Severity};
pub use header::Header;
pub use host::Facts;
pub use kernel::{KernelRelease, TimerModel};
pub use line::{Context, Task};
pub use lines::LINE_BYTES_MAX;
pub use reader::{Progress, TraceReader};
pub use source::{OpenError, open, open_bytes};
pub use table::IDENTITIES_MAX;
pub use tally::{MalformedLine, ReadError, Tally};
pub use verify::{
    CancelCounts, Check, Classes, ExpiryClasses, ExpiryCounts, HierarchyCounts, Mismatch, Notes, PENDING_MAX,
    RunCounts, Verification, Verify,
};
