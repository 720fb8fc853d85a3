//! Isolation: the host's masks as a source of a machine's, and what a change at run time reports.
//!
//! ```text
//! host.rs     the three masks of a host         watch.rs     following them while a machine runs
//! cpusets.rs  both versions of control groups   builder.rs   how a machine takes them
//! files.rs    bounded reading                   problems.rs  what could not be read
//! ```

mod builder;
mod change;
mod cpusets;
mod files;
mod host;
mod problems;
#[cfg(test)]
mod tests;
mod watch;

pub use crate::lane::IsolateError;
pub use change::IsolationChange;
pub(crate) use host::FromHost;
pub use host::HostIsolation;
pub use problems::IsolationProblem;
pub use quietcore_core::IsolationReport;
pub use quietcore_core::place::Exclusion;
pub use quietcore_core::softirq::TimerRaise;
pub use watch::{HostWatch, HostWatchGuard};
