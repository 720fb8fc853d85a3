//! `quietcore` alone: the check-up. This host, its running kernel, three recorded kernels side by
//! side, a row per question, and the next command worth typing.
//!
//! Exit code 0 whatever it finds: it is a tour. Only an error (2) or a signal (130) changes that.

use crate::args::CheckUpArgs;
use crate::doctor::{self, Doctor};
use crate::error::CliError;
use crate::explain::{self, LiveExplanation};
use crate::outcome::CommandOutcome;
use crate::output;
use crate::signals::SignalFlag;
use crate::terminal::Style;
use crate::text::{self, Page};
use crate::typed::{program, program_as_root};
use quietcore_answers::{Bundled, ISOLATION, explain_source};
use quietcore_explain::{Explanation, Finding, Severity};
use quietcore_trace::{Question, visible};
use serde::Serialize;
use std::path::Path;

/// The JSON of `quietcore --json`, schema 3.
#[derive(Serialize)]
struct CheckUp {
    schema: u32,
    doctor: Doctor,
    live: Option<LiveExplanation>,
    live_not_possible: Option<String>,
    recordings: Vec<Recording>,
    next: String,
}

#[derive(Serialize)]
struct Recording {
    name: &'static str,
    #[serde(skip)]
    title: &'static str,
    report: Explanation,
}

pub(crate) fn run(args: &CheckUpArgs) -> Result<CommandOutcome, CliError> {
    let interrupt = SignalFlag::install()?;
    output::say("looking at this host and at four bundled recordings");
    let doctor = doctor::look_at(Path::new("/"));
    let recordings = ISOLATION.iter().map(explain_bundled).collect::<Result<Vec<_>, _>>()?;
    let (live, live_not_possible, interrupted) = live(args, &interrupt)?;
    let next = next_command(&doctor, live.as_ref());
    let check_up = CheckUp { schema: 3, doctor, live, live_not_possible, recordings, next };
    if args.json {
        output::print_json(&check_up)?;
    } else {
        Page::print(|page| show(page, &check_up))?;
    }
    Ok(if interrupted { CommandOutcome::Interrupted } else { CommandOutcome::Fine })
}

fn explain_bundled(bundled: &'static Bundled) -> Result<Recording, CliError> {
    let source = quietcore_trace::open_bytes(bundled.name, bundled.bytes)?;
    let report = explain_source(Path::new(bundled.name), source)?;
    Ok(Recording { name: bundled.name, title: bundled.title, report })
}

/// The running kernel, or the sentence why it cannot be recorded.
fn live(
    args: &CheckUpArgs,
    interrupt: &SignalFlag,
) -> Result<(Option<LiveExplanation>, Option<String>, bool), CliError> {
    if args.live.is_zero() {
        return Ok((None, Some("skipped (--live 0s)".to_owned()), false));
    }
    or_why_not(explain::record_host(args.live, interrupt))
}

/// What was recorded, or the sentence why nothing was; and whether a signal ended it.
fn or_why_not(
    recorded: Result<(LiveExplanation, bool), CliError>,
) -> Result<(Option<LiveExplanation>, Option<String>, bool), CliError> {
    match recorded {
        Ok((explanation, interrupted)) => Ok((Some(explanation), None, interrupted)),
        // Whatever forbids it, the tour goes on without it.
        Err(CliError::Live(sentence)) => {
            output::say(&sentence);
            Ok((None, Some(sentence), false))
        }
        Err(error) => Err(error),
    }
}

fn show(page: &mut Page, check_up: &CheckUp) {
    page.styled_line(Style::Heading, "quietcore: the check-up");
    page.heading("This host (quietcore doctor)");
    check_up.doctor.show_summary(page);
    finding_lines(page, &check_up.doctor.findings, "quietcore doctor");

    page.heading("The same load on three kernels (bundled recordings: 16 CPUs, isolcpus=domain,1-7,9-15)");
    table(page, &check_up.recordings);
    page.item(1, "", 0, STORY);

    match (&check_up.live, &check_up.live_not_possible) {
        (Some(explanation), _) => {
            let LiveExplanation { report, .. } = explanation;
            let span = report.duration_ns.map(|nanos| format!("{:.1} s, ", nanos as f64 / 1e9));
            let span = span.unwrap_or_default();
            page.heading(&format!("The running kernel ({span}{} events)", report.events));
            for reason in &report.incomplete {
                page.item(2, "INCOMPLETE", 10, reason);
            }
            finding_lines(page, &report.findings, "quietcore explain --live 30s");
        }
        (None, sentence) => {
            page.heading("The running kernel");
            page.item(2, "not recorded:", 13, sentence.as_deref().unwrap_or_default());
        }
    }

    page.heading("The five questions, and what works today");
    match &check_up.live {
        Some(explanation) => text::question_rows(page, &explanation.report),
        None => question_capabilities(page),
    }
    page.heading("Next");
    page.item(1, "", 0, &check_up.next);
}

/// What the recordings show, in three sentences.
const STORY: &str = "Up to 6.8 an idle CPU may hand a timer to a busy one when arming it; this load never did so \
across the isolation. From 6.9 busy CPUs, isolated or not, pull the timers of idle ones, and \
kernel.timer_migration=0 no longer prevents it. 6.19 takes domain-isolated CPUs out of that.";

/// One line per finding of at least warning, and a count of the notes.
fn finding_lines(page: &mut Page, findings: &[Finding], command: &str) {
    let warnings: Vec<&Finding> =
        findings.iter().filter(|finding| finding.severity >= Severity::Warning).collect();
    for finding in &warnings {
        let label = page.styled(Style::Warning, &finding.severity.to_string());
        page.item(2, &label, 8, &visible(&format!("{}: {}", finding.id, finding.what)));
    }
    let notes = findings.len() - warnings.len();
    let good = page.styled(Style::Good, "no warnings");
    let rest = match (warnings.is_empty(), notes) {
        (true, 0) => format!("{good}  "),
        (true, notes) => format!("{good}, {}  ", plural(notes)),
        (false, 0) => String::new(),
        (false, notes) => format!("and {}  ", plural(notes)),
    };
    page.line(&format!("  {rest}(details: {command})"));
}

fn plural(notes: usize) -> String {
    if notes == 1 { "1 note".to_owned() } else { format!("{notes} notes") }
}

fn table(page: &mut Page, recordings: &[Recording]) {
    let row = |label: &'static str, value: &dyn Fn(&Explanation) -> String| {
        (label, recordings.iter().map(|recording| value(&recording.report)).collect())
    };
    let count = |value: Option<u64>| value.map_or("not recorded".to_owned(), |value| value.to_string());
    let titles = recordings.iter().map(|recording| recording.title.to_owned()).collect();
    let rows: [(&str, Vec<String>); 8] = [
        ("kernel", titles),
        row("foreign timers run on isolated CPUs", &|report| count(report.foreign.total)),
        row("  pulled by the isolated CPU", &|report| count(report.foreign.pulled)),
        row("  the CPU that pulled the most", &top_cpu),
        row("  delayed work among them", &|report| count(delayed_work(report))),
        row("exchanged between isolated CPUs", &|report| count(report.between_isolated.total)),
        row("expiries on another CPU, in all", &|report| count(report.remote.total)),
        row("ping-pongs", &|report| count(report.ping_pong.count)),
    ];
    // As narrow as it can be: a terminal of 80 columns shows it whole.
    let widest = |column: usize| rows.iter().map(|(_, cells)| cells[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..recordings.len()).map(widest).collect();
    for (label, cells) in &rows {
        let cells: String =
            cells.iter().zip(&widths).map(|(cell, width)| format!("  {cell:>width$}")).collect();
        page.line(&format!("  {label:<35}{cells}"));
    }
}

fn top_cpu(report: &Explanation) -> String {
    let counts = report.foreign.by_cpu.iter().flatten();
    let top = counts.max_by_key(|(cpu, count)| (**count, std::cmp::Reverse(**cpu)));
    top.map_or("-".to_owned(), |(cpu, count)| format!("CPU {cpu}: {count}"))
}

fn delayed_work(report: &Explanation) -> Option<u64> {
    let counts = report.foreign.by_function.as_ref()?.iter();
    Some(counts.filter(|(function, _)| function.contains("delayed_work")).map(|(_, count)| count).sum())
}

/// Without a live recording: what could be asked.
fn question_capabilities(page: &mut Page) {
    for (question, what) in [
        (
            Question::PacketTimers,
            "explain counts hrtimers and qdisc watchdogs that expire off the CPU that armed them",
        ),
        (
            Question::Isolation,
            "explain names every foreign timer on an isolated CPU; doctor knows which kernels do that",
        ),
        (Question::Placement, "explain counts remote expiries and ping-pongs per CPU"),
        (Question::RealTime, "explain measures real-time wake-ups that waited behind NET and BLOCK softirqs"),
        (Question::EmptySoftirqs, "explain counts TIMER softirqs that ran no timer, per CPU"),
    ] {
        page.item(2, question.name(), 14, what);
    }
}

fn next_command(doctor: &Doctor, live: Option<&LiveExplanation>) -> String {
    let found = |explanation: &LiveExplanation| {
        explanation.report.findings.iter().any(|finding| finding.severity >= Severity::Warning)
    };
    let program = program();
    match live {
        Some(explanation) if found(explanation) => {
            format!("$ {program} explain --live 30s\nwhat to change, with the lines that prove it")
        }
        _ if doctor.warns() => {
            format!("$ {program} doctor\nwhat to change on this host, and how to verify it")
        }
        None => {
            format!("$ {} explain --live 30s\nthe same questions to the running kernel", program_as_root())
        }
        Some(_) => {
            format!("$ {program} explain --live 5m --isolated LIST\nLIST: the CPUs that must stay quiet")
        }
    }
}

#[cfg(test)]
mod tests;
