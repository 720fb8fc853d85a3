//! `quietcore verify`: a trace's timers, replayed through our wheel.

use crate::args::VerifyArgs;
use crate::error::CliError;
use crate::outcome::CommandOutcome;
use crate::output;
use crate::progress::Display;
use crate::signals::SignalFlag;
use crate::text::{self, Page};
use quietcore_trace::{Progress, TraceReader, visible_path};
use quietcore_verify::{Verification, Verify};

/// How many lines are read between two looks at the progress display and at Ctrl-C.
const LINES_PER_TURN: u64 = 100_000;

pub(crate) fn run(args: &VerifyArgs) -> Result<CommandOutcome, CliError> {
    let failed = |error| CliError::Read(args.trace.clone(), error);
    let mut reader =
        TraceReader::new(quietcore_trace::open_expanding(&args.trace, args.expansion.max_expansion)?);
    // Only where reading never waits: elsewhere the system's own way of Ctrl-C is the one that ends it.
    let is_file = args.trace.metadata().is_ok_and(|found| found.is_file());
    let interrupt = if is_file { Some(SignalFlag::install()?) } else { None };
    let is_over = || interrupt.as_ref().is_some_and(SignalFlag::arrived);
    reader.read_header().map_err(failed)?;
    let mut verify = Verify::new(reader.header());
    let mut display = Display::new();
    while verify.read(&mut reader, LINES_PER_TURN).map_err(failed)? != Progress::Finished {
        if is_over() {
            break;
        }
        display.show(|| format!("{} MiB, {} events", reader.bytes_read() >> 20, reader.tally().events));
    }
    display.clear();
    let mut verification = verify.finish(&reader);
    if is_over() {
        verification.incomplete.push("ended early by a signal: the rest was not read".to_owned());
    }
    show(args, &verification)?;
    Ok(match verification.ok {
        _ if is_over() => CommandOutcome::Interrupted,
        false if !args.exit_zero => CommandOutcome::Found,
        _ => CommandOutcome::Fine,
    })
}

fn show(args: &VerifyArgs, verification: &Verification) -> Result<(), CliError> {
    if args.json {
        return output::print_json(verification);
    }
    Page::print(|page| text::verification(page, &visible_path(&args.trace), verification))
}
