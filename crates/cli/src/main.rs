//! The `quietcore` command: argv in, report out.
//!
//! Exit codes, decided here and nowhere else: 0 fine, 1 a finding of severity warning or above, or
//! a mismatch, 2 an error, 130 after Ctrl-C; of `netem tun -- COMMAND` it is COMMAND's. A reader that closes
//! the pipe early is not an error.

#![forbid(unsafe_code)]

mod args;
mod atomic_file;
mod calibrate;
mod cat;
mod check_up;
mod collect;
mod diff;
mod doctor;
mod error;
mod explain;
mod export;
mod host;
mod html;
mod keep_awake;
mod kept;
mod lab;
mod live;
mod manual;
mod netem;
mod outcome;
mod output;
mod predict;
mod progress;
mod record;
mod runtime_failure;
mod runtimes;
mod signals;
mod sim;
mod sinks;
mod sweep;
mod tc;
mod terminal;
mod text;
mod trigger;
mod typed;
mod verify;
mod wall_clock;
mod watch;
mod whatif;

use args::{Cli, CliVerb};
use clap::Parser;
use error::CliError;
use outcome::CommandOutcome;
use quietcore_answers::AnswerError;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    match run(&cli) {
        Ok(CommandOutcome::Fine) => ExitCode::SUCCESS,
        Ok(CommandOutcome::Found) => ExitCode::from(1),
        Ok(CommandOutcome::Interrupted) => ExitCode::from(130),
        Ok(CommandOutcome::Exited(code)) => ExitCode::from(code),
        Err(CliError::ClosedPipe) => ExitCode::SUCCESS,
        Err(CliError::Answer(AnswerError::Interrupted)) => ExitCode::from(130),
        Err(error) => {
            output::say(&error.to_string());
            ExitCode::from(2)
        }
    }
}

/// What was typed is no command: says why, or prints the help or version that was asked for. A word may be
/// the name of a file that another user chose.
fn refuse(error: &clap::Error) -> ExitCode {
    if error.use_stderr() {
        output::say_as_it_is(&error.to_string());
    } else {
        // Our own text, with clap's colours; a closed pipe is no error.
        match error.print().map_err(CliError::from) {
            Ok(()) | Err(CliError::ClosedPipe) => {}
            Err(error) => {
                output::say(&error.to_string());
                return ExitCode::from(2);
            }
        }
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

fn run(cli: &Cli) -> Result<CommandOutcome, CliError> {
    if let Some(colours) = cli.color.colours() {
        colours.choose();
    }
    match &cli.verb {
        None => check_up::run(&cli.check_up),
        Some(CliVerb::Doctor(args)) => doctor::run(args),
        Some(CliVerb::Explain(args)) => explain::run(args),
        Some(CliVerb::Export(args)) => export::run(args),
        Some(CliVerb::Diff(args)) => diff::run(args),
        Some(CliVerb::Record(args)) => record::run(args),
        Some(CliVerb::Watch(args)) => watch::run(args),
        Some(CliVerb::KeepAwake(args)) => keep_awake::run(args),
        Some(CliVerb::Verify(args)) => verify::run(args),
        Some(CliVerb::Whatif(args)) => whatif::run(args),
        Some(CliVerb::Sim(args)) => sim::run(args),
        Some(CliVerb::Sweep(args)) => sweep::run(args),
        Some(CliVerb::Lab(args)) => lab::run(args),
        Some(CliVerb::Calibrate(args)) => calibrate::run(args),
        Some(CliVerb::Netem(args)) => netem::run(args),
        Some(CliVerb::Tc(args)) => tc::run(args),
        Some(CliVerb::Cat(args)) => cat::run(args),
        Some(CliVerb::Man(args)) => manual::man(args),
        Some(CliVerb::Completions(args)) => manual::completions(args),
    }
}
