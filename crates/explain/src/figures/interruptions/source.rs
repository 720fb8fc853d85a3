//! The kinds of things that take a CPU away from its tasks.

use quietcore_trace::DisturbanceSource;

/// What tells one thing from the others of its CPU: its source, and the number of an interrupt, a vector, a
/// task's id, or a name's number.
pub(super) type ThingKey = (DisturbanceSource, u64);

/// The softirqs' names, by vector.
pub(super) const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// The name of a softirq.
pub(super) fn softirq(vector: u8) -> &'static [u8] {
    SOFTIRQS.get(usize::from(vector)).copied().unwrap_or("(unknown)").as_bytes()
}
