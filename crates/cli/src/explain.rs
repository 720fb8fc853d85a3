//! `quietcore explain`: a trace, or the running kernel, explained.

use crate::args::ExplainArgs;
use crate::error::CliError;
use crate::host;
use crate::live::{Own, Request, Session, TracepointChoice, room};
use crate::outcome::CommandOutcome;
use crate::output;
use crate::progress::Display;
use crate::signals::SignalFlag;
use crate::sinks::{SinkFiles, Sinks};
use crate::text::{self, Page};
use quietcore_answers::{AnswerError, ReadSoFar, kernel_option, left_out, open, options_of_file, read_all};
use quietcore_explain::{
    Crossing, ExplainOptions, Explanation, Facts, RecordedMoment, Threshold, named_figures,
};
use quietcore_trace::{Header, Question, visible_path};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// A threshold, held against the report.
#[derive(Debug, Serialize)]
pub(crate) struct CheckedThreshold {
    threshold: String,
    /// `null` where the figure was not recorded.
    crossed: Option<bool>,
    /// The figure beyond it, in words.
    figure: Option<String>,
}

/// A report with what only a live recording has.
#[derive(Serialize)]
pub(crate) struct LiveExplanation {
    #[serde(flatten)]
    pub(crate) report: Explanation,
    /// The report's figures that have a name for gates and comparisons.
    pub(crate) figures: BTreeMap<&'static str, Option<u64>>,
    /// What `--fail-on` asked, and what came of it; left out without it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) fail_on: Vec<CheckedThreshold>,
    /// `null` for a file, and in a PID namespace, where the trace names our threads otherwise.
    pub(crate) own_disturbance: Option<Own>,
}

impl LiveExplanation {
    pub(crate) fn new(report: Explanation, fail_on: Vec<CheckedThreshold>, own: Option<Own>) -> Self {
        Self { figures: named_figures(&report), report, fail_on, own_disturbance: own }
    }
}

pub(crate) fn run(args: &ExplainArgs) -> Result<CommandOutcome, CliError> {
    match (&args.trace, args.live) {
        (Some(path), _) => {
            let report = explain_file(args, path)?;
            let fail_on = checked(args, &report);
            let explanation = LiveExplanation::new(report, fail_on, None);
            show(args, &visible_path(path), &explanation)
        }
        (None, Some(span)) => explain_live(args, span),
        (None, None) => Err(CliError::Usage("name a trace, or use --live 10s".to_owned())),
    }
}

fn explain_file(args: &ExplainArgs, path: &Path) -> Result<Explanation, CliError> {
    let mut reader = open(path, args.expansion.max_expansion)?;
    let files = SinkFiles::open(args)?;
    reader.read_header().map_err(|error| AnswerError::Read(path.to_owned(), error))?;
    let options = options(args, path, reader.header(), host::facts)?;
    let partial = left_out(reader.header(), &options.isolated);
    let mut sinks = Sinks::new(options, files);
    let mut display = Display::new();
    let mut watch = |at: ReadSoFar| {
        display.show(|| at.to_string());
        true
    };
    let read = read_all(path, &mut reader, &mut watch, &mut |record| sinks.take(record));
    display.clear();
    read?;
    sinks.finish(reader.tally(), reader.unknown_events(), None, |report| report.warnings.extend(partial))
}

fn explain_live(args: &ExplainArgs, span: Duration) -> Result<CommandOutcome, CliError> {
    if span.is_zero() {
        return Err(CliError::Usage("--live 0s records nothing; give it a time, as --live 10s".to_owned()));
    }
    let interrupt = SignalFlag::install()?;
    let facts = host::facts();
    let options = live_options(args, &facts);
    let request = request(args, span, &facts);
    let (mut explanation, interrupted) = record(&request, options, SinkFiles::open(args)?, &interrupt)?;
    explanation.fail_on = checked(args, &explanation.report);
    let outcome = show(args, "--live", &explanation)?;
    Ok(if interrupted { CommandOutcome::Interrupted } else { outcome })
}

/// CPUs that `--isolated` names are not disturbed either.
fn request(args: &ExplainArgs, span: Duration, facts: &Facts) -> Request {
    let isolated = live_options(args, facts).isolated;
    let housekeeping = facts.housekeeping().difference(&isolated);
    let choice = TracepointChoice::Of(questions(args));
    Request { span, choice, buffer_kib: args.buffer, housekeeping, isolated, bytes_max: None, trigger: None }
}

/// The isolated set: `--isolated`, else the host's.
fn live_options(args: &ExplainArgs, facts: &Facts) -> ExplainOptions {
    let mut options = host::options(facts);
    if let Some(isolated) = &args.isolated {
        options.isolated = isolated.clone();
        options.isolated_source = "option";
    }
    options.identities_max = args.max_identities;
    options
}

/// Records the running kernel with everything as the host has it; true when a signal ended it.
pub(crate) fn record_host(
    span: Duration,
    interrupt: &SignalFlag,
) -> Result<(LiveExplanation, bool), CliError> {
    let facts = host::facts();
    let options = host::options(&facts);
    let request = Request {
        span,
        choice: TracepointChoice::Of(Question::ALL.to_vec()),
        buffer_kib: None,
        housekeeping: facts.housekeeping(),
        isolated: options.isolated.clone(),
        bytes_max: None,
        trigger: None,
    };
    record(&request, options, SinkFiles::default(), interrupt)
}

fn record(
    request: &Request,
    options: ExplainOptions,
    files: SinkFiles,
    interrupt: &SignalFlag,
) -> Result<(LiveExplanation, bool), CliError> {
    let session = Session::start(request, None, interrupt)?;
    let options = ExplainOptions { switched_on: session.switched_on(), ..options };
    let mut sinks = Sinks::new(options, files);
    let recorded = session.run(&mut |record| sinks.take(record))?;
    if recorded.tally.events == 0 && !recorded.interrupted {
        return Err(CliError::Live(format!(
            "nothing was recorded in {:?}, though tracepoints were on: is another tool holding the buffers, or \
             `tracing_on` 0? see /sys/kernel/tracing",
            request.span
        )));
    }
    let lossless = recorded.lossless_kib.map(|kib| format!("of the events that were lost: {}", room(kib)));
    let (warning, incomplete) = (recorded.warning(), recorded.incomplete);
    let report = sinks.finish(&recorded.tally, recorded.unknown, recorded.own.as_ref(), |report| {
        report.warnings.extend(warning);
        report.incomplete.extend(incomplete.into_iter().chain(lossless));
    })?;
    let explanation = LiveExplanation::new(report, Vec::new(), recorded.own);
    Ok((explanation, recorded.interrupted))
}

/// The chosen questions, all five by default.
fn questions(args: &ExplainArgs) -> Vec<Question> {
    if args.questions.is_empty() { Question::ALL.to_vec() } else { args.questions.clone() }
}

/// What is known of a file, and what was typed.
fn options(
    args: &ExplainArgs,
    path: &Path,
    header: &Header,
    host: impl FnOnce() -> Facts,
) -> Result<ExplainOptions, CliError> {
    let mut options = options_of_file(args.isolated.as_ref(), path, header, host)?;
    options.kernel = kernel_option(args.kernel.as_deref())?.or(options.kernel);
    options.identities_max = args.max_identities;
    if let Some(at) = args.at {
        options.at = Some(RecordedMoment { at: at.recorded(path, header)?, around: args.around });
    }
    Ok(options)
}

/// Prints the report and says what it found.
fn show(args: &ExplainArgs, name: &str, explanation: &LiveExplanation) -> Result<CommandOutcome, CliError> {
    let LiveExplanation { report, own_disturbance, fail_on, .. } = explanation;
    if args.json {
        output::print_json(explanation)?;
    } else {
        Page::print(|page| text::explanation(page, name, report, own_disturbance.as_ref()))?;
    }
    verdict(fail_on)
}

/// Holds the thresholds against a report.
fn checked(args: &ExplainArgs, report: &Explanation) -> Vec<CheckedThreshold> {
    let check = |threshold: &Threshold| {
        let (crossed, figure) = match threshold.check(report) {
            Crossing::Crossed(figure) => (Some(true), Some(threshold.shown(figure))),
            Crossing::Within => (Some(false), None),
            Crossing::Unknown => (None, None),
        };
        CheckedThreshold { threshold: threshold.to_string(), crossed, figure }
    };
    args.fail_on.iter().map(check).collect()
}

/// Says which thresholds are crossed. One whose figure was not recorded is an error: it would pass in
/// silence.
fn verdict(fail_on: &[CheckedThreshold]) -> Result<CommandOutcome, CliError> {
    let crossed = fail_on.iter().filter_map(|it| Some((&it.threshold, it.figure.as_ref()?)));
    let crossed: Vec<_> = crossed.map(|(it, figure)| format!("{it} (it is {figure})")).collect();
    if !crossed.is_empty() {
        output::say(&format!("failed: {}", crossed.join(", ")));
    }
    let unknown: Vec<_> = fail_on.iter().filter(|it| it.crossed.is_none()).map(|it| &*it.threshold).collect();
    if !unknown.is_empty() {
        let unknown = unknown.join(", ");
        return Err(CliError::Usage(format!(
            "--fail-on {unknown}: the input does not have the events for it"
        )));
    }
    Ok(if crossed.is_empty() { CommandOutcome::Fine } else { CommandOutcome::Found })
}

#[cfg(test)]
mod tests {
    use super::{live_options, options, questions, request};
    use crate::args::{Cli, CliVerb, ExplainArgs};
    use clap::Parser;
    use quietcore_explain::Facts;
    use quietcore_trace::{KernelRelease, Question, TraceReader};
    use std::time::Duration;

    fn args(more: &[&str]) -> ExplainArgs {
        parsed(&[&["--live", "1s"], more].concat())
    }

    /// A copy of a host, whose CPUs 2-7 and 10-15 are isolated.
    fn host() -> Facts {
        Facts::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../explain/tests/hosts/telco-6.12").as_ref())
    }

    fn parsed(words: &[&str]) -> ExplainArgs {
        let words = [&["quietcore", "explain"], words].concat();
        match Cli::try_parse_from(words).expect("options of explain").verb {
            Some(CliVerb::Explain(args)) => args,
            verb => panic!("{verb:?}"),
        }
    }

    /// Goal: a live recording is about what was asked, and about the host's isolated CPUs where nothing was.
    /// Method: a copy of a host, with no option and with each.
    #[test]
    fn a_live_recording_is_about_what_was_asked() {
        let facts = host();
        let options = |more: &[&str]| {
            let options = live_options(&args(more), &facts);
            (options.isolated.to_string(), options.isolated_source, options.identities_max)
        };
        let identities = quietcore_trace::IDENTITIES_MAX;
        assert_eq!(options(&[]), ("2-7,10-15".to_owned(), "host", identities));
        assert_eq!(options(&["--isolated", "0,3"]), ("0,3".to_owned(), "option", identities));
        assert_eq!(options(&["--max-identities", "50"]), ("2-7,10-15".to_owned(), "host", 50));
        let of_the_host = live_options(&args(&[]), &facts);
        assert_eq!((of_the_host.cpu_count, of_the_host.timer_migration), (Some(16), Some(true)));
        let kernel = of_the_host.kernel;
        assert_eq!(kernel, KernelRelease::parse("6.12.48-generic"));
        assert_eq!((kernel.is_some(), of_the_host.nohz_full.is_empty()), (true, true));
        assert_eq!(questions(&args(&[])), Question::ALL);
        let two = [Question::Placement, Question::Isolation];
        assert_eq!(questions(&args(&["--questions", "placement,isolation"])), two);
        let request = |more: &[&str]| {
            let request = request(&args(more), Duration::from_secs(3), &facts);
            (request.span.as_secs(), request.buffer_kib, request.housekeeping.to_string())
        };
        assert_eq!(request(&[]), (3, None, "0-1,8-9".to_owned()));
        assert_eq!(request(&["--isolated", "0,8", "--buffer", "512"]), (3, Some(512), "1,9".to_owned()));
    }

    /// Goal: a report is about what the recording says of its machine, unless an option says otherwise.
    /// Method: a header of which no two facts are the same, alone and with each option.
    #[test]
    fn the_recording_says_of_which_machine_it_is() {
        let text = "# kernel: Linux 6.1.176, HZ=300\n# cpus: possible 0-11, online\n\
                    # isolated: 8-11; nohz_full: 4-7\n# sysctl kernel timer_migration: 0\n\
                    a-7 [000] 1.0: timer_cancel: timer=1\n";
        let mut reader = TraceReader::new(text.as_bytes());
        reader.read_header().expect("a header");
        let asked = |more: &[&str]| {
            let args = parsed(&[&["t"], more].concat());
            let options = options(&args, "t".as_ref(), reader.header(), host).expect("options");
            assert_eq!((options.cpu_count, options.timer_migration), (Some(12), Some(false)));
            assert_eq!(options.nohz_full.to_string(), "4-7");
            let isolated = (options.isolated.to_string(), options.isolated_source);
            (isolated, options.kernel.map(|kernel| kernel.text), options.identities_max)
        };
        let (recorded, option) = (("8-11".to_owned(), "recording"), ("3".to_owned(), "option"));
        let [own, other] = ["6.1.176", "6.12.3"].map(|kernel| Some(kernel.to_owned()));
        let most = quietcore_trace::IDENTITIES_MAX;
        assert_eq!(asked(&[]), (recorded.clone(), own.clone(), most));
        assert_eq!(asked(&["--isolated", "3"]), (option, own.clone(), most));
        assert_eq!(asked(&["--kernel", "6.12.3"]), (recorded.clone(), other, most));
        assert_eq!(asked(&["--max-identities", "50"]), (recorded, own, 50));
    }

    /// Goal: the host's isolated CPUs are taken for those of a trace that says nothing of its machine, and of
    /// no other. Method: a trace of another tool, one with a list, one of ours without.
    #[test]
    fn the_host_says_what_the_trace_does_not() {
        for (header, isolated, source) in [
            ("", "2-7,10-15", "host"),
            ("# isolated: 8\n", "8", "recording"),
            ("# trace: x\n", "", "recording"),
        ] {
            let text = format!("{header}a-7 [000] 1.0: timer_cancel: timer=1\n");
            let mut reader = TraceReader::new(text.as_bytes());
            reader.read_header().expect("a header");
            let options = options(&parsed(&["t"]), "t".as_ref(), reader.header(), host).expect("options");
            assert_eq!((&*options.isolated.to_string(), options.isolated_source), (isolated, source));
            assert!(options.nohz_full.is_empty(), "{header}");
        }
    }
}
