//! Why things ran, in words.

use quietcore_explain::{CauseStep, Interruption};
use quietcore_trace::visible;

/// `armed on CPU 0 by cron`, and what had started that.
pub(crate) fn why(steps: &[CauseStep]) -> String {
    let step = |step: &CauseStep| {
        let place = match (step.source, step.name.as_str()) {
            ("task", name) => format!("by {}", visible(name)),
            ("processor" | "device", "(unknown)") => "in an interrupt".to_owned(),
            ("softirq", "(unknown)") => "in a softirq".to_owned(),
            ("nmi", "(unknown)") => "in an NMI".to_owned(),
            ("processor" | "device", name) => format!("in interrupt {}", visible(name)),
            (source, name) => format!("in {source} {}", visible(name)),
        };
        let function = step.function.as_ref();
        let function = function.map_or(String::new(), |function| format!(" for {}", visible(function)));
        format!("{} on CPU {} {place}{function}", step.how, step.cpu)
    };
    steps.iter().map(step).collect::<Vec<_>>().join(", ")
}

/// The most frequent cause of a row, with how many of the row's it is.
pub(crate) fn main_cause(row: &Interruption) -> Option<String> {
    let cause = row.causes.first()?;
    Some(format!("{} of {} {}", cause.count, row.count, why(&cause.steps)))
}
