//! `quietcore sim --runtimes`: random runtimes, and the one that breaks a promise told from its seed.

use crate::error::CliError;
use crate::outcome::CommandOutcome;
use crate::output;
use crate::progress::Display;
use crate::runtime_failure::RuntimeFailure;
use crate::signals::SignalFlag;
use crate::text::{self, Page};
use quietcore_sim::{RuntimesOutcome, run_runtimes};
use serde::Serialize;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// What is printed as JSON.
#[derive(Serialize)]
struct Report<'a> {
    /// Always true: no figure was measured.
    simulated: bool,
    first_seed: u64,
    #[serde(flatten)]
    outcome: &'a RuntimesOutcome,
    /// What broke, if something did.
    failure: Option<&'a RuntimeFailure>,
}

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RuntimesRequest {
    pub(crate) count: u64,
    pub(crate) first_seed: u64,
    pub(crate) json: bool,
    pub(crate) exit_zero: bool,
}

impl RuntimesRequest {
    fn outcome(&self, failure: Option<&RuntimeFailure>) -> CommandOutcome {
        if failure.is_none() || self.exit_zero { CommandOutcome::Fine } else { CommandOutcome::Found }
    }

    fn how_far(&self, begun: u64) -> String {
        format!("{begun} of {} runtimes", self.count)
    }
}

pub(crate) fn run(request: RuntimesRequest) -> Result<CommandOutcome, CliError> {
    let RuntimesRequest { count, first_seed, json, .. } = request;
    let interrupt = SignalFlag::install()?;
    let display = Mutex::new(Display::new());
    let show = |text: &dyn Fn() -> String| {
        display.lock().unwrap_or_else(PoisonError::into_inner).show(text);
    };
    let goes_on = |begun: u64| {
        show(&|| request.how_far(begun));
        !interrupt.arrived()
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let outcome = run_runtimes(first_seed..first_seed.saturating_add(count), threads, goes_on);
    show(&|| "looking for the smallest that fails".to_owned());
    let failure = outcome.failed.and_then(RuntimeFailure::of);
    display.into_inner().unwrap_or_else(PoisonError::into_inner).clear();
    if interrupt.arrived() {
        return Ok(CommandOutcome::Interrupted);
    }
    let failure = failure.as_ref();
    if json {
        output::print_json(&Report { simulated: true, first_seed, outcome: &outcome, failure })?;
    } else {
        Page::print(|page| text::runtimes(page, first_seed, &outcome, failure))?;
    }
    Ok(request.outcome(failure))
}

#[cfg(test)]
mod tests {
    use super::RuntimesRequest;
    use crate::outcome::CommandOutcome::{Fine, Found};
    use crate::runtime_failure::RuntimeFailure;
    use quietcore_sim::RuntimePlan;

    /// Goal: the exit code says whether a promise was broken, unless it was asked for 0. Method: each case.
    #[test]
    fn a_broken_promise_is_found() {
        let failure = RuntimeFailure {
            plan: RuntimePlan::draw(1),
            what: String::new(),
            at_ns: 0,
            smallest: RuntimePlan::draw(1),
            smallest_what: String::new(),
            events: vec![],
        };
        for (failure, exit_zero, expected) in [
            (None, false, Fine),
            (None, true, Fine),
            (Some(&failure), false, Found),
            (Some(&failure), true, Fine),
        ] {
            let request = RuntimesRequest { count: 1, first_seed: 1, json: false, exit_zero };
            assert_eq!(request.outcome(failure), expected, "{}, {exit_zero}", failure.is_some());
        }
    }

    /// Goal: a long run says how far it is.
    #[test]
    fn runtimes_say_how_far_they_are() {
        let request = RuntimesRequest { count: 50, first_seed: 3, json: false, exit_zero: false };
        assert_eq!(request.how_far(20), "20 of 50 runtimes");
    }
}
