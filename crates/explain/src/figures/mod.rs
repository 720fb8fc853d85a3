//! The explanation: who disturbed which CPU, armed where, why it ran there, what to change.
//!
//! [`Explain`] takes events one by one in the order of the input and keeps counts, never events:
//! its memory is bounded by [`Options::identities_max`] whatever the input. The isolated set is
//! constant per run. What a count means is defined at its field in [`Report`]; what it suggests
//! to change is in `findings.rs`.

mod count;
mod explain;
mod findings;
mod hierarchy;
mod hrtimer;
mod interrupts;
mod report;
mod summary;
mod wheel;

pub use explain::{Explain, Options};
pub use report::{
    CountByName, CountByNumber, Disturbance, Example, Groups, Hrtimers, IsolatedCpu,
    Malformed as MalformedLines, PingPong, QdiscWatchdog, Quantiles, Remote, Report, RtWakeups, Softirqs,
    Timers,
};
