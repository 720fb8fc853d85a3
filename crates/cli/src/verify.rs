//! `quietcore verify`: a trace's timers, replayed through our wheel.

use crate::args::VerifyArgs;
use crate::error::CliError;
use crate::outcome::CommandOutcome;
use crate::output;
use crate::progress::Display;
use crate::signals::SignalFlag;
use crate::text::{self, Page};
use quietcore_answers::VerifyEnd;
use quietcore_trace::visible_path;
use quietcore_verify::Verification;

pub(crate) fn run(args: &VerifyArgs) -> Result<CommandOutcome, CliError> {
    // Only where reading never waits: elsewhere the system's own way of Ctrl-C is the one that ends it.
    let is_file = args.trace.metadata().is_ok_and(|found| found.is_file());
    let interrupt = if is_file { Some(SignalFlag::install()?) } else { None };
    let mut display = Display::new();
    let verified = quietcore_answers::verify(&args.trace, args.expansion.max_expansion, &mut |at| {
        display.show(|| at.to_string());
        !interrupt.as_ref().is_some_and(SignalFlag::arrived)
    });
    display.clear();
    let VerifyEnd { mut verification, is_early } = verified?;
    let outcome = outcome(args, &mut verification, is_early);
    show(args, &verification)?;
    Ok(outcome)
}

/// What the exit code says; a verification that a signal ended says so itself, too.
fn outcome(args: &VerifyArgs, verification: &mut Verification, is_over: bool) -> CommandOutcome {
    if is_over {
        verification.incomplete.push("ended early by a signal: the rest was not read".to_owned());
        return CommandOutcome::Interrupted;
    }
    if verification.ok || args.exit_zero { CommandOutcome::Fine } else { CommandOutcome::Found }
}

fn show(args: &VerifyArgs, verification: &Verification) -> Result<(), CliError> {
    if args.json {
        return output::print_json(verification);
    }
    Page::print(|page| text::verification(page, &visible_path(&args.trace), verification))
}

#[cfg(test)]
mod tests {
    use super::outcome;
    use crate::args::{Cli, CliVerb};
    use crate::outcome::CommandOutcome::{Fine, Found, Interrupted};
    use clap::Parser;
    use quietcore_trace::TraceReader;
    use quietcore_verify::Verify;

    /// Goal: a signal comes before a mismatch, and is said. Method: all combinations.
    #[test]
    fn a_signal_is_said_and_comes_first() {
        for (ok, options, is_over, expected) in [
            (true, &[][..], false, Fine),
            (false, &[], false, Found),
            (false, &["--exit-zero"], false, Fine),
            (true, &[], true, Interrupted),
            (false, &[], true, Interrupted),
            (false, &["--exit-zero"], true, Interrupted),
        ] {
            let words = [&["quietcore", "verify", "x"], options].concat();
            let cli = Cli::try_parse_from(words).expect("options of verify");
            let Some(CliVerb::Verify(args)) = cli.verb else { panic!("{:?}", cli.verb) };
            let reader = TraceReader::new(&b""[..]);
            let mut verification = Verify::new(reader.header()).finish(&reader);
            verification.ok = ok;
            let already = verification.incomplete.len();
            assert_eq!(outcome(&args, &mut verification, is_over), expected, "{ok}, {options:?}, {is_over}");
            let said: &[&str] =
                if is_over { &["ended early by a signal: the rest was not read"] } else { &[] };
            assert_eq!(verification.incomplete[already..], *said, "{ok}, {options:?}, {is_over}");
        }
    }
}
