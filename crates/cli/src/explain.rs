//! `quietcore explain`: a trace, or the running kernel, explained.

use crate::Outcome;
use crate::args::ExplainArgs;
use crate::error::CliError;
use crate::host;
use crate::live::{Own, Request, Session};
use crate::output;
use crate::signals::Interrupt;
use crate::text::{self, Page};
use quietcore_core::CpuSet;
use quietcore_trace::live::SEEDS;
use quietcore_trace::{Explain, Header, KernelRelease, Options, Report, Severity, TraceReader};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A report with what only a live recording has.
#[derive(Serialize)]
struct Explanation {
    #[serde(flatten)]
    report: Report,
    /// `null` for a file.
    own_disturbance: Option<Own>,
}

pub(crate) fn run(args: &ExplainArgs) -> Result<Outcome, CliError> {
    match (&args.trace, args.live) {
        (Some(path), _) => {
            let explanation = Explanation { report: explain_file(args, path)?, own_disturbance: None };
            show(args, &path.display().to_string(), &explanation)
        }
        (None, Some(span)) => explain_live(args, span),
        (None, None) => Err(CliError::Usage("name a trace, or use --live 10s".to_owned())),
    }
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

fn explain_live(args: &ExplainArgs, span: Duration) -> Result<Outcome, CliError> {
    let interrupt = Interrupt::install()?;
    let mut options = host::options();
    if let Some(isolated) = &args.isolated {
        options.isolated = isolated.clone();
        options.isolated_source = "option";
    }
    options.identities_max = args.max_identities;
    let isolated = options.isolated.clone();
    let request = Request { span, seeds: seeds(args)?, buffer_kib: args.buffer, isolated: &isolated };
    let session = Session::start(&request, &interrupt)?;
    options.switched_on = session.switched_on();
    let mut explain = Explain::new(options);
    let recorded = session.run(&mut |record| explain.take(record))?;
    let mut report = explain.finish(&recorded.tally);
    report.unknown_events = recorded.unknown.into_iter().collect();
    if recorded.interrupted {
        report.warnings.push("the recording was ended early by a signal".to_owned());
    }
    let explanation = Explanation { report, own_disturbance: Some(recorded.own) };
    let outcome = show(args, "--live", &explanation)?;
    Ok(if recorded.interrupted { Outcome::Interrupted } else { outcome })
}

/// The chosen questions, all five by default.
fn seeds(args: &ExplainArgs) -> Result<Vec<&str>, CliError> {
    for seed in &args.seeds {
        if !SEEDS.contains(&seed.as_str()) {
            return Err(CliError::Usage(format!(
                "--seeds {seed:?} is unknown; choose from {}",
                SEEDS.join(",")
            )));
        }
    }
    Ok(if args.seeds.is_empty() { SEEDS.to_vec() } else { args.seeds.iter().map(String::as_str).collect() })
}

/// The isolated set: `--isolated`, else the recording's list, else the host's.
fn options(args: &ExplainArgs, header: &Header) -> Result<Options, CliError> {
    let (isolated, isolated_source) = match (&args.isolated, &header.isolated) {
        (Some(set), _) => (set.clone(), "option"),
        (None, Some(set)) => (set.clone(), "recording"),
        (None, None) if header.is_recording => (CpuSet::new(), "recording"),
        (None, None) => (host::isolated(), "host"),
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
fn show(args: &ExplainArgs, name: &str, explanation: &Explanation) -> Result<Outcome, CliError> {
    let Explanation { report, own_disturbance } = explanation;
    if args.json {
        output::print_json(explanation)?;
    } else {
        let mut page = Page::for_stdout();
        text::explanation(&mut page, name, report, own_disturbance.as_ref());
        output::print(&page.into_text())?;
    }
    let found = report.findings.iter().any(|finding| finding.severity >= Severity::Warning);
    Ok(if found && !args.exit_zero { Outcome::Found } else { Outcome::Fine })
}
