//! `quietcore explain`: a trace, or the running kernel, explained.

use crate::Outcome;
use crate::args::ExplainArgs;
use crate::error::CliError;
use crate::output;
use crate::text::{self, Page};
use quietcore_core::CpuSet;
use quietcore_trace::{Explain, Header, KernelRelease, Options, Report, Severity, TraceReader};
use std::path::{Path, PathBuf};

pub(crate) fn run(args: &ExplainArgs) -> Result<Outcome, CliError> {
    let Some(path) = &args.trace else {
        return Err(CliError::Usage("name a trace, or use --live 10s".to_owned()));
    };
    let report = explain_file(args, path)?;
    show(args, &path.display().to_string(), &report)
}

fn explain_file(args: &ExplainArgs, path: &Path) -> Result<Report, CliError> {
    let failed = |error| CliError::Read(PathBuf::from(path), error);
    let mut reader = TraceReader::new(quietcore_trace::open(path)?);
    reader.read_header().map_err(failed)?;
    let mut explain = Explain::new(options(args, reader.header())?);
    reader.read(u64::MAX, &mut |record| explain.take(record)).map_err(failed)?;
    let mut report = explain.finish(reader.tally());
    report.unknown_events = reader.unknown_events().into_iter().collect();
    Ok(report)
}

/// The isolated set: `--isolated`, else the recording's list, else the host's.
fn options(args: &ExplainArgs, header: &Header) -> Result<Options, CliError> {
    let (isolated, isolated_source) = match (&args.isolated, &header.isolated) {
        (Some(set), _) => (set.clone(), "option"),
        (None, Some(set)) => (set.clone(), "recording"),
        (None, None) if header.is_recording => (CpuSet::new(), "recording"),
        (None, None) => (CpuSet::new(), "host"),
    };
    Ok(Options {
        isolated,
        isolated_source,
        nohz_full: header.nohz_full.clone().unwrap_or_default(),
        kernel: kernel_option(args)?.or_else(|| header.kernel.clone()),
        cpu_count: header.cpu_count,
        timer_migration: header.timer_migration,
        switched_on: Vec::new(),
        identities_max: args.max_identities,
    })
}

fn kernel_option(args: &ExplainArgs) -> Result<Option<KernelRelease>, CliError> {
    let Some(text) = &args.kernel else { return Ok(None) };
    KernelRelease::parse(text).map(Some).ok_or_else(|| {
        CliError::Usage(format!(
            "--kernel {text:?} is no release; give it as `uname -r` prints it, as 6.12.30"
        ))
    })
}

/// Prints the report and says what it found.
fn show(args: &ExplainArgs, name: &str, report: &Report) -> Result<Outcome, CliError> {
    if args.json {
        output::print_json(report)?;
    } else {
        let mut page = Page::for_stdout();
        text::explanation(&mut page, name, report);
        output::print(&page.into_text())?;
    }
    let found = report.findings.iter().any(|finding| finding.severity >= Severity::Warning);
    Ok(if found && !args.exit_zero { Outcome::Found } else { Outcome::Fine })
}
