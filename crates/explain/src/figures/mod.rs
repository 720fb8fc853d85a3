//! The explanation: who disturbed which CPU, armed where, why it ran there, what to change.
//!
//! [`Explain`] takes events one by one in the order of the input and keeps counts, never events:
//! its memory is bounded by [`ExplainOptions::identities_max`] whatever the input. The isolated set is
//! constant per run. What a count means is defined at its field in [`Explanation`]; what it suggests
//! to change is in `findings`.

mod count;
mod explain;
mod hierarchy;
mod hrtimer;
mod idle;
mod interruptions;
mod interrupts;
mod kernel_threads;
mod noise;
mod report;
mod side;
mod summary;
mod switches;
mod timers;
mod took;

pub use explain::{Explain, ExplainOptions};
pub use interruptions::{Gap, RecordedMoment};
pub use report::{
    Cause, CauseStep, CountByName, CountByNumber, DelayQuantiles, Disturbance, ExampleExpiry, Explanation,
    HierarchyGroups, HrtimerTotals, IdleResidency, Interruption, IsolatedCpu, MeasuredNoise, MomentReport,
    NearSpan, PingPong, RemoteExpiries, RtWakeups, SoftirqTotals, TimelineReport, TimerTotals, TookSpans,
    UnreadableLines, WatchdogTotals,
};
pub use side::TimerSide;
