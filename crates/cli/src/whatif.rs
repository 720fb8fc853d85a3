//! `quietcore whatif`: a recording's arms, cancels and awake intervals under another policy.

use crate::args::WhatIfArgs;
use crate::args::value::PolicyArg;
use crate::error::CliError;
use crate::outcome::CommandOutcome;
use crate::output;
use crate::progress::Display;
use crate::text::{self, Page};
use quietcore_answers::WhatifRequest;
use quietcore_trace::visible_path;

pub(crate) fn run(args: &WhatIfArgs) -> Result<CommandOutcome, CliError> {
    let request = WhatifRequest {
        path: args.trace.clone(),
        policy: args.policy.map(PolicyArg::policy),
        exclude: args.exclude.clone(),
        keep_awake: args.keep_awake.clone().unwrap_or_default(),
        isolated: args.isolated.clone(),
        kernel: args.kernel.clone(),
        expansion_max: args.expansion.max_expansion,
    };
    let mut display = Display::new();
    let answered = quietcore_answers::whatif(&request, &mut |at| {
        display.show(|| at.to_string());
        true
    });
    display.clear();
    let answered = answered?;
    let comparison = answered.comparison();
    if args.json {
        output::print_json(&comparison)?;
    } else {
        Page::print(|page| text::comparison(page, &visible_path(&args.trace), &comparison))?;
    }
    Ok(CommandOutcome::Fine)
}

#[cfg(test)]
mod tests;
