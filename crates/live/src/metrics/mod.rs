//! What a machine counts, always: per CPU what was armed, cancelled and run, where, and how late.
//!
//! ```text
//! snapshot.rs   the figures, and taking them    histogram.rs    how late timers were
//! lanes.rs      a lane's state                  openmetrics.rs  the snapshot as text
//! sync.rs       the counters
//! ```

mod histogram;
mod lanes;
mod openmetrics;
mod snapshot;
mod sync;

pub use crate::words::lock::{FutexLock, LockStatistics};
pub use histogram::Histogram;
pub use lanes::{LaneMetrics, LaneState};
pub use quietcore_core::Counters;
pub use snapshot::{CpuMetrics, Metrics};
pub(crate) use sync::MetricWords;
