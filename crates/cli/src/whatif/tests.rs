//! The text and the JSON of an answer in which no two figures are the same.

use crate::text::explanation_fixture::explanation;
use crate::text::{Page, comparison};
use quietcore_answers::{RecordedKernel, WhatifComparison};
use quietcore_explain::Explanation;
use quietcore_trace::{TimerModel, TraceReader};
use quietcore_verify::whatif::{
    FigureAgreement, FigureRange, LoadFacts, LoadReader, RecordedLoad, WhatifAnswer, WhatifFigures,
    WhatifQuestion, answer,
};

/// Four CPUs of a kernel that pushes; what they did is of no interest here.
fn load() -> RecordedLoad {
    let line = "a-8 [003] 1.0: timer_start: timer=1 function=f expires=9 [timeout=1] cpu=3 idx=1 flags=\n";
    let mut reader = LoadReader::new();
    let read = TraceReader::new(line.as_bytes()).read(9, &mut |record| reader.take(record));
    read.expect("a trace");
    let model = Some(TimerModel::Push);
    reader.finish(LoadFacts { hz: Some(250), model, ..LoadFacts::default() }).expect("a load")
}

fn report() -> Explanation {
    let mut report = explanation();
    report.kernel = Some("6.12.48".to_owned());
    report.cpus = 99; // of the recording's header; a replay has those of the load
    report.isolated_source = "option";
    report.nohz_full = "2-3".to_owned();
    report.warnings = vec!["One warning.".to_owned(), "Another one.".to_owned()];
    report.timers.started = Some(102);
    report.timers.cancel_events = Some(103);
    report.timers.expired_unknown_start = Some(104);
    report.remote.by_cpu = Some([(1, 40), (3, 7)].into());
    report.groups.cpus = [(0, "0-3".to_owned())].into();
    report
}

/// Figures from `first` on, each of which is another.
fn fill(figures: &mut WhatifFigures, first: u64) {
    let mut next = first..;
    let mut next = || next.next().expect("there are more");
    (figures.expired, figures.pending, figures.superseded) = (next(), next(), next());
    let foreign = &mut figures.foreign;
    (foreign.total, foreign.pulled, foreign.placed) = (Some(next()), Some(next()), Some(next()));
    foreign.by_cpu = Some([(1, next()), (3, next()), (7, next())].into());
    figures.foreign_range = FigureRange { low: next(), high: next() };
    figures.foreign_expected = FigureRange { low: next(), high: next() };
    (figures.remote.total, figures.remote.by_cpu) = (Some(next()), Some([(2, next())].into()));
    figures.wakeups.total = next();
    figures.wakeups.by_cpu = [(0, next()), (1, next()), (2, next()), (7, next())].into();
    let late = &mut figures.lateness_ns;
    [late.p50, late.p99, late.max] = [1_000, 1_000_000, 1_000_000_000].map(|unit| Some(next() * unit));
}

fn full() -> WhatifAnswer {
    let mut full = answer(&load(), &WhatifQuestion::default()).expect("an answer");
    fill(&mut full.before, 201);
    fill(&mut full.after, 301);
    (full.before.policy, full.before.excluded, full.before.kept_awake) = ("push", "3".into(), "0-1".into());
    (full.after.policy, full.after.excluded, full.after.kept_awake) = ("pull", "".into(), "2".into());
    full.agreement = Some(FigureAgreement::default());
    let agreement = full.agreement.as_mut().expect("it was set");
    (agreement.expired_in_both, agreement.same_cpu) = (800, 501);
    (agreement.recorded_only, agreement.replayed_only) = (502, 503);
    full.assumptions = vec!["One assumption.".to_owned(), "Another one.".to_owned()];
    full
}

fn text(report: &Explanation, answer: &WhatifAnswer) -> String {
    let mut page = Page::plain();
    let load = load();
    comparison(
        &mut page,
        "given.txt",
        &WhatifComparison { schema: 1, recorded: RecordedKernel::of(report, &load), answer },
    );
    page.into_text()
}

/// Goal: every figure stands in its place, in the text and under its name. Method: snapshots of one answer.
#[test]
fn every_figure_stands_in_its_place() {
    let (report, load, answer) = (report(), load(), full());
    insta::assert_snapshot!("text", text(&report, &answer));
    let comparison =
        WhatifComparison { schema: 1, recorded: RecordedKernel::of(&report, &load), answer: &answer };
    insta::assert_snapshot!("json", crate::output::json(&comparison).expect("it is JSON"));
}

/// Goal: what is not known or not there is said in words. Method: an empty report with an empty answer, and
/// an answer of which no timer ran in both.
#[test]
fn what_is_not_there_is_said() {
    let (mut report, mut empty) = (Explanation::default(), full());
    report.isolated_source = "recording";
    (empty.before, empty.after) = (WhatifFigures::default(), WhatifFigures::default());
    empty.agreement = None;
    insta::assert_snapshot!("empty", text(&report, &empty));
    let mut nothing_in_both = full();
    let agreement = nothing_in_both.agreement.as_mut().expect("it has one");
    (agreement.expired_in_both, agreement.same_cpu) = (0, 0);
    let shown = text(&report, &nothing_in_both);
    assert!(
        shown.contains("\n  same CPU   0 of 0 timers that ran in both ran on the same CPU; 502"),
        "{shown}"
    );
}

/// Goal: as many isolated CPUs as fit are shown, the lowest of them, and the others are counted. Method: as
/// many as fit, and two more.
#[test]
fn of_many_cpus_the_others_are_counted() {
    let report = report();
    let mut many = full();
    let mut shown = |count: u16| {
        many.before.foreign.by_cpu = Some((1..=count).map(|cpu| (cpu, 1_000 + u64::from(cpu))).collect());
        text(&report, &many)
    };
    let all = shown(24);
    assert!(all.contains("\n  24                0       1024          0 "), "{all}");
    assert!(!all.contains("--json has all of them"), "{all}");
    let most = shown(26);
    assert!(most.contains("\n  24 ") && !most.contains("\n  25 "), "{most}");
    assert!(most.contains("\n  and 2 more; --json has all of them\n"), "{most}");
}
