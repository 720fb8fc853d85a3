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
#[derive(Clone, Copy, Debug)]
pub(crate) struct RuntimesRequest {
    pub(crate) count: u64,
    pub(crate) first_seed: u64,
    pub(crate) json: bool,
    pub(crate) exit_zero: bool,
}

pub(crate) fn run(request: RuntimesRequest) -> Result<CommandOutcome, CliError> {
    let RuntimesRequest { count, first_seed, json, exit_zero } = request;
    let interrupt = SignalFlag::install()?;
    let display = Mutex::new(Display::new());
    let show = |text: &dyn Fn() -> String| {
        display.lock().unwrap_or_else(PoisonError::into_inner).show(text);
    };
    let goes_on = |begun: u64| {
        show(&|| format!("{begun} of {count} runtimes"));
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
    Ok(if failure.is_none() || exit_zero { CommandOutcome::Fine } else { CommandOutcome::Found })
}
