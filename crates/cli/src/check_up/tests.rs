//! The check-up's page, of a copied host and of hand-made reports, and what it says to type next.

use super::{CheckUp, Recording, finding_lines, next_command, or_why_not, show};
use crate::doctor::{self, Doctor};
use crate::error::CliError;
use crate::explain::LiveExplanation;
use crate::text::Page;
use crate::text::explanation_fixture::explanation;
use crate::typed::{program, program_as_root};
use quietcore_explain::{Explanation, Finding, Severity};
use quietcore_trace::Question;
use std::path::Path;

fn host(name: &str) -> Doctor {
    let hosts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../explain/tests/hosts");
    doctor::look_at(&hosts.join(name))
}

fn finding(id: &'static str, severity: Severity) -> Finding {
    Finding::new(id, Question::Isolation, severity).what(format!("This is {id}."))
}

fn live(findings: Vec<Finding>) -> LiveExplanation {
    let mut report = explanation();
    report.findings = findings;
    LiveExplanation::new(report, Vec::new(), None)
}

/// Goal: everything about the running kernel has its own figure, beside what the host and the recordings say.
/// Method: a snapshot; of two recordings one has nothing recorded.
#[test]
fn the_page_with_a_live_recording() {
    let findings = vec![
        finding("one", Severity::Note),
        finding("two", Severity::Warning),
        finding("three", Severity::Critical),
        finding("four", Severity::Note),
    ];
    let recording = |title, report| Recording { name: "not shown", title, report };
    let check_up = CheckUp {
        schema: 3,
        doctor: host("telco-6.12"),
        live: Some(live(findings)),
        live_not_possible: None,
        recordings: vec![recording("full", explanation()), recording("empty", Explanation::default())],
        next: "$ what to type\nwhat it says".to_owned(),
    };
    let mut page = Page::plain();
    show(&mut page, &check_up);
    insta::assert_snapshot!("live", page.into_text());
}

/// Goal: notes are counted, warnings are shown, and none is a good word. Method: both, either, neither; the
/// snapshot above has both.
#[test]
fn findings_are_shown_or_counted() {
    let (note, warning) = (finding("n", Severity::Note), finding("w", Severity::Warning));
    for (findings, lines) in [
        (vec![], "  no warnings  (details: D)\n"),
        (vec![note.clone()], "  no warnings, 1 note  (details: D)\n"),
        (vec![note.clone(), note.clone()], "  no warnings, 2 notes  (details: D)\n"),
        (vec![warning.clone()], "  warning  w: This is w.\n  (details: D)\n"),
        (vec![note, warning], "  warning  w: This is w.\n  and 1 note  (details: D)\n"),
    ] {
        let mut page = Page::plain();
        finding_lines(&mut page, &findings, "D");
        assert_eq!(page.into_text(), lines);
    }
}

/// Goal: what is typed next is about the worst that was found. Method: each case on a host with warnings and
/// on one without.
#[test]
fn the_next_command_is_about_what_was_found() {
    let (note, warning) = (finding("n", Severity::Note), finding("w", Severity::Warning));
    let noted = live(vec![note.clone()]);
    let warned = live(vec![note, warning]);
    let [program, root] = [program(), program_as_root()];
    let explain = format!("$ {program} explain --live 30s\nwhat to change, with the lines that prove it");
    let doctor = format!("$ {program} doctor\nwhat to change on this host, and how to verify it");
    let record = format!("$ {root} explain --live 30s\nthe same questions to the running kernel");
    let longer =
        format!("$ {program} explain --live 5m --isolated LIST\nLIST: the CPUs that must stay quiet");
    for (name, live, next) in [
        ("telco-6.12", Some(&warned), &explain),
        ("telco-6.12", Some(&noted), &doctor),
        ("telco-6.12", None, &doctor),
        ("container-6.8", Some(&warned), &explain),
        ("container-6.8", Some(&noted), &longer),
        ("container-6.8", None, &record),
    ] {
        assert_eq!(&next_command(&host(name), live), next, "{name}");
    }
}

/// Goal: where the running kernel cannot be recorded the tour goes on and says why; any other error ends it.
/// Method: each of them.
#[test]
fn what_cannot_be_recorded_is_said() {
    for interrupted in [true, false] {
        let recorded = or_why_not(Ok((live(vec![finding("n", Severity::Note)]), interrupted)));
        let (explanation, why, was_interrupted) = recorded.expect("it was recorded");
        assert_eq!((explanation.is_some(), why, was_interrupted), (true, None, interrupted));
    }
    let (explanation, why, interrupted) =
        or_why_not(Err(CliError::Live("no tracefs".to_owned()))).expect("a tour");
    assert!(explanation.is_none());
    assert_eq!((why.as_deref(), interrupted), (Some("no tracefs"), false));
    assert!(or_why_not(Err(CliError::ClosedPipe)).is_err());
    let check_up = CheckUp {
        schema: 3,
        doctor: host("telco-6.12"),
        live: None,
        live_not_possible: why,
        recordings: vec![],
        next: String::new(),
    };
    let mut page = Page::plain();
    show(&mut page, &check_up);
    let shown = page.into_text();
    assert!(shown.contains("\nThe running kernel\n  not recorded: no tracefs\n"), "{shown}");
}
