//! `quietcore whatif`: a recording's arms, cancels and awake intervals under another policy.
//!
//! One pass over the input feeds the explanation (what was recorded) and the load (what is replayed).

use crate::args::WhatIfArgs;
use crate::args::value::PolicyArg;
use crate::error::CliError;
use crate::outcome::CommandOutcome;
use crate::output;
use crate::progress::{Display, read_so_far};
use crate::reader;
use crate::text::{self, Page};
use crate::whatif_comparison::{RecordedKernel, WhatifComparison};
use quietcore_core::CpuSet;
use quietcore_explain::{Explain, ExplainOptions, Explanation};
use quietcore_trace::{Header, KernelRelease, Progress, visible, visible_path};
use quietcore_verify::whatif::{
    Excluded, INPUTS_MAX, LoadFacts, LoadReader, RecordedLoad, WhatifQuestion, answer,
};
use std::path::Path;

/// How many lines are read between two looks at the progress display.
const LINES_PER_TURN: u64 = 200_000;

pub(crate) fn run(args: &WhatIfArgs) -> Result<CommandOutcome, CliError> {
    let (report, load) = read(args)?;
    let question = WhatifQuestion {
        policy: args.policy.map_or(load.policy(), PolicyArg::policy),
        excluded: args.exclude.clone().map_or(Excluded::AsRecorded, Excluded::These),
        kept_awake: args.keep_awake.clone().unwrap_or_default(),
    };
    let answer = answer(&load, &question).map_err(|error| refused(&args.trace, &error))?;
    let comparison = WhatifComparison { schema: 1, recorded: recorded(&report, &load), answer: &answer };
    if args.json {
        output::print_json(&comparison)?;
    } else {
        Page::print(|page| text::comparison(page, &visible_path(&args.trace), &comparison))?;
    }
    Ok(CommandOutcome::Fine)
}

fn refused(path: &Path, why: &dyn std::fmt::Display) -> CliError {
    CliError::Usage(format!("{}: {why}", visible_path(path)))
}

/// Reads the recording once; a part of it when it has more inputs than are kept.
fn read(args: &WhatIfArgs) -> Result<(Explanation, RecordedLoad), CliError> {
    let failed = |error| CliError::Read(args.trace.clone(), error);
    let mut reader = reader::open(&args.trace, args.expansion.max_expansion)?;
    reader.read_header().map_err(failed)?;
    let options = options(args, reader.header())?;
    let facts = facts(&options, reader.header().hz);
    let (mut explain, mut load) = (Explain::new(options), LoadReader::new());
    let mut display = Display::new();
    let whole_from = reader.header().whole_from.unwrap_or_default();
    let mut take = |record: &quietcore_trace::Record<'_>| {
        if record.at < whole_from {
            return load.is_full();
        }
        load.take(record);
        if !load.is_full() {
            explain.take(record);
        }
        load.is_full()
    };
    let mut is_full = false;
    while !is_full {
        let turn = reader.read(LINES_PER_TURN, &mut |record| is_full = take(record)).map_err(failed)?;
        if turn == Progress::Finished {
            break;
        }
        display.show(|| read_so_far(&reader));
    }
    display.clear();
    reader::refuse_empty(&args.trace, reader.tally())?;
    if reader.tally().clock_without_unit {
        let why = "its time stamps have no unit (clock counter or x86-tsc), so ticks cannot be placed; record \
                   with trace_clock mono";
        return Err(refused(&args.trace, &why));
    }
    let mut report = explain.finish(reader.tally());
    if is_full {
        let cut = format!("only the first {INPUTS_MAX} arms, cancels and awake intervals were read");
        report.incomplete.push(cut);
    }
    let load = load.finish(facts).map_err(|error| refused(&args.trace, &error))?;
    Ok((report, load))
}

fn facts(options: &ExplainOptions, hz: Option<u32>) -> LoadFacts {
    LoadFacts {
        cpu_count: options.cpu_count,
        hz,
        model: options.kernel.as_ref().map(KernelRelease::timer_model),
        timer_migration: options.timer_migration,
        isolated: options.isolated.clone(),
        nohz_full: options.nohz_full.clone(),
    }
}

/// The isolated set decides what is foreign, so it must be known: `--isolated`, or the recording's list.
fn options(args: &WhatIfArgs, header: &Header) -> Result<ExplainOptions, CliError> {
    let (isolated, isolated_source) = match (&args.isolated, &header.isolated, &header.isolated_unreadable) {
        (Some(isolated), ..) => (isolated.clone(), "option"),
        (None, _, Some(text)) => {
            let why = format!(
                "its header line \"# isolated: {}\" holds no CPU list; name the CPUs with --isolated LIST",
                visible(text)
            );
            return Err(refused(&args.trace, &why));
        }
        (None, Some(isolated), None) => (isolated.clone(), "recording"),
        (None, None, None) if header.is_recording => (CpuSet::new(), "recording"),
        (None, None, None) => {
            let why = "it does not say which CPUs must stay quiet; name them with --isolated LIST, as \
                       --isolated 1-7,9-15, or say --isolated none";
            return Err(refused(&args.trace, &why));
        }
    };
    let kernel = match &args.kernel {
        Some(text) => Some(KernelRelease::parse(text).ok_or_else(|| {
            CliError::Usage(format!(
                "--kernel {text:?} is no release; give it as `uname -r` prints it, as 6.12.30"
            ))
        })?),
        None => header.kernel.clone(),
    };
    Ok(ExplainOptions {
        isolated,
        isolated_source,
        nohz_full: header.nohz_full.clone().unwrap_or_default(),
        kernel,
        cpu_count: header.cpu_count,
        timer_migration: header.timer_migration,
        ..ExplainOptions::default()
    })
}

fn recorded<'a>(report: &'a Explanation, load: &RecordedLoad) -> RecordedKernel<'a> {
    RecordedKernel {
        kernel: report.kernel.as_deref(),
        policy: load.policy().name(),
        cpus: load.cpus(),
        isolated: &report.isolated,
        isolated_source: report.isolated_source,
        nohz_full: &report.nohz_full,
        duration_ns: report.duration_ns,
        events: report.events,
        lost_events: report.lost_events,
        incomplete: &report.incomplete,
        timers: &report.timers,
        foreign: &report.foreign,
        between_isolated: &report.between_isolated,
        remote: &report.remote,
        ping_pong: &report.ping_pong,
        groups: &report.groups,
        warnings: &report.warnings,
    }
}

#[cfg(test)]
mod tests;
