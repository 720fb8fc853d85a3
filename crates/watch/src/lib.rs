//! Counts, inside the Linux kernel, what takes watched CPUs away: interrupts, softirqs, callbacks of timers,
//! work items and tasks, each with who started it.
//!
//! A program in the kernel counts in memory that this process maps; nothing is sent, no CPU is woken, and
//! reading costs no call. So it can run for months. A thing counts for the time in which nothing else was on
//! top of it, as in `quietcore explain`.
//!
//! Linux 5.17 or later with descriptions of its types (`CONFIG_DEBUG_INFO_BTF`), which all distributions
//! have; CAP_BPF and CAP_PERFMON, or root, to begin.

mod cgroups;
mod error;
mod layout;
mod memory;
mod openmetrics;
mod program;
mod report;
mod rights;
mod rows;
mod series;
mod symbols;
mod watch;

pub use cgroups::Owner;
pub use error::WatchError;
pub use layout::BUCKETS;
pub use openmetrics::openmetrics;
pub use program::LeftOut;
pub use report::{Losses, WatchReport, WatchedCause, WatchedRow};
pub use series::{OTHER, SeriesCounts, SeriesLabels, SeriesTable};
pub use watch::{Watch, WatchRequest};
