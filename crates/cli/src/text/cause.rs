//! Why things ran, in words.

use quietcore_explain::{CauseStep, Interruption};
use quietcore_trace::visible;

/// `armed on CPU 0 by cron`, and what had started that.
pub(crate) fn why(steps: &[CauseStep]) -> String {
    let step = |step: &CauseStep| {
        let function = step.function.as_deref();
        started(step.how, u64::from(step.cpu), (step.source, &step.name), function)
    };
    steps.iter().map(step).collect::<Vec<_>>().join(", ")
}

/// How something was started on a CPU, by what that was doing, and what for.
pub(crate) fn started(how: &str, cpu: u64, by: (&str, &str), function: Option<&str>) -> String {
    let place = match by {
        ("task", name) => format!("by {}", visible(name)),
        ("processor" | "device", "(unknown)") => "in an interrupt".to_owned(),
        ("softirq", "(unknown)") => "in a softirq".to_owned(),
        ("nmi", "(unknown)") => "in an NMI".to_owned(),
        ("processor" | "device", name) => format!("in interrupt {}", visible(name)),
        (source, name) => format!("in {source} {}", visible(name)),
    };
    let function = function.map_or(String::new(), |function| format!(" for {}", visible(function)));
    format!("{how} on CPU {cpu} {place}{function}")
}

/// The most frequent cause of a row, with how many of the row's it is.
pub(crate) fn main_cause(row: &Interruption) -> Option<String> {
    let cause = row.causes.first()?;
    Some(format!("{} of {} {}", cause.count, row.count, why(&cause.steps)))
}
