//! `quietcore diff BEFORE AFTER`: two recordings, or two reports, side by side: did the change help?

use crate::args::DiffArgs;
use crate::error::CliError;
use crate::outcome::CommandOutcome;
use crate::output;
use crate::progress::Display;
use crate::text::{self, Page};
use quietcore_answers::DiffRequest;
use std::path::Path;

pub(crate) fn run(args: &DiffArgs) -> Result<CommandOutcome, CliError> {
    if [&args.before, &args.after].into_iter().any(|path| path == Path::new("-")) {
        let sentence = "diff reads its inputs twice; name two files".to_owned();
        return Err(CliError::Usage(sentence));
    }
    let request = DiffRequest {
        isolated: args.isolated.clone(),
        expansion_max: args.expansion.max_expansion,
        ..DiffRequest::new(&args.before, &args.after)
    };
    let mut display = Display::new();
    let compared = quietcore_answers::diff(&request, &mut |at| {
        display.show(|| at.to_string());
        true
    });
    display.clear();
    let comparison = compared?;
    if args.json {
        output::print_json(&comparison)?;
    } else {
        Page::print(|page| text::differences(page, &comparison))?;
    }
    Ok(CommandOutcome::Fine)
}
