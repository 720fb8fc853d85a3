//! What the Rust programs in `src/bin` share: each starts one runtime with two workers and runs one measure.
//!
//! - `load`: the measure and its sizes, from the command line;
//! - `runtime`: what a runtime must offer to be measured;
//! - `pairs`: arm and cancel, cancel from elsewhere, move, expire, on threads of the runtime or not;
//! - `tasks`: tasks that sleep, beside others that block, or alone;
//! - `output`: one JSON object per line, read by the benchmark; `sync`: what threads count together.
//!
//! Programs in other languages (`../c`, `../go`, `../java`) take the same arguments and print the same lines.
//! Deliberately absent: percentiles, CPU time and wake-ups, which the benchmark takes from outside, for all
//! languages alike.

pub mod load;
pub mod output;
pub mod pairs;
pub mod runtime;
pub mod sync;
pub mod tasks;

use load::{Load, Measure};
use runtime::Runtime;
use std::process::ExitCode;

/// The whole of a program: starts the runtime `R` and measures what the command line asks for.
pub fn run<R: Runtime>() -> ExitCode {
    let load = match Load::from_arguments() {
        Ok(load) => load,
        Err(reason) => {
            eprintln!("error: {reason}");
            return ExitCode::FAILURE;
        }
    };
    if let Err(reason) = measure::<R>(&load) {
        output::absent(&reason);
    }
    ExitCode::SUCCESS
}

fn measure<R: Runtime>(load: &Load) -> Result<(), String> {
    if let Some(reason) = R::absent(load) {
        return Err(reason.to_owned());
    }
    // It serves until the process ends, so nothing is said about how it stops.
    let runtime: &'static R = Box::leak(Box::new(R::start(load)?));
    match load.measure {
        Measure::ArmCancel => pairs::arm_cancel(runtime, load),
        Measure::RemoteCancel => pairs::remote_cancel(runtime, load),
        Measure::Rearm => pairs::rearm(runtime, load),
        Measure::Expire => return pairs::expire(runtime, load),
        Measure::Periodic => tasks::periodic(runtime, load),
        Measure::Sleep => tasks::sleep(runtime, load),
        Measure::Blocked => tasks::blocked(runtime, load),
        Measure::Idle => tasks::idle(load),
    }
    Ok(())
}
